"""What becomes of envs that fail, under every policy and runner: nothing of the others' changes.

Slot SICK alone has the fault, for only it has that seed; a rebuilt one has another, and is well.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import corral
from corral.errors import (
    ArgumentError,
    EnvError,
    EnvTimeoutError,
    ResetNeededError,
    SlotFailure,
)
from tests.support import FAULTY, MODES, assert_same, digest, forces, row

SLOTS = 4
SICK = 2
SEED = 40
AT = 1
PATIENCE = 0.2

RUNNERS: dict[str, dict[str, Any]] = {
    "serial": {"num_threads": 1},
    "threads": {"num_threads": 2},
    "batches": {"batch_size": 2, "num_threads": 2},
    "timeout": {"timeout": PATIENCE, "num_threads": 2},
    "batches and timeout": {"batch_size": 3, "timeout": PATIENCE, "num_threads": 2},
}
FAULTS = ["panic_in_step", "error_in_step", "sleep_in_step"]
RESET_FAULTS = ["panic_in_reset", "error_in_reset", "sleep_in_reset"]
CAUSE = {"panic": "panic", "error": "error", "sleep": "silence"}
POLICIES = ["raise", "restart", "mask"]


def cells(faults: list[str]) -> list[Any]:
    """Silence is a fault only where there is a timeout."""
    return [
        pytest.param(fault, runner, id=f"{fault}-{runner}")
        for fault in faults
        for runner in RUNNERS
        if "timeout" in runner or not fault.startswith("sleep")
    ]


def sick(fault: str, mode: str, runner: str, policy: str, **more: Any) -> corral.VectorEnv:
    arguments: dict[str, Any] = {
        "fault": fault,
        "of_seed": SEED + SICK,
        "at_step": AT,
        "in_episode": 0,
        "sleep": 2.0,
        "seed": SEED,
        "on_failure": policy,
        **RUNNERS[runner],
        **more,
    }
    return corral.make_vec(FAULTY, SLOTS, autoreset_mode=mode, **arguments)


def well(mode: str) -> corral.VectorEnv:
    return corral.make_vec(FAULTY, SLOTS, autoreset_mode=mode, seed=SEED, num_threads=1)


def push(k: int) -> dict[str, Any]:
    return forces(SLOTS, 0.1 * (k % 5), 1 + k % 3)


def step(envs: corral.VectorEnv, k: int) -> Any:
    """Whether by `step` or by `send` and `drain`."""
    if envs.batch_size == SLOTS:
        return envs.step(push(k))
    envs.send(push(k))
    try:
        batch = envs.drain()
    except EnvError as error:
        if error.batch is not None:
            del error.batch[4]["env_id"], error.batch[4]["row_kind"]
        raise
    assert batch is not None
    assert batch[4].pop("env_id").tolist() == list(range(SLOTS))
    del batch[4]["row_kind"]
    return batch


def of_slot(value: Any, at: int) -> Any:
    """A row of a result, infos without their absent ones and marks with them."""
    if isinstance(value, dict):
        return {
            name: of_slot(inner, at)
            for name, inner in value.items()
            if not name.startswith("_") and (f"_{name}" not in value or value[f"_{name}"][at])
        }
    return digest(value[at])


def assert_others_same(got: Any, expected: Any, what: str) -> None:
    for slot in set(range(SLOTS)) - {SICK}:
        ours, theirs = ([of_slot(part, slot) for part in result] for result in (got, expected))
        assert ours == theirs, f"{what}: env {slot}"


def is_zero(value: Any) -> bool:
    return all(is_zero(v) for v in value.values()) if isinstance(value, dict) else not np.any(value)


def disabled_resets(envs: corral.VectorEnv, batch: Any) -> None:
    """In DISABLED mode: begins the next episodes of those that are over."""
    over = batch[2] | batch[3]
    if envs.native.autoreset_mode == "disabled" and over.any():
        envs.reset(options={"reset_mask": over})


def failure_of(infos: dict[str, Any]) -> SlotFailure:
    assert infos["_failed"].tolist() == [slot == SICK for slot in range(SLOTS)]
    assert [f is not None for f in infos["failed"]] == infos["_failed"].tolist()
    failure = infos["failed"][SICK]
    assert isinstance(failure, SlotFailure)
    assert failure.slot == SICK
    assert failure.seed == SEED + SICK
    return failure


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("fault", "runner"), cells(FAULTS))
def test_raise_a_step_that_fails_is_raised_with_the_others_results(
    fault: str, runner: str, mode: str
) -> None:
    envs, sound = sick(fault, mode, runner, "raise"), well(mode)
    assert_same(envs.reset(), sound.reset())
    for k in range(AT):
        assert_same(step(envs, k), sound.step(push(k)))
    with pytest.raises(EnvError) as raised:
        step(envs, AT)
    error = raised.value
    silent = fault.startswith("sleep")
    assert isinstance(error, EnvTimeoutError) == isinstance(error, TimeoutError) == silent
    (failure,) = error.failures
    assert (failure.slot, failure.seed, failure.step) == (SICK, SEED + SICK, AT)
    assert (failure.phase, failure.cause) == ("step", CAUSE[fault.split("_")[0]])
    assert failure.action is not None
    assert failure.text in str(error)
    assert error.batch is not None
    assert_others_same(error.batch, sound.step(push(AT)), "the step of the others")
    assert is_zero(row(error.batch[0], SICK))
    assert error.batch[1][SICK] == 0
    with pytest.raises(ResetNeededError, match=f"env {SICK} failed earlier"):
        step(envs, AT)
    assert envs.native.in_flight() == 0
    got = envs.reset(options={"reset_mask": np.arange(SLOTS) == SICK})
    assert got[1]["_restarted"].tolist() == [slot == SICK for slot in range(SLOTS)]
    for k in range(2, 16):
        batch, expected = step(envs, k), sound.step(push(k))
        assert_others_same(batch, expected, f"step {k}")
        # The rebuilt env's episodes are not the sound one's.
        disabled_resets(envs, batch)
        disabled_resets(sound, expected)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("fault", "runner"), cells(FAULTS))
def test_restart_a_step_that_fails_ends_its_episode_and_the_mode_begins_the_next(
    fault: str, runner: str, mode: str
) -> None:
    envs, sound = sick(fault, mode, runner, "restart"), well(mode)
    assert_same(envs.reset(), sound.reset())
    for k in range(AT):
        assert_same(step(envs, k), sound.step(push(k)))
    batch = step(envs, AT)
    assert_others_same(batch, sound.step(push(AT)), "the step of the others")
    observations, rewards, terminated, truncated, infos = batch
    assert (rewards[SICK], terminated[SICK], truncated[SICK]) == (0, False, True)
    failure = failure_of(infos)
    assert (failure.phase, failure.step) == ("step", AT)
    assert failure.cause == CAUSE[fault.split("_")[0]]
    if mode == "same_step":
        # A rebuilt env's first observation; nobody saw the final one.
        assert observations["count"][SICK] == 0
        assert observations["level"][SICK] > 0
        assert infos["_restarted"][SICK]
        assert infos["_final_obs"][SICK]
        assert is_zero(infos["final_obs"][SICK])
    else:
        assert is_zero(row(observations, SICK))
        assert "restarted" not in infos
    if mode == "disabled":
        with pytest.raises(ResetNeededError):
            step(envs, 2)
        mask = np.arange(SLOTS) == SICK
        seen, infos = envs.reset(options={"reset_mask": mask})
        assert infos["_restarted"].tolist() == mask.tolist()
        assert_same(row(seen, 0), row(observations, 0))
    elif mode == "next_step":
        expected = sound.step(push(2))
        seen, rewards, terminated, truncated, infos = batch = step(envs, 2)
        assert_others_same(batch, expected, "the step after")
        assert infos["_restarted"].tolist() == infos["restarted"].tolist()
        assert infos["restarted"].tolist() == [slot == SICK for slot in range(SLOTS)]
        assert (rewards[SICK], terminated[SICK], truncated[SICK]) == (0, False, False)
        assert seen["count"][SICK] == 0
        assert seen["level"][SICK] > 0
        assert "failed" not in infos
    for k in range(3 if mode == "next_step" else 2, 20):
        batch, expected = step(envs, k), sound.step(push(k))
        assert_others_same(batch, expected, f"step {k}")
        assert "restarted" not in batch[4]
        disabled_resets(envs, batch)
        disabled_resets(sound, expected)
    assert (batch[1] > 0).any()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("fault", "runner"), cells(FAULTS))
def test_mask_a_step_that_fails_leaves_zeros_until_a_reset(
    fault: str, runner: str, mode: str
) -> None:
    envs, sound = sick(fault, mode, runner, "mask"), well(mode)
    assert_same(envs.reset(), sound.reset())
    for k in range(AT):
        assert_same(step(envs, k), sound.step(push(k)))
    only = np.arange(SLOTS) == SICK
    for k in range(AT, 14):
        batch, expected = step(envs, k), sound.step(push(k))
        assert_others_same(batch, expected, f"step {k}")
        observations, rewards, terminated, truncated, infos = batch
        assert is_zero(row(observations, SICK))
        assert rewards[SICK] == 0
        assert not terminated[SICK]
        assert truncated[SICK] == (k == AT)
        assert infos["_failed"].tolist() == only.tolist()
        if k == AT:
            failure_of(infos)
        else:
            # What happened was told once.
            assert infos["failed"].tolist() == [None] * SLOTS
        disabled_resets(envs, (*batch[:2], batch[2] & ~only, batch[3] & ~only))
        disabled_resets(sound, expected)
    seen, infos = envs.reset(options={"reset_mask": only})
    assert infos["_restarted"].tolist() == only.tolist()
    assert "failed" not in infos
    assert seen["level"][SICK] > 0
    batch = step(envs, 0)
    assert "failed" not in batch[4]
    assert batch[1][SICK] > 0


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("fault", "runner"), cells(RESET_FAULTS))
def test_a_first_reset_that_fails(fault: str, runner: str, mode: str, policy: str) -> None:
    envs, sound = sick(fault, mode, runner, policy), well(mode)
    expected = sound.reset()
    only = np.arange(SLOTS) == SICK
    if policy == "raise":
        with pytest.raises(EnvError) as raised:
            envs.reset()
        (failure,) = raised.value.failures
        assert raised.value.batch is not None
        got = raised.value.batch
    else:
        got = envs.reset()
        failure = failure_of(got[1])
    assert_others_same(got, expected, "the reset of the others")
    assert (failure.phase, failure.cause) == ("reset", CAUSE[fault.split("_")[0]])
    assert failure.action is None
    if policy == "restart":
        # Tried again at once.
        assert got[1]["_restarted"].tolist() == only.tolist()
        assert got[0]["level"][SICK] > 0
    else:
        assert is_zero(row(got[0], SICK))
    if policy == "raise":
        with pytest.raises(ResetNeededError):
            step(envs, 0)
        envs.reset(options={"reset_mask": only})
    batch = step(envs, 0)
    assert_others_same(batch, sound.step(push(0)), "a step later")
    if policy == "mask":
        assert batch[4]["_failed"].tolist() == only.tolist()
        assert is_zero(row(batch[0], SICK))
    else:
        assert batch[1][SICK] > 0
        assert batch[0]["count"][SICK] == 1


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("mode", ["next_step", "same_step"])
@pytest.mark.parametrize(("fault", "runner"), cells(RESET_FAULTS))
def test_an_autoreset_that_fails(fault: str, runner: str, mode: str, policy: str) -> None:
    envs, sound = sick(fault, mode, runner, policy, in_episode=1), well(mode)
    assert_same(envs.reset(), sound.reset())
    got: Any = None
    failure: SlotFailure | None = None
    for k in range(20):
        expected = sound.step(push(k))
        try:
            got = step(envs, k)
        except EnvError as error:
            assert policy == "raise"
            got, failure = error.batch, error.failures[0]
        if "_failed" in got[4]:
            break
        assert_same(got, expected, f"step {k}")
    assert_others_same(got, expected, "the step of the others")
    infos = got[4]
    failures = infos["failed"] if failure is None else [failure]
    failure_phase = next(found.phase for found in failures if found is not None)
    assert infos["_failed"].tolist() == [slot == SICK for slot in range(SLOTS)]
    if mode == "next_step":
        # The episode had ended before: it is not ended once more.
        assert not got[2][SICK]
        assert not got[3][SICK]
        assert failure_phase == "reset"
    elif fault.startswith("sleep"):
        # How the episode ended, only the env that is silent knows.
        assert got[3][SICK] or policy == "raise"
    else:
        # The episode itself ended well: its end is there, whatever came of the next.
        assert_same(infos["final_obs"][SICK], expected[4]["final_obs"][SICK])
        assert [part[SICK] for part in got[1:4]] == [part[SICK] for part in expected[1:4]]
    if policy == "restart":
        assert infos["_restarted"][SICK]
        assert got[0]["count"][SICK] == 0
        assert got[0]["level"][SICK] > 0
    else:
        assert is_zero(row(got[0], SICK))
    if policy == "raise":
        envs.reset(options={"reset_mask": np.arange(SLOTS) == SICK})
    for k in range(5):
        assert_others_same(step(envs, k), sound.step(push(k)), f"{k} steps later")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("runner", ["serial", "threads", "batches"])
def test_an_env_that_fails_again_and_again_is_raised_after_max_restarts(
    runner: str, mode: str
) -> None:
    envs = sick("error_in_step", mode, runner, "restart", of_seed=-1, at_step=0, max_restarts=3)
    envs.reset()
    failed = 0

    def play() -> None:
        nonlocal failed
        for k in range(20):
            failed += "failed" in step(envs, k)[4]
            if mode == "disabled":
                envs.reset()

    with pytest.raises(EnvError, match=r"restarted 3 times.*max_restarts") as raised:
        play()
    assert failed == 3
    assert {failure.slot for failure in raised.value.failures} == set(range(SLOTS))
    # A reset by the user begins again.
    envs.reset(seed=1)


def test_max_restarts_of_none_raises_at_once() -> None:
    envs = sick("error_in_step", "next_step", "serial", "restart", max_restarts=0)
    envs.reset()
    step(envs, 0)
    with pytest.raises(EnvError, match="max_restarts"):
        step(envs, 1)


def test_ends_of_episodes_between_restarts_forgive_them() -> None:
    """An env that fails in the second episode of every life, restarted for ever."""
    envs = corral.make_vec(
        FAULTY, 2, seed=0, fault="error_in_reset", in_episode=1, on_failure="restart",
        max_restarts=1, autoreset_mode="same_step",
    )  # fmt: skip
    envs.reset()
    restarts = 0
    for _ in range(150):
        infos = envs.step(forces(2))[4]
        restarts += int(np.sum(infos.get("_restarted", 0)))
    assert restarts > 10


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("runner", RUNNERS)
def test_evaluate_raises_where_an_env_fails_whatever_the_policy(runner: str, policy: str) -> None:
    envs = sick("error_in_step", "next_step", runner, policy, of_seed=-1)
    with pytest.raises(EnvError, match="a fault on demand"):
        corral.evaluate(lambda o: forces(len(o["level"])), envs, range(9))


@pytest.mark.parametrize("policy", POLICIES)
def test_an_env_of_the_policy_that_never_fails_evaluates_alike(policy: str) -> None:
    results = [
        corral.evaluate(
            lambda o: forces(len(o["level"])),
            corral.make_vec(FAULTY, 3, on_failure=policy, **how),
            range(7),
        )
        for how in ({"num_threads": 1}, {"batch_size": 1}, {"timeout": 20}, {"num_threads": 3})
    ]
    assert len({str(result) for result in results}) == 1


@pytest.mark.parametrize("policy", ["", "RAISE", "none"])
def test_a_policy_that_is_none_lists_those_that_are(policy: str) -> None:
    with pytest.raises(ArgumentError, match="'raise', 'restart' or 'mask'"):
        corral.make_vec(FAULTY, 1, on_failure=policy)


@pytest.mark.parametrize("runner", RUNNERS)
@pytest.mark.parametrize("policy", ["restart", "mask"])
def test_observing_an_env_that_failed_changes_nothing(policy: str, runner: str) -> None:
    envs = sick("error_in_step", "next_step", runner, policy)
    envs.reset()
    for k in range(AT + 1):
        step(envs, k)
    before = envs.save_state()
    assert is_zero(row(envs.observe(), SICK))
    assert envs.save_state() == before


def test_queueing_for_a_thread_is_no_silence() -> None:
    """Six envs of 0.1 s each on one thread, under a timeout of 0.35 s for each of them."""
    envs = corral.make_vec(
        FAULTY, 6, seed=0, fault="sleep_in_every_step", sleep=0.1, timeout=0.35, num_threads=1
    )
    envs.reset()
    assert envs.step(forces(6))[1].shape == (6,)


@pytest.mark.parametrize(
    ("fault", "mode", "how", "silent"),
    [
        # 0.5 s of sleep: whichever limit is of this call decides.
        ("sleep_in_reset", "next_step", {"timeout": 0.1, "reset_timeout": 30}, None),
        ("sleep_in_reset", "next_step", {"timeout": 30, "reset_timeout": 0.1}, "reset_timeout"),
        ("sleep_in_reset", "next_step", {"reset_timeout": 0.1}, "reset_timeout"),
        ("sleep_in_step", "next_step", {"timeout": 0.1, "reset_timeout": 30}, "timeout"),
        ("sleep_in_step", "next_step", {"timeout": 30, "reset_timeout": 0.1}, None),
        ("sleep_in_step", "next_step", {"reset_timeout": 0.1}, None),
        ("sleep_in_step", "same_step", {"timeout": 0.1, "reset_timeout": 30}, None),
        ("sleep_in_step", "same_step", {"timeout": 0.1, "reset_timeout": 0.2}, "reset_timeout"),
    ],
)
def test_a_reset_has_a_time_limit_of_its_own(
    fault: str, mode: str, how: dict[str, Any], silent: str | None
) -> None:
    """The second episode's reset is an autoreset, the third one's the user's."""
    for autoreset in (False, True):
        envs = corral.make_vec(
            FAULTY, 2, seed=0, fault=fault, of_seed=1, at_step=0, in_episode=1, sleep=0.5,
            max_episode_steps=1, autoreset_mode=mode, **how,
        )  # fmt: skip
        envs.reset()
        error = None
        try:
            envs.step(forces(2))
            if not autoreset:
                envs.reset()
            for _ in range(2):
                envs.step(forces(2))
        except EnvTimeoutError as raised:
            error = raised
        assert (error is None) == (silent is None)
        if error is not None:
            assert [failure.slot for failure in error.failures] == [1]
            limit = how[str(silent)]
            assert f"no answer within {limit * 1000:.0f}ms ({silent})" in str(error)
        envs.close()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("policy", POLICIES)
def test_an_env_that_awaits_its_first_reset_is_no_failure_after_a_load(
    policy: str, mode: str
) -> None:
    fresh = corral.make_vec(FAULTY, 2, seed=1, autoreset_mode=mode, on_failure=policy)
    other = corral.make_vec(FAULTY, 2, seed=2, autoreset_mode=mode, on_failure=policy)
    other.load_state(fresh.save_state())
    for envs in (fresh, other):
        with pytest.raises(ResetNeededError, match="call reset before step"):
            envs.step(forces(2))


def test_a_state_counts_restarts_too() -> None:
    """Or a run that was taken up would go on where the first is raised."""

    def make() -> corral.VectorEnv:
        return sick("error_in_step", "next_step", "serial", "restart",
            of_seed=-1, at_step=0, max_restarts=2)  # fmt: skip

    def steps_until_raised(envs: corral.VectorEnv) -> int:
        for k in range(20):
            try:
                envs.step(push(k))
            except EnvError:
                return k
        return -1

    envs, other = make(), make()
    envs.reset()
    for k in range(3):
        envs.step(push(k))
    other.load_state(envs.save_state())
    assert steps_until_raised(other) == steps_until_raised(envs)
