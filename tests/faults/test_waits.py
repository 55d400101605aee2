"""Waits, interrupts, forks, closes: nothing hangs, nothing is lost, nothing is left behind."""

from __future__ import annotations

import gc
import os
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
from corral.errors import ClosedError, CorralError, EnvTimeoutError, PendingCallError
from tests.support import FAULTY, assert_same, digest, forces, row

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs Linux's /proc")

# "Did not hang": far more than it takes, for the machine may be busy.
LONG = 20.0
RUNNERS: dict[str, dict[str, Any]] = {
    "serial": {"num_threads": 1},
    "threads": {"num_threads": 3},
    "batches": {"batch_size": 2, "num_threads": 2},
    "timeout": {"timeout": 30, "num_threads": 2},
    "restart": {"batch_size": 2, "num_threads": 2, "on_failure": "restart"},
}

PRELUDE = """
import gc, os, signal, sys, threading, time
import numpy as np
import corral
from corral import errors
F = "testing/Faulty-v0"
def forces(n):
    return {"force": np.zeros((n, 2), np.float32), "gear": np.ones(n, np.int64)}
"""


def run(code: str, **more: Any) -> subprocess.CompletedProcess[str]:
    code = PRELUDE + textwrap.dedent(code)
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, cwd=ROOT, **more
    )


def done(code: str) -> str:
    """What a program prints that must end well and in silence."""
    ended = run(code)
    assert (ended.returncode, ended.stderr) == (0, ""), (ended.stdout, ended.stderr[-800:])
    return ended.stdout


# --- An env that never answers ---


@pytest.mark.parametrize("more", [{}, {"batch_size": 2}], ids=["all", "batches"])
@pytest.mark.parametrize("fault", ["sleep_in_step", "sleep_in_reset"])
def test_an_env_that_sleeps_for_ever_costs_its_slot_and_its_thread_only(
    fault: str, more: dict[str, Any]
) -> None:
    n, sick = 4, 1
    envs = corral.make_vec(
        FAULTY, n, seed=0, fault=fault, of_seed=sick, at_step=0, in_episode=0,
        timeout=0.3, num_threads=2, **more,
    )  # fmt: skip
    sound = corral.make_vec(FAULTY, n, seed=0, num_threads=1)
    began = time.monotonic()
    expected: Any = sound.reset()

    def ask(send: Any) -> EnvTimeoutError:
        send()
        with pytest.raises(EnvTimeoutError, match="no answer within 300ms") as raised:
            envs.drain()
        return raised.value

    if fault == "sleep_in_step":
        assert_same(envs.reset(), expected)
        error = ask(lambda: envs.send(forces(n)))
        expected = sound.step(forces(n))
    else:
        error = ask(envs.async_reset)
    assert isinstance(error, TimeoutError)
    assert time.monotonic() - began < LONG
    (failure,) = error.failures
    assert (failure.slot, failure.cause) == (sick, "silence")
    assert error.batch is not None
    for slot in {0, 2, 3}:
        assert_same(row(error.batch[0], slot), row(expected[0], slot))
    _, infos = envs.reset(options={"reset_mask": np.arange(n) == sick})
    assert infos["_restarted"].tolist() == [False, True, False, False]
    for _ in range(5):
        envs.send(forces(n))
        assert envs.drain() is not None
    envs.close()
    assert time.monotonic() - began < LONG


def test_a_process_whose_env_sleeps_for_ever_closes_and_ends_quickly() -> None:
    for end in ("envs.close()", "del envs; gc.collect()", "pass"):
        began = time.monotonic()
        told = done(
            f"""
            envs = corral.make_vec(F, 3, fault="sleep_in_step", at_step=0, timeout=0.2)
            envs.reset()
            try:
                envs.step(forces(3))
            except errors.EnvTimeoutError as error:
                print(len(error.failures))
            {end}
            print("ended")
            """
        )
        assert told == "3\nended\n"
        assert time.monotonic() - began < LONG


