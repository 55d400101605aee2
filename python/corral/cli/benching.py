"""`corral bench`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timezone
from fnmatch import fnmatch
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import Progress
from rich.table import Table
from rich.text import Text

from corral import errors
from corral.bench import files, machine, plot, record, run, units
from corral.bench.definition import Bench
from corral.cli import ids, measuring
from corral.cli.app import Json, app, err, errors_told, out, print_json

_CSV, _PNG = "figures.csv", "figures.png"


@app.command("bench")
def bench(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="ID|NAME",
            help="Ids of envs; or, in a checkout of corral, names of its benches or of groups of "
            "them, parts of names, or globs.",
        ),
    ] = None,
    quick: Annotated[
        bool,
        typer.Option("--quick", help="A glance: few short windows. Not recorded without --out."),
    ] = False,
    list_only: Annotated[bool, typer.Option("--list", help="Only list them.")] = False,
    num_envs: Annotated[int, typer.Option(min=1, help="For ids: how many envs.")] = 1024,
    num_threads: Annotated[int, typer.Option(min=1, help="For ids: how many threads.")] = 1,
    option: ids.Options = None,
    loads: ids.Loads = None,
    windows: Annotated[
        int | None, typer.Option(min=1, help="How often each contender has its turn.")
    ] = None,
    seconds: Annotated[float | None, typer.Option(min=0.001, help="How long a turn is.")] = None,
    target: Annotated[
        Path | None,
        typer.Option("--out", metavar="FOLDER", help="Where figures.csv and figures.png go."),
    ] = None,
    root: Annotated[
        Path | None,
        typer.Option("--benches", metavar="FOLDER", help="The folder with definitions/."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Measure steps a second, turn by turn beside others; medians and ratios.

    An env's id is measured beside Gymnasium's own env of that id, if there is one, with random
    actions. Other names are benches of a checkout of corral. Exit code 0 whatever the figures say:
    machines are noisy, and people read them.

    Example: corral bench CartPole-v1 --quick --num-envs 64
    """
    with errors_told():
        ids.load(loads)
        chosen, folder = _wanted(names or [], root, num_envs, num_threads, ids.options_of(option))
        if list_only:
            _list([bench for _, bench in chosen], as_json)
            return
        usual = run.QUICK if quick else run.Pace()
        pace = run.Pace(windows or usual.windows, seconds or usual.seconds, usual.warm_up)
        figures = _play(chosen, pace)
        if as_json:
            print_json([_json(figure) for figure in figures])
        else:
            out.print(_table(figures))
            _tell_of_peers(figures)
        if target is None and folder is not None and not quick:
            target = folder / "results"
        if target is not None:
            _write(target, figures, pace)


def _wanted(
    names: list[str], root: Path | None, num_envs: int, num_threads: int, config: dict[str, Any]
) -> tuple[list[tuple[Path, Bench]], Path | None]:
    """The benches, each with its file, and the folder of those that have one."""
    of_ids = [name for name in names if measuring.is_id(name) and not _is_bench(name, root)]
    others = [name for name in names if name not in of_ids]
    benches = [(Path(), measuring.bench_of(id, num_envs, num_threads, config)) for id in of_ids]
    if of_ids and not others:
        return benches, None
    if config:
        raise errors.ArgumentError("--option is for ids of envs: a bench has its own")
    try:
        root = files.find_root(root)
    except errors.ArgumentError as error:
        if root is not None:
            raise
        raise errors.ArgumentError(
            f"say which env: corral bench CartPole-v1. As for other benches: {error}"
        ) from None
    return benches + _chosen(files.load(root), others), root


def _is_bench(name: str, root: Path | None) -> bool:
    """Whether a name that looks like an id is no env's, but that of a bench that measures one."""
    if measuring.is_known(name):
        return False
    try:
        root = files.find_root(root)
    except errors.ArgumentError:
        return False
    return any(name == bench.name for benches in files.load(root).values() for bench in benches)


def _list(benches: list[Bench], as_json: bool) -> None:
    if not as_json:
        out.print(_listed(benches))
        return
    print_json(
        [
            {
                "name": one.name,
                "what": one.what,
                "size": one.size,
                "against": [other.name for other in one.theirs],
            }
            for one in benches
        ]
    )


