"""`corral.to_trl`: driven as TRL drives environments (`trl_tools.py`), and its page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

import corral
from corral import errors
from corral.adapters.trl import rows, text_of
from tests.abi import peers, venvs
from tests.trainers import pages

PROGRAM = Path(__file__).with_name("trl_tools.py")


@pytest.mark.thorough
def test_tools_and_groups_as_the_trainer_has_them() -> None:
    done = venvs.run(venvs.fetched(peers.trainer_python, "trl"), PROGRAM)
    assert done.returncode == 0, done.stdout + done.stderr
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    assert told["named"]["name"] == "move"
    assert told["named"]["description"] == "Walks one step over the ice."
    kinds = {
        kind: told[kind]["parameters"] for kind in ("named", "label", "text", "several", "box")
    }
    assert all(kind["required"] == ["action"] for kind in kinds.values())
    shapes = {kind: one["properties"]["action"] for kind, one in kinds.items()}
    assert shapes["named"]["enum"] == ["left", "down", "right", "up"]
    assert [shapes[kind]["type"] for kind in shapes] == [
        *("string", "integer", "string", "array", "array")
    ]
    assert shapes["several"]["items"] == {"type": "integer"}
    assert shapes["box"]["items"] == {"type": "number"}
    assert set(told["shown"].values()) == {"at: [0.123, 1.0]\nsay: hello"}
    for name in ("pole", "echo"):
        first, second = told[name]["starts"][:3], told[name]["starts"][3:]
        assert len(set(first)) == len(set(second)) == 1
        assert first[0] != second[0]
        assert told[name]["again"] == told[name]["starts"]
    # Gymnasium's own CartPole and generator say what these starts are.
    start = gymnasium.make("CartPole-v1").reset(seed=4)[0]
    assert told["pole"]["starts"][0] == str([round(float(x), 3) for x in start])
    word = "".join(np.random.default_rng(4).choice(list("abcdef"), 4))
    assert told["echo"]["starts"][0] == word
    assert told["said"][1].startswith("InvalidActionError: action is one of left, down, right, up")
    assert told["said"][-2].endswith("HFF[G]\nThe episode is over.")
    assert told["said"][-1].startswith("ResetNeededError")
    assert (told["reward"], told["steps"]) == (1.0, 6)
    assert told["echoed"] == ["next\nThe episode is over.", 1.0, True, 0.0]


@pytest.mark.thorough
def test_the_page() -> None:
    assert pages.output("trl", pages.programs("trl")[0]) == pages.shown("trl")[0]


def test_a_wrong_action_moves_nothing() -> None:
    pole = corral.to_trl("CartPole-v1")()
    pole.reset(index=3)
    for wrong in (2, -1, 0.5, True, "0", None, [0]):
        with pytest.raises(errors.InvalidActionError):
            pole.act(wrong)  # type: ignore[attr-defined]
    assert pole.steps == 0
    other = gymnasium.make("CartPole-v1")
    other.reset(seed=3)
    assert pole.act(1.0) == text_of(other.step(1)[0])  # type: ignore[attr-defined]


def test_a_row_without_an_index_is_an_error() -> None:
    pole = corral.to_trl("CartPole-v1")()
    with pytest.raises(errors.ArgumentError, match="its columns are prompt"):
        pole.reset(prompt=[])
    start = corral.to_trl("CartPole-v1", column="level")().reset(level=3)
    assert start == pole.reset(index=3)
    assert rows([3], "Go.", column="level") == [
        {"prompt": [{"role": "user", "content": "Go."}], "level": 3}
    ]


def test_a_description_of_ones_own() -> None:
    cls = corral.to_trl("CartPole-v1", describe=lambda shown, infos: f"{len(shown)} numbers")
    assert cls().reset(index=0) == "4 numbers"


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"env": 3}, errors.ArgumentTypeError),
        ({"env": "CartPole-v1", "actions": ["left"]}, errors.ArgumentError),
        ({"env": "CartPole-v1", "actions": ["left", "left"]}, errors.ArgumentError),
        ({"env": "CartPole-v1", "tool": "reset"}, errors.ArgumentError),
        ({"env": "CartPole-v1", "tool": "_act"}, errors.ArgumentError),
        ({"env": "CartPole-v1", "gravitation": 3}, errors.UnknownOptionError),
        ({"env": lambda: gymnasium.make("CartPole-v1"), "x": 3}, errors.ArgumentError),
    ],
)
def test_what_makes_no_sense_is_an_error(arguments: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        corral.to_trl(**arguments)


def test_actions_that_no_tool_can_take() -> None:
    class Pair(gymnasium.Env[Any, Any]):
        observation_space = spaces.Discrete(2)
        action_space = spaces.Dict({"a": spaces.Discrete(2)})

    with pytest.raises(errors.UnsupportedError, match="by a wrapper"):
        corral.to_trl(Pair)