def test_threads_left_behind_end_once_their_envs_answer() -> None:
    """In a process of its own, where no other test's threads end meanwhile."""
    told = done(
        f"""
        def threads():
            return len(os.listdir("/proc/self/task"))
        before = threads()
        envs = corral.make_vec(F, 2, seed=0, fault="sleep_in_step", at_step=0, sleep=4.0,
            timeout=1.0, num_threads=2)
        for _ in range(3):
            envs.reset(seed=0)
            try:
                envs.step(forces(2))
            except errors.EnvTimeoutError:
                print("late")
        def ended(count):
            until = time.monotonic() + {LONG}
            while threads() > count and time.monotonic() < until:
                time.sleep(0.02)
            return threads() == count
        print(ended(before + 2))
        envs.close()
        print(ended(before))
        """
    ).split()
    assert told == ["late", "late", "late", "True", "True"]


# --- Ctrl-C ---

WAITS = {
    "step": ("timeout=3600", "sleep_in_step", "envs.step(forces(4))"),
    "reset": ("timeout=3600", "sleep_in_reset", "envs.reset()"),
    "recv": ("batch_size=4, timeout=3600", "sleep_in_step", "envs.send(forces(4)); envs.recv()"),
    "recv of batches": (
        "batch_size=2, num_threads=2",
        "sleep_in_step",
        "envs.send(forces(2), [1, 2]); envs.recv()",
    ),
    "drain": ("batch_size=2, num_threads=2", "sleep_in_step", "envs.send(forces(4)); envs.drain()"),
    "step of threads": ("num_threads=2", "sleep_in_every_step", "envs.step(forces(4))"),
    "restart": ("timeout=3600, on_failure='restart'", "sleep_in_step", "envs.step(forces(4))"),
}


@pytest.mark.parametrize("wait", WAITS)
def test_ctrl_c_gets_through_every_wait_and_the_rows_are_still_there(wait: str) -> None:
    how, fault, call = WAITS[wait]
    # Slot 1 sleeps for a while only, so that what was in flight can be received afterwards.
    told = done(
        f"""
        envs = corral.make_vec(F, 4, seed=0, fault={fault!r}, of_seed=1, at_step=0, sleep=0.7,
            in_episode=1 if {fault!r} == "sleep_in_reset" else 0, {how})
        sound = corral.make_vec(F, 4, seed=0, num_threads=1)
        envs.reset(); first = sound.reset()
        expected = sound.reset() if {wait!r} == "reset" else sound.step(forces(4))
        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
        try:
            {call}
            print("not interrupted")
        except KeyboardInterrupt:
            print("interrupted")
        rows = 0
        while envs.native.in_flight():
            obs, *_, infos = envs.recv()
            for at, slot in enumerate(infos["env_id"]):
                assert obs["level"][at] == expected[0]["level"][slot]
                rows += 1
        print(rows)
        envs.reset(seed=5); again = sound.reset(seed=5)
        assert (envs.observe()["level"] == again[0]["level"]).all()
        envs.close()
        print("closed")
        """
    ).split("\n")
    assert told[0] == "interrupted", told
    if wait != "step of threads":
        # Rows that were in flight are there afterwards. The caller of the last one works itself: it
        # comes when its own env is done.
        assert told[1] == ("2" if wait == "recv of batches" else "4")
    assert told[2] == "closed"


@pytest.mark.parametrize("how", ["timeout=3600", "batch_size=2, num_threads=2"])
@pytest.mark.parametrize("then", ["reset", "close", "exit"])
def test_after_ctrl_c_a_reset_drops_the_rows_and_an_end_is_quick(how: str, then: str) -> None:
    began = time.monotonic()
    sleep = 1.0 if then == "reset" else 3600
    told = done(
        f"""
        envs = corral.make_vec(F, 4, seed=0, fault="sleep_in_step", of_seed=1, at_step=0,
            sleep={sleep}, {how})
        envs.reset()
        threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        try:
            if "batch" in {how!r}:
                envs.send(forces(4)); envs.drain()
            else:
                envs.step(forces(4))
        except KeyboardInterrupt:
            print("interrupted")
        if {then!r} == "reset":
            got = envs.reset(seed=3)[0]
            expected = corral.make_vec(F, 4, seed=3).reset()[0]
            assert (got["level"] == expected["level"]).all()
            assert envs.native.in_flight() == 0
        elif {then!r} == "close":
            envs.close()
        print("done")
        """
    )
    assert told == "interrupted\ndone\n"
    assert time.monotonic() - began < LONG


