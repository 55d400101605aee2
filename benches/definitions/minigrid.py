"""MiniGrid's levels beside the package's and EnvPool's: 1,024 of each, with random actions."""

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
# With and without walls to see through; a mission of its own each episode; balls that roll.
LEVELS = (
    "MiniGrid-Empty-8x8-v0",
    "MiniGrid-DoorKey-8x8-v0",
    "MiniGrid-FourRooms-v0",
    "MiniGrid-Fetch-8x8-N3-v0",
    "MiniGrid-Dynamic-Obstacles-8x8-v0",
    "MiniGrid-ObstructedMaze-Full-v1",
)


def actions(space: Any, num_envs: int, dtype: Any = np.int64) -> list[Any]:
    """Batches of random actions of a single env's space."""
    return list(np.random.default_rng(0).integers(0, space.n, (PREPARED, num_envs)).astype(dtype))


@contextmanager
def ours(id: str, view: str) -> Iterator[Turns]:
    envs = corral.make_vec(id, NUM_ENVS, seed=0, num_threads=1, view=view)
    envs.reset()
    yield Loop(envs.step, actions(envs.single_action_space, NUM_ENVS), NUM_ENVS)
    envs.close()


def bare_loop(id: str) -> AbstractContextManager[Turns]:
    """The same envs in a Rust loop that writes the same batch into one set of buffers."""
    return Program.rust_example("envs", "bare_envs", id, str(NUM_ENVS))


@contextmanager
def package(id: str, view: str) -> Iterator[Turns]:
    """The package in Gymnasium's vec env, fewer of them: each step is Python."""
    make_vec, wrappers, few = needs("gymnasium").make_vec, needs("minigrid.wrappers"), 64
    around = [wrappers.RGBImgObsWrapper] if view == "rgb" else []
    envs = make_vec(id, num_envs=few, vectorization_mode="sync", wrappers=around)
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


def bench(id: str) -> Bench:
    return Bench(
        name=f"minigrid-{id.removeprefix('MiniGrid-')}",
        what=id,
        size="1,024 envs, 1 thread",
        ours=Contender("corral", partial(ours, id, "partial")),
        theirs=[
            Contender("a bare Rust loop", partial(bare_loop, id), wanted=0.8),
            Contender(
                "minigrid in Gymnasium's SyncVectorEnv, 64 envs",
                partial(package, id, "partial"),
                "minigrid",
                wanted=100,
            ),
            Contender("EnvPool", partial(envpool, id), "envpool", wanted=5),
        ],
    )


PICTURES = Bench(
    name="minigrid-pictures",
    what="MiniGrid-DoorKey-8x8-v0, view=rgb",
    size="1,024 envs, 1 thread",
    ours=Contender("corral", partial(ours, "MiniGrid-DoorKey-8x8-v0", "rgb")),
    theirs=[
        Contender(
            "minigrid with RGBImgObsWrapper in SyncVectorEnv, 64 envs",
            partial(package, "MiniGrid-DoorKey-8x8-v0", "rgb"),
            "minigrid",
            wanted=100,
        ),
    ],
)

BENCHES = [*(bench(id) for id in LEVELS), PICTURES]
