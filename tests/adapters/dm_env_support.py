"""What the tests of `corral.to_dm_env` and those of `corral.from_dm_env` share: the numbers of the
step types, a Gymnasium env that has spaces of every kind, and one env's part of a batched step."""

from __future__ import annotations

from typing import Any

import dm_env
import gymnasium
import numpy as np
import tree
from gymnasium import spaces

from corral.spaces import Opaque

FIRST, MID, LAST = (int(one) for one in dm_env.StepType)


class Mixed(gymnasium.Env[Any, Any]):
    """Has spaces of every kind; an episode has five steps, of which every second's is cut short."""

    observation_space = spaces.Dict(
        {
            "pair": spaces.Tuple([spaces.Discrete(7), spaces.Discrete(4, start=-2)]),
            "text": spaces.Text(9),
            "grid": spaces.MultiDiscrete([3, 5]),
            "bits": spaces.MultiBinary(3),
            "near": spaces.Box(-1, 1, (2,), np.float32),
            "free": spaces.Box(-np.inf, np.inf, (), np.float64),
            "flags": spaces.Box(0, 1, (2,), np.bool_),
            "inner": spaces.Dict({"pixels": spaces.Box(0, 255, (2, 2, 3), np.uint8)}),
            "many": spaces.Sequence(spaces.Box(0, 1, (), np.float64), stack=True),
            "any": Opaque(),
        }
    )
    action_space = spaces.Dict(
        {
            "gear": spaces.Discrete(3, start=1),
            "bits": spaces.MultiBinary(2),
            "pair": spaces.Tuple(
                [spaces.Text(5, min_length=0), spaces.Box(-1, 1, (2,), np.float32)]
            ),
        }
    )

    def __init__(self) -> None:
        self.episode = self.at = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.episode, self.at = self.episode + 1, 0
        return self._seen(), {"episode": self.episode}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        assert self.action_space.contains(action), action
        hash(action["gear"])
        self.at += 1
        is_over, is_cut = self.at == 5, self.episode % 2 == 0
        return (
            self._seen(),
            self.at / 8,
            is_over and not is_cut,
            is_over and is_cut,
            {"at": self.at},
        )

    def _seen(self) -> Any:
        at = self.at
        return {
            "pair": (np.int64(at), np.int64(at % 4 - 2)),
            "text": "x" * (at + 1),
            "grid": np.array([at % 3, at % 5]),
            "bits": np.array([at & 1, 1, 0], np.int8),
            "near": np.array([at / 8, -at / 8], np.float32),
            "free": np.array(at * 1.5),
            "flags": np.array([at % 2 == 0, True]),
            "inner": {"pixels": np.full((2, 2, 3), at, np.uint8)},
            "many": np.arange(at, dtype=np.float64) / 9,
            "any": ["anything", at],
        }


def rows(timestep: Any, row: int) -> Any:
    """One env's part of a batched time step, in dm_env's own form."""
    step_type = dm_env.StepType(int(timestep.step_type[row]))
    seen = tree.map_structure(lambda leaf: leaf[row], timestep.observation)
    if step_type is dm_env.StepType.FIRST:
        assert timestep.reward[row] == 0
        assert timestep.discount[row] == 1
        return dm_env.restart(seen)
    return dm_env.TimeStep(step_type, timestep.reward[row], timestep.discount[row], seen)
