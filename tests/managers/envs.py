"""Envs for managers: of Gymnasium's interface, of DI-engine's, and some that misbehave."""

from __future__ import annotations

import os
import signal
import time
from collections import namedtuple
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

# DI-engine's own is another class than corral's: only the fields count.
Timestep = namedtuple("Timestep", ["obs", "reward", "done", "info"])
Info = namedtuple("Info", ["agent_num", "obs_space", "act_space", "rew_space", "use_wrappers"])
Element = namedtuple("Element", ["shape", "value"])


class Counter(gymnasium.Env[Any, Any]):
    """Shows `[number, seed or -1, episode, step]`; an episode has `length` steps and is truncated,
    or terminates where `terminates`."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 10}  # noqa: RUF012
    observation_space = spaces.Box(-np.inf, np.inf, (4,), np.float64)
    action_space = spaces.Discrete(3)
    colour = "red"

    def __init__(self, number: int = 0, length: int = 3, terminates: bool = True) -> None:
        self.number, self.length, self.terminates = number, length, terminates
        self.seeded, self.episode, self.at = -1, -1, 0
        self.render_mode = "rgb_array"
        self.options: Any = None
        self.taken: list[Any] = []

    def _shown(self) -> Any:
        return np.array([self.number, self.seeded, self.episode, self.at], np.float64)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        self.seeded = -1 if seed is None else seed
        self.options = options
        self.episode, self.at = self.episode + 1, 0
        return self._shown(), {"ignored": True}

    def step(self, action: Any) -> Any:
        self.taken.append(action)
        self.at += 1
        is_over = self.at >= self.length
        info = {"at": self.at, "action": action}
        ends = (is_over, False) if self.terminates else (False, is_over)
        return self._shown(), float(self.at), *ends, info

    def render(self) -> Any:
        shade = 40 * (self.number % 3) + 10 * self.at + 80 * (self.episode % 2)
        return np.full((32, 32, 3), shade, np.uint8)

    def reward_shaping(self, transitions: Any) -> Any:
        return [(self.number, one) for one in transitions]

    def a_method(self) -> None:
        """What no manager calls."""


class Engine:
    """An env of DI-engine's interface: it declares no spaces, and tells what it was told.

    An observation is `{"log": seeds, "at": array}`; rewards are float32 of shape (1,).
    """

    def __init__(self, number: int = 0, length: int = 3) -> None:
        self.number, self.length = number, length
        self.seeds: list[Any] = []
        self.params: list[Any] = []
        self.replay_path: str | None = None
        self.at = self.episode = 0

    def seed(self, *seeds: Any) -> None:
        self.seeds.append(seeds)

    def reset(self, **params: Any) -> Any:
        self.params.append(params)
        self.at = 0
        self.episode += 1
        return self._shown()

    def _shown(self) -> Any:
        return {"at": np.array([self.number, self.at], np.int32), "told": tuple(self.seeds)}

    def step(self, action: Any) -> Any:
        self.at += 1
        done = self.at >= self.length
        if done and self.replay_path is not None:
            folder = Path(self.replay_path)
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"{self.episode}.txt").write_text(str(self.number))
        reward = np.array([self.at / 2], np.float32)
        return Timestep(
            self._shown(), reward, done, {"action": action, "params": list(self.params)}
        )

    def enable_save_replay(self, replay_path: str) -> None:
        self.replay_path = replay_path

    def random_action(self) -> Any:
        return np.array([7])

    def close(self) -> None:
        pass


class OldEngine(Engine):
    """As DI-engine's envs were before v0.3: `info()` tells of the spaces."""

    def info(self) -> Any:
        return Info(
            1,
            Element((2,), {"min": -9.0, "max": 9.0, "dtype": np.float32}),
            Element((1,), {"min": 0, "max": 2, "dtype": int}),
            Element((1,), {"min": 0.0, "max": 2.0}),
            None,
        )

    def _shown(self) -> Any:
        return np.array([self.number, self.at], np.float32)


class Fragile(Counter):
    """Fails as a file tells it to: the file `orders` has lines `what where count`, read anew each
    time; `count` failures of that kind are counted in files beside it."""

    def __init__(self, number: int, orders: str, length: int = 50) -> None:
        super().__init__(number, length)
        self.orders = Path(orders)
        self.is_open = True
        self._obey("make")

    def _obey(self, where: str) -> None:
        if not self.orders.exists():
            return
        for line in self.orders.read_text().splitlines():
            what, number, place, count = line.split()
            if place != where or int(number) != self.number:
                continue
            tally = self.orders.with_suffix(f".{number}.{place}")
            done = len(tally.read_text()) if tally.exists() else 0
            if done >= int(count):
                continue
            with tally.open("a") as file:
                file.write("x")
            if what == "raise":
                raise KeyError(f"told to, {done}")
            if what == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            if what == "sleep":
                time.sleep(1000)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        self._obey("reset")
        return super().reset(seed=seed, options=options)

    def step(self, action: Any) -> Any:
        self._obey("step")
        return super().step(action)

    def close(self) -> None:
        self.is_open = False
        with self.orders.with_suffix(f".{self.number}.closed").open("a") as file:
            file.write("x")


class Abnormal(Engine):
    """Its second step is abnormal, and shows nothing."""

    def step(self, action: Any) -> Any:
        timestep = super().step(action)
        if self.at == 2 and self.episode == 1:
            return Timestep(None, None, False, {"abnormal": True})
        return timestep


class Pid(Counter):
    """Shows the process that it is in."""

    def _shown(self) -> Any:
        return np.array([self.number, os.getpid(), self.episode, self.at], np.float64)


class Slow(Counter):
    """Each step takes a while."""

    def __init__(self, number: int, seconds: float, length: int = 1000) -> None:
        super().__init__(number, length)
        self.seconds = seconds

    def step(self, action: Any) -> Any:
        time.sleep(self.seconds)
        return super().step(action)


class SlowPid(Slow, Pid):
    """Each step takes a while; shows the process that it is in."""
