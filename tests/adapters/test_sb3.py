"""`corral.to_sb3` beside SB3's own DummyVecEnv: the same numbers, infos and conventions."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete

import corral
from tests.support import assert_same

N = 4


class Walk(gymnasium.Env[Any, Any]):
    """Walks along a line from a random place; leaving it is the end, as are twelve steps."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 30}  # noqa: RUF012

    def __init__(self, render_mode: str | None = None) -> None:
        self.observation_space = Dict({"at": Box(-9, 9, (2,), np.float32), "age": Discrete(100)})
        self.action_space = Discrete(2)
        self.render_mode = render_mode
        self.color = 7

    def _seen(self) -> dict[str, Any]:
        return {"at": np.array([self.at, -self.at], np.float32), "age": self.age}

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.at = float(self.np_random.uniform(-1, 1)) + (options or {}).get("shift", 0.0)
        self.age = 0
        return self._seen(), {"began": self.at, "options": str(options)}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.at += 0.3 if action else -0.25
        self.age += 1
        infos = {"age": self.age, "nested": {"even": self.age % 2 == 0}}
        return self._seen(), self.at, abs(self.at) > 1.5, self.age >= 12, infos

    def render(self) -> Any:
        return np.full((4, 6, 3), self.color, np.uint8)

    def paint(self, color: int, *, twice: bool = False) -> int:
        self.color = color * (2 if twice else 1)
        return self.color


def ours(**settings: Any) -> Any:
    envs = corral.from_gymnasium(Walk, N, autoreset_mode="same_step", **settings)
    return corral.to_sb3(envs)


class AnyTime(float):
    """Is equal to the time of any clock."""

    def __eq__(self, other: object) -> bool:
        return type(other) is float and round(other, 6) == other and 0 <= other < 3600

    __hash__ = float.__hash__


def told_at_any_time(episode: dict[str, Any] | None) -> dict[str, Any] | None:
    return episode and {**episode, "t": AnyTime()}


@pytest.mark.parametrize("runner", ["serial", "process"])
def test_a_run_is_dummy_vec_envs(sb3: Any, runner: str) -> None:
    mine, theirs = ours(runner=runner), sb3.DummyVecEnv([lambda: sb3.Monitor(Walk())] * N)
    assert isinstance(mine, sb3.VecEnv)
    assert mine.num_envs == theirs.num_envs
    assert mine.observation_space == theirs.observation_space
    assert mine.action_space == theirs.action_space
    assert mine.seed(5) == theirs.seed(5)
    mine.set_options({"shift": 0.25})
    theirs.set_options({"shift": 0.25})
    assert_same(mine.reset(), dict(theirs.reset()))
    assert mine.reset_infos == theirs.reset_infos
    rng = np.random.default_rng(0)
    ends = 0
    for _ in range(60):
        actions = rng.integers(0, 2, N)
        got, expected = mine.step(actions), theirs.step(actions)
        assert_same(got[0], dict(expected[0]))
        assert_same(got[1], expected[1])
        assert got[1].dtype == np.float32
        assert_same(got[2], expected[2])
        ends += int(got[2].sum())
        for info, right in zip(got[3], expected[3], strict=True):
            last, right_last = (one.pop("terminal_observation", None) for one in (info, right))
            assert (last is None) == (right_last is None)
            if last is not None:
                assert_same(last["at"], right_last["at"])
                assert last["age"] == right_last["age"]
            assert info.pop("episode", None) == told_at_any_time(right.pop("episode", None))
            assert info == right
        assert mine.reset_infos == theirs.reset_infos
    assert ends > 10
    mine.close()


def test_seeds_and_options_of_each_env_hold_for_one_reset(sb3: Any) -> None:
    mine, theirs = ours(runner="serial"), sb3.DummyVecEnv([Walk] * N)
    for envs in (mine, theirs):
        envs.seed(3)
        envs.set_options([{"shift": float(k)} for k in range(N)])
    assert_same(mine.reset(), dict(theirs.reset()))
    assert mine.reset_infos == theirs.reset_infos
    for envs in (mine, theirs):
        envs.seed(9)
    assert_same(mine.reset(), dict(theirs.reset()))
    assert mine.reset_infos == theirs.reset_infos


@pytest.mark.parametrize("runner", ["serial", "process"])
def test_attributes_methods_and_pictures(sb3: Any, runner: str) -> None:
    mine = ours(runner=runner, render_mode=None)
    assert mine.get_attr("color") == [7] * N
    mine.set_attr("color", 9, indices=[1, 3])
    assert mine.get_attr("color") == [7, 9, 7, 9]
    assert mine.env_method("paint", 4, indices=2, twice=True) == [8]
    assert mine.get_attr("color", indices=range(1, 3)) == [9, 8]
    assert mine.env_is_wrapped(gymnasium.wrappers.TimeLimit) == [False] * N
    with pytest.raises(AttributeError):
        mine.get_attr("no such thing")
    mine.close()
    wrapped = corral.from_gymnasium("CartPole-v1", 2, autoreset_mode="same_step", runner=runner)
    assert corral.to_sb3(wrapped).env_is_wrapped(gymnasium.wrappers.TimeLimit) == [True, True]
    wrapped.close()


