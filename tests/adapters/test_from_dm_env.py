"""`corral.from_dm_env`: dm_env environments as a `corral.VectorEnv`.

What the vec env gives is compared with what the same environments give one by one. Tests that call
`corral.to_dm_env`, too, are here: of envs that go there and back, and of what both refuse.
"""

from __future__ import annotations

import functools
import sys
from contextlib import closing
from typing import Any

import gymnasium
import numpy as np
import pytest
from dm_env import specs
from gymnasium import spaces

import corral
from corral import adapters, errors
from corral.adapters.dm_env import DmAsGymnasium
from corral.spaces import Opaque
from tests.adapters.dm_env_support import FIRST, LAST, MID, Mixed, rows
from tests.adapters.dm_environments import Catch, Kinds, Pair, Script
from tests.support import FAULTY, assert_same


def test_specs_become_the_spaces_that_the_docs_name() -> None:
    infinity, f32, most = np.inf, np.float32, np.iinfo(np.int64).max
    both: list[tuple[Any, Any]] = [
        (specs.Array((2,), f32), spaces.Box(-infinity, infinity, (2,), f32)),
        (specs.Array((), np.uint8), spaces.Box(0, 255, (), np.uint8)),
        (specs.Array((2,), bool), spaces.Box(0, 1, (2,), np.bool_)),
        (specs.BoundedArray((2,), f32, -1, [1, 2]), spaces.Box(f32(-1), np.array([1, 2], f32))),
        (specs.BoundedArray((), np.int64, 0, most), spaces.Box(0, most, (), np.int64)),
        (specs.DiscreteArray(256, np.uint8), spaces.Box(0, 255, (), np.uint8)),
        (specs.StringArray((2,)), Opaque()),
        (specs.StringArray((), bytes), Opaque()),
        (specs.Array((), object), Opaque()),
        ([specs.Array((1,), f32)], spaces.Tuple([spaces.Box(-infinity, infinity, (1,), f32)])),
        ({"z": specs.Array((), bool)}, spaces.Dict({"z": spaces.Box(0, 1, (), np.bool_)})),
    ]
    # Gymnasium 1.2 has no dtype for Discrete.
    for spec, n, start in (
        (specs.DiscreteArray(5, np.int64), 5, 0),
        (specs.BoundedArray((), np.int64, -1, 3), 5, -1),
    ):
        both.append((spec, spaces.Discrete(n, start=start)))
    integers = specs.BoundedArray((2,), np.int64, [0, -2], [4, 5])
    cases = [(spec, space, space) for spec, space in both]
    low, high = np.array([0, -2]), np.array([4, 5])
    labels = spaces.MultiDiscrete([5, 8], start=[0, -2])
    cases.append((integers, spaces.Box(low, high, dtype=np.int64), labels))
    for spec, seen, acted in cases:
        env = Script((FIRST, None, None), spec=spec)
        env.action_spec = lambda spec=spec: spec
        with closing(corral.from_dm_env(lambda env=env: env, runner="serial")) as envs:
            assert envs.single_observation_space == seen
            assert envs.single_action_space == acted
    text = specs.StringArray(())
    envs = corral.from_dm_env(lambda: Script(spec=text), runner="serial")
    assert isinstance(envs.single_observation_space, spaces.Text)
    assert envs.single_observation_space.contains("Any letters, and no few! " * 99)


def test_a_space_that_goes_there_and_back_is_the_same_where_the_docs_say_so() -> None:
    for space in (
        spaces.Box(-np.inf, np.inf, (2,), np.float32),
        spaces.Box(-1, 2, (2, 3), np.float64),
        spaces.Box(0, 255, (2, 2, 3), np.uint8),
        spaces.Discrete(4),
        spaces.Discrete(4, start=2),
        spaces.Dict({"a": spaces.Tuple([spaces.Discrete(2), spaces.Box(0, 1, (), np.bool_)])}),
    ):

        def make(space: Any = space) -> Any:
            env = Mixed()
            env.observation_space = env.action_space = space
            return corral.to_dm_env(env)

        envs = corral.from_dm_env(make, runner="serial")
        assert envs.single_observation_space == space
        assert envs.single_action_space == space