def _json(figure: run.Figure) -> dict[str, Any]:
    """A figure; rates are steps a second."""
    rates = {"ours": figure.ours, "theirs": figure.theirs, "ratio": figure.ratio}
    return {
        "bench": figure.bench.name,
        "size": figure.bench.size,
        "against": None if figure.against is None else figure.against.name,
        **{name: None if spread is None else spread.median for name, spread in rates.items()},
        "wanted": figure.wanted,
        "ok": figure.ok,
        "note": figure.note,
    }


def _chosen(loaded: dict[Path, Sequence[Bench]], names: list[str]) -> list[tuple[Path, Bench]]:
    every = [(file, bench) for file, benches in loaded.items() for bench in benches]
    groups = {bench.group for _, bench in every if bench.group}

    def is_meant(bench: Bench, name: str) -> bool:
        if name in groups:
            return name == bench.group
        return name in bench.name or fnmatch(bench.name, name)

    chosen = [
        (file, bench)
        for file, bench in every
        if not names or any(is_meant(bench, name) for name in names)
    ]
    if not chosen:
        there = ", ".join(bench.name for _, bench in every)
        raise errors.ArgumentError(f"no bench is called {' or '.join(names)}; there are: {there}")
    return chosen


def _listed(benches: list[Bench]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("name", "what", "size", "against"):
        table.add_column(title)
    for one in benches:
        against = ", ".join(other.name for other in one.theirs)
        table.add_row(*(Text(cell) for cell in (one.name, one.what, one.size, against)))
    return table


def _play(chosen: list[tuple[Path, Bench]], pace: run.Pace) -> list[run.Figure]:
    if not err.is_terminal:
        return [figure for file, one in chosen for figure in run.play(one, file, pace)]
    figures = []
    with Progress(console=err, transient=True) as progress:
        task = progress.add_task("", total=len(chosen) * pace.windows)
        for done, (file, one) in enumerate(chosen):
            progress.update(task, description=one.name, completed=done * pace.windows)
            figures += run.play(one, file, pace, lambda: progress.advance(task))
    return figures


def _table(figures: list[run.Figure]) -> Table:
    """A line for each bench, with ours, and one below it for each of theirs."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("what, size", overflow="fold")
    for title in ("ours", "theirs", "ratio", "middle half", "wanted"):
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("ok", no_wrap=True)
    last = None
    for figure in figures:
        one, per_call = figure.bench, figure.bench.per_call
        if one is not last:
            last = one
            heading = Text(f"{one.what}, {one.size}", "bold")
            ours = units.rate(figure.ours.median, per_call) if figure.ours else ""
            if figure.ours is None:
                heading.append(f": {figure.note}", "dim not bold")
            table.add_row(heading, ours)
        if figure.against is not None:
            table.add_row(*_cells(figure))
    return table


def _cells(figure: run.Figure) -> list[Text]:
    assert figure.against is not None
    name, ratio = figure.against.name, figure.ratio
    wanted = "" if figure.wanted is None else f"≥ {units.ratio(figure.wanted)}"
    if ratio is None or figure.theirs is None:
        note = Text(f"  against {name}: {figure.note}", "dim")
        return [note, *[Text("")] * 4, Text(wanted, "dim")]
    ok, style = {True: ("yes", "green"), False: ("no", "red"), None: ("", "")}[figure.ok]
    return [
        Text(f"  against {name}"),
        Text(""),
        Text(units.rate(figure.theirs.median, figure.bench.per_call)),
        Text(units.ratio(ratio.median), style),
        Text(f"{ratio.low:.2f}–{ratio.high:.2f}"),
        Text(wanted),
        Text(ok, style),
    ]


def _tell_of_peers(figures: list[run.Figure]) -> None:
    if any("make bench-peers" in figure.note for figure in figures):
        out.print("peers not installed: make bench-peers", style="yellow")


def _write(target: Path, figures: list[run.Figure], pace: run.Pace) -> None:
    date = datetime.now(timezone.utc).isoformat(timespec="seconds")
    about = machine.describe()
    rows = [record.row(figure, pace, date, about) for figure in figures]
    record.append(target / _CSV, rows)
    written = f"{len(rows)} lines in {target / _CSV}"
    try:
        if plot.draw(record.latest(target / _CSV), target / _PNG):
            written += f", plot in {target / _PNG}"
    except errors.UnsupportedError as error:
        written += f"; {error}"
    err.print(written, markup=False, soft_wrap=True)
