"""The programs in `examples/` run, briefly."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
# Procgen's fetches a library; tests/abi plays that one.
RUN = ("ppo", "tree_search")


def test_every_example_is_run_or_named_here() -> None:
    assert {file.stem for file in EXAMPLES.glob("*.py")} == {*RUN, "procgen"}


@pytest.mark.parametrize("name", RUN)
def test_an_example_runs_and_has_its_measured_result_beside_its_command(name: str) -> None:
    file = EXAMPLES / f"{name}.py"
    told = file.read_text().split('"""')[1]
    assert f"    python examples/{name}.py [--quick]\n" in told
    assert "\n    " in told.split("Measured")[1]
    done = subprocess.run(
        [sys.executable, file, "--quick"], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert "a mean return of" in done.stdout
