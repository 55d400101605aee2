"""An env that panics or fails harms nobody else, says where it was, and is rebuilt."""

from __future__ import annotations

import functools
import gc
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import corral
from corral.errors import EnvError, ResetNeededError
from tests.support import FAULTY, MODES, assert_same, forces, row, run_python

SLOTS = 5
SICK = 2
SEED = 40

STEP_FAULTS = [
    ("panic_in_step", "panic", "a fault on demand"),
    ("error_in_step", "error", "a fault on demand"),
    ("incomplete_observation", "error", "1 of the observation's 4 leaves were written"),
    ("wrong_dtype", "panic", "declared with float32 and written with uint8"),
]


def sick(fault: str, mode: str = "next_step", **more: Any) -> corral.VectorEnv:
    """Only slot SICK has the fault, for only it has that seed."""
    arguments: dict[str, Any] = {"fault": fault, "of_seed": SEED + SICK, "seed": SEED, **more}
    return corral.make_vec(FAULTY, SLOTS, autoreset_mode=mode, **arguments)


def well(mode: str = "next_step") -> corral.VectorEnv:
    return corral.make_vec(FAULTY, SLOTS, autoreset_mode=mode, seed=SEED)


def others(batch: Any, slots: Any = None) -> Any:
    """The rows of the slots that are well, infos and finals with them."""
    keep = [slot for slot in range(SLOTS) if slot != SICK] if slots is None else slots

    def rows(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: rows(inner) for name, inner in value.items()}
        return value[keep]

    return tuple(rows(part) for part in batch)


def drop_absent(infos: dict[str, Any]) -> dict[str, Any]:
    """Without the keys that none of these rows has."""
    found: dict[str, Any] = {}
    for key, value in infos.items():
        mask = infos.get(f"_{key}", infos.get(key) if key.startswith("_") else None)
        if mask is not None and not np.any(mask):
            continue
        found[key] = drop_absent(value) if isinstance(value, dict) else value
    return found


def assert_others_same(got: Any, expected: Any, what: str) -> None:
    (*got_main, got_infos), (*main, infos) = others(got), others(expected)
    assert_same(tuple(got_main), tuple(main), what)
    assert_same(drop_absent(got_infos), drop_absent(infos), f"{what}: infos")


def assert_zero(value: Any, slot: int = SICK) -> None:
    """The failed row holds zeros, and no info."""
    if isinstance(value, dict):
        for inner in value.values():
            assert_zero(inner, slot)
    elif value.dtype == object:
        assert value[slot] is None
    else:
        assert not np.any(value[slot])


def push(k: int) -> dict[str, Any]:
    return forces(SLOTS, 0.1 * (k % 5), 1 + k % 3)


def fail(envs: corral.VectorEnv, call: Any) -> EnvError:
    with pytest.raises(EnvError) as raised:
        call()
    return raised.value


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("at_step", [0, 2])
@pytest.mark.parametrize(("fault", "cause", "message"), STEP_FAULTS)
def test_a_step_that_fails_is_reported_and_the_others_complete_theirs(
    fault: str, cause: str, message: str, at_step: int, mode: str
) -> None:
    envs, sound = sick(fault, mode, at_step=at_step), well(mode)
    assert_same(envs.reset(), sound.reset())
    for k in range(at_step):
        assert_same(envs.step(push(k)), sound.step(push(k)))
    error = fail(envs, lambda: envs.step(push(at_step)))
    (failure,) = error.failures
    assert failure.slot == SICK
    assert failure.seed == SEED + SICK
    assert failure.index is None
    assert failure.episode == 0
    assert failure.step == at_step
    assert failure.phase == "step"
    assert failure.cause == cause
    assert message in failure.message
    force = np.float32(0.1 * at_step)
    assert (
        failure.action
        == f"{{force: [{float_text(force)}, {float_text(force)}], gear: {1 + at_step}}}"
    )
    for part in (
        f"env {SICK}",
        "panicked in step" if cause == "panic" else "failed in step",
        f"seed {SEED + SICK}",
        "episode 0",
        f"step {at_step}",
        f"action {failure.action}",
        message,
        "reset these to rebuild them",
    ):
        assert part in str(error)
    assert error.batch is not None
    assert len(error.batch) == 5
    assert_others_same(error.batch, sound.step(push(at_step)), "the step of the others")
    assert_zero(error.batch[0])
    for part in error.batch[1:4]:
        assert part[SICK] == 0
    assert_marked(error.batch[4])
    assert_zero(error.batch[4])


