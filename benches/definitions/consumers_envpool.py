"""Programs written for EnvPool: what `corral.compat.envpool` adds to a step, and what EnvPool
takes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np

import corral
import corral.compat.envpool as drop_in
from corral.bench import Bench, Contender, Loop, Turns, needs


def pushes(num_envs: int) -> list[Any]:
    return list(np.random.default_rng(0).integers(0, 2, (64, num_envs)).astype(np.int32))


def ours() -> Any:
    return drop_in


def theirs() -> Any:
    return needs("envpool")


@contextmanager
def steps(module: Callable[[], Any], num_envs: int, env_type: str = "gymnasium") -> Iterator[Turns]:
    settings = {"num_envs": num_envs, "num_threads": 1, "seed": 0}
    envs = module().make("CartPole-v1", env_type=env_type, **settings)
    envs.reset()
    yield Loop(envs.step, pushes(num_envs), num_envs)
    envs.close()


@contextmanager
def bare(num_envs: int) -> Iterator[Turns]:
    """What the drop-in stands on."""
    envs = corral.make_vec("CartPole-v1", num_envs, num_threads=1, seed=0)
    envs.reset()
    yield Loop(envs.step, pushes(num_envs), num_envs)
    envs.close()


@contextmanager
def in_flight(module: Callable[[], Any], num_envs: int, batch_size: int) -> Iterator[Turns]:
    """EnvPool's loop of `recv` and `send`, as its own examples have it."""
    envs = module().make(
        *("CartPole-v1", "gymnasium"), num_envs=num_envs, batch_size=batch_size, num_threads=1
    )
    envs.async_reset()

    def play(actions: Any) -> None:
        infos = envs.recv()[-1]
        envs.send(actions, infos["env_id"])

    yield Loop(play, pushes(batch_size), batch_size)
    envs.close()


def one_thread(num_envs: int) -> Bench:
    return Bench(
        name=f"consumers-envpool-{num_envs}",
        what="EnvPool's step, CartPole",
        size=f"{num_envs:,} envs, 1 thread",
        ours=Contender("corral.compat.envpool", partial(steps, ours, num_envs)),
        theirs=[
            Contender("VectorEnv.step", partial(bare, num_envs)),
            Contender("EnvPool", partial(steps, theirs, num_envs), "envpool", wanted=10),
        ],
    )


BENCHES = [
    one_thread(64),
    one_thread(1024),
    one_thread(4096),
    Bench(
        name="consumers-envpool-dm",
        what="EnvPool's step for dm_env, CartPole",
        size="1,024 envs, 1 thread",
        ours=Contender("corral.compat.envpool", partial(steps, ours, 1024, "dm")),
        theirs=[Contender("EnvPool", partial(steps, theirs, 1024, "dm"), "envpool", wanted=10)],
    ),
    Bench(
        name="consumers-envpool-async",
        what="EnvPool's send and recv, CartPole",
        size="256 envs, batches of 128, 1 thread",
        ours=Contender("corral.compat.envpool", partial(in_flight, ours, 256, 128)),
        theirs=[
            Contender("EnvPool", partial(in_flight, theirs, 256, 128), "envpool", wanted=1),
        ],
    ),
]