# --- Forks ---


@pytest.mark.parametrize("runner", RUNNERS)
def test_a_forked_child_is_told_so_and_ends_and_the_parent_goes_on(runner: str) -> None:
    """Forked while nothing is in flight, while some is, and while a thread is inside a call."""
    told = done(
        f"""
        import warnings; warnings.simplefilter("ignore")
        how = {RUNNERS[runner]!r}

        def child(envs):
            wrong = 0
            for call in (
                lambda: envs.step(forces(4)), envs.reset, envs.recv, envs.drain, envs.save_state,
                lambda: envs.send(forces(4)), envs.observe, envs.async_reset,
                lambda: envs.load_state(b""),
            ):
                try:
                    call()
                    wrong += 1
                except errors.ForkedError:
                    pass
                except BaseException as error:
                    print(type(error).__name__, error, flush=True)
                    wrong += 1
            envs.close()
            # One made here works here.
            mine = corral.make_vec(F, 4, seed=0, **how)
            mine.async_reset(); mine.drain(); mine.close()
            sys.exit(wrong)

        for busy in ("idle", "in flight", "inside a call"):
            slow = {{}}
            if busy == "inside a call":
                slow = dict(fault="sleep_in_every_step", sleep=0.05)
            envs = corral.make_vec(F, 4, seed=0, **slow, **how)
            sound = corral.make_vec(F, 4, seed=0, num_threads=1)
            envs.reset(); sound.reset()
            def play():
                envs.send(forces(4))
                return envs.drain()
            results = []
            if busy == "in flight":
                envs.send(forces(4))
            elif slow:
                worker = threading.Thread(target=lambda: results.append(play()))
                worker.start()
                time.sleep(0.03)
            sys.stdout.flush()  # or the child prints it again
            pid = os.fork()
            if pid == 0:
                child(envs)
            until = time.monotonic() + {LONG}
            while not (ended := os.waitpid(pid, os.WNOHANG))[0]:
                if time.monotonic() > until:
                    os.kill(pid, signal.SIGKILL)
                    print("the child hangs")
                time.sleep(0.01)
            print(os.waitstatus_to_exitcode(ended[1]))
            if slow:
                worker.join()
            else:
                results.append(envs.drain() if busy == "in flight" else play())
            for _ in range(3):
                results.append(play())
            for got in results:
                assert (got[0]["level"] == sound.step(forces(4))[0]["level"]).all()
            envs.close()
        print("right")
        """
    )
    assert told == "0\n0\n0\nright\n"


# --- Close, drop, and calls from several threads ---


def test_closing_ends_another_threads_wait_in_recv() -> None:
    envs = corral.make_vec(
        FAULTY, 2, seed=0, batch_size=1, fault="sleep_in_step", at_step=0, sleep=1.5
    )
    envs.reset()
    envs.send(forces(2))
    raised: list[BaseException] = []

    def wait() -> None:
        try:
            envs.recv()
        except BaseException as error:
            raised.append(error)

    waiter = threading.Thread(target=wait)
    waiter.start()
    time.sleep(0.1)
    envs.close()
    waiter.join(LONG)
    assert [type(error) for error in raised] == [ClosedError]


@pytest.mark.parametrize("runner", RUNNERS)
def test_of_calls_at_once_one_is_served_and_the_others_are_refused_and_none_lost(
    runner: str,
) -> None:
    envs = corral.make_vec(
        FAULTY, 4, seed=0, fault="sleep_in_every_step", sleep=0.002, **RUNNERS[runner]
    )
    sound = corral.make_vec(FAULTY, 4, seed=0, num_threads=1)
    envs.reset()
    sound.reset()
    refused, served, wrong = [], [], []

    def work() -> None:
        for _ in range(25):
            try:
                if envs.batch_size == 4:
                    served.append(envs.step(forces(4))[0])
                else:
                    envs.send(forces(1), [0])
                    served.append(envs.recv()[0])
            except PendingCallError as error:
                refused.append(error)
            except CorralError as error:
                # Another took what this one had sent.
                if envs.batch_size == 4:
                    wrong.append(error)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LONG)
        assert not thread.is_alive()
    assert not wrong
    assert served
    assert refused
    envs.drain()
    if envs.batch_size == 4:
        got = sorted(repr(digest(seen)) for seen in served)
        assert got == sorted(repr(digest(sound.step(forces(4))[0])) for _ in served)


