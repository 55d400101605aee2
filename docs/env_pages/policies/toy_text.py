"""Toy text: what dynamic programming finds, and a card player's rules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np

Array = np.ndarray[Any, Any]

# So close to 1 that returns count alone, and below, so that values settle.
_DISCOUNT, _SWEEPS = 0.9999, 3000


def tabular(id: str) -> Callable[[Array], Array]:
    """The best action by value iteration over the table of transitions that Gymnasium's env of the
    same id has."""
    table = gymnasium.make(id).unwrapped.P  # type: ignore[attr-defined]
    width = max(len(outcomes) for actions in table.values() for outcomes in actions.values())
    # An outcome of probability 0 fills the rows of actions that have fewer.
    shape = (len(table), len(table[0]), width)
    chance, reward, goes_on = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    target = np.zeros(shape, np.int64)
    for state, actions in table.items():
        for action, outcomes in actions.items():
            for k, (p, new, gain, is_over) in enumerate(outcomes):
                at = state, action, k
                chance[at], target[at], reward[at], goes_on[at] = p, new, gain, not is_over
    values = np.zeros(shape[0])
    for _ in range(_SWEEPS):
        gains = (chance * (reward + _DISCOUNT * goes_on * values[target])).sum(axis=2)
        values = gains.max(axis=1)
    best = gains.argmax(axis=1)

    def policy(seen: Array) -> Array:
        return best[seen]

    return policy


def blackjack(id: str) -> Callable[[tuple[Array, ...]], Array]:
    """The basic strategy: it takes a card up to 11; from 12 to 16 if the dealer shows 7 or more or
    an ace, with 12 on 2 and 3, too; with a usable ace up to 17, and with 18 if the dealer shows 9,
    10 or an ace."""

    def policy(seen: tuple[Array, ...]) -> Array:
        total, card, has_ace = seen
        strong = (card >= 7) | (card == 1)
        hard = (total <= 11) | ((total <= 16) & strong) | ((total == 12) & (card <= 3))
        soft = (total <= 17) | ((total == 18) & ((card >= 9) | (card == 1)))
        return np.where(has_ace == 1, soft, hard).astype(np.int64)

    return policy
