"""Games: short rules of thumb."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Cell = tuple[int, int]

# Up, right, down, left: rows and columns.
_WAYS = ((-1, 0), (0, 1), (1, 0), (0, -1))


def catch(id: str) -> Callable[[Array], Array]:
    """It keeps the paddle below the ball."""

    def policy(seen: Array) -> Array:
        ball = seen[:, :-1].any(axis=1).argmax(axis=1)
        paddle = seen[:, -1].argmax(axis=1)
        return np.sign(ball - paddle) + 1

    return policy


def snake(id: str) -> Callable[..., Array]:
    """It takes the shortest way to the fruit; where there is none, or where it leads into a corner
    with less room than the snake needs, it goes where most room is."""

    def policy(seen: Array, *, infos: dict[str, Array]) -> Array:
        masks = infos["action_mask"]
        return np.array([_slide(board, mask) for board, mask in zip(seen, masks)])

    return policy


def _slide(board: Array, mask: Array) -> int:
    """A snake's next move."""
    free = board[:, :, 0] == 0
    (head,) = map(tuple, np.argwhere(board[:, :, 1] > 0).tolist())
    fruit = [tuple(one) for one in np.argwhere(board[:, :, 3] > 0).tolist()]
    length = int((board[:, :, 0] > 0).sum())
    best, choice = (-1.0, 0.0), 0
    for action, (dy, dx) in enumerate(_WAYS):
        if not mask[action]:
            continue
        room = _distances(free, (head[0] + dy, head[1] + dx))
        far = min((room[one] for one in fruit if one in room), default=1e9)
        worth = (float(min(len(room), length)), -far)
        if worth > best:
            best, choice = worth, action
    return choice


def _distances(free: Array, start: Cell) -> dict[Cell, int]:
    """How far the free cells are that can be reached."""
    rows, columns = free.shape
    found = {start: 0}
    for y, x in (reached := [start]):
        for dy, dx in _WAYS:
            to = (y + dy, x + dx)
            if 0 <= to[0] < rows and 0 <= to[1] < columns and to not in found and free[to]:
                found[to] = found[y, x] + 1
                reached.append(to)
    return found


def corner(id: str) -> Callable[..., Array]:
    """It slides the tiles into a corner: down if that moves any, else left, else right, else
    up."""

    def policy(seen: Array, *, infos: dict[str, Array]) -> Array:
        order = np.array([2, 3, 1, 0])
        return order[infos["action_mask"][:, order].astype(bool).argmax(axis=1)]

    return policy


def connect_four(id: str) -> Callable[..., Array]:
    """It wins if it can, else takes the column where the opponent would win, else the one nearest
    to the middle that does not let the opponent win above it."""

    def policy(seen: Array) -> Array:
        return np.array([_drop(board) for board in seen])

    return policy


def _drop(board: Array) -> int:
    """The column for the next stone."""
    open_columns = [c for c in (3, 2, 4, 1, 5, 0, 6) if board[0, c] == 0]
    for player in (1, -1):
        for column in open_columns:
            if _wins(_with(board, column, player), player):
                return column
    for column in open_columns:
        after = _with(board, column, 1)
        if after[0, column] or not _wins(_with(after, column, -1), -1):
            return column
    return open_columns[0] if open_columns else 0


def _with(board: Array, column: int, player: int) -> Array:
    after = board.copy()
    after[np.flatnonzero(board[:, column] == 0)[-1], column] = player
    return after


def _wins(board: Array, player: int) -> bool:
    own = np.pad(board == player, 3)
    for dy, dx in ((0, 1), (1, 0), (1, 1), (1, -1)):
        row = [np.roll(own, (k * dy, k * dx), (0, 1)) for k in range(4)]
        if np.logical_and.reduce(row).any():
            return True
    return False
