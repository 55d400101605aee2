"""A venv with gym3 0.3.3, which wants a NumPy below 2: made once, under `.peers/`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
VENV = ROOT / ".peers" / "gym3"
PYTHON = VENV / "bin" / "python"

# gym3 pins old versions of what it needs for windows alone, so it comes without dependencies.
WITH_DEPENDENCIES = (
    "numpy==1.26.*",
    "gymnasium>=1.2,<1.5",
    "cloudpickle>=3",
    "cffi",
    "imageio",
    "imageio-ffmpeg",
    "pytest>=8",
    "pytest-timeout>=2.3",
)
WITHOUT = ("gym3==0.3.3",)


def gym3_python() -> Path:
    """The venv's Python; skips the test where the venv cannot be made."""
    stamp, wanted = VENV / "installed.txt", "\n".join((*WITH_DEPENDENCIES, *WITHOUT))
    if stamp.exists() and stamp.read_text() == wanted:
        return PYTHON
    _run(sys.executable, "-m", "venv", "--clear", str(VENV))
    pip = (str(PYTHON), "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    _run(*pip, *WITH_DEPENDENCIES)
    _run(*pip, "--no-deps", *WITHOUT)
    stamp.write_text(wanted)
    return PYTHON


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        said = (done.stderr.strip() or done.stdout.strip() or "nothing").splitlines()[-1]
        pytest.skip(f"gym3's venv could not be made: {' '.join(command[1:4])} said: {said}")
