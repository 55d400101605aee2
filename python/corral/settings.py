"""What `make_vec` and `from_gymnasium` have in common: how a vec env of a source is made."""

from __future__ import annotations

import dataclasses
import numbers
import operator
import os
from typing import Any, cast

import numpy as np
from gymnasium.vector import AutoresetMode

from corral import _native, errors
from corral.frames import LazyVectorEnv
from corral.vector import VectorEnv, autoreset_name

MAX_ENVS = 1 << 24
"""As many envs as a vec env has; the core's own limit."""
MAX_FRAMES = 1 << 16
"""As many frames as are stacked; the core's own limit."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Settings:
    """See `corral.make_vec` for each."""

    autoreset_mode: str | AutoresetMode = "next_step"
    seed: int | None = None
    max_episode_steps: int | None = None
    episode_statistics: bool = False
    action_bounds: str = "env"
    num_threads: int | None = None
    batch_size: int | None = None
    timeout: float | None = None
    on_failure: str = "raise"
    max_restarts: int = 10
    thread_affinity_offset: int | None = None
    record: str | os.PathLike[str] | None = None
    frame_stack: int | None = None
    lazy_frames: bool = False
    normalize_observation: bool = False
    normalize_reward: bool = False
    reward_gamma: float = 0.99

    def __post_init__(self) -> None:
        if flag("lazy_frames", self.lazy_frames) and self.frame_stack is None:
            raise errors.ArgumentError(
                "lazy_frames says how frames are stacked: give frame_stack too"
            )

    def native(self, source: _native.Source, num_envs: int) -> _native.VecEnv:
        """The native vec env of `num_envs` envs of a source."""
        offset = self.thread_affinity_offset
        frame_stack = self.frame_stack
        if frame_stack is not None:
            frame_stack = whole("frame_stack", frame_stack, MAX_FRAMES)
        normalize_reward = flag("normalize_reward", self.normalize_reward)
        return _native.make(
            source,
            num_envs,
            seed=self.seed,
            autoreset_mode=autoreset_name(self.autoreset_mode),
            max_episode_steps=self.max_episode_steps,
            episode_statistics=flag("episode_statistics", self.episode_statistics),
            action_bounds=text("action_bounds", self.action_bounds),
            num_threads=self.num_threads,
            batch_size=self.batch_size,
            timeout=self.timeout,
            on_failure=text("on_failure", self.on_failure),
            max_restarts=self.max_restarts,
            thread_affinity_offset=None if isinstance(offset, int) and offset == -1 else offset,
            record=None if self.record is None else file_path("record", self.record),
            frame_stack=None if self.lazy_frames else frame_stack,
            normalize_observation=flag("normalize_observation", self.normalize_observation),
            reward_gamma=_gamma(self.reward_gamma) if normalize_reward else None,
        )

    def vector(self, native: _native.VecEnv, render_mode: str | None) -> VectorEnv:
        """The native vec env with Gymnasium's face."""
        if self.lazy_frames:
            frames = operator.index(cast("int", self.frame_stack))
            return LazyVectorEnv(native, frames, render_mode=render_mode)
        return VectorEnv(native, render_mode=render_mode)


def text(name: str, value: Any) -> str:
    """A string, checked to be one."""
    if not isinstance(value, str):
        raise errors.ArgumentTypeError(f"{name} is a str, not {value!r}")
    if not value.isascii() and any("\ud800" <= letter <= "\udfff" for letter in value):
        raise errors.ArgumentError(f"{name} is {value!r}: one half of a character is no text")
    return value


def whole(name: str, value: Any, most: int, least: int = 1) -> int:
    """A number of things, checked to be an int from `least` to `most`."""
    if isinstance(value, bool | np.bool_):
        raise errors.ArgumentTypeError(f"{name} is an int, not {value!r}")
    try:
        number = operator.index(value)
    except TypeError:
        raise errors.ArgumentTypeError(f"{name} is an int, not {value!r}") from None
    if number < least:
        raise errors.ArgumentError(f"{name} is {number}: it must be at least {least}")
    if number > most:
        raise errors.ArgumentError(f"{name} is {number}: it must be at most {most}")
    return number


def flag(name: str, value: Any) -> bool:
    """A truth value, checked to be one."""
    if not isinstance(value, bool | np.bool_):
        raise errors.ArgumentTypeError(f"{name} is a bool, not {value!r}")
    return bool(value)


def file_path(name: str, value: Any) -> str:
    """A path, checked to be a str or a Path."""
    if not isinstance(value, str | os.PathLike):
        raise errors.ArgumentTypeError(f"{name} is a path (a str or a Path), not {value!r}")
    return os.fsdecode(value)


def _gamma(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise errors.ArgumentTypeError(f"reward_gamma is a float, not {value!r}")
    if not 0 <= (gamma := float(value)) <= 1:
        raise errors.ArgumentError(f"reward_gamma is {value!r}: it must be from 0 to 1")
    return gamma
