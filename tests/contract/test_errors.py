"""What goes wrong says so: the right error, for Python and for Gymnasium, and in time."""

from __future__ import annotations

import copy
import gc
import pickle
import threading
import time
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import error as gym_error

import corral
from corral import errors
from tests.support import FAULTY, ODD, forces, run_python

BASES = [
    (errors.InvalidActionError, [ValueError, gym_error.InvalidAction]),
    (errors.ArgumentError, [ValueError]),
    (errors.ArgumentTypeError, [TypeError]),
    (errors.UnknownOptionError, [TypeError]),
    (errors.OptionValueError, [ValueError]),
    (errors.UnknownEnvError, [gym_error.NameNotFound, gym_error.UnregisteredEnv]),
    (errors.UnknownNameError, [AttributeError]),
    (errors.LibraryError, [ImportError]),
    (errors.MissingFileError, [FileNotFoundError]),
    (errors.VideoError, [OSError]),
    (errors.SpaceError, [ValueError]),
    (errors.UnsupportedError, [NotImplementedError]),
    (errors.ResetNeededError, [gym_error.ResetNeeded]),
    (errors.PendingCallError, [gym_error.AlreadyPendingCallError]),
    (errors.NothingPendingError, [gym_error.NoAsyncCallError]),
    (errors.ClosedError, [gym_error.ClosedEnvironmentError]),
    (errors.StateError, [ValueError]),
    (errors.EnvError, [RuntimeError]),
    (errors.EnvTimeoutError, [errors.EnvError, TimeoutError]),
    (errors.RetriesUsedUpError, [errors.EnvError]),
    (errors.LaunchError, [RuntimeError]),
    (errors.RecvTimeoutError, [TimeoutError]),
    (errors.ForkedError, [RuntimeError]),
    (errors.ProgressFileError, [OSError]),
    (errors.WorkerTraceback, []),
    (errors.ConformanceError, [AssertionError]),
]


@pytest.mark.parametrize(("error", "bases"), BASES, ids=[case[0].__name__ for case in BASES])
def test_each_error_is_corrals_and_the_one_that_python_or_gymnasium_has(
    error: type[Exception], bases: list[type[Exception]]
) -> None:
    for base in [errors.CorralError, *bases]:
        assert issubclass(error, base)
    made = error("what was wrong")
    assert str(made) == "what was wrong"
    again = pickle.loads(pickle.dumps(made))
    assert type(again) is error
    assert str(again) == str(made)


def test_every_error_is_in_the_table_above() -> None:
    public = {
        value
        for value in vars(errors).values()
        if isinstance(value, type) and issubclass(value, errors.CorralError)
    }
    assert public - {errors.CorralError} == {error for error, _ in BASES}


def test_an_env_error_carries_its_failures_across_processes() -> None:
    with pytest.raises(errors.EnvError) as raised:
        corral.make_vec(FAULTY, 1, seed=5, fault="error_in_build")
    again = pickle.loads(pickle.dumps(raised.value))
    assert again.failures == raised.value.failures
    assert again.failures[0].seed == 5


