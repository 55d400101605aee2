"""What an env declares of itself: its spaces, and which interface it has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from corral import errors
from corral._python_env import are_equal, as_gymnasium, takes_seed
from corral.managers.timestep import BaseEnvInfo, element_of


@dataclass(frozen=True)
class Declared:
    """The spaces that an env declares.

    Attributes:
        observation, action, reward: Gymnasium's spaces; None where the env declares none.
    """

    observation: Any
    action: Any
    reward: Any


def is_modern(env: Any) -> bool:
    """Whether an env has Gymnasium's `reset`, which takes a seed and gives an info; else it has
    DI-engine's or old gym's, which gives the observation alone."""
    try:
        if takes_seed(env):
            return True
    except (TypeError, ValueError):
        # Python cannot tell what it takes.
        pass
    return isinstance(env, gymnasium.Env) and not callable(getattr(env, "seed", None))


def declared(env: Any) -> Declared:
    """The spaces of an env: its attributes, or what its `info()` tells."""
    told = info_of(env)
    return Declared(
        *(
            _space(getattr(env, f"{name}_space", None), getattr(told, f"{short}_space", None))
            for name, short in (("observation", "obs"), ("action", "act"), ("reward", "rew"))
        )
    )


def info_of(env: Any) -> Any:
    """What the `info()` of a DI-engine env tells; None for an env without."""
    info = getattr(env, "info", None)
    told = info() if callable(info) and not is_modern(env) else None
    return told if hasattr(told, "obs_space") else None


def env_info(env: Any) -> Any:
    """A `BaseEnvInfo`: the env's own, or one that is made of its spaces."""
    told = info_of(env)
    if told is not None:
        return told
    found = declared(env)
    reward = found.reward or spaces.Box(-np.inf, np.inf, (), np.float64)
    return BaseEnvInfo(
        getattr(env, "agent_num", 1),
        element_of(found.observation),
        element_of(found.action),
        element_of(reward),
        getattr(env, "use_wrappers", None),
    )


def check_same(found: Declared, expected: Declared, env_id: int) -> None:
    """Errors where an env's spaces are not those of env 0.

    Raises:
        SpaceError: names the env and both spaces.
    """
    for name in ("observation", "action", "reward"):
        own, first = getattr(found, name), getattr(expected, name)
        is_other = (own is None) != (first is None)
        if is_other or (own is not None and are_equal(own, first) is False):
            raise errors.SpaceError(
                f"the {name} space of env {env_id} is {own}, and that of env 0 is {first}: all "
                "envs of a manager have the same spaces"
            )


def _space(attribute: Any, element: Any) -> Any:
    """Gymnasium's space of an attribute, or of what `info()` tells in its place."""
    if attribute is not None:
        return as_gymnasium(attribute)
    if element is None:
        return None
    return _of_element(getattr(element, "shape", None), getattr(element, "value", None))


def _of_element(shape: Any, value: Any) -> Any:
    """The space of an `EnvElementInfo` that names a dtype: its shape and dtype, without its bounds,
    which DI-engine does not hold envs to."""
    if isinstance(shape, Mapping):
        values = value if isinstance(value, Mapping) else {}
        own = "dtype" in values
        parts = {
            key: _of_element(one, values if own else values.get(key)) for key, one in shape.items()
        }
        return None if None in parts.values() else spaces.Dict(list(parts.items()))
    if not isinstance(shape, tuple | list) or not isinstance(value, Mapping):
        return None
    if value.get("dtype") is None:
        return None
    dtype: Any = np.dtype(value["dtype"])
    if dtype.kind == "b":
        return spaces.Box(0, 1, tuple(shape), dtype)
    if dtype.kind not in "iuf":
        return None
    low, high = -np.inf, np.inf
    if dtype.kind != "f":
        low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    return spaces.Box(low, high, tuple(shape), dtype)
