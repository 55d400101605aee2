"""Messages to and from workers, however large and whoever does not read them: every wait ends by
the timeout or by Ctrl-C, and other threads go on meanwhile."""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import corral
from corral.errors import EnvError, EnvTimeoutError
from tests.faults.correspondents import MEGABYTE, Correspondent, Large

ROOT = Path(__file__).parents[2]
pytestmark = [
    pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs Linux's /proc"),
    # What hangs today hangs for ever.
    pytest.mark.timeout(120),
]

# "Did not hang": far more than it takes, for the machine may be busy.
LONG = 40.0
LARGE = "a" * MEGABYTE


def envs_of(n: int, **how: Any) -> corral.VectorEnv:
    how = {"num_workers": 1, "context": "forkserver", **how}
    return corral.from_gymnasium([Correspondent] * n, **how)


@contextlib.contextmanager
def others_go_on() -> Iterator[None]:
    """Another thread of Python's is not kept from its work."""
    done = threading.Event()
    rounds = 0

    def work() -> None:
        nonlocal rounds
        while not done.is_set():
            time.sleep(0.005)
            rounds += 1

    worker = threading.Thread(target=work)
    worker.start()
    began = time.monotonic()
    try:
        yield
        during, is_brief = rounds, time.monotonic() - began < 0.2
    finally:
        done.set()
        worker.join(LONG)
    # A call that waits with the GIL in hand has it all the while.
    assert during > 5 or is_brief


def silent(call: Callable[[], Any]) -> EnvTimeoutError:
    began = time.monotonic()
    with others_go_on(), pytest.raises(EnvTimeoutError) as raised:
        call()
    assert time.monotonic() - began < LONG
    return raised.value


# --- Who does not read ---


def test_a_large_action_for_a_worker_at_work_waits_for_it_until_the_timeout() -> None:
    envs = envs_of(2, timeout=3, batch_size=1)
    envs.reset()
    envs.send(["sleep"], [0])
    time.sleep(0.1)
    with others_go_on():
        envs.send([LARGE], [1])
    error = silent(envs.recv)
    assert [(f.slot, f.cause) for f in error.failures] == [(0, "silence")]
    error = silent_or_lost(envs.recv)
    assert [(f.slot, f.cause) for f in error.failures] == [(1, "death")]
    envs.reset()
    envs.send([LARGE, "a"])
    assert sorted(float(envs.recv()[0][0, 0]) for _ in range(2)) == [1, MEGABYTE]
    envs.close()


def silent_or_lost(call: Callable[[], Any]) -> EnvError:
    with pytest.raises(EnvError) as raised:
        call()
    return raised.value


CALLS: dict[str, Callable[[corral.VectorEnv], Any]] = {
    "call": lambda envs: envs.call("size_of", b"x" * 10 * MEGABYTE),
    "set_attr": lambda envs: envs.set_attr("some", b"x" * 10 * MEGABYTE),
    "reset": lambda envs: envs.reset(options={"text": "x" * 10 * MEGABYTE}),
    "step": lambda envs: envs.step([LARGE, LARGE]),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_large_message_for_a_stopped_worker_ends_with_the_timeout(name: str) -> None:
    envs = envs_of(2, num_workers=2, timeout=3)
    envs.reset()
    os.kill(envs.call("pid")[0], signal.SIGSTOP)
    error = silent(lambda: CALLS[name](envs))
    assert [(f.slot, f.cause) for f in error.failures] == [(0, "silence")]
    # A large action is not told whole.
    assert len(str(error)) < 5000
    envs.reset()
    assert CALLS[name](envs) is not error
    envs.close()


def test_a_worker_that_is_stopped_while_it_tells_much_is_silent() -> None:
    envs = envs_of(2, num_workers=2, timeout=3, batch_size=1)
    envs.reset()
    worker = envs.call("pid")[0]
    envs.send(["tell", "a"])
    # By now it has said what a socket holds, and waits to be heard.
    time.sleep(0.5)
    os.kill(worker, signal.SIGSTOP)
    assert envs.recv()[4]["env_id"] == [1]
    error = silent(envs.recv)
    assert [(f.slot, f.cause) for f in error.failures] == [(0, "silence")]
    envs.reset()
    envs.send(["tell"], [0])
    *_, infos = envs.recv()
    assert infos["frame"].shape == (1, 10 * MEGABYTE)
    assert infos["frame"].all()
    envs.close()


def test_what_a_stopped_worker_was_sent_arrives_once_it_goes_on() -> None:
    envs = envs_of(3, num_workers=1, batch_size=1)
    envs.reset()
    (worker, *_) = envs.call("pid")
    os.kill(worker, signal.SIGSTOP)
    with others_go_on():
        for slot in range(3):
            envs.send([(slot + 1) * LARGE], [slot])
        with pytest.raises(TimeoutError):
            envs.recv(timeout=0.1)
    os.kill(worker, signal.SIGCONT)
    rows = [envs.recv() for _ in range(3)]
    assert [float(row[0][0, 0]) for row in rows] == [MEGABYTE, 2 * MEGABYTE, 3 * MEGABYTE]
    envs.close()


def test_large_messages_to_several_workers_and_back_pass_each_other() -> None:
    envs = envs_of(4, num_workers=4)
    envs.reset()
    sizes = envs.call("size_of", b"x" * 10 * MEGABYTE)
    assert sizes == (10 * MEGABYTE,) * 4
    seen, *_, infos = envs.step(["tell", LARGE, "tell", 2 * LARGE])
    assert seen[:, 0].tolist() == [4, MEGABYTE, 4, 2 * MEGABYTE]
    assert infos["_frame"].tolist() == [True, False, True, False]
    envs.close()


# --- Factories ---


def test_large_factories_reach_their_workers() -> None:
    envs = corral.from_gymnasium(
        [Large(), Large()], num_workers=2, context="forkserver", timeout=30
    )
    envs.reset()
    assert len(set(envs.call("pid"))) == 2
    envs.close()


def test_ctrl_c_gets_through_while_a_stopped_worker_does_not_take_its_factory() -> None:
    told = run(
        """
        def build():
            factories = [Large(), Large(), Stopper()]
            corral.from_gymnasium(factories, num_workers=3, context="spawn")
        interrupted(build)
        envs = corral.from_gymnasium([Large()], context="forkserver")
        envs.reset()
        print("built")
        """
    )
    assert told == "interrupted\nbuilt\n"


# --- Ctrl-C ---

PRELUDE = """
import os, signal, sys, threading, time
import numpy as np
import corral
from corral import errors
from tests.faults.correspondents import *
def interrupted(call, after=0.5):
    threading.Timer(after, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    try:
        call()
        time.sleep(1)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
    else:
        print("not interrupted")
def envs_of(n, **how):
    how = {"num_workers": 1, "context": "forkserver", **how}
    return corral.from_gymnasium([Correspondent] * n, **how)
"""


def run(code: str, **how: Any) -> str:
    ended = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PRELUDE + textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=ROOT,
        **how,
    )
    assert ended.returncode == 0, (ended.stdout, ended.stderr[-2000:])
    return ended.stdout


