"""A batch's infos as one dict per env."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from gymnasium import spaces


def rows(infos: dict[str, Any], num_rows: int) -> list[dict[str, Any]]:
    """What each row has of infos with masks; numbers are Python's."""
    each: list[dict[str, Any]] = [{} for _ in range(num_rows)]
    _fill(infos, each)
    return each


def rows_in(infos: dict[str, Any], numbers: Iterable[int]) -> list[dict[str, Any]]:
    """As `rows`, of the rows `numbers` alone, in their order. It takes time for the rows that have
    infos, and not for the others."""
    each: defaultdict[int, dict[str, Any]] = defaultdict(dict)
    _fill(infos, each)
    return [each[number] for number in numbers]


def _fill(infos: dict[str, Any], each: list[dict[str, Any]] | dict[int, dict[str, Any]]) -> None:
    """Adds to the dict of each row what the row has of infos with masks."""
    for key, value in infos.items():
        mask = infos.get(f"_{key}")
        if not isinstance(mask, np.ndarray):
            continue
        found = np.flatnonzero(mask)
        for row, told in zip(found.tolist(), _told(value, mask, found), strict=True):
            each[row][key] = told


def _told(value: Any, mask: Any, found: Any) -> list[Any]:
    """What the rows `found`, those of the mask, have of one info."""
    if isinstance(value, dict):
        return rows_in(_masked(value, mask), found.tolist())
    if type(value) is np.ndarray and value.ndim == 1 and value.dtype != object:
        return list(value[found].tolist())
    return [_plain(value[row]) for row in found]


def _masked(infos: dict[str, Any], mask: Any) -> dict[str, Any]:
    """With masks for what has none of its own: the episode statistics."""
    masked = dict(infos)
    for key in infos:
        if not key.startswith("_"):
            masked.setdefault(f"_{key}", mask)
    return masked


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def each_of(space: spaces.Space[Any], stacked: Any, count: int) -> Iterator[Any]:
    """Each of `count` observations of a space that are stacked leaf by leaf. Arrays are views, and
    numbers NumPy's."""
    # Asking whether a space is a Dict takes longer than the views of some rows.
    if isinstance(stacked, np.ndarray):
        return iter(stacked)
    if isinstance(space, spaces.Dict):
        parts = [each_of(inner, stacked[key], count) for key, inner in space.spaces.items()]
        return (dict(zip(space.spaces, one, strict=True)) for one in _together(parts, count))
    if isinstance(space, spaces.Tuple):
        inner_and_part = zip(space.spaces, stacked, strict=True)
        return _together([each_of(inner, part, count) for inner, part in inner_and_part], count)
    return iter(stacked)


def _together(parts: list[Iterator[Any]], count: int) -> Iterator[tuple[Any, ...]]:
    return zip(*parts, strict=True) if parts else iter([()] * count)