@pytest.mark.parametrize("runner", RUNNERS)
def test_dropping_envs_in_flight_ends_their_threads(runner: str) -> None:
    before = len(os.listdir("/proc/self/task"))
    for k in range(20):
        envs = corral.make_vec(
            FAULTY, 6, seed=k, fault="sleep_in_every_step", sleep=0.001, **RUNNERS[runner]
        )
        envs.reset()
        envs.send(forces(6))
        if k % 2:
            envs.native.in_flight()
        del envs
    gc.collect()
    assert settled() <= before


def settled() -> int:
    """How many threads there are, once those that end have."""
    count = len(os.listdir("/proc/self/task"))
    for _ in range(100):
        time.sleep(0.01)
        now = len(os.listdir("/proc/self/task"))
        if now >= count:
            return now
        count = now
    return count


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.parametrize("end", ["close", "drop"])
@pytest.mark.parametrize("runner", RUNNERS)
def test_two_hundred_lives_leave_threads_files_and_memory_as_they_were(
    runner: str, end: str
) -> None:
    def live(k: int) -> None:
        envs = corral.make_vec(FAULTY, 6, seed=k, **RUNNERS[runner])
        envs.reset()
        for _ in range(2):
            envs.send(forces(6))
            envs.drain()
        envs.send(forces(6))
        if end == "close":
            envs.close()

    for k in range(40):
        live(k)
    gc.collect()
    threads, files, memory = settled(), len(os.listdir("/proc/self/fd")), resident()
    for k in range(200):
        live(k)
    gc.collect()
    assert settled() <= threads
    assert len(os.listdir("/proc/self/fd")) == files
    assert resident() - memory < 4 << 20


# --- Width and length ---


@pytest.mark.parametrize(
    "how", [{"num_threads": 1}, {"num_threads": 2}, {"batch_size": 4096}, {"timeout": 60}]
)
def test_sixty_five_thousand_envs(how: dict[str, Any]) -> None:
    n = 65_536
    envs = corral.make_vec("CartPole-v1", n, seed=0, **how)
    first, _ = envs.reset()
    for _ in range(3):
        envs.send(np.ones(n, dtype=np.int64))
        batch = envs.drain()
        assert batch is not None
    last = corral.make("CartPole-v1", seed=n - 1)
    assert_same(first[-1], last.reset()[0])
    for _ in range(3):
        seen, *_ = last.step(1)
    assert_same(batch[0][-1], seen)
    state = envs.save_state()
    again = corral.make_vec("CartPole-v1", n, seed=1, num_threads=1)
    again.load_state(state)
    assert_same(again.observe(), batch[0])
    envs.close()


@pytest.mark.parametrize(
    ("how", "millions"), [({"num_threads": 1}, 10), ({"num_threads": 2}, 10), ({"timeout": 60}, 3)]
)
def test_millions_of_steps_take_no_more_memory(how: dict[str, Any], millions: int) -> None:
    """CartPole steps, in a process of their own."""
    told = done(
        f"""
        n, million = 4096, 1_000_000
        total = {millions} * million
        envs = corral.make_vec("CartPole-v1", n, seed=0, episode_statistics=True, **{how!r})
        envs.reset()
        actions = [(np.arange(n) + k) % 2 for k in range(2)]
        def resident():
            with open("/proc/self/statm") as file:
                return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        for k in range(total // n):
            envs.step(actions[k % 2])
            if k == million // n:
                after_one = resident()
        print(total, after_one, resident() - after_one)
        """
    )
    total, after_one, more = map(int, told.split())
    print(f"{how}: {after_one >> 10} KiB after a million steps, {more >> 10} more after {total:,}")
    assert more <= 1 << 20
