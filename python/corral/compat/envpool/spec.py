"""What EnvPool tells of envs: their config, and the spaces of one."""

from __future__ import annotations

import keyword
import pprint
import re
from collections import namedtuple
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from gymnasium import Space
from gymnasium import spaces as gym_spaces

from corral import spaces
from corral.vector import VectorEnv

INT32 = np.iinfo(np.int32)


class EnvSpec:
    """What `make` makes, or what `make_spec` says that it would.

    Attributes:
        config: a named tuple of all options.
        observation_space, action_space: of one env; `gymnasium_observation_space` and
            `gymnasium_action_space` are the same.
        reward_threshold: the return that counts as solved, or None.
    """

    def __init__(self, id: str, config: Mapping[str, Any], envs: VectorEnv) -> None:
        self.id = id
        self.config = record("Config", config)
        self.observation_space: Space[Any] = envs.single_observation_space
        self.action_space: Space[Any] = envs.single_action_space
        self.gymnasium_observation_space = self.observation_space
        self.gymnasium_action_space = self.action_space
        self.reward_threshold: float | None = config["reward_threshold"]
        self._info_leaves = envs.native.info_leaves

    def observation_spec(self) -> Any:
        """dm_env's specs of one env's observation and infos, in a named tuple `State`.

        Raises:
            ImportError: without dm_env.
        """
        state: dict[str, Any] = {
            "env_id": _dm_spec(gym_spaces.Box(INT32.min, INT32.max, (), np.int32), "env_id")
        }
        state["players"] = {"env_id": state["env_id"]}
        if isinstance(self.observation_space, gym_spaces.Dict):
            for key, inner in self.observation_space.spaces.items():
                state[key] = _dm_spec(as_int32(inner), key)
        else:
            state["obs"] = _dm_spec(as_int32(self.observation_space), "obs")
        for leaf in self._info_leaves:
            *outer, key = leaf["name"].split(".")
            place = state
            for name in outer:
                place = place.setdefault(name, {})
            place[key] = _dm_spec(spaces.from_leaves(("leaf", 0), [leaf]), key)
        return record("State", state)

    def action_spec(self) -> Any:
        """dm_env's spec of one env's action.

        Raises:
            ImportError: without dm_env.
        """
        if isinstance(self.action_space, gym_spaces.Dict):
            parts = self.action_space.spaces.items()
            return record("Action", {key: _dm_spec(as_int32(one), key) for key, one in parts})
        return _dm_spec(as_int32(self.action_space), "action")

    def __repr__(self) -> str:
        return f"EnvSpec({self.id}, {pprint.pformat(self.config._asdict())})"


def as_int32(space: Space[Any]) -> Space[Any]:
    """A space whose labels are int32, as EnvPool's are."""
    match space:
        case gym_spaces.Dict():
            return gym_spaces.Dict([(key, as_int32(one)) for key, one in space.spaces.items()])
        case gym_spaces.Tuple():
            return gym_spaces.Tuple([as_int32(one) for one in space.spaces])
        case gym_spaces.Discrete() if is_narrow(space):
            return spaces.discrete(int(space.n), int(space.start), np.int32)
        case _:
            return space


def is_narrow(space: gym_spaces.Discrete) -> bool:
    """Whether an int32 holds every label."""
    return bool(INT32.min <= space.start and space.start + space.n - 1 <= INT32.max)


def record(name: str, values: Mapping[str, Any]) -> Any:
    """A dict as a named tuple, and dicts in it likewise. A key that is no identifier gets
    underscores."""
    inner = [record(key, one) if isinstance(one, dict) else one for key, one in values.items()]
    return _record_type(name, tuple(values))(*inner)


@lru_cache(maxsize=256)
def _record_type(name: str, keys: Sequence[str]) -> Any:
    return namedtuple(_identifier(name), [_identifier(key) for key in keys])


def _identifier(text: str) -> str:
    known = re.sub(r"\W", "_", text)
    is_none = not known or known[0].isdigit() or known[0] == "_" or keyword.iskeyword(known)
    return f"x_{known}" if is_none else known


def _dm_spec(space: Space[Any], name: str) -> Any:
    from corral.adapters import dm_env_specs

    return dm_env_specs.of_space(space, name, is_batch=True, is_ours=True).spec
