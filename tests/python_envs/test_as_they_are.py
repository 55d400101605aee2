"""Are Python envs taken as they are: their objects, their rewards, their spaces, their mistakes?"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode

import corral
from corral import errors
from tests.python_envs.kinds import KINDS, OURS, Kind
from tests.python_envs.same import assert_same

each_kind = pytest.mark.parametrize("kind", OURS, ids=str)


def _pair() -> spaces.Dict:
    return spaces.Dict({"age": spaces.Discrete(9), "at": spaces.Box(-9, 9, (2,), np.float32)})


SHOWN: dict[str, Any] = {
    "an int": (lambda: spaces.Discrete(9), lambda age: age),
    "a label of NumPy's": (lambda: spaces.Discrete(9), np.int64),
    "a smaller label": (lambda: spaces.Discrete(9), np.int8),
    "a list": (lambda: spaces.Box(0, 9, (2,), np.float32), lambda age: [age, 0]),
    "an array": (lambda: spaces.Box(0, 9, (2,), np.float32), lambda age: np.full(2, age, "f4")),
    "a wider array": (
        lambda: spaces.Box(0, 9, (2,), np.float32),
        lambda age: np.full(2, age, "f8"),
    ),
    "a float": (lambda: spaces.Box(0, 9, (), np.float32), float),
    "a dict": (_pair, lambda age: {"age": age, "at": np.full(2, age, "f4")}),
    "a dict with more": (
        _pair,
        lambda age: {"age": np.int64(age), "at": np.full(2, age, "f4"), "more": "yes"},
    ),
    "a tuple": (
        lambda: spaces.Tuple((spaces.Discrete(9), spaces.Box(0, 9, (1,), np.float32))),
        lambda age: (age, np.full(1, age, "f4")),
    ),
    "a text": (lambda: spaces.Text(4, min_length=1), lambda age: "ab"[: 1 + age % 2]),
}


class Shows(gymnasium.Env[Any, Any]):
    """Shows its age, as told; two steps an episode."""

    action_space = spaces.Discrete(2)

    def __init__(self, how: str) -> None:
        space, self.show = SHOWN[how]
        self.observation_space = space()

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        self.age = 0
        return self.show(0), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.age += 1
        return self.show(self.age), 0.0, self.age >= 2, False, {}


@each_kind
@pytest.mark.parametrize("how", SHOWN)
def test_final_observations_are_the_envs_own_objects(kind: Kind, how: str) -> None:
    makers = [functools.partial(Shows, how)] * 2
    theirs = KINDS[0](makers, AutoresetMode.SAME_STEP)
    mine = kind(makers, AutoresetMode.SAME_STEP)
    for envs in (theirs, mine):
        envs.reset()
        envs.step(np.zeros(2, np.int64))
    right, got = (envs.step(np.zeros(2, np.int64))[4] for envs in (theirs, mine))
    assert_same(got["final_obs"], right["final_obs"])
    assert got.keys() == right.keys()
    assert got["final_info"] == right["final_info"]
    mine.close()


@pytest.mark.parametrize("how", [{"frame_stack": 2}, {"frame_stack": 2, "lazy_frames": True}])
def test_layers_show_their_own_final_observations(how: dict[str, Any]) -> None:
    envs = corral.from_gymnasium(
        functools.partial(Shows, "a list"), 2, runner="serial", autoreset_mode="same_step", **how
    )
    envs.reset()
    envs.step(np.zeros(2, np.int64))
    last = envs.step(np.zeros(2, np.int64))[4]["final_obs"][1]
    np.testing.assert_array_equal(last, [[1, 0], [2, 0]])
    assert last.dtype == np.float32
    envs.close()


class Pays(Shows):
    """Pays what it was told, and ends as it was told."""

    def __init__(self, reward: Any, over: Any = False) -> None:
        super().__init__("an int")
        self.reward, self.over = reward, over

    def step(self, action: Any) -> tuple[Any, Any, Any, bool, dict[str, Any]]:
        return 0, self.reward, self.over, False, {}


ONE = [1, True, 1.0, np.float32(1), np.int8(1), np.array(1.0), np.array([1.0]), np.array([[1]])]


@pytest.mark.parametrize("reward", ONE, ids=repr)
@pytest.mark.parametrize("runner", ["serial", "thread"])
def test_a_reward_is_a_number_or_an_array_of_one(runner: str, reward: Any) -> None:
    envs = corral.from_gymnasium(functools.partial(Pays, reward), 2, runner=runner)
    envs.reset()
    rewards = envs.step(np.zeros(2, np.int64))[1]
    assert rewards.tolist() == [1, 1]
    assert rewards.dtype == np.float64
    envs.close()


NONE = {
    "None, a NoneType,": None,
    "'1.5', a str,": "1.5",
    r"\[1.0\], a list,": [1.0],
    r"array\(\[1., 2.\]\), a ndarray,": np.array([1.0, 2.0]),
    r"array\(\[None\], dtype=object\), a ndarray,": np.array([None]),
    "1j, a complex,": 1j,
    "10000000000000000000000000000000000000000000000000000000000000000000000000000000…": 10**400,
}


@each_kind
@pytest.mark.parametrize("words", NONE)
def test_any_other_reward_is_shown_beside_what_is_due(kind: Kind, words: str) -> None:
    envs = kind([functools.partial(Pays, 2.0), functools.partial(Pays, NONE[words])])
    envs.reset()
    with pytest.raises(
        errors.EnvError, match=f"env 1 failed in step: the reward is {words}"
    ) as told:
        envs.step(np.zeros(2, np.int64))
    assert "where a float belongs" in str(told.value)
    assert told.value.batch is not None
    assert told.value.batch[1].tolist() == [2, 0]
    envs.close()


def test_flags_that_are_none_are_shown_beside_what_is_due() -> None:
    over = np.array([True, False])
    envs = corral.from_gymnasium(functools.partial(Pays, 1.0, over), 1, runner="serial")
    envs.reset()
    with pytest.raises(errors.EnvError, match=r"the terminated is array.*where a bool belongs"):
        envs.step(np.zeros(1, np.int64))
    envs.close()


@pytest.mark.parametrize("kind", [kind for kind in OURS if "process" not in kind.name], ids=str)
def test_one_env_in_several_slots_is_an_error(kind: Kind) -> None:
    env = Shows("an int")
    wrapped = [lambda: gymnasium.wrappers.TimeLimit(env, 5)] * 4
    for makers in ([lambda: env] * 4, wrapped):
        with pytest.raises(errors.ArgumentError, match="envs 0 and 1 are the same object"):
            kind(makers)


class Remote:
    """No `gymnasium.Env`: every attribute is a function that calls another process, made anew."""

    observation_space = spaces.Box(-1, 1, (2,), np.float32)
    action_space = spaces.Discrete(2)

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        return self.observation_space.sample(), {}

    def step(self, action: Any) -> Any:
        return self.observation_space.sample(), 0.0, False, False, {}

    def __getattr__(self, name: str) -> Any:
        return functools.partial(print, name)


def test_envs_are_told_apart_by_themselves_where_unwrapped_gives_what_is_made_anew() -> None:
    envs = corral.from_gymnasium(Remote, 4, runner="serial")
    assert envs.reset()[0].shape == (4, 2)
    envs.close()


def test_one_env_in_several_slots_of_a_worker_is_an_error() -> None:
    env = Shows("an int")
    for context in ("forkserver", "fork"):
        with pytest.raises(errors.ArgumentError, match="envs 2 and 3 are the same object"):
            corral.from_gymnasium(
                [lambda: env, lambda: Shows("an int"), *[lambda: env] * 2],
                num_workers=2,
                context=context,
            )


def test_one_env_alone_may_be_made_before() -> None:
    env = Shows("an int")
    envs = corral.from_gymnasium(lambda: env, runner="serial")
    assert envs.num_envs == 1
    envs.reset()
    envs.close()


class Own(spaces.Space[Any]):
    """A space of someone's own, that does not compare."""

    def __init__(self, shape: tuple[int, ...] = (2,)) -> None:
        super().__init__(shape, np.float32)

    def sample(self, mask: Any | None = None, probability: Any | None = None) -> Any:
        return np.zeros(self.shape or (), np.float32)

    def contains(self, x: Any) -> bool:
        return True


