"""A picture of the figures: how many times theirs ours is, and how much is wanted."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from corral import errors
from corral.bench import units

_GOOD, _BAD, _NEUTRAL, _INK = "#2a7f5f", "#c0392b", "#5b6b7b", "#20262c"


def draw(rows: Sequence[dict[str, str]], file: Path) -> bool:
    """Writes the plot of a CSV file's lines; False if none of them has a ratio.

    Raises:
        UnsupportedError: without matplotlib.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise errors.UnsupportedError("plots need matplotlib: pip install matplotlib") from None
    shown = [row for row in rows if row["ratio"]]
    if not shown:
        return False
    figure = Figure(figsize=(12, 1.6 + 0.42 * len(shown) + 0.45 * len(_groups(shown))), dpi=120)
    axes = figure.subplots()
    places = _places(shown)
    for row, place in zip(shown, places):
        _bar(axes, row, place)
    _frame(axes, shown, places)
    figure.savefig(file, bbox_inches="tight", facecolor="white")
    return True


def _groups(rows: Sequence[dict[str, str]]) -> list[tuple[str, str]]:
    return list(dict.fromkeys((row["what"], row["size"]) for row in rows))


def _places(rows: Sequence[dict[str, str]]) -> list[float]:
    """Heights, top down: a heading's room before each group."""
    places, at, group = [], 0.0, None
    for row in rows:
        if (row["what"], row["size"]) != group:
            group = (row["what"], row["size"])
            at -= 1.1
        at -= 1.0
        places.append(at)
    return places


def _bar(axes: Any, row: dict[str, str], place: float) -> None:
    ratio, colour = float(row["ratio"]), {"yes": _GOOD, "no": _BAD}.get(row["ok"], _NEUTRAL)
    # From 1: as long to the right as theirs fits into ours, to the left the other way round.
    axes.barh(place, ratio - 1, left=1, height=0.62, color=colour, zorder=2)
    low, high = float(row["ratio_low"]), float(row["ratio_high"])
    axes.plot([low, high], [place, place], color=_INK, linewidth=1.2, zorder=3)
    if row["wanted"]:
        wanted = float(row["wanted"])
        axes.plot(
            [wanted, wanted], [place - 0.46, place + 0.46], color=_INK, linewidth=2.4, zorder=4
        )
    right = axes.get_yaxis_transform()
    mark = {"yes": "✓", "no": "✗"}.get(row["ok"], "")
    text = f"{mark} {units.ratio(ratio)}"
    axes.text(1.02, place, text, transform=right, va="center", color=colour, weight="bold")
    per_call = row["per_call"] == "yes"
    rates = (units.rate(float(row[name]), per_call) for name in ("ours_rate", "theirs_rate"))
    for at, text in zip((1.13, 1.24), rates):
        axes.text(at, place, text, transform=right, va="center", color=_INK, fontsize=9)


def _frame(axes: Any, rows: Sequence[dict[str, str]], places: Sequence[float]) -> None:
    axes.set_xscale("log")
    ends = [float(row[name]) for row in rows for name in ("ratio", "wanted") if row[name]]
    axes.set_xlim(min(0.5, min(ends) / 1.3), max(2.0, max(ends) * 1.3))
    ticks = [t for t in (0.1, 0.25, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500) if _within(axes, t)]
    axes.set_xticks(ticks, [f"{tick:g}×" for tick in ticks])
    axes.set_xticks([], minor=True)
    axes.axvline(1, color=_INK, linewidth=1, zorder=3)
    axes.grid(axis="x", color="#e3e7ea", zorder=0)
    axes.set_ylim(places[-1] - 0.8, 0.2)
    axes.set_yticks(places, [f"against {row['theirs']}" for row in rows])
    axes.tick_params(axis="y", length=0)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    group = None
    for row, place in zip(rows, places):
        if (row["what"], row["size"]) != group:
            group = (row["what"], row["size"])
            axes.text(
                *(-0.005, place + 0.85, f"{row['what']}, {row['size']}"),
                transform=axes.get_yaxis_transform(),
                ha="right",
                va="center",
                weight="bold",
            )
    for at, title in zip((1.02, 1.13, 1.24), ("ratio", "ours", "theirs")):
        axes.text(at, 0.1, title, transform=axes.get_yaxis_transform(), color=_NEUTRAL, fontsize=9)
    last = rows[-1]
    about = (
        "right of 1× corral is faster; the black bar is what is wanted "
        "(green: reached, red: not, grey: nothing wanted)\n"
        f"{last['cpu']}, {last['cores']} cores, {last['date'][:10]}, corral {last['corral']}; "
        f"medians of {last['windows']} alternating windows, the thin line is their middle half"
    )
    at_top = {"xycoords": ("axes fraction", "axes fraction"), "textcoords": "offset points"}
    title = "Corral beside others: how many times as fast"
    for text, height, style in (
        (title, 48, {"weight": "bold", "fontsize": 14}),
        (about, 16, {"color": _NEUTRAL, "fontsize": 9}),
    ):
        axes.annotate(text, (-0.45, 1), (0, height), annotation_clip=False, **at_top, **style)


def _within(axes: Any, tick: float) -> bool:
    low, high = axes.get_xlim()
    return bool(low <= tick <= high)
