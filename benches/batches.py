"""Batches of random actions, and the contenders that step 1,024 envs of one kind."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import numpy as np

import corral
from corral.bench import Loop, Program, Turns, needs

NUM_ENVS = 1024
# Envs in Python are fewer: each step is slow.
FEW = 64
_PREPARED = 64


def actions(space: Any, num_envs: int, dtype: Any = np.int64) -> list[Any]:
    """Batches of random actions of a single env's space. `dtype` is that of labels."""
    rng = np.random.default_rng(0)
    shape = (_PREPARED, num_envs, *space.shape)
    if hasattr(space, "n"):
        return list(rng.integers(0, space.n, shape).astype(dtype))
    return list(rng.uniform(space.low, space.high, shape).astype(np.float32))


@contextmanager
def ours(id: str, num_envs: int = NUM_ENVS, **options: Any) -> Iterator[Turns]:
    """The built-in env of this id, on one thread."""
    envs = corral.make_vec(id, num_envs, seed=0, num_threads=1, **options)
    envs.reset()
    yield Loop(envs.step, actions(envs.single_action_space, num_envs), num_envs)
    envs.close()


def bare_loop(id: str, num_envs: int = NUM_ENVS) -> AbstractContextManager[Turns]:
    """The same envs, one after the other, in a Rust loop that writes the same batch into one set of
    buffers."""
    return Program.rust_example("envs", "bare_envs", id, str(num_envs))


@contextmanager
def sync(id: str, **options: Any) -> Iterator[Turns]:
    """A few envs of Python in Gymnasium's SyncVectorEnv."""
    make_vec = needs("gymnasium").make_vec
    envs = make_vec(id, num_envs=FEW, vectorization_mode="sync", **options)
    envs.reset(seed=0)
    yield Loop(envs.step, actions(envs.single_action_space, FEW), FEW)
    envs.close()


@contextmanager
def envpool(id: str, num_envs: int = NUM_ENVS) -> Iterator[Turns]:
    """EnvPool's env of this id, on one thread."""
    settings = {"num_envs": num_envs, "num_threads": 1, "seed": 0}
    envs = needs("envpool").make(id, env_type="gymnasium", **settings)
    envs.reset()
    yield Loop(envs.step, actions(envs.action_space, num_envs, np.int32), num_envs)
    envs.close()
