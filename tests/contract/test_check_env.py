"""`corral.testing.check_env`: sound envs pass, and each fault is found by the right check."""

from __future__ import annotations

import pytest

import corral
from corral.testing import check_env
from tests.support import FAULTY

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


@pytest.mark.parametrize("id", [*corral.envs(), FAULTY])
def test_a_sound_env_passes_every_check(id: str) -> None:
    verdict = check_env(id)
    assert verdict.passed
    assert [check.name for check in verdict.checks] == CHECKS
    assert all(check.passed for check in verdict.checks)
    assert str(verdict).startswith(f"{id} keeps its contract")


# Which checks see a fault: the one it is named for, and those that rest on the same thing.
FAULTS = [
    ("ignores_seed", {}, ["seed matters"]),
    ("index_disturbs_stream", {}, ["index leaves the own stream"]),
    ("index_depends_on_history", {}, ["index decides its episode"]),
    ("out_of_bounds", {}, ["spaces"]),
    ("save_forgets", {}, ["save and load"]),
    (
        "not_deterministic",
        {},
        ["determinism", "index leaves the own stream", "autoreset modes"],
    ),
    ("panic_in_step", {}, [name for name in CHECKS]),
    ("error_in_step", {}, [name for name in CHECKS]),
    ("panic_in_render", {}, ["render"]),
    ("incomplete_observation", {}, [name for name in CHECKS]),
    ("wrong_dtype", {}, [name for name in CHECKS]),
]


@pytest.mark.parametrize(("fault", "options", "expected"), FAULTS)
def test_each_fault_is_found_by_the_check_that_is_about_it(
    fault: str, options: dict[str, int], expected: list[str]
) -> None:
    verdict = check_env(FAULTY, raise_on_failure=False, fault=fault, **options)
    failed = [check.name for check in verdict.checks if check.passed is False]
    assert not verdict.passed
    if len(expected) < len(CHECKS):
        assert set(expected) <= set(failed)
        assert len(failed) <= len(expected) + 2, failed
    else:
        # What breaks every episode is seen by whatever steps.
        assert len(failed) >= 7
    with pytest.raises(corral.errors.ConformanceError) as raised:
        check_env(FAULTY, fault=fault, **options)
    assert isinstance(raised.value, AssertionError)
    assert "BREAKS ITS CONTRACT" in str(raised.value)
    for name in failed:
        assert f"FAIL  {name}: " in str(raised.value)


@pytest.mark.parametrize(
    "fault",
    [
        "ignores_seed",
        "index_disturbs_stream",
        "index_depends_on_history",
        "out_of_bounds",
        "save_forgets",
        "panic_in_render",
    ],
)
def test_a_fault_of_one_kind_fails_one_check(fault: str) -> None:
    verdict = check_env(FAULTY, raise_on_failure=False, fault=fault)
    failed = [check.name for check in verdict.checks if check.passed is False]
    assert len(failed) == 1, str(verdict)


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