class HasOwn(gymnasium.Env[Any, Any]):
    """Has a space of its own within others; `more` makes it another one."""

    action_space = spaces.Discrete(2)

    def __init__(self, more: bool = False) -> None:
        inner: dict[str, Any] = {"own": Own(), "list": spaces.Sequence(Own())}
        if more:
            inner["list"] = spaces.Sequence(spaces.Discrete(3))
        self.observation_space = spaces.Dict(inner)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        return {"own": np.zeros(2, np.float32), "list": ()}, {}


HOW = [{"runner": "serial"}, {"context": "forkserver", "num_workers": 3}]


@pytest.mark.parametrize("how", HOW, ids=str)
def test_spaces_of_ones_own_pass_within_others(how: dict[str, Any]) -> None:
    envs = corral.from_gymnasium([HasOwn] * 3, **how)
    assert isinstance(envs.single_observation_space, type(HasOwn().observation_space))
    observations, _ = envs.reset()
    assert envs.observation_space.contains(observations)
    envs.close()


@pytest.mark.parametrize("how", HOW, ids=str)
def test_the_env_whose_space_differs_is_named(how: dict[str, Any]) -> None:
    with pytest.raises(errors.SpaceError, match=r"env 2 .*env 0"):
        corral.from_gymnasium([HasOwn, HasOwn, functools.partial(HasOwn, more=True)], **how)


class Numbered(HasOwn):
    def __init__(self) -> None:
        self.observation_space = spaces.Dict({1: spaces.Discrete(3)})  # type: ignore[dict-item]


@pytest.mark.parametrize("how", HOW, ids=str)
def test_the_key_of_a_dict_space_that_is_no_string_is_named(how: dict[str, Any]) -> None:
    with pytest.raises(errors.SpaceError, match="the key 1 of a Dict space is no string"):
        corral.from_gymnasium(Numbered, 2, **how)


@dataclasses.dataclass(frozen=True)
class Crash(Exception):
    """An exception that refuses to be changed."""

    code: int


class Crashes(Shows):
    def step(self, action: Any) -> Any:
        raise Crash(7)


@pytest.mark.parametrize(
    "how",
    [*HOW, {"runner": "serial", "frame_stack": 2, "lazy_frames": True}],
    ids=str,
)
def test_an_exception_that_cannot_be_changed_is_raised_as_what_it_is(how: dict[str, Any]) -> None:
    envs = corral.from_gymnasium(functools.partial(Crashes, "an array"), 3, **how)
    envs.reset()
    with pytest.raises(Crash) as told:
        envs.step(np.zeros(3, np.int64))
    assert told.value.code == 7
    assert isinstance(told.value.__cause__, errors.EnvError)
    assert told.value.__cause__.batch is not None
    assert "env 0 failed in step" in str(told.value.__cause__)
    if hasattr(told.value, "add_note"):
        assert "env 0 failed in step" in told.value.__notes__[0]
    envs.close()
