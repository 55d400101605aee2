"""Strict comparison."""

from __future__ import annotations

from typing import Any

import numpy as np


def assert_same(ours: Any, right: Any, at: str = "it") -> None:
    """Errors unless both are of the same types, dtypes, shapes and values, all the way down."""
    if isinstance(right, dict):
        assert isinstance(ours, dict), f"{at}: {ours!r}, not {right!r}"
        assert list(map(str, sorted(ours))) == list(map(str, sorted(right))), at
        for key in right:
            assert_same(ours[key], right[key], f"{at}[{key!r}]")
        return
    assert type(ours) is type(right), f"{at}: {ours!r}, not {right!r}"
    if isinstance(right, np.ndarray):
        assert (ours.dtype, ours.shape) == (right.dtype, right.shape), at
        if right.dtype == object:
            for k, (one, other) in enumerate(zip(ours.flat, right.flat, strict=True)):
                assert_same(one, other, f"{at}[{k}]")
        else:
            np.testing.assert_array_equal(ours, right, at)
    elif isinstance(right, list | tuple):
        assert len(ours) == len(right), at
        for k, (one, other) in enumerate(zip(ours, right, strict=True)):
            assert_same(one, other, f"{at}[{k}]")
    else:
        assert ours == right, at
