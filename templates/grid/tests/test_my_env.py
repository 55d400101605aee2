"""`my_env` as Python sees it."""

import corral
import numpy as np


def test_walk_keeps_its_contract() -> None:
    verdict = corral.testing.check_env("my_env/Walk-v0")
    assert verdict.passed, verdict


def test_the_picture_is_as_large_as_the_cave() -> None:
    envs = corral.make_vec("my_env/Walk-v0", 4, size=8, gems=2)
    observations, infos = envs.reset(seed=0)
    assert observations["picture"].shape == (4, 32, 32, 3)
    assert observations["body"]["position"].tolist() == [[4, 4]] * 4
    assert infos["gems_left"].tolist() == [2] * 4


def test_a_table_of_values_learns_the_way_through_one_cave() -> None:
    """By Q-learning: 64 envs fill one table of what each move is worth at each place."""
    rng = np.random.default_rng(0)
    envs = corral.make_vec(
        "my_env/Walk-v0", 64, seed=0, size=7, gems=1, levels=1, max_episode_steps=40
    )
    values = np.zeros((7, 7, 4))
    observations, infos = envs.reset()
    lengths, ended = [], np.zeros(64, dtype=bool)
    for step in range(1500):
        rows, columns = observations["body"]["position"].T
        best = np.where(infos["action_mask"] == 1, values[rows, columns], -np.inf).argmax(axis=1)
        explores = rng.random(64) < max(0.05, 1 - step / 500)
        actions = np.where(explores, envs.action_space.sample(), best)
        observations, rewards, terminated, truncated, infos = envs.step(actions)
        next_rows, next_columns = observations["body"]["position"].T
        ahead = np.where(terminated, 0.0, values[next_rows, next_columns].max(axis=1))
        due = rewards + 0.95 * ahead
        # A row whose episode ended one step earlier shows a reset, and no move.
        k = np.flatnonzero(~ended)
        values[rows[k], columns[k], actions[k]] += 0.2 * (due - values[rows, columns, actions])[k]
        # Some rows of few batches have this info.
        if "steps_per_gem" in infos:
            lengths += infos["steps_per_gem"][terminated].tolist()
        ended = terminated | truncated
    assert np.mean(lengths[-200:]) < 0.7 * np.mean(lengths[:200]), lengths
