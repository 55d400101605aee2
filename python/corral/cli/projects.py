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
    path: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Where to write it, instead of ./NAME."),
    ] = None,
) -> None:
    """Write a project for your own envs: a Rust crate that `pip install` gives to Python.

    Example: corral new my_env
    """
    with errors_told():
        target = scaffold.new(name, path)
    out.print(f"wrote {target}/; next:", markup=False, soft_wrap=True)
    for command, what in (
        (f"cd {target}", ""),
        ("cargo test", "its rules, in Rust"),
        ("pip install .", f"corral.make_vec('{name}/Walk-v0', 8) works from here on"),
    ):
        out.print(f"  {command:<16}{what and '# '}{what}".rstrip(), markup=False, soft_wrap=True)


@app.command("vendor")
def vendor(
    project: Annotated[
        Path, typer.Argument(metavar="[FOLDER]", help="The project, by default this folder.")
    ] = Path(),
) -> None:
    """Bring a project's vendor/ to this corral: the Rust sources that its envs are built with.

    Example: corral vendor my_env
    """
    with errors_told():
        target = scaffold.vendor(project)
    what = f"wrote {target}/: the core of corral {corral.__version__}"
    out.print(f"{what}; now build the project again: pip install .", markup=False, soft_wrap=True)
