"""The pages that are written by programs say what those say now."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def test_the_page_of_faults_shows_what_the_user_sees() -> None:
    ran = subprocess.run(
        [sys.executable, DOCS / "faults.py"],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )

    def without_lines(page: str) -> str:
        return re.sub(r"(\.rs):\d+:\d+", r"\1", page)

    page = (DOCS / "faults.md").read_text()
    assert without_lines(ran.stdout) == without_lines(page), "run `make docs`"


def test_a_source_file_above_400_lines_says_why() -> None:
    root = Path(__file__).resolve().parents[2]
    files = [*root.glob("crates/*/src/**/*.rs"), *root.glob("python/**/*.py")]
    assert len(files) > 100
    silent = {}
    for path in files:
        lines = path.read_text().splitlines()
        if len(lines) > 400 and "Above 400 lines because" not in "\n".join(lines[:25]):
            silent[str(path.relative_to(root))] = len(lines)
    assert not silent
