"""What `test_dmlab2d.py` runs where DeepMind Lab2D is installed: its levels as sources, beside its
own API without dm_env."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import dmlab2d
import numpy as np
import pytest
from dmlab2d import runfiles_helper
from gymnasium import spaces

import corral
from corral import errors
from tests.support import assert_same

OF_PIXELS = ["WORLD.STEPS", "WORLD.LAYER", "WORLD.RGB"]


def lab2d(level: str, **settings: str) -> Any:
    return dmlab2d.Lab2d(runfiles_helper.find(), {"levelName": level, **settings})


def chase_eat(seed: int | None) -> Any:
    return dmlab2d.Environment(lab2d("chase_eat", episodeLengthFrames="20"), OF_PIXELS, seed)


def level_api() -> Any:
    level = lab2d("examples/level_api", steps="4")
    return dmlab2d.Environment(level, level.observation_names())


def played(level: Any, names: list[str], seed: int, actions: Any) -> Iterator[Any]:
    """The library's own observations, reward and end, an episode after the other; the step after an
    end begins the next."""
    rng = np.random.RandomState(seed)
    episode, is_running = 0, False
    for action in actions:
        reward = 0.0
        if is_running:
            level.act_discrete(np.array([action], np.int32))
            status, reward = level.advance()
            is_running = status == dmlab2d.RUNNING
            is_over = not is_running
        else:
            level.start(episode, rng.randint(0, 2**31))
            episode, is_running, is_over = episode + 1, True, False
        yield {name: np.array(level.observation(name)) for name in names}, reward, is_over


@pytest.mark.parametrize("runner", ["serial", "process"])
def test_a_level_gives_what_its_own_api_gives(runner: str) -> None:
    envs = corral.from_dm_env(
        chase_eat, 2, takes_seed=True, seed=7, runner=runner, context="forkserver"
    )
    assert envs.single_action_space["MOVE"] == spaces.Discrete(5, dtype=np.int32)
    assert envs.single_observation_space["WORLD.RGB"] == spaces.Box(0, 255, (144, 144, 3), np.uint8)
    rng = np.random.default_rng(0)
    actions = rng.integers(0, 5, (60, 2))
    alone = [
        played(lab2d("chase_eat", episodeLengthFrames="20"), OF_PIXELS, 7 + k, actions[:, k])
        for k in range(2)
    ]
    ends, total = 0, 0.0
    for at in range(60):
        if at == 0:
            seen, rewards, terminated = envs.reset()[0], np.zeros(2), np.zeros(2, np.bool_)
        else:
            seen, rewards, terminated, _, infos = envs.step({"MOVE": actions[at]})
            assert_same(infos["discount"], np.where(terminated, 0.0, 1.0))
        for row, one in enumerate(alone):
            expected, reward, is_over = next(one)
            for name in OF_PIXELS:
                np.testing.assert_array_equal(seen[name][row], expected[name], name)
            assert rewards[row] == reward
            assert terminated[row] == is_over
        ends += int(terminated.sum())
        total += float(np.abs(rewards).sum())
    assert ends >= 4
    assert total > 0
    envs.close()


def test_texts_and_actions_of_every_kind_pass() -> None:
    envs = corral.from_dm_env(level_api, 2, runner="serial")
    seen, _ = envs.reset()
    assert [leaf.dtype.name for name, leaf in seen.items() if name != "VIEW5"] == [
        "uint8",
        "float64",
        "int32",
        "int64",
    ]
    action = {
        "REWARD_ACT": np.array([1, 4]),
        "OBSERVATION_ACT": np.array([0.5, -2.0]),
        "LOG_EVENT": ("one", "two"),
    }
    reference = level_api()
    reference.reset()
    expected = reference.step({"REWARD_ACT": 4, "OBSERVATION_ACT": -2.0, "LOG_EVENT": "two"})
    seen, rewards, _, _, _ = envs.step(action)
    assert rewards[1] == expected.reward
    for name, value in expected.observation.items():
        np.testing.assert_array_equal(seen[name][1], value, name)
    assert envs.call("events")[1] == reference.events()
    with pytest.raises(errors.InvalidActionError):
        # The library itself would end the process.
        envs.step({**action, "REWARD_ACT": np.array([1, 5])})
    envs.close()
