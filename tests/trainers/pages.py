"""Runs the programs of `docs/trainers/`, as they stand there, by a trainer's own Python."""

from __future__ import annotations

import re
from pathlib import Path

from tests.abi import peers, venvs

PAGES = Path(__file__).resolve().parents[2] / "docs" / "trainers"


def programs(page: str) -> list[str]:
    """The Python programs of a page."""
    return re.findall(r"```python\n(.*?)```", (PAGES / f"{page}.md").read_text(), re.DOTALL)


def shown(page: str) -> list[str]:
    """What the page says that its programs print."""
    return re.findall(r"```text\n(.*?)```", (PAGES / f"{page}.md").read_text(), re.DOTALL)


def output(trainer: str, program: str) -> str:
    """What a program prints, run by the venv of `trainer` (`peers._TRAINERS`).

    Skips the test where the venv cannot be had. Fails it where the program fails.
    """
    done = venvs.run(venvs.fetched(peers.trainer_python, trainer), "-c", program)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
