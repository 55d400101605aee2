"""Maze: the walls, read off the pixels, and a search among them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

# Of the default size, in pixels: where the first cell begins, a cell's side, a wall's thickness.
_CELLS, _MARGIN, _CORRIDOR, _WALL = 7, 2, 6, 3
_PITCH = _CORRIDOR + _WALL
# The actions and where they lead, as columns and rows.
_MOVES = {1: (0, -1), 2: (1, 0), 3: (0, 1), 4: (-1, 0)}
Cell = tuple[int, int]


def shortest_path(id: str) -> Callable[..., Array]:
    """It reads the walls off the first picture of an episode and the agent's place off the infos,
    and walks a shortest path to the cell that is as far away as the infos say and looks least
    like floor."""
    plans: dict[int, list[int]] = {}

    def policy(seen: Array, *, began: Array, index: Array, infos: dict[str, Array]) -> Array:
        for row in np.flatnonzero(began):
            at = tuple(infos["position"][row].tolist())
            plans[int(index[row])] = _plan(seen[row].astype(int), at, int(infos["distance"][row]))
        return np.array([plans[int(one)].pop() if plans[int(one)] else 0 for one in index])

    return policy


def _plan(picture: Array, start: Cell, distance: int) -> list[int]:
    """The actions to the goal, the last one first."""
    floor = np.median([_patch(picture, cell) for cell in np.ndindex(_CELLS, _CELLS)], axis=0)
    wall = np.median(picture[:1], axis=(0, 1))
    ways: dict[Cell, list[int]] = {start: []}
    for cell in (reached := [start]):
        for action, (dx, dy) in _MOVES.items():
            to = (cell[0] + dx, cell[1] + dy)
            if to not in ways and _is_open(picture, cell, (dx, dy), floor, wall):
                ways[to] = [action, *ways[cell]]
                reached.append(to)
    far = [cell for cell, way in ways.items() if len(way) == distance]
    goal = max(far, key=lambda cell: _off(_patch(picture, cell), floor), default=start)
    return ways[goal]


def _corner(cell: Cell) -> Cell:
    return _MARGIN + cell[0] * _PITCH, _MARGIN + cell[1] * _PITCH


def _patch(picture: Array, cell: Cell) -> Array:
    """A cell's usual colour."""
    x, y = _corner(cell)
    return np.median(picture[y + 2 : y + _CORRIDOR, x : x + _CORRIDOR], axis=(0, 1))


def _is_open(picture: Array, cell: Cell, way: Cell, floor: Array, wall: Array) -> bool:
    """Whether what is between a cell and its neighbour looks more like floor than like wall."""
    (x, y), (dx, dy) = _corner(cell), way
    if not (0 <= cell[0] + dx < _CELLS and 0 <= cell[1] + dy < _CELLS):
        return False
    x += {1: _CORRIDOR, -1: -_WALL, 0: 0}[dx]
    y += {1: _CORRIDOR, -1: -_WALL, 0: 0}[dy]
    width, height = (_WALL if dx else _CORRIDOR), (_WALL if dy else _CORRIDOR)
    between = np.median(picture[y : y + height, x : x + width][1:-1, 1:-1], axis=(0, 1))
    return _off(between, floor) < _off(between, wall)


def _off(colour: Array, other: Array) -> float:
    return float(np.abs(colour - other).sum())
