"""The envs that Gymnasium has too: 1,024 of each, with random actions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Any

import numpy as np

import corral
from corral.bench import Bench, Contender, Loop, Program, Turns, needs

NUM_ENVS = 1024
PREPARED = 64
# What EnvPool calls its own.
IN_ENVPOOL = {
    "Pendulum-v1": "Pendulum-v1",
    "MountainCar-v0": "MountainCar-v0",
    "MountainCarContinuous-v0": "MountainCarContinuous-v0",
    "Acrobot-v1": "Acrobot-v1",
    "FrozenLake-v1": "FrozenLake-v1",
    "FrozenLake8x8-v1": "FrozenLake8x8-v1",
    "CliffWalking-v1": "CliffWalking-v0",
    "CliffWalkingSlippery-v1": None,
    "Taxi-v4": "Taxi-v3",
    "Blackjack-v1": "Blackjack-v1",
}


def actions(space: Any, num_envs: int, dtype: Any = None) -> list[Any]:
    """Batches of random actions of a single env's space."""
    rng = np.random.default_rng(0)
    shape = (PREPARED, num_envs, *space.shape)
    if hasattr(space, "n"):
        return list(rng.integers(0, space.n, shape).astype(dtype or np.int64))
    return list(rng.uniform(space.low, space.high, shape).astype(np.float32))


@contextmanager
def ours(id: str) -> Iterator[Turns]:
    envs = corral.make_vec(id, NUM_ENVS, seed=0, num_threads=1)
    envs.reset()
    yield Loop(envs.step, actions(envs.single_action_space, NUM_ENVS), NUM_ENVS)
    envs.close()


def bare_loop(id: str) -> AbstractContextManager[Turns]:
    """The same env type in a Rust loop that writes the same batch into one set of buffers."""
    return Program.rust_example("envs", "bare_envs", id, str(NUM_ENVS))


@contextmanager
def sync(id: str) -> Iterator[Turns]:
    """Gymnasium's own envs in its own vec env, fewer of them: each step is Python."""
    make_vec, few = needs("gymnasium").make_vec, 64
    envs = make_vec(id, num_envs=few, vectorization_mode="sync")
    envs.reset(seed=0)
    yield Loop(envs.step, actions(envs.single_action_space, few), few)
    envs.close()


@contextmanager
def envpool(id: str) -> Iterator[Turns]:
    settings = {"num_envs": NUM_ENVS, "num_threads": 1, "seed": 0}
    envs = needs("envpool").make(id, env_type="gymnasium", **settings)
    envs.reset()
    yield Loop(envs.step, actions(envs.action_space, NUM_ENVS, np.int32), NUM_ENVS)
    envs.close()


def bench(id: str, theirs: str | None) -> Bench:
    others = [
        Contender("a bare Rust loop", partial(bare_loop, id), wanted=0.8),
        Contender("Gymnasium's SyncVectorEnv, 64 envs", partial(sync, id), "gymnasium"),
    ]
    if theirs is not None:
        others.append(Contender("EnvPool", partial(envpool, theirs), "envpool", wanted=10))
    return Bench(
        name=f"gymnasium-{id}",
        what=id,
        size="1,024 envs, 1 thread",
        ours=Contender("corral", partial(ours, id)),
        theirs=others,
    )


BENCHES = [bench(id, theirs) for id, theirs in IN_ENVPOOL.items()]
