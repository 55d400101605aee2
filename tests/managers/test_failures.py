"""What goes wrong: who is told what, and how envs come back."""

from __future__ import annotations

import functools
import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from gymnasium import spaces

from corral import errors
from corral.managers import BaseEnvManager
from tests.managers.envs import Counter, Engine, Fragile, Pid, Slow, SlowPid
from tests.managers.managers import each, every_manager, in_workers, launched, managed

# "Did not hang": far more than it takes, for the machine may be busy.
LONG = 20.0


def fragile(tmp_path: Path, *orders: str, count: int = 3) -> list[Any]:
    """Envs that fail as the orders say: `what number where count`."""
    file = tmp_path / "orders"
    file.write_text("\n".join(orders))
    return each(Fragile, count, str(file))


def tally(tmp_path: Path, what: str) -> int:
    file = tmp_path / f"orders.{what}"
    return len(file.read_text()) if file.exists() else 0


@every_manager
def test_a_manager_is_used_after_launch_and_before_close_alone(kind: str) -> None:
    def uses(manager: Any) -> list[Any]:
        return [
            manager.reset,
            lambda: manager.step({0: 0}),
            lambda: manager.ready_obs,
            lambda: manager.ready_obs_id,
            lambda: manager.number,
            lambda: manager.reward_shaping(0, []),
            manager.random_action,
        ]

    with managed(kind, each(Counter, 2)) as manager:
        for use in uses(manager):
            with pytest.raises(errors.LaunchError, match=r"not launched: call launch\(\) first"):
                use()
        manager.launch()
        with pytest.raises(errors.LaunchError, match="launched already: close it first"):
            manager.launch()
        assert sorted(manager.ready_obs) == [0, 1]
        manager.close()
        for use in uses(manager):
            with pytest.raises(errors.ClosedError, match="closed: launch it again"):
                use()
    assert issubclass(errors.LaunchError, RuntimeError)


@every_manager
def test_a_wrong_env_id_is_named_and_nothing_moves(kind: str) -> None:
    with launched(kind, each(Counter, 2)) as manager:
        for use in (
            lambda: manager.step({0: 0, 2: 0}),
            lambda: manager.step({-1: 0}),
            lambda: manager.reset({2: None}),
            lambda: manager.env_state_done(2),
            lambda: manager.seed({2: 0}),
        ):
            with pytest.raises(errors.ArgumentError, match=r"no env (2|-1): the envs are 0 to 1"):
                use()
        with pytest.raises(errors.ArgumentTypeError, match="an env id is an int, not 'a'"):
            manager.step({"a": 0})
        with pytest.raises(errors.ArgumentTypeError, match="actions is a dict by env"):
            manager.step([0, 0])
        assert {k: obs[3] for k, obs in manager.ready_obs.items()} == {0: 0, 1: 0}
        # NumPy's ints are ints.
        assert list(manager.step({np.int64(1): 0})) == [1]


@every_manager
def test_a_list_of_the_wrong_length_is_named(kind: str) -> None:
    with managed(kind, each(Counter, 3)) as manager:
        for use, words in (
            (lambda: manager.seed([1, 2]), "seed has 2 elements for 3 envs"),
            (lambda: manager.launch([None]), "reset_param has 1 elements for 3 envs"),
            (lambda: manager.enable_save_replay(["a"]), "replay_path has 1 elements for 3 envs"),
        ):
            with pytest.raises(errors.ArgumentError, match=words):
                use()
        assert manager.closed
        manager.launch()
        with pytest.raises(errors.ArgumentError, match="reset_param has 2 elements for 3 envs"):
            manager.reset([{}, {}])
        with pytest.raises(errors.ArgumentTypeError, match="the reset_param of env 1 is 5"):
            manager.reset({1: 5})
        with pytest.raises(
            errors.ArgumentTypeError, match="reset_param is a dict by env or a list"
        ):
            manager.reset("all")


@every_manager
def test_an_action_outside_the_space_moves_nothing(kind: str) -> None:
    with launched(kind, each(Counter, 2)) as manager:
        for bad in (3, "left", np.array([0, 1]), None):
            with pytest.raises(errors.InvalidActionError):
                manager.step({0: 0, 1: bad})
        assert {k: obs[3] for k, obs in manager.ready_obs.items()} == {0: 0, 1: 0}
        manager.step({0: 0, 1: 0})


