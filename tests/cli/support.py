"""The command, run in this process."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


class Command:
    """Runs `corral`, as `main` does."""

    def __init__(self, patch: pytest.MonkeyPatch, capture: pytest.CaptureFixture[str]) -> None:
        self._patch, self._capture = patch, capture

    def __call__(self, *arguments: object) -> subprocess.CompletedProcess[str]:
        from corral.cli.app import run

        given = [str(one) for one in arguments]
        self._patch.setattr(sys, "argv", ["corral", *given])
        self._capture.readouterr()
        code = run()
        said = self._capture.readouterr()
        return subprocess.CompletedProcess(given, code, said.out, said.err)

    def out(self, *arguments: object) -> str:
        """What a command that does well prints."""
        done = self(*arguments)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def json(self, *arguments: object) -> Any:
        """What a command prints with --json."""
        return json.loads(self.out(*arguments, "--json"))

    def refusal(self, *arguments: object) -> str:
        """The one line that tells of a user's error."""
        done = self(*arguments)
        assert (done.returncode, done.stdout) == (2, ""), done.stdout + done.stderr
        assert done.stderr.count("\n") == 1, done.stderr
        assert done.stderr.startswith("corral: ")
        return done.stderr
