"""gym3's types from Gymnasium's spaces and back, and values between the two.

gym3 knows reals, without bounds, and labels from 0 to below n, the same n for a whole tensor. A
space that it can hold with nothing lost becomes such a type, in these dtypes:

- Box of float32 or float64: Real of that dtype; of float16: Real of float32.
- Box of integers from 0 to one bound: Discrete of that dtype (an image is 256 labels). Of other
  bounds: Real of float32, or of float64, whichever holds every value exactly.
- Box of bool: Discrete(2) of uint8. MultiBinary: Discrete(2) of its dtype.
- Discrete, MultiDiscrete: Discrete of that dtype, counted from 0 wherever the space starts. Where
  n differs within an observation, it is the greatest.
- Dict: DictType.
"""

from __future__ import annotations

import abc
import dataclasses
from typing import Any

import numpy as np
from gym3.types import DictType, Discrete, Real, TensorType
from gymnasium import spaces

from corral import errors
from corral._python_env import as_gymnasium
from corral.spaces import discrete

_MOST_LABELS = 2**63 - 1


class Node(abc.ABC):
    """A space with its type, and what becomes of values between the two."""

    type: Any

    @abc.abstractmethod
    def to_gym3(self, values: Any) -> Any:
        """A copy of values as gym3 has them, of any number of envs."""

    @abc.abstractmethod
    def to_corral(self, values: Any) -> Any:
        """Values as the space has them; what is none of its type is left for corral to refuse."""


@dataclasses.dataclass(frozen=True)
class _Tensor(Node):
    type: Any
    # The space's own dtype.
    dtype: np.dtype[Any]
    # What label 0 stands for, the same for all elements or one each.
    start: Any = 0

    def to_gym3(self, values: Any) -> Any:
        name = self.type.eltype.dtype_name
        if np.any(self.start):
            return (np.asarray(values).astype(np.int64) - self.start).astype(name)
        return np.array(values, dtype=name)

    def to_corral(self, values: Any) -> Any:
        given = np.asarray(values)
        if self.dtype == given.dtype and not np.any(self.start):
            return given
        if given.dtype.kind not in "iuf":
            return given
        with np.errstate(invalid="ignore"):
            cast = given.astype(self.dtype)
        if not np.array_equal(cast, given):
            return given
        return cast if not np.any(self.start) else (cast + self.start).astype(self.dtype)


@dataclasses.dataclass(frozen=True)
class _Branches(Node):
    type: Any
    nodes: dict[str, Node]

    def to_gym3(self, values: Any) -> Any:
        return {name: node.to_gym3(values[name]) for name, node in self.nodes.items()}

    def to_corral(self, values: Any) -> Any:
        if not isinstance(values, dict):
            return values
        return {
            name: self.nodes[name].to_corral(value) if name in self.nodes else value
            for name, value in values.items()
        }


def of_space(space: Any, where: str, *, is_action: bool = False) -> Node:
    """A space as a gym3 type.

    Raises:
        UnsupportedError: for a space that gym3 has no type for; `where` it is.
    """
    match as_gymnasium(space):
        case spaces.Dict() as branches:
            nodes = {
                name: of_space(inner, f"{where}, '{name}',", is_action=is_action)
                for name, inner in branches.spaces.items()
            }
            return _Branches(DictType(**{name: node.type for name, node in nodes.items()}), nodes)
        case spaces.Discrete() as one:
            return _labels(one.dtype, (), int(one.n), int(one.start))
        case spaces.MultiDiscrete() as many:
            n = int(many.nvec.max(initial=1))
            if is_action and not (many.nvec == n).all():
                raise errors.UnsupportedError(
                    f"{where} has elements of {many.nvec.tolist()} labels, and gym3 has one number "
                    "for all of a tensor: give each a leaf of its own, in a Dict"
                )
            starts = np.asarray(getattr(many, "start", 0), dtype=np.int64)
            return _labels(many.dtype, many.shape, n, starts)
        case spaces.MultiBinary() as bits:
            eltype = Discrete(2, dtype_name=np.dtype(bits.dtype).name)
            # A leaf of bools takes nothing else, and bools pass for any number.
            return _Tensor(TensorType(eltype, bits.shape), np.dtype(np.bool_))
        case spaces.Box() as box:
            return _of_box(box, where)
        case other:
            raise errors.UnsupportedError(
                f"{where} is a {type(other).__name__}, for which gym3 has no type: it knows "
                "tensors of numbers, and dicts of them"
            )


def _labels(dtype: Any, shape: tuple[int, ...], n: int, start: Any) -> Node:
    name = np.dtype(dtype).name
    return _Tensor(TensorType(Discrete(n, dtype_name=name), shape), np.dtype(dtype), start)


def _of_box(box: spaces.Box, where: str) -> Node:
    dtype = np.dtype(box.dtype)
    if dtype.kind == "b":
        return _Tensor(TensorType(Discrete(2, dtype_name="uint8"), box.shape), dtype)
    if dtype.kind == "f":
        name = "float64" if dtype.itemsize == 8 else "float32"
        return _Tensor(TensorType(Real(dtype_name=name), box.shape), dtype)
    low, high = int(box.low.min(initial=0)), int(box.high.max(initial=0))
    if (box.low == 0).all() and (box.high == high).all():
        return _Tensor(TensorType(Discrete(high + 1, dtype_name=dtype.name), box.shape), dtype)
    most = max(-low, high)
    if most > 2**53:
        raise errors.UnsupportedError(
            f"{where} has {dtype.name} numbers from {low} to {high}: gym3 has integers from 0, and "
            "floats, which do not hold all of these"
        )
    name = "float32" if most <= 2**24 else "float64"
    return _Tensor(TensorType(Real(dtype_name=name), box.shape), dtype)


def space_of(type_: Any, where: str) -> spaces.Space[Any]:
    """A gym3 type as a space.

    Raises:
        SpaceError: for what is no type of gym3's; `where` it is.
    """
    if isinstance(type_, DictType):
        return spaces.Dict(
            [(name, space_of(inner, f"{where}['{name}']")) for name, inner in type_.items()]
        )
    eltype = getattr(type_, "eltype", None)
    if not isinstance(type_, TensorType) or not isinstance(eltype, Real | Discrete):
        raise errors.SpaceError(f"{where} is {type_!r}, where a type of gym3's belongs")
    dtype: Any = np.dtype(eltype.dtype_name)
    if isinstance(eltype, Real):
        return spaces.Box(-np.inf, np.inf, type_.shape, dtype.type)
    # gym3 lets n be one more than an unsigned dtype has.
    high = min(eltype.n - 1, int(np.iinfo(dtype).max))
    if high >= _MOST_LABELS or (dtype == np.uint8 and high == 255 and type_.shape):
        return spaces.Box(0, high, type_.shape, dtype.type)
    if not type_.shape:
        return discrete(high + 1, 0, dtype.type)
    counts = np.full(type_.shape, high + 1, dtype=np.int64)
    return spaces.MultiDiscrete(counts, dtype=dtype.type)