@every_manager
def test_what_a_step_raises_is_raised_as_what_it_is_and_names_the_env(
    kind: str, tmp_path: Path
) -> None:
    with launched(kind, fragile(tmp_path, "raise 1 step 1")) as manager:
        with pytest.raises(KeyError, match="told to") as raised:
            manager.step({0: 0, 1: 0, 2: 0})
        told = raised.value.__cause__
        assert isinstance(told, errors.EnvError)
        assert "env 1 failed in step" in str(told)
        if kind != "base":
            assert isinstance(told.__cause__, errors.WorkerTraceback)
            assert "in _obey" in str(told.__cause__)
        # The others have played, and go on.
        assert {k: timestep.reward for k, timestep in told.batch.items()} == {0: 1.0, 2: 1.0}
        assert {k: obs[3] for k, obs in manager.ready_obs.items()} == {0: 1, 2: 1}
        with pytest.raises(errors.ResetNeededError, match=r"env 1 .* ERROR"):
            manager.step({1: 0})
        assert sorted(manager.step({0: 0, 2: 0})) == [0, 2]
        manager.reset({1: None})
        assert sorted(manager.step({0: 0, 1: 0, 2: 0})) == [0, 1, 2]


@every_manager
@pytest.mark.parametrize("retry_type", ["reset", "renew"])
def test_a_failed_reset_is_tried_as_often_as_max_retry_says(
    kind: str, retry_type: str, tmp_path: Path
) -> None:
    cfg = {"max_retry": 3, "retry_type": retry_type, "retry_waiting_time": 0.0}
    fns = fragile(tmp_path, "raise 1 reset 2")
    with launched(kind, fns, **cfg) as manager:
        assert sorted(manager.ready_obs) == [0, 1, 2]
        # "reset" goes on with the instance that failed; "renew" closes it and makes another.
        assert tally(tmp_path, "1.closed") == (0 if retry_type == "reset" else 2)
        assert manager.is_open == [True] * 3
        assert manager.step({1: 0})[1].reward == 1.0


@every_manager
@pytest.mark.parametrize("retry_type", ["reset", "renew"])
def test_attempts_used_up_are_an_error_that_names_the_env_and_closes(
    kind: str, retry_type: str, tmp_path: Path
) -> None:
    cfg = {"max_retry": 2, "retry_type": retry_type, "retry_waiting_time": 0.0}
    with managed(kind, fragile(tmp_path, "raise 1 reset 9"), **cfg) as manager:
        with pytest.raises(RuntimeError, match="env 1: no reset in 2 attempts") as raised:
            manager.launch()
        assert isinstance(raised.value, errors.RetriesUsedUpError)
        assert isinstance(raised.value.__cause__, KeyError)
        assert tally(tmp_path, "1.reset") == 2
        assert manager.closed
        with pytest.raises(errors.ClosedError):
            manager.step({0: 0})
        manager.close()


@every_manager
def test_an_auto_reset_is_tried_again_too(kind: str, tmp_path: Path) -> None:
    fns = fragile(tmp_path)
    with launched(kind, fns, max_retry=2, retry_waiting_time=0.0) as manager:
        (tmp_path / "orders").write_text("raise 1 reset 1")
        for _ in range(50):
            manager.step(dict.fromkeys(range(3), 0))
            assert sorted(manager.ready_obs) == [0, 1, 2]
        assert tally(tmp_path, "1.reset") == 1
        assert manager.ready_obs[1][3] == 0


@every_manager
def test_a_retry_has_the_seed_and_the_parameters_again(kind: str, tmp_path: Path) -> None:
    cfg = {"max_retry": 2, "retry_type": "renew", "retry_waiting_time": 0.0}
    with managed(kind, fragile(tmp_path, "raise 1 reset 1"), **cfg) as manager:
        manager.seed(5)
        manager.launch({1: {"options": {"x": 1}}})
        assert manager.ready_obs[1][1] == 6
        assert manager.options[1] == {"x": 1}


