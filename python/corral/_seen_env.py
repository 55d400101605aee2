"""A Python env as `corral.compat.gymnasium` shows it to the native half."""

from __future__ import annotations

import copy
from typing import Any

AS_IT_IS = "corral:as it is"
"""An option of a reset that begins an episode without telling the env."""


class SeenEnv:
    """An env that can be stepped before its first reset, and whose observation space is one that
    all envs have.

    Attributes:
        env: the env.
    """

    def __init__(self, env: Any, observation_space: Any = None) -> None:
        self.env = env
        self.step = env.step
        self.observation_space = (
            env.observation_space if observation_space is None else observation_space
        )

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        """As the env's, but for `AS_IT_IS`: an observation that nobody is shown."""
        if options is not None and AS_IT_IS in options:
            # A draw of the space itself would change the program's draws.
            return copy.deepcopy(self.observation_space).sample(), {}
        return self.env.reset(seed=seed, options=options)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.env, name)
