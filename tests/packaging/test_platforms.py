"""Corral's Python half is imported, and plays, where Python lacks what Linux alone or Unix has.

No Windows and no macOS is at hand, so a Python on Linux is made to lack these. What the native half
is there, `make lint` compiles with `cfg(portable)`.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

# Windows lacks all of these, and macOS some.
PROGRAM = """
import os, signal, socket, sys
# Python's own modules choose by system too, and take what this Python has.
import asyncio, multiprocessing.connection, subprocess, tempfile
import gymnasium
import numpy as np
for name in ("fcntl", "termios", "tty", "resource", "pwd", "grp"):
    sys.modules[name] = None
for module, names in {
    os: "fork register_at_fork memfd_create setpgid killpg getpgid pwrite sched_getaffinity",
    signal: "SIGKILL SIGHUP SIGCHLD SIGSTOP SIGCONT SIGPIPE",
    socket: "AF_UNIX send_fds recv_fds",
}.items():
    for name in names.split():
        if hasattr(module, name):
            delattr(module, name)
sys.platform = SYSTEM

import corral
import corral.checking
import corral.compat.gymnasium

envs = corral.make_vec("CartPole-v1", 4, num_threads=2)
theirs = gymnasium.make_vec("CartPole-v1", 4, vectorization_mode="sync")
assert np.array_equal(envs.reset(seed=3)[0], theirs.reset(seed=3)[0])
for _ in range(50):
    actions = envs.action_space.sample()
    for ours, its in zip(envs.step(actions)[:4], theirs.step(actions)[:4]):
        assert np.array_equal(ours, its)
hosted = corral.from_gymnasium("FrozenLake-v1", 2, runner="thread")
hosted.reset(seed=0)
hosted.step(hosted.action_space.sample())
result = corral.evaluate(lambda o: [0] * len(o), "CartPole-v1", indices=range(3), num_envs=2)
for refused in (
    lambda: corral.from_gymnasium("FrozenLake-v1", 2),
    lambda: corral.checking.check_library(corral.libenv_path()),
    lambda: corral.evaluate(min, "CartPole-v1", indices=range(3), num_envs=2, num_processes=2),
):
    try:
        refused()
    except corral.errors.UnsupportedError as error:
        print(str(error).partition(":")[0])
"""


@pytest.mark.parametrize("system", ["win32", "darwin"])
def test_corral_plays_and_says_what_it_cannot_where_python_lacks_what_linux_has(
    system: str,
) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM.replace("SYSTEM", repr(system))],
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr
    whats = "worker processes", "checks of libraries", "evaluations in several processes"
    assert ran.stdout.splitlines() == [
        f"{what} are supported on Linux only, and this is {system}" for what in whats
    ]
