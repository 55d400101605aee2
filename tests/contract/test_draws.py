"""The random actions of the checks."""

from __future__ import annotations

from typing import Any

import gymnasium
from gymnasium import spaces

import corral
from corral.draws import Draws


class Listener(gymnasium.Env[Any, Any]):
    """Is told texts: a few letters, or as many as one likes."""

    def __init__(self) -> None:
        self.observation_space = spaces.Box(0, 1, ())
        self.action_space = spaces.Dict(
            {
                "few": spaces.Text(3, min_length=2, charset="xy"),
                "many": spaces.Tuple([spaces.Text(1 << 20), spaces.Discrete(3)]),
            }
        )

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        return 0.5, {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        assert action in self.action_space
        return 0.5, 0.0, False, False, {}


def test_texts_are_such_as_people_say() -> None:
    envs = corral.from_gymnasium(Listener, 4)
    envs.reset(seed=0)
    first, again, other = (Draws(envs, seed) for seed in (0, 0, 1))
    told: set[str] = set()
    for _ in range(10):
        actions = first()
        assert repr(actions) == repr(again()) != repr(other())
        envs.step(actions)
        many, numbers = actions["many"]
        assert all(len(text) <= 32 for text in many)
        assert all(2 <= len(text) <= 3 for text in actions["few"])
        assert set(numbers) <= {0, 1, 2}
        told.update(many)
    assert len(told) > 30
    envs.close()
