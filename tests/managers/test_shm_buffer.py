"""`ShmBuffer` and `ShmBufferContainer`."""

from __future__ import annotations

import multiprocessing
from typing import Any

import numpy as np
import pytest

from corral import errors
from corral.managers import ShmBuffer, ShmBufferContainer
from tests.support import assert_same

DTYPES = ["bool", "u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", "f4", "f8"]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (3,), (2, 3, 4), (0, 2)], ids=str)
def test_what_is_filled_in_comes_out(dtype: str, shape: tuple[int, ...]) -> None:
    array = (np.arange(np.prod(shape)) % 2).reshape(shape).astype(dtype)
    buffer = ShmBuffer(np.dtype(dtype), shape)
    assert_same(buffer.get(), np.zeros(shape, dtype))
    buffer.fill(array)
    assert_same(buffer.get(), array)


def test_get_copies_unless_it_is_told_not_to() -> None:
    for copies in (True, False):
        buffer = ShmBuffer(np.float32, (2,), copy_on_get=copies)
        got = buffer.get()
        buffer.fill(np.ones(2, np.float32))
        assert got.tolist() == ([0, 0] if copies else [1, 1])
        got[:] = 5
        assert buffer.get().tolist() == ([1, 1] if copies else [5, 5])


def test_a_container_nests_as_its_shape() -> None:
    shape = {"a": (2,), "b": {"c": [1, 2], 7: ()}}
    dtype = {"a": np.float32, "b": {"c": np.int64, 7: np.uint8}}
    container = ShmBufferContainer(dtype, shape)
    value = {
        "a": np.array([1.5, 2.5], np.float32),
        "b": {"c": np.array([[3, 4]], np.int64), 7: np.array(9, np.uint8)},
    }
    container.fill(value)
    got = container.get()
    assert_same(got, value)
    value["a"][:] = 0
    assert got["a"].tolist() == [1.5, 2.5]
    assert_same(ShmBufferContainer(np.int8, (2,)).get(), np.zeros(2, np.int8))
    one_dtype = ShmBufferContainer(np.int8, {"x": (1,), "y": (2,)})
    assert_same(one_dtype.get(), {"x": np.zeros(1, np.int8), "y": np.zeros(2, np.int8)})


def _fill(buffers: list[Any]) -> None:
    buffers[0].fill(buffers[0].get() + 1)
    buffers[1].fill({"a": np.full(3, 2.5), "b": np.array([[True]])})


@pytest.mark.parametrize("context", ["fork", "spawn", "forkserver"])
def test_a_buffer_is_the_same_memory_in_another_process(context: str) -> None:
    buffers = [
        ShmBuffer(np.int32, (2, 2)),
        ShmBufferContainer({"a": np.float64, "b": np.bool_}, {"a": (3,), "b": (1, 1)}, False),
    ]
    buffers[0].fill(np.array([[1, 2], [3, 4]], np.int32))
    seen = buffers[1].get()
    process = multiprocessing.get_context(context).Process(target=_fill, args=(buffers,))
    process.start()
    process.join(120)
    assert process.exitcode == 0
    assert buffers[0].get().tolist() == [[2, 3], [4, 5]]
    assert seen["a"].tolist() == [2.5] * 3
    assert seen["b"].tolist() == [[True]]


def test_what_does_not_fit_is_named() -> None:
    buffer = ShmBuffer(np.float32, (2,))
    for value, words in (
        ([1.0, 2.0], "takes a numpy array, not list"),
        (np.zeros(3, np.float32), r"shape \(3,\), and the buffer has shape \(2,\)"),
        (np.zeros((1, 2), np.float32), r"shape \(1, 2\)"),
        (np.zeros(2, np.complex64), "of complex64, and the buffer holds float32"),
    ):
        with pytest.raises((errors.ArgumentError, errors.ArgumentTypeError), match=words):
            buffer.fill(value)
    assert buffer.get().tolist() == [0, 0]
    for dtype, shape, words in (
        ("nonsense", (2,), "dtype is 'nonsense'"),
        (object, (2,), "holds numbers or bools"),
        (None, (2,), "dtype is None"),
        (np.int8, 2, "shape is 2: it is a tuple"),
        (np.int8, (-1,), "not negative"),
        (np.int8, (True,), "a tuple of ints"),
    ):
        with pytest.raises(errors.ArgumentTypeError, match=words):
            ShmBufferContainer(dtype, shape)
    container = ShmBufferContainer(np.int8, {"a": (1,)})
    for value in ({"b": np.zeros(1, np.int8)}, np.zeros(1, np.int8)):
        with pytest.raises(errors.ArgumentError, match=r"keys \['a'\]"):
            container.fill(value)
    with pytest.raises(errors.ArgumentError, match="the key 'a' and the dtype has not"):
        ShmBufferContainer({"b": np.int8}, {"a": (1,)})
    with pytest.raises(errors.ArgumentTypeError, match="copy_on_get"):
        ShmBuffer(np.int8, (1,), 1)  # type: ignore[arg-type]