@every_manager
def test_a_constructor_that_raises_is_an_error_that_names_the_env(
    kind: str, tmp_path: Path
) -> None:
    with managed(kind, fragile(tmp_path, "raise 1 make 9")) as manager:
        with pytest.raises(RuntimeError, match="env 1: no reset in 1 attempt") as raised:
            manager.launch()
        assert isinstance(raised.value.__cause__, KeyError)
        assert manager.closed
        (tmp_path / "orders").write_text("")
        manager.launch()
        assert sorted(manager.ready_obs) == [0, 1, 2]


def test_the_first_constructor_raises_where_the_manager_is_made(tmp_path: Path) -> None:
    with pytest.raises(KeyError):
        BaseEnvManager(fragile(tmp_path, "raise 0 make 1"))


@every_manager
@pytest.mark.parametrize("what", ["observation", "action"])
def test_spaces_that_differ_from_env_0s_are_an_error_at_launch(kind: str, what: str) -> None:
    class Other(Counter):
        pass

    if what == "observation":
        Other.observation_space = spaces.Box(-1, 1, (4,), np.float64)
    else:
        Other.action_space = spaces.Discrete(4)
    fns = [Counter, Counter, Other]
    with managed(kind, fns, max_retry=3, retry_waiting_time=60.0) as manager:
        with pytest.raises(errors.SpaceError, match=f"the {what} space of env 2 is"):
            manager.launch()
        assert manager.closed


@every_manager
def test_what_is_no_env_is_named(kind: str) -> None:
    made = iter([Engine()])

    with (
        managed(kind, [lambda: next(made, 5)] * 2) as manager,
        pytest.raises(errors.ArgumentTypeError, match=r"env_fn\[0\] made 5.* no reset"),
    ):
        manager.launch()


@every_manager
def test_a_step_that_takes_too_long_ends_and_names_the_env(kind: str, tmp_path: Path) -> None:
    fns = fragile(tmp_path, "sleep 1 step 1")
    with launched(kind, fns, step_timeout=0.5) as manager:
        began = time.monotonic()
        # Whoever shares a worker with env 1 is lost with it, and was not silent.
        kinds = errors.EnvError if kind == "packed" else errors.EnvTimeoutError
        with pytest.raises(kinds, match="env 1 went silent") as raised:
            manager.step({0: 0, 1: 0, 2: 0})
        assert 0.4 < time.monotonic() - began < LONG
        lost = {failure.slot for failure in raised.value.failures}
        for env_id in lost:
            with pytest.raises(errors.ResetNeededError):
                manager.step({env_id: 0})
        manager.reset(dict.fromkeys(lost))
        assert sorted(manager.ready_obs)[:2] == [0, 1]


@every_manager
@pytest.mark.parametrize("retry_type", ["reset", "renew"])
def test_a_reset_that_takes_too_long_is_tried_again(
    kind: str, retry_type: str, tmp_path: Path
) -> None:
    cfg = {"reset_timeout": 0.5, "max_retry": 2, "retry_type": retry_type}
    fns = fragile(tmp_path, "sleep 1 reset 1")
    with launched(kind, fns, retry_waiting_time=0.0, **cfg) as manager:
        assert sorted(manager.ready_obs) == [0, 1, 2]
    with managed(kind, fragile(tmp_path, "sleep 2 reset 9"), **cfg) as manager:
        with pytest.raises(errors.RetriesUsedUpError, match="env 2") as raised:
            manager.launch()
        assert isinstance(raised.value.__cause__, TimeoutError)


@in_workers
@pytest.mark.parametrize("where", ["make", "reset"])
def test_a_worker_that_does_not_answer_is_given_up_after_connect_timeout(
    kind: str, where: str, tmp_path: Path
) -> None:
    fns = fragile(tmp_path, f"sleep 1 {where} 9")
    began = time.monotonic()
    with (
        managed(kind, fns, connect_timeout=0.75) as manager,
        pytest.raises(
            errors.EnvTimeoutError, match=r"^env 1(, 2)?: .*0\.75 seconds \(connect_timeout\)"
        ),
    ):
        manager.launch()
    assert manager.closed
    assert time.monotonic() - began < LONG


