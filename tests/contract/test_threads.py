"""Python threads that step vec envs: each its own, or all of them one."""

from __future__ import annotations

import contextlib
import queue
import subprocess
import sys
import threading
import zlib
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import corral
from corral import errors

# "Did not hang": far more than it takes, for the machine may be busy.
LONG = 120.0
STEPS = 60


def at_once(works: list[Callable[[], Any]]) -> list[Any]:
    """What each piece of work gives, or the exception that it raised; all begin together, each in
    a thread of its own."""
    results: list[Any] = [None] * len(works)
    start = threading.Barrier(len(works))

    def run(k: int) -> None:
        try:
            start.wait(LONG)
            results[k] = works[k]()
        except BaseException as error:
            results[k] = error

    threads = [threading.Thread(target=run, args=(k,), daemon=True) for k in range(len(works))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LONG)
        assert not thread.is_alive(), "a thread hangs"
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return results


def cart_pole() -> gymnasium.Env[Any, Any]:
    """Gymnasium's own."""
    return gymnasium.make("CartPole-v1")


def stepped(envs: Any) -> Callable[[np.ndarray], list[np.ndarray]]:
    """Observations, rewards, terminations and truncations for actions."""
    return lambda actions: list(envs.step(actions)[:4])


def received(envs: Any) -> Callable[[np.ndarray], list[np.ndarray]]:
    """The same, by `send` and `recv`."""

    def step(actions: np.ndarray) -> list[np.ndarray]:
        envs.send(actions)
        return list(envs.recv()[:4])

    return step


MAKERS: dict[str, tuple[int, Callable[[int], Any], Any]] = {
    "brief": (4, lambda n: corral.make_vec("CartPole-v1", n), stepped),
    "without the GIL": (96, lambda n: corral.make_vec("CartPole-v1", n), stepped),
    "threads": (64, lambda n: corral.make_vec("CartPole-v1", n, num_threads=2), stepped),
    "sent": (16, lambda n: corral.make_vec("CartPole-v1", n, batch_size=n), received),
    "hosted": (4, lambda n: corral.from_gymnasium(cart_pole, n, runner="serial"), stepped),
    "hosted by threads": (
        4,
        lambda n: corral.from_gymnasium(cart_pole, n, runner="thread"),
        stepped,
    ),
    "workers": (4, lambda n: corral.from_gymnasium(cart_pole, n, num_workers=1), stepped),
}


