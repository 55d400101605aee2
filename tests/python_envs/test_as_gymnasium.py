"""One suite for Gymnasium's vec env classes and ours: what each gives is what Gymnasium's
`SyncVectorEnv` gives in the same run, and what is written down here."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.error import (
    AlreadyPendingCallError,
    ClosedEnvironmentError,
    NoAsyncCallError,
    ResetNeeded,
)
from gymnasium.vector import AutoresetMode

from tests.python_envs.envs import (
    ACTIONS,
    INFOS,
    OBSERVATIONS,
    UNSHARED,
    Failing,
    OwnError,
    Probe,
    makers,
)
from tests.python_envs.kinds import ASYNC, KINDS, MODES, REFERENCE, Kind
from tests.python_envs.same import assert_same

ENVS = 3
STEPS = 9

each_kind = pytest.mark.parametrize("kind", KINDS, ids=str)
each_mode = pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.value)
Makers = list[Callable[[], Any]]


@pytest.fixture
def made() -> Iterator[Callable[..., Any]]:
    """Makes vec envs that are closed in the end."""
    all_made: list[Any] = []

    def make(kind: Kind, *args: Any, **kwargs: Any) -> Any:
        all_made.append(kind(*args, **kwargs))
        return all_made[-1]

    yield make
    for envs in all_made:
        envs.close()


def raised_by(kind: Kind, error: type[Exception]) -> tuple[type[Exception], ...]:
    """The error, which Gymnasium before 1.4 asserted instead."""
    return (error, AssertionError) if kind.is_gymnasiums else (error,)


def run(envs: Any, mode: AutoresetMode, steps: int = STEPS) -> list[Any]:
    """What a seeded run gives; where nothing resets by itself, what is over is reset by mask."""
    envs.action_space.seed(3)
    told = [envs.reset(seed=20, options={"speed": (1, 2)})]
    for _ in range(steps):
        told.append(envs.step(envs.action_space.sample()))
        over = told[-1][2] | told[-1][3]
        if mode == AutoresetMode.DISABLED and over.any():
            told.append(envs.reset(options={"reset_mask": over}))
    # Gymnasium's workers without shared memory forget a reset of what is over.
    while (told[-1][2] | told[-1][3]).any() if len(told[-1]) == 5 else False:
        told.append(envs.step(envs.action_space.sample()))
    told.append(envs.reset(seed=[7, None, 9]))
    told.append(envs.step(envs.action_space.sample()))
    return told


def assert_alike(made: Any, kind: Kind, fns: Makers, mode: AutoresetMode) -> list[Any]:
    right = run(made(REFERENCE, fns, mode), mode)
    told = run(made(kind, fns, mode), mode)
    for k, (one, other) in enumerate(zip(told, right, strict=True)):
        assert_same(one, other, f"call {k}: ")
    return told


@each_kind
@each_mode
@pytest.mark.parametrize("infos", INFOS)
def test_infos_in_every_mode_are_gymnasiums(
    made: Any, kind: Kind, mode: AutoresetMode, infos: str
) -> None:
    assert_alike(made, kind, makers(ENVS, infos=infos), mode)


@each_kind
@pytest.mark.parametrize("observation", OBSERVATIONS)
def test_observations_of_every_space_are_gymnasiums(
    made: Any, kind: Kind, observation: str
) -> None:
    if observation in UNSHARED and not kind.takes_all:
        pytest.skip("Gymnasium's shared memory does not hold them")
    fns = makers(ENVS, observation=observation)
    for mode in (AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP):
        assert_alike(made, kind, fns, mode)


@each_kind
@pytest.mark.parametrize("action", ACTIONS)
def test_actions_reach_the_envs_as_gymnasium_gives_them(made: Any, kind: Kind, action: str) -> None:
    told = assert_alike(made, kind, makers(ENVS, action=action), AutoresetMode.NEXT_STEP)
    assert told[1][4]["given"].dtype == object


@each_kind
@each_mode
def test_an_episode_ends_as_its_mode_says(made: Any, kind: Kind, mode: AutoresetMode) -> None:
    # Env i ends every 2 + i steps; 0 both ways, 1 truncated, 2 terminated.
    envs = made(kind, makers(ENVS, infos="numbers"), mode)
    envs.reset(seed=0)
    actions = np.zeros(ENVS, np.int64)
    envs.step(actions)
    second, rewards, terminations, truncations, infos = envs.step(actions)
    assert terminations.tolist() == [True, False, False]
    assert truncations.tolist() == [True, False, False]
    assert (rewards.dtype, rewards[0] != 0) == (np.float64, True)
    if mode == AutoresetMode.SAME_STEP:
        assert infos["_final_obs"].tolist() == [True, False, False]
        assert infos["final_obs"].tolist()[1:] == [None, None]
        assert infos["final_obs"][0].dtype == np.float32
        assert (infos["final_obs"][0] != second[0]).any()
        assert infos["final_info"]["int"].tolist() == [2, 0, 0]
        assert infos["int"].tolist() == [-1, 12, 22]
        assert infos["seed"].tolist() == [-1, 0, 0]
        assert infos["_seed"].tolist() == [True, False, False]
    else:
        assert "final_obs" not in infos
        assert infos["int"].tolist() == [2, 12, 22]
    if mode == AutoresetMode.DISABLED:
        if kind.is_gymnasiums and kind.is_async:
            pytest.skip("Gymnasium's workers play on after the end")
        with pytest.raises((AssertionError, ResetNeeded)):
            envs.step(actions)
        return
    _, rewards, terminations, truncations, infos = envs.step(actions)
    assert terminations.tolist() == [False, False, False]
    assert truncations.tolist() == [False, True, False]
    if mode == AutoresetMode.NEXT_STEP:
        assert rewards[0] == 0
        assert infos["int"].tolist() == [-1, 13, 23]
        assert infos["_given"].tolist() == [False, True, True]


@each_kind
def test_spaces_metadata_and_modes_are_the_envs_own(made: Any, kind: Kind) -> None:
    fns = makers(2, observation="nested", action="tuple", render_mode="ansi")
    envs = made(kind, fns)
    assert envs.num_envs == 2
    assert envs.single_observation_space == OBSERVATIONS["nested"]()
    assert envs.single_action_space == ACTIONS["tuple"]()
    assert envs.observation_space == gymnasium.vector.utils.batch_space(OBSERVATIONS["nested"](), 2)
    assert envs.action_space == gymnasium.vector.utils.batch_space(ACTIONS["tuple"](), 2)
    assert envs.metadata == {**Probe.metadata, "autoreset_mode": AutoresetMode.NEXT_STEP}
    assert envs.render_mode == "ansi"
    observations, _ = envs.reset(seed=0)
    assert isinstance(observations["t"], tuple)
    assert envs.observation_space.contains(observations)


@each_kind
def test_seeds_are_one_each_and_a_none_goes_on_with_the_envs_own_stream(
    made: Any, kind: Kind
) -> None:
    envs = made(kind, makers(ENVS))
    one, infos = envs.reset(seed=5)
    assert infos["seed"].tolist() == [5, 6, 7]
    again, _ = envs.reset(seed=[5, 6, 7])
    np.testing.assert_array_equal(one, again)
    on, infos = envs.reset(seed=[None, 6, None])
    assert infos["seed"].tolist() == [-1, 6, -1]
    np.testing.assert_array_equal(on[1], one[1])
    assert (on[[0, 2]] != one[[0, 2]]).any(axis=1).all()


@each_kind
def test_a_reset_by_mask_resets_those_and_shows_the_others_as_they_were(
    made: Any, kind: Kind
) -> None:
    envs = made(kind, makers(ENVS, infos="numbers"), AutoresetMode.DISABLED)
    envs.reset(seed=1)
    before = envs.step(np.zeros(ENVS, np.int64))[0]
    mask = np.array([True, False, True])
    after, infos = envs.reset(seed=[4, 5, 6], options={"reset_mask": mask, "speed": 3})
    np.testing.assert_array_equal(before[1], after[1])
    assert infos["_seed"].tolist() == [True, False, True]
    assert infos["seed"].tolist() == [4, 0, 6]
    assert infos["options"][0] == ({"speed": 3},)
    assert infos["options"][1] is None
    assert envs.step(np.zeros(ENVS, np.int64))[4]["int"].tolist() == [1, 12, 21]


@each_kind
@pytest.mark.parametrize(
    ("mask", "error"),
    [
        ([True, False, True], TypeError),
        (np.array([True, False]), ValueError),
        (np.array([1, 0, 1]), TypeError),
        (np.zeros(3, np.bool_), ValueError),
    ],
)
def test_a_mask_that_is_none_is_an_error(made: Any, kind: Kind, mask: Any, error: Any) -> None:
    envs = made(kind, makers(ENVS), AutoresetMode.DISABLED)
    envs.reset(seed=1)
    with pytest.raises(raised_by(kind, error)):
        envs.reset(options={"reset_mask": mask})


@each_kind
def test_options_reach_the_envs_as_they_are_and_only_at_that_reset(made: Any, kind: Kind) -> None:
    envs = made(kind, makers(2))
    options = {"t": (1, [2]), "f": np.float32(2), "a": np.arange(3), "d": {1: None}, "n": 2**80}
    _, infos = envs.reset(seed=0, options=options)
    for (given,) in infos["options"]:
        assert_same(given, options)
    assert envs.reset()[1]["options"].tolist() == [(None,), (None,)]


@each_kind
def test_a_wrong_number_of_seeds_or_actions_is_a_value_error(made: Any, kind: Kind) -> None:
    envs = made(kind, makers(ENVS))
    with pytest.raises(raised_by(kind, ValueError)):
        envs.reset(seed=[1, 2])
    envs.reset(seed=0)
    with pytest.raises(ValueError):  # noqa: PT011  the words are each class's own
        envs.step(np.zeros(ENVS - 1, np.int64))


@each_kind
def test_methods_and_attributes_are_found_by_name(made: Any, kind: Kind) -> None:
    envs = made(kind, [functools.partial(_wrapped, number) for number in range(ENVS)])
    envs.reset(seed=0)
    assert envs.call("multiply", 2.0) == (0.0, 2.0, 4.0)
    assert envs.call("multiply", x=2, by=3) == (0, 6, 12)
    assert envs.get_attr("number") == (0, 1, 2)
    assert envs.get_attr("gravity") == (9.81, 9.81, 9.81)
    envs.set_attr("gravity", 1.5)
    assert envs.get_attr("gravity") == (1.5, 1.5, 1.5)
    envs.set_attr("gravity", [1, "two", None])
    assert envs.get_attr("gravity") == (1, "two", None)
    with pytest.raises(ValueError):  # noqa: PT011  the words are each class's own
        envs.set_attr("gravity", [1, 2])


@each_kind
def test_what_an_env_does_not_have_is_an_attribute_error(made: Any, kind: Kind) -> None:
    envs = made(kind, makers(2))
    with pytest.raises(AttributeError):
        envs.call("no_such_thing")


@each_kind
def test_an_exception_of_a_call_is_its_own(made: Any, kind: Kind) -> None:
    envs = made(kind, makers(2))
    with pytest.raises(KeyError, match="no such thing"):
        envs.call("fail")


def _wrapped(number: int) -> Any:
    return gymnasium.wrappers.TimeLimit(Probe(number), 5)


@each_kind
def test_render_gives_what_each_env_draws(made: Any, kind: Kind) -> None:
    envs = made(kind, makers(2, render_mode="rgb_array"))
    envs.reset(seed=0)
    frames = envs.render()
    assert isinstance(frames, tuple)
    assert_same(frames, (np.zeros((2, 3, 3), np.uint8), np.ones((2, 3, 3), np.uint8)))


@each_kind
def test_render_gives_text_where_envs_draw_text(made: Any, kind: Kind) -> None:
    envs = made(kind, makers(2, render_mode="ansi"))
    envs.reset(seed=0)
    envs.step(np.zeros(2, np.int64))
    assert envs.render() == ("env 0 at 1", "env 1 at 1")


@each_kind
def test_close_closes_the_envs_and_can_be_repeated(kind: Kind) -> None:
    alive: list[Probe] = []

    def make() -> Probe:
        alive.append(Probe())
        return alive[-1]

    envs = kind([make, make] if kind.is_here else makers(2))
    envs.reset(seed=0)
    assert not envs.closed
    envs.close()
    envs.close()
    assert envs.closed
    assert all(env.closed for env in alive)


@each_kind
def test_what_is_returned_is_never_changed_afterwards(made: Any, kind: Kind) -> None:
    envs = made(kind, makers(ENVS, observation="dict", infos="arrays"))
    told = [envs.reset(seed=0)]
    copies = [[array.copy() for array in arrays_of(told[0])]]
    for _ in range(5):
        told.append(envs.step(np.zeros(ENVS, np.int64)))
        copies.append([array.copy() for array in arrays_of(told[-1])])
    for one, arrays in zip(told, copies, strict=True):
        assert_same(arrays_of(one), arrays)


def arrays_of(tree: Any) -> list[Any]:
    if isinstance(tree, np.ndarray):
        return [tree]
    inner = tree.values() if isinstance(tree, dict) else tree if isinstance(tree, tuple) else ()
    return [array for one in inner for array in arrays_of(one)]


class Raising(Probe):
    """Env 1 raises at its second step."""

    def step(self, action: Any) -> Any:
        if self.number == 1 and self.t == 1:
            raise ValueError("in step")
        return super().step(action)


@each_kind
def test_what_an_env_raises_is_raised(made: Any, kind: Kind) -> None:
    envs = made(kind, makers(2, Raising))
    envs.reset(seed=0)
    envs.step(np.zeros(2, np.int64))
    with pytest.raises(ValueError, match="in step"):
        envs.step(np.zeros(2, np.int64))


def _other_space(number: int) -> Probe:
    env = Probe(number)
    if number == 1:
        env.observation_space = spaces.Box(-2, 2, (3,))
    return env


def _other_action(number: int) -> Probe:
    return Probe(number, action="discrete" if number == 0 else "box")


@pytest.mark.parametrize("kind", [kind for kind in KINDS if "nc" in kind.name], ids=str)
@pytest.mark.parametrize("make", [_other_space, _other_action])
def test_envs_of_different_spaces_are_a_runtime_error(kind: Kind, make: Any) -> None:
    with pytest.raises(raised_by(kind, RuntimeError)):
        kind([functools.partial(make, number) for number in range(2)])


@each_kind
def test_no_such_mode_is_a_value_error(kind: Kind) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  the words are each class's own
        kind(makers(1), "now and then")


@each_kind
def test_gymnasiums_own_wrappers_and_envs_run_alike(made: Any, kind: Kind) -> None:
    mode = AutoresetMode.SAME_STEP
    right, told = (run(made(one, [_cart_pole] * ENVS, mode), mode, 40) for one in (REFERENCE, kind))
    for one, other in zip(told, right, strict=True):
        for infos in (one[-1], other[-1]):
            # The seconds that episodes took.
            for place in (infos, infos.get("final_info", {})):
                place.get("episode", {}).pop("t", None)
        assert_same(one, other)


def _cart_pole() -> Any:
    env = gymnasium.make("CartPole-v1", max_episode_steps=15)
    return gymnasium.wrappers.RecordEpisodeStatistics(env)


@pytest.mark.parametrize("kind", ASYNC, ids=str)
def test_calls_in_two_parts_give_what_whole_ones_do(made: Any, kind: Kind) -> None:
    envs, whole = made(kind, makers(ENVS)), made(kind, makers(ENVS))
    actions = np.zeros(ENVS, np.int64)
    envs.reset_async(seed=3, options={"speed": 1})
    assert_same(envs.reset_wait(), whole.reset(seed=3, options={"speed": 1}))
    for _ in range(4):
        envs.step_async(actions)
        assert_same(envs.step_wait(timeout=20), whole.step(actions))
    envs.call_async("multiply", 3)
    assert envs.call_wait(timeout=20) == (0, 3, 6)
    mask = np.array([False, True, False])
    envs.reset_async(seed=8, options={"reset_mask": mask})
    assert_same(envs.reset_wait(), whole.reset(seed=8, options={"reset_mask": mask}))


@pytest.mark.parametrize("kind", ASYNC, ids=str)
def test_the_second_part_without_the_first_is_an_error(made: Any, kind: Kind) -> None:
    envs = made(kind, makers(2))
    for wait in (envs.reset_wait, envs.step_wait, envs.call_wait):
        with pytest.raises(NoAsyncCallError) as raised:
            wait()
        assert raised.value.name == wait.__name__.removesuffix("_wait")
    envs.reset_async(seed=0)
    with pytest.raises(NoAsyncCallError):
        envs.step_wait()
    envs.reset_wait()


@pytest.mark.parametrize("kind", ASYNC, ids=str)
@pytest.mark.parametrize("first", ["reset", "step", "call"])
def test_another_call_before_the_second_part_is_an_error(made: Any, kind: Kind, first: str) -> None:
    envs = made(kind, makers(2))
    envs.reset(seed=0)
    actions = np.zeros(2, np.int64)
    begin = {
        "reset": envs.reset_async,
        "step": lambda: envs.step_async(actions),
        "call": lambda: envs.call_async("multiply", 1),
    }
    begin[first]()
    others = [*begin.values(), envs.reset, envs.render, lambda: envs.step(actions)]
    others += [lambda: envs.set_attr("gravity", 1), lambda: envs.get_attr("gravity")]
    for other in others:
        with pytest.raises(AlreadyPendingCallError) as raised:
            other()
        assert raised.value.name == first
    getattr(envs, f"{first}_wait")()
    envs.step(actions)


@pytest.mark.parametrize("kind", ASYNC, ids=str)
def test_calls_after_close_are_errors(kind: Kind) -> None:
    envs = kind(makers(2))
    envs.reset(seed=0)
    envs.close()
    calls = [envs.reset, envs.reset_async, envs.reset_wait, envs.step_wait, envs.render]
    for call in [*calls, lambda: envs.step(np.zeros(2, np.int64)), lambda: envs.call("draw")]:
        with pytest.raises(ClosedEnvironmentError):
            call()


class Slow(Probe):
    """Takes half a second for a step."""

    def step(self, action: Any) -> Any:
        import time

        time.sleep(0.5)
        return super().step(action)


@pytest.mark.parametrize("kind", ASYNC, ids=str)
def test_a_wait_can_have_a_timeout(kind: Kind) -> None:
    import multiprocessing

    envs = kind(makers(2, Slow))
    envs.reset(seed=0)
    envs.step_async(np.zeros(2, np.int64))
    with pytest.raises(multiprocessing.TimeoutError):
        envs.step_wait(timeout=0.05)
    envs.close(terminate=True)


@pytest.mark.parametrize("kind", ASYNC, ids=str)
def test_a_close_with_a_call_under_way_waits_for_it(kind: Kind) -> None:
    envs = kind(makers(2, Slow))
    envs.reset(seed=0)
    envs.step_async(np.zeros(2, np.int64))
    envs.close(timeout=20)
    assert envs.closed


def test_failing_fails_in_the_reference_too(made: Any) -> None:
    envs = made(REFERENCE, makers(2, Failing))
    envs.reset(seed=0)
    actions = np.zeros(2, np.int64)
    envs.step(actions)
    envs.step(actions)
    with pytest.raises(OwnError, match="in step"):
        envs.step(actions)