def test_frames_are_tiled_as_sb3_tiles_them(sb3: Any) -> None:
    drawn = [lambda: Walk("rgb_array")] * N
    mine = corral.to_sb3(corral.from_gymnasium(drawn, autoreset_mode="same_step", runner="serial"))
    theirs = sb3.DummyVecEnv(drawn)
    for envs in (mine, theirs):
        envs.seed(0)
        envs.reset()
    assert_same(mine.render(), theirs.render())


@pytest.mark.parametrize("id", ["MiniGrid-Dynamic-Obstacles-5x5-v0", "Blackjack-v1", "Taxi-v4"])
@pytest.mark.parametrize("how", [{}, {"on_failure": "mask"}, {"frame_stack": 2}])
def test_terminal_observations_are_those_of_the_batch(
    sb3: Any, id: str, how: dict[str, Any]
) -> None:
    """Texts, numbers and nested ones too."""
    if "frame_stack" in how and id.startswith("MiniGrid"):
        pytest.skip("texts are not stacked")
    options = {"seed": 0, "max_episode_steps": 9, **how}
    mine, twin = (corral.make_vec(id, N, autoreset_mode="same_step", **options) for _ in range(2))
    envs = corral.to_sb3(mine)
    assert_same(envs.reset(), twin.reset()[0])
    twin.action_space.seed(0)
    ends = 0
    for _ in range(60):
        actions = twin.action_space.sample()
        infos, told = envs.step(actions)[3], twin.step(actions)[4]
        for row, info in enumerate(infos):
            final = told["final_obs"][row] if "final_obs" in told else None
            assert ("terminal_observation" in info) == (final is not None)
            if final is not None:
                ends += 1
                assert repr(info["terminal_observation"]) == repr(final)
    assert ends >= 6 * N


def test_sb3s_recorder_films_it(sb3: Any, tmp_path: Path) -> None:
    pytest.importorskip("moviepy", reason="SB3's recorder films by moviepy")
    envs = corral.make_vec("CartPole-v1", 2, autoreset_mode="same_step", render_mode="rgb_array")
    film = sb3.VecVideoRecorder(
        corral.to_sb3(envs), str(tmp_path), lambda step: step == 0, video_length=5
    )
    film.reset()
    for _ in range(8):
        film.step(np.zeros(2, np.int64))
    film.close()
    assert [path.suffix for path in tmp_path.iterdir()] == [".mp4"]


def test_built_in_envs_are_sb3_envs_too_and_tell_their_episodes(sb3: Any) -> None:
    envs = corral.make_vec(
        "CartPole-v1", N, autoreset_mode="same_step", episode_statistics=True, max_episode_steps=20
    )
    mine = sb3.VecMonitor(corral.to_sb3(envs, episode_statistics=False))
    mine.seed(0)
    assert mine.reset().shape == (N, 4)
    told = 0
    for _ in range(60):
        _, _, dones, infos = mine.step(np.ones(N, dtype=np.int64))
        for done, info in zip(dones, infos, strict=True):
            if done:
                told += 1
                assert info["episode"]["l"] == pytest.approx(info["episode"]["r"])
                assert info["terminal_observation"].shape == (4,)
    assert told > 10
    with pytest.raises(AttributeError):
        mine.get_attr("gravity")
    assert mine.env_is_wrapped(gymnasium.wrappers.TimeLimit) == [False] * N


class Taking(gymnasium.Env[Any, Any]):
    """Shows the sum of the numbers in its action; the seventh step is the end."""

    observation_space = Box(-999, 999, (1,), np.float32)

    def __init__(self, action_space: gymnasium.Space[Any]) -> None:
        self.action_space = action_space

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        self.age = 0
        return np.zeros(1, np.float32), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.age += 1
        total = float(np.sum(gymnasium.spaces.flatten(self.action_space, action)))
        return np.array([total], np.float32), total, self.age == 7, False, {}


def taking(space: gymnasium.Space[Any]) -> Any:
    return lambda **_: corral.from_gymnasium(
        partial(Taking, space), N, autoreset_mode="same_step", runner="serial"
    )


def built_in(id: str, **settings: Any) -> Any:
    return lambda: corral.make_vec(id, N, seed=3, autoreset_mode="same_step", **settings)


MADE = {
    "labels": built_in("CartPole-v1"),
    "floats": built_in("Pendulum-v1", max_episode_steps=9),
    "background": built_in("CartPole-v1", batch_size=2, num_threads=2),
    "MultiDiscrete": taking(MultiDiscrete([3, 4])),
    "MultiBinary": taking(MultiBinary(3)),
    "Box": taking(Box(-1, 1, (2,), np.float32)),
    "Dict": taking(Dict({"push": Box(-1, 1, (2,), np.float32), "gear": Discrete(3)})),
}


