"""Tuples of space types for `isinstance`, and the space of several agents."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np

from corral import errors

Box = (gymnasium.spaces.Box,)
Dict = (gymnasium.spaces.Dict,)
Discrete = (gymnasium.spaces.Discrete,)
MultiBinary = (gymnasium.spaces.MultiBinary,)
MultiDiscrete = (gymnasium.spaces.MultiDiscrete,)
Tuple = (gymnasium.spaces.Tuple,)


def joint_space(space: gymnasium.Space[Any], n: int) -> gymnasium.Space[Any]:
    """The space of `n` agents that have this space each.

    Args:
        space: a Discrete, MultiDiscrete or Box.
        n: how many agents.

    Returns:
        Of a Discrete a MultiDiscrete `(n,)`; of a MultiDiscrete and a Box a Box `(n, …)` of the
        same dtype.

    Raises:
        UnsupportedError: for any other space.
    """
    if isinstance(space, gymnasium.spaces.Discrete):
        return gymnasium.spaces.MultiDiscrete([int(space.n)] * n)
    if isinstance(space, gymnasium.spaces.MultiDiscrete):
        high: Any = np.repeat(space.nvec[None] - 1, n, axis=0)
        return gymnasium.spaces.Box(0, high, high.shape, space.dtype)
    if isinstance(space, gymnasium.spaces.Box):
        low, high = (np.repeat(side[None], n, axis=0) for side in (space.low, space.high))
        return gymnasium.spaces.Box(low, high, low.shape, space.dtype)
    raise errors.UnsupportedError(
        f"agents have a Discrete, MultiDiscrete or Box each, not {space}: wrap the env in "
        "emulation.GymnasiumPufferEnv"
    )
