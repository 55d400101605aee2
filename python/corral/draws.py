"""Random actions that envs allow, for the checks of envs and libraries."""

from __future__ import annotations

from typing import Any

import numpy as np

from corral.spaces import allow, leaves_of
from corral.vector import VectorEnv

# Letters of a random text action, at most.
_LETTERS = 32


class Draws:
    """Random actions for envs that have begun: the same ones for the same seed and action masks."""

    def __init__(self, envs: VectorEnv, seed: int) -> None:
        self._envs = envs
        self._rng = np.random.default_rng(seed)
        self._masked = any(leaf["name"] == "action_mask" for leaf in envs.native.info_leaves)
        envs.action_space.seed(seed)

    def __call__(self) -> Any:
        native = self._envs.native
        actions = _shortened(self._envs.action_space.sample())
        if self._masked:
            infos = native.observe()[1]
            leaves = leaves_of(native.action_tree, actions)
            allow(leaves, native.action_leaves, infos["action_mask"], self._rng)
        return actions


def _shortened(actions: Any) -> Any:
    """The same with texts that people might say: a text space without a limit gives a million
    letters."""
    if isinstance(actions, dict):
        return {name: _shortened(inner) for name, inner in actions.items()}
    if isinstance(actions, tuple):
        return tuple(map(_shortened, actions))
    return actions[:_LETTERS] if isinstance(actions, str) else actions