@pytest.mark.parametrize("made", MADE)
@pytest.mark.parametrize("listed", [False, True])
def test_a_step_in_one_call_is_a_step_in_two_and_of_the_envs(
    sb3: Any, made: str, listed: bool
) -> None:
    alone = MADE[made]()
    one, two = (corral.to_sb3(MADE[made]()) for _ in range(2))
    first, _ = alone.reset()
    assert_same([one.reset(), two.reset()], [first, first])
    space = one.action_space
    space.seed(0)
    ends = 0
    for _ in range(60):
        each = [space.sample() for _ in range(N)]
        actions = gymnasium.vector.utils.concatenate(
            space, each, gymnasium.vector.utils.create_empty_array(space, N)
        )
        if made == "background":
            alone.send(actions)
            seen, rewards, terminated, truncated, _ = alone.drain()
        else:
            seen, rewards, terminated, truncated, _ = alone.step(actions)
        # Policies give floats of any width.
        given = actions.astype(np.float64) if made in ("floats", "Box") else actions
        together = one.step(each if listed else given)
        two.step_async(each if listed else given)
        apart = two.step_wait()
        due = (seen, rewards.astype(np.float32), terminated | truncated)
        assert_same(together[:3], due)
        assert_same(apart[:3], due)
        for infos in (*together[3], *apart[3]):
            infos.get("episode", {}).pop("t", None)
        assert_same(list(together[3]), list(apart[3]))
        assert_same(one.reset_infos, two.reset_infos)
        ends += int(due[2].sum())
    assert ends > 8


def test_frames_that_are_stacked_when_looked_at_are_refused(sb3: Any) -> None:
    envs = corral.make_vec(
        "Pendulum-v1", 2, autoreset_mode="same_step", frame_stack=3, lazy_frames=True
    )
    with pytest.raises(corral.errors.UnsupportedError, match="make what SB3 gets with frame_stack"):
        corral.to_sb3(envs)


def test_a_step_beside_a_step_under_way_is_refused_and_loses_nothing(sb3: Any) -> None:
    envs, alone = (
        corral.to_sb3(corral.make_vec("CartPole-v1", N, seed=3, autoreset_mode="same_step"))
        for _ in range(2)
    )
    envs.reset()
    alone.reset()
    actions = np.array([0, 1, 1, 0])
    envs.step_async(actions)
    with pytest.raises(gymnasium.error.AlreadyPendingCallError):
        envs.step(1 - actions)
    assert_same(envs.step_wait()[:3], alone.step(actions)[:3])


def test_sb3s_own_wrappers_take_it(sb3: Any) -> None:
    mine = sb3.VecCheckNan(
        corral.to_sb3(corral.make_vec("CartPole-v1", 2, autoreset_mode="same_step"))
    )
    stacked = sb3.VecFrameStack(mine, 3)
    assert stacked.reset().shape == (2, 12)
    assert stacked.step(np.zeros(2, dtype=np.int64))[0].shape == (2, 12)


def test_another_autoreset_mode_is_refused_with_what_to_do(sb3: Any) -> None:
    with pytest.raises(corral.errors.UnsupportedError, match='autoreset_mode="same_step"'):
        corral.to_sb3(corral.make_vec("CartPole-v1", 2))


def test_what_an_env_raises_comes_through(sb3: Any) -> None:
    class Broken(Walk):
        def step(self, action: Any) -> Any:
            raise ZeroDivisionError("broken on purpose")

    mine = corral.to_sb3(
        corral.from_gymnasium(Broken, 2, autoreset_mode="same_step", runner="process")
    )
    mine.reset()
    with pytest.raises(ZeroDivisionError, match="broken on purpose"):
        mine.step(np.zeros(2, dtype=np.int64))
    mine.close()


def test_envs_without_final_observations_have_no_terminal_observation(sb3: Any) -> None:
    envs = corral.make_vec(
        "CartPole-v1", 2, seed=3, autoreset_mode="same_step", episode_statistics=True
    )
    mine = corral.to_sb3(envs)
    mine.reset()
    step = envs.step

    def bare(actions: Any) -> Any:
        batch = step(actions)
        for name in ("final_obs", "final_info"):
            batch[-1].pop(name, None)
            batch[-1].pop(f"_{name}", None)
        return batch

    envs.step = bare  # type: ignore[method-assign]
    for _ in range(100):
        _, _, dones, infos = mine.step(np.zeros(2, int))
        if dones.any():
            break
    row = int(np.flatnonzero(dones)[0])
    assert "terminal_observation" not in infos[row]
    assert infos[row]["episode"]["l"] > 0
    assert "episode" not in mine.reset_infos[row]
