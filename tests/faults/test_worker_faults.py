"""Workers that die or fall silent: who is told what, and how the slots come back."""

from __future__ import annotations

import gc
import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from corral.errors import EnvError, EnvTimeoutError, ResetNeededError
from tests.faults.sick import CONTEXTS, children, children_that_run, is_gone, pids, sick, zeros
from tests.support import assert_same, quick

pytestmark = pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs Linux's /proc")

N = 4
# "Did not hang": far more than it takes, for the machine may be busy.
LONG = 20.0


def lost(envs: Any, call: Any, kind: type[EnvError] = EnvError) -> EnvError:
    with pytest.raises(kind) as raised:
        call()
    return raised.value


def comes_back(envs: Any, slots: list[int]) -> None:
    """A reset of these slots brings them back, and leaves the others as they are."""
    mask = np.isin(np.arange(N), slots)
    with pytest.raises(ResetNeededError):
        envs.step(zeros(N))
    _, infos = envs.reset(options={"reset_mask": mask})
    assert infos["_restarted"].tolist() == mask.tolist()
    envs.set_attr("where", "")
    for _ in range(9):
        envs.step(zeros(N))
    envs.close()


@pytest.mark.parametrize("context", quick(CONTEXTS))
@pytest.mark.parametrize("where", ["step", "reset"])
@pytest.mark.parametrize(
    ("what", "how", "words"),
    [
        ("kill -9", "was killed by signal 9 (SIGKILL)", ""),
        ("segv", "was killed by signal 11 (SIGSEGV)", "Fatal Python error: Segmentation fault"),
        ("_exit", "exited with code 3", ""),
    ],
)
def test_a_worker_that_dies_at_work_is_told_of_with_its_last_words(
    where: str, what: str, how: str, words: str, context: str
) -> None:
    at = 1 if where == "reset" else 2
    envs = sick(N, {2: (where, what, at)}, context=context)
    sound = sick(N, {}, runner="serial", num_workers=None)
    call = envs.reset if where == "reset" else lambda: envs.step(zeros(N))
    play = sound.reset if where == "reset" else lambda: sound.step(zeros(N))
    envs.reset(), sound.reset()
    workers = pids(envs)
    for _ in range(at if where == "step" else 0):
        assert_same(call(), play())
    error, expected = lost(envs, call), play()
    assert is_gone(workers[2])
    assert [failure.slot for failure in error.failures] == [2, 3]
    assert f"worker 1 of 2 (envs 2 to 3) {how}" in str(error)
    # A fork's traceback goes on into its parent's calls, and its head is forgotten.
    assert (words if context != "fork" else words and "its last words:") in str(error)
    assert {f.cause for f in error.failures} == {"death"}
    assert [(f.phase, f.seed) for f in error.failures] == [(where, 9), (where, 10)]
    assert error.batch is not None
    assert_same(error.batch[0][:2], expected[0][:2])
    assert not error.batch[0][2:].any()
    comes_back(envs, [2, 3])


@pytest.mark.parametrize("context", quick(CONTEXTS))
@pytest.mark.parametrize("call", ["step", "call", "render"])
def test_a_worker_killed_between_calls_is_told_of_by_the_next(call: str, context: str) -> None:
    envs = sick(N, {}, context=context)
    envs.reset()
    worker = pids(envs)[3]
    os.kill(worker, signal.SIGKILL)
    began = time.monotonic()
    ask = {"step": lambda: envs.step(zeros(N)), "call": lambda: pids(envs), "render": envs.render}
    error = lost(envs, ask[call])
    assert time.monotonic() - began < LONG
    assert "worker 1 of 2 (envs 2 to 3) was killed by signal 9" in str(error)
    assert is_gone(worker)
    if call != "step":
        error = lost(envs, lambda: envs.step(zeros(N)))
    assert [failure.slot for failure in error.failures] == [2, 3]
    comes_back(envs, [2, 3])


def test_a_worker_killed_while_its_env_sleeps_for_ever_is_told_of() -> None:
    envs = sick(N, {0: ("step", "sleep in C")}, context="forkserver")
    envs.reset()
    threading.Timer(0.3, os.kill, (pids(envs)[0], signal.SIGKILL)).start()
    error = lost(envs, lambda: envs.step(zeros(N)))
    assert [failure.slot for failure in error.failures] == [0, 1]


