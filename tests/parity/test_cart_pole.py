"""CartPole-v1 is Gymnasium's, bit for bit."""

import json
import os
import subprocess
import sys
from pathlib import Path

import gymnasium
import numpy as np
import pytest

import corral

from .cart_pole import AVX512

SEEDS, EPISODES = 220, 3


def run_beside_gymnasium(seeds: int, episodes: int, **environment: str) -> dict[str, object]:
    script = Path(__file__).with_name("cart_pole.py")
    done = subprocess.run(
        [sys.executable, script, str(seeds), str(episodes)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, **environment},
    )
    return json.loads(done.stdout.splitlines()[-1])


def test_220_seeds_of_3_episodes_are_gymnasiums_own_bit_for_bit() -> None:
    # Where NumPy has sin and cos of its own (AVX-512), it is told to use libm's.
    result = run_beside_gymnasium(SEEDS, EPISODES, NPY_DISABLE_CPU_FEATURES=AVX512)
    if not result["libm"]:
        pytest.skip("this NumPy's sin and cos are not libm's, whatever it is told")
    assert result["difference"] is None
    assert result["steps"] > 30_000
    assert result["truncated"] > 50, "no episode reached the time limit: the rule must balance"


@pytest.mark.parametrize("sutton_barto_reward", [False, True])
def test_rewards_are_gymnasiums_with_either_rule(sutton_barto_reward: bool) -> None:
    theirs = gymnasium.make("CartPole-v1", sutton_barto_reward=sutton_barto_reward)
    ours = corral.make("CartPole-v1", sutton_barto_reward=sutton_barto_reward)
    theirs.reset(seed=1)
    ours.reset(seed=1)
    terminated = False
    while not terminated:
        _, expected, terminated, _, _ = theirs.step(1)
        _, reward, our_terminated, _, _ = ours.step(1)
        assert (reward, our_terminated) == (expected, terminated)


def test_spaces_are_gymnasiums() -> None:
    theirs, ours = gymnasium.make("CartPole-v1"), corral.make("CartPole-v1")
    assert ours.observation_space == theirs.observation_space
    assert ours.action_space == theirs.action_space
    vector = corral.make_vec("CartPole-v1", 3)
    sync = gymnasium.make_vec("CartPole-v1", 3, vectorization_mode="sync")
    assert vector.observation_space == sync.observation_space
    assert vector.action_space == sync.action_space


def test_reset_bounds_are_gymnasiums() -> None:
    options = {"low": -0.2, "high": 0.1}
    expected, _ = gymnasium.make("CartPole-v1").reset(seed=5, options=dict(options))
    ours = corral.make("CartPole-v1")
    np.testing.assert_array_equal(ours.reset(seed=5, options=options)[0], expected)
    # Ours hold until changed.
    assert np.abs(ours.reset(seed=6)[0]).max() > 0.05


def test_the_random_stream_is_gymnasiums_from_one_episode_to_the_next() -> None:
    ours = corral.make_vec("CartPole-v1", 4, seed=100)
    sync = gymnasium.make_vec("CartPole-v1", 4, vectorization_mode="sync")
    np.testing.assert_array_equal(ours.reset()[0], sync.reset(seed=100)[0])
    for _ in range(5):
        np.testing.assert_array_equal(ours.reset()[0], sync.reset()[0])


def test_an_index_is_the_episode_of_that_seed() -> None:
    ours, theirs = corral.make("CartPole-v1"), gymnasium.make("CartPole-v1")
    for index in (0, 7, 12345):
        expected, _ = theirs.reset(seed=index)
        np.testing.assert_array_equal(ours.reset(options={"index": index})[0], expected)
