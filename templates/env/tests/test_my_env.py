"""`my_env` as Python sees it."""

import corral
import numpy as np


def test_walk_keeps_its_contract() -> None:
    verdict = corral.testing.check_env("my_env/Walk-v0")
    assert verdict.passed, verdict


def test_wind_moves_the_walker() -> None:
    def play(wind: float) -> np.ndarray:
        envs = corral.make_vec("my_env/Walk-v0", 8, seed=0, wind=wind)
        envs.reset()
        observations, *_ = envs.step(np.zeros(8, dtype=np.int64))
        return observations["position"]

    assert not np.array_equal(play(0.0), play(1.0))


def test_a_linear_policy_learns_to_walk() -> None:
    """By the cross-entropy method: each env tries a policy, the best breed the next ones."""
    rng = np.random.default_rng(0)
    envs = corral.make_vec(
        "my_env/Walk-v0", 64, autoreset_mode="disabled", max_episode_steps=50, wind=0.1
    )
    mean, spread = np.zeros((4, 5)), np.ones((4, 5))
    history = []
    for generation in range(20):
        policies = rng.normal(mean, spread, size=(64, 4, 5))
        returns = play(envs, policies, seed=1000 * generation)
        parents = policies[np.argsort(returns)[-16:]]
        mean, spread = parents.mean(axis=0), parents.std(axis=0) + 0.05
        history.append(returns.mean())
    assert history[-1] > history[0] + 0.3, history


def play(envs: corral.VectorEnv, policies: np.ndarray, seed: int) -> np.ndarray:
    """Each env's return over one episode under its own policy."""
    seen, _ = envs.reset(seed=seed)
    returns, over = np.zeros(len(policies)), np.zeros(len(policies), dtype=bool)
    for _ in range(50):
        inputs = np.hstack([seen["position"], seen["goal"], np.ones((len(policies), 1))])
        actions = np.einsum("pai,pi->pa", policies, inputs).argmax(axis=1)
        seen, rewards, terminated, truncated, _ = envs.step(actions)
        returns += np.where(over, 0.0, rewards)
        over |= terminated | truncated
        if over.all():
            break
    return returns
