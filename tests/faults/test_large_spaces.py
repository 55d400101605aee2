"""Spaces of Python envs that no memory holds: an error that names the shape, and no abort."""

from __future__ import annotations

from typing import Any

import gymnasium
import pytest
from gymnasium import spaces

import corral

# More than a number of the machine's counts; more bytes than it does; more than it has.
VAST = [(2**70,), (2**40, 2**40), (2**50,)]


class Vast(gymnasium.Env[Any, Any]):
    """An env that says that it shows or takes more than there is."""

    def __init__(self, shape: tuple[int, ...], *, shows: bool) -> None:
        vast, plain = spaces.MultiBinary(list(shape)), spaces.Discrete(2)
        self.observation_space, self.action_space = (vast, plain) if shows else (plain, vast)

    def reset(self, **_: Any) -> tuple[Any, dict[str, Any]]:
        return 0, {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        return 0, 0.0, False, False, {}


@pytest.mark.parametrize("runner", ["serial", "process"])
@pytest.mark.parametrize("shows", [True, False])
@pytest.mark.parametrize("shape", VAST, ids=str)
def test_a_space_that_no_memory_holds_is_an_error(
    shape: tuple[int, ...], shows: bool, runner: str
) -> None:
    with pytest.raises((corral.errors.SpaceError, MemoryError)) as caught:
        corral.from_gymnasium(
            [lambda: Vast(shape, shows=shows)], runner=runner, context="forkserver"
        )
    if isinstance(caught.value, corral.errors.SpaceError):
        assert str(shape[0]) in str(caught.value)
