"""`corral.compat.pufferlib`: beside PufferLib 3 itself by `pufferlib_suite.py`, in a venv of its
own; and what is other here on purpose."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

import corral
import corral.compat.pufferlib as pufferlib
from corral import errors
from tests.abi import peers
from tests.abi.venvs import fetched, run, run_suite
from tests.trainers import pages

SUITE = Path(__file__).with_name("pufferlib_suite.py")


@pytest.mark.thorough
@pytest.mark.timeout(1800)
def test_with_pufferlib() -> None:
    done = run_suite(fetched(peers.venv_python, "pufferlib"), SUITE)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_page() -> None:
    done = run(Path(sys.executable), "-c", pages.programs("pufferlib")[0])
    assert done.returncode == 0, done.stderr
    assert done.stdout == pages.shown("pufferlib")[0]


@pytest.mark.parametrize("id", ["FrozenLake-v1", "Blackjack-v1"])
def test_labels_alone_are_int32(id: str) -> None:
    """PufferLib fails at them."""
    envs = pufferlib.vector.make(id, backend="Serial", num_envs=5)
    beside = corral.make_vec(id, 5)
    for flat, shown in (
        (envs.reset(3)[0], beside.reset(seed=3)[0]),
        (envs.step(np.ones(5, np.int64))[0], beside.step(np.ones(5, np.int64))[0]),
    ):
        columns = shown if isinstance(shown, tuple) else (shown,)
        assert flat.dtype == np.int32
        assert flat.tolist() == np.stack(columns, 1).tolist()
    envs.close()


def test_env_i_has_seed_plus_i_however_many_workers() -> None:
    for workers in (1, 2, 4):
        envs = pufferlib.vector.make(
            *(pole,), backend="Multiprocessing", num_envs=4, num_workers=workers
        )
        shown, _ = envs.reset(7)
        for env in range(4):
            start = gymnasium.make("CartPole-v1").reset(seed=7 + env)[0]
            np.testing.assert_array_equal(shown[env], start)
        envs.close()


def pole(buf: Any = None, seed: int = 0) -> Any:
    return pufferlib.emulation.GymnasiumPufferEnv(
        env_creator=gymnasium.make, env_args=["CartPole-v1"]
    )


def test_arrays_are_the_callers() -> None:
    for creator, backend in (
        (pole, "Serial"),
        ("CartPole-v1", "Serial"),
        ("CartPole-v1", "PufferEnv"),
    ):
        envs = pufferlib.vector.make(creator, backend=backend, num_envs=3)
        first, _ = envs.reset(1)
        kept = first.copy()
        second = envs.step(np.ones(3, np.int64))[0]
        assert not np.shares_memory(first, second)
        np.testing.assert_array_equal(first, kept)
        envs.close()


class Failing(gymnasium.Env[Any, Any]):
    observation_space = spaces.Box(-1, 1, (2,), np.float32)
    action_space = spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        return np.zeros(2, np.float32), {}

    def step(self, action: Any) -> Any:
        raise OSError("the motor is gone")


def failing(buf: Any = None, seed: int = 0) -> Any:
    return pufferlib.emulation.GymnasiumPufferEnv(env_creator=Failing, buf=buf)


@pytest.mark.parametrize("backend", ["Serial", "Multiprocessing"])
def test_what_an_env_raises_is_raised_and_a_reset_goes_on(backend: str) -> None:
    envs = pufferlib.vector.make(failing, backend=backend, num_envs=2)
    for _ in range(2):
        envs.reset(1)
        with pytest.raises(OSError, match="the motor is gone"):
            envs.step(np.zeros(2, np.int64))
        with pytest.raises(pufferlib.APIUsageError):
            envs.send(np.zeros(2, np.int64))
    envs.close()


def test_a_factor_of_the_envs_of_an_id() -> None:
    envs = pufferlib.vector.make(
        "CartPole-v1",
        env_kwargs={"num_envs": 3},
        backend="Multiprocessing",
        num_envs=4,
        batch_size=2,
    )
    assert (envs.num_agents, envs.agents_per_batch) == (12, 6)
    envs.async_reset(5)
    received = envs.recv()
    assert received[5].tolist() == list(range(6))
    envs.send(np.zeros(6, np.int64))
    shown, ids = envs.recv()[0], envs.agent_ids[6:]
    for row, env in enumerate(ids):
        start = gymnasium.make("CartPole-v1").reset(seed=5 + int(env))[0]
        np.testing.assert_array_equal(shown[row], start)
    envs.close()


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"backend": "Ray"}, errors.UnsupportedError),
        ({"env_args": ["x"], "backend": "Serial"}, pufferlib.APIUsageError),
        ({"env_kwargs": {"autoreset_mode": "disabled"}}, errors.UnsupportedError),
        ({"env_kwargs": {"gravitation": 3}}, errors.UnknownOptionError),
        ({"num_envs": 4, "batch_size": 8, "backend": "Multiprocessing"}, pufferlib.APIUsageError),
    ],
)
def test_what_an_id_does_not_take(arguments: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        pufferlib.vector.make("CartPole-v1", **arguments)
