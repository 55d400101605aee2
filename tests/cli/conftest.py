"""What the command's tests share."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import gymnasium
import pytest

pytest.importorskip("typer", reason="the command's extras are not installed")
pytest.importorskip("rich", reason="the command's extras are not installed")

from tests.cli.support import ROOT, Command


@pytest.fixture
def command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Command]:
    """The command, in a folder of its own; what it imports and registers goes with the test."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    registered, modules = dict(gymnasium.registry), set(sys.modules)
    yield Command(monkeypatch, capsys)
    gymnasium.registry.clear()
    gymnasium.registry.update(registered)
    for name in set(sys.modules) - modules:
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


@pytest.fixture
def corridor(tmp_path: Path) -> str:
    """The id of the Python env that the page of commands shows, in the command's folder."""
    page = (ROOT / "docs" / "commands.md").read_text()
    source = page.partition("# corridor.py\n")[2].partition("```")[0]
    (tmp_path / "corridor.py").write_text(source)
    return "corridor:Corridor-v0"
