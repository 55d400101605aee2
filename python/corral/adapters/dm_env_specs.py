"""dm_env's specs from Gymnasium's spaces and back, and values between the two.

A space becomes a spec:

- Box of floats: `Array` where no element has a bound, else `BoundedArray`. Box of integers:
  `BoundedArray`. Box of bool: `Array` of bool.
- Discrete: `DiscreteArray`; one that does not start at 0: `BoundedArray` of shape ().
- MultiDiscrete, MultiBinary: `BoundedArray`.
- Text: `StringArray` of shape (). Dict: a dict. Tuple: a tuple.
- Any other space: `Array` of shape () and dtype object, which holds the value.

A spec becomes a space:

- `Array`: Box, without bounds for floats, over the whole dtype for integers and bool.
- `DiscreteArray`: Discrete. `BoundedArray` of integers: Discrete where the shape is (); for actions
  of other shapes MultiDiscrete. Any other `BoundedArray`, and more labels than the dtype can count:
  Box.
- `StringArray` of str and of shape (): Text of any letters. A dict: Dict. A tuple or list: Tuple.
- Specs of other dtypes, other string arrays among them: `corral.spaces.Opaque`, any object.
"""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
from dm_env import specs
from gymnasium import spaces

from corral import errors
from corral._python_env import as_gymnasium
from corral.spaces import Opaque, discrete, from_leaves

_MOST_LABELS = 2**63 - 1
_LONGEST_TEXT = 1_000_000


class Node(abc.ABC):
    """A space with its spec, and what becomes of values between the two.

    Attributes:
        spec: of one env: an `Array`, or a dict or tuple of specs.
    """

    spec: Any

    @abc.abstractmethod
    def to_dm(self, values: Any) -> Any:
        """Observations as dm_env has them: nested as `spec`."""

    @abc.abstractmethod
    def to_corral(self, actions: Any) -> Any:
        """Actions as the space has them. The env refuses what does not fit its space."""


@dataclasses.dataclass(frozen=True)
class _Numbers(Node):
    spec: Any
    where: str
    # Whether a single label is made a NumPy scalar: envs may look one up in a dict.
    is_label: bool = False
    # Whether numbers 0 and 1 are made bools, which corral's leaves of bool and of numbers take.
    is_binary: bool = False

    def to_dm(self, values: Any) -> Any:
        array, dtype = np.asarray(values), self.spec.dtype
        if array.dtype == dtype:
            return array
        is_real = dtype.kind == "f"
        is_number = array.dtype.kind in ("biuf" if is_real else "biu")
        cast = array.astype(dtype) if is_number else array
        if not is_number or not (is_real or np.array_equal(cast, array)):
            raise errors.SpaceError(
                f"{self.where} is {values!r} ({array.dtype}): its space has {dtype}, which does "
                "not hold that"
            )
        return cast

    def to_corral(self, actions: Any) -> Any:
        given = np.asarray(actions)
        if self.is_binary and given.dtype.kind in "iu" and ((given == 0) | (given == 1)).all():
            return given.astype(np.bool_)
        return given[()] if self.is_label else given


@dataclasses.dataclass(frozen=True)
class _Object(Node):
    """A text, or anything else that is no array of numbers."""

    spec: Any
    is_batch: bool

    def to_dm(self, values: Any) -> Any:
        if self.is_batch:
            objects = np.empty(len(values), dtype=object)
            for row, value in enumerate(values):
                objects[row] = value
            return objects
        if isinstance(self.spec, specs.StringArray):
            return values
        held = np.empty((), dtype=object)
        held[()] = values
        return held

    def to_corral(self, actions: Any) -> Any:
        is_held = isinstance(actions, np.ndarray) and actions.shape == ()
        return actions.item() if is_held else actions


@dataclasses.dataclass(frozen=True)
class _Branches(Node):
    spec: Any
    nodes: dict[str, Node]

    def to_dm(self, values: Any) -> Any:
        return {name: node.to_dm(values[name]) for name, node in self.nodes.items()}

    def to_corral(self, actions: Any) -> Any:
        if not isinstance(actions, Mapping):
            return actions
        return {
            name: self.nodes[name].to_corral(action) if name in self.nodes else action
            for name, action in actions.items()
        }


