"""What `test_gym3.py` runs where gym3 is installed."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

# gym3's testing envs use this name, which NumPy lacked from 1.24 to 1.26.
np.bool = np.bool_  # type: ignore[misc]

import gym3  # noqa: E402
from gym3 import libenv, types_np  # noqa: E402
from gym3.testing import (  # noqa: E402
    AssertSpacesWrapper,
    FixedSequenceEnv,
    IdentityEnv,
    TimingEnv,
)
from gym3.types import DictType, Discrete, Real, TensorType  # noqa: E402
from gymnasium import spaces  # noqa: E402

import corral  # noqa: E402
from corral import errors  # noqa: E402
from corral.adapters.gym3 import Batch  # noqa: E402
from corral.adapters.gym3_types import of_space, space_of  # noqa: E402
from tests.support import assert_same, sampled  # noqa: E402

N = 4
INCLUDE = Path(corral.__file__).parent / "include"
CASES = {
    "CartPole": ("CartPole-v1", {}),
    "CartPole of 15 steps": ("CartPole-v1", {"max_episode_steps": 15}),
    "Maze": ("Maze-v0", {"max_episode_steps": 20, "size": 3, "loops": 50}),
    "Faulty": ("testing/Faulty-v0", {"max_episode_steps": 6}),
}
every_case = pytest.mark.parametrize("case", CASES)


def make(case: str, n: int = N, **more: Any) -> corral.VectorEnv:
    id, settings = CASES[case]
    return corral.make_vec(id, n, autoreset_mode="same_step", **{"seed": 7, **settings, **more})


def as_gym3(case: str, values: Any, of: str) -> Any:
    """By hand: what corral shows or takes, as gym3 has it."""
    if case != "Faulty":
        return values
    if of == "action":
        return {"force": values["force"], "gear": values["gear"] - 1}
    body = values["body"]
    return {
        "level": values["level"],
        "body": {"joints": body["joints"], "awake": body["awake"].astype(np.uint8)},
        "count": values["count"].astype(np.float64),
    }


@every_case
def test_a_run_is_corrals_own(case: str) -> None:
    theirs = make(case, episode_statistics=True)
    env = corral.to_gym3(make(case, episode_statistics=True))
    assert isinstance(env, gym3.Env)
    mine = AssertSpacesWrapper(env)
    observations, _ = theirs.reset()
    reward, ob, first = mine.observe()
    assert_same(ob, as_gym3(case, observations, "observation"))
    assert_same(reward, np.zeros(N, np.float32))
    assert_same(first, np.ones(N, np.bool_))
    ends = 0
    for actions, _ in zip(sampled(theirs, 1), range(80)):
        mine.act(as_gym3(case, actions, "action"))
        observations, rewards, terminations, truncations, infos = theirs.step(actions)
        reward, ob, first = mine.observe()
        assert_same(ob, as_gym3(case, observations, "observation"))
        assert_same(reward, rewards.astype(np.float32))
        assert_same(first, terminations | truncations)
        for k, info in enumerate(mine.get_info()):
            assert (info["terminated"], info["truncated"]) == (terminations[k], truncations[k])
            assert ("final_obs" in info) == bool(first[k])
            if not first[k]:
                continue
            ends += 1
            final = copy.deepcopy(infos["final_obs"][k])
            if case == "Faulty":
                final["body"]["awake"] = final["body"]["awake"].astype(np.uint8)
                final["count"] = np.asarray(final["count"], np.float64)
            assert_same(info["final_obs"], final)
            assert info["episode"]["r"] == infos["episode"]["r"][k]
            assert info["episode"]["l"] == infos["episode"]["l"][k]
            assert info["final_info"].keys() == {
                name
                for name in infos["final_info"]
                if infos["final_info"].get(f"_{name}", [0] * N)[k]
            }
    assert ends >= 8


def test_spaces_become_types_and_values_the_types_own() -> None:
    # Space, type, what the env shows or takes, what gym3 shows or takes.
    table: list[tuple[Any, Any, Any, Any]] = [
        (spaces.Discrete(3), TensorType(Discrete(3), ()), 2, np.int64(2)),
        (spaces.Discrete(3, start=-1), TensorType(Discrete(3), ()), -1, np.int64(0)),
        (
            spaces.MultiDiscrete([4, 4], start=np.array([1, 5])),
            TensorType(Discrete(4), (2,)),
            [1, 8],
            np.array([0, 3]),
        ),
        (spaces.MultiBinary(2), TensorType(Discrete(2, "int8"), (2,)), [0, 1], np.int8([0, 1])),
        (spaces.Box(0, 1, (2,), np.bool_), TensorType(Discrete(2, "uint8"), (2,)), [0, 1], [0, 1]),
        (
            spaces.Box(0, 255, (2,), np.uint8),
            TensorType(Discrete(256, "uint8"), (2,)),
            [0, 9],
            None,
        ),
        (spaces.Box(0, 9, (2,), np.int16), TensorType(Discrete(10, "int16"), (2,)), [0, 9], None),
        (spaces.Box(-3, 9, (2,), np.int16), TensorType(Real("float32"), (2,)), [-3, 9], None),
        (
            spaces.Box(-(2**31), 2**31 - 1, (1,), np.int32),
            TensorType(Real("float64"), (1,)),
            [2**31 - 1],
            None,
        ),
        (spaces.Box(-1, 1, (1,), np.float32), TensorType(Real("float32"), (1,)), [0.5], None),
        (spaces.Box(-1, 1, (1,), np.float64), TensorType(Real("float64"), (1,)), [0.1], None),
        (spaces.Box(-1, 1, (1,), np.float16), TensorType(Real("float32"), (1,)), [0.5], None),
    ]
    for space, type_, shown, given in table:
        node = of_space(space, "it")
        assert node.type == type_, space
        dtype = np.bool_ if isinstance(space, spaces.MultiBinary) else space.dtype
        native = np.asarray(shown, dtype)
        theirs = np.asarray(shown if given is None else given, type_.eltype.dtype_name)
        assert_same(node.to_gym3(native), theirs, str(space))
        assert_same(node.to_corral(theirs), native, str(space))
    nested = spaces.Dict({"b": spaces.Dict({"c": spaces.Discrete(2)}), "a": spaces.Discrete(5)})
    assert of_space(nested, "it").type == DictType(
        b=DictType(c=TensorType(Discrete(2), ())), a=TensorType(Discrete(5), ())
    )


@pytest.mark.parametrize(
    ("space", "why"),
    [
        (spaces.Tuple([spaces.Discrete(2)]), "the action is a Tuple"),
        (spaces.Dict({"say": spaces.Text(3)}), "the action, 'say', is a Text"),
        (spaces.MultiDiscrete([2, 3]), r"labels \[2, 3\]|of \[2, 3\] labels"),
        (spaces.Box(-(2**60), 2**60, (1,), np.int64), "floats, which do not hold all"),
    ],
)
def test_what_gym3_has_no_type_for_is_refused_by_name(space: Any, why: str) -> None:
    with pytest.raises(errors.UnsupportedError, match=why):
        of_space(space, "the action", is_action=True)


def test_elements_of_an_observation_may_have_different_numbers_of_labels() -> None:
    node = of_space(spaces.MultiDiscrete([2, 3]), "the observation")
    assert node.type == TensorType(Discrete(3), (2,))


def test_types_become_spaces() -> None:
    table: list[tuple[Any, Any]] = [
        (TensorType(Real(), (2, 3)), spaces.Box(-np.inf, np.inf, (2, 3), np.float32)),
        (TensorType(Real("float64"), ()), spaces.Box(-np.inf, np.inf, (), np.float64)),
        (TensorType(Discrete(3), ()), spaces.Discrete(3)),
        (TensorType(Discrete(3, "uint8"), ()), spaces.Discrete(3, dtype=np.uint8)),
        (TensorType(Discrete(256, "uint8"), (2,)), spaces.Box(0, 255, (2,), np.uint8)),
        (TensorType(Discrete(257, "uint8"), (2,)), spaces.Box(0, 255, (2,), np.uint8)),
        (TensorType(Discrete(3, "int32"), (2,)), spaces.MultiDiscrete([3, 3], dtype=np.int32)),
        (TensorType(Discrete(2**63), (1,)), spaces.Box(0, 2**63 - 1, (1,), np.int64)),
        (
            DictType(b=DictType(c=TensorType(Real(), ())), a=TensorType(Discrete(2), ())),
            spaces.Dict(
                [
                    ("b", spaces.Dict({"c": spaces.Box(-np.inf, np.inf, (), np.float32)})),
                    ("a", spaces.Discrete(2)),
                ]
            ),
        ),
    ]
    for type_, space in table:
        assert space_of(type_, "ob_space") == space, type_
        assert space_of(type_, "ob_space").dtype == space.dtype
    with pytest.raises(errors.SpaceError, match=r"ob_space\['a'\] is 3"):
        space_of(DictType(a=3), "ob_space")


@every_case
def test_observe_changes_nothing_and_its_arrays_are_the_callers(case: str) -> None:
    env, twin = corral.to_gym3(make(case)), corral.to_gym3(make(case))
    for actions, _ in zip(sampled(make(case), 2), range(10)):
        for one in (env, twin):
            one.act(as_gym3(case, actions, "action"))
        right = copy.deepcopy(twin.observe())
        for _ in range(3):
            seen = env.observe()
            assert_same(seen, right)
            seen[0][:] = -1
            seen[2][:] = True
            np.asarray(seen[1]["level"] if case == "Faulty" else seen[1])[:] = 0
            env.get_info()[0].clear()
        assert "terminated" in env.get_info()[0]


def test_acting_twice_without_observing_plays_both() -> None:
    env, twin = corral.to_gym3(make("CartPole")), corral.to_gym3(make("CartPole"))
    for _ in range(2):
        env.act(np.ones(N, np.int64))
        twin.act(np.ones(N, np.int64))
        twin.observe()
    assert_same(env.observe(), twin.observe())


def test_envs_in_the_background_play_between_act_and_observe() -> None:
    env = corral.to_gym3(make("CartPole of 15 steps", timeout=20, num_threads=2))
    twin = corral.to_gym3(make("CartPole of 15 steps"))
    for _ in range(40):
        for one in (env, twin):
            one.act(np.ones(N, np.int64))
        assert_same(env.observe(), twin.observe())


def test_a_bad_action_moves_nothing() -> None:
    env = corral.to_gym3(make("Faulty"))
    before = env.observe()
    force = np.zeros((N, 2), np.float32)
    for gear in (np.full(N, 3), np.full(N, -1), np.full(N, 0.5), np.zeros(2, np.int64)):
        with pytest.raises(errors.InvalidActionError, match="gear"):
            env.act({"force": force, "gear": gear})
    with pytest.raises(errors.InvalidActionError, match="dict"):
        env.act(force)
    with pytest.raises(errors.InvalidActionError, match="jump"):
        env.act({"force": force, "gear": np.zeros(N, np.int64), "jump": force})
    assert_same(env.observe(), before)
    env.act({"force": force, "gear": np.zeros(N, np.int32)})
    env.observe()


def test_another_autoreset_mode_is_refused_with_what_to_do() -> None:
    with pytest.raises(errors.UnsupportedError, match='autoreset_mode="same_step"'):
        corral.to_gym3(corral.make_vec("CartPole-v1", 2))


def test_gym3_takes_envs_apart_and_puts_them_together() -> None:
    whole = gym3.ConcatEnv(
        [corral.to_gym3(make("Faulty", 1, seed=3)), corral.to_gym3(make("Faulty", 3, seed=4))]
    )
    right = corral.to_gym3(make("Faulty", 4, seed=3))
    level = gym3.ExtractDictObWrapper(whole, "level")
    assert level.ob_space == TensorType(Real(), ())
    rng = np.random.RandomState(0)
    for _ in range(20):
        actions = types_np.sample(whole.ac_space, (4,), rng)
        level.act(actions)
        right.act(actions)
        assert_same(whole.observe(), (*right.observe(),))
        assert_same(level.observe()[1], right.observe()[1]["level"])
        assert [info["left"] for info in whole.get_info()] == [
            info["left"] for info in right.get_info()
        ]


def test_gym3_records_trajectories(tmp_path: Path) -> None:
    env = gym3.TrajectoryRecorderWrapper(corral.to_gym3(make("Faulty", 2)), str(tmp_path))
    right = corral.to_gym3(make("Faulty", 2))
    rng = np.random.RandomState(0)
    rewards: list[list[Any]] = [[], []]
    whole = []
    for _ in range(25):
        actions = types_np.sample(env.ac_space, (2,), rng)
        env.act(actions)
        right.act(actions)
        reward, _, first = right.observe()
        for k in range(2):
            rewards[k].append(reward[k])
            if first[k]:
                whole.append(rewards[k])
                rewards[k] = []
    files = sorted(tmp_path.iterdir())
    assert len(files) == len(whole) > 4
    for file, told in zip(files, whole):
        trajectory = pickle.loads(file.read_bytes())
        assert_same(trajectory["reward"], np.array(told))
        assert trajectory["ob"]["body"]["awake"].dtype == np.uint8
        assert len(trajectory["info"]) == len(told) == len(trajectory["act"]["gear"])


def test_gym3_films_envs_that_draw(tmp_path: Path) -> None:
    drawn = corral.to_gym3(make("CartPole of 15 steps", 2, render_mode="rgb_array"))
    frame = drawn.get_info()[1]["rgb"]
    assert frame.dtype == np.uint8
    assert frame.ndim == 3
    env = gym3.VideoRecorderWrapper(drawn, str(tmp_path), env_index=1, info_key="rgb")
    for _ in range(12):
        env.act(np.ones(2, np.int64))
    assert (tmp_path / "00000.mp4").stat().st_size > 1000


def test_gym3s_threads_and_processes_host_it() -> None:
    right = corral.to_gym3(make("Maze", 2))
    threaded = gym3.AsynchronousWrapper(corral.to_gym3(make("Maze", 2)))
    apart = gym3.SubprocEnv(made_apart)
    assert apart.ob_space == right.ob_space
    rng = np.random.RandomState(0)
    for _ in range(30):
        actions = types_np.sample(right.ac_space, (2,), rng)
        for env in (right, threaded, apart):
            env.act(actions)
        assert_same(threaded.observe(), right.observe())
        assert_same(apart.observe(), right.observe())
    apart.close()


def made_apart() -> Any:
    return corral.to_gym3(make("Maze", 2))


class OldGym:
    """Gymnasium's CartPole with the face that gym had when gym3 was written."""

    def __init__(self) -> None:
        self.env = gymnasium.make("CartPole-v1")
        self.observation_space, self.action_space = self.env.observation_space, spaces.Discrete(2)

    def seed(self, seed: int | None) -> None:
        self.begin = seed

    def reset(self) -> Any:
        begin, self.begin = self.begin, None
        return self.env.reset(seed=begin)[0]

    def step(self, action: Any) -> Any:
        ob, reward, terminated, truncated, info = self.env.step(action)
        return ob, reward, terminated or truncated, info


