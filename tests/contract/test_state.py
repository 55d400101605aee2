"""`save_state` and `load_state`: the rest of the run, bit for bit, anywhere; or nothing changes."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import textwrap
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import corral
from corral.errors import (
    ArgumentError,
    ArgumentTypeError,
    ClosedError,
    EnvError,
    ResetNeededError,
    StateError,
    UnsupportedError,
)
from tests.matrix.test_matrix import action_of, stack
from tests.matrix.test_runners import timeless
from tests.support import FAULTY, MODES, ODD, Case, assert_same, digest, forces, row

N = 4
SEED = 90
STEPS = 1000
EVERY = 100
CASES = [
    Case("CartPole-v1", "CartPole-v1", 40),
    Case("Maze-v0", "Maze-v0", 30, {"size": 4}),
    Case(FAULTY, FAULTY, 9),
]
ELSEWHERE: list[dict[str, Any]] = [
    {"num_threads": 1},
    {"num_threads": 3},
    {"timeout": 30},
    {"batch_size": 1},
    {"batch_size": 3, "num_threads": 2},
    {"on_failure": "restart"},
    {"on_failure": "mask", "timeout": 30},
]


def make(case: Case, mode: str, **more: Any) -> corral.VectorEnv:
    return case.make_vec(N, mode, episode_statistics=True, **more)


def one_step(envs: corral.VectorEnv, case: Case, k: int, over: Any) -> Any:
    """Step k of all envs and what it gave; `over` are those that the mode leaves to be reset."""
    told: list[Any] = []
    if over.any():
        told.append(digest(envs.reset(options={"reset_mask": over.copy()})))
    actions = stack([action_of(case, i, k) for i in range(N)])
    if envs.batch_size < N:
        envs.send(actions)
        batch = envs.drain()
        assert batch is not None
        assert batch[4].pop("env_id").tolist() == list(range(N))
        del batch[4]["row_kind"]
    else:
        batch = envs.step(actions)
    ended = batch[2] | batch[3]
    over[:] = ended if envs.metadata["autoreset_mode"].value == "Disabled" else False
    told.append(digest((*batch[:4], timeless(batch[4]))))
    return told


def long_run(case: Case, mode: str) -> tuple[list[Any], dict[int, tuple[bytes, Any]]]:
    """What every step gave, and the states on the way."""
    envs = make(case, mode, seed=SEED, num_threads=1)
    envs.reset()
    over, told, saved = np.zeros(N, dtype=np.bool_), [], {}
    for k in range(STEPS):
        if k % EVERY == 50:
            saved[k] = envs.save_state(), over.copy()
        told.append(one_step(envs, case, k, over))
    saved[STEPS] = envs.save_state(), over.copy()
    return told, saved


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_run_taken_up_elsewhere_goes_on_bit_for_bit(case: Case, mode: str) -> None:
    told, saved = long_run(case, mode)
    assert "episode" in repr(told)
    for at, (k, (state, over)) in enumerate(sorted(saved.items())[:-1]):
        how = ELSEWHERE[at % len(ELSEWHERE)]
        envs = make(case, mode, seed=at, **how)
        envs.load_state(state)
        assert envs.save_state() == state
        over = over.copy()
        for later in range(k, k + EVERY if k + EVERY < STEPS else STEPS):
            assert one_step(envs, case, later, over) == told[later], f"{how}: step {later} from {k}"
        if k + EVERY in saved:
            assert envs.save_state() == saved[k + EVERY][0]
        elif k + EVERY >= STEPS:
            assert envs.save_state() == saved[STEPS][0]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_another_process_takes_up_the_run(case: Case, tmp_path: Path) -> None:
    for mode in MODES:
        envs = make(case, mode, seed=SEED)
        envs.reset()
        over = np.zeros(N, dtype=np.bool_)
        for k in range(57):
            one_step(envs, case, k, over)
        (tmp_path / f"{mode}.state").write_bytes(envs.save_state())
        np.save(tmp_path / f"{mode}.npy", over)
        told = [one_step(envs, case, k, over) for k in range(57, 157)]
        (tmp_path / f"{mode}.told").write_text(repr(told))
        (tmp_path / f"{mode}.after").write_bytes(envs.save_state())
    code = f"""
        import pathlib, sys
        import numpy as np
        from tests.contract.test_state import CASES, MODES, make, one_step
        case, here = CASES[{CASES.index(case)}], pathlib.Path({str(tmp_path)!r})
        for mode in MODES:
            envs = make(case, mode, num_threads=2)
            envs.load_state((here / f"{{mode}}.state").read_bytes())
            over = np.load(here / f"{{mode}}.npy")
            told = [one_step(envs, case, k, over) for k in range(57, 157)]
            assert repr(told) == (here / f"{{mode}}.told").read_text(), mode
            assert envs.save_state() == (here / f"{{mode}}.after").read_bytes(), mode
        print("the same")
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=Path(__file__).parents[2],
    )
    assert (done.returncode, done.stdout) == (0, "the same\n"), done.stderr[-600:]


