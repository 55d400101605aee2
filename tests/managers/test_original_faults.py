"""Four faults of DI-engine's own managers, as they are in its version 0.5.3, and what ours do in
their place. Each test's docstring says what DI-engine does."""

from __future__ import annotations

import os
import signal
import threading
import time
from typing import Any

import pytest

from corral import errors
from tests.managers.envs import Counter, Pid, Slow
from tests.managers.managers import each, every_manager, in_workers, launched

LONG = 20.0


@in_workers
def test_a_killed_worker_is_named_and_the_manager_goes_on(kind: str) -> None:
    """DI-engine: a bare `EOFError` that names nobody; then `close` raises `BrokenPipeError`."""
    with launched(kind, each(Pid, 3), num_workers=3) as manager:
        os.kill(int(manager.ready_obs[1][1]), signal.SIGKILL)
        with pytest.raises(errors.EnvError, match=r"env 1.*killed by signal 9 \(SIGKILL\)"):
            manager.step({0: 0, 1: 0, 2: 0})
        assert sorted(manager.step({0: 0, 2: 0})) == [0, 2]
        manager.close()


@every_manager
@pytest.mark.parametrize("how", ["done", "error"])
def test_ready_obs_is_empty_at_once_where_no_env_can_become_ready(kind: str, how: str) -> None:
    """DI-engine: the subprocess managers wait for ever; where all are DONE, too, for `any` of
    nothing is false."""

    class Wrong(Counter):
        def step(self, action: Any) -> Any:
            if how == "error":
                raise ValueError("wrong")
            return super().step(action)

    with launched(kind, each(Wrong, 2, 1), episode_num=1) as manager:
        if how == "done":
            manager.step({0: 0, 1: 0})
        else:
            with pytest.raises(ValueError, match="wrong"):
                manager.step({0: 0, 1: 0})
        seen: list[Any] = []
        reader = threading.Thread(target=lambda: seen.append(manager.ready_obs), daemon=True)
        reader.start()
        reader.join(LONG)
        assert seen == [{}]
        assert manager.done is (how == "done")


@in_workers
def test_a_timeout_fires_on_time(kind: str) -> None:
    """DI-engine: `step_timeout=3` fires after 4 seconds, for its watchdog counts one more."""
    took: list[float] = []
    with launched(kind, each(Slow, 2, 600.0), step_timeout=3, num_workers=2) as manager:
        # The machine may be busy, but not each time.
        while len(took) < 3 and min(took, default=4) >= 4:
            began = time.monotonic()
            with pytest.raises(TimeoutError, match="env 0"):
                manager.step({0: 0})
            took.append(time.monotonic() - began)
            manager.reset({0: None})
    assert 2.9 < min(took) < 4


@every_manager
def test_a_timeout_may_be_a_fraction_of_a_second(kind: str) -> None:
    """DI-engine: a float is a `TypeError` of the signal module."""
    with launched(kind, each(Slow, 2, 600.0), step_timeout=0.25, reset_timeout=7.5) as manager:
        began = time.monotonic()
        with pytest.raises(TimeoutError, match=r"env 0.*250ms"):
            manager.step({0: 0})
        assert time.monotonic() - began < LONG


@in_workers
@pytest.mark.parametrize("retry_type", ["reset", "renew"])
def test_a_dead_worker_comes_back_with_either_retry_type(kind: str, retry_type: str) -> None:
    """DI-engine: with "reset" each attempt asks the same dead worker, and the manager closes."""
    with launched(kind, each(Pid, 2), retry_type=retry_type, num_workers=2) as manager:
        old = int(manager.ready_obs[0][1])
        os.kill(old, signal.SIGKILL)
        with pytest.raises(errors.EnvError, match="env 0"):
            manager.step({0: 0})
        manager.reset({0: None})
        assert int(manager.ready_obs[0][1]) != old
        assert manager.step({0: 0})[0].reward == 1.0


@in_workers
@pytest.mark.parametrize("retry_type", ["reset", "renew"])
def test_a_worker_that_dies_in_a_reset_is_tried_again(
    kind: str, retry_type: str, tmp_path: Any
) -> None:
    """DI-engine: as above."""
    mark = tmp_path / "died"

    class Dying(Counter):
        def reset(self, **kwargs: Any) -> Any:
            if self.number == 1 and not mark.exists():
                mark.touch()
                os.kill(os.getpid(), signal.SIGKILL)
            return super().reset(**kwargs)

    cfg = {"retry_type": retry_type, "max_retry": 2, "num_workers": 2, "retry_waiting_time": 0.0}
    with launched(kind, each(Dying, 2), **cfg) as manager:
        assert sorted(manager.ready_obs) == [0, 1]