def test_a_run_is_that_of_gym3s_own_vectors_of_gyms_envs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gym", gymnasium)
    theirs = gym3.vectorize_gym(num=N, env_fn=OldGym, use_subproc=False, seed=7)
    mine = corral.to_gym3(make("CartPole"))
    mine.reset(seed=[7] * N)
    assert mine.ob_space == theirs.ob_space
    assert mine.ac_space == theirs.ac_space
    rng, ends = np.random.RandomState(0), 0
    for _ in range(200):
        actions = types_np.sample(mine.ac_space, (N,), rng)
        mine.act(actions)
        theirs.act(actions)
        got, right = mine.observe(), theirs.observe()
        # Below 2, NumPy computes Gymnasium's float32 another way.
        np.testing.assert_allclose(got[1], right[1], rtol=1e-4, atol=1e-5)
        assert_same(got[0], right[0])
        assert_same(got[2], right[2])
        ends += int(got[2].sum())
    assert ends > 20


def test_gym3_hands_it_on_to_baselines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gym", gymnasium)
    right = corral.to_gym3(make("Maze", 2))
    env = gym3.ToBaselinesVecEnv(corral.to_gym3(make("Maze", 2)))
    assert_same(env.reset(), right.observe()[1])
    ob, reward, first, infos = env.step(np.array([1, 2]))
    right.act(np.array([1, 2]))
    assert_same((reward, ob, first), right.observe())
    assert infos[0]["truncated"] is False


