"""DeepMind Lab2D's levels through `from_dm_env`: `dmlab2d_suite.py`, run in a venv of its own."""

from __future__ import annotations

from pathlib import Path

from tests.abi import peers
from tests.abi.venvs import fetched, run_suite

SUITE = Path(__file__).with_name("dmlab2d_suite.py")


def test_with_deepmind_lab2d() -> None:
    done = run_suite(fetched(peers.venv_python, "dmlab2d"), SUITE)
    assert done.returncode == 0, done.stdout + done.stderr
