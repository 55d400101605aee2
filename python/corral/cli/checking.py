"""`corral check`."""

from __future__ import annotations

import dataclasses
import functools
import json
from typing import Annotated, Any

import gymnasium
import typer
from rich.table import Table
from rich.text import Text

import corral
from corral import errors
from corral.checking import Library, check_library
from corral.cli import ids
from corral.cli.app import Json, app, errors_told, out, print_json, print_text
from corral.testing import Verdict, check_env
from corral.vector import VectorEnv


@app.command("check")
def check(
    what: Annotated[
        str,
        typer.Argument(
            metavar="ID|LIBRARY|MODULE:CLASS",
            help="An env's id; a shared library for Corral, of libenv or EnvCApi; or a class of a "
            "Python module that makes envs of Gymnasium's interface.",
        ),
    ],
    option: Annotated[
        list[str] | None,
        typer.Option("--option", "-o", metavar="NAME=VALUE", help="As JSON, or else as text."),
    ] = None,
    env: Annotated[
        str | None,
        typer.Option(
            "--env",
            metavar="ID",
            help="The env of the library that is checked, alone; all without.",
        ),
    ] = None,
    steps: Annotated[int, typer.Option(min=1, help="Steps of each trajectory.")] = 200,
    always_alike: Annotated[
        bool,
        typer.Option("--no-randomness", help="The env has none: all its episodes begin alike."),
    ] = False,
    timeout: Annotated[
        float,
        typer.Option(metavar="SECONDS", help="What one check of a library's env may take."),
    ] = 120.0,
    loads: ids.Loads = None,
    as_json: Json = False,
) -> None:
    """Say whether envs keep their contract, and what a library offers.

    A library runs in a process of its own: an env of it that crashes, hangs or cannot be built
    fails, and the next one is checked. Options are given to the env that --env names, or to all.

    Exit code 0: they do. 1: they do not. 2: it cannot be checked.

    Example: corral check CartPole-v1 --steps 50
    """
    with errors_told():
        options = ids.options_of(option)
        ids.load(loads)
        checked: Library | None = None
        if ids.is_file(what):
            checked = check_library(
                what,
                options=options,
                env=env,
                steps=steps,
                seed_matters=not always_alike,
                timeout=timeout,
            )
            verdicts = checked.verdicts
        elif env is not None:
            raise errors.ArgumentError("--env names an env of a library: give the library's file")
        else:
            verdicts = [_verdict(what, options, steps, seed_matters=not always_alike)]
    if as_json:
        print_json(_json(checked, verdicts))
    else:
        if checked is not None:
            out.print(_table(checked), soft_wrap=True)
        for verdict in verdicts:
            style = "green" if verdict.passed else "red"
            print_text(("" if checked is None else "\n") + str(verdict), style)
    raise typer.Exit(0 if all(verdict.passed for verdict in verdicts) else 1)


def _verdict(what: str, options: dict[str, Any], steps: int, *, seed_matters: bool) -> Verdict:
    """Of an env by its id, or by its class."""
    made = _class(what)
    how: dict[str, Any] = {"steps": steps, "seed_matters": seed_matters, "raise_on_failure": False}
    if made is None and ids.python_spec(what) is None:
        id = what.rpartition(":")[2]
        return check_env(id, **how, **options)
    # Of a class every env is made by a call with the options.
    one = what if made is None else functools.partial(made, **options)
    more = options if made is None else {}

    def make(num_envs: int, **vec_options: Any) -> VectorEnv:
        return corral.from_gymnasium(one, num_envs, runner="serial", **vec_options)

    return check_env(make, **how, **more)


def _class(what: str) -> Any:
    """What MODULE:CLASS names; None for what is an id.

    Raises:
        ArgumentError: if the module cannot be imported, or has no such class or env.
    """
    module, colon, name = what.partition(":")
    if not colon:
        return None
    found: Any = ids.imported(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    if callable(found):
        return found
    if name in gymnasium.registry:
        return None
    raise errors.ArgumentError(f"module '{module}' has no class '{name}', nor an env of this id")


def _json(checked: Library | None, verdicts: list[Verdict]) -> dict[str, Any]:
    told: dict[str, Any] = {
        "passed": all(verdict.passed for verdict in verdicts),
        "envs": [
            {
                "env": verdict.env,
                "passed": verdict.passed,
                "checks": [dataclasses.asdict(one) for one in verdict.checks],
            }
            for verdict in verdicts
        ],
    }
    if checked is not None:
        told |= {"library": checked.path, "faces": checked.faces, "spaces": checked.spaces}
    return told


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