def test_methods_are_called_with_an_argument_for_each_env() -> None:
    class Painted(gymnasium.Env):  # type: ignore[type-arg]
        observation_space = spaces.Box(0, 1, (1,), np.float32)
        action_space = spaces.Discrete(2)

        def reset(self, *, seed: Any = None, options: Any = None) -> Any:
            return np.zeros(1, np.float32), {}

        def step(self, action: Any) -> Any:
            return np.zeros(1, np.float32), 1.0, False, False, {}

        def paint(self, color: int, twice: bool = False) -> int:
            return color * (2 if twice else 1)

    def one(n: int) -> Any:
        envs = corral.from_gymnasium(Painted, n, autoreset_mode="same_step", runner="serial")
        return corral.to_gym3(envs)

    env = gym3.ConcatEnv([one(2), one(1)])
    assert env.callmethod("paint", [3, 4, 5], twice=[True, False, True]) == [6, 4, 10]
    with pytest.raises(errors.ArgumentError, match="given 1 values for 2 envs"):
        one(2).callmethod("paint", [1])
    with pytest.raises(AttributeError):
        one(2).callmethod("no_such_thing")
    assert gym3.ConcatEnv([one(2), one(1)]).callmethod("reset") == [None] * 3
    for private in ("_settle", "__init__", "_no_such_thing"):
        with pytest.raises(errors.ArgumentError, match=f"{private} is private"):
            one(2).callmethod(private)
    # No methods of this class: the envs have none of these names either.
    for attribute in ("num", "envs", "ob_space"):
        with pytest.raises(AttributeError, match=attribute):
            one(2).callmethod(attribute)
    with pytest.raises(errors.UnsupportedError, match="call"):
        corral.to_gym3(make("CartPole")).callmethod("paint", [1] * N)


