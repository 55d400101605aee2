"""Batches of envs that step themselves in Python, by one call, as a `VectorEnv`."""

from __future__ import annotations

from typing import Any, Protocol

from corral import _native, settings
from corral.settings import VecOptions
from corral.vector import VectorEnv


class PythonBatch(Protocol):
    """What the native half asks of such a batch.

    It resets each env in the step that ends its episode. Arrays have one row per env; they are
    read before the next call, and copied. What a call raises is the failure of all envs.

    Attributes:
        observation_space, action_space: one env's, as Gymnasium has them.
        num_envs: how many.
        can_reset: whether `reset` may be called again.
    """

    observation_space: Any
    action_space: Any
    num_envs: int
    can_reset: bool

    def reset(self) -> tuple[Any, list[dict[str, Any]] | None]:
        """The first observations of all envs, nested as their space, and each one's infos."""

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, list[dict[str, Any]] | None]:
        """Observations, rewards, terminations, truncations, and each one's infos."""

    def close(self) -> None:
        """Ends all envs; called once."""


def vector_env(name: str, batch: PythonBatch, *, episode_statistics: bool) -> VectorEnv:
    """The batch with Gymnasium's face; `name` is what messages call it."""
    options = VecOptions(
        autoreset_mode="same_step", num_threads=1, episode_statistics=episode_statistics
    )
    source = _native.Source.python_batch(name, batch)
    return settings.vector(settings.native(source, batch.num_envs, options), options)
