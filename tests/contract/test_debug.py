"""`debug=True`: are observations, rewards and infos held to their spaces, and is nothing else?"""

from __future__ import annotations

import re
from typing import Any

import gymnasium
import numpy as np
import pytest

import corral
from corral import errors
from tests.contract.test_check_env import Nested
from tests.support import FAULTY

MODES = ("next_step", "same_step", "disabled")
HOW: list[dict[str, Any]] = [
    {},
    {"num_threads": 2},
    {"batch_size": 2, "num_threads": 2},
    {"timeout": 30.0},
]
FAULTS = {
    "out_of_bounds": r"observation leaf 'level' is 1\.5, outside 0\.0 to 1\.0",
    "nan_observation": r"leaf 'body\.joints' has NaN at \[0, 0\], outside -1\.0 to 1\.0",
    "nan_reward": r"the reward is NaN, where a finite number belongs",
    "info_out_of_bounds": r"info leaf 'left' is -1\d\d, outside 0 to 100",
}


def make(fault: str, **how: Any) -> corral.VectorEnv:
    """Three envs, of which env 1 has the fault, in its third step."""
    return corral.make_vec(FAULTY, 3, fault=fault, of_seed=8, at_step=2, seed=7, **how)


def play(envs: corral.VectorEnv, steps: int) -> None:
    envs.action_space.seed(0)
    for _ in range(steps):
        envs.send(envs.action_space.sample())
        envs.drain()


@pytest.mark.parametrize("how", HOW, ids=str)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("fault", FAULTS)
def test_what_breaks_its_space_is_an_error_that_names_it(
    fault: str, mode: str, how: dict[str, Any]
) -> None:
    envs = make(fault, autoreset_mode=mode, debug=True, **how)
    envs.reset()
    play(envs, 1)
    with pytest.raises(errors.EnvError, match=FAULTS[fault]) as raised:
        play(envs, 1)
    (failure,) = raised.value.failures
    assert (failure.slot, failure.step, failure.episode, failure.seed) == (1, 1, 0, 8)
    assert (failure.phase, failure.cause) == ("step", "error")
    assert f"{FAULTY}: env 1 failed in step: " in failure.text
    envs.close()


@pytest.mark.parametrize("mode", MODES)
def test_afterwards_it_is_as_after_an_envs_own_error(mode: str) -> None:
    def story(fault: str, at_step: int) -> list[Any]:
        envs = corral.make_vec(
            FAULTY,
            3,
            fault=fault,
            of_seed=8,
            at_step=at_step,
            seed=7,
            debug=True,
            autoreset_mode=mode,
        )
        told: list[Any] = [envs.reset()]
        envs.action_space.seed(0)
        for _ in range(5):
            try:
                told.append(envs.step(envs.action_space.sample()))
            except errors.EnvError as error:
                told.extend(error.batch[:4])
                told.append([failure.step for failure in error.failures])
            except errors.ResetNeededError as error:
                told.append(str(error))
                told.append(envs.reset(options={"reset_mask": np.array([False, True, False])})[0])
        return told

    # That env's error comes in place of the step whose reward is NaN.
    ours = story("nan_reward", 2)
    assert repr(ours) == repr(story("error_in_step", 1))
    assert any(isinstance(told, str) and "reset it" in told for told in ours)


@pytest.mark.parametrize("policy", ["restart", "mask"])
def test_a_failure_policy_deals_with_it(policy: str) -> None:
    envs = make("out_of_bounds", debug=True, on_failure=policy)
    envs.reset()
    envs.action_space.seed(0)
    failed = 0
    for _ in range(40):
        infos = envs.step(envs.action_space.sample())[-1]
        failed += int(infos.get("_failed", np.zeros(3, np.bool_))[1])
        assert not infos.get("_failed", np.zeros(3, np.bool_))[[0, 2]].any()
    assert failed


def test_a_reset_that_breaks_its_space_is_an_error_too() -> None:
    envs = corral.make_vec(
        FAULTY, 2, fault="out_of_bounds", of_seed=1, at_step=0, seed=0, debug=True
    )
    with pytest.raises(errors.EnvError, match=r"env 1 failed in reset: .*'level' is 1.5"):
        envs.reset()


@pytest.mark.parametrize("how", [{}, {"num_workers": 2}], ids=str)
def test_python_envs_are_held_to_their_spaces(how: dict[str, Any]) -> None:
    runner = "process" if how else "serial"
    envs = corral.from_gymnasium(Nested, 2, seed=0, runner=runner, debug=True, **how)
    envs.reset()
    play(envs, 2)
    said = r"observation leaf 'arm\.joints' has 3\.0 at \[1, 2\], outside 0\.0 to 1\.0"
    with pytest.raises(errors.EnvError, match=said) as raised:
        play(envs, 1)
    assert [failure.slot for failure in raised.value.failures] == [0, 1]
    envs.close()


def test_without_it_nothing_is_looked_at() -> None:
    for fault in FAULTS:
        envs = make(fault)
        envs.reset()
        play(envs, 30)


@pytest.mark.parametrize("id", ["CartPole-v1", "Maze-v0", "testing/Chooser-v0", "Pendulum-v1"])
@pytest.mark.parametrize("mode", MODES)
def test_sound_envs_play_the_same(id: str, mode: str) -> None:
    def story(**how: Any) -> list[Any]:
        envs = corral.make_vec(id, 3, seed=0, autoreset_mode=mode, max_episode_steps=9, **how)
        told = [envs.reset()]
        envs.action_space.seed(0)
        for k in range(40):
            if mode == "disabled" and k % 8 == 7:
                told.append(envs.reset())
            try:
                told.append(envs.step(envs.action_space.sample()))
            except errors.ResetNeededError:
                told.append(envs.reset())
        return told

    assert repr(story(debug=True)) == repr(story())


def test_a_recorded_failure_is_seen_again(tmp_path: Any) -> None:
    envs = make("nan_observation", debug=True, record=tmp_path)
    envs.reset()
    with pytest.raises(errors.EnvError) as raised:
        play(envs, 5)
    again = corral.replay(raised.value.failures[0].replay)
    for _ in again:
        pass
    assert again.reproduced, again.verdict()


def test_a_server_checks_the_envs_that_it_makes_by_an_id() -> None:
    with corral.serve(FAULTY, ("127.0.0.1", 0)) as server:
        options = {"fault": "out_of_bounds", "of_seed": 8, "at_step": 2}
        envs = corral.connect(server.address, 3, options, seed=7, debug=True)
        envs.reset()
        play(envs, 1)
        with pytest.raises(errors.EnvError, match=FAULTS["out_of_bounds"]) as raised:
            play(envs, 1)
        assert [failure.slot for failure in raised.value.failures] == [1]
        envs.close()


def test_the_option_is_a_bool() -> None:
    with pytest.raises(errors.ArgumentTypeError, match="debug is a bool, not 'yes'"):
        corral.make_vec("CartPole-v1", 2, debug="yes")  # type: ignore[arg-type]
    assert re.search(r"\n    debug \(False\): ", corral.make_vec.__doc__ or "")
    assert isinstance(corral.make("CartPole-v1", debug=True), gymnasium.Env)
