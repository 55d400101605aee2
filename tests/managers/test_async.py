"""The async manager: which envs a step waits for, and what becomes of the others."""

from __future__ import annotations

import time
from typing import Any

import pytest

from corral import errors
from corral.managers import AsyncSubprocessEnvManager
from tests.managers.envs import Counter, Slow
from tests.managers.managers import each

FOREVER = 600.0
# "Did not wait for the slow one": far less than it takes, far more than the others do.
LONG = 60.0


def slow_last(count: int, seconds: float, length: int = 1000) -> list[Any]:
    return [*each(Counter, count - 1, length), lambda: Slow(count - 1, seconds, length)]


def made(env_fn: list[Any], **cfg: Any) -> Any:
    manager = AsyncSubprocessEnvManager(env_fn, cfg)
    manager.launch()
    return manager


def test_a_step_does_not_wait_for_a_slow_env() -> None:
    manager = made(slow_last(4, FOREVER))
    began = time.monotonic()
    timesteps = manager.step(dict.fromkeys(range(4), 0))
    assert 2 <= len(timesteps) <= 3
    assert 3 not in timesteps
    assert 3 not in manager.ready_obs
    assert 3 in manager.active_env
    for _ in range(20):
        timesteps = manager.step(dict.fromkeys(manager.ready_obs, 0))
        assert timesteps
        assert 3 not in timesteps
    assert time.monotonic() - began < LONG
    manager.close()
    assert time.monotonic() - began < LONG


def test_an_env_in_flight_comes_with_a_later_step() -> None:
    manager = made(slow_last(3, 0.5), wait_num=2, step_wait_timeout=0)
    first = manager.step({0: 0, 1: 0, 2: 0})
    assert sorted(first) == [0, 1]
    seen: dict[int, Any] = {}
    while 2 not in seen:
        seen.update(manager.step({0: 0, 1: 0}))
    assert seen[2].reward == 1.0
    assert manager.ready_obs[2][3] == 1
    manager.close()


def test_a_step_without_actions_waits_for_what_is_in_flight() -> None:
    manager = made(slow_last(2, 0.3), wait_num=1, step_wait_timeout=0)
    assert list(manager.step({0: 0, 1: 0})) == [0]
    assert list(manager.step({})) == [1]
    assert manager.step({}) == {}
    manager.close()


@pytest.mark.parametrize(("wait_num", "least"), [(1, 1), (3, 3), (99, 4)])
def test_a_step_waits_for_as_many_as_wait_num_says(wait_num: int, least: int) -> None:
    manager = made(each(Slow, 4, 0.05), wait_num=wait_num, step_wait_timeout=0, num_workers=4)
    got = len(manager.step(dict.fromkeys(range(4), 0)))
    assert got >= least
    while manager.step({}):
        pass
    assert sorted(manager.ready_obs) == [0, 1, 2, 3]
    manager.close()


def test_a_step_gathers_until_step_wait_timeout_has_passed() -> None:
    manager = made(slow_last(3, 0.3), wait_num=1, step_wait_timeout=FOREVER)
    assert sorted(manager.step({0: 0, 1: 0, 2: 0})) == [0, 1, 2]
    manager.close()


def test_a_step_goes_on_while_all_that_came_back_ended_an_episode() -> None:
    fns = [lambda: Counter(0, 1), lambda: Slow(1, 0.5, 1000)]
    manager = made(fns, wait_num=1, step_wait_timeout=0)
    timesteps = manager.step({0: 0, 1: 0})
    assert sorted(timesteps) == [0, 1]
    assert timesteps[0].done
    manager.close()


def test_an_env_that_is_being_reset_is_ready_later() -> None:
    class SlowReset(Counter):
        def reset(self, **kwargs: Any) -> Any:
            if self.episode == 0:
                time.sleep(1)
            return super().reset(**kwargs)

    manager = made([lambda: SlowReset(0, 1), lambda: Counter(1, 1000)])
    manager.step({0: 0, 1: 0})
    assert sorted(manager.ready_obs) == [1]
    while sorted(manager.ready_obs) == [1]:
        manager.step({1: 0})
    assert manager.ready_obs[0].tolist() == [0, -1, 1, 0]
    manager.close()


def test_ready_obs_waits_where_all_are_being_reset() -> None:
    manager = made(each(Counter, 2, 1))
    for _ in range(5):
        ready = manager.ready_obs
        assert ready
        manager.step(dict.fromkeys(ready, 0))
    manager.close()


def test_an_env_in_flight_takes_no_action() -> None:
    manager = made(slow_last(2, 0.3), wait_num=1, step_wait_timeout=0)
    manager.step({0: 0, 1: 0})
    with pytest.raises(errors.PendingCallError, match="env 1 is in flight"):
        manager.step({1: 0})
    assert manager.ready_obs[0][3] == 1
    manager.close()


def test_attributes_and_methods_wait_for_envs_in_flight() -> None:
    manager = made(slow_last(2, 0.3), wait_num=1, step_wait_timeout=0)
    manager.step({0: 0, 1: 0})
    assert manager.number == [0, 1]
    assert manager.step({})[1].reward == 1.0
    manager.step({1: 0, 0: 0})
    assert manager.reward_shaping(1, ["t"]) == [(1, "t")]
    manager.close()


def test_a_reset_of_an_env_in_flight_drops_its_timestep() -> None:
    manager = made(slow_last(3, 0.3), wait_num=1, step_wait_timeout=0)
    manager.step({0: 0, 1: 0, 2: 0})
    manager.reset({2: None})
    assert manager.ready_obs[2].tolist() == [2, -1, 1, 0]
    # Episode 1's first step: the row of episode 0 is gone.
    seen: dict[int, Any] = {}
    while 2 not in seen:
        seen.update(manager.step(dict.fromkeys(manager.ready_obs, 0)))
    assert seen[2].obs.tolist() == [2, -1, 1, 1]
    manager.close()


def test_a_reset_of_an_env_in_flight_forgives_its_failure() -> None:
    class Wrong(Slow):
        def step(self, action: Any) -> Any:
            super().step(action)
            raise ValueError("wrong")

    fns = [*each(Counter, 2, 1000), lambda: Wrong(2, 2.0)]
    manager = made(fns, wait_num=1, step_wait_timeout=0)
    manager.step({0: 0, 1: 0, 2: 0})
    manager.reset({2: None})
    assert manager.ready_obs[2].tolist()[2:] == [1, 0]

    def play() -> None:
        while True:
            manager.step(dict.fromkeys(manager.ready_obs, 0))

    # Nobody forgives a step.
    with pytest.raises(ValueError, match="wrong"):
        play()
    manager.close()


def test_closing_with_steps_in_flight_is_quick_and_silent() -> None:
    manager = made(slow_last(3, FOREVER))
    manager.step({0: 0, 1: 0, 2: 0})
    began = time.monotonic()
    manager.close()
    manager.close()
    assert time.monotonic() - began < LONG
    with pytest.raises(errors.ClosedError):
        manager.step({0: 0})


def test_every_row_comes_once_and_in_the_order_of_its_env() -> None:
    manager = made(each(Counter, 5, 7), num_workers=2, wait_num=1, step_wait_timeout=0)
    steps = {k: [] for k in range(5)}  # type: ignore[var-annotated]
    for _ in range(300):
        for k, timestep in manager.step(dict.fromkeys(manager.ready_obs, 0)).items():
            steps[k].append((int(timestep.obs[2]), int(timestep.obs[3])))
    for came in steps.values():
        assert came == [(n // 7, n % 7 + 1) for n in range(len(came))]
    assert sum(map(len, steps.values())) >= 300
    manager.close()