@in_workers
def test_kill_9_in_mid_step_is_told_of_and_reset_recovers(kind: str, tmp_path: Path) -> None:
    fns = fragile(tmp_path, "kill 1 step 1")
    with launched(kind, fns, num_workers=3) as manager:
        began = time.monotonic()
        with pytest.raises(errors.EnvError, match=r"env 1.*SIGKILL") as raised:
            manager.step({0: 0, 1: 0, 2: 0})
        assert time.monotonic() - began < LONG
        assert [failure.slot for failure in raised.value.failures] == [1]
        assert {k: t.reward for k, t in raised.value.batch.items()} == {0: 1.0, 2: 1.0}
        assert sorted(manager.ready_obs) == [0, 2]
        manager.reset({1: None})
        assert {k: obs[3] for k, obs in manager.ready_obs.items()} == {0: 1, 1: 0, 2: 1}
        assert sorted(manager.step({0: 0, 1: 0, 2: 0})) == [0, 1, 2]


@in_workers
def test_close_is_silent_after_kill_9(kind: str) -> None:
    with launched(kind, each(Pid, 3), num_workers=3) as manager:
        pids = [int(obs[1]) for _, obs in sorted(manager.ready_obs.items())]
        os.kill(pids[1], signal.SIGKILL)
        with pytest.raises(errors.EnvError, match="env 1"):
            manager.step({1: 0})
        manager.close()
        manager.close()
    assert not any(psutil.pid_exists(pid) for pid in pids)
    with launched(kind, each(Pid, 3), num_workers=3) as manager:
        for obs in manager.ready_obs.values():
            os.kill(int(obs[1]), signal.SIGKILL)
        manager.close()


@in_workers
def test_a_death_while_an_env_sleeps_is_told_of(kind: str) -> None:
    fns = [lambda: Pid(0), lambda: SlowPid(1, 600.0)]
    with launched(kind, fns, num_workers=2) as manager:
        worker = int(manager.ready_obs[1][1])
        threading.Timer(0.5, os.kill, (worker, signal.SIGKILL)).start()
        began = time.monotonic()
        with pytest.raises(errors.EnvError, match="env 1"):
            manager.step(dict.fromkeys(manager.ready_obs, 0))
        assert time.monotonic() - began < LONG


@in_workers
def test_the_envs_of_a_dead_worker_that_hosts_several_all_come_back(
    kind: str, tmp_path: Path
) -> None:
    fns = fragile(tmp_path, "kill 1 step 1", count=4)
    with launched(kind, fns, num_workers=2) as manager:
        lost = set()
        # Env 0 may have played when its worker died, and tells of it by its next step then.
        while lost != {0, 1}:
            with pytest.raises(errors.EnvError) as raised:
                manager.step(dict.fromkeys(manager.ready_obs, 0))
            lost |= {failure.slot for failure in raised.value.failures}
        assert lost == {0, 1}
        assert sorted(manager.ready_obs) == [2, 3]
        manager.reset({0: None, 1: None})
        assert sorted(manager.step(dict.fromkeys(range(4), 0))) == [0, 1, 2, 3]


@in_workers
def test_closing_ends_what_is_in_flight_and_every_worker(kind: str, tmp_path: Path) -> None:
    before = {child.pid for child in psutil.Process().children()}
    with launched(kind, fragile(tmp_path, "sleep 1 step 1")) as manager:
        worker = threading.Thread(target=_ends, args=(manager,))
        worker.start()
        time.sleep(0.5)
        manager.close()
        worker.join(LONG)
        assert not worker.is_alive()
    assert {child.pid for child in psutil.Process().children()} <= before


def _ends(manager: Any) -> None:
    with pytest.raises(errors.ClosedError):
        manager.step({0: 0, 1: 0})


def test_a_function_that_cannot_be_sent_is_named() -> None:
    lock = threading.Lock()
    fns = [functools.partial(lambda lock: Counter(), lock)] * 2
    with managed("sync", fns, context="spawn") as manager:
        with pytest.raises(errors.UnsupportedError, match=r"env_fn\[0\].*cannot be sent"):
            manager.launch()
        assert manager.closed
    with launched("sync", fns, context="fork") as manager:
        assert sorted(manager.ready_obs) == [0, 1]


