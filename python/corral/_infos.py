"""Infos that an env did not declare, put where Gymnasium puts them."""

from __future__ import annotations

from typing import Any

import numpy as np


def add_info(infos: dict[str, Any], key: str, value: Any, row: int, rows: int) -> None:
    """Adds one env's info to a batch's, with its mask `_key`.

    Numbers make typed arrays, arrays are stacked, dicts nest, the rest goes into object arrays.
    A value that does not fit the array which an earlier row made turns it into an object array.
    """
    mask = infos.setdefault(f"_{key}", np.zeros(rows, dtype=np.bool_))
    if isinstance(value, dict):
        nested = infos.setdefault(key, {})
        for inner, inner_value in value.items():
            add_info(nested, inner, inner_value, row, rows)
    else:
        array = infos.get(key)
        infos[key] = _put(_empty_like(value, rows) if array is None else array, value, row, mask)
    mask[row] = True


def _empty_like(value: Any, rows: int) -> np.ndarray[Any, Any]:
    if type(value) in (int, float, bool):
        return np.zeros(rows, dtype=type(value))
    if isinstance(value, np.ndarray):
        return np.zeros((rows, *value.shape), dtype=value.dtype)
    return np.full(rows, None, dtype=object)


def _put(
    array: np.ndarray[Any, Any], value: Any, row: int, mask: np.ndarray[Any, Any]
) -> np.ndarray[Any, Any]:
    if array.dtype != object:
        given = np.asarray(value)
        fits = given.shape == array.shape[1:] and np.can_cast(given.dtype, array.dtype, "safe")
        if not fits:
            objects = np.full(len(array), None, dtype=object)
            for earlier in np.flatnonzero(mask):
                objects[earlier] = array[earlier]
            array = objects
    array[row] = value
    return array
