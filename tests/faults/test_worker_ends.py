"""Ends: of the parent, of envs dropped or kept, of threads; nothing is left behind."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import corral
from corral.errors import ClosedError
from tests.faults.large import Large
from tests.faults.sick import CONTEXTS, Sick, are_gone_within, children, is_gone, pids, sick, zeros
from tests.support import quick

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs Linux's /proc")

PRELUDE = """
import gc, os, signal, sys, threading, time
import numpy as np
from corral import errors
from tests.faults.sick import sick, zeros, pids

def say(*words):
    # A whole line: several processes may say one at once, and `print` may write in pieces.
    os.write(1, (" ".join(map(str, words)) + "\\n").encode())
"""


def started(code: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", PRELUDE + textwrap.dedent(code)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=ROOT,
    )


@pytest.mark.parametrize("context", quick(CONTEXTS))
@pytest.mark.parametrize("state", ["idle", "sleep in C", "with children", "forked parent"])
def test_workers_end_with_a_parent_that_is_killed(state: str, context: str) -> None:
    """Though others hold its end of the sockets, or theirs."""
    ailment = {"sleep in C": "sleep in C", "with children": "fork"}.get(state)
    code = f"""
    ailment = {ailment!r}
    envs = sick(4, {{0: ("step", ailment), 3: ("step", ailment)}} if ailment else {{}},
        context={context!r})
    envs.reset()
    workers = pids(envs)
    if {state!r} == "forked parent" and os.fork() == 0:
        say("orphan", os.getpid())
        time.sleep(30)
        os._exit(0)
    if {state!r} == "with children":
        envs.step(zeros(4))
    say("workers", *set(workers))
    envs.step(zeros(4))
    time.sleep(60)
    """
    parent = started(code)
    assert parent.stdout is not None
    said: dict[str, list[int]] = {}
    expected = {"workers", "orphan"} if state == "forked parent" else {"workers"}
    while said.keys() != expected:
        line = parent.stdout.readline()
        assert line, said
        who, *numbers = line.split()
        said[who] = [int(number) for number in numbers]
    shared = shared_files()
    time.sleep(0.3)
    os.kill(parent.pid, signal.SIGKILL)
    parent.wait()
    gone = are_gone_within(said["workers"], 20)
    for pid in said.get("orphan", []):
        os.kill(pid, signal.SIGKILL)
    parent.stdout.close()
    assert gone
    assert shared_files() <= shared


def shared_files() -> set[str]:
    """Named shared memory, but for what multiprocessing makes for other tests at the same time."""
    return {name for name in os.listdir("/dev/shm") if not name.startswith(("pym-", "sem.mp-"))}


def resources() -> tuple[int, int, int]:
    """Children, file descriptors and threads of this process."""
    return len(children()), len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task"))


def resident() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.parametrize(
    ("context", "cycles"),
    [
        ("forkserver", 30),
        ("fork", 60),
        pytest.param("fork", 200, marks=pytest.mark.thorough),
        pytest.param("spawn", 20, marks=pytest.mark.thorough),
    ],
)
@pytest.mark.parametrize("end", ["close", "collect"])
def test_cycles_leave_nothing_behind(end: str, context: str, cycles: int) -> None:
    cycles = cycles // 2 if end == "collect" else cycles

    def cycle() -> None:
        weight = bytearray(1 << 18)
        envs = corral.from_gymnasium(lambda: (weight, Sick())[1], 2, num_workers=2, context=context)
        envs.reset()
        envs.step(zeros(2))
        if end == "close":
            envs.close()

    for _ in range(5):
        cycle()
    gc.collect()
    before, memory = resources(), resident()
    shared = shared_files()
    for _ in range(cycles):
        cycle()
    gc.collect()
    assert resources() == before
    assert resident() - memory < 16 << 20
    assert shared_files() <= shared


@pytest.mark.parametrize("context", quick(CONTEXTS))
def test_a_program_that_ends_without_closing_ends_its_workers(context: str) -> None:
    for end in ("sys.exit(0)", "os._exit(0)", "raise KeyboardInterrupt", "pass"):
        code = f"""
        envs = sick(4, {{1: ("step", "thread")}}, context={context!r})
        envs.reset(); envs.step(zeros(4))
        print(*pids(envs), flush=True)
        {end}
        """
        parent = started(code)
        told, _ = parent.communicate(timeout=60)
        assert are_gone_within([int(pid) for pid in told.split()], 20), end
        assert len(told.split()) == 4


@pytest.mark.parametrize("context", quick(CONTEXTS))
def test_a_forked_child_is_told_so_and_the_parent_goes_on(context: str) -> None:
    code = f"""
    envs = sick(4, {{}}, context={context!r})
    sound = sick(4, {{}}, runner="serial", num_workers=None)
    envs.reset(); sound.reset()
    workers = pids(envs)
    for busy in (False, True):
        if busy:
            envs.send(zeros(4))
        sys.stdout.flush()  # or the child prints it again
        pid = os.fork()
        if pid == 0:
            wrong = 0
            for call in (envs.reset, envs.recv, envs.render, lambda: envs.step(zeros(4)),
                    lambda: envs.call("act"), envs.drain, envs.observe):
                try:
                    call()
                    wrong += 1
                except errors.ForkedError:
                    pass
            mine = sick(2, {{}}, context={context!r})
            mine.reset(); mine.close()
            envs.close()
            del envs
            gc.collect()
            sys.exit(wrong)
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
        got = envs.recv() if busy else envs.step(zeros(4))
        assert (got[0] == sound.step(zeros(4))[0]).all()
    assert pids(envs) == workers
    envs.close()
    print("right")
    """
    told, _ = started(code).communicate(timeout=60)
    assert told == "0\n0\nright\n"


def test_closing_ends_another_threads_wait_and_the_workers() -> None:
    envs = sick(2, {0: ("step", "sleep in C")}, batch_size=2)
    envs.reset()
    workers = pids(envs)
    envs.send(zeros(2))
    raised: list[BaseException] = []

    def wait() -> None:
        try:
            envs.recv()
        except BaseException as error:
            raised.append(error)

    waiter = threading.Thread(target=wait)
    waiter.start()
    time.sleep(0.2)
    envs.close()
    waiter.join(20)
    assert [type(error) for error in raised] == [ClosedError]
    assert all(map(is_gone, workers))


def test_a_close_asks_all_workers_before_it_waits_for_any(tmp_path: Path) -> None:
    n = 6

    class Meeting(Sick):
        """Its close ends once all others are in theirs."""

        def close(self) -> None:
            (tmp_path / f"closing {os.getpid()}").touch()
            while len(list(tmp_path.glob("closing *"))) < n:
                time.sleep(0.01)
            (tmp_path / f"met {os.getpid()}").touch()

    envs = corral.from_gymnasium(Meeting, n, num_workers=n, context="fork")
    envs.reset()
    envs.close()
    assert len(list(tmp_path.glob("met *"))) == n


def test_workers_that_are_stopped_do_not_keep_a_close() -> None:
    envs = sick(6, {}, num_workers=6, context="fork")
    envs.reset()
    workers = pids(envs)
    for worker in workers:
        os.kill(worker, signal.SIGSTOP)
    envs.close()
    assert all(map(is_gone, workers))


@pytest.mark.parametrize(("n", "workers"), [(4096, 2), (3, 8)])
def test_very_many_envs_and_more_workers_than_envs(n: int, workers: int) -> None:
    envs = sick(n, {n - 1: ("step", "value error", 2)}, num_workers=workers)
    sound = sick(n, {}, runner="serial", num_workers=None)
    assert (envs.reset()[0] == sound.reset()[0]).all()
    for _ in range(2):
        assert (envs.step(zeros(n))[0] == sound.step(zeros(n))[0]).all()
    with pytest.raises(ValueError, match="bad luck"):
        envs.step(zeros(n))
    assert len(set(pids(sound))) == 1
    envs.close()


def test_batches_that_are_kept_stay_as_they_are_and_lie_in_no_shared_memory() -> None:
    """40 MB in a batch, 400 in those kept; what is shared has room for a step and a row
    of each env beside it, whatever is kept."""
    n = 10
    before = shared_memory()
    envs = corral.from_gymnasium(Large, n, num_workers=2, context="forkserver")
    kept: list[Any] = [envs.reset()[0]]
    for _ in range(9):
        kept.append(envs.step(zeros(n))[0])
    for k, observations in enumerate(kept):
        assert (observations[:, ::4096] == k).all()
    assert shared_memory() - before < 120 << 20
    envs.close()
    del envs
    gc.collect()
    assert shared_memory() - before < 40 << 20


def shared_memory() -> int:
    """Of this process, mapped and touched."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[2]) * os.sysconf("SC_PAGE_SIZE")


def test_two_hundred_batches_are_kept() -> None:
    envs = sick(4, {})
    sound = sick(4, {}, runner="serial", num_workers=None)
    kept = [(envs.reset()[0], sound.reset()[0])]
    for k in range(200):
        actions = np.full(4, k % 4)
        kept.append((envs.step(actions)[0], sound.step(actions)[0]))
    envs.close()
    assert all((got == expected).all() for got, expected in kept)
