"""Tianshou's collectors and algorithms over corral.to_tianshou and corral.compat.envpool."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

import corral
from corral import errors
from tests.abi import peers, venvs
from tests.trainers import pages


@pytest.mark.skipif(importlib.util.find_spec("tianshou") is not None, reason="tianshou is here")
def test_without_tianshou_the_error_says_what_to_install():
    envs = corral.make_vec("CartPole-v1", 2, autoreset_mode="disabled")
    with pytest.raises(errors.LibraryError, match="pip install tianshou"):
        corral.to_tianshou(envs)


@pytest.mark.thorough
@pytest.mark.timeout(1800)
def test_the_adapter():
    python = venvs.fetched(peers.trainer_python, "tianshou")
    done = venvs.run_suite(python, Path(__file__).parent / "tianshou_suite.py")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.thorough
@pytest.mark.timeout(1800)
def test_dqn_learns():
    program, _ = pages.programs("tianshou")
    first, last = map(float, pages.output("tianshou", program).split()[-2:])
    assert first < 30
    assert last > 100


@pytest.mark.thorough
@pytest.mark.timeout(1800)
def test_its_collector_takes_the_drop_in():
    _, program = pages.programs("tianshou")
    assert pages.output("tianshou", program).split() == ["320", "320"]