MAKING: list[tuple[dict[str, Any], type[Exception], list[str]]] = [
    ({"id": "CartPole"}, errors.UnknownEnvError, ["'CartPole'", "Did you mean 'CartPole-v1'?"]),
    ({"id": "maze-v0"}, errors.UnknownEnvError, ["Did you mean 'Maze-v0'?"]),
    ({"id": "xyzzy"}, errors.UnknownEnvError, ["'xyzzy'", "CartPole-v1, ", ", Maze-v0"]),
    ({"id": ""}, errors.UnknownEnvError, ["CartPole-v1, ", ", Maze-v0"]),
    ({"id": "corral/"}, errors.UnknownEnvError, ["CartPole-v1, ", ", Maze-v0"]),
    (
        {"id": "Maze-v0", "sise": 5},
        errors.UnknownOptionError,
        ["Maze-v0", "'sise'", "did you mean 'size'?", "loops (default 0), size (default 7)"],
    ),
    (
        {"id": "CartPole-v1", "zzz": 5},
        errors.UnknownOptionError,
        ["'zzz'", "sutton_barto_reward (default false)"],
    ),
    ({"id": ODD, "a": 1}, errors.UnknownOptionError, ["takes no options"]),
    (
        {"id": "Maze-v0", "size": "big"},
        errors.OptionValueError,
        ["Maze-v0: size is an int from 3 to 12, not 'big'"],
    ),
    (
        {"id": "Maze-v0", "size": 7.5},
        errors.OptionValueError,
        ["Maze-v0: size is an int from 3 to 12, not 7.5"],
    ),
    (
        {"id": "Maze-v0", "size": -1},
        errors.OptionValueError,
        ["Maze-v0: size is an int from 3 to 12, not -1"],
    ),
    (
        {"id": "Maze-v0", "size": 2**40},
        errors.OptionValueError,
        [f"Maze-v0: size is an int from 3 to 12, not {2**40}"],
    ),
    (
        {"id": "Maze-v0", "size": 2**70},
        errors.OptionValueError,
        ["Maze-v0: size is an int of more"],
    ),
    (
        {"id": "Maze-v0", "size": None},
        errors.OptionValueError,
        ["Maze-v0: size is an int from 3 to 12, not None"],
    ),
    (
        {"id": "Maze-v0", "size": [7]},
        errors.OptionValueError,
        ["Maze-v0: size is an int from 3 to 12, not [7]"],
    ),
    (
        {"id": "Maze-v0", "size": object()},
        errors.OptionValueError,
        ["Maze-v0: size is an object of"],
    ),
    (
        {"id": "CartPole-v1", "sutton_barto_reward": 1},
        errors.OptionValueError,
        ["CartPole-v1: sutton_barto_reward is a bool, not 1"],
    ),
    (
        {"id": FAULTY, "fault": "meteor"},
        errors.OptionValueError,
        ["fault is one of 'none', ", "not 'meteor'"],
    ),
    ({"num_envs": 0}, errors.ArgumentError, ["num_envs", "at least 1"]),
    ({"num_envs": -1}, errors.ArgumentError, ["num_envs -1"]),
    ({"num_envs": 2**64}, errors.ArgumentError, ["num_envs", str(2**64)]),
    ({"num_envs": 1e18}, errors.ArgumentTypeError, ["num_envs is an int", "1e+18"]),
    ({"num_envs": 2.0}, errors.ArgumentTypeError, ["num_envs is an int"]),
    ({"num_envs": True}, errors.ArgumentTypeError, ["num_envs is an int"]),
    ({"num_envs": "3"}, errors.ArgumentTypeError, ["num_envs is an int"]),
    ({"num_envs": None}, errors.ArgumentTypeError, ["num_envs is an int"]),
    ({"max_episode_steps": 0}, errors.ArgumentError, ["max_episode_steps=0", "at least 1"]),
    ({"max_episode_steps": -2}, errors.ArgumentError, ["max_episode_steps=-2"]),
    ({"seed": -1}, errors.ArgumentError, ["seed -1"]),
    ({"seed": 2**63 - 1, "num_envs": 2}, errors.ArgumentError, [str(2**63 - 1)]),
    ({"seed": 1.0}, errors.ArgumentTypeError, ["seed is an int"]),
    ({"seed": True}, errors.ArgumentTypeError, ["seed is an int"]),
    ({"seed": [1]}, errors.ArgumentTypeError, ["seed is an int here", "reset takes a list"]),
    ({"autoreset_mode": "never"}, errors.ArgumentError, ["'never'", "next_step, same_step"]),
    ({"autoreset_mode": None}, errors.ArgumentError, ["None"]),
    (
        {"action_bounds": "wrap"},
        errors.ArgumentError,
        ["'env', 'clip', 'error' or 'unchecked'", "'wrap'"],
    ),
    ({"render_mode": "human"}, errors.ArgumentError, ["rgb_array", "'human'"]),
    (
        {"id": ODD, "autoreset_mode": "same_step", "render_mode": "rgb_array"},
        errors.UnsupportedError,
        ["draws no pictures"],
    ),
    ({"id": ODD}, errors.UnsupportedError, ["resets itself", "same_step"]),
    (
        {"id": ODD, "autoreset_mode": "same_step", "max_episode_steps": 5},
        errors.UnsupportedError,
        ["cannot bear a time limit"],
    ),
]


