"""The envs that Gymnasium has too: 1,024 of each, or 4,096 where a kernel steps them."""

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


KERNELS = ("Pendulum", "MountainCar", "Acrobot")


def bench(id: str, theirs: str | None) -> Bench:
    by_kernel = id.startswith(KERNELS)
    num_envs = 4096 if by_kernel else 1024
    others = [
        Contender(
            "a bare Rust loop, env by env",
            partial(bare_loop, id, num_envs),
            wanted=3 if by_kernel else 0.8,
        ),
        Contender("Gymnasium's SyncVectorEnv, 64 envs", partial(sync, id), "gymnasium"),
    ]
    if theirs is not None:
        others.append(
            Contender(
                "EnvPool",
                partial(envpool, theirs, num_envs),
                "envpool",
                wanted=20 if by_kernel else 10,
            )
        )
    return Bench(
        group="envs",
        one_cpu=True,
        name=f"gymnasium-{id}",
        what=id,
        size=f"{num_envs:,} envs, 1 thread",
        ours=Contender("corral", partial(ours, id, num_envs), apart=True),
        theirs=others,
    )


BENCHES = [bench(id, theirs) for id, theirs in IN_ENVPOOL.items()]