def assert_marked(infos: dict[str, Any], mark: str = "failed") -> None:
    """The sick env's row is marked, and no other; takes the marks away."""
    mask = infos.pop(f"_{mark}")
    assert mask.dtype == np.bool_
    assert mask.tolist() == [slot == SICK for slot in range(SLOTS)]
    values = infos.pop(mark)
    assert [bool(value) for value in values] in (mask.tolist(), [False] * SLOTS)


def float_text(value: np.float32) -> str:
    return np.format_float_positional(value, trim="0")


@pytest.mark.parametrize("fault", [case[0] for case in STEP_FAULTS])
@pytest.mark.parametrize("how", ["full", "masked", "seed", "index"])
def test_the_next_reset_rebuilds_the_env_and_leaves_the_others_alone(how: str, fault: str) -> None:
    envs, sound = sick(fault), well()
    envs.reset()
    sound.reset()
    for k in range(2):
        envs.step(push(k))
        sound.step(push(k))
    error = fail(envs, lambda: envs.step(push(2)))
    sound.step(push(2))
    with pytest.raises(ResetNeededError, match=f"env {SICK} failed earlier"):
        envs.step(push(3))
    only = np.arange(SLOTS) == SICK
    with pytest.raises(ResetNeededError, match=f"env {SICK} has no observation to keep"):
        envs.reset(options={"reset_mask": ~only})
    if how == "full":
        got, expected = envs.reset(), sound.reset()
    elif how == "masked":
        got = envs.reset(options={"reset_mask": only})
        expected = sound.reset(options={"reset_mask": only})
        for slot in set(range(SLOTS)) - {SICK}:
            assert_same(row(got[0], slot), row(error.batch[0], slot), "kept")  # type: ignore[index]
    elif how == "seed":
        got, expected = envs.reset(seed=900), sound.reset(seed=900)
        assert_marked(got[1], "restarted")
        assert_same(got, expected, "a rebuilt env of a seed is as a fresh one")
    else:
        got = envs.reset(options={"index": 70})
        expected = sound.reset(options={"index": 70})
        assert_marked(got[1], "restarted")
        assert_same(got, expected, "an index is played as by a fresh env")
    assert_others_same(got, expected, "the reset of the others")
    if how in ("full", "masked"):
        # Rebuilt from another seed: the same one would only fail again.
        level = got[0]["level"][SICK]
        assert level not in (envs_level(SEED + SICK, episode) for episode in range(3))
    for k in range(30):
        batch, expected_batch = envs.step(push(k)), sound.step(push(k))
        assert_others_same(batch, expected_batch, f"step {k} after the reset")
    assert (batch[1] > 0).any()


def envs_level(seed: int, episode: int) -> np.float32:
    env = corral.make(FAULTY, seed=seed)
    for _ in range(episode + 1):
        observation, _ = env.reset()
    return np.float32(observation["level"])


def test_restarts_are_reproducible_and_each_has_its_own_stream() -> None:
    levels = []
    for _ in range(2):
        envs = sick("error_in_step", at_step=0, of_seed=-1)
        envs.reset()
        found = []
        for k in range(4):
            fail(envs, functools.partial(envs.step, push(k)))
            found.append(envs.reset()[0]["level"].tolist())
        levels.append(found)
    assert levels[0] == levels[1]
    assert len({level for found in levels[0] for level in found}) == 4 * SLOTS


def test_a_seeded_env_with_a_fault_fails_again_at_the_same_place() -> None:
    envs = sick("panic_in_step")
    texts = []
    for _ in range(2):
        envs.reset(seed=SEED)
        for k in range(2):
            envs.step(push(k))
        texts.append(fail(envs, lambda: envs.step(push(2))).failures)
    assert texts[0] == texts[1]


def test_a_failure_in_an_indexed_episode_names_the_index() -> None:
    envs = sick("error_in_step")
    envs.reset(options={"index": [10, 11, 12, 13, 14]})
    for k in range(2):
        envs.step(push(k))
    error = fail(envs, lambda: envs.step(push(2)))
    assert error.failures[0].index == 12
    assert "index 12, episode 0, step 2" in str(error)


