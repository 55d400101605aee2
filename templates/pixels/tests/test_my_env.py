"""`my_env` as Python sees it."""

import corral
import numpy as np


def test_walk_keeps_its_contract() -> None:
    verdict = corral.testing.check_env("my_env/Walk-v0")
    assert verdict.passed, verdict


def test_a_reset_shows_a_ball_above_a_paddle() -> None:
    envs = corral.make_vec("my_env/Walk-v0", 8)
    screens, _ = envs.reset(seed=0)
    assert screens.shape == (8, 32, 32, 1)
    assert screens.dtype == np.uint8
    assert (screens[:, 0] == 255).sum(axis=(1, 2)).tolist() == [1] * 8
    assert (screens[:, -1] == 128).sum(axis=(1, 2)).tolist() == [5] * 8


def test_a_policy_learns_from_pixels() -> None:
    """By the cross-entropy method: of 32 policies, the best 8 breed the next ones."""
    rng = np.random.default_rng(0)
    envs = corral.make_vec("my_env/Walk-v0", 32 * 4, speed=2)
    mean, spread = np.zeros((3, 2)), np.ones((3, 2))
    history = []
    for generation in range(12):
        policies = rng.normal(mean, spread, size=(32, 3, 2))
        # Four episodes each, never the same ones.
        returns = play(envs, policies.repeat(4, axis=0), seed=1000 * generation)
        returns = returns.reshape(32, 4).mean(axis=1)
        best = policies[returns.argsort()[-8:]]
        mean, spread = best.mean(axis=0), best.std(axis=0) + 0.05
        history.append(returns.mean())
    assert history[-1] > history[0] + 5, history


def play(envs: corral.VectorEnv, policies: np.ndarray, seed: int) -> np.ndarray:
    """Each env's return over one episode under its own policy: the action of most weight."""
    seen, _ = envs.reset(seed=seed)
    returns, over = np.zeros(len(policies)), np.zeros(len(policies), dtype=bool)
    while not over.all():
        actions = np.einsum("paf,pf->pa", policies, features(seen)).argmax(axis=1)
        seen, rewards, terminated, truncated, _ = envs.step(actions)
        returns += np.where(over, 0.0, rewards)
        over |= terminated | truncated
    return returns


def features(screens: np.ndarray) -> np.ndarray:
    """How far the ball is to the right of the paddle, in quads of pixels; and a 1."""
    columns = np.arange(32)
    ball = (screens == 255).any(axis=(1, 3)) @ columns
    paddle = (screens[:, -1, :, 0] == 128) @ columns / 5
    return np.stack([(ball - paddle) / 4, np.ones(len(screens))], axis=1)
