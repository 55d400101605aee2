"""What a learner sees of a libenv instance that died and was restarted: the same as of `make_vec`.

The library is `c/faulty_libenv.c`.
"""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import corral
from corral import errors
from tests.abi.libenv import actions, compiled, load

# A hang's bound: far more than any of it takes.
LONG = 60.0
TROUBLE = (
    "_failed",
    "_final_info",
    "_final_obs",
    "_restarted",
    "failed",
    "final_info",
    "final_obs",
)


def workers(envs: Any) -> list[int]:
    """The worker processes, in the order of their envs."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            parent = int(process.joinpath("stat").read_text().rpartition(")")[2].split()[1])
            if parent == os.getpid() and envs.native.id in process.joinpath("maps").read_text():
                found.append(int(process.name))
        except (OSError, ValueError):
            continue
    return sorted(found)


def told(infos: dict[str, Any], row: int) -> dict[str, Any]:
    """What a row's infos say of trouble and ends."""
    seen = {key: bool(infos[key][row]) for key in infos if key in TROUBLE and key.startswith("_")}
    seen["restarted"] = bool(infos.get("restarted", np.zeros(row + 1, bool))[row])
    return seen


def faulty_here() -> tuple[dict[str, Any], float, tuple[bool, bool]]:
    """What a native env's failing row says in SAME_STEP: its infos, its reward, its flags."""
    envs = corral.make_vec(
        "testing/Faulty-v0",
        2,
        seed=0,
        fault="error_in_step",
        of_seed=1,
        at_step=0,
        autoreset_mode="same_step",
        on_failure="restart",
    )
    envs.reset()
    *_, rewards, terminated, truncated, infos = envs.step(envs.action_space.sample())
    final = infos["final_obs"][1]
    assert not np.any(final["level"])
    envs.close()
    return told(infos, 1), rewards[1], (bool(terminated[1]), bool(truncated[1]))


@pytest.mark.parametrize("ours", [(), ("OURS",)], ids=["foreign", "ours"])
@pytest.mark.parametrize("death", ["killed", "aborts"])
def test_a_death_in_same_step_looks_as_a_failure_of_a_native_env(
    death: str, ours: tuple[str, ...]
) -> None:
    fault = () if death == "killed" else ("FAULT=ABORT_IN_ACT",)
    envs = load(
        *ours,
        *fault,
        num_envs=2,
        isolation="process",
        on_failure="restart",
        episode_statistics=True,
    )
    envs.reset()
    envs.step(actions(2, push=0.5))
    if death == "killed":
        os.kill(workers(envs)[0], signal.SIGKILL)
    observations, rewards, terminated, truncated, infos = envs.step(actions(2))
    expected = faulty_here()
    for row in range(2):
        flags = bool(terminated[row]), bool(truncated[row])
        assert (told(infos, row), rewards[row], flags) == expected
        # The next episode's first observation is shown, and the last of the old nobody saw.
        assert observations["count"][row] == 5
        assert not any(np.any(part) for part in infos["final_obs"][row].values())
        assert set(infos["final_obs"][row]) == set(observations)
        failure = infos["failed"][row]
        assert (failure.slot, failure.cause, failure.seed is None) == (row, "death", not ours)
    # The step after plays that episode on.
    observations, *_, infos = envs.step(actions(2))
    assert observations["count"].tolist() == [6, 6]
    assert not {"_failed", "_restarted", "_final_obs"} & set(infos)
    envs.close()


def test_only_the_instance_that_died_is_restarted_and_its_layers_with_it() -> None:
    envs = load(num_envs=4, num_workers=2, on_failure="restart", frame_stack=2)
    envs.reset()
    envs.step(actions(4))
    os.kill(workers(envs)[0], signal.SIGKILL)
    observations, _, _, truncated, infos = envs.step(actions(4))
    dead = infos["_failed"]
    assert sorted([dead[:2].all(), dead[2:].all()]) == [False, True]
    assert truncated.tolist() == dead.tolist() == infos["restarted"].tolist()
    assert infos["_final_obs"].tolist() == dead.tolist()
    # Env 0 of an instance ends its episode of two steps here, env 1 does not.
    expected = [[5, 5] if failed else other for failed, other in zip(dead, [[5, 5], [6, 7]] * 2)]
    assert observations["count"].tolist() == expected
    assert all(not np.any(last["count"]) for last in infos["final_obs"][dead])
    envs.close()