@pytest.mark.parametrize("fault", ["panic_in_step", "error_in_step"])
def test_all_may_fail_at_once(fault: str) -> None:
    envs = sick(fault, of_seed=-1, at_step=1)
    envs.reset()
    envs.step(push(0))
    error = fail(envs, lambda: envs.step(push(1)))
    assert [failure.slot for failure in error.failures] == list(range(SLOTS))
    assert error.batch is not None
    assert not error.batch[1].any()
    envs.reset()
    envs.step(push(0))


BUILD = [("panic_in_build", "panic"), ("error_in_build", "error")]


@pytest.mark.parametrize(("fault", "cause"), BUILD)
def test_an_env_that_cannot_be_built_is_an_error_that_names_its_slot_and_seed(
    fault: str, cause: str
) -> None:
    with pytest.raises(EnvError) as raised:
        sick(fault)
    (failure,) = raised.value.failures
    assert (failure.slot, failure.seed) == (SICK, SEED + SICK)
    assert (failure.phase, failure.cause) == ("build", cause)
    assert raised.value.batch is None
    with pytest.raises(EnvError, match="env 0"):
        corral.make(FAULTY, fault=fault)


@pytest.mark.parametrize(("fault", "cause"), BUILD)
def test_a_seeded_reset_whose_build_fails_loses_that_slot_alone(fault: str, cause: str) -> None:
    envs = corral.make_vec(FAULTY, SLOTS, seed=0, fault=fault, of_seed=SEED + SICK)
    sound = corral.make_vec(FAULTY, SLOTS, seed=0)
    envs.reset()
    sound.reset()
    error = fail(envs, lambda: envs.reset(seed=SEED))
    (failure,) = error.failures
    assert (failure.slot, failure.seed, failure.cause) == (SICK, SEED + SICK, cause)
    assert error.batch is not None
    assert_others_same(error.batch, sound.reset(seed=SEED), "the reset of the others")
    assert_zero(error.batch[0])
    envs.reset(options={"reset_mask": np.arange(SLOTS) == SICK})
    envs.step(push(0))


RESET = [("panic_in_reset", "panic"), ("error_in_reset", "error")]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("fault", "cause"), RESET)
def test_a_reset_that_fails_loses_its_slot_alone(fault: str, cause: str, mode: str) -> None:
    envs, sound = sick(fault, mode, in_episode=0), well(mode)
    error = fail(envs, envs.reset)
    (failure,) = error.failures
    assert (failure.slot, failure.seed, failure.episode) == (SICK, SEED + SICK, 0)
    assert (failure.phase, failure.cause, failure.action) == ("reset", cause, None)
    assert error.batch is not None
    assert len(error.batch) == 2
    assert_others_same(error.batch, sound.reset(), "the reset of the others")
    assert_zero(error.batch[0])
    assert_marked(error.batch[1])
    assert_zero(error.batch[1])
    with pytest.raises(ResetNeededError, match=f"env {SICK} failed earlier"):
        envs.step(push(0))
    only = np.arange(SLOTS) == SICK
    got = envs.reset(options={"reset_mask": only})
    assert_same(others(got)[0], others(error.batch)[0], "kept")
    assert_others_same(envs.step(push(0)), sound.step(push(0)), "a step later")


@pytest.mark.parametrize("mode", ["next_step", "same_step"])
@pytest.mark.parametrize(("fault", "cause"), RESET)
def test_an_autoreset_that_fails_is_reported_and_the_others_go_on(
    fault: str, cause: str, mode: str
) -> None:
    envs, sound = sick(fault, mode), well(mode)
    assert_same(envs.reset(), sound.reset())
    error = None
    for k in range(20):
        expected = sound.step(push(k))
        try:
            got = envs.step(push(k))
        except EnvError as raised:
            error = raised
            break
        assert_same(got, expected, f"step {k}")
    assert error is not None
    (failure,) = error.failures
    assert (failure.slot, failure.seed, failure.episode) == (SICK, SEED + SICK, 1)
    assert (failure.phase, failure.cause, failure.action) == ("reset", cause, None)
    assert error.batch is not None
    assert_others_same(error.batch, expected, "the step of the others")
    assert_zero(error.batch[0])
    if mode == "same_step":
        # The episode itself ended well: what it ended with is there.
        infos = error.batch[4]
        assert infos["_final_obs"][SICK]
        assert_same(infos["final_obs"][SICK], expected[4]["final_obs"][SICK])
        assert_same(
            others([infos["final_info"]], [SICK]), others([expected[4]["final_info"]], [SICK])
        )
    with pytest.raises(ResetNeededError):
        envs.step(push(0))
    only = np.arange(SLOTS) == SICK
    envs.reset(options={"reset_mask": only})
    for k in range(20):
        expected = sound.step(push(k))
        assert_others_same(envs.step(push(k)), expected, f"step {k} after the reset")


