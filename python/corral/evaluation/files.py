"""Evaluations as JSON."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import numpy as np

from corral import errors
from corral.evaluation.about import number

if TYPE_CHECKING:
    from corral.evaluation.result import Evaluation

_FORMAT = "corral evaluation"
_FORMAT_VERSION = 1
_ARRAYS = {"indices": int, "returns": float, "lengths": int, "successes": bool}


def write(evaluation: Evaluation, path: str | os.PathLike[str]) -> None:
    """As `Evaluation.to_json`."""
    successes = evaluation.successes
    told = {
        "format": _FORMAT,
        "format_version": _FORMAT_VERSION,
        "id": evaluation.id,
        "config": evaluation.config,
        "max_episode_steps": evaluation.max_episode_steps,
        "version": evaluation.version,
        "shard": evaluation.shard,
        "indices": evaluation.indices.tolist(),
        "returns": [number(value) for value in evaluation.returns.tolist()],
        "lengths": evaluation.lengths.tolist(),
        "successes": None if successes is None else successes.tolist(),
    }
    # Written whole before the file is opened: what has no JSON costs nobody a file.
    text = json.dumps(told, allow_nan=False)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text + "\n")


def read(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The fields of the `Evaluation` in a file."""
    with open(path, "rb") as file:
        data = file.read()
    try:
        return _fields(json.loads(data))
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        why = f"it has no {error}" if isinstance(error, KeyError) else str(error)
        raise errors.ArgumentError(
            f"{os.fspath(path)} is no file of Evaluation.to_json: {why}"
        ) from error


def _fields(told: Any) -> dict[str, Any]:
    if not isinstance(told, dict) or told.get("format") != _FORMAT:
        raise ValueError(f"its format is not {_FORMAT!r}")
    if told["format_version"] != _FORMAT_VERSION:
        raise ValueError(
            f"its format_version is {told['format_version']!r}, and this corral reads "
            f"{_FORMAT_VERSION}"
        )
    arrays = {name: _array(name, kind, told[name]) for name, kind in _ARRAYS.items()}
    lengths = {len(array) for array in arrays.values() if array is not None}
    if len(lengths) != 1 or lengths == {0}:
        raise ValueError("its indices, returns, lengths and successes are not as many of each")
    for name, kind in (("id", str), ("config", dict), ("version", str)):
        if not isinstance(told[name], kind):
            raise ValueError(f"its {name} is {told[name]!r}")
    limit, shard = told["max_episode_steps"], told["shard"]
    if limit is not None and not _is_whole(limit):
        raise ValueError(f"its max_episode_steps is {limit!r}")
    if shard is not None:
        if not isinstance(shard, list) or len(shard) != 2 or not all(map(_is_whole, shard)):
            raise ValueError(f"its shard is {shard!r}")
        shard = (shard[0], shard[1])
    return {
        **arrays,
        "id": told["id"],
        "config": told["config"],
        "max_episode_steps": limit,
        "version": told["version"],
        "shard": shard,
    }


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _array(name: str, kind: type, values: Any) -> Any:
    if name == "successes" and values is None:
        return None
    if not isinstance(values, list):
        raise ValueError(f"its {name} are no list")
    for value in values:
        is_right = isinstance(value, bool) if kind is bool else not isinstance(value, bool)
        if not is_right or (kind is int and not isinstance(value, int)):
            raise ValueError(f"its {name} have {value!r} among them")
    if kind is float:
        return np.array([float(value) for value in values], dtype=np.float64)
    return np.array(values, dtype=np.int64 if kind is int else np.bool_)
