"""Ctrl-C between what the native half has done and what a manager knows of it. Python delivers the
signal as soon as a native call returns; here an exception comes in its place."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from corral.managers.fleet import Fleet
from corral.managers.life import EnvState
from corral.managers.members import HostedMembers
from tests.managers.envs import Counter
from tests.managers.managers import each, every_manager, in_workers, launched
from tests.managers.test_direct import Keeps

_ROOT = Path(__file__).resolve().parents[2]


class Ends(Keeps):
    """Every step of env 1 ends its episode."""

    kept: ClassVar[list[Any]] = []


class AllEnd(Ends):
    """Every step ends an episode."""

    def step(self, action: Any) -> Any:
        return super().step(action)._replace(done=True)


AFTER = {
    "a step": (HostedMembers, "step"),
    "actions": (HostedMembers, "send"),
    "rows": (HostedMembers, "receive"),
    "rows are opened": (HostedMembers, "opened"),
    "rows have landed": (Fleet, "_land_any"),
    "steps have landed": (Fleet, "_land_steps"),
    "a reset was sent": (Fleet, "_note_reset"),
    "an episode has ended": (Fleet, "_end_episodes"),
    "a reset is noted": (Fleet, "_send_resets"),
}


class Stop(BaseException):
    """Comes as Ctrl-C would."""


@every_manager
@pytest.mark.parametrize("before", [False, True], ids=["after", "before"])
@pytest.mark.parametrize("when", AFTER)
@pytest.mark.parametrize("shape", [(1,), None], ids=["arrays", "ints"])
@pytest.mark.parametrize("env", [Ends, AllEnd])
def test_an_interrupt_at_any_point_loses_no_env(
    kind: str,
    before: bool,
    when: str,
    shape: Any,
    env: type[Ends],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    action = 0 if shape is None else np.zeros(shape)
    with launched(kind, each(env, 3)) as manager:
        manager.step(dict.fromkeys(manager.ready_obs, action))
        owner, name = AFTER[when]
        real = getattr(owner, name)

        def stopped(*args: Any, **kwargs: Any) -> Any:
            if before:
                raise Stop
            real(*args, **kwargs)
            raise Stop

        with monkeypatch.context() as patch:
            patch.setattr(owner, name, stopped)
            try:
                manager.step(dict.fromkeys(manager.ready_obs, action))
                _ = manager.ready_obs
            except Stop:
                pass
        # Whoever is not ready says why, and the others play.
        if kind == "async":
            manager.step({})
        ready = manager.ready_obs
        for env_id in range(3):
            state = manager._env_states[env_id]
            assert (state is EnvState.RUN) is (env_id in ready)
            assert state in (EnvState.RUN, EnvState.ERROR)
        if ready:
            assert manager.step(dict.fromkeys(ready, action)).keys() == ready.keys()
        manager.reset()
        assert sorted(manager.ready_obs) == [0, 1, 2]
        for _ in range(3):
            assert sorted(manager.step(dict.fromkeys(manager.ready_obs, action))) == [0, 1, 2]


@in_workers
def test_ctrl_c_in_short_steps_leaves_a_manager_that_goes_on(kind: str) -> None:
    # In a process of its own: a signal that comes late would end all tests.
    program = f"from {__name__} import play_through_ctrl_c; play_through_ctrl_c({kind!r})"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=_ROOT, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "ready\n" * 30


def play_through_ctrl_c(kind: str) -> None:
    """Sends SIGINT at 30 times; says "ready" for each after which all envs play."""
    with launched(kind, each(Ends, 3)) as manager:
        for k in range(30):
            with pytest.raises(KeyboardInterrupt):
                _play_until_ctrl_c(manager, 0.002 + 0.0003 * k)
            manager.reset()
            if sorted(manager.ready_obs) == [0, 1, 2]:
                print("ready")


def _play_until_ctrl_c(manager: Any, seconds: float) -> None:
    # Where much else runs, the signal comes before the timer's start has returned.
    threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT)).start()
    for _ in range(20_000):
        manager.step(dict.fromkeys(manager.ready_obs, np.zeros(1)))
    # Python drops an exception in a finalizer, also one that is Ctrl-C's.
    raise KeyboardInterrupt


class Unreadable:
    """What only the process that made it can unpickle."""

    def __init__(self) -> None:
        self.made_in = os.getpid()

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if self.made_in != os.getpid():
            raise OSError("not here")


class Tells(Counter):
    def step(self, action: Any) -> Any:
        observation, reward, *ends, info = super().step(action)
        return observation, reward, *ends, {**info, "odd": Unreadable()}


@in_workers
def test_an_info_that_cannot_be_unpickled_loses_its_envs_alone(kind: str) -> None:
    with launched(kind, [Counter, Tells]) as manager:
        with pytest.raises(OSError, match="not here"):
            manager.step(dict.fromkeys(manager.ready_obs, 0))
        manager.reset()
        assert sorted(manager.ready_obs) == [0, 1]
        assert sorted(manager.step({0: 0})) == [0]
