"""Whether an episode was a success, as its last infos tell."""

from __future__ import annotations

import numbers
from collections.abc import Callable
from typing import Any

import numpy as np

from corral import errors
from corral.evaluation.rows import row_of

Success = str | Callable[[dict[str, Any], float], Any]

_MISSING = object()


class Judge:
    """Says of an episode's end whether it was a success: by an info's key, or by a function."""

    def __init__(self, success: Success) -> None:
        if not isinstance(success, str) and not callable(success):
            raise errors.ArgumentTypeError(
                "success is the key of an info, or a function of an episode's last infos and its "
                f"return, not {success!r}"
            )
        self._success = success

    def __call__(self, infos: dict[str, Any], row: int, index: int, episode_return: float) -> bool:
        """Whether the episode of `index`, which this row of `infos` ended, was a success."""
        told = _told(infos, row)
        if callable(self._success):
            value, what = self._success(told, episode_return), "the function success gave"
        else:
            value, what = _find(told, self._success), f"infos have {self._success!r} ="
        if value is _MISSING:
            raise errors.ArgumentError(
                f"infos have no {self._success!r} at the end of the episode of index {index}: they "
                f"have {', '.join(_keys(told)) or 'nothing'}. Where the env tells of some episodes "
                "only, give a function of infos and return"
            )
        is_truth = isinstance(value, bool | np.bool_ | numbers.Real)
        if isinstance(value, np.ndarray) and value.size == 1 and value.dtype.kind in "biuf":
            value, is_truth = value.item(), True
        if not is_truth:
            raise errors.ArgumentTypeError(
                f"{what} {value!r} at the end of the episode of index {index}: success is a bool "
                "or a number"
            )
        return bool(value)


def name_of(success: Success | None) -> str | None:
    """What a file says of how success was told."""
    if success is None or isinstance(success, str):
        return success
    return f"function {getattr(success, '__qualname__', type(success).__name__)}"


def _told(infos: dict[str, Any], row: int) -> dict[str, Any]:
    """A row's infos as of one env; under same_step those of the episode that ended."""
    if "_final_info" in infos and infos["_final_info"][row]:
        infos = infos["final_info"]
    told: dict[str, Any] = row_of(infos, row)
    return told


def _find(told: dict[str, Any], key: str) -> Any:
    if key in told:
        return told[key]
    first, dot, rest = key.partition(".")
    inner = told.get(first)
    return _find(inner, rest) if dot and isinstance(inner, dict) else _MISSING


def _keys(told: dict[str, Any], before: str = "") -> list[str]:
    found: list[str] = []
    for name, value in told.items():
        whole = f"{before}{name}"
        found += _keys(value, f"{whole}.") if isinstance(value, dict) else [whole]
    return found
