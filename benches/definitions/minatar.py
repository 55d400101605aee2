"""MinAtar's games beside the package's: 1,024 of each, with random actions."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import partial

from batches import bare_loop, ours, sync
from corral.bench import Bench, Contender, Limit, Turns, needs

# The steps a second that gymnax publishes for an A100 with 2,000 envs, where it does.
ON_A_GPU = {
    "Asterix": 1.1e6,
    "Breakout": 5.3e6,
    "Freeway": 1.15e6,
    "Seaquest": None,
    "SpaceInvaders": 3.0e6,
}


def package(id: str) -> AbstractContextManager[Turns]:
    needs("minatar.gym").register_envs()
    return sync(id.replace("MinAtar-", "MinAtar/"))


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
        group="envs",
        one_cpu=True,
        name=f"minatar-{game}",
        what=id,
        size="1,024 envs, 1 thread",
        ours=Contender("corral", partial(ours, id), apart=True),
        theirs=others,
    )


BENCHES = [bench(game, rate) for game, rate in ON_A_GPU.items()]