def test_rows_of_an_instance_that_come_in_parts_are_restarted_together() -> None:
    envs = load(num_envs=4, num_workers=2, batch_size=2, timeout=60.0, on_failure="restart")
    envs.async_reset()
    killed = restarted = False
    while not restarted:
        observations, _, _, truncated, infos = envs.recv(timeout=LONG)
        ids = infos["env_id"]
        assert ids.tolist() in ([0, 1], [2, 3])
        if not killed:
            os.kill(workers(envs)[0], signal.SIGKILL)
            killed = True
        if "_failed" in infos:
            assert infos["_failed"].all()
            # Of a reset that was under way there is no step to tell of.
            assert infos["restarted"].all()
            assert truncated.tolist() == infos.get("_final_obs", np.zeros(2, bool)).tolist()
            assert observations["count"].tolist() == [5, 5]
            restarted = True
        envs.send(actions(2), ids)
    envs.close()


def test_masked_envs_of_an_instance_say_so_in_every_row() -> None:
    envs = load(num_envs=2, on_failure="mask")
    envs.reset()
    os.kill(workers(envs)[0], signal.SIGKILL)
    for step in range(3):
        observations, _, terminated, truncated, infos = envs.step(actions(2))
        assert not observations["count"].any()
        assert not terminated.any()
        assert infos["_failed"].all()
        assert truncated.tolist() == [step == 0] * 2
        assert ("_final_obs" in infos) == (step == 0)
    assert envs.reset()[0]["count"].tolist() == [5, 5]
    envs.close()


def test_a_lost_instance_of_ours_is_left_out_and_the_others_go_on() -> None:
    library = corral.libenv_path()
    envs = corral.load_libenv(
        library, 4, {"env_id": "CartPole-v1"}, isolation="process", num_workers=2, on_failure="mask"
    )
    envs.reset()
    os.kill(workers(envs)[0], signal.SIGKILL)
    for _ in range(3):
        infos = envs.step({"action": np.zeros(4, np.int32)})[4]
        assert sorted(infos["_failed"].reshape(2, 2).tolist()) == [[False] * 2, [True] * 2]
    envs.close()


@pytest.mark.parametrize("isolation", ["thread", "process"])
def test_the_env_that_failed_is_told_from_those_that_were_lost_with_it(isolation: str) -> None:
    envs = load("FAULT=COUNT_TOO_HIGH", isolation=isolation, num_envs=3)
    envs.reset()
    envs.step(actions(3))
    with pytest.raises(errors.EnvError) as raised:
        envs.step(actions(3))
    library, why = (
        compiled("FAULT=COUNT_TOO_HIGH"),
        "observation 'count' has 15, and it is from 5 to 14",
    )
    failures = raised.value.failures
    assert [failure.cause for failure in failures] == ["instance", "error", "instance"]
    assert [failure.seed for failure in failures] == [None] * 3
    texts = [re.sub(r" \(.*", "", failure.text) for failure in failures]
    assert texts == [
        f"{library}: env 0 was lost with its instance in step: env 1 of it: {why}",
        f"{library}: env 1 failed in step: {why}",
        f"{library}: env 2 was lost with its instance in step: env 1 of it: {why}",
    ]
    assert str(raised.value).count("(no seed, episode 0, step 1") == 3
    envs.close()


def test_a_silent_instance_is_silent_as_a_whole() -> None:
    envs = load("FAULT=ENDLESS_ACT", num_envs=4, num_workers=2, timeout=3.0)
    envs.reset()
    envs.step(actions(4))
    with pytest.raises(errors.EnvTimeoutError) as raised:
        envs.step(actions(4))
    assert [failure.cause for failure in raised.value.failures] == ["silence"] * 4
    assert "envs 0 to 1 gave no answer within 3s (timeout)" in str(raised.value)
    assert "envs 2 to 3 gave no answer" in str(raised.value)
    envs.close()
