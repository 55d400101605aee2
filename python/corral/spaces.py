"""Gymnasium spaces from the core's leaves."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.vector.utils import batch_space

Leaf = dict[str, Any]
# How leaves hang together: ("leaf", number), ("dict", [(key, tree), …]) or ("tuple", [tree, …]).
Tree = tuple[str, Any]

_DISCRETE_TAKES_DTYPE = "dtype" in inspect.signature(spaces.Discrete.__init__).parameters
# Gymnasium's Text and Sequence want a bound; the core's may have none.
_UNBOUNDED_TEXT = 1_000_000


def from_leaves(tree: Tree, leaves: list[Leaf]) -> spaces.Space[Any]:
    """The space of one env: the leaves, nested as the tree says."""
    kind, inner = tree
    if kind == "leaf":
        return _from_leaf(leaves[inner])
    if kind == "tuple":
        return spaces.Tuple([from_leaves(branch, leaves) for branch in inner])
    # A list of pairs keeps the leaves' order; a plain dict would be sorted by key.
    return spaces.Dict([(key, from_leaves(branch, leaves)) for key, branch in inner])


def batched(space: spaces.Space[Any], num_envs: int) -> spaces.Space[Any]:
    """The space of `num_envs` envs at once."""
    return batch_space(space, num_envs)


def cast_actions(space: Any, actions: Any) -> Any:
    """What stands for floats as the floats of its space: policies give float64s and ints."""
    if isinstance(space, spaces.Box) and space.dtype is not None and space.dtype.kind == "f":
        if isinstance(actions, np.ndarray) and actions.dtype.kind in "fiu":
            return actions.astype(space.dtype, copy=False)
    elif isinstance(space, spaces.Dict) and isinstance(actions, Mapping):
        return {name: cast_actions(space.spaces.get(name), part) for name, part in actions.items()}
    elif isinstance(space, spaces.Tuple) and isinstance(actions, tuple):
        # Another length is for the check behind this to name.
        inner = (*space.spaces, *[None] * len(actions))
        return tuple(cast_actions(one, part) for one, part in zip(inner, actions))
    return actions


def batch_actions(space: Any, actions: Sequence[Any]) -> Any:
    """One action of each env as a batch of them, nested as `space`.

    Raises:
        LookupError, TypeError: for an action that lacks a part.
    """
    if isinstance(space, spaces.Dict):
        return {
            name: batch_actions(inner, [action[name] for action in actions])
            for name, inner in space.spaces.items()
        }
    if isinstance(space, spaces.Tuple):
        return tuple(
            batch_actions(inner, [action[k] for action in actions])
            for k, inner in enumerate(space.spaces)
        )
    if isinstance(space, _ARRAYS):
        return cast_actions(space, np.asarray(actions))
    return tuple(actions)


def leaves_of(tree: Tree, values: Any) -> list[Any]:
    """What is nested as the tree, leaf by leaf."""
    kind, inner = tree
    if kind == "leaf":
        return [values]
    if kind == "tuple":
        parts = [leaves_of(branch, value) for branch, value in zip(inner, values, strict=True)]
    else:
        parts = [leaves_of(branch, values[key]) for key, branch in inner]
    return [leaf for part in parts for leaf in part]


def allow(actions: Sequence[Any], leaves: list[Leaf], masks: Any, rng: np.random.Generator) -> None:
    """Replaces the choices in a batch of actions, given leaf by leaf, by choices that masks allow.

    An element without any allowed choice keeps its own. Every choice takes one number of `rng`.

    Args:
        masks: `infos["action_mask"]`, `(num_envs, choices)`.
    """
    masks = np.asarray(masks)
    first = 0
    for leaf, batch in zip(leaves, actions, strict=True):
        if leaf["kind"] != "fixed" or not leaf["discrete"]:
            continue
        choices = batch.reshape(len(masks), -1)
        shape = tuple(leaf["shape"])
        low, high = (np.broadcast_to(leaf[side], choices[0].shape) for side in ("low", "high"))
        for k in range(choices.shape[1]):
            end = first + int(high[k]) - int(low[k]) + 1
            for row, mask in enumerate(masks[:, first:end]):
                allowed = np.flatnonzero(mask)
                pick = int(rng.random() * len(allowed))
                if len(allowed):
                    choices[row, k] = int(low[k]) + int(allowed[pick])
            first = end
        batch[...] = choices.reshape(len(masks), *shape)


_ARRAYS = (spaces.Box, spaces.Discrete, spaces.MultiDiscrete, spaces.MultiBinary)


def _from_leaf(leaf: Leaf) -> spaces.Space[Any]:
    kind = leaf["kind"]
    if kind == "fixed":
        return _from_tensor(leaf)
    if kind == "ragged":
        return _ragged(leaf)
    if kind == "text":
        return AnyText(min(leaf["max_len"], _UNBOUNDED_TEXT))
    return Opaque()


def _from_tensor(leaf: Leaf) -> spaces.Space[Any]:
    dtype, shape = np.dtype(leaf["dtype"]), tuple(leaf["shape"])
    low, high = (_per_element(leaf[side], shape, dtype) for side in ("low", "high"))
    if dtype.kind == "b" and shape and leaf["discrete"]:
        return spaces.MultiBinary(shape if len(shape) > 1 else shape[0])
    if not leaf["discrete"] or dtype.kind == "b":
        return spaces.Box(low, high, shape, dtype.type)
    low, high = (np.asarray(side).astype(np.int64) for side in (low, high))
    integer: Any = dtype.type
    if shape:
        return spaces.MultiDiscrete(high - low + 1, dtype=integer, start=low)
    return discrete(int(high - low + 1), int(low), integer)


def discrete(n: int, start: int, dtype: Any) -> spaces.Discrete:
    """A `Discrete`, of a dtype where this Gymnasium's take one."""
    if _DISCRETE_TAKES_DTYPE:
        return spaces.Discrete(n, start=start, dtype=dtype)
    return spaces.Discrete(n, start=start)


