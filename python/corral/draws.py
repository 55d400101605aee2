"""Random actions that envs allow, for the checks of envs and libraries."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np
from gymnasium import spaces

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
        self._space = _speakable(envs.action_space)
        self._space.seed(seed)

    def __call__(self) -> Any:
        native = self._envs.native
        actions = self._space.sample()
        if self._masked:
            infos = native.observe()[1]
            leaves = leaves_of(native.action_tree, actions)
            allow(leaves, native.action_leaves, infos["action_mask"], self._rng)
        return actions


def _speakable(space: spaces.Space[Any]) -> spaces.Space[Any]:
    """A copy with texts that people might say: those of a space without a limit have a million
    letters."""
    if isinstance(space, spaces.Dict):
        return spaces.Dict([(name, _speakable(inner)) for name, inner in space.spaces.items()])
    if isinstance(space, spaces.Tuple):
        return spaces.Tuple([_speakable(inner) for inner in space.spaces])
    if isinstance(space, spaces.Text):
        most = min(space.max_length, max(space.min_length, _LETTERS))
        letters = "".join(space.character_list)
        return spaces.Text(most, min_length=space.min_length, charset=letters)
    return deepcopy(space)
