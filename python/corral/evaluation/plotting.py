"""Pictures of evaluations."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import numpy as np

from corral import errors

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from corral.evaluation.result import Evaluation


def plot(evaluation: Evaluation, path: str | os.PathLike[str] | None) -> Figure:
    """As `Evaluation.plot`."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise errors.UnsupportedError(
            "plot draws with matplotlib, which is not here: pip install matplotlib"
        ) from None
    returns = evaluation.returns[np.isfinite(evaluation.returns)]
    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    bins = min(40, max(10, int(np.sqrt(len(returns)) * 2)))
    axes.hist(returns, bins=bins, color="C0", alpha=0.6, edgecolor="white", linewidth=0.5)
    low, high = evaluation.interval("iqm")
    if np.isfinite([low, high]).all():
        axes.axvspan(
            low,
            high,
            color="C1",
            alpha=0.25,
            linewidth=0,
            zorder=0,
            label="95 % interval of the IQM",
        )
        axes.axvline(evaluation.iqm, color="C1", linewidth=2, label=f"IQM {evaluation.iqm:.4g}")
        axes.axvline(
            evaluation.mean, color="0.25", linestyle="--", label=f"mean {evaluation.mean:.4g}"
        )
        axes.legend(frameon=False, loc="best")
    axes.set_xlabel("return of an episode")
    axes.set_ylabel("episodes")
    title = f"{evaluation.id or 'evaluation'}: {len(evaluation.returns)} episodes"
    if evaluation.successes is not None:
        title += f", success rate {evaluation.success_rate:.3g}"
    axes.set_title(title, loc="left", fontsize=11)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", alpha=0.2)
    if path is not None:
        figure.savefig(path, dpi=150)
    return figure
