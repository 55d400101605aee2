"""Statistics over episodes and their bootstrap intervals, by the definitions of rliable."""

from __future__ import annotations

import numbers
import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from corral import errors
from corral.settings import whole

Values = npt.NDArray[np.float64]
# How many numbers are resampled at once: it bounds the memory.
_AT_ONCE = 1 << 22


class Interval(NamedTuple):
    """A confidence interval."""

    low: float
    high: float


def iqm(values: Values) -> Values:
    """The interquartile mean along the last axis: the mean without the lowest and the highest
    quarter, as `scipy.stats.trim_mean(values, 0.25)`: of n values, n // 4 go at either end."""
    n = values.shape[-1]
    cut = n // 4
    middle: Values = np.partition(values, (cut, n - cut - 1), axis=-1)[..., cut : n - cut]
    return np.asarray(middle.mean(axis=-1))


STATISTICS: dict[str, Callable[[Values], Values]] = {
    "iqm": iqm,
    "mean": lambda values: np.asarray(values.mean(axis=-1)),
    "median": lambda values: np.asarray(np.median(values, axis=-1)),
}
"""Statistics of returns, along the last axis."""


def named(statistic: Any, known: dict[str, Any]) -> str:
    """The name of a statistic, checked to be one of `known`."""
    if not isinstance(statistic, str):
        raise errors.ArgumentTypeError(
            f"statistic is one of {', '.join(map(repr, known))}, not {statistic!r}"
        )
    if statistic not in known:
        raise errors.ArgumentError(
            f"there is no statistic {statistic!r}: it is one of {', '.join(map(repr, known))}"
        )
    return statistic


def interval(
    of_rows: Callable[[npt.NDArray[np.int64]], Values],
    count: int,
    *,
    confidence: float,
    resamples: int,
    seed: int,
    strata: Any,
) -> Interval:
    """The percentile bootstrap's interval.

    Args:
        of_rows: the statistic of resampled episodes: of each row of an array of their numbers.
        count: how many episodes there are.
        confidence: how much of the resamples the interval covers, above 0 and below 1.
        resamples: how often to resample.
        seed: of the resampling.
        strata: a label for each episode; those of a label are resampled among themselves. None for
            one label.

    Raises:
        ArgumentError, ArgumentTypeError: name the argument that makes no sense.
    """
    is_number = isinstance(confidence, numbers.Real) and not isinstance(confidence, bool)
    if not is_number:
        raise errors.ArgumentTypeError(f"confidence is a number, not {confidence!r}")
    if not 0 < confidence < 1:
        raise errors.ArgumentError(
            f"confidence is {confidence!r}: give a share above 0 and below 1, 0.95 for 95 %"
        )
    resamples = whole("resamples", resamples, sys.maxsize)
    seed = whole("seed", seed, 2**63 - 1, least=0)
    groups = _groups(strata, count)
    found = np.concatenate([of_rows(rows) for rows in _resampled(groups, count, resamples, seed)])
    tail = (1 - float(confidence)) / 2
    low, high = np.quantile(found, [tail, 1 - tail])
    return Interval(float(low), float(high))


def _groups(strata: Any, count: int) -> list[npt.NDArray[np.int64]]:
    """The numbers of the episodes of each label."""
    if strata is None:
        return [np.arange(count)]
    labels = np.asarray(strata)
    if labels.shape != (count,):
        raise errors.ArgumentError(
            f"strata has the shape {labels.shape}: give one label for each of {count} episodes"
        )
    _, place = np.unique(labels, return_inverse=True)
    order = np.argsort(place, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(place[order])) + 1)


def _resampled(
    groups: list[npt.NDArray[np.int64]], count: int, resamples: int, seed: int
) -> Iterator[npt.NDArray[np.int64]]:
    """Arrays of `count` columns, `resamples` rows in all."""
    rng = np.random.default_rng(seed)
    left = resamples
    while left > 0:
        rows = min(left, max(1, _AT_ONCE // count))
        left -= rows
        yield np.concatenate(
            [group[rng.integers(len(group), size=(rows, len(group)))] for group in groups], axis=1
        )