@dataclasses.dataclass(frozen=True)
class _Items(Node):
    spec: Any
    nodes: tuple[Node, ...]

    def to_dm(self, values: Any) -> Any:
        return tuple(node.to_dm(value) for node, value in zip(self.nodes, values, strict=True))

    def to_corral(self, actions: Any) -> Any:
        if not isinstance(actions, tuple | list) or len(actions) != len(self.nodes):
            return actions
        return tuple(node.to_corral(action) for node, action in zip(self.nodes, actions))


def of_space(space: Any, name: str, *, is_batch: bool, is_ours: bool) -> Node:
    """A space as a spec.

    Args:
        space: the space of one env.
        name: what the spec is called; within a Dict its key.
        is_batch: whether values have one row per env.
        is_ours: whether the env is one of corral's, which take bools for MultiBinary.
    """

    def inner(one: Any, its_name: str) -> Node:
        return of_space(one, its_name, is_batch=is_batch, is_ours=is_ours)

    match as_gymnasium(space):
        case spaces.Dict() as branches:
            nodes = {key: inner(one, key) for key, one in branches.spaces.items()}
            return _Branches({key: node.spec for key, node in nodes.items()}, nodes)
        case spaces.Tuple() as items:
            each = tuple(inner(one, f"{name}[{k}]") for k, one in enumerate(items.spaces))
            return _Items(tuple(node.spec for node in each), each)
        case spaces.Discrete() as one:
            n, start = int(one.n), int(one.start)
            spec = specs.DiscreteArray(n, one.dtype, name)
            if start:
                spec = specs.BoundedArray((), one.dtype, start, start + n - 1, name)
            return _Numbers(spec, name, is_label=not is_batch)
        case spaces.MultiDiscrete() as many:
            first = np.asarray(getattr(many, "start", np.zeros_like(many.nvec)))
            spec = _bounded(many.shape, many.dtype, first, first + many.nvec - 1, name)
            return _Numbers(spec, name)
        case spaces.MultiBinary() as bits:
            spec = specs.BoundedArray(bits.shape, bits.dtype, 0, 1, name)
            return _Numbers(spec, name, is_binary=is_ours)
        case spaces.Box() as box:
            return _Numbers(_of_box(box, name), name)
        case spaces.Text():
            return _Object(specs.StringArray((), str, name), is_batch)
        case _:
            return _Object(specs.Array((), object, name), is_batch)


def _of_box(box: spaces.Box, name: str) -> Any:
    dtype = np.dtype(box.dtype)
    is_free = dtype.kind == "f" and np.isneginf(box.low).all() and np.isposinf(box.high).all()
    if dtype.kind == "b" or is_free:
        return specs.Array(box.shape, dtype, name)
    return _bounded(box.shape, dtype, box.low, box.high, name)


def _bounded(shape: Any, dtype: Any, low: Any, high: Any, name: str) -> Any:
    """The spec, with one bound where all elements have the same."""
    sides = (np.asarray(side) for side in (low, high))
    low, high = (
        side.flat[0] if side.size and (side == side.flat[0]).all() else side for side in sides
    )
    return specs.BoundedArray(shape, dtype, low, high, name)


def space_of(spec: Any, where: str, *, is_action: bool = False) -> spaces.Space[Any]:
    """A spec as a space.

    Raises:
        SpaceError: for what is no spec of dm_env's; `where` it is.
    """
    if isinstance(spec, Mapping):
        return spaces.Dict(
            [
                (key, space_of(one, f"{where}[{key!r}]", is_action=is_action))
                for key, one in spec.items()
            ]
        )
    if isinstance(spec, tuple | list):
        return spaces.Tuple(
            [space_of(one, f"{where}[{k}]", is_action=is_action) for k, one in enumerate(spec)]
        )
    if not isinstance(spec, specs.Array):
        raise errors.SpaceError(
            f"{where} is {spec!r}, where a spec of dm_env's belongs, or a dict, tuple or list of "
            "specs"
        )
    if isinstance(spec, specs.StringArray):
        if spec.shape == () and spec.string_type is str:
            return from_leaves(("leaf", 0), [{"kind": "text", "max_len": _LONGEST_TEXT}])
        return Opaque()
    dtype: Any = spec.dtype
    if dtype.kind not in "biuf" or dtype.itemsize > 8:
        return Opaque()
    if not isinstance(spec, specs.BoundedArray):
        return spaces.Box(*_range(dtype), spec.shape, dtype.type)
    low = np.broadcast_to(spec.minimum, spec.shape)
    high = np.broadcast_to(spec.maximum, spec.shape)
    if dtype.kind in "iu" and low.size and (spec.shape == () or is_action):
        counts = high.astype(object) - low.astype(object) + 1
        # Gymnasium keeps the number of labels in their own dtype, and their start as an int64.
        most = min(int(np.iinfo(dtype).max), _MOST_LABELS)
        if np.max(counts) <= most and np.max(high) <= most:
            return _labels(spec.shape, counts, low, dtype.type)
    if dtype.kind == "b":
        return spaces.Box(0, 1, spec.shape, dtype.type)
    return spaces.Box(low, high, spec.shape, dtype.type)


