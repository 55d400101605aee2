"""`Evaluation`: what an evaluation found."""

from __future__ import annotations

import csv
import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from corral import errors
from corral._native import __version__
from corral.evaluation import files, merging, plotting, statistics, videos
from corral.evaluation.statistics import Interval
from corral.policy import Policy
from corral.settings import whole
from corral.vector import VectorEnv

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False)
class Evaluation:
    """What an evaluation found, in the order of its indices.

    Attributes:
        indices: `int64 (n,)`.
        returns: `float64 (n,)`, the sum of each episode's rewards.
        lengths: `int64 (n,)`, each episode's steps.
        successes: `bool (n,)`; None where nobody asked for them.
        id: the env's.
        config: the options that its episodes depend on, as JSON has them; the time limit aside.
        max_episode_steps: the time limit in force, or None.
        version: of the corral that evaluated.
        shard: `(k, n)` where it is the k-th of n parts; None for a whole.
    """

    indices: npt.NDArray[np.int64]
    returns: npt.NDArray[np.float64]
    lengths: npt.NDArray[np.int64]
    successes: npt.NDArray[np.bool_] | None = None
    id: str = ""
    config: dict[str, Any] = field(default_factory=dict)
    max_episode_steps: int | None = None
    version: str = __version__
    shard: tuple[int, int] | None = None

    @property
    def mean(self) -> float:
        """The mean return."""
        return float(self.returns.mean())

    @property
    def std(self) -> float:
        """The returns' standard deviation."""
        return float(self.returns.std())

    @property
    def median(self) -> float:
        """The median return."""
        return float(np.median(self.returns))

    @property
    def iqm(self) -> float:
        """The interquartile mean: the mean return without the lowest and the highest quarter of
        the episodes, as rliable's and `scipy.stats.trim_mean(returns, 0.25)`."""
        return float(statistics.iqm(self.returns))

    @property
    def success_rate(self) -> float:
        """The share of episodes that were a success.

        Raises:
            UnsupportedError: where `corral.evaluate` was not told what a success is.
        """
        return float(self._known_successes().mean())

    def _known_successes(self) -> npt.NDArray[np.bool_]:
        if self.successes is None:
            raise errors.UnsupportedError(
                "nobody said what a success is: give corral.evaluate a success="
            )
        return self.successes

    def interval(
        self,
        statistic: str = "iqm",
        *,
        confidence: float = 0.95,
        resamples: int = 10_000,
        seed: int = 0,
        strata: Iterable[Any] | None = None,
    ) -> Interval:
        """A confidence interval `(low, high)` by the stratified percentile bootstrap, rliable's.

        Args:
            statistic: "iqm", "mean", "median" (of the returns) or "success_rate".
            confidence: 0.95 for 95 %.
            resamples: how often the episodes are drawn anew.
            seed: of these draws: the same seed gives the same interval.
            strata: a label for each episode; those of a label are drawn among themselves, as
                rliable draws the runs of a task. `strata=result.indices` where each index was
                played several times. None draws among all.

        Raises:
            ArgumentError, ArgumentTypeError: name the argument that makes no sense.
            UnsupportedError: for "success_rate" without successes.
        """
        name = statistics.named(statistic, {**statistics.STATISTICS, "success_rate": None})
        values, function = self.returns, statistics.STATISTICS.get(name, np.mean)
        if name == "success_rate":
            values = self._known_successes().astype(np.float64)
            function = statistics.STATISTICS["mean"]
        return statistics.interval(
            lambda rows: function(values[rows]),
            len(values),
            confidence=confidence,
            resamples=resamples,
            seed=seed,
            strata=strata,
        )

    def table(self, most: int = 20) -> str:
        """A table of at most `most` episodes (0 for none), and a summary.

        Raises:
            ArgumentError, ArgumentTypeError: for another number than an int of at least 0.
        """
        most = whole("most", most, sys.maxsize, least=0)
        with_success = self.successes is not None
        lines = [f"{'index':>8} {'return':>12} {'length':>8}" + " success" * with_success]
        rows = zip(self.indices, self.returns, self.lengths)
        for k, (index, value, length) in enumerate(rows):
            if k == most:
                break
            line = f"{index:>8} {value:>12.4g} {length:>8}"
            if self.successes is not None:
                line += f" {'yes' if self.successes[k] else 'no':>7}"
            lines.append(line)
        if len(self.indices) > most:
            lines.append(
                f"{'…':>8} {'…':>12} {'…':>8}{'       …' * with_success}"
                f"   ({len(self.indices) - most} more)"
            )
        lines.append(
            f"{len(self.indices)} episodes: return {self.mean:.4g} ± {self.std:.4g} "
            f"(min {self.returns.min():.4g}, max {self.returns.max():.4g}), "
            f"length {self.lengths.mean():.4g}"
            + (f", success rate {self.success_rate:.4g}" if with_success else "")
        )
        return "\n".join(lines)

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Writes columns index, return, length, and success (0 or 1) where it is known."""
        columns = {"index": self.indices, "return": self.returns, "length": self.lengths}
        if self.successes is not None:
            columns["success"] = self.successes.astype(np.int64)
        with open(path, "w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(columns)
            writer.writerows(zip(*(column.tolist() for column in columns.values())))

    def to_json(self, path: str | os.PathLike[str]) -> None:
        """Writes all of it, what was evaluated included; `from_json` reads it."""
        files.write(self, path)

    @classmethod
    def from_json(cls, path: str | os.PathLike[str]) -> Evaluation:
        """Reads what `to_json` wrote, equal to the last bit.

        Raises:
            ArgumentError: for a file that is none of these; the message says why not.
            OSError: where it cannot be read.
        """
        return cls(**files.read(path))

    @classmethod
    def merge(cls, parts: Iterable[Evaluation]) -> Evaluation:
        """One evaluation of several: of all shards, in any order, what the whole would have been;
        of evaluations that are no shards, one behind the other.

        Raises:
            ArgumentError, ArgumentTypeError: for shards that make no whole, and for evaluations of
                different envs, configs or versions; the message says which.
        """
        return merging.merge(cls, parts)

    def plot(self, path: str | os.PathLike[str] | None = None) -> Figure:
        """Draws how the returns are distributed, with their IQM and its 95 % interval.

        Args:
            path: a file to write the picture to, as matplotlib's `savefig` takes it.

        Raises:
            UnsupportedError: without matplotlib.
        """
        return plotting.plot(self, path)

    def videos(
        self,
        policy: Policy,
        folder: str | os.PathLike[str],
        *,
        env: VectorEnv | None = None,
        format: str = "mp4",
    ) -> dict[str, Path]:
        """Plays the episodes of the best, the median and the worst return once more, and writes a
        video of each.

        Args:
            policy: the one that was evaluated. A warning says where it plays another episode now.
            folder: where the files go, `best_index_7.mp4` and so on; made if missing.
            env: where no id was evaluated: a `corral.VectorEnv` made with
                `render_mode="rgb_array"`. It is left at the end of its episodes. Under same_step
                nothing shows an episode's last frame: its videos end with the one before.
            format: "mp4" or "gif".

        Returns:
            The files, by "best", "median" and "worst". Of an even number of episodes the median is
            the lower of the two in the middle; of equal returns the first index counts.

        Raises:
            UnsupportedError: for an env that draws no pictures, or without imageio.
            ArgumentError, ArgumentTypeError: for arguments that make no sense.
        """
        return videos.write(self, policy, folder, env, format)

    def __str__(self) -> str:
        return self.table()
