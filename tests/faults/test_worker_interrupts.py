"""Ctrl-C gets through every wait for workers, and they live on."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from tests.faults.sick import CONTEXTS
from tests.support import quick

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs Linux's /proc")

PRELUDE = """
import os, signal, sys, threading, time
import numpy as np
from corral import errors
from tests.faults.sick import sick, zeros, pids, is_gone
def interrupt(after=0.5):
    threading.Timer(after, os.kill, (os.getpid(), signal.SIGINT)).start()
def interrupted(call):
    interrupt()
    try:
        call()
    except KeyboardInterrupt:
        print("interrupted", flush=True)
    else:
        print("not interrupted")
"""

# Where it sleeps, in which call of it, and what is called.
WAITS = {
    "step": ("step", 0, "envs.step(zeros(4))"),
    "reset": ("reset", 1, "envs.reset()"),
    "recv": ("step", 0, "envs.send(zeros(4)); envs.recv()"),
    "render": ("render", 0, "envs.render()"),
    "call": ("call", 0, "envs.call('act')"),
    "close": ("close", 0, "envs.close()"),
}


def run(code: str) -> str:
    ended = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PRELUDE + textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=ROOT,
    )
    assert ended.returncode == 0, (ended.stdout, ended.stderr[-2000:])
    return ended.stdout


@pytest.mark.parametrize("context", quick(CONTEXTS))
@pytest.mark.parametrize("wait", WAITS)
def test_ctrl_c_gets_through_though_all_workers_sleep_for_ever(wait: str, context: str) -> None:
    where, at, call = WAITS[wait]
    told = run(
        f"""
        ailment = ({where!r}, "sleep in C", {at})
        envs = sick(4, {{0: ailment, 2: ailment}}, context={context!r})
        envs.reset()
        interrupted(lambda: [{call.replace("; ", ", ")}])
        envs.close()
        print("closed")
        """
    )
    assert told == "interrupted\nclosed\n"


@pytest.mark.parametrize("context", CONTEXTS)
def test_ctrl_c_gets_through_while_envs_are_built(context: str) -> None:
    told = run(
        f"""
        interrupted(lambda: sick(4, {{0: ("init", "sleep")}}, context={context!r}))
        envs = sick(2, {{}}, context={context!r})
        envs.reset()
        print("built")
        """
    )
    # A spawned worker may still be on its way when the signal comes.
    assert told == "interrupted\nbuilt\n"


@pytest.mark.parametrize("context", quick(CONTEXTS))
@pytest.mark.parametrize("then", ["recv", "reset"])
def test_after_ctrl_c_the_workers_live_and_their_rows_can_be_had_or_dropped(
    then: str, context: str
) -> None:
    told = run(
        f"""
        envs = sick(4, {{}}, context={context!r})
        sound = sick(4, {{}}, runner="serial", num_workers=None)
        envs.reset(seed=3); sound.reset(seed=3)
        before = pids(envs)
        interrupted(lambda: envs.call("nap", 1.5))
        envs.send(zeros(4))
        if {then!r} == "recv":
            got, expected = envs.recv(), sound.step(zeros(4))
        else:
            interrupted(lambda: [envs.recv(), envs.call("nap", 1.5)])
            got, expected = envs.reset(seed=5), sound.reset(seed=5)
        assert (got[0] == expected[0]).all()
        assert pids(envs) == before
        envs.close()
        """
    )
    assert set(told.splitlines()) == {"interrupted"}


def test_questions_after_an_interrupted_one_are_answered() -> None:
    told = run(
        """
        envs = sick(2, {})
        envs.reset()
        for _ in range(3):
            interrupted(lambda: envs.call("nap", 2))
        assert len(pids(envs)) == 2
        for _ in range(100):
            pids(envs)
        envs.step(zeros(2))
        envs.close()
        """
    )
    assert told == "interrupted\n" * 3


@pytest.mark.parametrize("context", quick(CONTEXTS))
def test_ctrl_c_in_a_terminal_is_the_parents_alone(context: str) -> None:
    """The terminal sends it to its whole foreground process group."""
    code = PRELUDE + textwrap.dedent(
        f"""
        envs = sick(4, {{}}, context={context!r})
        sound = sick(4, {{}}, runner="serial", num_workers=None)
        envs.reset(), sound.reset()
        before = pids(envs)
        print("ready", flush=True)
        try:
            envs.call("nap", 3)
        except KeyboardInterrupt:
            print("interrupted", flush=True)
        for _ in range(3):
            assert (envs.step(zeros(4))[0] == sound.step(zeros(4))[0]).all()
        assert pids(envs) == before
        envs.close()
        print("went on", flush=True)
        """
    )
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(ROOT)
        os.execv(sys.executable, [sys.executable, "-W", "ignore", "-c", code])
    told = b""
    until = time.monotonic() + 40
    try:
        sent = False
        while time.monotonic() < until:
            if not select.select([terminal], [], [], 0.1)[0]:
                continue
            try:
                piece = os.read(terminal, 4096)
            except OSError:
                break
            if not piece:
                break
            told += piece
            if not sent and b"ready" in told:
                time.sleep(0.3)
                os.write(terminal, b"\x03")
                sent = True
    finally:
        if time.monotonic() >= until:
            os.kill(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
        os.close(terminal)
    assert b"interrupted" in told, told
    assert b"went on" in told, told
    assert b"Traceback" not in told, told
    assert os.waitstatus_to_exitcode(status) == 0