@pytest.mark.parametrize("fault", ["panic_in_step", "error_in_step"])
def test_a_failing_env_is_an_error_until_it_is_reset(fault: str) -> None:
    env = corral.to_gym3(make("Faulty", fault=fault, at_step=2))
    still = types_np.zeros(env.ac_space, (N,))
    for _ in range(2):
        env.act(still)
        env.observe()
    env.act(still)
    with pytest.raises(errors.EnvError):
        env.observe()
    for call in (env.observe, env.get_info, lambda: env.act(still)):
        with pytest.raises(errors.ResetNeededError, match=r"reset\(\)") as raised:
            call()
        assert isinstance(raised.value.__cause__, errors.EnvError)
    env.reset()
    assert env.observe()[2].all()
    env.act(still)
    env.observe()


def test_a_restarted_env_begins_a_new_episode() -> None:
    env = corral.to_gym3(make("Faulty", fault="error_in_step", at_step=2, on_failure="restart"))
    still = types_np.zeros(env.ac_space, (N,))
    firsts = []
    for _ in range(3):
        env.act(still)
        firsts.append(env.observe()[2].tolist())
    assert firsts == [[False] * N, [False] * N, [True] * N]
    assert env.get_info()[0]["truncated"] is True
    assert isinstance(env.get_info()[0]["failed"], errors.SlotFailure)


