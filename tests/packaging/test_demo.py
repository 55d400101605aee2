"""The demo trains, evaluates and writes its files."""

import csv
import os
import subprocess
import sys
from pathlib import Path

import pytest

DEMO = Path(__file__).parents[2] / "demo"


def test_the_demo_solves_cart_pole_and_writes_its_three_files(tmp_path: Path) -> None:
    for package in ("rich", "matplotlib", "imageio", "PIL"):
        pytest.importorskip(package, reason="the demo's extras are not installed")
    done = subprocess.run(
        [sys.executable, DEMO / "train.py", "--out", tmp_path],
        capture_output=True,
        text=True,
        env={**os.environ, "MPLBACKEND": "Agg"},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    rows = list(csv.DictReader((tmp_path / "evaluation.csv").open()))
    assert [int(row["index"]) for row in rows] == list(range(100))
    assert sum(float(row["return"]) for row in rows) / 100 >= 475
    assert (tmp_path / "learning_curve.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "episode.gif").read_bytes().startswith(b"GIF8")
