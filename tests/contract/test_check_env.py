"""`corral.testing.check_env`: sound envs pass, and each fault is found by the right check."""

from __future__ import annotations

import functools
import re
from typing import Any

import gymnasium
import numpy as np
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
    if corral.make_vec(id, 1).native.can("action_mask"):
        asked.append("action mask")
    assert [check.name for check in verdict.checks] == asked
    assert all(check.passed for check in verdict.checks)
    assert str(verdict).startswith(f"{id} keeps its contract")


ONE_CHECK = [
    ("ignores_seed", "seed matters"),
    ("index_disturbs_stream", "index leaves the own stream"),
    ("index_depends_on_history", "index decides its episode"),
    ("out_of_bounds", "spaces"),
    ("save_forgets", "save and load"),
    ("panic_in_render", "render"),
    ("nan_observation", "spaces"),
    ("nan_reward", "spaces"),
    ("info_out_of_bounds", "spaces"),
    ("reseed_differs", "determinism"),
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


# Of each fault: the check, what is said of it (a pattern), and what to do.
SAID = [
    (
        "out_of_bounds",
        "spaces",
        r"step 1 of episode 0 after reset\(seed=0\), env 0, action \{.*\}: "
        r"observation leaf 'level' is 1\.5, outside 0\.0 to 1\.0",
        "declare the space",
    ),
    (
        "nan_observation",
        "spaces",
        r"step 1 .*: observation leaf 'body\.joints' has NaN at \[0, 0\], outside -1\.0 to 1\.0",
        "declare the space",
    ),
    ("nan_reward", "spaces", r"step 1 .* env 0, .*: the reward is NaN", "mend the value in `step`"),
    (
        "info_out_of_bounds",
        "spaces",
        r"step 1 .*: info leaf 'left' is -1\d\d, outside 0 to 100",
        "",
    ),
    (
        "draws_in_build",
        "index decides its episode",
        r"index 0 in a fresh env of seed 1 and in one of seed 2, .*: the reset, env 0: "
        r"observation leaf 'body\.joints' at \[0, 0\] is -?\d\.\d+ and -?\d\.\d+$",
        "draw nothing from the stream in `build`",
    ),
    (
        "draws_in_build",
        "index leaves the own stream",
        r"an env built with seed 5 has drawn from its stream .* has moved 1 steps",
        "nothing in `build`",
    ),
    (
        "reseed_differs",
        "determinism",
        r"reset\(seed=7\), and an env built with seed 7, .*: the reset, env 0: "
        r"observation leaf 'body\.joints' at \[\d, \d\] is ",
        "`reseed`",
    ),
    (
        "index_depends_on_history",
        "index decides its episode",
        r"index 3 in a fresh env and in one that has played others, .*: the reset, env 0: "
        r"observation leaf 'level' is \d\.\d+ and \d\.\d+$",
        "`reset_with_index`",
    ),
    (
        "index_disturbs_stream",
        "index leaves the own stream",
        r"the second own episode, .*: the reset, env 0: observation leaf 'level' is .* and ",
        "begin_index",
    ),
    (
        "save_forgets",
        "save and load",
        r"step 0 after a state of 25 steps .* env 0, which loaded it: observation leaf 'level' is "
        r"\d\.\d+ and \d\.\d+$",
        "Serialize",
    ),
]


@pytest.mark.parametrize(("fault", "check", "said", "advice"), SAID)
def test_a_fault_is_told_by_leaf_env_step_values_and_what_to_do(
    fault: str, check: str, said: str, advice: str
) -> None:
    verdict = check_env(FAULTY, raise_on_failure=False, fault=fault)
    (found,) = (one for one in verdict.checks if one.name == check)
    assert found.passed is False
    assert re.search(said, found.detail), found.detail
    assert found.advice
    assert advice in found.advice
    assert f"to do: {found.advice}" in str(verdict)
    assert "array(" not in str(verdict)


@pytest.mark.parametrize(
    ("mask", "said"),
    [
        (
            "all",
            r"step \d of episode 0 after reset\(seed=60\), env 0, action \d: \d was played last "
            r"\(the mask allows this action: \[1, 1, 1\]\)",
        ),
        (
            "nothing",
            r"step 0 after seed 60, env 0: the mask allows no choice, and the episode goes",
        ),
    ],
)
def test_a_mask_that_is_wrong_is_told_with_the_action_and_the_mask(mask: str, said: str) -> None:
    verdict = check_env("testing/Chooser-v0", raise_on_failure=False, mask=mask)
    found = verdict.checks[-1]
    assert (found.name, found.passed) == ("action mask", False)
    assert re.match(said, found.detail), found.detail
    assert "`action_mask`" in found.advice
    assert check_env("testing/Chooser-v0").checks[-1].passed


class Nested(gymnasium.Env[Any, Any]):
    """Shows 3.0 in one element of a nested leaf in its third step, or a letter of none."""

    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, text: str = "ab") -> None:
        box = gymnasium.spaces.Box(0, 1, (2, 3), np.float32)
        word = gymnasium.spaces.Text(2, charset="ab")
        self.observation_space = gymnasium.spaces.Dict(
            {"arm": gymnasium.spaces.Dict({"joints": box}), "word": word}
        )
        self.text = text

    def _show(self) -> Any:
        joints = np.full((2, 3), self.start, np.float32)
        if self.steps == 3 and self.text == "ab":
            joints[1, 2] = 3.0
        return {"arm": {"joints": joints}, "word": self.text if self.steps == 2 else "a"}

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.start, self.steps = self.np_random.random(), 0
        return self._show(), {}

    def step(self, action: Any) -> Any:
        self.steps += 1
        return self._show(), 0.0, self.steps == 5, False, {}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("ab", r"observation leaf 'arm\.joints' has 3\.0 at \[1, 2\], outside 0\.0 to 1\.0$"),
        (
            "zz",
            r"step 1, env 0: observation leaf 'word' is 'zz', which Text\(.*\) does not contain",
        ),
    ],
)
def test_a_leaf_of_a_python_env_is_named_too(text: str, said: str) -> None:
    make = functools.partial(
        corral.from_gymnasium, functools.partial(Nested, text), runner="serial"
    )
    verdict = check_env(make, raise_on_failure=False)
    (found,) = (one for one in verdict.checks if one.passed is False)
    assert found.name == "spaces"
    assert re.search(said, found.detail), found.detail


class Counting(gymnasium.Env[Any, Any]):
    """Shows how often any env that has the same `shared` was reset."""

    action_space = gymnasium.spaces.Discrete(2)
    observation_space = gymnasium.spaces.Box(0, 1000, (), np.int64)

    def __init__(self, shared: dict[str, int]) -> None:
        self.shared = shared

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        self.shared["resets"] += 1
        return np.int64(self.shared["resets"]), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        return np.int64(self.shared["resets"]), 0.0, False, False, {}


def test_state_that_envs_share_is_told_by_the_reset_of_one_of_them() -> None:
    def make(num_envs: int, **more: Any) -> corral.VectorEnv:
        one = functools.partial(Counting, {"resets": 0})
        return corral.from_gymnasium(one, num_envs, runner="serial", **more)

    verdict = check_env(make, raise_on_failure=False)
    (found,) = (one for one in verdict.checks if one.name == "masked reset")
    assert found.passed is False
    assert found.detail == (
        "step 0 after a masked reset of env 1, env 0, with that reset and without: "
        "the observation is 4 and 3"
    )
    assert "nothing that instances share" in found.advice
