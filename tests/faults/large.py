"""An env whose observations are large."""

from __future__ import annotations

import os
import resource
from typing import Any

import gymnasium
import numpy as np


class Large(gymnasium.Env[Any, Any]):
    """4 MiB that say how many steps were played."""

    observation_space = gymnasium.spaces.Box(0, 255, (4 << 20,), np.uint8)
    action_space = gymnasium.spaces.Discrete(4)

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.shown = np.zeros(4 << 20, np.uint8)
        return self.shown, {}

    def step(self, action: Any) -> Any:
        self.shown += 1
        return self.shown, 0.0, False, False, {}

    def limit(self, mebibytes: int) -> None:
        """Leaves this process no more addresses than so many."""
        with open("/proc/self/statm") as file:
            room = int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE") + (mebibytes << 20)
        resource.setrlimit(resource.RLIMIT_AS, (room, room))
