"""Python envs in our vec envs: what Gymnasium's do not have."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

import corral
from corral import errors
from tests.python_envs.envs import BAD, Failing, Old, OwnError, Probe, makers
from tests.python_envs.kinds import OURS, Kind
from tests.python_envs.same import assert_same

each_kind = pytest.mark.parametrize("kind", OURS, ids=str)
IN_PROCESS = ("serial", "thread")


@pytest.fixture
def made() -> Iterator[Callable[..., Any]]:
    """Makes vec envs that are closed in the end."""
    all_made: list[Any] = []

    def make(kind: Any, *args: Any, **kwargs: Any) -> Any:
        all_made.append(kind(*args, **kwargs))
        return all_made[-1]

    yield make
    for envs in all_made:
        envs.close()


def serial(envs: Any, num_envs: int | None = None, **more: Any) -> corral.VectorEnv:
    return corral.from_gymnasium(envs, num_envs, runner="serial", **more)


def idle(envs: Any) -> Any:
    return np.zeros(envs.num_envs, np.int64)


# Seeds and indices.


@each_kind
def test_an_index_plays_what_that_seed_plays_and_leaves_the_envs_own_stream(
    made: Any, kind: Kind
) -> None:
    envs, plain = made(kind, makers(2)), made(kind, makers(2))
    envs.reset(seed=1)
    plain.reset(seed=1)
    indexed, infos = envs.reset(options={"index": [40, 41]})
    assert infos["seed"].tolist() == [40, 41]
    np.testing.assert_array_equal(made(kind, makers(2)).reset(seed=40)[0], indexed)
    envs.call("draw")
    envs.step(idle(envs))
    envs.reset(options={"index": 7})
    assert_same(envs.reset(), plain.reset())
    assert_same(envs.call("draw"), plain.call("draw"))
    assert_same(envs.get_attr("np_random_seed"), (1, 2))


@each_kind
def test_after_an_indexed_episode_autoreset_goes_on_with_the_own_stream(
    made: Any, kind: Kind
) -> None:
    envs, plain = made(kind, makers(1)), made(kind, makers(1))
    envs.reset(seed=1)
    plain.reset(seed=1)
    envs.reset(options={"index": 7})
    for _ in range(3):
        shown = envs.step(idle(envs))[0]
    np.testing.assert_array_equal(shown, plain.reset()[0])


@pytest.mark.parametrize("runner", IN_PROCESS)
def test_envs_made_with_a_seed_give_the_same_first_episodes(made: Any, runner: str) -> None:
    def first(seed: int | None) -> Any:
        return made(corral.from_gymnasium, makers(3), runner=runner, seed=seed).reset()[0]

    np.testing.assert_array_equal(first(5), first(5))
    assert (first(5) != first(6)).any()
    assert (first(None) != first(None)).any()
    right = made(corral.from_gymnasium, makers(3), runner=runner).reset(seed=5)[0]
    np.testing.assert_array_equal(first(5), right)


def test_evaluation_plays_every_index_once(made: Any) -> None:
    envs = made(serial, makers(3))
    result = corral.evaluate(lambda shown: np.zeros(len(shown), np.int64), envs, range(7))
    assert len(result.returns) == 7


def test_an_env_without_gymnasiums_generator_takes_no_index(made: Any) -> None:
    envs = made(serial, [Old])
    with pytest.raises(errors.UnsupportedError, match="index"):
        envs.reset(options={"index": 1})


# Old gym.


@each_kind
def test_envs_of_old_gym_run(made: Any, kind: Kind) -> None:
    old = [functools.partial(Old, 3), functools.partial(Old, 3, limit=3)]
    envs = made(kind, old, gymnasium.vector.AutoresetMode.DISABLED)
    assert envs.single_action_space == spaces.Discrete(2)
    first, _ = envs.reset(seed=4)
    rng = np.random.default_rng(4)
    np.testing.assert_array_equal(first[0], rng.random(2).astype(np.float32))
    for t in (1, 2):
        _, _, terminations, truncations, infos = envs.step(idle(envs))
        assert infos["t"].tolist() == [t, t]
        assert not (terminations | truncations).any()
    _, _, terminations, truncations, infos = envs.step(idle(envs))
    assert (terminations.tolist(), truncations.tolist()) == ([True, False], [False, True])
    assert infos["TimeLimit.truncated"].tolist() == [False, True]


# What envs give that does not fit.

WRONG = {
    "shape": "shape (2,) where (3,) belongs",
    "dtype": "dtype complex64 where float32 belongs",
    "text": "of type str where an array of float32, shape (3,), belongs",
    "none": "of type NoneType where an array of float32, shape (3,), belongs",
    "nan": "holds NaN",
    "nan reward": "the reward is NaN",
    "reward": "the reward is 'much', a str, where a float belongs",
    "no reward": "the reward is None, a NoneType, where a float belongs",
    "three": "a tuple of 3",
    "no tuple": "step must return a tuple",
    "info": "the info is a list",
}


@each_kind
@pytest.mark.parametrize("how", WRONG)
def test_what_does_not_fit_is_named_and_the_others_go_on(made: Any, kind: Kind, how: str) -> None:
    envs = made(kind, makers(3, Failing, how=how))
    envs.reset(seed=0)
    envs.step(idle(envs))
    envs.step(idle(envs))
    # What was raised on the way (a float that is none), or an EnvError.
    with pytest.raises(Exception) as raised:  # noqa: PT011
        envs.step(idle(envs))
    error = raised.value if isinstance(raised.value, errors.EnvError) else raised.value.__cause__
    assert isinstance(error, errors.EnvError)
    (failure,) = error.failures
    assert (failure.slot, failure.seed, failure.step, failure.phase) == (1, 1, 2, "step")
    assert WRONG[how] in failure.message
    assert error.batch is not None
    assert error.batch[1].tolist() == [1, 0, 1]


def test_every_wrong_return_has_its_message() -> None:
    assert WRONG.keys() == BAD.keys()


def test_nan_passes_where_it_is_not_looked_for(made: Any) -> None:
    envs = made(serial, makers(2, Failing, how="nan"), check_nan=False)
    envs.reset(seed=0)
    for _ in range(3):
        observations = envs.step(idle(envs))[0]
    assert np.isnan(observations[1, 1])


def test_the_leaf_that_does_not_fit_is_named(made: Any) -> None:
    class Wrong(Probe):
        def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
            observation, info = super().reset(seed=seed, options=options)
            observation["in"]["y"] = np.zeros(5, np.float32)
            return observation, info

    envs = made(serial, [functools.partial(Wrong, observation="dict")])
    with pytest.raises(errors.EnvError, match=r"leaf 'in\.y', has shape \(5,\)"):
        envs.reset(seed=0)


CASTS: list[tuple[Any, Any, Any]] = [
    (np.float32, np.array([0.1, 1e300]), [np.float32(0.1), np.inf]),
    (np.float64, np.array([0.1, 2], np.float32), [np.float64(np.float32(0.1)), 2]),
    (np.float32, np.array([1, 2], np.int64), [1, 2]),
    (np.float32, np.array([True, False]), [1, 0]),
    (np.float32, [1, 2], [1, 2]),
    (np.float32, (1.5, 2), [1.5, 2]),
    (np.float32, np.arange(4, dtype=np.float32)[::2], [0, 2]),
    (np.float32, np.array([1, 2], ">f4"), [1, 2]),
    (np.float16, np.array([0.1, 2], np.float64), [np.float16(0.1), 2]),
    (np.uint8, [0, 255], [0, 255]),
    (np.int16, np.array([1, -2], np.int64), [1, -2]),
    (np.int64, np.array([1, 2], np.uint8), [1, 2]),
    (np.int64, np.array([1, 2], np.uint64), [1, 2]),
]


class Fixed(gymnasium.Env[Any, Any]):
    """Shows one thing."""

    action_space = spaces.Discrete(2)

    def __init__(self, space: spaces.Space[Any], shown: Any) -> None:
        self.observation_space, self.shown = space, shown

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        return self.shown, {}


def _wide(dtype: Any) -> spaces.Box:
    return spaces.Box(0, 1, (2,), dtype)


@pytest.mark.parametrize(("dtype", "shown", "right"), CASTS)
def test_what_is_of_the_same_kind_is_cast_as_numpy_does(
    made: Any, dtype: Any, shown: Any, right: Any
) -> None:
    envs = made(serial, [functools.partial(Fixed, _wide(dtype), shown)])
    observations, _ = envs.reset(seed=0)
    assert observations.dtype == dtype
    np.testing.assert_array_equal(observations[0], np.array(right, dtype))
    if isinstance(shown, np.ndarray):
        with np.errstate(over="ignore"):
            np.testing.assert_array_equal(observations[0], shown.astype(dtype, casting="same_kind"))


@pytest.mark.parametrize("shown", [2, np.int64(2), np.int32(2), np.uint8(2), np.array(2), True])
def test_labels_come_as_any_kind_of_int(made: Any, shown: Any) -> None:
    envs = made(serial, [functools.partial(Fixed, spaces.Discrete(4), shown)])
    assert_same(envs.reset(seed=0)[0], np.array([int(shown)]))


@pytest.mark.parametrize(
    ("dtype", "shown", "message"),
    [
        (np.int64, np.array([0.5, 1]), "dtype float64 where int64 belongs"),
        (np.uint8, np.array([1, 2]), "dtype int64 where uint8 belongs"),
        (np.uint8, [0, 256], "does not fit uint8"),
        (np.uint8, [-1, 0], "does not fit uint8"),
        (np.int64, [0.5, 1], "dtype float64 where int64 belongs"),
        (np.float32, ["1", "2"], "of type list"),
        (np.float32, [[1], [2, 3]], "no array"),
        (np.float32, np.array([None, 1]), "array of object"),
        (np.float32, 1.0, r"shape \(\)"),
        (np.float32, float("nan"), r"shape \(\)"),
        (np.float32, [float("nan"), 0], "holds NaN"),
    ],
)
def test_what_is_of_another_kind_is_an_error(
    made: Any, dtype: Any, shown: Any, message: str
) -> None:
    envs = made(serial, [functools.partial(Fixed, _wide(dtype), shown)])
    with pytest.raises(errors.EnvError, match=message):
        envs.reset(seed=0)


# Infos that Gymnasium garbles.


class Telling(Probe):
    """Env `number` tells the number-th value."""

    def __init__(self, number: int, values: Any) -> None:
        super().__init__(number)
        self.value = values[number]

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        return super().reset(seed=seed)[0], {"x": self.value}


@pytest.mark.parametrize(
    "values",
    [
        [1, 2.5],
        [1, "two"],
        [True, 2],
        [np.zeros(2), np.zeros(3)],
        [np.zeros(2, np.int64), np.ones(2)],
        [2**70, 1],
        [1, None],
        [{"y": 1}, 2],
        ["one", {"y": 2}],
    ],
    ids=repr,
)
def test_infos_that_do_not_fit_one_array_come_as_objects(made: Any, values: Any) -> None:
    envs = made(serial, makers(2, Telling, values=values))
    infos = envs.reset(seed=0)[1]
    assert infos["x"].dtype == object
    for given, value in zip(infos["x"], values, strict=True):
        np.testing.assert_equal(given, value)
    assert infos["_x"].tolist() == [True, True]


def test_options_are_the_callers_own_objects_in_this_process_and_not_changed(made: Any) -> None:
    given: list[Any] = []

    class Taking(Probe):
        def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
            given.append(options)
            return super().reset(seed=seed)

    envs = made(serial, [Taking, Taking])
    level, mask = {"map": [object()]}, np.array([False, True])
    options = {"level": level, "reset_mask": mask}
    envs.reset(seed=0)
    envs.reset(options=options)
    assert given[-1] == {"level": level}
    assert given[-1]["level"] is level
    assert options.keys() == {"level", "reset_mask"}


# Exceptions.


@each_kind
def test_what_an_env_raises_comes_with_where_and_what_the_others_gave(
    made: Any, kind: Kind
) -> None:
    envs = made(kind, makers(3, Failing))
    envs.reset(seed=10)
    envs.step(idle(envs))
    envs.step(idle(envs))
    with pytest.raises(OwnError, match="7: in step") as raised:
        envs.step(np.array([0, 2, 0]))
    assert raised.value.code == 7
    cause = raised.value.__cause__
    assert isinstance(cause, errors.EnvError)
    (failure,) = cause.failures
    assert (failure.slot, failure.seed, failure.step, failure.action) == (1, 11, 2, "2")
    assert failure.exception is raised.value
    assert failure.message == "OwnError: 7: in step"
    if hasattr(raised.value, "__notes__"):
        assert "env 1" in raised.value.__notes__[0]
    assert cause.batch[1].tolist() == [1, 0, 1]
    with pytest.raises(errors.ResetNeededError):
        envs.step(idle(envs))
    envs.reset(seed=0)
    envs.step(idle(envs))


@each_kind
def test_what_init_raises_is_raised_and_the_others_are_closed(kind: Kind) -> None:
    alive: list[Probe] = []

    def first() -> Probe:
        alive.append(Probe())
        return alive[-1]

    failing = functools.partial(Failing, 1, how="init")
    with pytest.raises(OwnError, match="in init") as raised:
        kind([first if kind.is_here else Probe, failing])
    cause = raised.value.__cause__
    assert isinstance(cause, errors.EnvError)
    assert [(one.slot, one.phase) for one in cause.failures] == [(1, "build")]
    assert all(env.closed for env in alive)
    assert len(alive) == (1 if kind.is_here else 0)


@each_kind
def test_what_reset_raises_is_raised_and_a_reset_makes_it_anew(made: Any, kind: Kind) -> None:
    envs = made(kind, makers(2, Failing, how="reset"))
    with pytest.raises(OwnError, match="in reset") as raised:
        envs.reset(seed=0, options={"fail": 1})
    cause = raised.value.__cause__
    assert isinstance(cause, errors.EnvError)
    assert [(one.slot, one.phase) for one in cause.failures] == [(1, "reset")]
    envs.reset(seed=0)
    envs.step(idle(envs))


@each_kind
def test_what_close_raises_is_raised_once(kind: Kind) -> None:
    envs = kind(makers(2, Failing, how="close"))
    envs.reset(seed=0)
    with pytest.raises(OwnError, match="in close"):
        envs.close()
    assert envs.closed
    envs.close()


@pytest.mark.parametrize("policy", ["raise", "restart", "mask"])
@pytest.mark.parametrize("runner", IN_PROCESS)
def test_ctrl_c_in_an_env_stops_the_program_whatever_the_policy(
    made: Any, runner: str, policy: str
) -> None:
    envs = made(
        corral.from_gymnasium,
        makers(2, Failing, how="interrupt"),
        runner=runner,
        on_failure=policy,
    )
    envs.reset(seed=0)
    envs.step(idle(envs))
    envs.step(idle(envs))
    with pytest.raises(KeyboardInterrupt):
        envs.step(idle(envs))


@each_kind
def test_sys_exit_in_an_env_ends_the_env_and_not_the_program(made: Any, kind: Kind) -> None:
    envs = made(kind, makers(2, Failing, how="exit"))
    envs.reset(seed=0)
    envs.step(idle(envs))
    envs.step(idle(envs))
    with pytest.raises(errors.EnvError, match="SystemExit: 3") as raised:
        envs.step(idle(envs))
    assert isinstance(raised.value.failures[0].exception, SystemExit)


@pytest.mark.parametrize("runner", [*IN_PROCESS, "process"])
def test_a_policy_restarts_or_masks_an_env_that_raises(made: Any, runner: str) -> None:
    def make(policy: str) -> Any:
        envs = made(corral.from_gymnasium, makers(3, Failing), runner=runner, on_failure=policy)
        envs.reset(seed=0)
        envs.step(idle(envs))
        envs.step(idle(envs))
        return envs

    envs = make("restart")
    _, _, terminations, truncations, infos = envs.step(idle(envs))
    assert truncations.tolist() == [False, True, False]
    assert not terminations.any()
    assert isinstance(infos["failed"][1].exception, OwnError)
    assert infos["_failed"].tolist() == [False, True, False]
    envs.step(idle(envs))
    envs.step(idle(envs))

    envs = make("mask")
    infos = envs.step(idle(envs))[4]
    assert isinstance(infos["failed"][1].exception, OwnError)
    assert envs.step(idle(envs))[4]["_failed"].tolist() == [False, True, False]


# How they are made.


def test_an_id_a_function_and_a_list_make_envs(made: Any) -> None:
    one = made(serial, "CartPole-v1", 2, max_episode_steps=9, render_mode="rgb_array")
    assert (one.num_envs, one.render_mode, one.spec.id) == (2, "rgb_array", "CartPole-v1")
    assert made(serial, Probe, 3).num_envs == 3
    assert made(serial, ["CartPole-v1", "CartPole-v1"]).num_envs == 2


@pytest.mark.parametrize(
    ("env", "num_envs", "more", "error"),
    [
        ([], None, {}, errors.ArgumentError),
        ([Probe], 2, {}, errors.ArgumentError),
        (Probe, 0, {}, errors.ArgumentError),
        (Probe, 2.0, {}, errors.ArgumentTypeError),
        (3, None, {}, errors.ArgumentTypeError),
        ([3], None, {}, errors.ArgumentTypeError),
        (Probe, 1, {"gravity": 3}, errors.ArgumentError),
        (Probe, 1, {"runner": "row"}, errors.ArgumentError),
        (lambda: 3, 1, {}, TypeError),
        ("NoSuchEnv-v0", 1, {}, gymnasium.error.NameNotFound),
    ],
)
def test_what_makes_no_env_is_an_error(env: Any, num_envs: Any, more: Any, error: Any) -> None:
    with pytest.raises(error):
        corral.from_gymnasium(env, num_envs, **{"runner": "serial", **more})


@each_kind
def test_a_space_that_differs_is_named(kind: Kind) -> None:
    def make(number: int) -> Any:
        return Probe(number, observation="stacked sequence" if number == 1 else "sequence")

    with pytest.raises(errors.SpaceError, match="observation space of env 1"):
        kind([functools.partial(make, number) for number in range(4)])


def test_time_limit_and_statistics_are_kept_for_python_envs(made: Any) -> None:
    envs = made(serial, makers(1), max_episode_steps=1, episode_statistics=True)
    envs.reset(seed=0)
    _, rewards, terminations, truncations, infos = envs.step(idle(envs))
    assert (terminations.tolist(), truncations.tolist()) == ([False], [True])
    assert infos["episode"]["r"].tolist() == rewards.tolist()
    assert infos["episode"]["l"].tolist() == [1]


@pytest.mark.parametrize("runner", ["thread", "process"])
def test_every_runner_gives_the_bytes_of_serial(made: Any, runner: str) -> None:
    told = []
    for each in ("serial", runner):
        envs = made(
            corral.from_gymnasium,
            makers(5, observation="nested", action="dict", infos="sometimes"),
            runner=each,
            autoreset_mode="same_step",
            episode_statistics=True,
        )
        envs.action_space.seed(1)
        told.append([envs.reset(seed=2)])
        for _ in range(12):
            told[-1].append(envs.step(envs.action_space.sample()))
            for place in (told[-1][-1][4], told[-1][-1][4].get("final_info", {})):
                place.get("episode", {}).pop("t", None)
    assert_same(told[1], told[0])


@pytest.mark.parametrize("runner", ["thread", "process"])
def test_send_and_recv_give_each_env_what_serial_gives_it(made: Any, runner: str) -> None:
    right = made(serial, makers(4))
    envs = made(corral.from_gymnasium, makers(4), runner=runner, batch_size=2)
    first, _ = right.reset(seed=0)
    shown = {k: [row] for k, row in enumerate(first)}
    rewards: dict[int, list[float]] = {k: [0.0] for k in range(4)}
    for _ in range(6):
        observations, reward, *_ = right.step(idle(right))
        for k in range(4):
            shown[k].append(observations[k])
            rewards[k].append(reward[k])
    envs.async_reset(seed=0)
    counts = dict.fromkeys(range(4), 0)
    while min(counts.values()) < 7:
        observations, reward, _, _, infos = envs.recv(timeout=30)
        ids = infos["env_id"]
        for at, k in enumerate(ids):
            if counts[k] < 7:
                np.testing.assert_array_equal(observations[at], shown[k][counts[k]])
                assert reward[at] == rewards[k][counts[k]]
            counts[k] += 1
        envs.send(np.zeros(len(ids), np.int64), ids)


def test_render_of_chosen_envs(made: Any) -> None:
    envs = made(serial, makers(3, render_mode="ansi"))
    envs.reset(seed=0)
    assert envs.render([2, 0]) == ("env 2 at 0", "env 0 at 0")


def test_actions_are_the_envs_own_to_keep(made: Any) -> None:
    kept: list[Any] = []

    class Keeping(Probe):
        def step(self, action: Any) -> Any:
            kept.append(action)
            return super().step(action)

    envs = made(serial, [functools.partial(Keeping, 2, action="box")])
    envs.reset(seed=0)
    for k in range(3):
        envs.step(np.full((1, 2), k / 4, np.float32))
    assert [action.tolist() for action in kept] == [[0, 0], [0.25, 0.25], [0.5, 0.5]]
    assert all(action.flags.writeable for action in kept)
