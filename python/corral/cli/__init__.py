"""The command `corral`."""

from __future__ import annotations

import io
import os
import sys


def main() -> None:
    """Runs the command line."""
    try:
        import rich  # noqa: F401
        import typer  # noqa: F401
    except ImportError:
        print("the command needs typer and rich: pip install typer rich", file=sys.stderr)
        sys.exit(2)
    from corral.cli.app import run

    for stream in (sys.stdout, sys.stderr):
        # What a terminal of another encoding has no sign for.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    try:
        code = run()
    except OSError as error:
        print(f"corral: {error}", file=sys.stderr)
        # Python would write once more what could not be written.
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, 1)
        sys.exit(2)
    sys.exit(code)
