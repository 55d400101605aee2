"""`corral list`."""

from __future__ import annotations

import json
from enum import Enum
from typing import Annotated, Any

import gymnasium
import typer
from rich.table import Table
from rich.text import Text

import corral
from corral.cli import ids
from corral.cli.app import Json, app, err, errors_told, out, print_json

# The columns beside the id need so much to be read.
_LEAST = 50


class From(str, Enum):
    """Who made an env."""

    CORRAL = "corral"
    LIBRARY = "library"
    GYMNASIUM = "gymnasium"
    ALL = "all"


@app.command("list")
def list_envs(
    texts: Annotated[
        list[str] | None,
        typer.Argument(metavar="TEXT", help="Only those whose id or text has each of these."),
    ] = None,
    namespace: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Only ids NAME/…; 'corral' for those built in."),
    ] = None,
    source: Annotated[
        From | None,
        typer.Option(
            help="Whose: built in, of libraries, Python's in Gymnasium's registry, or all. By "
            "default the first two.",
            show_default=False,
        ),
    ] = None,
    loads: ids.Loads = None,
    as_json: Json = False,
) -> None:
    """All envs with their time limits and options; filters narrow them.

    In a pipe each env is one line of tab-separated fields: id, limit, source, text, options.

    Example: corral list cart --json
    """
    with errors_told():
        ids.load(loads)
        entries = [
            entry
            for entry in _entries(source)
            if _has(entry, texts or [])
            and namespace in (None, entry["id"].rpartition("/")[0] or "corral")
        ]
    if as_json:
        print_json(entries)
        return
    longest = max((len(entry["id"]) for entry in entries), default=0)
    if out.is_terminal and out.width >= longest + _LEAST:
        out.print(_table(entries, longest))
    else:
        for entry in entries:
            # Rich would make spaces of the tabs.
            typer.echo("\t".join(_cells(entry)))
    if not entries:
        err.print("no env is like that", markup=False)


def _has(entry: dict[str, Any], texts: list[str]) -> bool:
    where = f"{entry['id']} {entry['about']}".lower()
    return all(text.lower() in where for text in texts)


def _entries(source: From | None) -> list[dict[str, Any]]:
    ours = [
        {**entry, "source": (From.LIBRARY if "/" in id else From.CORRAL).value}
        for id, entry in corral.envs().items()
    ]
    if source is None:
        return ours
    every = [*ours, *_gymnasiums()]
    return every if source is From.ALL else [one for one in every if one["source"] == source.value]


def _gymnasiums() -> list[dict[str, Any]]:
    """Python envs. Where an id of ours is the same, Gymnasium's is the one after 'gymnasium:'."""
    known = corral.envs()
    return [
        {
            "id": f"gymnasium:{id}" if id in known else id,
            "about": _origin(spec.entry_point),
            "max_episode_steps": spec.max_episode_steps,
            "reward_threshold": spec.reward_threshold,
            "render_fps": None,
            "options": dict(spec.kwargs),
            "source": From.GYMNASIUM.value,
        }
        for id, spec in gymnasium.registry.items()
        if not ids.is_of_corral(spec)
    ]


def _origin(entry_point: Any) -> str:
    if entry_point is None or isinstance(entry_point, str):
        return entry_point or ""
    return f"{entry_point.__module__}:{entry_point.__qualname__}"


def _cells(entry: dict[str, Any]) -> list[str]:
    limit = entry["max_episode_steps"]
    cells = [
        entry["id"],
        "" if limit is None else str(limit),
        entry["source"],
        entry["about"],
        ", ".join(
            f"{name} ({json.dumps(value, default=repr)})"
            for name, value in entry["options"].items()
        ),
    ]
    return [" ".join(cell.split()) for cell in cells]


def _table(entries: list[dict[str, Any]], longest: int) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("env", no_wrap=True, min_width=longest)
    table.add_column("limit", no_wrap=True, justify="right")
    table.add_column("about", overflow="fold", ratio=1)
    table.add_column("options (default)", overflow="fold", ratio=1)
    for entry in entries:
        id, limit, _, about, options = _cells(entry)
        table.add_row(*map(Text, (id, limit, about, options)))
    return table
