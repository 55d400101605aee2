"""Maze: a walker who is told whether it gets warmer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

# The first of the actions that walk: up, right, down, left.
_UP = 1


def warmer(id: str) -> Callable[..., Array]:
    """It walks on while the infos say that the goal gets nearer, and takes back each step that
    leads away from it. It does not look at the pixels."""
    walkers: dict[int, Walker] = {}

    def policy(seen: Array, *, began: Array, index: Array, infos: dict[str, Array]) -> Array:
        for one in index[began].tolist():
            walkers[one] = Walker()
        each = zip(index.tolist(), infos["distance"].tolist())
        return np.array([walkers[one].act(distance) for one, distance in each])

    return policy


class Walker:
    """What is known in an episode."""

    def __init__(self) -> None:
        self._least = float("inf")
        """The least distance so far."""
        self._last = _UP
        self._untried: list[int] = []

    def act(self, distance: int) -> int:
        """The next step, where the goal is so far away."""
        if distance > self._least:
            self._last = _turned(self._last, 2)
            return self._last
        if distance < self._least:
            self._least = distance
            # Straight on first, and back only if nothing else is left, at the start.
            self._untried = [_turned(self._last, turns) for turns in (0, 1, 3, 2)]
        self._last = self._untried.pop(0)
        return self._last


def _turned(action: int, turns: int) -> int:
    return (action - _UP + turns) % 4 + _UP
