"""Maze-v0: pixels, which are bound by memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

import corral
from corral.bench import Bench, Contender, Loop, Turns

NUM_ENVS = 1024


@contextmanager
def ours() -> Iterator[Turns]:
    envs = corral.make_vec("Maze-v0", NUM_ENVS, seed=0, num_threads=1)
    envs.reset()
    actions = np.random.default_rng(0).integers(0, envs.single_action_space.n, (64, NUM_ENVS))
    yield Loop(envs.step, list(actions), NUM_ENVS)
    envs.close()


@contextmanager
def memcpy() -> Iterator[Turns]:
    """Copies one batch's observation into another."""
    source = np.ones((NUM_ENVS, 64, 64, 3), np.uint8)
    target = np.zeros_like(source)
    yield Loop(lambda source: np.copyto(target, source), [source], NUM_ENVS)


@contextmanager
def writing() -> Iterator[Turns]:
    """Writes one picture, which stays in the cache, to each row: a pass that reads no memory."""
    picture = np.ones((64, 64, 3), np.uint8)
    target = np.zeros((NUM_ENVS, *picture.shape), np.uint8)
    yield Loop(lambda picture: np.copyto(target, picture), [picture], NUM_ENVS)


BENCHES = [
    Bench(
        name="maze-1024",
        what="Maze, 64×64×3 pixels",
        size="1,024 envs, 1 thread",
        ours=Contender("corral", ours),
        theirs=[
            Contender("a pass that writes as many bytes", writing, wanted=0.5),
            Contender("a memcpy of its bytes", memcpy),
        ],
    ),
]
