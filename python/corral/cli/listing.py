"""`corral list`."""

from __future__ import annotations

import json

from rich.table import Table

import corral
from corral.cli.app import app, out


@app.command("list")
def list_envs() -> None:
    """All envs, built-in and libraries', their time limits and their options."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("env", "limit", "about", "options (default)"):
        table.add_column(title, overflow="fold")
    for id, entry in corral.envs().items():
        limit = entry["max_episode_steps"]
        options = "\n".join(
            f"{name} ({json.dumps(value)})" for name, value in entry["options"].items()
        )
        table.add_row(id, "" if limit is None else str(limit), entry["about"], options)
    out.print(table, markup=False)
