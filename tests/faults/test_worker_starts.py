"""Workers that are started again, and questions that nobody waits for."""

from __future__ import annotations

import functools
import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

import corral
from corral import errors
from tests.faults.sick import are_gone_within

pytestmark = pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs Linux's /proc")


class Still(gymnasium.Env[Any, Any]):
    observation_space = gymnasium.spaces.Box(-1, 1, (2,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        return np.zeros(2, np.float32), {}

    def step(self, action: Any) -> Any:
        return np.zeros(2, np.float32), 0.0, False, False, {}

    def pid(self) -> int:
        return os.getpid()

    def wait_for(self, file: Path) -> None:
        while not file.exists():
            time.sleep(0.01)


class Started(Still):
    """Once there is the file: the second dies when it is built, the third takes its time, the
    first waits for the end of another file."""

    def __init__(self, number: int, folder: Path) -> None:
        if not (folder / "again").exists():
            return
        if number == 1:
            threading.Timer(0.3, lambda: os._exit(3)).start()
        if number == 2:
            time.sleep(1.0)
        (folder / f"built {number}").touch()
        while (folder / "hold").exists():
            time.sleep(0.01)


def started(folder: Path, n: int, **how: Any) -> Any:
    makers = [functools.partial(Started, number, folder) for number in range(n)]
    return corral.from_gymnasium(makers, num_workers=n, context="fork", **how)


def kill(workers: Any) -> None:
    for worker in workers:
        os.kill(worker, signal.SIGKILL)
    assert are_gone_within(workers, 20)


@pytest.mark.parametrize("timeout", [None, 20.0])
def test_one_of_several_that_dies_before_it_can_begin_takes_no_other_with_it(
    timeout: float | None, tmp_path: Path
) -> None:
    envs = started(tmp_path, 3, timeout=timeout)
    envs.reset(seed=0)
    kill(envs.call("pid"))
    with pytest.raises(errors.EnvError):
        envs.step(np.zeros(3, int))
    (tmp_path / "again").touch()
    with pytest.raises(errors.EnvError) as raised:
        envs.reset(seed=0)
    assert [failure.slot for failure in raised.value.failures] == [1]
    (tmp_path / "again").unlink()
    envs.reset(seed=0)
    envs.step(np.zeros(3, int))
    envs.close()


class Interrupted(Exception):
    pass


def interrupted(call: Callable[[], Any], when: Callable[[], bool]) -> None:
    """Makes a call that a signal's handler ends once `when` holds."""

    def interrupt() -> None:
        while not when():
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGUSR1)

    def handler(*_: Any) -> None:
        raise Interrupted

    before = signal.signal(signal.SIGUSR1, handler)
    thread = threading.Thread(target=interrupt)
    thread.start()
    try:
        with pytest.raises(Interrupted):
            call()
    finally:
        thread.join()
        signal.signal(signal.SIGUSR1, before)


@pytest.mark.parametrize("mode", ["next_step", "same_step"])
def test_a_restart_that_is_interrupted_is_made_at_the_next_step(mode: str, tmp_path: Path) -> None:
    envs = started(tmp_path, 2, on_failure="restart", autoreset_mode=mode)
    envs.reset(seed=0)
    dead, lives = envs.call("pid")
    kill([dead])
    for name in ("again", "hold"):
        (tmp_path / name).touch()
    steps = [np.zeros(2, int)] * 3
    interrupted(lambda: [envs.step(step) for step in steps], (tmp_path / "built 0").exists)
    (tmp_path / "hold").unlink()
    if mode == "same_step":
        # The restart was part of a step, whose rows are there.
        envs.recv()
    for step in steps:
        envs.step(step)
    first, second = envs.call("pid")
    assert first != dead
    assert second == lives
    envs.close()


def test_questions_that_nobody_waits_for_leave_room_for_steps(tmp_path: Path) -> None:
    envs = corral.from_gymnasium(Still, 4, num_workers=1, timeout=60, context="fork")
    envs.reset(seed=0)
    envs.step(np.zeros(4, int))
    (worker,) = set(envs.call("pid"))

    def handler(*_: Any) -> None:
        raise Interrupted

    before = signal.signal(signal.SIGALRM, handler)
    refused = None
    while refused is None:
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        try:
            envs.call("wait_for", tmp_path / "go")
        except errors.PendingCallError as error:
            refused = error
        except Interrupted:
            pass
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)
    (tmp_path / "go").touch()
    assert "has not answered earlier questions" in str(refused)
    envs.step(np.zeros(4, int))
    assert set(envs.call("pid")) == {worker}
    envs.close()