def test_closing_it_closes_the_envs() -> None:
    env = corral.to_gym3(make("CartPole"))
    env.close()
    env.close()
    assert env.envs.closed
    for call in (
        env.observe,
        env.get_info,
        env.reset,
        lambda: env.act(np.zeros(N, np.int64)),
        lambda: env.callmethod("paint", [1] * N),
        lambda: env.callmethod("observe"),
    ):
        with pytest.raises(errors.ClosedError):
            call()


def test_closing_with_an_act_in_flight_or_failed_leaves_nothing_to_observe() -> None:
    flying = corral.to_gym3(make("CartPole"))
    flying.act(np.zeros(N, np.int64))
    failed = corral.to_gym3(make("Faulty", fault="error_in_step", at_step=0))
    failed.act(types_np.zeros(failed.ac_space, (N,)))
    with pytest.raises(errors.EnvError):
        failed.observe()
    for env in (flying, failed):
        env.close()
        with pytest.raises(errors.ClosedError):
            env.observe()


def test_envs_that_were_closed_underneath_show_nothing_either() -> None:
    env = corral.to_gym3(make("CartPole"))
    env.envs.close()
    with pytest.raises(errors.ClosedError):
        env.observe()


@every_case
def test_there_and_back_again_every_byte_is_the_same(case: str) -> None:
    theirs = make(case, episode_statistics=True)
    mine = corral.from_gym3(corral.to_gym3(make(case, episode_statistics=True)))
    assert mine.num_envs == N
    assert mine.metadata["autoreset_mode"] == theirs.metadata["autoreset_mode"]
    observations, _ = theirs.reset()
    assert_same(mine.reset()[0], as_gym3(case, observations, "observation"))
    ends = np.zeros(2, int)
    for actions, _ in zip(sampled(theirs, 1), range(80)):
        got = mine.step(as_gym3(case, actions, "action"))
        right = theirs.step(actions)
        assert_same(got[0], as_gym3(case, right[0], "observation"))
        assert_same(got[1], right[1].astype(np.float32).astype(np.float64))
        assert_same(got[2], right[2])
        assert_same(got[3], right[3])
        ends += (int(right[2].sum()), int(right[3].sum()))
        assert ("final_obs" in got[4]) == ("final_obs" in right[4])
        if "final_obs" in right[4]:
            assert_same(got[4]["_final_obs"], right[4]["_final_obs"])
            assert_same(got[4]["episode"]["r"], right[4]["episode"]["r"])
            if case != "Faulty":
                assert_same(got[4]["final_obs"], right[4]["final_obs"])
        for key in ("left", "distance"):
            if key in right[4]:
                assert_same(got[4][key], right[4][key].astype(np.int64))
        assert not {"terminated", "truncated"} & got[4].keys()
    assert ends.sum() > 8
    assert case != "CartPole of 15 steps" or ends.all()


def gym3s_own() -> list[Any]:
    image = TensorType(Discrete(256, "uint8"), (3, 2))
    both = DictType(b=TensorType(Discrete(5, "int32"), (2,)), a=DictType(c=TensorType(Real(), ())))
    return [
        FixedSequenceEnv(num=3, episode_len=7),
        TimingEnv(num=2, episode_len=5),
        TimingEnv(ob_space=both, ac_space=both, num=2, episode_len=5),
        IdentityEnv(episode_len=4),
        IdentityEnv(space=image, episode_len=3),
        AssertSpacesWrapper(FixedSequenceEnv(num=2, n_actions=3)),
        gym3.ConcatEnv([IdentityEnv(seed=1, episode_len=3), IdentityEnv(seed=2, episode_len=5)]),
    ]


