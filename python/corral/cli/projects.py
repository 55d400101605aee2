"""`corral new` and `corral vendor`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import corral
from corral import scaffold
from corral.cli.app import app, errors_told, out


@app.command("new")
def new_project(
    name: Annotated[str, typer.Argument(help="Of the crate and the Python module: my_env.")],
    env: Annotated[
        str, typer.Option(help="The env's name, as a type: its id is NAME/ENV-v0.")
    ] = "Walk",
    kind: Annotated[
        str,
        typer.Option(
            help="control: numbers seen, pushes; grid: labels, an action mask, levels, pictures; "
            "pixels: a screen; c: in C."
        ),
    ] = "control",
    wheel: Annotated[
        Path | None,
        typer.Option(
            "--corral",
            metavar="WHEEL",
            help="Corral's wheel, which the project keeps: Corral is on no package index.",
        ),
    ] = None,
    path: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Where to write it, instead of ./NAME."),
    ] = None,
) -> None:
    """Write a project for your own envs, which `pip install` gives to Python.

    Example: corral new my_env --env Snake --kind grid
    """
    with errors_told():
        target = scaffold.new(name, path, env=env, kind=kind, wheel=wheel)
    out.print(f"wrote {target}/; next:", markup=False, soft_wrap=True)
    works = f"corral.make_vec('{name}/{env}-v0', 8) works from here on"
    in_rust = "its rules, in Rust"
    compiles = "compiles Corral's core first, about 60 s of CPU; later builds take seconds"
    steps = [(f"cd {target}", "")]
    if kind != "c":
        steps += [("cargo test", in_rust), ("pip install .", compiles), ("", works)]
    else:
        steps += [("pip install .", works)]
    for command, what in (*steps, ("pytest", "what Corral sees of it, and a policy that learns")):
        out.print(f"  {command:<16}{what and '# '}{what}".rstrip(), markup=False, soft_wrap=True)


@app.command("vendor")
def vendor(
    project: Annotated[
        Path, typer.Argument(metavar="[FOLDER]", help="The project, by default this folder.")
    ] = Path(),
) -> None:
    """Bring a project to this corral: what its envs are built with, and how they are written.

    Example: corral vendor my_env
    """
    with errors_told():
        target = scaffold.vendor(project)
    core = "the header" if (project / "hatch_build.py").is_file() else "the core"
    what = f"wrote {target}/: {core} of corral {corral.__version__}"
    out.print(f"{what}; now build the project again: pip install .", markup=False, soft_wrap=True)
