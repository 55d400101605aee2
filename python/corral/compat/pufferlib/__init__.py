"""PufferLib 3's `vector`, `emulation` and `PufferEnv`, on NumPy 2, over corral's runners.

Change the import and keep the rest:

    import corral.compat.pufferlib as pufferlib
    import corral.compat.pufferlib.vector

`vector.make` takes a corral id too, whose envs step natively. What is different on purpose stands
in `docs/trainers/pufferlib.md`.
"""

from corral.compat.pufferlib import emulation, spaces, vector
from corral.compat.pufferlib.base import (
    APIUsageError,
    InvalidAgentError,
    PufferEnv,
    set_buffers,
    unroll_nested_dict,
)
from corral.compat.pufferlib.native import NativeEnvs
from corral.compat.pufferlib.wrappers import ClipAction, EpisodeStats, ResizeObservation

__all__ = [
    "APIUsageError",
    "ClipAction",
    "EpisodeStats",
    "InvalidAgentError",
    "NativeEnvs",
    "PufferEnv",
    "ResizeObservation",
    "emulation",
    "set_buffers",
    "spaces",
    "unroll_nested_dict",
    "vector",
]
