"""Which key plays which action."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium import spaces

from corral import errors

ARROWS = ("left", "right", "up", "down")
NAMES = (*ARROWS, "space", "enter")
"""What keys are called that are no single letter."""

# By an id's name, without namespace and version: what an env's page says of its actions.
_KNOWN = {
    "2048": "up=0,right=1,down=2,left=3",
    "Acrobot": "left=0,down=1,right=2",
    "CartPole": "left=0,right=1",
    "Catch": "left=0,down=1,right=2",
    "CliffWalking": "up=0,right=1,down=2,left=3",
    "CliffWalkingSlippery": "up=0,right=1,down=2,left=3",
    "FrozenLake": "left=0,down=1,right=2,up=3",
    "FrozenLake8x8": "left=0,down=1,right=2,up=3",
    "Maze": "space=0,up=1,right=2,down=3,left=4",
    "MountainCar": "left=0,down=1,right=2",
    "Snake": "up=0,right=1,down=2,left=3",
    "Taxi": "down=0,up=1,right=2,left=3,p=4,d=5",
}
# Commas before the next name; those within a list are its own.
_BETWEEN = re.compile(r",(?=[^,\[\]=]+=)")
_DIGITS = 10


def keys_of(id: str, space: spaces.Space[Any], given: str | None) -> dict[str, Any]:
    """The action of each key.

    Digits play a `Discrete` space of ten actions at most, arrows what is known of the env, or the
    ends of a single number's range; `given` ("a=0,d=1") comes first.

    Raises:
        ArgumentError: for keys or actions that there are not, and for no keys at all.
    """
    keys: dict[str, Any] = {}
    if isinstance(space, spaces.Discrete):
        first, count = int(space.start), int(space.n)
        if count <= _DIGITS:
            keys |= {str(k): first + k for k in range(count)}
        name = re.sub(r"-v\d+$", "", re.split("[/:]", id)[-1])
        keys |= {
            key: action
            for key, action in _read(_KNOWN.get(name, "")).items()
            if space.contains(action)
        }
    elif isinstance(space, spaces.Box) and space.shape in ((), (1,)) and space.is_bounded():
        low, high = space.low, space.high
        keys |= {"left": low, "down": (low + high) / 2, "space": (low + high) / 2, "right": high}
    for key, action in _read(given or "").items():
        keys[key] = _checked(key, action, space)
    if not keys:
        raise errors.ArgumentError(
            f"no keys are known for {id}, whose actions are {space}: say which, such as "
            "--keys 'left=[-1,0],right=[1,0]'"
        )
    return keys


def _read(text: str) -> dict[str, Any]:
    found = {}
    for one in _BETWEEN.split(text) if text.strip() else []:
        key, _, value = (part.strip() for part in one.partition("="))
        if len(key) != 1 and key not in NAMES:
            raise errors.ArgumentError(
                f"'{key}' is no key: write letters, digits, or {', '.join(NAMES)}"
            )
        if key == "q":
            raise errors.ArgumentError("the key 'q' ends the game: take another")
        try:
            found[key] = json.loads(value)
        except json.JSONDecodeError:
            raise errors.ArgumentError(
                f"'{one.strip()}' is not KEY=ACTION: an action is JSON, such as 1 or [0.5,0]"
            ) from None
    return found


def _checked(key: str, action: Any, space: spaces.Space[Any]) -> Any:
    """The action as the space has it."""
    fitted = action
    if isinstance(space, spaces.Box | spaces.MultiDiscrete | spaces.MultiBinary):
        try:
            fitted = np.asarray(action, dtype=space.dtype).reshape(space.shape)
        except (TypeError, ValueError, OverflowError):
            fitted = None
    elif isinstance(space, spaces.Dict) and isinstance(action, Mapping):
        fitted = {name: _checked(key, action.get(name), one) for name, one in space.items()}
    elif isinstance(space, spaces.Tuple) and isinstance(action, list):
        fitted = tuple(_checked(key, part, one) for part, one in zip(action, space.spaces))
    if not space.contains(fitted):
        raise errors.ArgumentError(f"key '{key}': {json.dumps(action)} is no action of {space}")
    return fitted


def told(keys: Mapping[str, Any]) -> str:
    """The keys and their actions, in one line."""
    signs = {"left": "←", "right": "→", "up": "↑", "down": "↓"}
    parts = []
    for key, action in keys.items():
        value = np.asarray(action).tolist() if isinstance(action, np.ndarray) else action
        parts.append(f"{signs.get(key, key)} {value}")
    return "  ".join(parts)
