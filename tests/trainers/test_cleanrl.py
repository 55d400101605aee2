"""CleanRL's loops of its page, beside the same loops over the vector envs of Gymnasium 0.29."""

from __future__ import annotations

import contextlib
import io
import re
import textwrap

import pytest

from tests.abi import peers, venvs
from tests.trainers import pages

# How CleanRL's scripts make their envs, for Gymnasium 0.29.
_MAKE_ENV = """
import gymnasium as gym
import numpy as np

def make_env(**options):
    def thunk():
        env = gym.make("CartPole-v1", **options)
        return gym.wrappers.RecordEpisodeStatistics(env)
    return thunk
"""


def printed(program: str) -> str:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(program, {})
    return out.getvalue()


def over_gymnasium(program: str) -> str:
    """What the program prints with its envs made as CleanRL makes them, by Gymnasium 0.29."""
    call = r'envs = corral.make_vec\(\s*"CartPole-v1",\s*(\d+),.*?\n\)\n'
    made = re.search(call, program, re.DOTALL)
    assert made is not None
    limit = re.search(r"max_episode_steps=\d+", made[0])
    envs = f"gym.vector.SyncVectorEnv([make_env({limit[0] if limit else ''})] * {made[1]})"
    changed = program.replace(made[0], f"envs = {envs}\n").replace("import corral\n", _MAKE_ENV)
    assert "corral" not in changed
    python = venvs.fetched(peers.venv_python, "gymnasium029")
    done = venvs.run(python, "-c", textwrap.dedent(changed))
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("number", [0, 1], ids=["ppo", "dqn"])
def test_a_loop_of_cleanrl_prints_what_it_prints_over_gymnasium_0_29(number: int) -> None:
    program = pages.programs("cleanrl")[number]
    shown = printed(program)
    assert shown.count("episodic_return") >= 4
    assert shown == over_gymnasium(program)
