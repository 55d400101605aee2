"""Two evaluations on the same indices, side by side."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from corral import errors
from corral.evaluation import statistics
from corral.evaluation.result import Evaluation
from corral.evaluation.statistics import Interval

_IMPROVEMENT = "probability_of_improvement"


@dataclass(frozen=True, eq=False)
class Comparison:
    """What sets evaluation `a` apart from evaluation `b` of the same indices, pair by pair."""

    a: Evaluation
    b: Evaluation

    @property
    def differences(self) -> npt.NDArray[np.float64]:
        """`float64 (n,)`: the return of `a` less that of `b`, of each index."""
        return self.a.returns - self.b.returns

    def difference(self, statistic: str = "iqm") -> float:
        """A statistic of `a` less that of `b`: "iqm", "mean" or "median" of the returns."""
        name = statistics.named(statistic, statistics.STATISTICS)
        function = statistics.STATISTICS[name]
        return float(function(self.a.returns) - function(self.b.returns))

    @property
    def probability_of_improvement(self) -> float:
        """The share of indices of which `a` has the greater return, a tie counting half: rliable's,
        where each index is a task."""
        return float(self._wins().mean())

    def _wins(self) -> npt.NDArray[np.float64]:
        greater, equal = self.a.returns > self.b.returns, self.a.returns == self.b.returns
        return np.asarray(greater + 0.5 * equal)

    def interval(
        self,
        statistic: str = "iqm",
        *,
        confidence: float = 0.95,
        resamples: int = 10_000,
        seed: int = 0,
        strata: Iterable[Any] | None = None,
    ) -> Interval:
        """A bootstrap interval of `difference(statistic)`, or of "probability_of_improvement".

        The same episodes are drawn of `a` and of `b`: what makes an index hard for both makes the
        interval no wider. The arguments are those of `Evaluation.interval`.
        """
        name = statistics.named(statistic, {**statistics.STATISTICS, _IMPROVEMENT: None})

        def of_rows(rows: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
            if name == _IMPROVEMENT:
                return np.asarray(self._wins()[rows].mean(axis=-1))
            function = statistics.STATISTICS[name]
            return function(self.a.returns[rows]) - function(self.b.returns[rows])

        return statistics.interval(
            of_rows,
            len(self.a.indices),
            confidence=confidence,
            resamples=resamples,
            seed=seed,
            strata=strata,
        )

    def __str__(self) -> str:
        lines = [f"{len(self.a.indices)} episodes, each by both: a less b, with 95 % intervals"]
        for name in statistics.STATISTICS:
            low, high = self.interval(name)
            lines.append(f"{name:>8} {self.difference(name):>10.4g} [{low:.4g}, {high:.4g}]")
        low, high = self.interval(_IMPROVEMENT)
        lines.append(
            f"probability that a improves on b {self.probability_of_improvement:.3g} "
            f"[{low:.3g}, {high:.3g}]"
        )
        return "\n".join(lines)


def compare(a: Evaluation, b: Evaluation) -> Comparison:
    """Two evaluations of the same indices, paired.

    Raises:
        ArgumentError: where the indices or the envs differ.
        ArgumentTypeError: for what is no evaluation.
    """
    for name, one in (("a", a), ("b", b)):
        if not isinstance(one, Evaluation):
            raise errors.ArgumentTypeError(f"{name} is an Evaluation, not {one!r}")
    if a.id != b.id:
        raise errors.ArgumentError(
            f"a is an evaluation of {a.id!r} and b one of {b.id!r}: only those of the same env are "
            "compared"
        )
    if not np.array_equal(a.indices, b.indices):
        raise errors.ArgumentError(f"a and b are of different indices: {_apart(a, b)}")
    return Comparison(a, b)


def _apart(a: Evaluation, b: Evaluation) -> str:
    if len(a.indices) != len(b.indices):
        return f"{len(a.indices)} in a, {len(b.indices)} in b; evaluate both on the same ones"
    first = int(np.flatnonzero(a.indices != b.indices)[0])
    return (
        f"number {first} is {a.indices[first]} in a and {b.indices[first]} in b; evaluate both on "
        "the same ones, in the same order"
    )