@pytest.mark.parametrize(
    ("before", "call"),
    [
        ("", "envs.call('size_of', b'x' * 10 * MEGABYTE)"),
        ("", "envs.reset(options={'text': 'x' * 10 * MEGABYTE})"),
        ("", "envs.step(['x' * 10 * MEGABYTE] * 2)"),
        ("envs.send(['x' * 10 * MEGABYTE] * 2)", "envs.recv()"),
    ],
)
def test_ctrl_c_gets_through_a_large_message_to_a_stopped_worker_and_it_goes_on(
    before: str, call: str
) -> None:
    told = run(
        f"""
        envs = envs_of(2, num_workers=2)
        envs.reset()
        worker = envs.call("pid")[0]
        os.kill(worker, signal.SIGSTOP)
        {before}
        interrupted(lambda: {call})
        os.kill(worker, signal.SIGCONT)
        envs.reset()
        assert envs.call("pid")[0] == worker
        assert envs.step(["a", "abc"])[0].tolist() == [[1], [3]]
        envs.close()
        """
    )
    assert told == "interrupted\n"


def test_ctrl_c_while_objects_are_packed_is_ctrl_c() -> None:
    class Slow:
        def __reduce__(self) -> Any:
            raise KeyboardInterrupt

    envs = envs_of(2)
    envs.reset()
    calls: list[Callable[[], Any]] = [
        lambda: envs.reset(options={"text": Slow()}),
        lambda: envs.call("size_of", Slow()),
        lambda: envs.set_attr("some", Slow()),
    ]
    for call in calls:
        with pytest.raises(KeyboardInterrupt):
            call()
    assert envs.step(["a", "bc"])[0].tolist() == [[1], [2]]
    envs.close()


def test_ctrl_c_while_an_info_is_unpacked_is_ctrl_c_and_the_row_is_not_lost() -> None:
    from tests.faults import correspondents

    envs = envs_of(2)
    envs.reset()
    correspondents.seen.clear()
    with pytest.raises(KeyboardInterrupt):
        envs.step(["interrupt", "a"])
    seen, *_, infos = envs.recv()
    assert seen[:, 0].tolist() == [9, 1]
    assert type(infos["touchy"][0]).__name__ == "Touchy"
    envs.close()


# --- Standard error ---


def test_a_standard_error_that_nobody_reads_costs_the_timeout() -> None:
    code = """
    envs = envs_of(2, num_workers=2, timeout=3)
    envs.reset()
    try:
        envs.step(["complain", "a"])
    except errors.EnvTimeoutError:
        pass
    print("came back", flush=True)
    envs.reset()
    envs.step(["a", "a"])
    envs.close()
    print("closed", flush=True)
    os._exit(0)
    """
    program = [sys.executable, "-W", "ignore", "-c", PRELUDE + textwrap.dedent(code)]
    with subprocess.Popen(
        program, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT, text=True
    ) as started:
        try:
            started.wait(30)
        except subprocess.TimeoutExpired:
            pytest.fail("it hangs")
        finally:
            started.kill()
        assert started.stdout is not None
        assert started.stdout.read() == "came back\nclosed\n"


