"""`my_env` as Python sees it."""

import corral
import numpy as np


def test_walk_keeps_its_contract() -> None:
    verdict = corral.testing.check_env("my_env/Walk-v0")
    assert verdict.passed, verdict


def test_wind_moves_the_agent() -> None:
    def play(wind: float) -> np.ndarray:
        envs = corral.make_vec("my_env/Walk-v0", 8, seed=0, wind=wind)
        envs.reset()
        observations, *_ = envs.step(np.zeros((8, 2), dtype=np.float32))
        return observations["position"]

    assert not np.array_equal(play(0.0), play(1.0))


def test_a_linear_policy_learns() -> None:
    """By the cross-entropy method: of 64 policies, the best 12 breed the next ones."""
    rng = np.random.default_rng(0)
    envs = corral.make_vec("my_env/Walk-v0", 64 * 8, max_episode_steps=50)
    mean, spread = np.zeros((2, 6)), np.ones((2, 6))
    history = []
    for generation in range(20):
        policies = rng.normal(mean, spread, size=(64, 2, 6))
        # Eight episodes each, never the same ones.
        returns = play(envs, policies.repeat(8, axis=0), seed=1000 * generation)
        returns = returns.reshape(64, 8).mean(axis=1)
        best = policies[returns.argsort()[-12:]]
        mean, spread = best.mean(axis=0), best.std(axis=0) + 0.05
        history.append(returns.mean())
    assert history[-1] > history[0] + 0.5, history


def play(envs: corral.VectorEnv, policies: np.ndarray, seed: int) -> np.ndarray:
    """Each env's return over one episode under its own policy."""
    seen, _ = envs.reset(seed=seed)
    returns, over = np.zeros(len(policies)), np.zeros(len(policies), dtype=bool)
    while not over.all():
        inputs = np.hstack([seen["position"], seen["velocity"], seen["goal"]])
        actions = np.einsum("pai,pi->pa", policies, inputs).clip(-1, 1).astype(np.float32)
        seen, rewards, terminated, truncated, _ = envs.step(actions)
        returns += np.where(over, 0.0, rewards)
        over |= terminated | truncated
    return returns
