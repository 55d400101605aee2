"""Figures as CSV: one line each, with what they were measured on."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

from corral.bench.definition import Contender
from corral.bench.machine import version
from corral.bench.run import Figure, Pace, Spread

COLUMNS = [
    *("date", "bench", "what", "size", "ours", "theirs"),
    *("ours_rate", "ours_low", "ours_high", "theirs_rate", "theirs_low", "theirs_high"),
    *("ratio", "ratio_low", "ratio_high", "wanted", "ok", "note", "per_call", "theirs_version"),
    *("windows", "seconds", "cores", "cpu", "system", "python", "numpy", "corral"),
]


def row(figure: Figure, pace: Pace, date: str, machine: dict[str, str]) -> dict[str, str]:
    """A figure's line. Rates are steps a second; low and high are quartiles of the windows."""
    bench, against = figure.bench, figure.against
    package = against.package if isinstance(against, Contender) else None
    return {
        "date": date,
        "bench": bench.name,
        "what": bench.what,
        "size": bench.size,
        "ours": bench.ours.name,
        "theirs": "" if against is None else against.name,
        **_spread("ours", "ours_rate", figure.ours),
        **_spread("theirs", "theirs_rate", figure.theirs),
        **_spread("ratio", "ratio", figure.ratio),
        "wanted": "" if figure.wanted is None else f"{figure.wanted:g}",
        "ok": {None: "", True: "yes", False: "no"}[figure.ok],
        "note": figure.note,
        "per_call": "yes" if bench.per_call else "no",
        "theirs_version": version(package),
        "windows": str(pace.windows),
        "seconds": f"{pace.seconds:g}",
        **machine,
    }


def append(file: Path, rows: Sequence[dict[str, str]]) -> None:
    """Adds lines to a CSV file, made with its header if missing."""
    file.parent.mkdir(parents=True, exist_ok=True)
    is_new = not file.exists()
    with file.open("a", newline="") as opened:
        writer = csv.DictWriter(opened, COLUMNS, lineterminator="\n")
        if is_new:
            writer.writeheader()
        writer.writerows(rows)


def latest(file: Path) -> list[dict[str, str]]:
    """The last line of each bench and contender on the machine measured last, in file order."""
    with file.open(newline="") as opened:
        lines = list(csv.DictReader(opened))
    machine = {(line["cpu"], line["cores"]) for line in lines[-1:]}
    here = [line for line in lines if (line["cpu"], line["cores"]) in machine]
    return list({(line["bench"], line["theirs"]): line for line in here}.values())


def _spread(prefix: str, median: str, spread: Spread | None) -> dict[str, str]:
    names = (f"{prefix}_low", median, f"{prefix}_high")
    values = (None,) * 3 if spread is None else (spread.low, spread.median, spread.high)
    return {name: "" if value is None else f"{value:.4g}" for name, value in zip(names, values)}