@pytest.mark.parametrize("how", ELSEWHERE, ids=repr)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_one_envs_state_branches_into_others(case: Case, how: dict[str, Any]) -> None:
    envs = make(case, "next_step", seed=SEED, **how)
    envs.reset()
    over = np.zeros(N, dtype=np.bool_)
    for k in range(13):
        one_step(envs, case, k, over)
    before = envs.observe()
    state = envs.save_state(1)
    assert state == envs.native.save(1)
    for env in (0, np.int64(3)):
        envs.load_state(state, env)
    seen = envs.observe()
    for i, source in enumerate([1, 1, 2, 1]):
        assert_same(row(seen, i), row(before, source))
    assert envs.save_state(0) == envs.save_state(1) == envs.save_state(3) == state
    assert envs.save_state(2) != state
    for k in range(20):
        actions = stack([action_of(case, 9, k)] * N)
        envs.send(actions)
        batch = envs.drain()
        assert batch is not None
        for i in (0, 3):
            assert_same(row(batch[0], i), row(batch[0], 1))
            assert [part[i] for part in batch[1:4]] == [part[1] for part in batch[1:4]]


def test_observe_shows_what_is_there_and_changes_nothing() -> None:
    envs = corral.make_vec(FAULTY, N, seed=SEED)
    with pytest.raises(ResetNeededError):
        envs.observe()
    first, _ = envs.reset()
    before = envs.save_state()
    assert_same(envs.observe(), first)
    assert envs.save_state() == before
    seen, *_ = envs.step(forces(N))
    assert_same(envs.observe(), seen)


def patched(state: bytes, old: bytes, new: bytes) -> bytes:
    """Another content under a right checksum, as another version would write it."""
    assert len(old) == len(new)
    inner = state[:-4].replace(old, new, 1)
    assert inner != state[:-4]
    return inner + zlib.crc32(inner).to_bytes(4, "little")


def made(**how: Any) -> corral.VectorEnv:
    envs = corral.make_vec("Maze-v0", how.pop("n", N), seed=7, **how)
    envs.reset()
    for k in range(5):
        envs.send(np.full(envs.num_envs, k % 5))
        envs.drain()
    return envs


def flipped(state: bytes, at: int) -> bytes:
    return state[:at] + bytes([state[at] ^ 1]) + state[at + 1 :]


def faulty() -> corral.VectorEnv:
    envs = corral.make_vec(FAULTY, N)
    envs.reset()
    return envs