IDENTITY: dict[str, tuple[str, dict[str, Any]]] = {
    "CartPole": ("CartPole-v1", {"max_episode_steps": 12}),
    "Maze": ("Maze-v0", {"max_episode_steps": 9, "size": 3, "loops": 50}),
    "Faulty": (FAULTY, {"max_episode_steps": 6}),
    "Nested": ("testing/Nested-v0", {"max_episode_steps": 6}),
    "Caller": ("testing/Caller-v0", {"max_episode_steps": 6}),
}


def _through_dm_env(id: str, how: dict[str, Any], seed: int | None) -> Any:
    return corral.to_dm_env(corral.make(id, seed=seed, **how))


@pytest.mark.parametrize("mode", ["next_step", "same_step"])
@pytest.mark.parametrize("runner", ["serial", "process"])
@pytest.mark.parametrize("name", IDENTITY)
def test_envs_that_go_through_dm_env_and_back_give_the_same_bytes(
    name: str, runner: str, mode: str
) -> None:
    id, how = IDENTITY[name]
    fn = functools.partial(_through_dm_env, id, how)
    options: dict[str, Any] = {"autoreset_mode": mode, "seed": 3}
    ours = corral.make_vec(id, 3, **how, **options)
    back = corral.from_dm_env(
        fn, 3, takes_seed=True, runner=runner, context="forkserver", **options
    )
    ours.action_space.seed(1)
    resets: list[dict[str, Any]] = [{}, {"seed": 8}, {"options": {"index": 4}}, {}]
    if name not in ("CartPole", "Faulty"):
        # An index is a level or a start there, and not a seed.
        del resets[2]
    for how_reset in resets:
        assert_same(back.reset(**how_reset)[0], ours.reset(**how_reset)[0], f"reset {how_reset}")
        for _ in range(30):
            actions = ours.action_space.sample()
            got, expected = back.step(actions), ours.step(actions)
            # A discount of 0 does not say that a time limit came at the same step.
            assert_same(got[:3], expected[:3])
            assert_same(got[3], expected[3] & ~expected[2])
            if "final_obs" in expected[4]:
                ends = expected[4]["_final_obs"]
                assert_same(got[4]["_final_obs"], ends)
                for row in np.flatnonzero(ends):
                    assert_same(got[4]["final_obs"][row], expected[4]["final_obs"][row])
    back.close()


@pytest.mark.parametrize("runner", ["serial", "thread", "process"])
def test_a_dm_env_that_knows_nothing_of_corral_is_a_source(runner: str) -> None:
    how: dict[str, Any] = {"context": "forkserver", "num_workers": 2} if runner == "process" else {}
    envs = corral.from_dm_env(Catch, 4, takes_seed=True, seed=20, runner=runner, **how)
    alone = [Catch(20 + env) for env in range(4)]
    assert envs.single_action_space.n == 3
    rng = np.random.default_rng(0)
    observations, infos = envs.reset()
    assert_same(observations, np.stack([one.reset().observation for one in alone]))
    assert_same(infos["discount"], np.ones(4))
    returns = 0.0
    for _ in range(60):
        actions = rng.integers(0, 3, 4)
        got = envs.step(actions)
        expected = [one.step(np.int32(action)) for one, action in zip(alone, actions)]
        assert_same(got[0], np.stack([one.observation for one in expected]))
        assert_same(got[1], np.array([one.reward or 0.0 for one in expected]))
        assert_same(got[2], np.array([one.last() for one in expected]))
        assert not got[3].any()
        discounts = [1.0 if one.discount is None else one.discount for one in expected]
        assert_same(got[4]["discount"], np.array(discounts))
        assert got[4]["_discount"].all()
        returns += float(got[1].sum())
    assert returns != 0
    envs.close()