def actions_of(seed: int, num_envs: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(2, size=(STEPS, num_envs))


def of_gymnasium(seed: int, num_envs: int) -> list[list[np.ndarray]]:
    """What Gymnasium's own vec env shows: the first observations, and what each step gives."""
    envs = SyncVectorEnv([cart_pole] * num_envs, autoreset_mode=AutoresetMode.NEXT_STEP)
    first = envs.reset(seed=seed)[0]
    return [[first], *(list(envs.step(actions)[:4]) for actions in actions_of(seed, num_envs))]


@pytest.mark.parametrize("how", MAKERS)
def test_threads_that_step_vec_envs_of_their_own_see_what_gymnasium_shows(how: str) -> None:
    num_envs, make, play = MAKERS[how]
    seeds = [0, 100_000, 200_000, 300_000]

    def work(seed: int) -> list[list[np.ndarray]]:
        with contextlib.closing(make(num_envs)) as envs:
            step = play(envs)
            first = envs.reset(seed=seed)[0]
            return [[first], *(step(actions) for actions in actions_of(seed, num_envs))]

    shown = at_once([lambda seed=seed: work(seed) for seed in seeds])
    for seed, rows in zip(seeds, shown):
        for ours, theirs in zip(rows, of_gymnasium(seed, num_envs), strict=True):
            for mine, its in zip(ours, theirs, strict=True):
                np.testing.assert_array_equal(mine, its)


def test_arrays_that_another_thread_drops_are_never_changed_while_it_has_them() -> None:
    handed: queue.Queue[Any] = queue.Queue(maxsize=8)
    makers = 3

    def make(seed: int) -> None:
        envs = corral.make_vec("Maze-v0", 8)
        observations, _ = envs.reset(seed=seed)
        for _ in range(150):
            handed.put((zlib.crc32(observations), observations), timeout=LONG)
            observations = envs.step(envs.action_space.sample())[0]
        handed.put(None, timeout=LONG)
        envs.close()

    def look() -> int:
        kept: list[Any] = []
        ended = looked = 0
        while ended < makers:
            got = handed.get(timeout=LONG)
            if got is None:
                ended += 1
                continue
            kept.append(got)
            if len(kept) > 20:
                checksum, observations = kept.pop(0)
                assert zlib.crc32(observations) == checksum
                looked += 1
        return looked

    looked = at_once([look, *(lambda seed=seed: make(seed) for seed in range(makers))])[0]
    assert looked == 150 * makers - 20


ONE: dict[str, Callable[[], Any]] = {
    "brief": lambda: corral.make_vec("CartPole-v1", 4),
    "without the GIL": lambda: corral.make_vec("CartPole-v1", 600),
    "threads": lambda: corral.make_vec("CartPole-v1", 64, num_threads=2),
    "hosted": lambda: corral.from_gymnasium(cart_pole, 4, runner="serial"),
    "workers": lambda: corral.from_gymnasium(cart_pole, 4, num_workers=1),
}


@pytest.mark.parametrize("how", ONE)
def test_a_call_of_one_vec_env_by_many_threads_is_served_or_refused(how: str) -> None:
    envs = ONE[how]()
    envs.reset(seed=0)
    n = envs.num_envs
    calls: list[Callable[[], Any]] = [
        lambda: envs.step(np.ones(n, dtype=np.int64)),
        lambda: envs.reset(seed=1),
        lambda: envs.reset(options={"reset_mask": np.ones(n, dtype=bool)}),
        lambda: (envs.send(np.ones(n, dtype=np.int64)), envs.recv()),
        lambda: envs.step(np.full(n, 7)),
        lambda: (envs.num_envs, envs.single_observation_space, repr(envs)),
    ]
    allowed = {
        # Another thread's call is under way, or its actions are.
        errors.PendingCallError,
        # Another thread has received what this one sent.
        errors.NothingPendingError,
        errors.InvalidActionError,
    }
    met: set[type] = set()

    def work(first: int) -> int:
        served = 0
        for k in range(120):
            try:
                calls[(first + k) % len(calls)]()
                served += 1
            except errors.CorralError as error:
                met.add(type(error))
        return served

    served = at_once([lambda k=k: work(k) for k in range(4)])
    assert all(served)
    assert met <= allowed
    # The vec env plays on.
    envs.drain()
    envs.reset(seed=3)
    fresh = ONE[how]()
    fresh.reset(seed=3)
    for ours, its in zip(stepped(envs)(np.ones(n, int)), stepped(fresh)(np.ones(n, int))):
        np.testing.assert_array_equal(ours, its)
    envs.close()
    fresh.close()


def test_threads_that_take_turns_by_a_lock_go_on_where_the_last_one_stopped() -> None:
    envs, alone = (corral.make_vec("CartPole-v1", 64, seed=0) for _ in range(2))
    envs.reset()
    alone.reset()
    turn = threading.Lock()

    def work() -> None:
        for _ in range(50):
            with turn:
                envs.step(np.ones(64, dtype=np.int64))

    at_once([work] * 4)
    for _ in range(200):
        alone.step(np.ones(64, dtype=np.int64))
    assert [envs.native.save(k) for k in range(64)] == [alone.native.save(k) for k in range(64)]


def test_threads_that_read_the_same_final_observations_get_one_array() -> None:
    envs = corral.make_vec("CartPole-v1", 256, seed=0, autoreset_mode="same_step")
    envs.reset()
    finals: Any = None
    while finals is None:
        finals = envs.step(np.ones(256, dtype=np.int64))[4].get("final_obs")
    arrays = at_once([lambda: np.asarray(finals)] * 8)
    assert all(array is arrays[0] for array in arrays)


FIRST_USE = """
import threading
import corral, gymnasium, numpy as np
start, raised = threading.Barrier(8), []
def work(k):
    try:
        start.wait()
        if k % 2:
            envs = corral.make_vec("CartPole-v1", 4 * k, autoreset_mode="same_step")
        else:
            envs = corral.from_gymnasium("FrozenLake-v1", 2, runner="serial")
        envs.reset(seed=k)
        for _ in range(60):
            np.asarray(envs.step(envs.action_space.sample())[4].get("final_obs"))
        try:
            envs.step("nothing of the kind")
        except corral.errors.CorralError:
            pass
        envs.close()
    except BaseException as error:
        raised.append(repr(error))
threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print(raised)
"""


def test_what_is_made_at_its_first_use_may_be_used_by_many_threads_first() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", FIRST_USE], capture_output=True, text=True, timeout=LONG
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "[]\n", "")