def _labels(shape: tuple[int, ...], counts: Any, low: Any, dtype: Any) -> spaces.Space[Any]:
    if shape == ():
        return discrete(int(counts), int(low), dtype)
    start = low.astype(np.int64)
    return spaces.MultiDiscrete(counts.astype(np.int64), dtype=dtype, start=start)


def _range(dtype: np.dtype[Any]) -> tuple[float, float]:
    if dtype.kind == "f":
        return -np.inf, np.inf
    if dtype.kind == "b":
        return 0, 1
    integer: Any = dtype
    return int(np.iinfo(integer).min), int(np.iinfo(integer).max)


def observation_of(spec: Any, value: Any, where: str) -> Any:
    """A dm_env observation as the space of its spec has it. Arrays are not copied.

    Raises:
        ConformanceError: for a value that is not nested as the spec.
    """
    if isinstance(spec, Mapping):
        if not isinstance(value, Mapping) or value.keys() != spec.keys():
            told = sorted(map(str, value)) if isinstance(value, Mapping) else repr(value)
            raise errors.ConformanceError(
                f"{where} is {told}: its spec has the keys {sorted(map(str, spec))}"
            )
        return {
            key: observation_of(one, value[key], f"{where}[{key!r}]") for key, one in spec.items()
        }
    if isinstance(spec, tuple | list):
        if not isinstance(value, tuple | list) or len(value) != len(spec):
            raise errors.ConformanceError(f"{where} is {value!r}: its spec has {len(spec)} items")
        return tuple(
            observation_of(one, inner, f"{where}[{k}]")
            for k, (one, inner) in enumerate(zip(spec, value))
        )
    if spec.dtype == object and spec.shape == ():
        return value.item() if isinstance(value, np.ndarray) and value.shape == () else value
    return value


def observation_reader(spec: Any, where: str) -> Callable[[Any], Any]:
    """What `observation_of` does for one spec. Flat dicts of arrays, which most specs are, take
    one comparison of keys."""
    if isinstance(spec, dict) and all(
        isinstance(leaf, specs.Array) and leaf.dtype != object for leaf in spec.values()
    ):
        keys = spec.keys()
        return lambda value: (
            value
            if type(value) is dict and value.keys() == keys
            else observation_of(spec, value, where)
        )
    return lambda value: observation_of(spec, value, where)


def action_writer(spec: Any) -> Callable[[Any], Any]:
    """What `action_of` does for one spec. Flat dicts of numbers are cast without looking at the
    spec again."""
    if isinstance(spec, dict) and all(
        isinstance(leaf, specs.Array)
        and not isinstance(leaf, specs.StringArray)
        and leaf.dtype.kind in "biuf"
        for leaf in spec.values()
    ):
        # A number is cast by its type in a fifth of the time that an array of it takes.
        casts = [
            (key, leaf.dtype.type if leaf.shape == () else partial(np.asarray, dtype=leaf.dtype))
            for key, leaf in spec.items()
        ]
        return lambda action: {key: cast(action[key]) for key, cast in casts}
    return lambda action: action_of(spec, action)


def action_of(spec: Any, action: Any) -> Any:
    """An action of the space of a spec as dm_env has it: nested as the spec, in its dtypes."""
    if isinstance(spec, Mapping):
        return {key: action_of(one, action[key]) for key, one in spec.items()}
    if isinstance(spec, tuple | list):
        inner = [action_of(one, part) for one, part in zip(spec, action)]
        if hasattr(spec, "_make"):
            return spec._make(inner)
        return inner if isinstance(spec, list) else tuple(inner)
    if isinstance(spec, specs.StringArray) or spec.dtype.kind not in "biuf":
        return action
    # Of a scalar this makes a NumPy scalar: envs may look one up in a dict.
    return np.asarray(action, dtype=spec.dtype)[()]