@pytest.mark.parametrize("k", range(len(gym3s_own())))
def test_gym3s_own_envs_play_as_they_do_by_themselves(k: int) -> None:
    theirs, envs = gym3s_own()[k], corral.from_gym3(gym3s_own()[k])
    assert isinstance(envs, gymnasium.vector.VectorEnv)
    assert_same(envs.reset()[0], copy.deepcopy(theirs.observe()[1]))
    rng = np.random.RandomState(0)
    kept = []
    for _ in range(30):
        actions = types_np.sample(theirs.ac_space, (theirs.num,), rng)
        theirs.act(actions)
        reward, ob, first = copy.deepcopy(theirs.observe())
        got = envs.step(actions)
        assert got[0] in envs.observation_space
        assert_same(got[0], ob)
        assert_same(got[1], np.asarray(reward, np.float64))
        assert_same(got[2], first)
        assert not got[3].any()
        kept.append((got[0], ob))
    for seen, right in kept:
        assert_same(seen, right, "an array that was kept has changed")
    envs.close()


def test_the_right_sequence_is_rewarded_and_statistics_add_it_up() -> None:
    env = FixedSequenceEnv(num=2, episode_len=6)
    sequence = env.sequence
    envs = corral.from_gym3(env, episode_statistics=True)
    envs.reset()
    told = []
    for step in range(12):
        # The reward is for the action that the sequence has at the next place.
        right = sequence[(step + 1) % 6]
        infos = envs.step(np.array([right, right + 1]) % 10)[4]
        if "episode" in infos:
            told.append((infos["episode"]["r"].tolist(), infos["episode"]["l"].tolist()))
    assert told == [([6.0, 0.0], [6, 6])] * 2


class Choosy(FixedSequenceEnv):
    """Fails as it is told to."""

    def act(self, ac: Any) -> None:
        super().act(ac)
        if ac[0] == 9:
            raise ZeroDivisionError("nine is not to be taken")
        if ac[0] == 8:
            raise KeyboardInterrupt

    def observe(self) -> Any:
        reward, ob, first = super().observe()
        wrong = {7: ob[:1], 6: ob + 0.5, 5: np.array(["a", "b"])}
        return reward[: 1 if self.actions[0] == 4 else None], wrong.get(self.actions[0], ob), first

    def get_info(self) -> Any:
        return [{}] if self.actions[0] == 3 else [{"a": 1}, "b" if self.actions[0] == 2 else {}]


@pytest.mark.parametrize(
    ("action", "kind", "why"),
    [
        (9, ZeroDivisionError, "nine is not to be taken"),
        (8, KeyboardInterrupt, None),
        (7, errors.EnvError, r"shape \(1,\) where \(2,\) belongs"),
        (6, errors.EnvError, "dtype float64 where int64 belongs"),
        (5, errors.EnvError, "dtype <U1 where int64 belongs"),
        (4, errors.EnvError, r"rewards have shape \(1,\)"),
        (3, errors.ConformanceError, "list of one dict for each of 2 envs"),
        (2, Exception, "argument|dict"),
    ],
)
def test_what_a_gym3_env_raises_is_raised_here(action: int, kind: Any, why: str | None) -> None:
    envs = corral.from_gym3(Choosy(num=2))
    envs.reset()
    _, _, _, _, infos = envs.step(np.array([0, 1]))
    assert infos["a"].tolist() == [1, 0]
    with pytest.raises(kind, match=why) as raised:
        envs.step(np.array([action, 1]))
    error: Any = raised.value
    failed = error if isinstance(error, errors.EnvError) else error.__cause__
    assert isinstance(failed, errors.EnvError)
    assert [failure.slot for failure in failed.failures] == [0, 1]
    with pytest.raises(errors.ResetNeededError, match="cannot reset it"):
        envs.step(np.array([0, 1]))
    envs.close()
    # Others are none the worse for it.
    others = corral.from_gym3(Choosy(num=2))
    others.reset()
    others.step(np.array([0, 1]))


