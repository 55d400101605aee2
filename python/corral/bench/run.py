"""Plays a bench: everybody's windows in turn, medians, ratios."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from corral.bench import cpus
from corral.bench.definition import Bench, Contender, Limit, Skip, Turns
from corral.bench.program import apart


@dataclass(frozen=True)
class Pace:
    """How long it is measured.

    Attributes:
        windows: how often each has its turn.
        seconds: how long a turn is.
        warm_up: how long each runs before the first.
    """

    windows: int = 9
    seconds: float = 0.3
    warm_up: float = 0.3


QUICK = Pace(windows=3, seconds=0.05, warm_up=0.02)


@dataclass(frozen=True)
class Spread:
    """The median of the windows, and the quartiles around it."""

    low: float
    median: float
    high: float

    @classmethod
    def of(cls, values: list[float]) -> Spread:
        if len(values) == 1:
            return cls(values[0], values[0], values[0])
        return cls(*statistics.quantiles(values, n=4, method="inclusive"))


@dataclass(frozen=True)
class Figure:
    """Ours beside one of theirs.

    Attributes:
        ours, theirs: steps a second; None if not measured.
        ratio: of the windows that followed each other; None without both.
        wanted: the least ratio.
        note: why something was not measured.
    """

    bench: Bench
    against: Contender | Limit | None
    ours: Spread | None
    theirs: Spread | None
    ratio: Spread | None
    note: str = ""

    @property
    def wanted(self) -> float | None:
        return None if self.against is None else self.against.wanted

    @property
    def ok(self) -> bool | None:
        """Whether the ratio is reached; None if none is wanted or it is not known."""
        if self.ratio is None or self.wanted is None:
            return None
        return self.ratio.median >= self.wanted


def play(
    bench: Bench, file: Path, pace: Pace, on_window: Callable[[], None] = lambda: None
) -> list[Figure]:
    """The bench's figures, one for each of theirs; one of ours alone if there are none."""
    with ExitStack() as stack:
        opened: dict[str, Turns] = {}
        notes: dict[str, str] = {}
        for one in _contenders(bench):
            try:
                turns = stack.enter_context(_opened(one, bench, file))
                turns.play(pace.warm_up)
                opened[one.name] = turns
            except Skip as why:
                notes[one.name] = str(why)
                if one is bench.ours:
                    break
            except Exception as error:
                # A peer that breaks is no reason not to measure the others.
                if one is bench.ours:
                    raise
                notes[one.name] = f"it failed: {type(error).__name__}: {error}"
        rates = _windows(opened, notes, pace, on_window, bench.one_cpu)
    return _figures(bench, rates, notes)


def _contenders(bench: Bench) -> list[Contender]:
    return [bench.ours, *(one for one in bench.theirs if isinstance(one, Contender))]


@contextmanager
def _opened(one: Contender, bench: Bench, file: Path) -> Iterator[Turns]:
    with apart(file, bench.name, one.name) if one.apart else one.open() as turns:
        yield turns


def _windows(
    opened: dict[str, Turns],
    notes: dict[str, str],
    pace: Pace,
    on_window: Callable[[], None],
    one_cpu: bool,
) -> dict[str, list[float]]:
    """Rates by contender. Who begins changes, so that nobody always follows the same one."""
    rates: dict[str, list[float]] = {name: [] for name in opened}
    for window in range(pace.windows):
        names = list(rates)
        first = window % len(names) if names else 0
        with cpus.one(window) if one_cpu else nullcontext():
            for name in names[first:] + names[:first]:
                try:
                    rates[name].append(opened[name].play(pace.seconds))
                except Skip as why:
                    notes[name] = str(why)
                    del rates[name]
        on_window()
    return rates


def _figures(bench: Bench, rates: dict[str, list[float]], notes: dict[str, str]) -> list[Figure]:
    mine = rates.get(bench.ours.name)
    ours = None if mine is None else Spread.of(mine)
    own_note = notes.get(bench.ours.name, "")
    if not bench.theirs or mine is None:
        return [Figure(bench, None, ours, None, None, own_note)]
    figures = []
    for other in bench.theirs:
        if isinstance(other, Limit):
            others: list[float] | None = [other.rate] * len(mine)
        else:
            others = rates.get(other.name)
        theirs = None if others is None else Spread.of(others)
        ratio = None if others is None else Spread.of([a / b for a, b in zip(mine, others)])
        figures.append(Figure(bench, other, ours, theirs, ratio, notes.get(other.name, "")))
    return figures
