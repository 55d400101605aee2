"""The command `corral`."""

from __future__ import annotations

import sys


def main() -> None:
    """Runs the command line."""
    try:
        import rich  # noqa: F401
        import typer  # noqa: F401
    except ImportError:
        print("the command needs typer and rich: pip install 'corral[cli]'", file=sys.stderr)
        sys.exit(2)
    from corral.cli.app import app

    app(prog_name="corral")
