"""The games beside a bare Rust loop: 1,024 of each, with random actions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial

import numpy as np

import corral
from corral.bench import Bench, Contender, Loop, Program, Turns

NUM_ENVS = 1024
PREPARED = 64
GAMES = ("Catch-v0", "Snake-v0", "2048-v0", "ConnectFour-v0")


@contextmanager
def ours(id: str) -> Iterator[Turns]:
    envs = corral.make_vec(id, NUM_ENVS, seed=0, num_threads=1)
    envs.reset()
    count = envs.single_action_space.n
    actions = np.random.default_rng(0).integers(0, count, (PREPARED, NUM_ENVS))
    yield Loop(envs.step, list(actions), NUM_ENVS)
    envs.close()


def bare_loop(id: str) -> AbstractContextManager[Turns]:
    """The same env type in a Rust loop that writes the same batch into one set of buffers."""
    return Program.rust_example("envs", "bare_envs", id, str(NUM_ENVS))


BENCHES = [
    Bench(
        name=f"games-{id.split('-')[0]}",
        what=id,
        size="1,024 envs, 1 thread",
        ours=Contender("corral", partial(ours, id)),
        theirs=[Contender("a bare Rust loop", partial(bare_loop, id), wanted=0.8)],
    )
    for id in GAMES
]
