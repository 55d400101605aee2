"""netenv: what the way over a socket costs."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import corral
import netenv_peer
from corral.bench import Bench, Contender, Loop, Turns

NUM_ENVS = 64
PIXELS = NUM_ENVS * 64 * 64 * 3
# Pixels, rewards and ends, each padded to 64 bytes.
PIXEL_STEP = PIXELS + 256 + 64


def actions(low: int, high: int) -> list[Any]:
    """Batches of random actions."""
    return list(np.random.default_rng(0).integers(low, high, (64, NUM_ENVS)))


@contextmanager
def elsewhere(*command: str) -> Iterator[str]:
    """A server in another process; the last word of its first line."""
    with subprocess.Popen([sys.executable, *command], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().split()[-1]
        finally:
            process.kill()


@contextmanager
def served(env: str, choices: int, way: str) -> Iterator[Turns]:
    """`corral serve` and `corral.connect`."""
    with tempfile.TemporaryDirectory() as directory:
        where = ["--addr", "127.0.0.1:0"] if way == "tcp" else ["--unix", f"{directory}/socket"]
        with elsewhere("-m", "corral", "serve", env, *where, "--idle-timeout", "600") as address:
            # As the peers beside it, which speak the original's bytes.
            envs = corral.connect(address, NUM_ENVS, plain=True, use_shared_memory=way == "shared")
            envs.reset()
            yield Loop(envs.step, actions(0, choices), NUM_ENVS)
            envs.close()


@contextmanager
def here(env: str, choices: int) -> Iterator[Turns]:
    envs = corral.make_vec(env, NUM_ENVS, seed=0, autoreset_mode="same_step")
    envs.reset()
    yield Loop(envs.step, actions(0, choices), NUM_ENVS)
    envs.close()


@contextmanager
def peer(how: str, env: str, choices: int, step_bytes: int) -> Iterator[Turns]:
    """The least that Python can do."""
    file = str(Path(netenv_peer.__file__))
    sizes = (8 * NUM_ENVS, step_bytes)
    with elsewhere(file, how, env, str(NUM_ENVS), *map(str, sizes)) as port:
        if how == "plain":
            step = netenv_peer.plain_client(int(port), NUM_ENVS)
        else:
            step = netenv_peer.bare_client(int(port), *sizes)
        yield Loop(step, actions(0, choices), NUM_ENVS)


def contender(name: str, env: str, choices: int, way: str) -> Contender:
    return Contender(name, partial(served, env, choices, way))


BENCHES = [
    Bench(
        name="netenv-cartpole",
        what="CartPole over TCP on loopback",
        size=f"{NUM_ENVS} envs, 2 processes",
        ours=contender("corral, netenv", "CartPole-v1", 2, "tcp"),
        theirs=[
            Contender(
                "a minimal peer in Python", partial(peer, "plain", "CartPole-v1", 2, 0), wanted=5
            )
        ],
    ),
    Bench(
        name="netenv-pixels",
        what="64×64×3 pixels over TCP on loopback",
        size=f"{NUM_ENVS} envs, 2 processes",
        ours=contender("corral, netenv", "Maze-v0", 4, "tcp"),
        theirs=[
            Contender("a bare socket", partial(peer, "bare", "Maze-v0", 4, PIXEL_STEP), wanted=0.6)
        ],
    ),
    Bench(
        name="netenv-shared",
        what="CartPole over a Unix socket and shared memory",
        size=f"{NUM_ENVS} envs, 2 processes",
        ours=contender("corral, netenv", "CartPole-v1", 2, "shared"),
        theirs=[Contender("corral, in this process", partial(here, "CartPole-v1", 2))],
        per_call=True,
    ),
]
