"""Envs of DI-engine's interface, for workers to import. Both DI-engine's managers and corral's
host them."""

from __future__ import annotations

import time
from collections import namedtuple
from typing import Any

import numpy as np
from gymnasium.envs.classic_control.cartpole import CartPoleEnv
from gymnasium.spaces import Box, Discrete

Timestep = namedtuple("Timestep", ["obs", "reward", "done", "info"])


class EngineCartPole:
    """CartPole as DI-engine's own collection has it: rewards are arrays of shape (1,)."""

    def __init__(self) -> None:
        self._env = CartPoleEnv()
        self.observation_space = self._env.observation_space
        self.action_space = self._env.action_space
        self.reward_space = Box(0.0, 1.0, (1,), np.float32)

    def seed(self, seed: int, dynamic_seed: bool = True) -> None:
        self._env.reset(seed=seed)

    def reset(self) -> Any:
        return self._env.reset()[0]

    def step(self, action: Any) -> Any:
        observation, reward, terminated, _, info = self._env.step(action.item())
        return Timestep(observation, np.array([reward], np.float32), terminated, info)

    def close(self) -> None:
        self._env.close()


class EnginePixels:
    """84×84×4 bytes; episodes of 200 steps."""

    observation_space = Box(0, 255, (84, 84, 4), np.uint8)
    action_space = Discrete(2)
    reward_space = Box(0.0, 1.0, (1,), np.float32)

    def __init__(self) -> None:
        self._observation = np.full((84, 84, 4), 7, np.uint8)
        self._reward = np.ones(1, np.float32)
        self._age = 0

    def seed(self, seed: int, dynamic_seed: bool = True) -> None:
        pass

    def reset(self) -> Any:
        self._age = 0
        return self._observation

    def step(self, action: Any) -> Any:
        self._age += 1
        return Timestep(self._observation, self._reward, self._age >= 200, {})

    def close(self) -> None:
        pass


class SleepingCartPole(EngineCartPole):
    """Sleeps 100 ms a step."""

    def step(self, action: Any) -> Any:
        time.sleep(0.1)
        return super().step(action)
