"""`corral check`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from corral import errors
from corral.checking import Library, check_library
from corral.cli.app import app, errors_told, out


@app.command("check")
def check_file(
    library: Annotated[
        Path, typer.Argument(help="A shared library: for Corral, of libenv or EnvCApi.")
    ],
    option: Annotated[
        list[str] | None,
        typer.Option("--option", "-o", metavar="NAME=VALUE", help="As JSON, or else as text."),
    ] = None,
    steps: Annotated[int, typer.Option(min=1, help="Steps of each trajectory.")] = 200,
) -> None:
    """Say what a library offers, and whether its envs keep their contract.

    Exit code 0: they do. 1: they do not. 2: it cannot be checked.
    """
    with errors_told():
        options = dict(map(_option, option or []))
        checked = check_library(library, options=options, steps=steps)
    out.print(_table(checked), soft_wrap=True)
    for verdict in checked.verdicts:
        style = "green" if verdict.passed else "red"
        out.print(f"\n{verdict}", style=style, markup=False, soft_wrap=True)
    raise typer.Exit(0 if checked.passed else 1)


def _option(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise typer.BadParameter(f"'{text}' is not NAME=VALUE", param_hint="--option")
    try:
        read = json.loads(value)
    except json.JSONDecodeError:
        read = value
    except (RecursionError, ValueError):
        raise errors.ArgumentError(
            f"option {name!a}: this is too long a number or too deeply nested: {value[:40]}…"
        ) from None
    try:
        json.dumps({name: read}, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise errors.ArgumentError(f"option {text!a} has no UTF-8") from None
    return name, read


def _table(checked: Library) -> Table:
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    rows: list[tuple[str, str]] = [
        ("library", checked.path),
        ("faces", ", ".join(checked.faces)),
    ]
    for id, spaces in checked.spaces.items():
        entry = checked.envs.get(id)
        rows.append(("", ""))
        rows.append(("env" if entry else "spaces", id + (f": {entry['about']}" if entry else "")))
        for what, leaves in spaces.items():
            rows += [
                (what if k == 0 else "", f"{name}: {kind}")
                for k, (name, kind) in enumerate(leaves.items())
            ]
        if entry:
            limit = entry["max_episode_steps"]
            rows.append(("limit", "none" if limit is None else f"{limit} steps"))
            options = [f"{k} ({json.dumps(v)})" for k, v in entry["options"].items()]
            rows.append(("options", ", ".join(options) or "none"))
    for name, value in rows:
        table.add_row(name, Text(value))
    return table