@pytest.mark.parametrize(("arguments", "error", "parts"), MAKING, ids=lambda v: repr(v)[:40])
def test_what_cannot_be_made_says_what_can(
    arguments: dict[str, Any], error: type[Exception], parts: list[str]
) -> None:
    with pytest.raises(error) as raised:
        corral.make_vec(**{"id": "CartPole-v1", **arguments})
    for part in parts:
        assert part in str(raised.value)
    single = {k: v for k, v in arguments.items() if k not in ("num_envs", "autoreset_mode")}
    if single == arguments and arguments.get("id") != ODD and "seed" not in arguments:
        with pytest.raises(error):
            corral.make(**{"id": "CartPole-v1", **arguments})


@pytest.mark.parametrize("size", [2, 13, 1000])
def test_an_option_outside_its_range_is_an_option_error(size: int) -> None:
    """As one of the wrong type is; not a failure of env 0."""
    with pytest.raises(errors.OptionValueError, match=f"size is an int from 3 to 12, not {size}$"):
        corral.make_vec("Maze-v0", 2, size=size)


def test_a_time_limit_too_large_or_of_another_type_is_refused() -> None:
    with pytest.raises((errors.ArgumentError, OverflowError)):
        corral.make_vec("CartPole-v1", 1, max_episode_steps=2**70)
    for wrong in (1.5, "3", [3]):
        with pytest.raises(TypeError):
            corral.make_vec("CartPole-v1", 1, max_episode_steps=wrong)


DEADLY = {
    "an option that contains itself": """
x = []; x.append(x)
corral.make_vec("CartPole-v1", 1, sutton_barto_reward=x)""",
    "a reset option that contains itself": """
x = {}; x["low"] = x
corral.make_vec("CartPole-v1", 1).reset(options=x)""",
    "an action that contains itself": """
x = []; x.append(x)
envs = corral.make_vec("testing/Odd-v0", 1, autoreset_mode="same_step"); envs.reset()
envs.step({"move": [1], "word": [x]})""",
    "more envs than memory": """corral.make_vec("CartPole-v1", 10**12, seed=0)""",
    "more envs than addresses": """corral.make_vec("CartPole-v1", 2**62, seed=0)""",
}


@pytest.mark.parametrize("what", DEADLY)
def test_nothing_passed_in_kills_the_process(what: str) -> None:
    done = run_python(
        f"""
import corral
try:
    {DEADLY[what].strip().replace(chr(10), chr(10) + "    ")}
except Exception as error:
    print("raised", type(error).__name__)
""",
        memory=4 << 30,
    )
    assert done.returncode == 0, (done.returncode, done.stderr[-300:])
    assert done.stdout.startswith("raised")


CALLS: dict[str, Callable[[corral.VectorEnv], Any]] = {
    "step": lambda envs: envs.step([0, 0]),
    "reset": lambda envs: envs.reset(),
    "reset with a seed": lambda envs: envs.reset(seed=1),
    "render": lambda envs: envs.render(),
    "save": lambda envs: envs.native.save(0),
    "load": lambda envs: envs.native.load(b"", 0),
    "set_next_index": lambda envs: envs.native.set_next_index(0, 1),
    "reset_slots": lambda envs: envs.native.reset_slots([0], [1]),
    "step_slots": lambda envs: envs.native.step_slots([0], [1]),
}


@pytest.mark.parametrize("call", CALLS)
def test_a_call_after_close_is_a_closed_error(call: str) -> None:
    envs = corral.make_vec("CartPole-v1", 2, render_mode="rgb_array")
    envs.reset()
    envs.close()
    assert envs.closed
    with pytest.raises(gym_error.ClosedEnvironmentError, match="closed: make a new one"):
        CALLS[call](envs)
    envs.close()
    assert "closed" in repr(envs)


def test_a_single_env_closes_once_and_refuses_calls_afterwards() -> None:
    env = corral.make("CartPole-v1")
    env.reset()
    env.close()
    env.close()
    for call in (env.reset, lambda: env.step(0)):
        with pytest.raises(errors.ClosedError):
            call()


