"""rl_games over corral.to_rl_games, and its own ENVPOOL over corral.compat.envpool."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

import corral
from corral import errors
from tests.abi import peers, venvs
from tests.trainers import pages


@pytest.mark.skipif(importlib.util.find_spec("rl_games") is not None, reason="rl_games is here")
def test_without_rl_games_the_error_says_what_to_install():
    envs = corral.make_vec("CartPole-v1", 2, autoreset_mode="same_step")
    with pytest.raises(errors.LibraryError, match="pip install rl-games"):
        corral.to_rl_games(envs)


@pytest.mark.thorough
@pytest.mark.timeout(1800)
def test_the_adapter():
    python = venvs.fetched(peers.trainer_python, "rl_games")
    done = venvs.run_suite(python, Path(__file__).parent / "rl_games_suite.py")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.thorough
@pytest.mark.timeout(1800)
def test_ppo_learns():
    printed = pages.output("rl_games", pages.programs("rl_games")[0])
    found = re.search(r"mean return (\d+) at first, (\d+) at last", printed)
    assert found, printed
    assert int(found[1]) < 40
    assert int(found[2]) > 60


@pytest.mark.thorough
@pytest.mark.timeout(1800)
def test_its_envpool_takes_the_drop_in():
    page = (pages.PAGES / "rl_games.md").read_text()
    printed = pages.output("rl_games", pages.programs("rl_games")[1])
    assert printed.splitlines()[-1:] == page.split("```text\n")[1].split("```")[0].splitlines()
