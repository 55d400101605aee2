"""What Gymnasium's own CartPole shows, played by a plain loop."""

from __future__ import annotations

import functools
from typing import Any

import gymnasium

CARTPOLE = functools.partial(gymnasium.make, "CartPole-v1")


def played_by_hand(seed: int, actions: list[int]) -> list[Any]:
    """What Gymnasium's CartPole shows: an observation, or (observation, reward, done), and at an
    end the next episode's first observation."""
    env = CARTPOLE()
    shown: list[Any] = [env.reset(seed=seed)[0]]
    for action in actions:
        observation, reward, terminated, truncated, _ = env.step(action)
        shown.append((observation, reward, terminated or truncated))
        if terminated or truncated:
            shown.append(env.reset()[0])
    return shown
