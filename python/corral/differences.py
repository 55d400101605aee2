"""Where two results differ: the first leaf, element and values, for people to read."""

from __future__ import annotations

import reprlib
from collections.abc import Sequence
from typing import Any

import numpy as np

STEP = ("observation", "reward", "terminated", "truncated", "infos")
"""The names of what a step gives."""

_short = reprlib.Repr()
_short.maxstring = _short.maxother = 60


def difference(a: Any, b: Any, what: str, keys: tuple[str, ...] = ()) -> str | None:
    """The first difference of two nested results, in words, or None; NaNs are equal.

    Args:
        what: the name of the results in these words.
        keys: the keys that led here.
    """
    if isinstance(a, dict) and isinstance(b, dict):
        if a.keys() != b.keys():
            lone = sorted(map(str, a.keys() ^ b.keys()))
            return f"{_name(what, keys)} has {', '.join(lone)} in one of them alone"
        parts = [(a[key], b[key], str(key)) for key in a]
    elif isinstance(a, tuple | list) and isinstance(b, tuple | list):
        if len(a) != len(b):
            return f"{_name(what, keys)} has {len(a)} parts and {len(b)}"
        parts = [(x, y, str(k)) for k, (x, y) in enumerate(zip(a, b, strict=True))]
    else:
        told = _of_arrays(np.asarray(a), np.asarray(b))
        return None if told is None else f"{_name(what, keys)}{told}"
    found = (difference(x, y, what, (*keys, key)) for x, y, key in parts)
    return next((told for told in found if told is not None), None)


def of_steps(a: Sequence[Any], b: Sequence[Any]) -> str | None:
    """The first difference of what two steps, or two resets, gave."""
    names = STEP if len(a) > 2 else ("observation", "infos")
    found = (difference(x, y, name) for x, y, name in zip(a, b, names, strict=False))
    return next((told for told in found if told is not None), None)


def of_episodes(a: Sequence[Any], b: Sequence[Any]) -> str | None:
    """The first difference of two episodes, each a reset and its steps."""
    for k, (x, y) in enumerate(zip(a, b, strict=False)):
        told = of_steps(x, y)
        if told is not None:
            return f"{'the reset' if k == 0 else f'step {k - 1}'}, env 0: {told}"
    return None if len(a) == len(b) else f"one has {len(a) - 1} steps and the other {len(b) - 1}"


def _name(what: str, keys: tuple[str, ...]) -> str:
    return f"{what} leaf '{'.'.join(keys)}'" if keys else f"the {what}"


def _of_arrays(x: np.ndarray[Any, Any], y: np.ndarray[Any, Any]) -> str | None:
    if x.dtype != y.dtype or x.shape != y.shape:
        return f" is {x.dtype} {x.shape} and {y.dtype} {y.shape}"
    if np.array_equal(x, y, equal_nan=x.dtype.kind in "fc"):
        return None
    if x.ndim == 0:
        return f" is {_value(x[()])} and {_value(y[()])}"
    # Objects are compared one by one, for their `==` may give anything.
    pairs = zip(np.ndindex(x.shape), x.reshape(-1), y.reshape(-1), strict=True)
    at, one, other = next(
        (at, one, other)
        for at, one, other in pairs
        if not np.array_equal(one, other, equal_nan=x.dtype.kind in "fc")
    )
    # The first axis of what vec envs give is that of the envs, here of one env.
    inner = list(at[1:]) if x.shape[0] == 1 else list(at)
    return f"{f' at {inner}' if inner else ''} is {_value(one)} and {_value(other)}"


def _value(value: Any) -> str:
    return str(value) if isinstance(value, np.number | np.bool_) else _short.repr(value)
