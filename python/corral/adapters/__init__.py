"""A `corral.VectorEnv` as what other libraries train on. Each imports its library when called."""

from __future__ import annotations

from typing import TYPE_CHECKING

from corral.vector import VectorEnv

if TYPE_CHECKING:
    from corral.adapters.sb3 import SB3VecEnv


def to_sb3(envs: VectorEnv) -> SB3VecEnv:
    """A Stable-Baselines3 `VecEnv` of these envs; closing it closes them.

    Args:
        envs: made with `autoreset_mode="same_step"`, which is SB3's.

    Returns:
        A real subclass of SB3's `VecEnv`, with SB3's conventions: float32 rewards, `dones`, one
        info dict per env with `terminal_observation` and `TimeLimit.truncated`, `reset_infos`,
        seeds and options that hold for the next reset. Envs made with `episode_statistics=True`
        tell `info["episode"]`, as SB3's Monitor does.

    Raises:
        UnsupportedError: for envs of another autoreset mode.
        ImportError: without stable-baselines3.
    """
    from corral.adapters.sb3 import SB3VecEnv

    return SB3VecEnv(envs)


__all__ = ["to_sb3"]