def test_an_env_may_be_closed_before_its_first_reset_and_by_with() -> None:
    corral.make_vec("CartPole-v1", 2).close()
    with corral.make("CartPole-v1") as env:
        env.reset()
    with pytest.raises(errors.ClosedError):
        env.reset()


@pytest.mark.parametrize("id", ["CartPole-v1", FAULTY])
@pytest.mark.parametrize("make", [corral.make, corral.make_vec])
@pytest.mark.parametrize("how", [copy.copy, copy.deepcopy, pickle.dumps])
def test_copying_an_env_is_a_clear_error_and_harms_nothing(how: Any, make: Any, id: str) -> None:
    env = make(id)
    env.reset(seed=0)
    with pytest.raises(errors.UnsupportedError, match=r"not copied or pickled.*make another"):
        how(env)
    gc.collect()
    env.reset()


def test_render_without_a_render_mode_warns_and_gives_nothing() -> None:
    for env in (corral.make_vec("CartPole-v1", 2), corral.make("CartPole-v1")):
        env.reset()
        with pytest.warns(UserWarning, match=r'render_mode="rgb_array"'):
            assert env.render() is None


@pytest.mark.parametrize("id", ["CartPole-v1", "Maze-v0", FAULTY])
def test_render_gives_a_frame_per_env_or_of_those_named(id: str) -> None:
    envs = corral.make_vec(id, 3, render_mode="rgb_array")
    with pytest.raises(errors.ResetNeededError, match="env 0 shows nothing before its reset"):
        envs.render()
    envs.reset(seed=0)
    frames = envs.render()
    assert isinstance(frames, tuple)
    assert len(frames) == 3
    for frame in frames:
        assert frame.dtype == np.uint8
        assert frame.ndim == 3
        assert frame.shape[2] == 3
    single = corral.make(id, render_mode="rgb_array")
    for slot in range(3):
        np.testing.assert_array_equal(envs.render([slot])[0], frames[slot])
        single.reset(seed=slot)
        np.testing.assert_array_equal(single.render(), frames[slot])
    assert len(envs.render(np.array([2, 0]))) == 2
    assert envs.render([]) == ()


@pytest.mark.parametrize(
    ("named", "error"),
    [
        ([3], errors.ArgumentError),
        ([-1], errors.ArgumentError),
        ([2**70], (errors.ArgumentError, OverflowError)),
        ([0, 0], errors.ArgumentError),
        (3, errors.ArgumentTypeError),
        (["a"], errors.ArgumentTypeError),
        ([1.5], errors.ArgumentTypeError),
    ],
)
def test_render_of_envs_that_do_not_exist_is_an_error(named: Any, error: Any) -> None:
    envs = corral.make_vec("CartPole-v1", 3, render_mode="rgb_array")
    envs.reset()
    with pytest.raises(error):
        envs.render(named)


