"""MinAtar's Asterix and Seaquest: each step is the first of the best steps ahead.

Where things go is seen from their trails; when they move is taken for chance. Arrays are
`(boards, rows, columns)`: the boards of many episodes are planned at once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

_AHEAD = 16
# What an end costs, and what a reward is worth a step later.
_END, _DISCOUNT = 20.0, 0.97
# How often a step repeats the one before.
_STICKY = 0.1
# Nothing, left, up, right, down: the actions' steps in rows and columns.
_WAYS = ((0, 0), (0, -1), (-1, 0), (0, 1), (1, 0))
_LEFT, _RIGHT = 1, 3
# What it is worth to shoot at an enemy, or to turn to one.
_SHOOT, _TURN = 0.5, 0.3
_COLUMNS = np.arange(10)


def asterix(id: str) -> Callable[[Array], Array]:
    """It looks 16 steps ahead, and weighs the treasure that it may reach against the enemies that
    it may meet."""

    def policy(seen: Array) -> Array:
        # Nobody leaves these rows.
        player, enemies, trails, treasure = np.moveaxis(seen[:, 1:9], -1, 0)
        risks = _met(_ways(enemies, trails), pace=0.4)
        # Where the next one comes from is not known.
        risks[..., [0, -1]] += 0.01
        gains = _met(_ways(treasure, trails), pace=0.4)
        return _worth(risks, gains, player).argmax(axis=0)

    return policy


def seaquest(id: str) -> Callable[[Array], Array]:
    """It looks 16 steps ahead, keeps clear of enemies and bullets, collects divers, and shoots
    where an enemy is in front of it. It comes up with six divers, or with fewer when the oxygen
    runs low."""

    def policy(seen: Array) -> Array:
        front, back, shots, trails, bullets, fish, submarines, _, _, divers = np.moveaxis(
            seen[:, :9], -1, 0
        )
        enemies = fish | submarines
        oxygen, on_board = seen[:, 9, :, 7].sum(axis=1), seen[:, 9, :, 8].sum(axis=1)
        is_below = ~front[:, 0].any(axis=1)
        is_time = (on_board == 6) | ((oxygen <= 2) & (on_board > 0))

        risks = _met(_ways(enemies, trails), pace=0.25)
        risks += _met(_flights(bullets, submarines, trails), pace=1)
        # To come up without a diver ends the episode.
        risks[:, :, 0] = (is_below & (on_board == 0))[:, None]
        gains = _met(_ways(divers, trails), pace=0.2) * (on_board < 6)[:, None, None]
        # In a row with an enemy there is something to shoot at.
        gains += 0.1 * enemies.any(axis=2, keepdims=True)
        gains[:, :, 0] = np.where(is_time, 5.0, -1.0 * is_below)[:, None]
        worth = _worth(risks, gains, front)

        row, x = front.any(axis=2), front.any(axis=1).argmax(axis=1)
        is_left = (enemies[row] & (x[:, None] > _COLUMNS)).any(axis=1)
        is_right = (enemies[row] & (x[:, None] < _COLUMNS)).any(axis=1)
        faces_right = np.where(back.any(axis=(1, 2)), back.any(axis=1).argmax(axis=1) < x, x == 0)
        is_ahead = np.where(faces_right, is_right, is_left)
        worth[_LEFT] += _TURN * (is_left & ~is_ahead)
        worth[_RIGHT] += _TURN * (is_right & ~is_ahead)
        fire = np.where(is_ahead & ~shots[row].any(axis=1), worth[0] + _SHOOT, -np.inf)
        return np.vstack([worth, fire]).argmax(axis=0)

    return policy


def _ways(things: Array, trails: Array) -> tuple[Array, Array]:
    """What goes to the left, and what to the right, where its trail is on its left."""
    goes_right = things.copy()
    goes_right[..., 1:] &= trails[..., :-1]
    goes_right[..., 0] &= ~trails[..., 1]
    return things & ~goes_right, goes_right


def _flights(bullets: Array, submarines: Array, trails: Array) -> tuple[Array, Array]:
    """Which bullets go to the left, and which to the right: as the submarine of their row. Where it
    is gone they may do either."""
    left, right = (some.any(axis=2, keepdims=True) for some in _ways(submarines, trails))
    return bullets & (left | ~right), bullets & (right | ~left)


def _met(ways: tuple[Array, Array], pace: float) -> Array:
    """How likely it is to meet something in each cell at each step ahead, before or after its move.
    A thing moves at a step with the probability `pace`."""
    left, right = (there.astype(float) for there in ways)
    met = np.empty((_AHEAD, *left.shape))
    for ahead in range(_AHEAD):
        to_left, to_right = np.zeros_like(left), np.zeros_like(right)
        to_left[..., :-1], to_right[..., 1:] = pace * left[..., 1:], pace * right[..., :-1]
        met[ahead] = left + to_left + right + to_right
        left, right = (1 - pace) * left + to_left, (1 - pace) * right + to_right
    return met


def _worth(risks: Array, gains: Array, player: Array) -> Array:
    """What each step of `_WAYS` is worth to each board's player."""
    values = np.zeros_like(gains[0])
    for risk, gain in zip(np.minimum(risks, 1)[::-1], gains[::-1]):
        after = _after(values)
        later = (1 - _STICKY) * after.max(axis=0) + _STICKY * after.mean(axis=0)
        values = (1 - risk) * (gain + _DISCOUNT * later) - _END * risk
    return _after(values)[:, player]


def _after(values: Array) -> Array:
    """The values of the cells to which each step of `_WAYS` leads. Nobody leaves the board."""
    _, rows, columns = values.shape
    wide = np.pad(values, ((0, 0), (1, 1), (1, 1)), mode="edge")
    return np.stack([wide[:, 1 + y : 1 + y + rows, 1 + x : 1 + x + columns] for y, x in _WAYS])
