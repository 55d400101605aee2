"""`send`, `recv`, `async_reset` and `drain`: what they promise, whatever runs underneath."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import corral
from corral.errors import (
    ArgumentError,
    ArgumentTypeError,
    ClosedError,
    InvalidActionError,
    NothingPendingError,
    PendingCallError,
    RecvTimeoutError,
    ResetNeededError,
    UnsupportedError,
)
from tests.support import FAULTY, MODES, assert_same, digest, forces, row, states

N = 5
SEED = 30
RUNNERS: dict[str, dict[str, Any]] = {
    "serial": {"num_threads": 1},
    "threads": {"num_threads": 3},
    "timeout": {"timeout": 30},
    "batches of 2": {"batch_size": 2, "num_threads": 2},
    "batches of 1, restart": {"batch_size": 1, "on_failure": "restart"},
    "batches of 3, mask": {"batch_size": 3, "on_failure": "mask", "num_threads": 2},
    "threads, restart": {"num_threads": 2, "on_failure": "restart"},
}
PLAIN = list(RUNNERS)
BATCHED = [name for name in RUNNERS if name.startswith("batches")]


def make(runner: str, id: str = "CartPole-v1", n: int = N, **more: Any) -> corral.VectorEnv:
    return corral.make_vec(id, n, seed=SEED, **{**RUNNERS[runner], **more})


def rows_of(envs: corral.VectorEnv) -> dict[int, Any]:
    """All rows in flight, by env, each once."""
    found: dict[int, Any] = {}
    while envs.native.in_flight():
        observations, rewards, terminated, truncated, infos = envs.recv()
        for at, slot in enumerate(infos["env_id"].tolist()):
            assert slot not in found
            flags = bool(terminated[at]), bool(truncated[at])
            found[slot] = digest(row(observations, at)), float(rewards[at]), *flags
    return found


def ones(n: int) -> Any:
    return np.ones(n, dtype=np.int64)


@pytest.mark.parametrize("runner", RUNNERS)
def test_recv_gives_batch_size_rows_or_as_many_as_are_in_flight(runner: str) -> None:
    envs = make(runner)
    size = envs.batch_size
    assert size == RUNNERS[runner].get("batch_size", N)
    envs.async_reset()
    for call in range(2):
        if call:
            envs.send(ones(N))
        left, seen = N, []
        while left:
            assert envs.native.in_flight() == left
            observations, rewards, terminated, truncated, infos = envs.recv()
            ids = infos["env_id"]
            assert ids.dtype == np.int64
            assert ids.shape == rewards.shape == terminated.shape == truncated.shape
            assert len(ids) == len(observations) == min(size, left)
            assert rewards.dtype == np.float64
            assert terminated.dtype == truncated.dtype == np.bool_
            # Rows of resets have reward 0, CartPole's steps 1.
            assert rewards.tolist() == [float(call)] * len(ids)
            # All were sent in this order.
            assert ids.tolist() == sorted(ids.tolist())
            seen += ids.tolist()
            left -= len(ids)
        assert sorted(seen) == list(range(N))
        with pytest.raises(NothingPendingError, match="nothing is in flight"):
            envs.recv()
        assert envs.drain() is None


@pytest.mark.parametrize("runner", RUNNERS)
def test_rows_come_in_the_order_in_which_they_were_sent(runner: str) -> None:
    envs = make(runner)
    envs.reset()
    order = [3, 0, 4, 1, 2]
    envs.send(ones(2), order[:2])
    envs.send(ones(3), np.array(order[2:], dtype=np.int32))
    batch = envs.drain()
    assert batch is not None
    assert batch[4]["env_id"].tolist() == order
    envs.send(ones(2), [4, 2])
    batch = envs.drain()
    assert batch is not None
    assert batch[4]["env_id"].tolist() == [4, 2]


@pytest.mark.parametrize("runner", RUNNERS)
def test_drain_gives_all_in_flight_at_once_and_then_nothing(runner: str) -> None:
    envs, sound = make(runner), make("serial")
    assert envs.drain() is None
    envs.async_reset()
    batch = envs.drain()
    expected = sound.reset()
    assert batch is not None
    assert_same(batch[0], expected[0])
    envs.send(ones(N))
    got = envs.drain(timeout=20)
    assert got is not None
    assert got[4].pop("env_id").tolist() == list(range(N))
    assert got[4].pop("row_kind").tolist() == [corral.RowKind.STEP] * N
    assert_same(got, sound.step(ones(N)))
    assert envs.drain(timeout=0) is None


@pytest.mark.parametrize("runner", BATCHED)
def test_step_with_a_smaller_batch_size_is_an_error_that_says_what_to_use(runner: str) -> None:
    envs = make(runner)
    envs.reset()
    before = states(envs)
    with pytest.raises(UnsupportedError, match=r"use send and recv"):
        envs.step(ones(N))
    assert states(envs) == before


@pytest.mark.parametrize("runner", RUNNERS)
def test_an_env_in_flight_cannot_be_sent_again_and_nothing_moves(runner: str) -> None:
    envs, sound = make(runner), make("serial")
    envs.reset()
    sound.reset()
    envs.send(ones(2), [1, 3])
    refused: list[Callable[[], Any]] = [
        lambda: envs.send(ones(N)),
        lambda: envs.send(ones(2), [0, 3]),
        lambda: envs.async_reset(),
        lambda: envs.reset(),
        lambda: envs.reset(options={"reset_mask": np.arange(N) == 1}),
        lambda: envs.observe(),
        lambda: envs.save_state(),
        lambda: envs.save_state(1),
        lambda: envs.load_state(b"", 3),
        lambda: envs.native.set_next_index(1, 5),
    ]
    for call in refused:
        with pytest.raises(PendingCallError, match="in flight"):
            call()
        assert envs.native.in_flight() == 2
    if envs.batch_size == N:
        with pytest.raises(PendingCallError):
            envs.step(ones(N))
    envs.send(ones(3), [0, 2, 4])
    observations, *rest = sound.step(ones(N))
    assert rows_of(envs) == {
        i: (digest(observations[i]), *(float(rest[0][i]), bool(rest[1][i]), bool(rest[2][i])))
        for i in range(N)
    }


BAD_ACTIONS = [[0, 2], [0, -1], [0.5, 0.0], [1], [[0, 1]], ["a", "b"], None]


@pytest.mark.parametrize("actions", BAD_ACTIONS, ids=repr)
@pytest.mark.parametrize("runner", RUNNERS)
def test_bad_actions_move_nothing_and_leave_those_in_flight_alone(
    runner: str, actions: Any
) -> None:
    envs, sound = make(runner), make("serial")
    envs.reset()
    sound.reset()
    envs.send(ones(2), [4, 0])
    with pytest.raises((InvalidActionError, ArgumentTypeError, ArgumentError)):
        envs.send(actions, [1, 2])
    assert envs.native.in_flight() == 2
    envs.send(ones(3), [1, 2, 3])
    batch = envs.drain()
    assert batch is not None
    assert batch[4]["env_id"].tolist() == [4, 0, 1, 2, 3]
    assert_same(batch[0], sound.step(ones(N))[0][[4, 0, 1, 2, 3]])


def test_a_bad_action_names_the_env_that_it_was_for() -> None:
    envs = make("batches of 2")
    envs.reset()
    with pytest.raises(InvalidActionError, match="env 4"):
        envs.send([0, 7], [2, 4])


ODD_IDS: list[tuple[Any, type[Exception] | tuple[type[Exception], ...]]] = [
    ([-1], ArgumentError),
    ([N], ArgumentError),
    ([2**70], ArgumentError),
    ([1, 1], ArgumentError),
    ([True], ArgumentTypeError),
    ([1.0], ArgumentTypeError),
    (np.array([1.0]), ArgumentTypeError),
    (np.array([True, False]), ArgumentTypeError),
    (np.array([[0, 1]]), ArgumentTypeError),
    (["1"], ArgumentTypeError),
    ("1", ArgumentTypeError),
    ([None], ArgumentTypeError),
    (1, ArgumentTypeError),
    (np.int64(1), ArgumentTypeError),
]


@pytest.mark.parametrize(("ids", "error"), ODD_IDS, ids=lambda v: repr(v)[:40])
@pytest.mark.parametrize("runner", RUNNERS)
def test_ids_of_envs_that_are_none_are_errors_and_nothing_moves(
    runner: str, ids: Any, error: Any
) -> None:
    envs = make(runner)
    envs.reset()
    before = states(envs)
    with pytest.raises(error):
        envs.send(ones(np.size(ids)), ids)
    assert envs.native.in_flight() == 0
    assert states(envs) == before


@pytest.mark.parametrize("kind", [list, tuple, np.array, np.uint8, np.int64, iter])
@pytest.mark.parametrize("runner", RUNNERS)
def test_ids_may_be_ints_of_any_kind(runner: str, kind: Any) -> None:
    envs = make(runner)
    envs.reset()
    ids = [np.uint8(2), np.int64(0)] if kind in (np.uint8, np.int64) else kind([2, 0])
    envs.send(ones(2), ids)
    batch = envs.drain()
    assert batch is not None
    assert batch[4]["env_id"].tolist() == [2, 0]


@pytest.mark.parametrize("empty", [[], np.array([], dtype=np.int64)], ids=["list", "array"])
@pytest.mark.parametrize("runner", RUNNERS)
def test_sending_no_envs_puts_none_in_flight(runner: str, empty: Any) -> None:
    envs = make(runner)
    envs.reset()
    envs.send(ones(0), empty)
    assert envs.native.in_flight() == 0
    with pytest.raises(NothingPendingError):
        envs.recv()


@pytest.mark.parametrize("runner", RUNNERS)
def test_sending_before_the_first_reset_is_an_error(runner: str) -> None:
    envs = make(runner)
    with pytest.raises(ResetNeededError):
        envs.send(ones(N))
    assert envs.native.in_flight() == 0


SLOW = {"fault": "sleep_in_every_step", "of_seed": SEED + 2, "sleep": 0.3}


@pytest.mark.parametrize("runner", ["batches of 2", "batches of 3, mask"])
def test_a_wait_that_is_given_up_loses_nothing(runner: str) -> None:
    envs = make(runner, FAULTY, **SLOW)
    sound = make("serial", FAULTY)
    envs.reset()
    sound.reset()
    envs.send(forces(1), [2])
    for timeout in (0, 0.0, 0.01, np.float32(0.01)):
        with pytest.raises(RecvTimeoutError, match="1 envs stay in flight") as raised:
            envs.recv(timeout=timeout)
        assert isinstance(raised.value, TimeoutError)
        with pytest.raises(RecvTimeoutError):
            envs.drain(timeout=timeout)
    assert envs.native.in_flight() == 1
    batch = envs.recv(timeout=20)
    expected = sound.step(forces(N))
    assert batch[4]["env_id"].tolist() == [2]
    assert_same(row(batch[0], 0), row(expected[0], 2))


@pytest.mark.parametrize("timeout", [-1, -0.1, float("nan"), float("inf"), 1e300])
@pytest.mark.parametrize("runner", ["serial", "batches of 2"])
def test_a_wait_of_no_time_at_all_is_an_error(runner: str, timeout: float) -> None:
    envs = make(runner)
    envs.async_reset()
    for wait in (envs.recv, envs.drain):
        with pytest.raises(ArgumentError, match="timeout is"):
            wait(timeout=timeout)
    assert envs.native.in_flight() == N


@pytest.mark.parametrize("timeout", ["1", [1], object()])
def test_a_wait_of_another_type_is_a_type_error(timeout: Any) -> None:
    envs = make("batches of 2")
    envs.async_reset()
    with pytest.raises(TypeError):
        envs.recv(timeout=timeout)


def test_an_env_that_is_slow_holds_up_no_other() -> None:
    """While it takes one step of 0.3 s, the others take many: counted, not timed."""
    envs = make("batches of 2", FAULTY, **SLOW, max_episode_steps=-1)
    envs.reset()
    envs.send(forces(N))
    steps = np.zeros(N, dtype=np.int64)
    while not steps[2]:
        ids = envs.recv()[4]["env_id"]
        steps[ids] += 1
        envs.send(forces(len(ids)), ids)
    assert steps[2] == 1
    assert (steps[[0, 1, 3, 4]] >= 20).all(), steps
    envs.drain()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("runner", RUNNERS)
def test_the_loop_of_envpools_users_plays_each_env_as_alone(runner: str, mode: str) -> None:
    envs = make(runner, autoreset_mode=mode, max_episode_steps=12)
    goal, taken = 40, np.zeros(N, dtype=np.int64)
    told: list[list[Any]] = [[] for _ in range(N)]
    envs.async_reset()
    awaits = np.ones(N, dtype=np.bool_)
    over = np.zeros(N, dtype=np.bool_)
    while (taken < goal).any():
        obs, rew, term, trunc, info = envs.recv()
        ids = info["env_id"]
        ended = term | trunc
        for at, i in enumerate(ids):
            if awaits[i]:
                told[i].append(digest(obs[at]))
                assert rew[at] == 0
            elif mode == "same_step" and ended[at]:
                told[i].append((digest(info["final_obs"][at]), rew[at], term[at], trunc[at]))
                told[i].append(digest(obs[at]))
            else:
                told[i].append((digest(obs[at]), rew[at], term[at], trunc[at]))
            taken[i] += 1
        awaits[ids] = ended if mode == "next_step" else False
        over[ids] = ended if mode == "disabled" else False
        if over[ids].any():
            # Only what is not in flight can be reset: the others' rows come first.
            go = ids[~over[ids]]
            envs.send(go % 2 if len(go) else ones(0), go)
            if envs.native.in_flight() == 0:
                first, _ = envs.reset(options={"reset_mask": over.copy()})
                back = np.flatnonzero(over)
                for i in back:
                    told[i].append(digest(first[i]))
                over[:] = False
                envs.send(back % 2, back)
        else:
            envs.send(ids % 2, ids)
        if mode == "disabled" and envs.native.in_flight() == 0:
            first, _ = envs.reset(options={"reset_mask": over.copy()})
            back = np.flatnonzero(over)
            for i in back:
                told[i].append(digest(first[i]))
            over[:] = False
            envs.send(back % 2, back)
    for i in range(N):
        single = corral.make("CartPole-v1", seed=SEED + i, max_episode_steps=12)
        expected: list[Any] = [digest(single.reset()[0])]
        while len(expected) < len(told[i]):
            seen, *flags, _ = single.step(i % 2)
            expected.append((digest(seen), *flags))
            if flags[1] or flags[2]:
                expected.append(digest(single.reset()[0]))
        assert told[i] == expected[: len(told[i])], f"env {i}"
        assert len(told[i]) >= 30


@pytest.mark.parametrize("runner", RUNNERS)
def test_reset_works_as_ever_with_masks_seeds_and_indices(runner: str) -> None:
    envs, sound = make(runner), make("serial")
    mask = np.array([True, False, True, False, False])
    hows: list[dict[str, Any]] = [
        {},
        {"seed": 9},
        {"options": {"index": 4}},
        {"options": {"reset_mask": mask}},
        {"options": {"reset_mask": mask, "index": [1, None, 3, None, None]}},
        {"seed": [None, 1, None, 2, 3]},
    ]
    for how in hows:
        assert_same(envs.reset(**how), sound.reset(**how), str(how))
        envs.send(ones(N))
        batch = envs.drain()
        assert batch is not None
        del batch[4]["env_id"], batch[4]["row_kind"]
        assert_same(batch, sound.step(ones(N)), str(how))
    assert_same(envs.observe(), sound.observe())


@pytest.mark.parametrize("runner", RUNNERS)
def test_async_reset_takes_seeds_and_indices_but_no_mask(runner: str) -> None:
    envs, sound = make(runner), make("serial")
    with pytest.raises(ArgumentError, match="and reset a reset_mask"):
        envs.async_reset(options={"reset_mask": np.ones(N, dtype=np.bool_)})
    with pytest.raises(ArgumentError):
        envs.async_reset(seed=-1)
    assert envs.native.in_flight() == 0
    hows: list[dict[str, Any]] = [{"seed": 3}, {"options": {"index": 8}}, {"seed": [1, 2, 3, 4, 5]}]
    for how in hows:
        envs.async_reset(**how)
        expected = sound.reset(**how)[0]
        assert {i: seen for i, (seen, *_) in rows_of(envs).items()} == {
            i: digest(expected[i]) for i in range(N)
        }


@pytest.mark.parametrize("runner", RUNNERS)
def test_send_reset_begins_the_envs_that_it_names(runner: str) -> None:
    envs, sound = make(runner), make("serial")
    envs.send_reset([4, 1])
    assert envs.native.in_flight() == 2
    with pytest.raises(PendingCallError, match="env 1 is in flight"):
        envs.send_reset([0, 1])
    expected = sound.reset()[0]
    assert {i: seen for i, (seen, *_) in rows_of(envs).items()} == {
        i: digest(expected[i]) for i in (1, 4)
    }
    hows: list[tuple[dict[str, Any], dict[str, Any]]] = [
        # An int is of env 0, whichever envs begin; a sequence is of the envs that begin.
        ({"seed": 3}, {"seed": 3}),
        ({"seed": [7, 8]}, {"seed": [None, None, 8, 7, None]}),
        ({"options": {"index": 5}}, {"options": {"index": 5}}),
        ({"options": {"index": [9, 2]}}, {"options": {"index": [None, None, 2, 9, None]}}),
    ]
    for how, of_all in hows:
        envs.send_reset(np.array([3, 2]), **how)
        expected = sound.reset(**of_all)[0]
        assert {i: seen for i, (seen, *_) in rows_of(envs).items()} == {
            i: digest(expected[i]) for i in (2, 3)
        }


@pytest.mark.parametrize(
    ("env_id", "how", "error", "text"),
    [
        ([N], {}, ArgumentError, f"env {N}"),
        ([1, 1], {}, ArgumentError, "twice"),
        ({1, 2}, {}, ArgumentTypeError, "env_id"),
        (1, {}, ArgumentTypeError, "env_id"),
        ([1, 2], {"seed": [1]}, ArgumentError, "1 seed values for 2 envs"),
        ([1, 2], {"seed": [1, 2, 3]}, ArgumentError, "3 seed values for 2 envs"),
        ([1], {"seed": 2**63 - 1}, ArgumentError, "too large"),
        ([1], {"options": {"reset_mask": np.ones(1, np.bool_)}}, ArgumentError, "takes an env_id"),
        ([1, 2], {"seed": 3, "options": {"index": 3}}, ArgumentError, "env 1 is given a seed and"),
    ],
)
def test_a_send_reset_that_makes_no_sense_moves_nothing(
    env_id: Any, how: dict[str, Any], error: type[Exception], text: str
) -> None:
    for runner in ("serial", "batches of 2"):
        envs = make(runner)
        with pytest.raises(error, match=text):
            envs.send_reset(env_id, **how)
        assert envs.native.in_flight() == 0


@pytest.mark.parametrize("runner", RUNNERS)
def test_recv_gives_from_min_rows_to_max_rows(runner: str) -> None:
    envs = make(runner)
    size = envs.batch_size
    for least, most, between in [
        (None, None, (size, size)),
        (2, 2, (2, 2)),
        (1, 4, (1, 4)),
        (3, None, (3, max(3, size))),
        (None, 1, (1, 1)),
        (10**9, 10**9, (N, N)),
        (1, 2**70, (1, N)),
        (0, 0, (1, 1)),
    ]:
        if most == 2**70:
            with pytest.raises(ArgumentError, match="max_rows"):
                envs.recv(max_rows=most)
            continue
        envs.send_reset()
        left = N
        while left:
            rows = len(envs.recv(min_rows=least, max_rows=most)[1])
            assert min(between[0], left) <= rows <= between[1]
            left -= rows
    envs.send_reset()
    for how, error, text in [
        ({"min_rows": 3, "max_rows": 2}, ArgumentError, "min_rows is 3 and max_rows 2"),
        ({"min_rows": -1}, ArgumentError, "min_rows"),
        ({"max_rows": 1.5}, ArgumentTypeError, "max_rows is an int"),
    ]:
        with pytest.raises(error, match=text):
            envs.recv(**how)
    assert envs.native.in_flight() == N


@pytest.mark.parametrize("runner", RUNNERS)
def test_rows_say_what_they_are(runner: str) -> None:
    def kinds() -> list[int]:
        batch = envs.drain()
        assert batch is not None
        kind = batch[4]["row_kind"]
        assert kind.dtype == np.uint8
        return kind.tolist()

    envs = make(runner, max_episode_steps=2)
    envs.send_reset()
    assert kinds() == [corral.RowKind.RESET] * N
    # Env 0 is begun again after each step, so that the others' episodes end before its own.
    for others in ("STEP", "STEP", "RESET", "STEP"):
        envs.send(ones(N))
        assert kinds() == [corral.RowKind.STEP] + [corral.RowKind[others]] * (N - 1)
        envs.send_reset([0])
        assert kinds() == [corral.RowKind.RESET]


@pytest.mark.parametrize("how", [{"on_failure": "mask"}, {"on_failure": "restart"}])
@pytest.mark.parametrize("runner", [{}, {"batch_size": 2}])
def test_rows_of_failures_and_rebuilt_envs_say_so(
    runner: dict[str, Any], how: dict[str, Any]
) -> None:
    envs = corral.make_vec(
        FAULTY, 2, seed=0, fault="error_in_step", of_seed=1, at_step=0, **runner, **how
    )
    envs.send_reset()
    envs.drain()
    envs.send(forces(2))
    batch = envs.drain()
    assert batch is not None
    assert batch[4]["row_kind"][0] == corral.RowKind.STEP
    assert batch[4]["_failed"].tolist() == [False, True]
    failed = [int(kind) for kind in batch[4]["row_kind"]]
    envs.send(forces(2))
    batch = envs.drain()
    assert batch is not None
    assert failed[1] == corral.RowKind.FAILED
    after = corral.RowKind.FAILED if how["on_failure"] == "mask" else corral.RowKind.RESTARTED
    assert batch[4]["row_kind"].tolist() == [corral.RowKind.STEP, after]


@pytest.mark.parametrize("runner", RUNNERS)
def test_closing_with_envs_in_flight_ends_them(runner: str) -> None:
    envs = make(runner)
    envs.async_reset()
    envs.close()
    for call in (envs.recv, envs.drain, envs.reset, envs.save_state, lambda: envs.send(ones(N))):
        with pytest.raises(ClosedError, match="closed"):
            call()
    envs.close()


@pytest.mark.parametrize("how", [{"batch_size": 1}, {"timeout": 60}, {"num_threads": 2}])
def test_closing_while_another_thread_waits_ends_its_wait(how: dict[str, Any]) -> None:
    envs = corral.make_vec(FAULTY, 2, seed=0, fault="sleep_in_every_step", sleep=1.0, **how)
    envs.reset()
    envs.send(forces(2))
    raised: list[BaseException] = []

    def wait() -> None:
        try:
            envs.recv()
        except BaseException as error:
            raised.append(error)

    waiter = threading.Thread(target=wait)
    waiter.start()
    time.sleep(0.1)
    began = time.monotonic()
    try:
        envs.close()
    except PendingCallError:
        # Its own thread is in the midst of a step: that one cannot be stopped.
        assert "num_threads" in how
    waiter.join(20)
    assert not waiter.is_alive()
    assert time.monotonic() - began < 20
    if "num_threads" not in how:
        assert [type(error) for error in raised] == [ClosedError]
    envs.close()


BAD_NUMBERS: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"num_threads": 0}, ArgumentError, "num_threads is 0: it must be from 1"),
    ({"num_threads": -1}, ArgumentError, "num_threads"),
    ({"num_threads": 10**6}, ArgumentError, "num_threads is 1000000"),
    ({"num_threads": 2**70}, ArgumentError, "num_threads"),
    ({"num_threads": 2.0}, ArgumentTypeError, "num_threads is an int"),
    ({"num_threads": True}, ArgumentTypeError, "num_threads is an int"),
    ({"num_threads": "2"}, ArgumentTypeError, "num_threads is an int"),
    ({"batch_size": 0}, ArgumentError, "batch_size is 0: it must be from 1 to num_envs, 5"),
    ({"batch_size": 6}, ArgumentError, "batch_size is 6: it must be from 1 to num_envs, 5"),
    ({"batch_size": -2}, ArgumentError, "batch_size"),
    ({"batch_size": 2.0}, ArgumentTypeError, "batch_size is an int"),
    ({"batch_size": True}, ArgumentTypeError, "batch_size is an int"),
    ({"timeout": 0}, ArgumentError, "timeout is 0"),
    ({"timeout": -1.0}, ArgumentError, "timeout is -1"),
    ({"timeout": float("nan")}, ArgumentError, "(?i)timeout is nan"),
    ({"timeout": float("inf")}, ArgumentError, "timeout is inf"),
    ({"timeout": 1e300}, ArgumentError, "timeout is"),
    ({"timeout": 1e-300}, ArgumentError, "timeout is"),
    ({"timeout": "1"}, TypeError, "timeout"),
    ({"timeout": True}, ArgumentTypeError, "timeout"),
    ({"reset_timeout": 0}, ArgumentError, "reset_timeout is 0"),
    ({"reset_timeout": -1.0}, ArgumentError, "reset_timeout is -1"),
    ({"reset_timeout": "1"}, ArgumentTypeError, "reset_timeout is a number of seconds"),
    ({"thread_affinity_offset": -2}, ArgumentError, "thread_affinity_offset"),
    ({"thread_affinity_offset": 1.5}, ArgumentTypeError, "thread_affinity_offset is an int"),
    ({"thread_affinity_offset": True}, ArgumentTypeError, "thread_affinity_offset is an int"),
    ({"on_failure": "ignore"}, ArgumentError, "'raise', 'restart' or 'mask', not 'ignore'"),
    ({"on_failure": None}, TypeError, "on_failure"),
    ({"max_restarts": -1}, (ArgumentError), "max_restarts"),
    ({"max_restarts": 1.5}, TypeError, "max_restarts"),
    ({"max_restarts": 2**40}, ArgumentError, "max_restarts"),
]


@pytest.mark.parametrize(("given", "error", "text"), BAD_NUMBERS, ids=lambda v: repr(v)[:40])
def test_arguments_that_make_no_sense_say_what_does(given: Any, error: Any, text: str) -> None:
    with pytest.raises(error, match=text):
        corral.make_vec("CartPole-v1", N, **given)


@pytest.mark.parametrize(
    "given",
    [
        {"num_threads": np.int64(2)},
        {"num_threads": 1024},
        {"batch_size": np.int32(2)},
        {"batch_size": N},
        {"timeout": 5},
        {"timeout": np.float32(0.5)},
        {"timeout": 1e9},
        {"timeout": 1e15},
        {"thread_affinity_offset": -1, "batch_size": 2},
        {"thread_affinity_offset": 10**6, "batch_size": 2, "num_threads": 2},
    ],
    ids=repr,
)
def test_arguments_that_make_sense_are_taken(given: dict[str, Any]) -> None:
    envs = corral.make_vec("CartPole-v1", N, seed=SEED, **given)
    assert envs.batch_size == given.get("batch_size", N)
    envs.async_reset()
    assert len(rows_of(envs)) == N
    envs.send(ones(N))
    assert len(rows_of(envs)) == N
    envs.close()
