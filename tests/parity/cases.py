"""The envs that Gymnasium has too, with every option, and how they are played."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import gymnasium
import numpy as np

import corral

Rule = Callable[[Any, np.random.Generator], Any]
"""An action for an observation, by which an env is played to its end."""


def balance(seen: Any, rng: np.random.Generator) -> Any:
    """Until the time limit, or a while less."""
    return int(rng.integers(2)) if rng.random() < 0.12 else int(seen[2] + seen[3] > 0)


def push(seen: Any, rng: np.random.Generator) -> Any:
    """A torque in or beyond the bounds."""
    return rng.uniform(-2.6, 2.6, 1).astype(np.float32)


def rock(seen: Any, rng: np.random.Generator) -> Any:
    """With the motion, and now and then not."""
    return int(rng.integers(3)) if rng.random() < 0.1 else 2 * int(seen[1] > 0)


def rock_freely(seen: Any, rng: np.random.Generator) -> Any:
    """With the motion by a force in or beyond the bounds; some are exactly at one."""
    force = np.sign(seen[1] + 1e-9) * rng.choice([1.0, rng.uniform(0.5, 1.3)])
    return np.array([force], dtype=np.float32)


def swing(seen: Any, rng: np.random.Generator) -> Any:
    return int(rng.integers(3)) if rng.random() < 0.1 else 2 * int(seen[4] < 0)


def stay_below_17(seen: Any, rng: np.random.Generator) -> Any:
    return int(seen[0] < 17)


def by_table(theirs: gymnasium.Env[Any, Any]) -> Rule:
    """Mostly the best action of a table that Gymnasium's env tells, by value iteration."""
    table = theirs.unwrapped.P  # type: ignore[attr-defined]
    states, actions = len(table), len(table[0])
    value = np.zeros(states)
    gains = np.zeros((states, actions))
    for _ in range(60):
        for state in range(states):
            for action in range(actions):
                gains[state, action] = sum(
                    p * (reward + (0 if over else 0.99 * value[to]))
                    for p, to, reward, over in table[state][action]
                )
        value = gains.max(1)
    best = gains.argmax(1)

    def rule(seen: Any, rng: np.random.Generator) -> Any:
        return int(rng.integers(actions)) if rng.random() < 0.15 else int(best[seen])

    return rule


@dataclass(frozen=True)
class Parity:
    """One env under some options.

    Attributes:
        id: of both.
        options: that both take.
        ours, theirs: options that only one takes, or takes otherwise.
        attributes: what to set of Gymnasium's env, where that is an option of ours.
        start: the options of every reset.
        rule: what plays an env to its end; `by_table` where it is None.
        ends: how its episodes are to end, some of them.
        trig: whether Gymnasium's env calls NumPy's sin and cos, which must be libm's.
        rtol: how far rewards may differ, relatively.
        steps: after how many steps an episode is left, where there is no time limit.
    """

    id: str
    options: dict[str, Any] = field(default_factory=dict)
    ours: dict[str, Any] = field(default_factory=dict)
    theirs: Callable[[], dict[str, Any]] = dict
    attributes: dict[str, Any] = field(default_factory=dict)
    start: dict[str, Any] = field(default_factory=dict)
    rule: Rule | None = None
    ends: tuple[str, ...] = ("terminated", "truncated")
    trig: bool = False
    rtol: float = 0.0
    steps: int = 100_000

    def make_ours(self, **more: Any) -> corral.Env:
        return corral.make(self.id, **self.options, **self.ours, **more)

    def make_theirs(self, **more: Any) -> gymnasium.Env[Any, Any]:
        env = gymnasium.make(self.id, **self.options, **self.theirs(), **more)
        for name, value in self.attributes.items():
            setattr(env.unwrapped, name, value)
        return env

    def __str__(self) -> str:
        given = {**self.options, **self.ours, **self.start}
        return " ".join([self.id, *(f"{name}={value}" for name, value in given.items())])


def random_map() -> dict[str, Any]:
    from gymnasium.envs.toy_text.frozen_lake import generate_random_map

    return {"desc": generate_random_map(size=6, p=0.7, seed=11)}


