"""The commands, and how their errors are told."""

from __future__ import annotations

import bdb
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import gymnasium
import typer
from rich.console import Console

from corral import __version__, errors

app = typer.Typer(
    help="Reinforcement-learning environments in batches.",
    add_completion=False,
    pretty_exceptions_enable=False,
)
out = Console(highlight=False, emoji=False)
err = Console(stderr=True, highlight=False, emoji=False)
# Typer's own, under whatever name this version of it keeps the class.
_UsageError: type[Exception] = typer.BadParameter.__bases__[0]

Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]


def run() -> int:
    """Runs what the command line says, and gives the exit code."""
    try:
        code = app(prog_name="corral", standalone_mode=False)
    except _UsageError as error:
        _tell(_usage(error))
        return 2
    except typer.Abort:
        return 130
    return code if isinstance(code, int) else 0


def _usage(error: Any) -> str:
    """A line that says what is wrong with the command line."""
    message = " ".join(error.format_message().split()).rstrip(".")
    path = error.ctx.command_path if error.ctx is not None else "corral"
    return f"{message} (see {path} --help)"


@app.callback(invoke_without_command=True)
def _corral(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version of corral.", is_eager=True)
    ] = False,
) -> None:
    if version:
        print_text(f"corral {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@contextmanager
def errors_told() -> Iterator[None]:
    """What the user did wrong is one line and exit code 2, without a traceback."""
    try:
        yield
    except bdb.BdbQuit:
        _tell("the debugger was left")
    except (errors.CorralError, gymnasium.error.Error, OSError) as error:
        if isinstance(error, BrokenPipeError):
            # Typer ends quietly where the output's reader went away.
            raise
        cause = error.__cause__
        _tell(str(cause if isinstance(cause, errors.EnvError) else error))
    except Exception as error:
        # What a Python env raises is the cause of nothing of ours.
        if not isinstance(error.__cause__, errors.EnvError):
            raise
        _tell(str(error.__cause__))
    else:
        return
    raise typer.Exit(2) from None


def _tell(message: str) -> None:
    err.print(f"corral: {message}", style="red", markup=False, soft_wrap=True)


def print_text(text: str, style: str = "") -> None:
    """Prints text as it is: brackets are no markup, and no line is broken."""
    out.print(text, style=style, markup=False, soft_wrap=True)


def print_json(value: Any) -> None:
    """Prints JSON. What JSON has no number for is null; what it does not know is a text."""
    typer.echo(json.dumps(_finite(value), indent=2, ensure_ascii=False, default=repr))


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _finite(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(inner) for inner in value]
    if isinstance(value, float) and value - value != 0:
        return None
    return value


# Each registers its command.
from corral.cli import (  # noqa: E402
    benching,  # noqa: F401
    checking,  # noqa: F401
    describing,  # noqa: F401
    evaluating,  # noqa: F401
    listing,  # noqa: F401
    playing,  # noqa: F401
    projects,  # noqa: F401
    replaying,  # noqa: F401
    serving,  # noqa: F401
    showing,  # noqa: F401
)
