"""Gymnasium's own tools, driven over corral's envs."""

from __future__ import annotations

import warnings
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from gymnasium.utils import performance
from gymnasium.utils.env_checker import check_env
from gymnasium.wrappers import vector as wrappers
from gymnasium.wrappers.vector import (
    NormalizeObservation,
    NormalizeReward,
    RecordEpisodeStatistics,
)

import corral
from tests.support import quick_ids

ENVS = list(corral.envs())


@pytest.mark.parametrize("id", quick_ids(ENVS))
def test_check_env_finds_nothing_to_complain_of(id: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # A Box without bounds, as CartPole's velocities are, is worth a hint to Gymnasium.
        warnings.filterwarnings("ignore", message=".*Box observation space.*infinity.*")
        if id == "Pendulum-v1":
            # So is its action's range, which is that of Gymnasium's own env.
            warnings.filterwarnings("ignore", message=".*symmetric and normalized space.*")
        check_env(corral.make(id, render_mode="rgb_array"))


@pytest.mark.parametrize("id", quick_ids(ENVS))
@pytest.mark.parametrize("prefix", ["corral/", "corral:corral/"])
def test_make_gives_a_real_env_with_one_time_limit(id: str, prefix: str) -> None:
    env = gymnasium.make(prefix + id)
    assert isinstance(env.unwrapped, corral.Env)
    assert env.unwrapped.max_episode_steps is None
    limit = corral.envs()[id]["max_episode_steps"]
    assert env.spec is not None
    assert env.spec.max_episode_steps == limit
    assert corral.make(id).max_episode_steps == limit


@pytest.mark.parametrize("steps", [3, 7])
def test_gymnasiums_time_limit_is_the_only_one_under_make(steps: int) -> None:
    env = gymnasium.make("corral/Maze-v0", max_episode_steps=steps)
    env.reset(seed=0)
    truncations = [env.step(0)[3] for _ in range(steps)]
    assert truncations == [False] * (steps - 1) + [True]
    unlimited = gymnasium.make("corral/Maze-v0", max_episode_steps=-1)
    unlimited.reset(seed=0)
    assert not any(unlimited.step(0)[3] for _ in range(300))


@pytest.mark.parametrize("mode", ["vector_entry_point", "sync", "async"])
def test_make_vec_works_in_every_vectorization_mode(mode: str) -> None:
    envs = gymnasium.make_vec(
        "corral/CartPole-v1", 3, vectorization_mode=mode, sutton_barto_reward=True
    )
    observations, _ = envs.reset(seed=4)
    expected, _ = corral.make_vec("CartPole-v1", 3).reset(seed=4)
    np.testing.assert_array_equal(observations, expected)
    assert (envs.step(np.zeros(3, dtype=np.int64))[1] == 0).all()
    assert envs.spec is not None
    assert envs.spec.id == "corral/CartPole-v1"
    envs.close()


def test_make_vec_passes_time_limit_and_autoreset_mode_on() -> None:
    envs = gymnasium.make_vec(
        "corral/CartPole-v1", 2, max_episode_steps=4, autoreset_mode="same_step"
    )
    assert isinstance(envs, corral.VectorEnv)
    assert envs.max_episode_steps == 4
    assert envs.metadata["autoreset_mode"] is gymnasium.vector.AutoresetMode.SAME_STEP
    default = gymnasium.make_vec("corral/CartPole-v1", 2)
    assert isinstance(default, corral.VectorEnv)
    assert default.max_episode_steps == 500


def test_the_spec_of_an_env_makes_it_again() -> None:
    env = corral.make("CartPole-v1", sutton_barto_reward=True, render_mode="rgb_array")
    assert env.spec is not None
    again = gymnasium.make(env.spec)
    again.reset(seed=0)
    assert again.step(0)[1] == 0.0
    assert again.render_mode == "rgb_array"
    assert env.spec == type(env.spec).from_json(env.spec.to_json())


def balance(observations: np.ndarray) -> np.ndarray:
    return (observations[:, 2] + observations[:, 3] > 0).astype(np.int64)


@pytest.mark.parametrize("mode", ["next_step", "same_step"])
def test_record_episode_statistics_agrees_with_ours(mode: str) -> None:
    if mode == "same_step" and gymnasium.__version__ < "1.4":
        pytest.skip("before 1.4 Gymnasium's wrapper is one step short in SAME_STEP")

    def make() -> corral.VectorEnv:
        return corral.make_vec(
            "CartPole-v1", 8, autoreset_mode=mode, episode_statistics=True, seed=3
        )

    wrapped, own = RecordEpisodeStatistics(make(), stats_key="theirs"), make()
    wrapped.reset()
    own.reset()
    finished = 0
    rng = np.random.default_rng(0)
    for _ in range(300):
        actions = rng.integers(0, 2, 8)
        infos = wrapped.step(actions)[4]
        expected = own.step(actions)[4]
        assert ("episode" in infos) == ("theirs" in infos) == ("episode" in expected)
        if "episode" not in expected:
            continue
        mask = expected["_episode"]
        np.testing.assert_array_equal(infos["_theirs"], mask)
        for key in ("r", "l"):
            np.testing.assert_array_equal(infos["theirs"][key], expected["episode"][key])
        assert set(expected["episode"]) == {"r", "l", "t"}
        assert (expected["episode"]["t"][mask] >= 0).all()
        finished += mask.sum()
    assert finished > 50


def test_normalize_wrappers_give_what_they_give_over_gymnasiums_envs() -> None:
    def play(envs: gymnasium.vector.VectorEnv) -> list[np.ndarray]:
        envs = NormalizeReward(NormalizeObservation(envs))
        story = [envs.reset(seed=2)[0]]
        rng = np.random.default_rng(1)
        for _ in range(100):
            observations, rewards, *_ = envs.step(rng.integers(0, 2, 4))
            story += [observations, rewards]
        return story

    theirs = play(gymnasium.make_vec("CartPole-v1", 4, vectorization_mode="sync"))
    ours = play(corral.make_vec("CartPole-v1", 4))
    for expected, got in zip(theirs, ours, strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.skipif(not hasattr(wrappers, "RecordVideo"), reason="this Gymnasium has none")
def test_record_video_writes_a_film(tmp_path: Path) -> None:
    pytest.importorskip("moviepy", reason="RecordVideo needs moviepy, of the dev group")
    envs = corral.make_vec("CartPole-v1", 4, render_mode="rgb_array")
    envs = wrappers.RecordVideo(
        envs, str(tmp_path), video_length=20, step_trigger=lambda step: step == 0
    )
    observations, _ = envs.reset(seed=0)
    for _ in range(25):
        observations = envs.step(balance(observations))[0]
    envs.close()
    films = list(tmp_path.glob("*.mp4"))
    assert films
    assert all(film.stat().st_size > 1000 for film in films)


@pytest.mark.skipif(
    not hasattr(performance, "benchmark_vector_step"), reason="this Gymnasium has none"
)
@pytest.mark.parametrize("id", quick_ids(ENVS))
def test_the_vector_benchmark_runs(id: str) -> None:
    envs = corral.make_vec(id, 4)
    assert performance.benchmark_vector_step(envs, target_duration=0.1, seed=0) > 0


def test_importing_registers_once_and_leaves_gymnasiums_own_ids_alone() -> None:
    corral.registry.register_with_gymnasium()
    for id in ENVS:
        assert f"corral/{id}" in gymnasium.registry
    own = gymnasium.make("CartPole-v1")
    assert not isinstance(own.unwrapped, corral.Env)
