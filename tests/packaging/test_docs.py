"""What is written by programs says what those say now, and the source keeps its rules."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"


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
    files = [*ROOT.glob("crates/*/src/**/*.rs"), *ROOT.glob("python/**/*.py")]
    assert len(files) > 100
    silent = {}
    for path in files:
        lines = path.read_text().splitlines()
        if len(lines) > 400 and "Above 400 lines because" not in "\n".join(lines[:25]):
            silent[str(path.relative_to(ROOT))] = len(lines)
    assert not silent


def test_each_type_name_is_declared_once() -> None:
    """C's declarations and Python's classes are named as what they show."""
    declared = re.compile(
        r"(?m)^( *)(?:pub(?:\([a-z: ]+\))? )?(?:unsafe )?(struct|enum|trait|union|type) (\w+)"
    )
    places: dict[str, list[str]] = {}
    for path in ROOT.glob("crates/*/src/**/*.rs"):
        if path.name == "sys.rs":
            continue
        text = path.read_text()
        for found in declared.finditer(text):
            indent, kind, name = found.groups()
            attributes = text[: found.start()].rpartition("\n\n")[2]
            if not (kind == "type" and indent) and "#[pyclass" not in attributes:
                places.setdefault(name, []).append(str(path.relative_to(ROOT)))
    assert len(places) > 300
    assert {name: paths for name, paths in places.items() if len(paths) > 1} == {}
