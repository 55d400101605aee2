"""Rows of batches: some of an observation's, an action's or infos', taken out or replaced."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from corral.spaces import Tree


class Together:
    """Calls of some slots, for envs that can only step all: the others play on, and what comes of
    that is thrown away."""

    def __init__(self, native: Any) -> None:
        self._native = native
        self._has_begun = False

    def reset_slots(self, slots: list[int], indices: list[int]) -> tuple[Any, dict[str, Any]]:
        n = self._native.num_envs
        mask = np.full(n, not self._has_begun)
        mask[slots] = True
        playing = np.full(n, indices[0], dtype=np.int64)
        playing[slots] = indices
        observations, infos = self._native.reset(index=playing, mask=mask)
        self._has_begun = True
        return self._take(observations, slots), take_infos(infos, slots)

    def step_slots(self, slots: list[int], actions: Any) -> tuple[Any, ...]:
        rows = np.zeros(self._native.num_envs, dtype=np.int64)
        rows[slots] = np.arange(len(slots))
        spread = _spread(actions, rows, self._native.action_tree)
        observations, *columns, infos = self._native.step(spread)
        told = take_infos(infos, slots)
        return (self._take(observations, slots), *(column[slots] for column in columns), told)

    def _take(self, observations: Any, slots: list[int]) -> Any:
        return take(observations, slots, self._native.observation_tree)


def _spread(actions: Any, rows: npt.NDArray[np.int64], tree: Tree) -> Any:
    """Actions of all slots: of each, that row of `actions`, which are nested as the tree."""
    kind, inner = tree
    if kind == "dict" and isinstance(actions, dict) and actions.keys() == dict(inner).keys():
        return {name: _spread(actions[name], rows, branch) for name, branch in inner}
    if kind == "tuple" and isinstance(actions, tuple) and len(actions) == len(inner):
        return tuple(_spread(part, rows, branch) for part, branch in zip(actions, inner))
    if kind != "leaf":
        # The env says what is wrong with them.
        return actions
    if isinstance(actions, tuple):
        return tuple(actions[row] for row in rows)
    return np.asarray(actions)[rows]


def take(batch: Any, rows: Sequence[int], tree: Tree) -> Any:
    """These rows of a batch of observations, nested as the tree: a leaf is an array, or a tuple of
    objects."""
    kind, inner = tree
    if kind == "dict":
        return {name: take(batch[name], rows, branch) for name, branch in inner}
    if kind == "tuple":
        return tuple(take(part, rows, branch) for part, branch in zip(batch, inner))
    if isinstance(batch, tuple):
        return tuple(batch[row] for row in rows)
    return batch[list(rows)]


def take_infos(infos: dict[str, Any], rows: Sequence[int]) -> dict[str, Any]:
    """These rows of infos: arrays, and dicts of them."""
    return {
        name: take_infos(value, rows) if isinstance(value, dict) else value[list(rows)]
        for name, value in infos.items()
    }


def put_infos(
    infos: dict[str, Any], count: int, rows: Sequence[int], new: dict[str, Any]
) -> dict[str, Any]:
    """Infos of `count` rows, of which these are replaced; what only some rows have is zeros (None)
    in the others. What fits no common array becomes objects."""
    merged: dict[str, Any] = {}
    for name in {**infos, **new}:
        old, fresh = infos.get(name), new.get(name)
        both = [part for part in (old, fresh) if part is not None]
        if all(isinstance(part, dict) for part in both):
            merged[name] = put_infos(old or {}, count, rows, fresh or {})
            continue
        if any(isinstance(part, dict) for part in both):
            old, fresh = _as_objects(old, count), _as_objects(fresh, len(rows))
            both = [old, fresh]
        column = _column_for(both, count)
        empty = None if column.dtype == object else 0
        for at, part in ((slice(None), old), (list(rows), fresh)):
            if part is None:
                column[at] = empty
            elif column.ndim == 1 and part.ndim > 1:
                for row, value in zip(np.arange(count)[at], part, strict=True):
                    column[row] = value
            else:
                column[at] = part
        merged[name] = column
    return merged


def _column_for(parts: list[npt.NDArray[Any]], count: int) -> npt.NDArray[Any]:
    """An array of `count` rows that takes rows of all `parts` as they are."""
    shapes, kinds = {part.shape[1:] for part in parts}, {part.dtype.kind for part in parts}
    dtypes = {part.dtype for part in parts}
    if len(shapes) == 1 and (len(dtypes) == 1 or kinds <= set("iuf")):
        return np.zeros((count, *shapes.pop()), np.result_type(*dtypes))
    return np.full(count, None, object)


def _as_objects(part: Any, count: int) -> npt.NDArray[np.object_]:
    """The rows of infos, one object each."""
    column = np.full(count, None, object)
    for row in range(count):
        column[row] = row_of(part, row)
    return column


def row_of(part: Any, row: int) -> Any:
    """A row of infos, as of one env: what it is told, without masks."""
    if not isinstance(part, dict):
        return part[row]
    # Beside what is told stands its mask: which rows have it.
    shown = {}
    for name, value in part.items():
        mask = part.get(f"_{name}")
        is_mask = name.startswith("_") and name[1:] in part
        if not is_mask and (mask is None or mask[row]):
            shown[name] = row_of(value, row)
    return shown


def put(batch: Any, rows: Sequence[int], new: Any, tree: Tree) -> Any:
    """The batch, nested as the tree, with these rows replaced; arrays in place: they are ours."""
    kind, inner = tree
    if kind == "dict":
        return {name: put(batch[name], rows, new[name], branch) for name, branch in inner}
    if kind == "tuple":
        parts = zip(batch, new, inner)
        return tuple(put(part, rows, fresh, branch) for part, fresh, branch in parts)
    if isinstance(batch, tuple):
        fresh = list(batch)
        for row, value in zip(rows, new, strict=True):
            fresh[row] = value
        return tuple(fresh)
    batch[list(rows)] = new
    return batch
