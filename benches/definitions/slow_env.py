"""send and recv: a slow env delays nobody."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import corral
from corral.bench import Bench, Contender, Loop, Turns

NUM_ENVS, BATCH, THREADS, SLOW = 64, 32, 8, 5


@contextmanager
def pool(**faults: Any) -> Iterator[Turns]:
    """Whoever comes back is sent on its way again."""
    settings: dict[str, Any] = {"num_threads": THREADS, "batch_size": BATCH, **faults}
    envs = corral.make_vec("testing/Faulty-v0", NUM_ENVS, seed=0, **settings)
    envs.action_space.seed(0)
    actions = envs.action_space.sample()
    envs.async_reset()

    def turn(actions: dict[str, Any]) -> int:
        ids = envs.recv()[4]["env_id"]
        envs.send({name: leaf[ids] for name, leaf in actions.items()}, ids)
        return len(ids)

    yield Loop(turn, [actions], steps=None)
    envs.drain()
    envs.close()


BENCHES = [
    Bench(
        name="slow-env",
        what="send and recv, one env sleeps 100 ms a step",
        size=f"{NUM_ENVS} envs, {THREADS} threads",
        ours=Contender(
            "corral", partial(pool, fault="sleep_in_every_step", of_seed=SLOW, sleep=0.1)
        ),
        theirs=[Contender("corral, none sleeps", pool, wanted=0.9)],
    ),
]
