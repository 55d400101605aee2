"""`corral.compat.pufferlib`: beside PufferLib 3 itself by `pufferlib_suite.py`, in a venv of its
own; and what is other here on purpose."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.abi import peers
from tests.abi.venvs import fetched, run_suite

SUITE = Path(__file__).with_name("pufferlib_suite.py")


@pytest.mark.thorough
def test_with_pufferlib() -> None:
    done = run_suite(fetched(peers.venv_python, "pufferlib"), SUITE)
    assert done.returncode == 0, done.stdout + done.stderr
