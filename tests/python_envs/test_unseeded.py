"""What are envs seeded with that nobody seeded?"""

from __future__ import annotations

import os
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

import corral
from corral import errors
from tests.python_envs.kinds import KINDS, OURS, Kind

HERE = [kind for kind in OURS if kind.name in ("serial", "thread", "process")]


class Seeds(gymnasium.Env[Any, Any]):
    """Tells the seeds that it was given, and a number from its own generator. Action 1 raises,
    action 2 ends the process."""

    observation_space = spaces.Box(0, 1, (1,), np.float64)
    action_space = spaces.Discrete(3)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        return self._observe(), {"seed": [seed]}

    def _observe(self) -> Any:
        return self.np_random.random(1)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        if action == 1:
            raise RuntimeError("asked for")
        if action == 2:
            os._exit(3)
        return self._observe(), 0.0, False, False, {}


class Legacy(Seeds):
    """Seeds NumPy's old generator, which takes 32 bits, as dm_control does."""

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        np.random.seed(seed)
        return super().reset(seed=seed)


def _seeds(infos: dict[str, Any]) -> list[Any]:
    return [None if told is None else told[0] for told in infos["seed"]]


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_envs_that_nobody_seeded_are_given_none(kind: Kind) -> None:
    envs = kind([Legacy] * 3)
    observations, infos = envs.reset()
    assert _seeds(infos) == [None] * 3
    assert len(np.unique(observations)) == 3
    assert _seeds(envs.reset(seed=7)[1]) == [7, 8, 9]
    assert _seeds(envs.reset()[1]) == [None] * 3
    envs.close()


@pytest.mark.parametrize("kind", HERE, ids=str)
def test_a_seed_at_the_construction_is_the_first_resets(kind: Kind) -> None:
    envs = kind([Seeds] * 2, seed=7)
    first, infos = envs.reset()
    assert _seeds(infos) == [7, 8]
    assert _seeds(envs.reset()[1]) == [None, None]
    np.testing.assert_array_equal(envs.reset(seed=7)[0], first)
    envs.close()


def _failed(envs: Any, actions: Any) -> Any:
    with pytest.raises((RuntimeError, errors.EnvError)) as caught:
        envs.step(np.array(actions))
    error = caught.value
    return error if isinstance(error, errors.EnvError) else error.__cause__


@pytest.mark.parametrize("kind", HERE, ids=str)
def test_a_failure_of_an_env_that_nobody_seeded_names_no_seed(kind: Kind) -> None:
    envs = kind([Seeds] * 2)
    envs.reset()
    error = _failed(envs, [0, 1])
    assert error.failures[0].seed is None
    assert "(no seed, episode 0, step 0, action 1)" in str(error)
    # What is built anew is not seeded either.
    assert _seeds(envs.reset()[1]) == [None, None]
    envs.reset(seed=5)
    error = _failed(envs, [0, 1])
    assert error.failures[0].seed == 6
    # Once the user has seeded it, a rebuilt env has a seed of its own.
    again = _seeds(envs.reset()[1])
    assert again[0] is None
    assert isinstance(again[1], int)
    assert again[1] != 6
    assert _failed(envs, [0, 1]).failures[0].seed == again[1]
    envs.close()


@pytest.mark.parametrize("kind", HERE, ids=str)
def test_a_rebuilt_env_that_was_seeded_gets_a_seed_that_numpys_old_generator_takes(
    kind: Kind,
) -> None:
    envs = kind([Legacy] * 2)
    envs.reset(seed=5)
    _failed(envs, [1, 1])
    assert all(0 <= seed < 2**32 for seed in _seeds(envs.reset()[1]))
    envs.close()


def test_envs_whose_worker_died_are_seeded_only_if_they_were() -> None:
    how: dict[str, Any] = {"context": "forkserver", "num_workers": 1}
    envs = corral.from_gymnasium(Seeds, 2, **how)
    envs.reset()
    error = _failed(envs, [0, 2])
    assert [failure.seed for failure in error.failures] == [None, None]
    assert "no seed" in str(error)
    assert _seeds(envs.reset()[1]) == [None, None]
    envs.close()
    envs = corral.from_gymnasium(Seeds, 2, seed=3, **how)
    envs.reset()
    assert [failure.seed for failure in _failed(envs, [0, 2]).failures] == [3, 4]
    assert all(isinstance(seed, int) for seed in _seeds(envs.reset()[1]))
    envs.close()