@pytest.mark.parametrize("runner", ["serial", "process"])
def test_every_kind_of_spec_reaches_the_batch_and_every_kind_of_action_the_env(runner: str) -> None:
    how: dict[str, Any] = {"context": "forkserver"} if runner == "process" else {}
    envs = corral.from_dm_env(Kinds, 2, runner=runner, **how)
    seen, _ = envs.reset()
    action = {
        "move": np.array([-1, 1]),
        "turn": np.array([[0, -3], [4, 3]]),
        "words": ("left", "Ω"),
        "parts": (np.full((2, 2), 0.5, np.float32), np.array([0, 2])),
        "pair": (np.array([0, 255], np.uint8), np.array([True, False])),
    }
    reference = Kinds()
    expected = reference.reset()
    for _ in range(6):
        one = expected.observation
        for row in range(2):
            for name in ("free", "flag", "pixels"):
                assert_same(seen[name][row], one[name][()])
            # A label is an int64 where Gymnasium's Discrete has no dtype (1.2).
            assert_same(seen["level"][row], one["level"][()], numbers=True)
            assert seen["said"][row] == one["said"]
            assert type(seen["bytes"][row]) is bytes
            assert seen["bytes"][row] == one["bytes"]
            assert_same(seen["names"][row], one["names"])
            assert isinstance(seen["list"], tuple)
            assert_same(seen["list"][0][row], one["list"][0][()], numbers=True)
            assert_same(seen["list"][1]["inner"][row], one["list"][1]["inner"])
        seen, rewards, terminated, truncated, infos = envs.step(action)
        if expected.last():
            expected = reference.reset()
            assert rewards.tolist() == [0, 0]
            assert infos["discount"].tolist() == [1, 1]
        else:
            inner = [np.zeros(2, np.float32), np.int8(1)]
            expected = reference.step(
                {
                    "move": np.int32(0),
                    "turn": np.zeros(2, np.int32),
                    "words": "",
                    "parts": inner,
                    "pair": Pair(np.uint8(0), np.True_),
                }
            )
            assert rewards.tolist() == [expected.reward] * 2
            assert infos["discount"].tolist() == [expected.discount] * 2
        assert not terminated.any()
        assert truncated.tolist() == [expected.last()] * 2
    with pytest.raises(errors.InvalidActionError):
        envs.step({**action, "turn": np.array([[5, 0], [0, 0]])})
    played = envs.get_attr("actions")[1][0]
    assert played["words"] == "Ω"
    assert played["turn"].tolist() == [4, 3]
    assert played["parts"][1].dtype == np.int8
    envs.close()


def test_discounts_between_0_and_1_are_in_the_infos_and_only_0_terminates() -> None:
    steps = [(FIRST, None, None), (MID, 1.0, 0.9), (MID, 1.0, 0.0), (LAST, 1.0, 0.25)]
    envs = corral.from_dm_env(lambda: Script(*steps), runner="serial")
    envs.reset()
    told = [envs.step(np.zeros(1, np.int64)) for _ in range(4)]
    assert [float(one[4]["discount"][0]) for one in told] == [0.9, 0.0, 0.25, 1.0]
    assert [bool(one[2][0]) for one in told] == [False] * 4
    assert [bool(one[3][0]) for one in told] == [False, False, True, False]
    envs = corral.from_dm_env(lambda: Script(*steps), runner="serial", autoreset_mode="same_step")
    envs.reset()
    infos = [envs.step(np.zeros(1, np.int64))[4] for _ in range(3)][2]
    assert infos["discount"].tolist() == [1.0]
    assert infos["final_info"]["discount"].tolist() == [0.25]


def test_discounts_come_through_from_dm_env_and_back() -> None:
    steps = [(FIRST, None, None), (MID, 1.0, 0.9), (MID, 1.0, 0.0), (LAST, 1.0, 0.25)]
    env = corral.to_dm_env(corral.from_dm_env(lambda: Script(*steps), 2, runner="serial"))
    env.reset()
    told = [env.step(np.zeros(2, np.int64)) for _ in range(4)]
    assert [one.discount.tolist() for one in told] == [[d, d] for d in (0.9, 0.0, 0.25, 1.0)]
    assert [one.step_type.tolist() for one in told] == [[k, k] for k in (MID, MID, LAST, FIRST)]


@pytest.mark.parametrize(
    ("steps", "why"),
    [
        ([(MID, 1.0, 1.0)], "reset gave a step of type"),
        ([(FIRST, None, None), (FIRST, None, None)], "FIRST only after LAST"),
        ([(FIRST, None, None), (MID, None, 1.0)], "the reward is None"),
        ([(FIRST, None, None), (MID, [1.0, 2.0], 1.0)], "the reward is"),
        ([(FIRST, None, None), (MID, "much", 1.0)], "the reward is 'much'"),
        ([(FIRST, None, None), (LAST, 1.0, None)], "the discount is None"),
        ([(FIRST, None, None), (MID, 1.0, 1.5)], "the discount is 1.5"),
        ([(FIRST, None, None), (MID, 1.0, np.nan)], "the discount is nan"),
        ([(FIRST, None, None), (MID, np.nan, 1.0)], "the reward is NaN"),
    ],
)
def test_what_dm_env_does_not_allow_is_that_envs_failure(steps: Any, why: str) -> None:
    envs = corral.from_dm_env(lambda: Script(*steps), 2, runner="serial")

    def play() -> None:
        envs.reset()
        envs.step(np.zeros(2, np.int64))

    with pytest.raises((errors.ConformanceError, errors.EnvError), match=why) as caught:
        play()
    error = caught.value
    assert isinstance(error, errors.EnvError) or isinstance(error.__cause__, errors.EnvError)


