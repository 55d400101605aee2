"""The page on Stable-Baselines3: its programs, and what it says, by the libraries themselves."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.abi import peers, venvs
from tests.trainers import pages

PAGE = "stable-baselines3"
SUITE = Path(__file__).with_name("stable_baselines3_suite.py")


@pytest.mark.timeout(600)
@pytest.mark.thorough
@pytest.mark.parametrize("number", range(len(pages.programs(PAGE))))
def test_the_programs_of_the_page_run(number: int) -> None:
    program = pages.programs(PAGE)[number]
    done = venvs.run(venvs.fetched(peers.torch), "-c", program)
    assert done.returncode == 0, done.stdout + done.stderr
    if number == 0:
        found = re.fullmatch(r"The last 100 episodes: a mean return of (\d+)\n", done.stdout)
        assert found is not None, done.stdout
        # Random pushes reach 22.
        assert int(found[1]) > 30
    else:
        assert (
            f"```python\n{program}```\n```text\n{done.stdout}```"
            in (pages.PAGES / f"{PAGE}.md").read_text()
        )


# A minute and a half on two cores of one's own.
@pytest.mark.timeout(1200)
@pytest.mark.thorough
def test_it_is_what_sb3s_vec_envs_are() -> None:
    done = venvs.run_suite(venvs.fetched(peers.torch), SUITE)
    assert done.returncode == 0, done.stdout + done.stderr