def test_a_panic_in_render_is_an_error_that_names_the_env_and_harms_nothing() -> None:
    envs, sound = sick("panic_in_render", render_mode="rgb_array"), well()
    assert_same(envs.reset(), sound.reset())
    error = fail(envs, envs.render)
    assert "a fault on demand" in str(error)
    assert FAULTY in str(error)
    assert f"env {SICK}" in str(error)
    assert len(envs.render([0, 1, 3, 4]) or ()) == 4
    for k in range(10):
        assert_same(envs.step(push(k)), sound.step(push(k)), "it goes on as if nothing had been")


@pytest.mark.parametrize("make", ["vec", "single"])
def test_a_panic_in_close_is_an_error_once_and_the_env_is_closed(make: str) -> None:
    env: Any = (
        sick("panic_in_close") if make == "vec" else corral.make(FAULTY, fault="panic_in_close")
    )
    env.reset()
    error = fail(env, env.close)
    assert "a fault on demand" in str(error)
    assert FAULTY in str(error)
    assert f"env {SICK if make == 'vec' else 0}" in str(error)
    env.close()
    with pytest.raises(corral.errors.ClosedError):
        env.reset()


FAULTS = [
    "panic_in_build",
    "error_in_build",
    "panic_in_reset",
    "error_in_reset",
    "panic_in_step",
    "error_in_step",
    "panic_in_render",
    "panic_in_close",
    "incomplete_observation",
    "wrong_dtype",
]


@pytest.mark.parametrize("fault", FAULTS)
def test_nothing_is_printed(fault: str, capfd: pytest.CaptureFixture[str]) -> None:
    failed = 0
    for end in ("close", "drop"):
        envs: Any = None
        try:
            envs = corral.make_vec(FAULTY, 3, fault=fault, render_mode="rgb_array", in_episode=0)
            envs.reset()
            envs.render()
            for _ in range(4):
                envs.step(forces(3))
        except EnvError:
            failed += 1
        if envs is not None and end == "close":
            try:
                envs.close()
            except EnvError:
                failed += 1
        del envs
        gc.collect()
    assert failed >= 1
    assert capfd.readouterr() == ("", "")


def test_a_process_that_leaves_sick_envs_open_ends_in_silence() -> None:
    done = run_python(
        """
import corral
kept = []
for fault in ("none", "panic_in_step", "panic_in_close"):
    for make in (corral.make_vec, corral.make):
        env = make("testing/Faulty-v0", fault=fault)
        kept.append((env, env.reset()))
        cycle = [env]; cycle.append(cycle)
print("done")
"""
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")


def resident() -> int:
    """Bytes of this process's memory that are in RAM."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs Linux's /proc")
@pytest.mark.parametrize(
    ("id", "end"),
    [
        ("Maze-v0", "close"),
        ("Maze-v0", "drop"),
        ("Maze-v0", "cycle"),
        (FAULTY, "drop"),
        (FAULTY, "fail"),
    ],
)
def test_two_hundred_envs_made_and_ended_leave_memory_and_files_as_they_were(
    id: str, end: str
) -> None:
    fault = {"fault": "panic_in_step"} if end == "fail" else {}
    actions = forces(6) if id == FAULTY else np.ones(6, dtype=np.int64)

    def live() -> None:
        envs = corral.make_vec(id, 6, seed=0, autoreset_mode="same_step", **fault)
        kept: list[Any] = [envs.reset()]
        for _ in range(5):
            try:
                kept.append(envs.step(actions))
            except (EnvError, ResetNeededError) as error:
                kept.append(error)
        if end == "cycle":
            kept += [kept, envs]
        elif end == "close":
            envs.close()

    for _ in range(40):
        live()
    gc.collect()
    memory, files = resident(), open_files()
    for _ in range(200):
        live()
    gc.collect()
    # A Maze's batches are 0.4 MB: to leak those of all would take 80.
    assert resident() - memory < 8 << 20
    assert open_files() == files