def test_an_observation_that_is_not_nested_as_its_spec_is_an_error() -> None:
    one = specs.Array((), np.int64)
    cases = [({"a": one}, None), ([one], None), ({"a": one}, {"b": 1}), ([one, one], (1,))]
    for spec, seen in cases:
        make = functools.partial(Script, (FIRST, None, None), spec=spec, seen=seen)
        envs = corral.from_dm_env(make, runner="serial")
        with pytest.raises(errors.ConformanceError, match="the observation is"):
            envs.reset()


@pytest.mark.parametrize("spec", [specs.Array((2,), float), {"a": specs.Array((), float)}, 3.0])
def test_rewards_and_discounts_that_are_not_one_number_are_refused(spec: Any) -> None:
    for name in ("reward", "discount"):
        with pytest.raises(errors.SpaceError, match=rf"{name}_spec is .*: corral takes one number"):
            corral.from_dm_env(lambda name=name: Script(**{name: spec}), runner="serial")


def test_an_environment_whose_specs_are_refused_is_closed() -> None:
    catch = Catch()
    catch.observation_spec = lambda: "no spec"
    with pytest.raises(errors.SpaceError, match=r"observation_spec is 'no spec'"):
        corral.from_dm_env(lambda: catch, runner="serial")
    assert catch.closed == 1


def test_seeds_need_a_function_that_takes_them() -> None:
    with pytest.raises(errors.UnsupportedError, match="takes_seed=True"):
        corral.from_dm_env(Catch, 2, seed=1)
    with closing(corral.from_dm_env(Catch, 2, runner="serial")) as envs:
        for call in (envs.reset, envs.send_reset):
            with pytest.raises(errors.UnsupportedError, match="takes_seed=True"):
                call(seed=1)
            with pytest.raises(errors.UnsupportedError, match="no arguments"):
                call(options={"size": 1})
            with pytest.raises(errors.UnsupportedError, match="index"):
                call(options={"index": 1})
        # The same holds one level below.
        with pytest.raises(errors.UnsupportedError, match="takes_seed=True"):
            DmAsGymnasium(Catch, False).reset(seed=1)
        # Nothing has moved.
        envs.reset(seed=[None, None])
        envs.step(np.ones(2, np.int64))
        envs.reset(options={"reset_mask": np.array([True, False])})


def test_a_seed_makes_the_environment_anew_and_an_index_leaves_it_aside() -> None:
    made: list[Catch] = []

    def make(seed: int | None) -> Catch:
        made.append(Catch(seed))
        return made[-1]

    envs = corral.from_dm_env(make, runner="serial", takes_seed=True, seed=4)
    own = Catch(4)
    assert_same(envs.reset()[0][0], own.reset().observation)
    assert [one.seed for one in made] == [None, 4]
    assert_same(envs.reset(options={"index": 9})[0][0], Catch(9).reset().observation)
    assert_same(envs.reset(options={"index": 10})[0][0], Catch(10).reset().observation)
    assert_same(envs.reset()[0][0], own.reset().observation)
    assert_same(envs.reset(options={"index": 9})[0][0], Catch(9).reset().observation)
    assert_same(envs.reset(seed=6)[0][0], Catch(6).reset().observation)
    assert made[1].closed == 0
    envs.reset(options={"index": 9})
    assert made[1].closed == 1
    envs.reset()
    envs.reset(seed=8)
    assert [one.closed for one in made[:-1]] == [1] * (len(made) - 1)
    envs.close()
    assert [one.closed for one in made] == [1] * len(made)


