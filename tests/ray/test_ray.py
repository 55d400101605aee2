"""`corral.ray`, in the venv of Ray: `ray_suite.py`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.abi import peers, venvs

SUITE = Path(__file__).with_name("ray_suite.py")


# Ray starts dozens of processes, one after the other: a minute or two beside other tests.
@pytest.mark.timeout(900)
@pytest.mark.xdist_group("ray")
def test_pools_and_evaluations_in_rays_processes() -> None:
    done = venvs.run_suite(venvs.fetched(peers.venv_python, "ray"), SUITE)
    assert done.returncode == 0, done.stdout + done.stderr
