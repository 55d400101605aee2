"""What `to_gym3_suite.py` and `from_gym3_suite.py` share: the envs that they play, and by hand what
gym3 should show of them.

Importing this also gives NumPy the name `np.bool` where NumPy has none.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import corral

# gym3's testing envs use this name, which NumPy lacked from 1.24 to 1.26.
np.bool = np.bool_  # type: ignore[misc]

N = 4
CASES = {
    "CartPole": ("CartPole-v1", {}),
    "CartPole of 15 steps": ("CartPole-v1", {"max_episode_steps": 15}),
    "Maze": ("Maze-v0", {"max_episode_steps": 20, "size": 3, "loops": 50}),
    "Faulty": ("testing/Faulty-v0", {"max_episode_steps": 6}),
}
every_case = pytest.mark.parametrize("case", CASES)


def make(case: str, n: int = N, **more: Any) -> corral.VectorEnv:
    id, settings = CASES[case]
    return corral.make_vec(id, n, autoreset_mode="same_step", **{"seed": 7, **settings, **more})


def as_gym3(case: str, values: Any, of: str) -> Any:
    """By hand: what corral shows or takes, as gym3 has it."""
    if case != "Faulty":
        return values
    if of == "action":
        return {"force": values["force"], "gear": values["gear"] - 1}
    body = values["body"]
    return {
        "level": values["level"],
        "body": {"joints": body["joints"], "awake": body["awake"].astype(np.uint8)},
        "count": values["count"].astype(np.float64),
    }
