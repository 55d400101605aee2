"""The commands, and how their errors are told."""

from __future__ import annotations

import bdb
from collections.abc import Iterator
from contextlib import contextmanager

import typer
from rich.console import Console

from corral import errors

app = typer.Typer(
    help="Reinforcement-learning environments in batches.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
out = Console(highlight=False)
err = Console(stderr=True, highlight=False)


@contextmanager
def errors_told() -> Iterator[None]:
    """What the user did wrong is one line and exit code 2, without a traceback."""
    try:
        yield
    except bdb.BdbQuit:
        err.print("corral: the debugger was left", style="red", markup=False)
        raise typer.Exit(2) from None
    except (errors.CorralError, OSError) as error:
        err.print(f"corral: {error}", style="red", markup=False, soft_wrap=True)
        raise typer.Exit(2) from None


# Each registers its command.
from corral.cli import benching, checking, listing, projects, replaying, serving  # noqa: E402, F401
