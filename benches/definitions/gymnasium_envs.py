"""The envs that Gymnasium has too: 1,024 of each, with random actions."""

from __future__ import annotations

from functools import partial

from batches import bare_loop, envpool, ours, sync
from corral.bench import Bench, Contender

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