# --- What others write ---


@pytest.mark.parametrize("what", ["message", "row"])
def test_a_worker_that_says_what_it_cannot_is_ended(what: str) -> None:
    envs = envs_of(2, num_workers=2)
    envs.reset()
    with pytest.raises(EnvError, match="worker 1 of 2") as raised:
        envs.step(["a", f"garble {what}"])
    assert [(f.slot, f.cause) for f in raised.value.failures] == [(1, "death")]
    assert raised.value.batch is not None
    assert raised.value.batch[0][0] == [1]
    envs.reset()
    assert envs.step(["a", "ab"])[0].tolist() == [[1], [2]]
    envs.close()


def boards() -> dict[str, int]:
    """Where the shared memory of each vec env begins, by its inode.

    A new one may be mapped where that of a vec env collected meanwhile was.
    """
    with open("/proc/self/maps") as file:
        maps = re.findall(r"^(\w+)-\w+ \S+ 0+ \S+ (\d+) +/memfd:corral", file.read(), re.M)
    return {inode: int(start, 16) for start, inode in maps}


@pytest.mark.parametrize("value", [0, 40, 1 << 62, (1 << 64) - 1])
def test_a_count_that_another_process_wrote_over_costs_the_worker(value: int) -> None:
    before = boards()
    envs = envs_of(1)
    envs.reset()
    for _ in range(40):
        envs.step(["a"])
    (start,) = (start for inode, start in boards().items() if inode not in before)
    words = (ctypes.c_uint64 * 512).from_address(start)
    # The steps, the reset, and perhaps a question; what was posted is counted before it.
    count = max(k for k in range(512) if 41 <= words[k] < 50)
    # A worker that is done with something writes its own count.
    envs.send(["sleep"])
    words[count] = value
    with pytest.raises(EnvError, match="written over") as raised:
        envs.recv()
    assert [f.cause for f in raised.value.failures] == ["death"]
    del words
    envs.reset()
    assert envs.step(["ab"])[0].tolist() == [[2]]
    envs.close()


# --- Infos ---


def test_one_large_info_among_many_envs_takes_no_memory_for_the_others() -> None:
    told = run(
        """
        import resource
        class Teller(Correspondent):
            def __init__(self, tells): self.tells = tells
            def step(self, action):
                infos = {"frame": np.ones(4 * MEGABYTE, np.uint8)} if self.tells else {}
                return np.zeros(1), 0.0, False, False, infos
        def resident():
            with open("/proc/self/statm") as file:
                return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        n = 300
        fns = [lambda k=k: Teller(k == 7) for k in range(n)]
        envs = corral.from_gymnasium(fns, runner="serial")
        envs.reset()
        before = resident()
        *_, infos = envs.step(["a"] * n)
        assert resident() - before < 100 * MEGABYTE
        assert infos["frame"].shape == (n, 4 * MEGABYTE)
        assert infos["frame"][7].all() and not infos["frame"][8].any()
        del infos
        with open("/proc/self/statm") as file:
            room = int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE") + 300 * MEGABYTE
        resource.setrlimit(resource.RLIMIT_AS, (room, room))
        try:
            envs.step(["a"] * n)
        except MemoryError:
            print("MemoryError")
        """
    )
    assert told == "MemoryError\n"


# --- Timeouts ---


def test_a_timeout_beyond_all_clocks_is_none() -> None:
    envs = envs_of(2, timeout=1e19)
    envs.reset()
    assert envs.step(["a", "ab"])[0].tolist() == [[1], [2]]
    assert envs.call("size_of", b"abc") == (3, 3)
    envs.close()


def test_each_of_those_that_are_silent_together_is_told_of_with_its_own_action() -> None:
    envs = corral.make_vec(
        "testing/Faulty-v0", 3, fault="sleep_in_every_step", sleep=6.0, timeout=2.0, num_threads=3
    )
    envs.reset()
    with pytest.raises(EnvTimeoutError) as raised:
        envs.step({"force": np.zeros((3, 2), np.float32), "gear": np.array([1, 2, 3])})
    actions = [failure.action for failure in raised.value.failures]
    gears = [f"gear: {k}" in str(action) for k, action in enumerate(actions, 1)]
    assert gears == [True] * 3, actions
    envs.close()


# --- Starting again ---


def test_other_threads_go_on_while_a_reset_starts_workers_again() -> None:
    envs = envs_of(2, num_workers=2, context="forkserver")
    envs.reset()
    before = envs.call("pid")
    for pid in before:
        os.kill(pid, signal.SIGKILL)
    with pytest.raises(EnvError):
        envs.step(["a", "a"])
    with others_go_on():
        envs.reset()
    assert len({*before, *envs.call("pid")}) == 4
    envs.close()