def test_what_gym3_cannot_do_is_refused() -> None:
    envs = corral.from_gym3(FixedSequenceEnv(num=2))
    with pytest.raises(errors.UnsupportedError, match="be seeded"):
        envs.reset(seed=1)
    with pytest.raises(errors.UnsupportedError, match="index"):
        envs.reset(options={"index": 1})
    with pytest.raises(errors.UnsupportedError, match="options"):
        envs.reset(options={"size": 1})
    with pytest.raises(errors.ResetNeededError):
        envs.step(np.zeros(2, np.int64))
    envs.reset()
    with pytest.raises(errors.UnsupportedError, match="be reset a second time"):
        envs.reset()
    with pytest.raises(errors.UnsupportedError, match="reset some envs and leave others"):
        envs.reset(options={"reset_mask": np.array([True, False])})
    with pytest.raises(errors.UnsupportedError):
        envs.save_state()
    with pytest.raises(errors.UnsupportedError):
        envs.call("sequence")
    with pytest.raises(errors.ArgumentTypeError, match="no gym3 env: it has no observe"):
        corral.from_gym3(object())
    envs.step(np.zeros(2, np.int64))


def test_an_env_with_a_reset_can_be_reset() -> None:
    envs = corral.from_gym3(corral.to_gym3(make("CartPole")))
    right = make("CartPole")
    for _ in range(3):
        assert_same(envs.reset()[0], right.reset()[0])
        assert_same(envs.step(np.ones(N, np.int64))[0], right.step(np.ones(N, np.int64))[0])
    with pytest.raises(errors.UnsupportedError, match="reset some envs and leave others"):
        envs.reset(options={"reset_mask": np.arange(N) > 0})


def test_a_first_observation_that_fails_is_not_yet_a_beginning() -> None:
    class Late(FixedSequenceEnv):
        tries = 0

        def observe(self) -> Any:
            self.tries += 1
            if self.tries == 1:
                raise LookupError("no level yet")
            return super().observe()

    batch = Batch(Late(num=2))
    with pytest.raises(LookupError):
        batch.reset()
    # It has no reset to call.
    assert batch.reset()[0].tolist() == FixedSequenceEnv(num=2).observe()[1].tolist()


def test_what_a_gym3_env_first_shows_amiss_is_told_of_all() -> None:
    class Amiss(FixedSequenceEnv):
        def observe(self) -> Any:
            reward, ob, first = super().observe()
            return reward, ob[:1], first

    with pytest.raises(errors.EnvError, match=r"shape \(1,\) where \(2,\) belongs") as raised:
        corral.from_gym3(Amiss(num=2)).reset()
    assert [failure.slot for failure in raised.value.failures] == [0, 1]


def test_actions_come_in_the_dtype_that_the_env_names() -> None:
    came: list[Any] = []

    class Recording(TimingEnv):
        def act(self, ac: Any) -> None:
            came.append(ac["go"].dtype)
            super().act(ac)

    env = Recording(ac_space=DictType(go=TensorType(Discrete(3, "int32"), ())), num=2)
    # Older Gymnasiums' Discrete is always int64.
    Batch(AssertSpacesWrapper(env)).step({"go": np.zeros(2, np.int64)})
    assert came == [np.dtype(np.int32)]


def test_closing_the_vec_env_closes_the_gym3_env_once() -> None:
    closed = []

    class Closing(FixedSequenceEnv):
        def close(self) -> None:
            closed.append(1)

    envs = corral.from_gym3(Closing(num=2))
    envs.reset()
    envs.close()
    envs.close()
    del envs
    assert closed == [1]


