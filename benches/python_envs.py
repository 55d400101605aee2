"""Envs in Python, for workers to import."""

from __future__ import annotations

from time import perf_counter, sleep
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete


class Trivial(gymnasium.Env[Any, Any]):
    """Four floats, the same every time; episodes of 200 steps. As cheap as Python gets."""

    def __init__(self, render_mode: str | None = None) -> None:
        self.observation_space = Box(-1, 1, (4,), np.float32)
        self.action_space = Discrete(2)
        self.render_mode = render_mode
        self._observation = np.zeros(4, np.float32)
        self._age = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        self._age = 0
        return self._observation, {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self._age += 1
        return self._observation, 1.0, self._age >= 200, False, {}


class Spinning(Trivial):
    """Keeps its core busy for a millisecond of the clock a step."""

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        until = perf_counter() + 0.001
        while perf_counter() < until:
            pass
        return super().step(action)


class Pixels(Trivial):
    """84×84×4 bytes."""

    def __init__(self, render_mode: str | None = None) -> None:
        super().__init__(render_mode)
        self.observation_space = Box(0, 255, (84, 84, 4), np.uint8)
        self._observation = np.full((84, 84, 4), 7, np.uint8)


class Sleeping(Trivial):
    """Sleeps 100 ms a step."""

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        sleep(0.1)
        return super().step(action)
