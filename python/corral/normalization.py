"""`Normalization`: the running statistics of a vec env's layers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from corral import _native, errors

Arrays = npt.NDArray[np.float64] | dict[str, npt.NDArray[np.float64]]


class Normalization:
    """What observations (or rewards) are normalised by; `VectorEnv.observation_normalization`.

    To evaluate with a training env's statistics, and change nothing about them:

        evaluation.observation_normalization.load(training.observation_normalization.state())
        evaluation.observation_normalization.update = False

    They are part of `save_state`, but `update` is not.
    """

    def __init__(
        self, native: _native.Statistics, names: Sequence[str], shapes: Sequence[tuple[int, ...]]
    ) -> None:
        self._native = native
        self._names = tuple(names)
        self._shapes = tuple(shapes)

    @property
    def update(self) -> bool:
        """Whether steps and resets update the statistics; set to False to freeze them."""
        return self._native.updates

    @update.setter
    def update(self, value: bool) -> None:
        if not isinstance(value, bool | np.bool_):
            raise errors.ArgumentTypeError(f"update is a bool, not {value!r}")
        self._native.updates = bool(value)

    @property
    def mean(self) -> Arrays:
        """The mean per element; a dict by leaf name where the observation is one. A copy."""
        return self._arrays(1)

    @property
    def var(self) -> Arrays:
        """The variance per element; as `mean`."""
        return self._arrays(2)

    @property
    def count(self) -> float:
        """How many values of each element have been seen, and Gymnasium's first 1e-4."""
        return next(moments[0] for moments in self._native.moments if moments is not None)

    def state(self) -> dict[str, Any]:
        """The statistics as plain lists by leaf name (JSON takes them): `load` takes them up."""
        return {
            name: {"count": moments[0], "mean": moments[1], "var": moments[2]}
            for name, moments in zip(self._names, self._native.moments)
            if moments is not None
        }

    def load(self, state: dict[str, Any]) -> None:
        """Takes up what `state` gave, of any vec env of the same observation leaves.

        Raises:
            StateError: for statistics of other leaves or that make no sense; these are as they
                were.
        """
        ours = self.state().keys()
        try:
            if state.keys() != ours:
                raise errors.StateError(
                    f"these statistics are of the leaves {sorted(state)}, not of {sorted(ours)}"
                )
            moments = [
                (
                    float(state[name]["count"]),
                    [float(value) for value in state[name]["mean"]],
                    [float(value) for value in state[name]["var"]],
                )
                if name in ours
                else None
                for name in self._names
            ]
        except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
            raise errors.StateError(f"this is no state of a normalization: {error!r}") from None
        if any(own is not None and not math.isfinite(own[0]) for own in moments):
            raise errors.StateError("this is no state of a normalization: its count is not finite")
        self._native.set_moments(moments)

    def _arrays(self, which: int) -> Arrays:
        arrays = {
            name: np.array(moments[which], dtype=np.float64).reshape(shape)
            for name, shape, moments in zip(self._names, self._shapes, self._native.moments)
            if moments is not None
        }
        return arrays[""] if self._names == ("",) else arrays

    def __repr__(self) -> str:
        return f"corral.Normalization(count={self.count:g}, update={self.update})"
