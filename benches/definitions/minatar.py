"""MinAtar's games beside the package's: 1,024 of each, with random actions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Any

import numpy as np

import corral
from corral.bench import Bench, Contender, Limit, Loop, Program, Turns, needs

NUM_ENVS = 1024
PREPARED = 64
# The steps a second that gymnax publishes for an A100 with 2,000 envs, where it does.
ON_A_GPU = {
    "Asterix": 1.1e6,
    "Breakout": 5.3e6,
    "Freeway": 1.15e6,
    "Seaquest": None,
    "SpaceInvaders": 3.0e6,
}


def actions(space: Any, num_envs: int) -> list[Any]:
    """Batches of random actions of a single env's space."""
    return list(np.random.default_rng(0).integers(0, space.n, (PREPARED, num_envs)))


@contextmanager
def ours(id: str) -> Iterator[Turns]:
    envs = corral.make_vec(id, NUM_ENVS, seed=0, num_threads=1)
    envs.reset()
    yield Loop(envs.step, actions(envs.single_action_space, NUM_ENVS), NUM_ENVS)
    envs.close()


def bare_loop(id: str) -> AbstractContextManager[Turns]:
    """The same envs in a Rust loop that writes the same batch into one set of buffers."""
    return Program.rust_example("envs", "bare_envs", id, str(NUM_ENVS))


@contextmanager
def package(id: str) -> Iterator[Turns]:
    """The package in Gymnasium's vec env, fewer of them: each step is Python."""
    needs("minatar.gym").register_envs()
    few = 64
    name = id.replace("MinAtar-", "MinAtar/")
    envs = needs("gymnasium").make_vec(name, num_envs=few, vectorization_mode="sync")
    envs.reset(seed=0)
    yield Loop(envs.step, actions(envs.single_action_space, few), few)
    envs.close()


def bench(game: str, on_a_gpu: float | None) -> Bench:
    id = f"MinAtar-{game}-v1"
    others: list[Contender | Limit] = [
        Contender("a bare Rust loop", partial(bare_loop, id), wanted=0.8),
        Contender(
            "minatar in Gymnasium's SyncVectorEnv, 64 envs",
            partial(package, id),
            "minatar",
            wanted=50,
        ),
    ]
    if on_a_gpu is not None:
        others.append(Limit("gymnax on an A100, as published", on_a_gpu))
    return Bench(
        name=f"minatar-{game}",
        what=id,
        size="1,024 envs, 1 thread",
        ours=Contender("corral", partial(ours, id)),
        theirs=others,
    )


BENCHES = [bench(game, rate) for game, rate in ON_A_GPU.items()]
