"""The games beside a bare Rust loop: 1,024 of each, with random actions."""

from __future__ import annotations

from functools import partial

from batches import bare_loop, ours
from corral.bench import Bench, Contender

GAMES = ("Catch-v0", "Snake-v0", "2048-v0", "ConnectFour-v0")

BENCHES = [
    Bench(
        group="envs",
        one_cpu=True,
        name=f"games-{id.split('-')[0]}",
        what=id,
        size="1,024 envs, 1 thread",
        ours=Contender("corral", partial(ours, id), apart=True),
        theirs=[Contender("a bare Rust loop", partial(bare_loop, id), wanted=0.8)],
    )
    for id in GAMES
]
