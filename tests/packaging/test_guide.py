"""The pages on how an env is written: every block is a piece of what tests compile, or runs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from corral import scaffold

ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "docs" / "writing-an-env.md"
QUESTIONS = ROOT / "docs" / "how-do-i.md"


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(), re.M | re.S)


def without_indent(text: str) -> str:
    """Lines without what all of them begin with, so that a method and its quotation are alike."""
    return re.sub(r"(?m)^[ ]+", "", textwrap.dedent(text)).strip()


@pytest.fixture(scope="module")
def grid(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the guide walks through."""
    return scaffold.new(
        "cave_env", tmp_path_factory.mktemp("grid") / "project", env="Cave", kind="grid"
    )


def test_the_guide_quotes_what_corral_new_writes(grid: Path) -> None:
    files = [*grid.glob("src/*.rs"), *grid.glob("tests/*.rs")]
    written = "\n".join(
        without_indent(file.read_text().replace("cave_env", "my_env")) for file in files
    )
    quoted = blocks(GUIDE, "rust")
    assert len(quoted) > 20
    assert [block for block in quoted if without_indent(block) not in written] == []


def test_the_questions_quote_what_rust_tests_compile() -> None:
    compiled = without_indent((ROOT / "crates" / "envcore" / "tests" / "how_do_i.rs").read_text())
    quoted = blocks(QUESTIONS, "rust")
    assert len(quoted) > 10
    assert [block for block in quoted if without_indent(block) not in compiled] == []


def test_there_are_twenty_questions() -> None:
    numbers = re.findall(r"^## (\d+)\. ", QUESTIONS.read_text(), re.M)
    assert numbers == [str(k + 1) for k in range(20)]


@pytest.mark.parametrize("k", range(len(blocks(QUESTIONS, "python"))))
def test_python_of_the_questions_runs(k: int, tmp_path: Path) -> None:
    code = blocks(QUESTIONS, "python")[k]
    subprocess.run(
        [sys.executable, "-c", code], check=True, cwd=tmp_path, capture_output=True, timeout=100
    )


def test_commands_of_the_questions_run(tmp_path: Path) -> None:
    tools = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    for block in blocks(QUESTIONS, "sh"):
        for command in block.splitlines():
            subprocess.run(
                [sys.executable, "-m", *command.split()],
                check=True,
                cwd=tmp_path,
                capture_output=True,
                timeout=100,
                env={**os.environ, "PATH": tools},
            )


def test_what_the_pages_name_of_the_rust_documentation_exists() -> None:
    """By the source: the item that a link's file is named after is public there."""
    links = {
        link
        for page in (GUIDE, QUESTIONS)
        for link in re.findall(r"\]\(\.\./target/doc/(\S+)\.html\)", page.read_text())
    }
    assert len(links) >= 4
    for link in links:
        folder, _, item = link.rpartition("/")
        kind, name = item.split(".")
        room = ROOT / "crates" / "envcore" / "src" / "/".join(folder.split("/")[1:])
        files = (
            [room.with_suffix(".rs")] if room.with_suffix(".rs").is_file() else [*room.glob("*.rs")]
        )
        assert any(re.search(rf"pub {kind} {name}\b", file.read_text()) for file in files), link
