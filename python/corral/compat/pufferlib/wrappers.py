"""PufferLib's wrappers of Gymnasium envs."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces as gym_spaces

from corral.compat.pufferlib.base import APIUsageError, unroll_nested_dict


class EpisodeStats(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Tells of an episode at its end: infos are empty until then.

    The last step's infos are `episode_return`, `episode_length`, and of each key that the env's
    steps told the sum, where there is one.
    """

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        super().__init__(env)
        self._begin()

    def _begin(self) -> None:
        self._told: dict[str, list[Any]] = {}
        self._return: Any = 0
        self._length = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begins an episode; the infos are the env's own."""
        self._begin()
        return self.env.reset(seed=seed, options=options)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Plays one action."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        if info:
            for key, value in unroll_nested_dict(info):
                self._told.setdefault(key, []).append(value)
        self._return += reward
        self._length += 1
        shown: dict[str, Any] = {}
        if terminated or truncated:
            shown = {"episode_return": self._return, "episode_length": self._length}
            for key, values in self._told.items():
                try:
                    shown[key] = sum(values)
                except TypeError:
                    continue
        return observation, reward, terminated, truncated, shown


class ClipAction(gymnasium.ActionWrapper[Any, Any, Any]):
    """Takes any finite float, and clips it to the env's own bounds."""

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        super().__init__(env)
        space = env.action_space
        if not isinstance(space, gym_spaces.Box):
            raise APIUsageError(f"ClipAction wraps envs whose actions are a Box, not {space}")
        self._low, self._high = space.low, space.high
        limits: Any = np.finfo(space.dtype)
        self.action_space = gym_spaces.Box(limits.min, limits.max, space.shape, limits.dtype)

    def action(self, action: Any) -> Any:
        """The action within the bounds."""
        return np.clip(action, self._low, self._high)


class ResizeObservation(gymnasium.ObservationWrapper[Any, Any, Any]):
    """Every `downscale`-th row and column of an image of one channel."""

    def __init__(self, env: gymnasium.Env[Any, Any], downscale: int = 2) -> None:
        super().__init__(env)
        self.downscale = downscale
        shape = env.observation_space.shape
        if shape is None or len(shape) != 2 or any(side % downscale for side in shape):
            raise APIUsageError(
                f"ResizeObservation takes images (height, width) whose sides {downscale} divides, "
                f"not {env.observation_space}"
            )
        height, width = (side // downscale for side in shape)
        self.observation_space = gym_spaces.Box(0, 255, (height, width), np.uint8)

    def observation(self, observation: Any) -> Any:
        """The smaller image."""
        return observation[:: self.downscale, :: self.downscale]