# Counts up by its action to 5; env 1 begins at 1. Leaves of every dtype.
LIBRARY = r"""
#include "libenv.h"
#include <string.h>
struct env { int num; struct libenv_buffers bufs; int at[8]; float rew[8]; uint8_t first[8]; };
static struct libenv_tensortype leaf(const char *name, enum libenv_scalar_type kind,
                                     enum libenv_dtype dtype, int shape, int high) {
    struct libenv_tensortype type;
    memset(&type, 0, sizeof type);
    strcpy(type.name, name);
    type.scalar_type = kind;
    type.dtype = dtype;
    if (shape) { type.ndim = 1; type.shape[0] = shape; }
    if (dtype == LIBENV_DTYPE_UINT8) type.high.uint8 = (uint8_t)high;
    else if (dtype == LIBENV_DTYPE_INT32) type.high.int32 = high;
    else type.high.float32 = (float)high;
    return type;
}
int libenv_version(void) { return LIBENV_VERSION; }
libenv_env *libenv_make(int num, const struct libenv_options options) {
    struct env *env = calloc(1, sizeof *env);
    (void)options;
    env->num = num;
    for (int k = 0; k < num; k++) { env->at[k] = k % 2; env->first[k] = 1; }
    return env;
}
int libenv_get_tensortypes(libenv_env *handle, enum libenv_space_name name,
                           struct libenv_tensortype *types) {
    (void)handle;
    if (name == LIBENV_SPACE_OBSERVATION) {
        if (types) {
            types[0] = leaf("image", LIBENV_SCALAR_TYPE_DISCRETE, LIBENV_DTYPE_UINT8, 3, 255);
            types[1] = leaf("at", LIBENV_SCALAR_TYPE_REAL, LIBENV_DTYPE_FLOAT32, 0, 9);
        }
        return 2;
    }
    if (name == LIBENV_SPACE_ACTION) {
        if (types) types[0] = leaf("by", LIBENV_SCALAR_TYPE_DISCRETE, LIBENV_DTYPE_INT32, 0, 2);
        return 1;
    }
    if (types) types[0] = leaf("left", LIBENV_SCALAR_TYPE_DISCRETE, LIBENV_DTYPE_INT32, 0, 5);
    return 1;
}
void libenv_set_buffers(libenv_env *handle, struct libenv_buffers *bufs) {
    ((struct env *)handle)->bufs = *bufs;
}
void libenv_observe(libenv_env *handle) {
    struct env *env = handle;
    for (int k = 0; k < env->num; k++) {
        memset(env->bufs.ob[k], env->at[k], 3);
        *(float *)env->bufs.ob[env->num + k] = env->at[k] / 2.0f;
        env->bufs.rew[k] = env->rew[k];
        env->bufs.first[k] = env->first[k];
        *(int32_t *)env->bufs.info[k] = 5 - env->at[k];
    }
}
void libenv_act(libenv_env *handle) {
    struct env *env = handle;
    for (int k = 0; k < env->num; k++) {
        int by = *(int32_t *)env->bufs.ac[k];
        env->at[k] += by;
        env->rew[k] = (float)by;
        env->first[k] = env->at[k] >= 5;
        if (env->first[k]) env->at[k] = 0;
    }
}
void libenv_close(libenv_env *handle) { free(handle); }
"""


@pytest.fixture
def library(tmp_path: Path) -> Path:
    (tmp_path / "count.c").write_text(LIBRARY)
    command = ["cc", "-shared", "-fPIC", "-I", str(INCLUDE), "count.c", "-o", "libcount.so"]
    try:
        subprocess.run(command, cwd=tmp_path, check=True)
    except FileNotFoundError:
        pytest.skip("there is no C compiler: cc is not installed")
    return tmp_path


def test_gym3_drives_a_library_compiled_with_our_header(library: Path) -> None:
    envs = corral.from_gym3(libenv.CEnv(num=2, lib_dir=str(library), lib_name="count"))
    assert envs.single_observation_space == spaces.Dict(
        [
            ("image", spaces.Box(0, 255, (3,), np.uint8)),
            ("at", spaces.Box(-np.inf, np.inf, (), np.float32)),
        ]
    )
    assert envs.single_action_space == spaces.Dict({"by": spaces.Discrete(3, dtype=np.int32)})
    observations, infos = envs.reset()
    assert_same(observations["at"], np.array([0, 0.5], np.float32))
    assert infos["left"].tolist() == [5, 4]
    rows = [envs.step({"by": np.array([2, 2])}) for _ in range(3)]
    assert [row[0]["image"][:, 0].tolist() for row in rows] == [[2, 3], [4, 0], [0, 2]]
    assert [row[1].tolist() for row in rows] == [[2.0, 2.0]] * 3
    assert [row[2].tolist() for row in rows] == [[False, False], [False, True], [True, False]]
    assert rows[2][4]["left"].tolist() == [5, 3]
    envs.close()


def test_the_page_about_it_runs(capsys: pytest.CaptureFixture[str]) -> None:
    page = (Path(__file__).parents[2] / "docs" / "gym3.md").read_text()
    exec(page.split("```python")[1].split("```")[0], {})
    assert capsys.readouterr().out.startswith("R[4] D2[] (64, 4) ")


def test_gym3_reads_our_header_as_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"struct libenv_{name}" for name in ("tensortype", "option", "options", "buffers")]

    def layouts() -> dict[str, Any]:
        ffi = libenv.FFI()
        ffi.cdef(libenv._load_libenv_cdef())
        told = {
            name: (
                ffi.sizeof(name),
                [(key, field.offset) for key, field in ffi.typeof(name).fields],
            )
            for name in names
        }
        enums = ("libenv_dtype", "libenv_scalar_type", "libenv_space_name")
        return {**told, **{name: ffi.typeof(f"enum {name}").relements for name in enums}}

    theirs = layouts()
    monkeypatch.setattr(libenv, "get_header_dir", lambda: str(INCLUDE))
    assert layouts() == theirs