@pytest.mark.parametrize("poll", [True, False], ids=["looking in", "served by others"])
def test_a_death_is_told_of_to_one_who_never_waits(poll: bool) -> None:
    envs = sick(N, {0: ("step", "kill -9")}, num_workers=4, batch_size=1)
    envs.async_reset()
    envs.drain()
    envs.send(zeros(1 if poll else N), [0] if poll else None)

    def go_on() -> None:
        until = time.monotonic() + LONG
        while time.monotonic() < until:
            try:
                *_, infos = envs.recv(timeout=0 if poll else None)
                envs.send(zeros(1), infos["env_id"])
            except EnvError:
                raise
            except TimeoutError:
                time.sleep(0.01)

    began = time.monotonic()
    error = lost(envs, go_on)
    assert time.monotonic() - began < LONG
    assert [failure.slot for failure in error.failures] == [0]
    envs.close()


@pytest.mark.parametrize("context", quick(CONTEXTS))
@pytest.mark.parametrize("what", ["sleep", "sleep in C"])
@pytest.mark.parametrize("where", ["step", "reset"])
def test_a_silent_env_costs_its_worker_after_the_timeout(
    where: str, what: str, context: str
) -> None:
    at = 1 if where == "reset" else 0
    envs = sick(N, {2: (where, what, at)}, context=context, timeout=0.4)
    envs.reset()
    worker = pids(envs)[2]
    call = envs.reset if where == "reset" else lambda: envs.step(zeros(N))
    began = time.monotonic()
    error = lost(envs, call)
    assert time.monotonic() - began < LONG
    assert [(f.slot, f.cause) for f in error.failures] == [(2, "silence"), (3, "death")]
    assert "env 2 gave no answer within 400ms (timeout)" in str(error)
    assert is_gone(worker)
    comes_back(envs, [2, 3])


@pytest.mark.parametrize("where", ["step", "reset"])
@pytest.mark.parametrize("autoreset", [False, True])
def test_a_reset_in_a_worker_has_a_time_limit_of_its_own(where: str, autoreset: bool) -> None:
    for limits, silent in [
        ({"timeout": 0.3, "reset_timeout": 60}, where == "step"),
        ({"timeout": 60, "reset_timeout": 0.3}, where == "reset"),
    ]:
        name = min(limits, key=lambda option: limits[option])
        envs = sick(2, {1: (where, "sleep a second", 1)}, **limits, max_episode_steps=2)
        envs.reset()
        envs.step(zeros(2))

        def play(envs: Any = envs) -> None:
            envs.step(zeros(2))
            if autoreset:
                envs.step(zeros(2))
            else:
                envs.reset()

        if silent:
            error = lost(envs, play, EnvTimeoutError)
            assert [failure.phase for failure in error.failures if failure.slot == 1] == [where]
            assert f"env 1 gave no answer within 300ms ({name})" in str(error)
        else:
            play()
        envs.close()


@pytest.mark.parametrize("where", ["render", "call"])
def test_a_question_too_is_answered_within_the_timeout(where: str) -> None:
    envs = sick(N, {3: (where, "sleep")}, timeout=0.4)
    envs.reset()
    ask: Any = envs.render if where == "render" else lambda: envs.call("act")
    began = time.monotonic()
    error = lost(envs, ask, EnvTimeoutError)
    assert time.monotonic() - began < LONG
    assert [(f.slot, f.phase, f.cause) for f in error.failures] == [(3, "call", "silence")]
    assert [f.slot for f in lost(envs, lambda: envs.step(zeros(N))).failures] == [2, 3]
    comes_back(envs, [2, 3])


def test_each_slot_has_the_timeout_to_itself() -> None:
    envs = sick(8, {}, num_workers=1, timeout=0.5)
    envs.reset()
    workers = pids(envs)
    # Together they take longer than the timeout.
    assert envs.call("nap", 0.15) == (None,) * 8
    assert pids(envs) == workers
    envs.close()


@pytest.mark.parametrize("context", quick(CONTEXTS))
def test_a_worker_that_is_stopped_is_silent(context: str) -> None:
    envs = sick(N, {}, context=context, timeout=0.3)
    envs.reset()
    worker = pids(envs)[0]
    os.kill(worker, signal.SIGSTOP)
    error = lost(envs, lambda: envs.step(zeros(N)))
    assert [failure.slot for failure in error.failures] == [0, 1]
    assert "gave no answer within 300ms" in str(error)
    assert is_gone(worker)
    comes_back(envs, [0, 1])


