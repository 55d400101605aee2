"""`corral.adapters.lerobot`: LeRobot's own `rollout` and `eval_policy` over its envs
(`lerobot_eval.py`), and its page."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from corral import errors
from corral.adapters.lerobot import make_env
from tests.abi import peers, venvs
from tests.trainers import pages

PROGRAM = Path(__file__).with_name("lerobot_eval.py")


@pytest.mark.thorough
def test_lerobot_evaluates_a_policy_over_our_envs() -> None:
    python = venvs.fetched(peers.trainer_python, "lerobot")
    done = venvs.run(python, PROGRAM, venvs.fetched(peers.lerobot))
    assert done.returncode == 0, done.stdout + done.stderr
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    # A pole that is held up to the limit of 500 steps, and one that falls.
    assert told["good"]["success"] == [True] * 4
    assert told["good"]["return"] == [500.0] * 4
    assert told["bad"]["success"] == [False] * 4
    assert max(told["bad"]["return"]) < 12
    assert told["good"]["seen"] == {
        "observation.state": ["torch.float32", [3, 4]],
        "task": ["balance"] * 3,
    }
    # The mission of MiniGrid is the task, its image the pixels.
    assert told["grid"]["success"] == [True] * 3
    assert told["grid"]["return"] == pytest.approx([1 - 0.9 * 5 / 100] * 3)
    assert told["grid"]["seen"] == {
        "observation.image": ["torch.float32", [3, 3, 7, 7]],
        "observation.direction": ["torch.float32", [3, 1]],
        "task": ["get to the green goal square"] * 3,
    }
    # An env in text, in this process and in workers: what it shows first is its seed's.
    said = [np.random.default_rng(seed).choice([4, 9]) for seed in (100, 101, 102)]
    for how in ("text", "text_async"):
        assert told[how]["success"] == [True] * 5
        assert told[how]["seen"] == {"task": [f"say {number}" for number in said]}
    assert told["hub"]["seen"]["observation.image"] == ["torch.float32", [3, 3, 500, 500]]
    assert told["hub"]["success"] == [False] * 3
    assert told["films"] == [[7, 500, 500, 3]] * 2


def test_the_page() -> None:
    done = venvs.run(Path(sys.executable), "-c", pages.programs("lerobot")[0])
    assert done.returncode == 0, done.stderr
    assert done.stdout == pages.shown("lerobot")[0]


class Nested(gymnasium.Env[Any, Any]):
    """Shows a Dict with an image, a label and a text; tells no success."""

    observation_space = spaces.Dict(
        {
            "image": spaces.Box(0, 255, (8, 9, 3), np.uint8),
            "agent_pos": spaces.Box(-1, 1, (2,), np.float64),
            "gear": spaces.Discrete(3, start=1),
            "order": spaces.Text(9),
        }
    )
    action_space = spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        assert not options
        self.age = 0
        return self.shown(), {}

    def step(self, action: Any) -> Any:
        self.age += 1
        return self.shown(), 1.0, self.age == 2, False, {}

    def shown(self) -> Any:
        image = np.full((8, 9, 3), self.age, np.uint8)
        return {"image": image, "agent_pos": np.zeros(2), "gear": 2, "order": f"go{self.age}"}


def test_observations_have_lerobots_names_and_are_in_their_space() -> None:
    ((suite, tasks),) = make_env(Nested, max_episode_steps=9)(2).items()
    envs = tasks[0]
    assert suite == "Nested"
    observations, _ = envs.reset(seed=[1, 2], options={"lerobot_new_rollout": True})
    assert set(observations) == {"pixels", "agent_pos", "gear"}
    assert envs.observation_space.contains(observations)
    assert observations["gear"].tolist() == [[2.0], [2.0]]
    assert envs.call("task_description") == ("go0", "go0")
    envs.step(np.array([[0.2], [0.9]], np.float32))
    assert envs.call("task") == ("go1", "go1")
    _, _, terminated, _, infos = envs.step(np.zeros((2, 1), np.float32))
    # LeRobot takes an absent `is_success` for success.
    assert terminated.all()
    assert not infos["final_info"]["is_success"].any()
    envs.close()


def test_suites_have_a_vec_env_for_each_task() -> None:
    factory = make_env(
        {"poles": ["CartPole-v1", "CartPole-v1"], "hills": ["MountainCar-v0"]},
        task=["a", "b", "c"],
    )
    made = factory(n_envs=3)
    assert {suite: list(tasks) for suite, tasks in made.items()} == {"poles": [0, 1], "hills": [0]}
    assert made["poles"][1].call("task") == ("b",) * 3
    assert made["hills"][0].call("_max_episode_steps") == (200,) * 3
    for tasks in made.values():
        for envs in tasks.values():
            envs.close()


@pytest.mark.parametrize(
    ("given", "more", "error"),
    [
        (3, {}, errors.ArgumentTypeError),
        ({}, {}, errors.ArgumentError),
        ({"suite": []}, {}, errors.ArgumentError),
        ("CartPole-v1", {"success": "truncated"}, errors.ArgumentError),
        ("CartPole-v1", {"task": ["a", "b"]}, errors.ArgumentError),
        ("MiniGrid-Empty-5x5-v0", {}, errors.ArgumentError),
        ("Blackjack-v1", {"max_episode_steps": 9}, errors.UnsupportedError),
    ],
)
def test_what_makes_no_sense_is_an_error(given: Any, more: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        make_env(given, **more)(2)