def test_the_environments_own_methods_and_attributes_are_called_by_name() -> None:
    with closing(corral.from_dm_env(Catch, 2, runner="serial")) as envs:
        envs.reset()
        envs.set_attr("volume", [1, 2])
        assert envs.get_attr("volume") == (1, 2)
        assert envs.call("shout", "a") == ("A", "AA")
        with pytest.raises(AttributeError):
            envs.get_attr("nothing")


def test_one_environment_cannot_be_two_envs() -> None:
    catch = Catch()
    with pytest.raises(errors.CorralError, match="envs 0 and 1 are the same object"):
        corral.from_dm_env(lambda: catch, 2, runner="serial")


def test_other_makers_options_hold_here() -> None:
    envs = corral.from_dm_env(
        [Catch, Catch], runner="serial", max_episode_steps=2, episode_statistics=True, frame_stack=2
    )
    assert envs.single_observation_space.shape == (2, 6, 4)
    envs.reset()
    envs.step(np.ones(2, np.int64))
    truncated, infos = envs.step(np.ones(2, np.int64))[3:]
    assert truncated.all()
    assert infos["episode"]["l"].tolist() == [2, 2]


def test_a_batch_of_dm_envs_is_a_dm_env_again() -> None:
    env = corral.to_dm_env(corral.from_dm_env(Catch, 3, takes_seed=True, seed=2, runner="serial"))
    alone = [Catch(2 + k) for k in range(3)]
    for _ in range(20):
        together = env.step(np.ones(3, np.int64))
        for row, one in enumerate(alone):
            ours, theirs = rows(together, row), one.step(np.int32(1))
            assert ours[:3] == theirs[:3]
            assert_same(ours.observation, theirs.observation)


def test_what_is_no_env_is_an_error() -> None:
    for wrong in ("CartPole-v1", corral.make, gymnasium.make_vec("CartPole-v1", 2), Catch()):
        with pytest.raises(errors.ArgumentTypeError, match=r"env is a corral.VectorEnv"):
            corral.to_dm_env(wrong)  # type: ignore[call-overload]
    for wrong in ("CartPole-v1", Catch(), 3, [Catch, 3]):
        with pytest.raises(errors.ArgumentTypeError, match="fn is a function"):
            corral.from_dm_env(wrong, runner="serial")  # type: ignore[arg-type]
    with pytest.raises(errors.ArgumentTypeError, match=r"no dm_env.Environment: it has no"):
        corral.from_dm_env(Mixed, runner="serial")
    with pytest.raises(errors.ArgumentTypeError, match="takes_seed is a bool"):
        corral.from_dm_env(Catch, takes_seed=1)  # type: ignore[arg-type]
    with pytest.raises(errors.UnknownOptionError, match="did you mean 'num_workers'"):
        corral.from_dm_env(Catch, num_worker=1)  # type: ignore[call-arg]


class Breaks(Catch):
    """Raises at action 2."""

    def step(self, action: Any) -> Any:
        if action == 2:
            raise RuntimeError("asked for")
        return super().step(action)


@pytest.mark.parametrize("runner", ["serial", "process"])
def test_what_an_environment_raises_is_raised_and_a_reset_makes_it_anew(runner: str) -> None:
    how: dict[str, Any] = {"runner": runner, "context": "forkserver"}
    with closing(corral.from_dm_env(Breaks, 2, **how)) as envs:
        envs.reset()
        for _ in range(2):
            with pytest.raises(RuntimeError, match="asked for") as caught:
                envs.step(np.array([1, 2]))
            assert isinstance(caught.value.__cause__, errors.EnvError)
            envs.reset()
    with closing(corral.from_dm_env(Breaks, 2, on_failure="restart", **how)) as envs:
        envs.reset()
        truncated, infos = envs.step(np.array([1, 2]))[3:]
        assert truncated.tolist() == [False, True]
        assert infos["_discount"].tolist() == [True, False]
        assert envs.step(np.array([1, 2]))[4]["discount"].tolist() == [1, 1]


def test_without_dm_env_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "dm_env", None)
    for name in ("dm_env", "dm_env_specs"):
        monkeypatch.delitem(sys.modules, f"corral.adapters.{name}", raising=False)
        monkeypatch.delattr(adapters, name, raising=False)
    for call in (
        lambda: corral.to_dm_env(corral.make("CartPole-v1")),
        lambda: corral.from_dm_env(Catch, 2),
    ):
        with pytest.raises(ImportError, match="pip install dm-env"):
            call()
