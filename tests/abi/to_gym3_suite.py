"""`corral.to_gym3`: Corral's vec envs as gym3 envs, beside the same vec envs without gym3, beside
gym3's own vectors of gym's envs, and under gym3's wrappers. `test_gym3.py` runs this file where
gym3 is installed."""

from __future__ import annotations

import copy
import pickle
import sys
from pathlib import Path
from typing import Any

import gym3
import gymnasium
import numpy as np
import pytest
from gym3 import types_np
from gym3.testing import AssertSpacesWrapper
from gym3.types import DictType, Discrete, Real, TensorType
from gymnasium import spaces

import corral
from corral import errors
from corral.adapters.gym3_types import of_space
from tests.abi.gym3_cases import N, as_gym3, every_case, make
from tests.support import assert_same, sampled


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


def test_the_page_about_it_runs(capsys: pytest.CaptureFixture[str]) -> None:
    page = (Path(__file__).parents[2] / "docs" / "gym3.md").read_text()
    exec(page.split("```python")[1].split("```")[0], {})
    assert capsys.readouterr().out.startswith("R[4] D2[] (64, 4) ")
