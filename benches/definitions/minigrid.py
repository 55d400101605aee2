"""MiniGrid's levels beside the package's and EnvPool's: 1,024 of each, with random actions."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import partial

from batches import bare_loop, envpool, ours, sync
from corral.bench import Bench, Contender, Turns, needs

# With and without walls to see through; a mission of its own each episode; balls that roll.
LEVELS = (
    "MiniGrid-Empty-8x8-v0",
    "MiniGrid-DoorKey-8x8-v0",
    "MiniGrid-FourRooms-v0",
    "MiniGrid-Fetch-8x8-N3-v0",
    "MiniGrid-Dynamic-Obstacles-8x8-v0",
    "MiniGrid-ObstructedMaze-Full-v1",
)


def package(id: str, view: str) -> AbstractContextManager[Turns]:
    wrappers = needs("minigrid.wrappers")
    return sync(id, wrappers=[wrappers.RGBImgObsWrapper] if view == "rgb" else [])


def bench(id: str) -> Bench:
    return Bench(
        group="envs",
        one_cpu=True,
        name=f"minigrid-{id.removeprefix('MiniGrid-')}",
        what=id,
        size="1,024 envs, 1 thread",
        ours=Contender("corral", partial(ours, id), apart=True),
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
    group="envs",
    one_cpu=True,
    name="minigrid-pictures",
    what="MiniGrid-DoorKey-8x8-v0, view=rgb",
    size="1,024 envs, 1 thread",
    ours=Contender("corral", partial(ours, "MiniGrid-DoorKey-8x8-v0", view="rgb"), apart=True),
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
