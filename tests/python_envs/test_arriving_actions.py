"""Do actions arrive at Python envs as Gymnasium's own vector env hands them over?"""

from __future__ import annotations

import functools
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

import corral
from tests.python_envs.kinds import OURS, Kind
from tests.python_envs.same import assert_same

LETTERS = "abcdef"


def _box(shape: tuple[int, ...] = (2,)) -> spaces.Box:
    return spaces.Box(-1, 1, shape, np.float32)


SPACES: dict[str, Any] = {
    "box": _box,
    "scalar box": lambda: _box(()),
    "complex box": lambda: spaces.Box(-1, 1, (2,), np.float64),
    "discrete": lambda: spaces.Discrete(4, start=-1),
    "multi-discrete": lambda: spaces.MultiDiscrete([3, 5]),
    "multi-binary": lambda: spaces.MultiBinary((2, 2)),
    "text": lambda: spaces.Text(5, min_length=1, charset=LETTERS),
    "dict": lambda: spaces.Dict({"b": _box(), "a": spaces.Discrete(3)}),
    "tuple": lambda: spaces.Tuple((_box(), spaces.Discrete(3))),
    "sequence": lambda: spaces.Sequence(spaces.Discrete(4)),
    "sequence of boxes": lambda: spaces.Sequence(_box()),
    "stacked sequence": lambda: spaces.Sequence(_box(), stack=True),
    "graph": lambda: spaces.Graph(_box(), spaces.Discrete(3)),
    "graph without edges": lambda: spaces.Graph(_box(), None),
    "one of": lambda: spaces.OneOf((_box(), spaces.Discrete(3), spaces.MultiBinary(2))),
    "nested": lambda: spaces.Dict(
        {
            "list": spaces.Sequence(
                spaces.Tuple((spaces.Discrete(3), spaces.OneOf((_box(), spaces.Discrete(2)))))
            ),
            "pair": spaces.Tuple((spaces.Graph(_box(), None), spaces.Dict({"x": _box(())}))),
            "either": spaces.OneOf((spaces.Sequence(spaces.Discrete(2)), spaces.Discrete(3))),
            "word": spaces.Text(5, min_length=1, charset=LETTERS),
        }
    ),
}


class Taker(gymnasium.Env[Any, Any]):
    """Tells the action that it was given, and whether its own space holds it."""

    observation_space = spaces.Discrete(2)

    def __init__(self, space: str) -> None:
        self.action_space = SPACES[space]()

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        return 0, {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        return 0, 0.0, False, False, {"took": [action], "held": self.action_space.contains(action)}


def _told(envs: Any, actions: Any) -> list[Any]:
    envs.reset(seed=0)
    infos = envs.step(actions)[4]
    assert infos["held"].tolist() == [True] * envs.num_envs
    return [took[0] for took in infos["took"]]


@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("kind", OURS, ids=str)
def test_actions_arrive_as_gymnasiums_types(kind: Kind, space: str) -> None:
    makers = [functools.partial(Taker, space)] * 3
    theirs = gymnasium.vector.SyncVectorEnv(makers)
    theirs.action_space.seed(4)
    envs = kind(makers)
    for _ in range(3):
        actions = theirs.action_space.sample()
        assert_same(_told(envs, actions), _told(theirs, actions))
    envs.close()


@pytest.mark.parametrize("runner", ["serial", "thread"])
def test_what_the_user_does_to_an_action_later_does_not_reach_the_env(runner: str) -> None:
    envs = corral.from_gymnasium(functools.partial(Taker, "stacked sequence"), 2, runner=runner)
    envs.reset()
    actions = (np.zeros((3, 2), np.float32), np.zeros((1, 2), np.float32))
    infos = envs.step(actions)[4]
    actions[0][:] = 1
    assert not infos["took"][0][0].any()
    envs.close()
