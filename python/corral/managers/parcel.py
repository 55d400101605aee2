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

from corral import _native

SMALL = 512
"""Bytes of a leaf for an info and a reward."""
ACTION = 192
"""Bytes of a leaf for an action, beside its numbers."""
UNKNOWN = 4096
"""Bytes of a leaf for an observation or an action of unknown size."""
LARGE = 1 << 20
"""Bytes of a leaf at most."""

PICKLED = 0x80
"""The byte that a pickle begins with. A leaf that begins with less holds none: see `_FORMS`."""

# What a leaf without a pickle begins with:
# - of what is shown, the number of a form of rewards, whose value is the row's own; 0 for nothing;
#   `VecEnv.recv_timesteps` knows these numbers, too;
# - of actions, what `VecEnv.send_arrays` and `step_arrays` write: 1, the rest of an array's
#   header, its bytes.
_FORMS = [("f", (1,)), ("d", (1,))]
_DTYPES = [np.dtype(char) for char, _ in _FORMS]


def space_of(size: int) -> spaces.Box:
    """The space of such a leaf."""
    return spaces.Box(0, 255, (size,), np.uint8)


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
    """The leaf of each form of rewards, by `(dtype.char, shape)`."""
    leaves = {}
    for number, form in enumerate(_FORMS, 1):
        leaves[form] = empty(size)
        leaves[form][0] = number
    return leaves


def formed(firsts: list[int], numbers: npt.NDArray[np.float64]) -> list[Any]:
    """The rows' rewards in the forms that their leaves begin with."""
    if len(set(firsts)) == 1 and 0 < firsts[0] < PICKLED:
        return list(numbers.astype(_DTYPES[firsts[0] - 1]).reshape(-1, 1))
    rewards: list[Any] = numbers.tolist()
    for row, first in enumerate(firsts):
        if 0 < first < PICKLED:
            rewards[row] = np.array([rewards[row]], _FORMS[first - 1][0])
    return rewards


def packed_actions(
    actions: Sequence[Any], size: int
) -> tuple[npt.NDArray[np.uint8], dict[int, Any]]:
    """The leaves of pickled actions `(len(actions), size)`, and by place the actions that fit
    none."""
    pieces, others = [], {}
    for place, action in enumerate(actions):
        leaf = packed(action, size)
        if leaf is None:
            others[place], leaf = action, empty(size)
        pieces.append(leaf)
    return np.stack(pieces), others


class ActionReader:
    """Reads the leaves of one env's actions.

    Attributes:
        held: a tuple of the next action, where that is larger than its leaf; else None.
    """

    def __init__(self) -> None:
        self.held: tuple[Any] | None = None

    def read(self, leaf: npt.NDArray[np.uint8]) -> Any:
        """The action in a leaf, which is the caller's own."""
        if self.held is not None:
            (action,), self.held = self.held, None
            return action
        array = _native.unpack_array(leaf)
        return unpacked(leaf) if array is None else array
