"""Python objects in a leaf of bytes.

What has no fixed shape goes between processes by messages, each of which costs more than a step of
a small env. Objects that are small when pickled go in a leaf of a fixed number of bytes instead, in
the memory that workers share. An object that does not fit goes by message.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

SMALL = 512
"""Bytes of a leaf for an info, a reward or an action."""
UNKNOWN = 4096
"""Bytes of a leaf for an observation of unknown size, beside its info and its reward."""
LARGE = 1 << 20
"""Bytes of a leaf at most."""

# A pickle begins with 0x80. A first byte below it is the number of a form of rewards, whose value
# is the row's own reward; 0 is a leaf without an object.
_FORMS: list[tuple[Any, tuple[int, ...]]] = [
    (np.dtype(np.float32), (1,)),
    (np.dtype(np.float64), (1,)),
]
_NUMBERS = {form: number for number, form in enumerate(_FORMS, 1)}


def space_of(size: int) -> spaces.Box:
    """The space of such a leaf."""
    return spaces.Box(0, 255, (min(size, LARGE),), np.uint8)


def packed(value: Any, size: int) -> npt.NDArray[np.uint8] | None:
    """A leaf that holds a value; None where it is larger than the leaf, or cannot be pickled."""
    try:
        data = pickle.dumps(value, 5)
    except Exception:
        # A message carries functions too, and says why it cannot carry the rest.
        return None
    return None if len(data) > size else np.frombuffer(data.ljust(size, b"\0"), np.uint8)


def unpacked(leaf: npt.NDArray[np.uint8]) -> Any:
    """The value in a leaf."""
    return pickle.loads(leaf)  # type: ignore[arg-type]


def empty(size: int) -> npt.NDArray[np.uint8]:
    """A leaf without an object."""
    return np.zeros(size, np.uint8)


def reward_forms(size: int) -> dict[Any, npt.NDArray[np.uint8]]:
    """The leaf of each form of rewards, by `(dtype, shape)`."""
    leaves = {}
    for form, number in _NUMBERS.items():
        leaves[form] = empty(size)
        leaves[form][0] = number
    return leaves


def formed(number: int, reward: float) -> Any:
    """A reward in the form of a number that a leaf began with."""
    dtype, shape = _FORMS[number - 1]
    return np.full(shape, reward, dtype)


def packed_actions(
    actions: Sequence[Any], size: int
) -> tuple[npt.NDArray[np.uint8], dict[int, Any]]:
    """The leaves of actions `(len(actions), size)`, and by place the actions that fit none."""
    pieces, others = [], {}
    for place, action in enumerate(actions):
        try:
            data = pickle.dumps(action, 5)
        except Exception:
            data = None
        if data is None or len(data) > size:
            others[place], data = action, b""
        pieces.append(data.ljust(size, b"\0"))
    return np.frombuffer(b"".join(pieces), np.uint8).reshape(len(pieces), size), others
