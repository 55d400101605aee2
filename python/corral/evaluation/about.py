"""What is evaluated, as plain values that a file can hold."""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from corral._native import __version__
from corral.vector import VectorEnv

# Options of vec envs that no episode of an index depends on.
_WITHOUT_EFFECT = frozenset(
    (
        "autoreset_mode",
        "batch_size",
        "episode_statistics",
        "info_layout",
        "lazy_frames",
        "max_restarts",
        "num_threads",
        "on_failure",
        "record",
        "render_mode",
        "reset_timeout",
        "seed",
        "thread_affinity_offset",
        "timeout",
    )
)


@dataclass(frozen=True)
class About:
    """What an evaluation is of, whoever the policy is.

    Attributes:
        id: the env's.
        config: the options that its episodes depend on, the time limit aside.
        max_episode_steps: the time limit in force, or None.
        spaces: a digest of what is observed and of what actions there are: of the envs of a library
            nothing else may tell one from another.
        version: corral's.
    """

    id: str
    config: dict[str, Any]
    max_episode_steps: int | None
    spaces: str
    version: str = __version__

    @classmethod
    def of(cls, env: VectorEnv, config: Mapping[str, Any] | None) -> About:
        """What `env`, made with `config` by an id, is; None where somebody else made it."""
        if config is None:
            config = {} if env.spec is None else env.spec.kwargs
        # Gymnasium's spec of one of ours names it, and the time limit is told by itself.
        leave_out = _WITHOUT_EFFECT | {"corral_id", "max_episode_steps"}
        kept = {name: plain(value) for name, value in config.items() if name not in leave_out}
        native = env.native
        if native.frame_stack is not None:
            kept["frame_stack"] = native.frame_stack
        spaces = (
            native.observation_tree,
            native.observation_leaves,
            native.action_tree,
            native.action_leaves,
        )
        digest = hashlib.sha256(repr(spaces).encode(errors="surrogatepass")).hexdigest()
        return cls(native.id, kept, env.max_episode_steps, digest)


def plain(value: Any) -> Any:
    """A value as JSON has it, which a file gives back equal; a text of what JSON does not have."""
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if value is None or isinstance(value, bool | str | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, Mapping):
        return {str(name): plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    return os.fsdecode(value) if isinstance(value, os.PathLike) else repr(value)


def number(value: float) -> float | str:
    """A float as JSON has it: what is not finite as text, which `float` reads."""
    return value if math.isfinite(value) else str(value)
