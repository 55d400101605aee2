"""`close` closes: while other threads call, from a signal's handler, whatever is under way."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

import corral
import corral.compat.gymnasium
from corral.errors import ClosedError
from tests.faults.sick import are_gone_within

ROOT = Path(__file__).parents[2]

# "Did not hang": far more than it takes, for the machine may be busy.
LONG = 20.0


class Plain(gymnasium.Env[Any, Any]):
    observation_space = gymnasium.spaces.Box(-1, 1, (3,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)
    metadata = {"render_modes": ["rgb_array"]}  # noqa: RUF012
    render_mode = "rgb_array"

    def __init__(self, nap: float = 0.0) -> None:
        self.time = nap

    def reset(self, *, seed: Any = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        return np.zeros(3, np.float32), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        if self.time:
            time.sleep(self.time)
        return np.zeros(3, np.float32), 0.0, False, False, {}

    def nap(self, seconds: float) -> None:
        time.sleep(seconds)

    def pid(self) -> int:
        return os.getpid()

    def render(self) -> Any:
        time.sleep(1000)


WORKERS: dict[str, Any] = {"context": "forkserver", "num_workers": 2}
BUSY: dict[str, Any] = {
    "serial": lambda: corral.from_gymnasium(Plain, 64, runner="serial"),
    "thread": lambda: corral.from_gymnasium(Plain, 64, runner="thread"),
    "process": lambda: corral.from_gymnasium(Plain, 64, **WORKERS),
    "native": lambda: corral.make_vec("CartPole-v1", 4096),
    "brief": lambda: corral.make_vec("CartPole-v1", 4),
}


def aside(work: Any) -> tuple[threading.Thread, list[BaseException]]:
    """`work` in a thread, and what it raises."""
    raised: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread, raised


@pytest.mark.parametrize("runner", BUSY)
def test_a_close_is_not_starved_by_a_thread_that_steps_without_a_pause(runner: str) -> None:
    envs = BUSY[runner]()
    envs.reset()
    stepped = threading.Event()

    def play() -> None:
        while True:
            envs.step(np.zeros(envs.num_envs, int))
            stepped.set()

    player, raised = aside(play)
    assert stepped.wait(LONG)
    envs.close()
    player.join(LONG)
    assert [type(error) for error in raised] == [ClosedError]
    with pytest.raises(ClosedError):
        envs.native.save()


CALLS: dict[str, Any] = {
    "step": lambda envs: envs.step(np.zeros(2, int)),
    "recv": lambda envs: (envs.send(np.zeros(2, int)), envs.recv()),
    "call": lambda envs: envs.call("nap", 1000),
    "render": lambda envs: envs.render(),
}


@pytest.mark.parametrize("call", CALLS)
def test_a_close_ends_another_threads_call_of_workers_and_the_workers(call: str) -> None:
    envs = corral.from_gymnasium([lambda: Plain(1000)] * 2, **WORKERS)
    envs.reset()
    workers = envs.call("pid")
    caller, raised = aside(lambda: CALLS[call](envs))
    time.sleep(0.1)
    envs.close()
    caller.join(LONG)
    assert [type(error) for error in raised] == [ClosedError]
    assert are_gone_within(list(workers), LONG)


def run(code: str) -> subprocess.CompletedProcess[str]:
    prelude = """
import os, signal, sys, threading, time
import numpy as np, psutil, corral
from tests.faults.test_close import Plain
def after(seconds):
    threading.Timer(seconds, lambda: os.kill(os.getpid(), signal.SIGTERM)).start()
def ended():
    print(len(psutil.Process().children()))
