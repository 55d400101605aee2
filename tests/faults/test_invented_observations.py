"""An observation that no env has shown is never passed off as an episode's last."""

from __future__ import annotations

import os
import signal
from typing import Any

import numpy as np
import pytest

import corral
from tests.faults.sick import pids, sick, zeros

FAULTS = ("error_in_step", "panic_in_step", "error_in_reset", "incomplete_observation")
RUNNERS: dict[str, dict[str, Any]] = {
    "serial": {"num_threads": 1},
    "threads": {"num_threads": 2},
    "in the background": {"timeout": 60.0},
}
NUM_ENVS = 3


def is_zeros(observation: Any) -> bool:
    if isinstance(observation, dict):
        return all(is_zeros(part) for part in observation.values())
    return not np.any(observation)


def row(observations: Any, k: int) -> Any:
    if isinstance(observations, dict):
        return {key: row(part, k) for key, part in observations.items()}
    return observations[k]


def check(step: Any, mode: str) -> tuple[int, int]:
    """Holds every row that ends an episode to the rule; how many do, and how many are zeros."""
    observations, _, terminated, truncated, infos = step
    ended = np.flatnonzero(terminated | truncated)
    unseen = 0
    for k in ended:
        final = infos.get("final_obs")
        last = final[k] if mode == "same_step" and final is not None else row(observations, k)
        assert last is not None
        if is_zeros(last):
            unseen += 1
            assert infos["_failed"][k]
            assert infos["failed"][k].slot == k
    return len(ended), unseen


@pytest.mark.parametrize("mode", ["next_step", "same_step", "disabled"])
@pytest.mark.parametrize("policy", ["restart", "mask"])
@pytest.mark.parametrize("runner", RUNNERS)
@pytest.mark.parametrize("fault", FAULTS)
def test_zeros_in_place_of_a_last_observation_are_told_of_in_their_row(
    fault: str, runner: str, policy: str, mode: str
) -> None:
    envs = corral.make_vec(
        "testing/Faulty-v0",
        NUM_ENVS,
        seed=0,
        fault=fault,
        of_seed=1,
        autoreset_mode=mode,
        on_failure=policy,
        max_restarts=1000,
        **RUNNERS[runner],
    )
    envs.action_space.seed(0)
    envs.reset()
    ended = unseen = 0
    for _ in range(60):
        step = envs.step(envs.action_space.sample())
        found = check(step, mode)
        ended, unseen = ended + found[0], unseen + found[1]
        over = step[2] | step[3]
        if mode == "disabled" and over.any():
            envs.reset(options={"reset_mask": over})
    assert ended > unseen
    if "step" in fault:
        assert unseen > 0
    envs.close()


@pytest.mark.parametrize("mode", ["next_step", "same_step", "disabled"])
@pytest.mark.parametrize("policy", ["restart", "mask"])
def test_a_worker_that_is_killed_is_told_of_in_the_row_of_each_of_its_envs(
    policy: str, mode: str
) -> None:
    envs = sick(NUM_ENVS, {}, num_workers=1, autoreset_mode=mode, on_failure=policy)
    envs.reset()
    os.kill(pids(envs)[0], signal.SIGKILL)
    assert check(envs.step(zeros(NUM_ENVS)), mode) == (NUM_ENVS, NUM_ENVS)
    envs.close()
