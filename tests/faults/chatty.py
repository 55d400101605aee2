"""An env whose rows are of all kinds: fixed and loose observations, infos small and large."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces


class Chatty(gymnasium.Env[Any, Any]):
    """All that it shows is a function of its seed and actions."""

    observation_space = spaces.Dict(
        {
            "box": spaces.Box(-np.inf, np.inf, (3,), np.float64),
            "text": spaces.Text(20),
            "flag": spaces.MultiBinary(2),
        }
    )
    action_space = spaces.Dict(
        {"push": spaces.Box(-1, 1, (2,), np.float32), "say": spaces.Text(8, min_length=1)}
    )

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.trace, self.steps = self.np_random.random(3), 0
        told = {} if options is None else {"options": sorted(options.items())}
        return self._show("begun"), told

    def _show(self, text: str) -> Any:
        flag = (self.trace[:2] > 0.5).astype(np.int8)
        return {"box": self.trace.copy(), "text": text, "flag": flag}

    def step(self, action: Any) -> Any:
        self.steps += 1
        self.trace[:2] += action["push"]
        self.trace[2] += self.np_random.random()
        infos: dict[str, Any] = {}
        chance = self.np_random.random()
        if chance < 0.5:
            infos["small"] = float(chance)
        if chance < 0.1:
            # More than a socket holds.
            infos["large"] = np.full(300_000, chance)
        reward, ends = float(self.trace[2]), bool(self.np_random.random() < 0.1)
        return self._show(action["say"]), reward, ends, chance > 0.95, infos

    def tell(self, other: Any) -> Any:
        return self.steps, self.trace.tobytes(), other
