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
    earlier = infos.get(key)
    if earlier is not None and isinstance(earlier, dict) != isinstance(value, dict):
        infos[key] = array = _objects(earlier, mask)
        array[row] = value
    elif isinstance(value, dict):
        nested = infos.setdefault(key, {})
        for inner, inner_value in value.items():
            add_info(nested, inner, inner_value, row, rows)
    else:
        array = _empty_like(value, rows) if earlier is None else earlier
        infos[key] = _put(array, value, row, mask)
    mask[row] = True


def add_029(infos: dict[str, Any], key: str, value: Any, row: int, rows: int) -> None:
    """Adds one env's info to a batch's in the layout of Gymnasium 0.29, with its mask `_key`.

    The first value of a key settles the array: a typed one for a number, else one of objects. A
    later value that the array does not hold turns it into one of objects.
    """
    mask = infos.setdefault(f"_{key}", np.zeros(rows, dtype=np.bool_))
    array = infos.get(key)
    is_number = type(value) in (int, float, bool) or isinstance(value, np.number)
    if array is None:
        array = np.zeros(rows, type(value)) if is_number else np.full(rows, None, dtype=object)
    elif array.dtype != object and not (is_number and np.can_cast(type(value), array.dtype)):
        array = _objects(array, mask)
    array[row], mask[row], infos[key] = value, True, array


def _objects(batch: Any, mask: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """What each row has, one object a row: a dict where the batch is a dict of arrays."""
    objects = np.full(len(mask), None, dtype=object)
    for row in np.flatnonzero(mask):
        if isinstance(batch, dict):
            objects[row] = {
                name: inner[row]
                for name, inner in batch.items()
                if f"_{name}" in batch and batch[f"_{name}"][row]
            }
        else:
            objects[row] = batch[row]
    return objects


def _empty_like(value: Any, rows: int) -> np.ndarray[Any, Any]:
    if type(value) in (int, float, bool) or isinstance(value, np.number):
        return np.zeros(rows, dtype=type(value))
    if isinstance(value, np.ndarray):
        return np.zeros((rows, *value.shape), dtype=value.dtype)
    return np.full(rows, None, dtype=object)


def _put(
    array: np.ndarray[Any, Any], value: Any, row: int, mask: np.ndarray[Any, Any]
) -> np.ndarray[Any, Any]:
    if array.dtype != object and not _fits(array, value):
        array = _objects(array, mask)
    array[row] = value
    return array


def _fits(array: np.ndarray[Any, Any], value: Any) -> bool:
    """Whether an array takes it in without losing more than a float's last bits."""
    given = np.asarray(value)
    if given.shape != array.shape[1:] or not np.can_cast(given.dtype, array.dtype, "same_kind"):
        return False
    cast = given.astype(array.dtype)
    return array.dtype.kind in "fc" or bool((cast == given).all())
