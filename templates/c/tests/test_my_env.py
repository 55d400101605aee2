"""`my_env` as Python sees it."""

import corral
import numpy as np


def test_walk_keeps_its_contract() -> None:
    verdict = corral.testing.check_env("my_env/Walk-v0")
    assert verdict.passed, verdict


def test_the_line_is_as_long_as_asked() -> None:
    envs = corral.make_vec("my_env/Walk-v0", 64, length=5)
    observations, _ = envs.reset(seed=0)
    assert 0 <= observations["goal"].min() < observations["goal"].max() <= 4


def test_a_table_of_values_learns_the_way_to_the_goal() -> None:
    """By Q-learning: 64 envs fill one table of what each move is worth."""
    rng = np.random.default_rng(0)
    envs = corral.make_vec("my_env/Walk-v0", 64, seed=0, length=5, max_episode_steps=30)
    values = np.zeros((5, 5, 3))
    seen, _ = envs.reset()
    totals, over = [], np.zeros(64, dtype=bool)
    for step in range(1000):
        position, goal = seen["position"], seen["goal"]
        explores = rng.random(64) < max(0.05, 1 - step / 300)
        best = values[position, goal].argmax(axis=1)
        actions = np.where(explores, rng.integers(0, 3, 64), best)
        seen, rewards, terminated, truncated, _ = envs.step(actions)
        ahead = np.where(terminated, 0.0, values[seen["position"], seen["goal"]].max(axis=1))
        # A row whose episode ended one step earlier shows a reset, and no move.
        k = np.flatnonzero(~over)
        due = rewards + 0.95 * ahead
        values[position[k], goal[k], actions[k]] += 0.3 * (due - values[position, goal, actions])[k]
        totals.append(rewards[k].mean())
        over = terminated | truncated
    assert np.mean(totals[-100:]) > np.mean(totals[:100]) + 0.05, totals