def bad_states() -> dict[str, Any]:
    good = made().save_state()
    version = corral.__version__.encode()
    other = bytes([version[0] + 1]) + version[1:]
    return {
        "another env": faulty().save_state(),
        "another config": made(size=5).save_state(),
        "fewer envs": made(n=N - 1).save_state(),
        "more envs": made(n=N + 1).save_state(),
        "one env's": made().save_state(0),
        "another version": patched(good, b"corral " + version, b"corral " + other),
        "one env's of another kind": patched(good, b"\x03env", b"\x03abc"),
        "empty": b"",
        "four bytes": b"abcd",
        "zeros": bytes(64),
        "cut by one byte": good[:-1],
        "cut in half": good[: len(good) // 2],
        "one byte more": good + b"\0",
        "a flipped bit at the start": flipped(good, 0),
        "a flipped bit in the middle": flipped(good, len(good) // 2),
        "a flipped bit in the checksum": flipped(good, len(good) - 1),
        "a length beyond all memory": (lambda b: b + zlib.crc32(b).to_bytes(4, "little"))(
            b"\xff" * 16
        ),
    }


@pytest.mark.parametrize(
    "how", [{"num_threads": 1}, {"num_threads": 2}, {"batch_size": 2}, {"on_failure": "mask"}]
)
@pytest.mark.parametrize("what", bad_states())
def test_a_state_that_does_not_belong_here_is_refused_and_nothing_changes(
    what: str, how: dict[str, Any]
) -> None:
    envs = made(**how)
    before = envs.save_state()
    with pytest.raises(StateError) as raised:
        envs.load_state(bad_states()[what])
    assert str(raised.value)
    assert envs.save_state() == before


@pytest.mark.parametrize(
    "wrong", ["text", None, 5, [1], object()], ids=lambda wrong: type(wrong).__name__
)
def test_a_state_that_is_no_bytes_is_a_type_error(wrong: Any) -> None:
    envs = made()
    before = envs.save_state()
    for env in (None, 1):
        with pytest.raises(TypeError):
            envs.load_state(wrong, env)
    with pytest.raises(TypeError):
        corral.make("Maze-v0").load_state(wrong)
    assert envs.save_state() == before


@pytest.mark.parametrize("kind", [bytearray, memoryview])
def test_a_state_may_be_in_any_buffer_of_bytes_or_is_a_type_error(kind: Any) -> None:
    envs, other = made(), corral.make_vec("Maze-v0", N, seed=1)
    try:
        other.load_state(kind(envs.save_state()))
    except TypeError:
        return
    assert other.save_state() == envs.save_state()


def test_every_flipped_bit_is_seen() -> None:
    envs = corral.make_vec("CartPole-v1", 1, seed=0)
    envs.reset()
    state = envs.save_state()
    for at in range(len(state)):
        with pytest.raises(StateError):
            envs.load_state(flipped(state, at))
    for length in range(len(state)):
        with pytest.raises(StateError):
            envs.load_state(state[:length])
    assert envs.save_state() == state


@pytest.mark.parametrize(
    ("env", "error"),
    [
        (-1, ArgumentError),
        (N, ArgumentError),
        (2**70, ArgumentError),
        (1.0, ArgumentTypeError),
        ("1", ArgumentTypeError),
        (True, ArgumentTypeError),
    ],
)
def test_an_env_that_does_not_exist_has_no_state(env: Any, error: type[Exception]) -> None:
    envs = made()
    state, before = envs.save_state(0), envs.save_state()
    with pytest.raises(error):
        envs.save_state(env)
    with pytest.raises(error):
        envs.load_state(state, env)
    assert envs.save_state() == before


def test_an_env_that_cannot_save_says_so() -> None:
    envs = corral.make_vec(ODD, 2, autoreset_mode="same_step")
    envs.reset()
    with pytest.raises(UnsupportedError, match=f"{ODD} cannot"):
        envs.save_state()
    with pytest.raises((UnsupportedError, StateError)):
        envs.load_state(b"")


def test_a_closed_env_has_no_state() -> None:
    envs, single = made(), corral.make("CartPole-v1", seed=0)
    state = envs.save_state()
    envs.close()
    single.close()
    for call in (envs.save_state, lambda: envs.load_state(state), single.save_state):
        with pytest.raises(ClosedError):
            call()


@pytest.mark.parametrize("mode", MODES)
def test_the_state_of_envs_that_await_their_first_reset_is_one_too(mode: str) -> None:
    envs = corral.make_vec("CartPole-v1", N, seed=3, autoreset_mode=mode)
    other = corral.make_vec("CartPole-v1", N, seed=4, autoreset_mode=mode)
    other.reset()
    other.load_state(envs.save_state())
    with pytest.raises(ResetNeededError):
        other.observe()
    with pytest.raises(ResetNeededError):
        other.step(np.zeros(N, dtype=np.int64))
    assert_same(other.reset(), envs.reset())


@pytest.mark.parametrize("policy", ["raise", "restart", "mask"])
@pytest.mark.parametrize("mode", MODES)
def test_the_state_of_an_env_that_failed_is_taken_up_as_it_is(mode: str, policy: str) -> None:
    """Lost stays lost, restarted stays restarted: both runs go on alike."""
    config = {"fault": "error_in_step", "of_seed": 61, "at_step": 2}

    def make() -> corral.VectorEnv:
        return corral.make_vec(FAULTY, 3, seed=60, autoreset_mode=mode, on_failure=policy, **config)

    def step(envs: corral.VectorEnv, k: int) -> Any:
        try:
            return digest(envs.step(forces(3, 0.1 * (k % 3))))
        except EnvError as error:
            return [failure.slot for failure in error.failures]
        except ResetNeededError:
            return digest(envs.reset())

    envs = make()
    envs.reset()
    for k in range(3):
        step(envs, k)
    other = make()
    other.load_state(envs.save_state())
    assert other.save_state() == envs.save_state()
    for k in range(3, 15):
        got, expected = step(other, k), step(envs, k)
        assert repr(got) == repr(expected), f"step {k}"
    assert other.save_state() == envs.save_state()


@pytest.mark.parametrize("there", ["raise", "restart", "mask"])
@pytest.mark.parametrize("here", ["raise", "restart", "mask"])
def test_a_run_with_an_env_that_failed_is_taken_up_under_any_policy(here: str, there: str) -> None:
    config = {"fault": "error_in_step", "of_seed": 61, "at_step": 2}
    envs, other = (
        corral.make_vec(FAULTY, 3, seed=60, on_failure=policy, **config) for policy in (here, there)
    )
    envs.reset()
    for k in range(3):
        with contextlib.suppress(EnvError):
            envs.step(forces(3, 0.1 * k))
    other.load_state(envs.save_state())
    assert_same(other.reset(), envs.reset())
    for k in range(10):
        step = forces(3, 0.1 * (k % 3))
        assert_same(other.step(step), envs.step(step))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_single_env_saves_and_loads_and_shows_where_it_is(case: Case) -> None:
    env, other = case.make_single(seed=5), case.make_single(seed=6)
    env.reset()
    k = 0
    for _ in range(8):
        if any(env.step(action_of(case, 0, k))[2:4]):
            env.reset()
        k += 1
    state = env.save_state()
    assert isinstance(state, bytes)
    expected = [digest(env.step(action_of(case, 0, k)))]
    seen = other.load_state(state)
    assert seen in env.observation_space
    assert other.save_state() == state
    assert [digest(other.step(action_of(case, 0, k)))] == expected
    assert other.save_state() == env.save_state()
    wide = case.make_vec(2, "disabled", seed=1)
    wide.load_state(state, 1)
    assert wide.save_state(1) == state
    with pytest.raises(StateError):
        other.load_state(b"none")
    assert other.save_state() == env.save_state()


def test_a_state_says_what_is_wrong_with_it() -> None:
    texts = {}
    for what, state in bad_states().items():
        with pytest.raises(StateError) as raised:
            made().load_state(state)
        texts[what] = str(raised.value)
    assert "another env" in texts["another env"]
    assert FAULTY in texts["another env"]
    assert "another config" in texts["another config"]
    assert "3 envs" in texts["fewer envs"]
    assert "version" in texts["another version"]
    assert "no state, or not all of it" in texts["cut by one byte"]


def test_one_envs_state_of_another_version_is_refused() -> None:
    envs = made()
    before = envs.save_state()
    version = corral.__version__.encode()
    other = bytes([version[0] + 1]) + version[1:]
    state = patched(envs.save_state(1), b"corral " + version, b"corral " + other)
    with pytest.raises(StateError, match="version"):
        envs.load_state(state, 1)
    assert envs.save_state() == before
