"""Who plays well: written by hand, or computed from an env's rules.

A policy takes observations with rows first and gives actions, as for `corral.evaluate`. A new env
has its line in `_GOOD` or, where nobody knows how to play it well, the reason in `WHY_NONE`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from env_pages.policies import classic, games, maze, minatar, minatar_ahead, minigrid, toy_text


@dataclass(frozen=True)
class Good:
    """A good policy of an env."""

    make: Callable[[str], Callable[..., Any]]
    """The policy, for an id."""
    config: dict[str, Any] = field(default_factory=dict)
    """The options that it plays with; they change what is seen, and nothing else."""

    @property
    def told(self) -> str:
        """What it does."""
        return " ".join((inspect.getdoc(self.make) or "").split())

    @property
    def file(self) -> str:
        """Where it stands, below docs."""
        path = Path(inspect.getfile(self.make)).resolve()
        return path.relative_to(path.parents[2]).as_posix()


_GOOD = {
    "CartPole-v1": Good(classic.cart_pole),
    "Pendulum-v1": Good(classic.pendulum),
    "MountainCar-v0": Good(classic.mountain_car),
    "MountainCarContinuous-v0": Good(classic.mountain_car_continuous),
    "Acrobot-v1": Good(classic.acrobot),
    "FrozenLake-v1": Good(toy_text.tabular),
    "FrozenLake8x8-v1": Good(toy_text.tabular),
    "CliffWalking-v1": Good(toy_text.tabular),
    "CliffWalkingSlippery-v1": Good(toy_text.tabular),
    "Taxi-v4": Good(toy_text.tabular),
    "Blackjack-v1": Good(toy_text.blackjack),
    "Maze-v0": Good(maze.warmer),
    "Catch-v0": Good(games.catch),
    "Snake-v0": Good(games.snake),
    "2048-v0": Good(games.corner),
    "ConnectFour-v0": Good(games.connect_four),
    "MinAtar-Asterix-v0": Good(minatar_ahead.asterix),
    "MinAtar-Asterix-v1": Good(minatar_ahead.asterix),
    "MinAtar-Breakout-v0": Good(minatar.breakout),
    "MinAtar-Breakout-v1": Good(minatar.breakout),
    "MinAtar-Freeway-v0": Good(minatar.freeway),
    "MinAtar-Freeway-v1": Good(minatar.freeway),
    "MinAtar-Seaquest-v0": Good(minatar_ahead.seaquest),
    "MinAtar-Seaquest-v1": Good(minatar_ahead.seaquest),
    "MinAtar-SpaceInvaders-v0": Good(minatar.space_invaders),
    "MinAtar-SpaceInvaders-v1": Good(minatar.space_invaders),
}
_PLANNER = Good(minigrid.planner, {"view": "full"})

WHY_NONE = {
    "MiniGrid-Playground": "it has no task, and every return is 0.",
}
"""By page, why there is no good policy."""

FILMED: dict[str, str] = {
    "MiniGrid-Empty": "MiniGrid-Empty-8x8-v0",
    "MiniGrid-DoorKey": "MiniGrid-DoorKey-8x8-v0",
    "MiniGrid-MultiRoom": "MiniGrid-MultiRoom-N6-v0",
    "MiniGrid-SimpleCrossing": "MiniGrid-SimpleCrossingS9N3-v0",
    "MiniGrid-LavaCrossing": "MiniGrid-LavaCrossingS9N3-v0",
    "MiniGrid-LavaGap": "MiniGrid-LavaGapS7-v0",
    "MiniGrid-UnlockPickup": "MiniGrid-BlockedUnlockPickup-v0",
    "MiniGrid-KeyCorridor": "MiniGrid-KeyCorridorS4R3-v0",
    "MiniGrid-DynamicObstacles": "MiniGrid-Dynamic-Obstacles-8x8-v0",
    "MiniGrid-Memory": "MiniGrid-MemoryS13-v0",
    "MiniGrid-Fetch": "MiniGrid-Fetch-8x8-N3-v0",
    "MiniGrid-GoToDoor": "MiniGrid-GoToDoor-8x8-v0",
    "MiniGrid-GoToObject": "MiniGrid-GoToObject-8x8-N2-v0",
    "MiniGrid-PutNear": "MiniGrid-PutNear-8x8-N3-v0",
    "MiniGrid-RedBlueDoors": "MiniGrid-RedBlueDoors-8x8-v0",
    "MiniGrid-ObstructedMaze": "MiniGrid-ObstructedMaze-2Dlh-v0",
}
"""By page, the id that is filmed where it is not the first."""


def of(id: str) -> Good | None:
    """The good policy of an env, if one is known."""
    if id.startswith("MiniGrid-"):
        return None if id.startswith("MiniGrid-Playground-") else _PLANNER
    return _GOOD.get(id)
