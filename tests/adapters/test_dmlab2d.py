"""DeepMind Lab2D's levels through `from_dm_env`: `dmlab2d_suite.py`, run in a venv of its own."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.abi import peers

ROOT = Path(__file__).parents[2]
SUITE = Path(__file__).with_name("dmlab2d_suite.py")


def test_with_deepmind_lab2d() -> None:
    try:
        python = peers.dmlab2d_python()
    except peers.Missing as why:
        pytest.skip(str(why))
    path = os.pathsep.join((str(ROOT / "python"), str(ROOT)))
    done = subprocess.run(
        [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--noconftest", str(SUITE)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
