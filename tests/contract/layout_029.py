"""Tells what vector envs put into their infos, in words that JSON carries: run by Gymnasium 0.29 of
itself, and by the tests of ours.

Nothing here uses corral: Gymnasium 0.29 is in a venv without it.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

N = 3


class Chatty(gymnasium.Env):  # type: ignore[type-arg]
    """An env whose infos are of every kind: at every step, at some, at resets, at ends."""

    observation_space = spaces.Dict(
        {"at": spaces.Discrete(50), "far": spaces.Box(-9.0, 9.0, (2,), np.float32)}
    )
    action_space = spaces.Discrete(2)

    def __init__(self, number: int) -> None:
        self.number, self.at, self.episodes = number, 0, 0

    def _seen(self) -> Any:
        return {"at": self.at, "far": np.array([self.at, self.number], np.float32)}

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        self.at, self.episodes = 0, self.episodes + 1
        info = {"episodes": self.episodes, "word": f"begin {self.episodes}"}
        return self._seen(), info

    def step(self, action: Any) -> Any:
        self.at += 1 + int(action)
        info: dict[str, Any] = {
            "whole": self.at,
            "real": self.at / 2,
            "flag": self.at % 2 == 0,
            "narrow": np.float32(self.at / 3),
            "array": np.arange(3, dtype=np.int16) + self.at,
            "dict": {"inner": self.at, "deep": {"text": "x" * self.at}},
            "list": [self.at, None],
            "word": f"at {self.at}",
        }
        if self.number == 1:
            info["own"] = self.at
        if self.at % 3 == 0:
            info["seldom"] = np.zeros((2, self.at % 2 + 1))
        over = self.at >= 5 + self.number
        return self._seen(), 1.0, over, self.at >= 9, info


def told(value: Any) -> Any:
    """A value with its type, in what JSON has."""
    if isinstance(value, dict):
        return {name: told(one) for name, one in value.items()}
    if isinstance(value, np.ndarray) and value.dtype == object:
        return ["objects", [told(one) for one in value]]
    if isinstance(value, np.ndarray):
        return [str(value.dtype), list(value.shape), value.tolist()]
    if isinstance(value, np.generic):
        return [str(value.dtype), value.item()]
    if isinstance(value, list | tuple):
        return [type(value).__name__, [told(one) for one in value]]
    return [type(value).__name__, value]


def without_time(infos: Any) -> Any:
    """The infos, with zeros for the seconds that episodes took."""
    for info in infos.get("final_info", ()):
        if info is not None and "episode" in info:
            info["episode"]["t"] = info["episode"]["t"] * 0
    return infos


def account(envs: Any, steps: int) -> list[Any]:
    """What the envs put into infos, at a reset and in `steps` steps, with fixed actions."""
    shown = [told(envs.reset(seed=3)[1])]
    rng = np.random.Generator(np.random.PCG64(0))
    highest = int(envs.single_action_space.n)
    for _ in range(steps):
        shown.append(told(without_time(envs.step(rng.integers(0, highest, N))[4])))
    return shown


def _of_029(name: str, number: int, options: dict[str, Any]) -> Any:
    env = Chatty(number) if name == "chatty" else gymnasium.make(name, **options)
    return gymnasium.wrappers.RecordEpisodeStatistics(env)


if __name__ == "__main__":
    asked = json.loads(sys.argv[1])
    assert gymnasium.__version__.startswith("0.29")
    makers = [lambda k=k: _of_029(asked["env"], k, asked["options"]) for k in range(N)]
    print(json.dumps(account(gymnasium.vector.SyncVectorEnv(makers), asked["steps"])))
