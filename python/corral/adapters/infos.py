"""A batch's infos as one dict per env."""

from __future__ import annotations

from typing import Any

import numpy as np


def rows(infos: dict[str, Any], num_rows: int) -> list[dict[str, Any]]:
    """What each row has of infos with masks; numbers are Python's."""
    each: list[dict[str, Any]] = [{} for _ in range(num_rows)]
    for key, value in infos.items():
        mask = infos.get(f"_{key}")
        if not isinstance(mask, np.ndarray):
            continue
        inner = rows(_masked(value, mask), num_rows) if isinstance(value, dict) else None
        for row in np.flatnonzero(mask):
            each[row][key] = _plain(value[row]) if inner is None else inner[row]
    return each


def _masked(infos: dict[str, Any], mask: Any) -> dict[str, Any]:
    """With masks for what has none of its own: the episode statistics."""
    masked = dict(infos)
    for key in infos:
        if not key.startswith("_"):
            masked.setdefault(f"_{key}", mask)
    return masked


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
