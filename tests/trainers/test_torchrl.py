"""TorchRL: the programs of its page, and a suite that its own Python runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.abi import peers, venvs
from tests.trainers import pages

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(900)]


@pytest.mark.parametrize("number", [0, 1])
def test_a_program_of_the_page_prints_what_the_page_shows(number: int) -> None:
    printed = pages.output("torchrl", pages.programs("torchrl")[number])
    assert printed == pages.shown("torchrl")[number]


def test_torchrl_plays_our_envs_as_it_plays_gymnasiums() -> None:
    python = venvs.fetched(peers.trainer_python, "torchrl")
    done = venvs.run_suite(python, Path(__file__).with_name("torchrl_suite.py"))
    assert done.returncode == 0, done.stdout + done.stderr