@every_manager
def test_an_interrupted_step_leaves_envs_that_can_be_stepped(kind: str) -> None:
    with launched(kind, each(Slow, 2, 0.6)) as manager:
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt):
            manager.step({0: 0, 1: 0})
        if kind == "base":
            # The step of an env in this process was interrupted itself.
            manager.reset()
        if kind == "async":
            # What was in flight comes with the next step.
            assert sorted(manager.step({})) == [0, 1]
        assert sorted(manager.ready_obs) == [0, 1]
        assert sorted(manager.step({0: 0, 1: 0})) == [0, 1]


@every_manager
def test_the_env_that_was_asked_for_spaces_is_closed_with_the_manager(kind: str) -> None:
    closed: list[int] = []

    class Ref(Counter):
        def close(self) -> None:
            closed.append(os.getpid())

    with managed(kind, [Ref] * 2) as manager:
        manager.close()
        manager.close()
        assert closed == [os.getpid()]
        manager.launch()
    own = 2 if kind == "base" else 0
    assert closed == [os.getpid()] * (1 + own)


@in_workers
def test_a_worker_that_is_started_again_knows_what_the_last_one_was_told(kind: str) -> None:
    with managed(kind, each(Pid, 2), num_workers=2) as manager:
        manager.launch({0: {"options": {"x": 1}}, 1: {"options": {"x": 2}}})
        os.kill(int(manager.ready_obs[1][1]), signal.SIGKILL)
        with pytest.raises(errors.EnvError, match="env 1"):
            manager.step({1: 0})
        manager.reset()
        assert manager.options == [{"x": 1}, {"x": 2}]


@in_workers
def test_an_env_of_di_engine_keeps_its_seed_in_a_new_worker(kind: str, tmp_path: Path) -> None:
    class Dying(Engine):
        def step(self, action: Any) -> Any:
            if action == "die":
                os.kill(os.getpid(), signal.SIGKILL)
            return super().step(action)

    with managed(kind, each(Dying, 2), num_workers=2) as manager:
        manager.seed(5, dynamic_seed=False)
        manager.launch()
        with pytest.raises(errors.EnvError, match="env 1"):
            manager.step({1: "die"})
        manager.reset({1: None})
        assert manager.ready_obs[1]["told"] == ((6, False),)


@every_manager
def test_a_retry_waits_as_long_as_it_is_told(kind: str, tmp_path: Path) -> None:
    fns = fragile(tmp_path, "raise 1 reset 2")
    began = time.monotonic()
    with launched(kind, fns, max_retry=3, retry_waiting_time=0.4) as manager:
        assert time.monotonic() - began >= 0.8
        assert sorted(manager.ready_obs) == [0, 1, 2]


def test_other_envs_play_on_while_a_retry_waits(tmp_path: Path) -> None:
    fns = [*fragile(tmp_path, count=1), *each(Counter, 2, 1000)[1:]]
    fns[0].keywords["length"] = 1
    cfg = {"max_retry": 2, "retry_waiting_time": 3.0, "reset_inplace": False}
    with launched("async", fns, **cfg) as manager:
        (tmp_path / "orders").write_text("raise 0 reset 1")
        manager.step({0: 0, 1: 0})
        while tally(tmp_path, "0.reset") == 0:
            manager.step({1: 0})
        began = time.monotonic()
        for _ in range(3):
            assert sorted(manager.ready_obs) == [1]
            manager.step({1: 0})
        assert time.monotonic() - began < 3.0
        while sorted(manager.ready_obs) == [1]:
            manager.step({1: 0})
        assert manager.ready_obs[0][3] == 0


def test_functions_that_give_one_env_several_times_are_refused() -> None:
    env = Counter()
    said = r"env_fn\[1\] and env_fn\[2\] gave the same object"
    with (
        managed("base", [lambda: Counter(), lambda: env, lambda: env]) as manager,
        pytest.raises(errors.ArgumentError, match=said),
    ):
        manager.launch()
    with managed("base", [lambda: env, lambda: Counter()]) as manager:
        manager.launch()
