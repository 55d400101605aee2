"""Classic control: controllers in closed form."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Policy = Callable[[Array], Array]


def cart_pole(id: str) -> Policy:
    """A linear controller: it pushes to the side to which a weighted sum of the four state
    variables points."""

    def policy(seen: Array) -> Array:
        return (seen @ np.array([1.0, 1.7, 19.0, 3.5]) > 0).astype(np.int64)

    return policy


def pendulum(id: str) -> Policy:
    """It brings the pendulum's energy to that of standing upright, and holds it there by a torque
    against angle and velocity."""

    def policy(seen: Array) -> Array:
        cosine, sine, speed = seen.T.astype(np.float64)
        # The equation of motion is speed' = 15 sin(angle) + 3 torque.
        energy = 0.5 * speed**2 + 15 * (cosine - 1)
        push = np.where(speed < 0, -1.0, 1.0)
        swing = np.clip(-energy * push, -2, 2)
        hold = -(10 * np.arctan2(sine, cosine) + 2.2 * speed)
        torque = np.where(cosine > 0.85, hold, swing)
        return np.clip(torque, -2, 2).astype(np.float32)[:, None]

    return policy


def mountain_car(id: str) -> Policy:
    """It pushes the way the car goes."""

    def policy(seen: Array) -> Array:
        return np.where(seen[:, 1] < 0, 0, 2)

    return policy


def mountain_car_continuous(id: str) -> Policy:
    """It pushes the way the car goes with 0.3 of the greatest force."""

    def policy(seen: Array) -> Array:
        return np.where(seen[:, 1:] < 0, -0.3, 0.3).astype(np.float32)

    return policy


def acrobot(id: str) -> Policy:
    """It turns the second link on the way that it goes, less half of the first one's velocity: that
    adds energy."""

    def policy(seen: Array) -> Array:
        return np.where(seen[:, 5] < 0.5 * seen[:, 4], 0, 2)

    return policy
