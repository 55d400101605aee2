"""Is every option of vec envs documented, checked by the native half, or refused by name?"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest

import corral
from corral import adapters, env_c_api, errors, libenv, netenv, python_envs, registry, settings
from tests.support import FAULTY

OPTIONS = list(settings.VecOptions.__annotations__)


@functools.wraps(corral.make)
def make_one(id: str, num_envs: int, **options: Any) -> corral.Env:
    return corral.make(id, **options)


@functools.wraps(corral.sb3_vec_env)
def make_by_functions(env_fns: Any, num_envs: int, **options: Any) -> Any:
    return corral.sb3_vec_env(env_fns, **options)


REFUSED: dict[str, tuple[Callable[..., Any], dict[str, str]]] = {
    "from_gymnasium": (corral.from_gymnasium, python_envs._REFUSED),
    "sb3_vec_env": (make_by_functions, adapters._OF_SB3),
    "from_dm_env": (corral.from_dm_env, adapters._REFUSED),
    "load_libenv": (corral.load_libenv, libenv._REFUSED),
    "connect": (corral.connect, netenv._REFUSED),
    "load_env_c_api": (corral.load_env_c_api, env_c_api._REFUSED),
    "make": (make_one, registry._REFUSED),
}
DEFAULTS = dict(
    re.findall(r"^ *(\w+) \((.+?)\): ", settings.VecOptions.__doc__ or "", re.MULTILINE)
)
each_option = pytest.mark.parametrize("name", OPTIONS)
each_maker = pytest.mark.parametrize("maker", REFUSED)


def test_each_option_has_its_text_and_there_is_no_other_text() -> None:
    assert list(DEFAULTS) == OPTIONS


@each_option
def test_the_text_of_each_option_is_shown_where_users_look(name: str) -> None:
    assert f"\n    {name} ({DEFAULTS[name]}): " in (corral.make_vec.__doc__ or "")
    for maker, refused in REFUSED.values():
        names = re.search(r"corral.make_vec`, but.*?:((?:\s+\w+[,.])+)", maker.__doc__ or "")
        assert names is not None
        assert (name in re.findall(r"\w+", names[1])) == (name not in refused)


@each_option
def test_each_option_is_known_to_the_native_half_which_checks_its_value(name: str) -> None:
    with pytest.raises((errors.ArgumentError, errors.ArgumentTypeError), match=name):
        corral.make_vec("CartPole-v1", 2, **{name: object()})


def played(steps: int, **how: Any) -> tuple[list[str], str]:
    """What an env that fails in every step shows, and what it raises at last."""
    envs = corral.make_vec(FAULTY, 1, fault="error_in_step", of_seed=-1, at_step=0, seed=1, **how)
    envs.action_space.seed(0)
    shown = [repr(envs.metadata), repr(envs.reset())]
    try:
        shown.extend(repr(envs.step(envs.action_space.sample())) for _ in range(steps))
    except errors.EnvError as error:
        return shown, str(error)
    return shown, ""


@pytest.mark.parametrize("name", [name for name in OPTIONS if name != "seed"])
def test_the_default_that_is_documented_is_the_default(name: str) -> None:
    """Of an env that fails and is restarted, and of sound ones whose rewards are scaled."""
    value = ast.literal_eval(DEFAULTS[name])
    policy = {} if name == "on_failure" else {"on_failure": "restart"}
    assert played(20, **policy, **{name: value}) == played(20, **policy)
    scaled = {} if name == "normalize_reward" else {"normalize_reward": True}
    ours, others = (
        corral.make_vec("CartPole-v1", 2, seed=1, **scaled, **given)
        for given in ({name: value}, {})
    )
    assert repr(ours.reset()) == repr(others.reset())
    for _ in range(30):
        assert repr(ours.step(np.array([0, 1]))) == repr(others.step(np.array([0, 1])))


@each_maker
def test_what_a_function_does_not_support_is_refused_by_name_with_the_reason(maker: str) -> None:
    make, refused = REFUSED[maker]
    assert set(refused) < set(OPTIONS)
    for name, why in refused.items():
        with pytest.raises(errors.UnsupportedError) as told:
            make("nothing", 2, **{name: 3})
        assert str(told.value) == f"{maker} takes no {name}: {why}"


@each_maker
def test_none_asks_for_nothing_that_could_be_refused(maker: str) -> None:
    make, refused = REFUSED[maker]
    kinds = (
        errors.LibraryError,
        gymnasium.error.NameNotFound,
        errors.ArgumentError,
        errors.ArgumentTypeError,
    )
    with pytest.raises(kinds, match="nothing"):
        make("nothing", 2, **dict.fromkeys(refused))


@pytest.mark.parametrize(
    ("make", "kind", "near"),
    [
        (
            lambda: corral.make_vec("Maze-v0", 2, num_thread=2),
            errors.UnknownOptionError,
            "num_threads",
        ),
        (lambda: corral.make("Maze-v0", seeds=2), errors.UnknownOptionError, "seed"),
        (
            lambda: corral.load_libenv("none.so", 2, batchsize=2),  # type: ignore[call-arg]
            errors.UnknownOptionError,
            "batch_size",
        ),
        (
            lambda: corral.from_gymnasium(object, 2, frame_stacks=2),  # type: ignore[call-overload]
            errors.ArgumentError,
            "frame_stack",
        ),
    ],
)
def test_an_unknown_option_says_which_one_is_near(
    make: Callable[[], Any], kind: type[Exception], near: str
) -> None:
    with pytest.raises(kind, match=f"did you mean '{near}'"):
        make()


def test_an_unknown_option_of_an_env_lists_those_that_it_has() -> None:
    with pytest.raises(errors.UnknownOptionError, match=r"loops \(default 0\), size") as told:
        corral.make_vec("Maze-v0", 2, zzz=1)
    assert "did you mean" not in str(told.value)