def test_a_state_of_another_env_or_config_or_no_state_at_all_is_refused() -> None:
    envs = corral.make_vec("Maze-v0", 2, seed=0)
    envs.reset()
    before = envs.native.save(1)
    others = [corral.make_vec("CartPole-v1", 1), corral.make_vec("Maze-v0", 1, size=5)]
    for other in others:
        other.reset()
        with pytest.raises(errors.StateError, match="of another"):
            envs.native.load(other.native.save(0), 1)
    for junk in (b"", b"junk", before[:-3], before[: len(before) // 2]):
        with pytest.raises(errors.StateError):
            envs.native.load(junk, 1)
    assert envs.native.save(1) == before
    with pytest.raises(errors.ArgumentError, match="env 2 does not exist: there are 2"):
        envs.native.save(2)


def slow(num_envs: int = 1024) -> corral.VectorEnv:
    """Every step generates all levels anew: long in Rust, short in Python."""
    envs = corral.make_vec(
        "Maze-v0", num_envs, size=12, autoreset_mode="same_step", max_episode_steps=1, seed=0
    )
    envs.reset()
    return envs


OTHERS: dict[str, Callable[[corral.VectorEnv], Any]] = {
    "step": lambda envs: envs.native.step(np.zeros(envs.num_envs, dtype=np.int64)),
    "reset": lambda envs: envs.reset(seed=0),
    "render": lambda envs: envs.native.render([0]),
    "save": lambda envs: envs.native.save(0),
    "allocations": lambda envs: envs.native.allocations,
}


@pytest.mark.parametrize("call", OTHERS)
def test_a_call_while_another_threads_is_under_way_is_an_error_and_no_deadlock(call: str) -> None:
    envs = slow()
    actions = np.zeros(envs.num_envs, dtype=np.int64)
    began = threading.Event()
    done: list[Any] = []

    def work() -> None:
        began.set()
        done.append(envs.step(actions))

    raised: list[BaseException] = []
    for _ in range(20):
        worker = threading.Thread(target=work)
        began.clear()
        worker.start()
        began.wait()
        time.sleep(0.002)
        try:
            OTHERS[call](envs)
        except errors.PendingCallError as error:
            raised.append(error)
        worker.join(timeout=30)
        assert not worker.is_alive()
        if raised:
            break
    assert raised, "no call met another"
    assert isinstance(raised[0], gym_error.AlreadyPendingCallError)
    assert "under way" in str(raised[0])
    # The call that was under way came to its end, and so do later ones.
    assert done
    assert done[-1][1].shape == (envs.num_envs,)
    envs.step(actions)


def test_refused_calls_of_many_threads_move_nothing() -> None:
    envs, alone = (corral.make_vec("CartPole-v1", 64, seed=0) for _ in range(2))
    envs.reset()
    alone.reset()
    moved: list[int] = []

    def work() -> None:
        count = 0
        for _ in range(300):
            try:
                envs.step(np.ones(64, dtype=np.int64))
                count += 1
            except errors.PendingCallError:
                time.sleep(0)
        moved.append(count)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
        assert not thread.is_alive()
    for _ in range(sum(moved)):
        alone.step(np.ones(64, dtype=np.int64))
    assert [envs.native.save(k) for k in range(64)] == [alone.native.save(k) for k in range(64)]


@pytest.mark.parametrize("call", ["step", "reset", "make"])
def test_other_threads_run_while_rust_works(call: str) -> None:
    envs = slow(2048)
    actions = np.zeros(envs.num_envs, dtype=np.int64)
    calls = {
        "step": lambda: envs.step(actions),
        "reset": lambda: envs.reset(seed=0),
        "make": lambda: slow(2048),
    }
    ticks: list[float] = []
    stop = threading.Event()

    def tick() -> None:
        while not stop.is_set():
            ticks.append(time.perf_counter())
            time.sleep(0.0005)

    for _ in range(5):
        ticks.clear()
        stop.clear()
        thread = threading.Thread(target=tick)
        thread.start()
        while not ticks:
            time.sleep(0.0005)
        start = time.perf_counter()
        calls[call]()
        end = time.perf_counter()
        stop.set()
        thread.join()
        # Without the GIL's release the thread would stand still all the while.
        if sum(start < at < end for at in ticks) > 3:
            return
    pytest.fail(f"the other thread stood still for {end - start:.3f} s")


def test_a_wrong_number_of_actions_is_a_value_error_as_in_gymnasium() -> None:
    theirs = gymnasium.make_vec("CartPole-v1", 2, vectorization_mode="sync")
    theirs.reset(seed=0)
    # Before 1.3 it is what the list of envs raises.
    with pytest.raises((ValueError, IndexError)):
        theirs.step(np.zeros(3, dtype=np.int64))
    ours = corral.make_vec("CartPole-v1", 2)
    ours.reset(seed=0)
    with pytest.raises(ValueError, match="shape"):
        ours.step(np.zeros(3, dtype=np.int64))


def test_more_failures_than_fit_a_message_are_counted() -> None:
    envs = corral.make_vec(FAULTY, 20, fault="error_in_step", at_step=0)
    envs.reset()
    with pytest.raises(errors.EnvError, match="… and 12 more") as raised:
        envs.step(forces(20))
    assert len(raised.value.failures) == 20
