"""What managers give and tell: DI-engine's named tuples, and how Gymnasium's spaces become them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from gymnasium import spaces


class BaseEnvTimestep(NamedTuple):
    """What a step gave.

    Attributes:
        obs: the observation after the step; at an episode's end the final one.
        reward: the reward, as the env gave it.
        done: whether the episode is over.
        info: the env's own info. `info["TimeLimit.truncated"]` is True where the episode was
            truncated and did not terminate.
    """

    obs: Any
    reward: Any
    done: Any
    info: Any

    def __hash__(self) -> int:
        """Timesteps hold dicts, so they have no hash.

        Raises:
            TypeError: always.
        """
        raise TypeError(f"unhashable type: '{type(self).__name__}'")


class EnvElementInfo(NamedTuple):
    """What an observation, an action or a reward looks like.

    Attributes:
        shape: a tuple of ints, or a dict of shapes.
        value: a dict with "min", "max" and "dtype" (of discrete actions the max is excluded), or a
            dict of these; None where nothing is known.
    """

    shape: Any
    value: Any


class BaseEnvInfo(NamedTuple):
    """What an env tells of itself: the number of its agents, three `EnvElementInfo`, and its
    wrappers (None where it tells of none)."""

    agent_num: Any
    obs_space: Any
    act_space: Any
    rew_space: Any
    use_wrappers: Any


def element_of(space: Any) -> EnvElementInfo:
    """What DI-engine's envs would tell of such a space. A label has shape (1,), as theirs have."""
    if isinstance(space, spaces.Dict):
        parts = {key: element_of(inner) for key, inner in space.spaces.items()}
        return EnvElementInfo(
            {key: part.shape for key, part in parts.items()},
            {key: part.value for key, part in parts.items()},
        )
    if isinstance(space, spaces.Discrete):
        first = int(space.start)
        value = {"min": first, "max": first + int(space.n), "dtype": np.int64}
        return EnvElementInfo((1,), value)
    if isinstance(space, spaces.MultiDiscrete):
        ends = space.start + space.nvec
        return EnvElementInfo(space.shape, {"min": space.start, "max": ends, "dtype": space.dtype})
    if isinstance(space, spaces.Box):
        return EnvElementInfo(
            space.shape, {"min": space.low, "max": space.high, "dtype": space.dtype}
        )
    return EnvElementInfo(getattr(space, "shape", None), None)


def is_abnormal(info: Any) -> bool:
    """Whether an env says that its timestep is not to be used. An info of several agents is a list
    of dicts."""
    if isinstance(info, dict):
        return bool(info.get("abnormal", False))
    if isinstance(info, list | tuple):
        return any(is_abnormal(one) for one in info)
    return False


def as_arrays(observation: Any) -> Any:
    """Numbers and lists of numbers as arrays, within dicts too; the rest as it is."""
    if isinstance(observation, np.ndarray):
        return observation
    if isinstance(observation, dict):
        return {key: as_arrays(value) for key, value in observation.items()}
    if isinstance(observation, bool | int | float | np.generic):
        return np.asarray(observation)
    if isinstance(observation, list):
        try:
            array = np.asarray(observation)
        except ValueError:
            # Its parts have several shapes.
            return observation
        return array if array.dtype.kind in "biuf" else observation
    return observation