@pytest.mark.parametrize("mode", ["next_step", "same_step"])
def test_under_restart_a_death_truncates_the_episodes_of_its_worker(mode: str) -> None:
    envs = sick(N, {1: ("step", "segv", 2)}, on_failure="restart", autoreset_mode=mode)
    envs.reset()
    for _ in range(2):
        envs.step(zeros(N))
    _, _, terminated, truncated, _ = envs.step(zeros(N))
    assert not terminated.any()
    assert truncated.tolist() == [True, True, False, False]
    for _ in range(2):
        envs.step(zeros(N))
    envs.close()


def test_a_worker_that_always_dies_is_given_up_after_max_restarts() -> None:
    envs = sick(2, {0: ("step", "_exit")}, on_failure="restart", max_restarts=2)
    envs.reset()
    began = time.monotonic()

    def play() -> None:
        while time.monotonic() < began + LONG:
            envs.step(zeros(2))

    error = lost(envs, play)
    assert [failure.slot for failure in error.failures] == [0]
    assert "max_restarts" in str(error)
    envs.close()


def test_under_mask_a_death_leaves_its_slots_out() -> None:
    envs = sick(N, {1: ("step", "_exit", 1)}, on_failure="mask")
    envs.reset()
    envs.step(zeros(N))
    for k in range(3):
        observations, _, _, truncated, _ = envs.step(zeros(N))
        assert not observations[:2].any()
        assert observations[2:].all()
        assert truncated.tolist() == [k == 0, k == 0, False, False] or k > 0
    envs.reset()
    envs.close()


@pytest.mark.parametrize("context", quick(CONTEXTS))
def test_a_worker_that_dies_while_it_starts_again_can_be_started_once_more(
    context: str, tmp_path: Path
) -> None:
    flag = tmp_path / "flag"

    def make() -> Any:
        from tests.faults.sick import Sick

        if flag.exists():
            os._exit(4)
        return Sick()

    import corral

    envs = corral.from_gymnasium(make, 2, num_workers=2, context=context)
    envs.reset()
    os.kill(pids(envs)[1], signal.SIGKILL)
    lost(envs, lambda: envs.step(zeros(2)))
    flag.touch()
    error = lost(envs, envs.reset)
    assert "exited with code 4" in str(error)
    assert "It died before its envs were built." in str(error)
    flag.unlink()
    envs.reset()
    envs.step(zeros(2))
    envs.close()


@pytest.mark.parametrize("context", quick(CONTEXTS))
def test_a_worker_that_dies_while_it_is_built_ends_the_others_too(context: str) -> None:
    before = children() - children_that_run("_launch")
    with pytest.raises(EnvError, match="exited with code 3") as raised:
        sick(N, {2: ("init", "_exit")}, context=context)
    assert "It died before its envs were built." in str(raised.value)
    assert children() - children_that_run("_launch") == before


def test_envs_with_other_spaces_leave_no_worker_behind() -> None:
    import gymnasium

    import corral

    # Envs that other tests have left would end meanwhile.
    gc.collect()
    before = children() - children_that_run("_launch")
    with pytest.raises(corral.errors.SpaceError, match="worker 1"):
        corral.from_gymnasium(
            [lambda: gymnasium.make("CartPole-v1"), lambda: gymnasium.make("Acrobot-v1")],
            num_workers=2,
            context="fork",
        )
    assert children() - children_that_run("_launch") == before


def test_a_worker_at_its_memory_limit_says_so_and_goes_on() -> None:
    envs = sick(N, {1: ("step", "memory")})
    envs.reset()
    worker = pids(envs)[1]
    with pytest.raises(MemoryError) as raised:
        envs.step(zeros(N))
    error = raised.value.__cause__
    assert isinstance(error, EnvError)
    assert [failure.slot for failure in error.failures] == [1]
    assert not is_gone(worker)
    envs.close()


def test_a_worker_without_room_for_the_batch_says_so_instead_of_nothing() -> None:
    """Rows that it cannot write would be an earlier batch's."""
    import corral
    from tests.faults.large import Large

    envs = corral.from_gymnasium(Large, 2, num_workers=1, context="forkserver")
    envs.call("limit", 4)
    with pytest.raises(EnvError, match="no memory") as raised:
        envs.reset()
    assert [failure.slot for failure in raised.value.failures] == [0, 1]
    envs.close()
