"""Ctrl-C while a rollout is made."""

from __future__ import annotations

import operator
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box

import corral
from tests.support import assert_same


class Dozing(gymnasium.Env[Any, Any]):
    """Its fourth step takes a while."""

    observation_space = Box(0, 1, (2,))
    action_space = Box(0, 100, (2,))

    def __init__(self) -> None:
        self.count = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        return np.zeros(2, np.float32), {}

    def step(self, action: Any) -> Any:
        self.count += 1
        if self.count == 4:
            time.sleep(0.4)
        return np.zeros(2, np.float32), 0.0, False, False, {}


@contextmanager
def interrupted() -> Iterator[Callable[[float], object]]:
    """A function that lets Ctrl-C come after some seconds, as Python code sees it."""

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        yield lambda seconds: signal.setitimer(signal.ITIMER_REAL, seconds)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_lists_of_actions_are_kept_even_of_a_step_that_ctrl_c_interrupts() -> None:
    played: list[Any] = []

    def policy(_: Any) -> list[list[int]]:
        played.append([[len(played), 1], [2, len(played)]])
        if len(played) == 4:
            come(0.1)
        return played[-1]  # type: ignore[no-any-return]

    envs = corral.from_gymnasium(Dozing, 2, num_workers=2)
    envs.reset()
    with interrupted() as come, pytest.raises(KeyboardInterrupt) as raised:
        envs.rollout(policy, 20)
    rollout = raised.value.rollout  # type: ignore[attr-defined]
    assert rollout.steps == len(played) == 4
    assert_same(rollout.actions, np.array(played, np.float32))
    assert_same(envs.rollout(policy, 3).actions, np.array(played[4:], np.float32))
    envs.close()


def test_ctrl_c_ends_the_rollout_of_a_policy_that_is_no_python_code() -> None:
    envs = corral.make_vec("MountainCar-v0", 1, seed=0)
    envs.reset()
    with interrupted() as come:
        come(0.3)
        with pytest.raises(KeyboardInterrupt) as raised:
            envs.rollout(operator.methodcaller("argmax", 1), 1_000_000)
    assert 0 < raised.value.rollout.steps < 1_000_000  # type: ignore[attr-defined]


def test_ctrl_c_lets_the_step_end_and_leaves_what_was_played() -> None:
    envs = corral.make_vec("CartPole-v1", 5, seed=3)
    envs.reset()
    calls = iter(range(100))

    def policy(observations: Any) -> Any:
        if next(calls) == 5:
            raise KeyboardInterrupt
        return np.zeros(5, np.int64)

    with pytest.raises(KeyboardInterrupt) as raised:
        envs.rollout(policy, 20)
    assert raised.value.rollout.steps == 5  # type: ignore[attr-defined]