LAKE = ["FSFF", "HFFS", "FFFF", "FGHS", "FFFG"]

CASES = [
    Parity("CartPole-v1", rule=balance, trig=True),
    Parity("Pendulum-v1", rule=push, ends=("truncated",), trig=True, rtol=1e-15),
    Parity("MountainCar-v0", rule=rock),
    Parity("MountainCarContinuous-v0", rule=rock_freely),
    Parity("Acrobot-v1", rule=swing, trig=True),
    Parity("FrozenLake-v1", ends=("terminated",)),
    Parity("FrozenLake8x8-v1", ends=("terminated",)),
    Parity("CliffWalking-v1", ends=("terminated",), steps=400),
    Parity("CliffWalkingSlippery-v1", ends=("terminated",), steps=400),
    Parity("Taxi-v4"),
    Parity("Blackjack-v1", rule=stay_below_17, ends=("terminated",)),
]
"""Each env as it is registered."""

OPTIONS = [
    Parity("CartPole-v1", {"sutton_barto_reward": True}, rule=balance, trig=True),
    Parity("CartPole-v1", start={"low": -0.2, "high": 0.1}, rule=balance, trig=True),
    Parity("Pendulum-v1", {"g": 9.81}, rule=push, ends=("truncated",), trig=True, rtol=1e-15),
    Parity(
        "Pendulum-v1",
        start={"x_init": 0.3, "y_init": 7},
        rule=push,
        ends=("truncated",),
        trig=True,
        rtol=1e-15,
    ),
    Parity("MountainCar-v0", {"goal_velocity": 0.02}, rule=rock),
    Parity("MountainCar-v0", start={"low": -1.1, "high": 0.4}, rule=rock),
    Parity("MountainCarContinuous-v0", {"goal_velocity": 0.03}, rule=rock_freely),
    Parity("MountainCarContinuous-v0", start={"low": -1.3, "high": 0.4}, rule=rock_freely),
    Parity(
        "Acrobot-v1",
        ours={"book_or_nips": "nips"},
        attributes={"book_or_nips": "nips"},
        rule=swing,
        ends=("terminated",),
        trig=True,
    ),
    Parity(
        "Acrobot-v1",
        ours={"dt": 0.05, "torque_noise_max": 0.5},
        attributes={"dt": 0.05, "torque_noise_max": 0.5},
        start={"low": -2, "high": 2},
        rule=swing,
        trig=True,
        ends=("terminated",),
    ),
    Parity("FrozenLake-v1", {"is_slippery": False}, ends=("terminated",)),
    Parity("FrozenLake-v1", {"map_name": "8x8", "success_rate": 0.7}, ends=("terminated",)),
    Parity("FrozenLake-v1", {"desc": LAKE, "reward_schedule": (5, -1, 0.25)}, ends=("terminated",)),
    Parity(
        "FrozenLake-v1",
        ours={"map_name": None, "map_size": 6, "map_p": 0.7, "map_seed": 11},
        theirs=random_map,
        ends=("terminated",),
    ),
    Parity(
        "FrozenLake8x8-v1",
        {"is_slippery": False, "reward_schedule": (10, -10, -1)},
        ends=("terminated",),
    ),
    Parity("CliffWalking-v1", {"is_slippery": True}, ends=("terminated",), steps=400),
    Parity("CliffWalkingSlippery-v1", {"is_slippery": False}, ends=("terminated",), steps=400),
    Parity("Taxi-v4", {"is_rainy": True}),
    Parity("Taxi-v4", {"fickle_passenger": True}),
    Parity(
        "Taxi-v4",
        {
            "is_rainy": True,
            "fickle_passenger": True,
            "rainy_probability": 0.55,
            "fickle_probability": 0.9,
        },
    ),
    Parity("Blackjack-v1", {"sab": False}, rule=stay_below_17, ends=("terminated",)),
    Parity(
        "Blackjack-v1", {"sab": False, "natural": True}, rule=stay_below_17, ends=("terminated",)
    ),
]
"""Each option, and each reset option."""
