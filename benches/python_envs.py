"""Envs in Python, for workers to import."""

from __future__ import annotations

from time import perf_counter, sleep
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete, Graph, GraphInstance


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


class Graphs(Trivial):
    """A graph of 20 nodes and 40 edges, drawn anew at each step."""

    def __init__(self, render_mode: str | None = None) -> None:
        super().__init__(render_mode)
        self.observation_space = Graph(Box(0, 1, (8,), np.float32), Box(0, 1, (4,), np.float32))

    def _graph(self) -> GraphInstance:
        random = self.np_random
        nodes, edges = (random.random(shape, dtype=np.float32) for shape in ((20, 8), (40, 4)))
        return GraphInstance(nodes, edges, random.integers(0, 20, (40, 2)))

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        gymnasium.Env.reset(self, seed=seed)
        super().reset(seed=seed)
        return self._graph(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        return self._graph(), *super().step(action)[1:]


def minigrid() -> Any:
    """Its observations are an image, a direction and a mission in words."""
    import minigrid  # noqa: F401

    return gymnasium.make("MiniGrid-DoorKey-8x8-v0")


def lunar_lander() -> Any:
    """Physics by Box2D."""
    return gymnasium.make("LunarLander-v3")


def breakout() -> Any:
    """An Atari game at its own rate: 210×160×3 bytes, four frames a step."""
    import ale_py

    gymnasium.register_envs(ale_py)
    return gymnasium.make("ALE/Breakout-v5")


class Sleeping(Trivial):
    """Sleeps 100 ms a step."""

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        sleep(0.1)
        return super().step(action)


# What a Lab2D level shows here: a counter, the layers of its grid, pixels.
LAB2D_SHOWN = {
    "chase_eat": ["WORLD.STEPS", "WORLD.LAYER", "WORLD.RGB"],
    "clean_up": ["WORLD.RGB", "1.RGB", "1.REWARD"],
}
"""The observations that are read, by level."""


def lab2d_level(name: str) -> Any:
    """A level of DeepMind Lab2D, by its own API."""
    import dmlab2d
    from dmlab2d import runfiles_helper

    settings = {"levelName": name, "episodeLengthFrames": "1000"}
    return dmlab2d.Lab2d(runfiles_helper.find(), settings)


def lab2d(name: str, seed: int | None) -> Any:
    """The same as a `dmlab2d.Environment`, which is dm_env's."""
    import dmlab2d

    return dmlab2d.Environment(lab2d_level(name), LAB2D_SHOWN[name], seed)