"""
    return subprocess.run(
        [sys.executable, "-c", prelude + textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=ROOT,
    )


HANDLED = {
    "workers": "corral.from_gymnasium([lambda: Plain(1000)] * 2, context='forkserver')",
    "background": "corral.from_gymnasium([lambda: Plain(0.5)] * 2, timeout=3600)",
    "serial": "corral.from_gymnasium([lambda: Plain(0.2)] * 2, runner='serial')",
}


@pytest.mark.parametrize("call", ["step", "call", "render"])
@pytest.mark.parametrize("how", HANDLED)
def test_a_handler_that_closes_and_exits_does_just_that(how: str, call: str) -> None:
    if how != "workers" and call != "step":
        pytest.skip("nothing ends such a call")
    ended = run(
        f"""
        envs = {HANDLED[how]}
        def on_term(*_):
            envs.close()
            print("closed", envs.closed)
            sys.exit(7)
        signal.signal(signal.SIGTERM, on_term)
        envs.reset()
        after(0.2)
        while True:
            {"envs.step(np.zeros(2, int))" if call == "step" else ""}
            {"envs.call('nap', 1000)" if call == "call" else ""}
            {"envs.render()" if call == "render" else ""}
        """
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (7, "closed True\n", "")


def test_a_handler_that_closes_and_returns_ends_the_call_that_it_interrupted() -> None:
    ended = run(
        f"""
        envs = {HANDLED["workers"]}
        signal.signal(signal.SIGTERM, lambda *_: envs.close())
        envs.reset()
        before = len(psutil.Process().children(recursive=True))
        after(0.2)
        try:
            envs.step(np.zeros(2, int))
        except corral.errors.ClosedError as error:
            print(error)
        after = len(psutil.Process().children(recursive=True))
        print(before - after)
        """
    )
    told = "this vec env is closed: make a new one\n2\n"
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, told, "")


@pytest.mark.filterwarnings("ignore:.*close while a call.*")
@pytest.mark.parametrize("pending", ["call", "step"])
@pytest.mark.parametrize("how", [{"terminate": True}, {"timeout": 0.1}], ids=str)
def test_gymnasiums_close_ends_what_is_pending(pending: str, how: dict[str, Any]) -> None:
    envs = corral.compat.gymnasium.AsyncVectorEnv([lambda: Plain(1000)] * 2, context="forkserver")
    envs.reset()
    workers = envs.call("pid")
    if pending == "call":
        envs.call_async("nap", 1000)
    else:
        envs.step_async(np.zeros(2, int))
    began = time.monotonic()
    envs.close(**how)
    assert time.monotonic() - began < LONG
    assert envs.closed
    envs.close()
    assert are_gone_within(list(workers), LONG)


def test_a_step_that_nothing_ends_closes_on_its_way_out() -> None:
    begun, released, closed = threading.Event(), threading.Event(), threading.Event()

    class Long(Plain):
        def step(self, action: Any) -> Any:
            begun.set()
            released.wait(LONG)
            return super().step(action)

        def close(self) -> None:
            closed.set()

    envs = corral.from_gymnasium(Long, 1, runner="serial")
    envs.reset()
    caller, raised = aside(lambda: envs.step(np.zeros(1, int)))
    assert begun.wait(LONG)
    envs.close()
    assert envs.closed
    assert not closed.is_set()
    released.set()
    caller.join(LONG)
    assert raised == []
    assert closed.wait(LONG)


@pytest.mark.parametrize("fails", [False, True])
def test_a_with_block_closes_the_envs_and_their_films(fails: bool, tmp_path: Path) -> None:
    made = corral.make_vec("CartPole-v1", 2, render_mode="rgb_array", seed=0)

    def play() -> None:
        with corral.record(made, tmp_path, format="gif") as envs:
            envs.reset()
            envs.step(envs.action_space.sample())
            if fails:
                raise KeyError("a trainer's own")

    if fails:
        with pytest.raises(KeyError):
            play()
    else:
        play()
    assert made.closed
    assert [path.name for path in tmp_path.iterdir()] == ["env_0_episode_0_unfinished.gif"]
    with corral.make_vec("CartPole-v1", 2) as envs:
        assert isinstance(envs, corral.VectorEnv)
    with pytest.raises(ClosedError):
        envs.reset()
