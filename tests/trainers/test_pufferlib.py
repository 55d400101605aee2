"""`corral.compat.pufferlib`: beside PufferLib 3 itself by `pufferlib_suite.py`, in a venv of its
own; and what is other here on purpose."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

import corral.compat.pufferlib as pufferlib
from corral import errors
from tests.abi import peers
from tests.abi.venvs import ROOT, fetched, run_suite
from tests.trainers.pages import programs

SUITE = Path(__file__).with_name("pufferlib_suite.py")


@pytest.mark.thorough
def test_with_pufferlib() -> None:
    done = run_suite(fetched(peers.venv_python, "pufferlib"), SUITE)
    assert done.returncode == 0, done.stdout + done.stderr
