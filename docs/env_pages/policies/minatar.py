"""MinAtar: rules of thumb for the games that have simple ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
_LAST = 9


def breakout(id: str) -> Callable[[Array], Array]:
    """It moves the paddle to where the ball will come down."""
    actions = np.array([0, 1, 2] if id.endswith("-v1") else [0, 1, 3])

    def policy(seen: Array) -> Array:
        return actions[[_follow(board) for board in seen]]

    return policy


def _follow(board: Array) -> int:
    """0 to stay, 1 for left, 2 for right."""
    paddle = int(board[_LAST, :, 0].argmax())
    ((y, x),) = np.argwhere(board[:, :, 1]).tolist()
    trails = np.argwhere(board[:, :, 2]).tolist()
    before_y, before_x = trails[0] if trails else (y - 1, x)
    target = x
    if y > before_y:
        # Its way is straight in a plane where the walls are mirrors.
        target = (x + (x - before_x) * (_LAST - y)) % (2 * _LAST)
        target = min(target, 2 * _LAST - target)
    return 0 if target == paddle else 1 if target < paddle else 2


def freeway(id: str) -> Callable[[Array], Array]:
    """It walks up, whatever comes."""
    up = 1 if id.endswith("-v1") else 2

    def policy(seen: Array) -> Array:
        return np.full(len(seen), up)

    return policy


def space_invaders(id: str) -> Callable[[Array], Array]:
    """It steps aside where a bullet is about to hit, else shoots at the alien above, else goes
    below the nearest one."""
    actions = np.array([0, 1, 2, 3] if id.endswith("-v1") else [0, 1, 3, 5])

    def policy(seen: Array) -> Array:
        return actions[[_defend(board) for board in seen]]

    return policy


def _defend(board: Array) -> int:
    """0 to stay, 1 for left, 2 for right, 3 to fire."""
    cannon = int(board[_LAST, :, 0].argmax())
    danger = board[_LAST - 3 :, :, 5].any(axis=0)
    if danger[cannon]:
        left = cannon > 0 and not danger[cannon - 1]
        return 1 if left or cannon == _LAST else 2
    columns = np.flatnonzero(board[:, :, 1].any(axis=0))
    if cannon in columns or not len(columns):
        return 3
    nearest = columns[np.abs(columns - cannon).argmin()]
    step = 1 if nearest < cannon else 2
    return 0 if danger[cannon + (1 if step == 2 else -1)] else step
