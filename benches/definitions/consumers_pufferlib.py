"""PufferLib's programs: `corral.compat.pufferlib` beside PufferLib's own vectorisation."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import gymnasium
import numpy as np

import corral
import corral.compat.pufferlib
from corral.bench import Bench, Contender, Loop, Turns
from pufferlib_elsewhere import needs_pufferlib

NUM_ENVS = 1024
PREPARED = 64


def actions(num_envs: int, dtype: Any = np.int64) -> list[Any]:
    """Batches of random pushes."""
    return list(np.random.default_rng(0).integers(0, 2, (PREPARED, num_envs)).astype(dtype))


@contextmanager
def ours(backend: str, num_envs: int) -> Iterator[Turns]:
    """Envs of an id; infos tell of episodes."""
    envs = corral.compat.pufferlib.vector.make(
        "CartPole-v1", backend=backend, num_envs=num_envs, num_workers=1
    )
    envs.reset(0)
    yield Loop(envs.step, actions(num_envs), num_envs)
    envs.close()


@contextmanager
def vector_env(num_envs: int) -> Iterator[Turns]:
    """What is underneath, with the same options."""
    settings: dict[str, Any] = {"autoreset_mode": "same_step", "episode_statistics": True}
    envs = corral.make_vec("CartPole-v1", num_envs, seed=0, num_threads=1, **settings)
    envs.reset()
    yield Loop(envs.step, actions(num_envs), num_envs)
    envs.close()


@contextmanager
def in_c(num_envs: int) -> Iterator[Turns]:
    """PufferLib's env in C, float32, which tells of episodes at each step."""
    made = needs_pufferlib("pufferlib.ocean.cartpole.cartpole").Cartpole
    vector = needs_pufferlib("pufferlib.vector")
    envs = vector.make(made, env_kwargs={"num_envs": num_envs})
    envs.reset(0)
    yield Loop(envs.step, actions(num_envs, np.float32), num_envs)
    envs.close()


def wrapped(library: Any, buf: Any = None, seed: int = 0) -> Any:
    """Gymnasium's CartPole, by the emulation of a library."""
    env = library.EpisodeStats(gymnasium.make("CartPole-v1"))
    return library.emulation.GymnasiumPufferEnv(env=env, buf=buf, seed=seed)


@contextmanager
def serial(library: Any, num_envs: int) -> Iterator[Turns]:
    """Envs in Python by the backend Serial."""
    if library is None:
        library = needs_pufferlib("pufferlib")
        needs_pufferlib("pufferlib.vector")
    envs = library.vector.make(
        partial(wrapped, library), backend=library.vector.Serial, num_envs=num_envs
    )
    envs.reset(0)
    yield Loop(envs.step, actions(num_envs), num_envs)
    envs.close()


PUFFER_ENV = Contender("corral, PufferEnv", partial(ours, "PufferEnv", NUM_ENVS))

BENCHES = [
    Bench(
        name="consumers-pufferlib",
        what="a PufferLib program, CartPole",
        size="1,024 envs, 1 thread",
        ours=PUFFER_ENV,
        theirs=[
            Contender("PufferLib (C, float32)", partial(in_c, NUM_ENVS), "pufferlib", wanted=1),
            Contender(
                "PufferLib, Serial, Gymnasium's CartPole",
                partial(serial, None, NUM_ENVS),
                "pufferlib",
                wanted=100,
            ),
            Contender("VectorEnv.step", partial(vector_env, NUM_ENVS)),
            Contender("corral, Serial", partial(ours, "Serial", NUM_ENVS)),
        ],
    ),
    Bench(
        name="consumers-pufferlib-python",
        what="a PufferLib program, Gymnasium's CartPole",
        size="64 envs, serial",
        ours=Contender("corral", partial(serial, corral.compat.pufferlib, 64)),
        theirs=[Contender("PufferLib", partial(serial, None, 64), "pufferlib", wanted=1)],
    ),
]
