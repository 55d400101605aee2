"""Does a value that an env's option does not take name the option and the env, by every way in,
and do listings tell what it takes?"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest
from typer.testing import CliRunner

import corral
from corral import errors
from corral.cli import app

# How serde and Rust's Debug word things.
NOT_OURS = re.compile(
    r"invalid type|invalid value|invalid length|missing field|unknown variant|unknown field"
    r"|expected|Options\(|Some\(|Text\(|i64|u32|f64"
)
DOCS = {id: entry["option_docs"] for id, entry in corral.envs().items() if "/" not in id}
EACH = [(id, name) for id, docs in DOCS.items() for name in docs]


class Stranger:
    pass


def by_make_vec(id: str, **option: Any) -> None:
    corral.make_vec(id, 1, **option).close()


def by_make(id: str, **option: Any) -> None:
    corral.make(id, **option).close()


def by_gymnasium(id: str, **option: Any) -> None:
    gymnasium.make(f"corral/{id}", **option).close()


def by_gymnasiums_make_vec(id: str, **option: Any) -> None:
    gymnasium.make_vec(f"corral/{id}", 1, **option).close()


def by_command(id: str, **option: Any) -> None:
    given = [f"--option={name}={text_of(value)}" for name, value in option.items()]
    result = CliRunner().invoke(app.app, ["info", id, *given])
    if result.exit_code:
        assert result.exit_code == 2, result.output
        raise errors.OptionValueError(result.output + result.stderr)


def by_libenv(id: str, **option: Any) -> None:
    corral.load_libenv(corral.libenv_path(), 1, {"env_id": id, **option}).close()


def by_env_c_api(id: str, **option: Any) -> None:
    corral.load_env_c_api(corral.libenv_path(), 1, settings={"env_id": id, **option}).close()


WAYS: list[Callable[..., None]] = [
    by_make_vec,
    by_make,
    by_gymnasium,
    by_gymnasiums_make_vec,
    by_command,
    by_libenv,
    by_env_c_api,
]
WRONG: list[tuple[str, str, Any]] = [
    ("Maze-v0", "size", 300),
    ("Maze-v0", "size", -1),
    ("Maze-v0", "size", 7.5),
    ("Maze-v0", "size", "big"),
    ("Maze-v0", "size", math.nan),
    ("Maze-v0", "size", math.inf),
    ("Maze-v0", "size", {"a": 1}),
    ("Maze-v0", "size", [7]),
    ("Maze-v0", "size", Stranger()),
    ("Maze-v0", "size", 2**70),
    ("Maze-v0", "size", np.float64(7.5)),
    ("Maze-v0", "size", np.array([7])),
    ("Maze-v0", "size", np.array([Stranger()])),
    ("Pendulum-v1", "g", "heavy"),
    ("Pendulum-v1", "g", math.nan),
    ("Pendulum-v1", "g", [math.inf]),
    ("CartPole-v1", "fast", "perhaps"),
    ("CartPole-v1", "fast", 1.5),
    ("MiniGrid-Unlock-v0", "view", "rgb_partiall"),
    ("MiniGrid-Unlock-v0", "view", 3),
    ("FrozenLake-v1", "reward_schedule", [1, 0]),
    ("FrozenLake-v1", "desc", {"S": 1}),
]


def text_of(value: Any) -> str:
    return value if isinstance(value, str) else str(value)


@pytest.mark.parametrize("way", WAYS)
def test_a_wrong_value_names_option_and_env_by_every_way_in(way: Callable[..., None]) -> None:
    for id, name, value in WRONG:
        with pytest.raises(errors.CorralError) as raised:
            way(id, **{name: value})
        said = str(raised.value)
        assert re.search(rf"{id}: .*\b{name}\b", said), said
        assert not NOT_OURS.search(said), said


@pytest.mark.parametrize("way", WAYS)
def test_an_unknown_option_is_told_with_the_nearest_by_every_way_in(way: Any) -> None:
    with pytest.raises(errors.CorralError, match=r"Maze-v0: unknown option 'sise'.*'size'"):
        way("Maze-v0", sise=7)


@pytest.mark.parametrize(
    ("id", "name", "value", "said"),
    [
        ("Maze-v0", "size", 300, "Maze-v0: size is an int from 3 to 12, not 300"),
        ("Maze-v0", "size", math.nan, "Maze-v0: size is an int from 3 to 12, not nan"),
        ("Pendulum-v1", "g", math.inf, "Pendulum-v1: g is a finite number, not inf"),
        ("CartPole-v1", "fast", 1, "CartPole-v1: fast is a bool, not 1"),
        (
            "ConnectFour-v0",
            "first",
            "playr",
            "ConnectFour-v0: first is one of 'random', 'player', 'opponent', not 'playr': did you "
            "mean 'player'?",
        ),
        (
            "FrozenLake-v1",
            "desc",
            ["SG", 3],
            "FrozenLake-v1: desc[1] is a text, not 3",
        ),
    ],
)
def test_the_message_is_whole(id: str, name: str, value: Any, said: str) -> None:
    with pytest.raises(errors.OptionValueError) as raised:
        corral.make_vec(id, 1, **{name: value})
    assert str(raised.value) == said


def test_numpys_scalars_are_numbers() -> None:
    for value in (np.int64(5), np.uint8(5), np.array(5)):
        assert corral.make_vec("Maze-v0", 1, size=value).native.id == "Maze-v0"
    corral.make_vec("CartPole-v1", 1, sutton_barto_reward=np.True_).close()


def outside(doc: dict[str, Any]) -> list[Any]:
    """Values beside what a description allows."""
    kind = doc["type"].removesuffix(" or None")
    items = [doc[side] for side in ("low", "high") if side in doc]
    beyond = [bound + (-1 if bound == doc.get("low") else 1) for bound in items]
    if "choices" in doc:
        beyond.append("no such word")
    if kind in ("int", "float", "bool", "text"):
        return beyond
    return [[value] * 3 for value in beyond]


def wrong_type(doc: dict[str, Any]) -> Any:
    return 3 if "text" in doc["type"] else "three"


def test_each_option_of_each_env_refuses_other_types_and_numbers_outside_its_range() -> None:
    assert len(EACH) > 300
    for id, name in EACH:
        doc = DOCS[id][name]
        for value in (wrong_type(doc), Stranger(), math.nan, {"a": 1}, *outside(doc)):
            with pytest.raises(errors.OptionValueError) as raised:
                corral.make_vec(id, 1, **{name: value})
            said = str(raised.value)
            assert re.match(rf"{id}: {name}\b", said), said
            assert not NOT_OURS.search(said), said


def test_each_default_is_within_what_is_told() -> None:
    for id, name in EACH:
        doc, default = DOCS[id][name], corral.envs()[id]["options"][name]
        if default is None:
            assert doc["type"].endswith("or None")
            continue
        assert default in doc.get("choices", [default])
        for number in default if isinstance(default, list) else [default]:
            if isinstance(number, int | float) and not isinstance(number, bool):
                assert doc.get("low", number) <= number <= doc.get("high", number)


def test_the_option_fast_of_cart_pole_warns_and_changes_nothing() -> None:
    actions = np.arange(40) % 2
    expected = corral.make_vec("CartPole-v1", 40, seed=1)
    for id in ("CartPole-v1", "corral/CartPole-v1"):
        with pytest.warns(FutureWarning, match="CartPole-v1: the option 'fast' has no effect"):
            envs = corral.make_vec(id, 40, seed=1, fast=True)
        assert (envs.reset()[0] == expected.reset(seed=1)[0]).all()
        assert (envs.step(actions)[0] == expected.step(actions)[0]).all()