def _per_element(side: list[float], shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
    values = np.array(side, dtype=dtype)
    return np.full(shape, values[0]) if len(side) == 1 else values.reshape(shape)


def _ragged(leaf: Leaf) -> spaces.Space[Any]:
    dtype = np.dtype(leaf["dtype"])
    low, high = _range(dtype)
    # One ragged axis is what Gymnasium's Sequence holds; more it has no space for.
    if len(leaf["shape"]) != 1:
        return Opaque()
    return spaces.Sequence(spaces.Box(low, high, (), dtype.type), stack=True)


def _range(dtype: np.dtype[Any]) -> tuple[float, float]:
    if dtype.kind == "f":
        return -np.inf, np.inf
    if dtype.kind == "b":
        return 0, 1
    integer: Any = dtype
    return np.iinfo(integer).min, np.iinfo(integer).max


class AnyText(spaces.Text):
    """Texts of any characters, up to a length; draws ASCII."""

    def __init__(self, max_length: int) -> None:
        super().__init__(max_length, min_length=0, charset=_DRAWN)

    def contains(self, x: Any) -> bool:
        """Whether `x` is a str that is not too long."""
        return isinstance(x, str) and len(x) <= self.max_length

    def __repr__(self) -> str:
        return f"AnyText({self.max_length})"


_DRAWN = "".join(chr(code) for code in range(32, 127))


class Opaque(spaces.Space[Any]):
    """Any Python object: what the core carries without opening it."""

    def __init__(self) -> None:
        super().__init__(shape=None, dtype=None)

    @property
    def is_np_flattenable(self) -> bool:
        """Not flattenable."""
        return False

    def sample(self, mask: Any | None = None, probability: Any | None = None) -> Any:
        """None: there is nothing to draw from."""
        return None

    def contains(self, x: Any) -> bool:
        """Everything is in it."""
        return True

    def __repr__(self) -> str:
        return "Opaque()"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Opaque)

    __hash__ = None  # type: ignore[assignment]
