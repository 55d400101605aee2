"""Memory that several processes share, seen as NumPy arrays: DI-engine's `ShmBuffer` and
`ShmBufferContainer`.

Corral's own managers do not use these buffers: a vec env's workers have shared memory of their own.
The buffers are here for programs that use them by themselves.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from multiprocessing.sharedctypes import RawArray
from typing import Any

import numpy as np
import numpy.typing as npt

from corral import errors
from corral.settings import flag

_KINDS = "biufc"


class ShmBuffer:
    """An array in shared memory, zeros at first.

    A buffer that is given to a process of `multiprocessing` (as an argument of `Process`, under
    any context) is the same memory there. Nothing keeps a `fill` and a `get` of two processes
    apart: who fills says so before others get.

    Attributes:
        dtype: the array's dtype.
        shape: the array's shape.
        copy_on_get: whether `get` gives a copy.
    """

    def __init__(self, dtype: npt.DTypeLike, shape: Any, copy_on_get: bool = True) -> None:
        """Takes the memory.

        Args:
            dtype: a dtype of numbers or bool.
            shape: a tuple or list of ints.
            copy_on_get: whether `get` gives a copy.

        Raises:
            ArgumentTypeError, ArgumentError: for another dtype or shape.
        """
        self.dtype = _dtype(dtype)
        self.shape = _shape(shape)
        self.copy_on_get = flag("copy_on_get", copy_on_get)
        size = math.prod(self.shape) * self.dtype.itemsize
        if size > sys.maxsize:
            raise errors.ArgumentError(f"shape is {self.shape}: no memory has {size} bytes")
        self._memory = RawArray("B", max(size, 1))

    def _array(self) -> npt.NDArray[Any]:
        count = math.prod(self.shape)
        return np.frombuffer(self._memory, self.dtype, count).reshape(self.shape)

    def fill(self, src_arr: npt.NDArray[Any]) -> None:
        """Replaces what is in the buffer.

        Args:
            src_arr: an array of the buffer's shape, whose dtype NumPy casts within a kind.

        Raises:
            ArgumentTypeError: for what is no array, or an array of another kind of dtype.
            ArgumentError: for an array of another shape.
        """
        if not isinstance(src_arr, np.ndarray):
            raise errors.ArgumentTypeError(
                f"fill takes a numpy array, not {type(src_arr).__name__}: give np.asarray(value)"
            )
        if src_arr.shape != self.shape:
            raise errors.ArgumentError(
                f"fill got an array of shape {src_arr.shape}, and the buffer has shape {self.shape}"
            )
        if not np.can_cast(src_arr.dtype, self.dtype, "same_kind"):
            raise errors.ArgumentTypeError(
                f"fill got an array of {src_arr.dtype}, and the buffer holds {self.dtype}: "
                "cast it with astype first"
            )
        np.copyto(self._array(), src_arr, casting="same_kind")

    def get(self) -> npt.NDArray[Any]:
        """The array in the buffer: a copy, or with `copy_on_get=False` the shared memory itself,
        which the next `fill` changes."""
        return self._array().copy() if self.copy_on_get else self._array()


class ShmBufferContainer:
    """One `ShmBuffer`, or a dict of them, nested as the shape is."""

    def __init__(self, dtype: Any, shape: Any, copy_on_get: bool = True) -> None:
        """Takes the memory.

        Args:
            dtype: a dtype, or a dict of them that is nested as `shape`. One dtype in the place of
                a dict is that of all.
            shape: a tuple or list of ints, or a dict of shapes, which may be nested.
            copy_on_get: whether `get` gives copies.

        Raises:
            ArgumentTypeError, ArgumentError: for another dtype or shape, and for a shape without a
                dtype.
        """
        self._data: ShmBuffer | dict[Any, ShmBufferContainer]
        if not isinstance(shape, Mapping):
            self._data = ShmBuffer(dtype, shape, copy_on_get)
            return
        self._data = {}
        for key, inner in shape.items():
            if isinstance(dtype, Mapping) and key not in dtype:
                raise errors.ArgumentError(
                    f"the shape has the key {key!r} and the dtype has not: its keys are "
                    f"{list(dtype)}"
                )
            one = dtype[key] if isinstance(dtype, Mapping) else dtype
            self._data[key] = ShmBufferContainer(one, inner, copy_on_get)

    def fill(self, src_arr: Any) -> None:
        """Replaces what is in the buffers; `src_arr` is nested as the shape.

        Raises:
            ArgumentTypeError, ArgumentError: as `ShmBuffer.fill`, and for other keys. The buffers
                before the wrong one have been filled.
        """
        if isinstance(self._data, ShmBuffer):
            self._data.fill(src_arr)
            return
        keys = list(src_arr) if isinstance(src_arr, Mapping) else type(src_arr).__name__
        if not isinstance(src_arr, Mapping) or src_arr.keys() != self._data.keys():
            raise errors.ArgumentError(
                f"fill takes a dict with the keys {list(self._data)}, and got {keys}"
            )
        for key, inner in self._data.items():
            inner.fill(src_arr[key])

    def get(self) -> Any:
        """The array in the buffer, or a dict of them nested as the shape; see `ShmBuffer.get`."""
        if isinstance(self._data, ShmBuffer):
            return self._data.get()
        return {key: inner.get() for key, inner in self._data.items()}


def _dtype(given: Any) -> np.dtype[Any]:
    try:
        dtype: np.dtype[Any] = np.dtype(given)
    except TypeError as error:
        raise errors.ArgumentTypeError(f"dtype is {given!r}: {error}") from None
    if given is None or dtype.kind not in _KINDS:
        raise errors.ArgumentTypeError(f"dtype is {given!r}: a buffer holds numbers or bools")
    return dtype


def _shape(given: Any) -> tuple[int, ...]:
    is_shape = isinstance(given, tuple | list) and all(
        isinstance(size, int | np.integer) and not isinstance(size, bool) and size >= 0
        for size in given
    )
    if not is_shape:
        raise errors.ArgumentTypeError(
            f"shape is {given!r}: it is a tuple of ints that are not negative"
        )
    return tuple(int(size) for size in given)
