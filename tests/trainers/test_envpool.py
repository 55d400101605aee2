"""EnvPool's kind of programs run on corral.compat.envpool."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from tests.abi import peers, venvs
from tests.trainers import pages


def run(number: int) -> str:
    """What a program of the page prints, run by the Python that has PyTorch."""
    python = venvs.fetched(peers.torch)
    done = venvs.run(python, "-W", "ignore", "-c", pages.programs("envpool")[number])
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def returns(printed: str) -> tuple[int, int]:
    found = re.search(r"mean return (\d+) at first, (\d+) at last", printed)
    assert found, printed
    return int(found[1]), int(found[2])


def test_the_page_prints_what_it_says():
    pytest.importorskip("dm_env")
    page = (pages.PAGES / "envpool.md").read_text()
    done = venvs.run(Path(sys.executable), "-c", pages.programs("envpool")[0])
    assert done.stdout == page.split("```text\n")[1].split("```")[0], done.stderr


@pytest.mark.thorough
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("number", [1, 2], ids=["stable-baselines3", "cleanrl"])
def test_a_program_for_envpool_learns(number):
    first, last = returns(run(number))
    assert first < 40
    assert last > 100
