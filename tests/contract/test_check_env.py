"""`corral.testing.check_env`: sound envs pass, and each fault is found by the right check."""

from __future__ import annotations

import pytest

import corral
from corral.testing import check_env
from tests.support import FAULTY, quick_ids

CHECKS = [
    "spaces",
    "determinism",
    "seed matters",
    "index decides its episode",
    "index leaves the own stream",
    "masked reset",
    "autoreset modes",
    "save and load",
    "render",
]


# There is no chance in them.
CERTAIN = ("CliffWalking-v1", "MiniGrid-Empty-5x5", "MiniGrid-Empty-6x6", "MiniGrid-Empty-8x8")
CERTAIN += ("MiniGrid-Empty-16x16", "MiniGrid-DistShift")


@pytest.mark.parametrize("id", quick_ids([*corral.envs(), FAULTY]))
def test_a_sound_env_passes_every_check(id: str) -> None:
    has_chance = not id.startswith(CERTAIN)
    verdict = check_env(id, seed_matters=has_chance)
    assert verdict.passed
    asked = [check for check in CHECKS if check != "seed matters" or has_chance]
    assert [check.name for check in verdict.checks] == asked
    assert all(check.passed for check in verdict.checks)
    assert str(verdict).startswith(f"{id} keeps its contract")


def test_a_kernel_passes_every_check() -> None:
    verdict = check_env("CartPole-v1", fast=True)
    assert [check.name for check in verdict.checks] == CHECKS
    assert all(check.passed for check in verdict.checks)


ONE_CHECK = [
    ("ignores_seed", "seed matters"),
    ("index_disturbs_stream", "index leaves the own stream"),
    ("index_depends_on_history", "index decides its episode"),
    ("out_of_bounds", "spaces"),
    ("save_forgets", "save and load"),
    ("panic_in_render", "render"),
]


def failed(fault: str) -> list[str]:
    verdict = check_env(FAULTY, raise_on_failure=False, fault=fault)
    assert not verdict.passed
    return [check.name for check in verdict.checks if check.passed is False]


@pytest.mark.parametrize(("fault", "check"), ONE_CHECK)
def test_a_fault_of_one_kind_fails_the_check_that_is_about_it_alone(fault: str, check: str) -> None:
    assert failed(fault) == [check]


def test_an_env_that_is_not_deterministic_fails_what_compares_two_of_it() -> None:
    names = failed("not_deterministic")
    assert {"determinism", "index leaves the own stream", "autoreset modes"} <= set(names)
    assert not {"spaces", "seed matters"} & set(names)


@pytest.mark.parametrize(
    "fault", ["panic_in_step", "error_in_step", "incomplete_observation", "wrong_dtype"]
)
def test_a_fault_in_every_episode_fails_whatever_steps(fault: str) -> None:
    # One check may stop before the step at which the fault shows.
    assert len(failed(fault)) >= len(CHECKS) - 2


def test_an_env_that_breaks_its_contract_raises_with_the_verdict() -> None:
    with pytest.raises(corral.errors.ConformanceError) as raised:
        check_env(FAULTY, fault="out_of_bounds")
    assert isinstance(raised.value, AssertionError)
    lines = str(raised.value).splitlines()
    assert lines[0] == f"{FAULTY} BREAKS ITS CONTRACT"
    assert [line for line in lines if line.startswith("  FAIL ")] == [lines[1]]
    assert sum(line.startswith("  ok ") for line in lines) == len(CHECKS) - 1
    assert lines[1].startswith("  FAIL  spaces: ")
    assert "1.5" in lines[1]


def test_an_env_without_randomness_may_say_so() -> None:
    verdict = check_env(FAULTY, raise_on_failure=False, seed_matters=False, fault="ignores_seed")
    assert "seed matters" not in [check.name for check in verdict.checks]
    assert verdict.passed


def test_options_and_ids_reach_the_env_and_wrong_ones_are_errors() -> None:
    assert check_env("corral/Maze-v0", size=3, steps=30).passed
    with pytest.raises(corral.errors.UnknownOptionError):
        check_env("Maze-v0", sise=3)
    with pytest.raises(corral.errors.UnknownEnvError):
        check_env("Nowhere-v0")
