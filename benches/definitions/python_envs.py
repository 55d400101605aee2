"""Envs in Python: what it costs to host them, and to carry their steps between processes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np

import corral
from corral.bench import Bench, Contender, Loop, Skip, Turns, needs
from pufferlib_elsewhere import needs_pufferlib
from python_envs import (
    Graphs,
    Pixels,
    Sleeping,
    Spinning,
    Trivial,
    breakout,
    lunar_lander,
    minigrid,
)

WORKERS = 16
SHOWS_GRAPHS = "a Python env that shows graphs"


def actions(num_envs: int, choices: int = 2) -> list[Any]:
    return list(np.random.default_rng(0).integers(0, choices, (64, num_envs)))


def from_gymnasium() -> Any:
    made = getattr(corral, "from_gymnasium", None)
    if made is None:
        raise Skip("this corral has no from_gymnasium")
    return made


def loop(envs: Any) -> Loop:
    envs.reset()
    # Stable-Baselines3 calls the space of one env so.
    space = getattr(envs, "single_action_space", envs.action_space)
    return Loop(envs.step, actions(envs.num_envs, int(space.n)), envs.num_envs)


@contextmanager
def ours(env: Any, num_envs: int, **settings: Any) -> Iterator[Turns]:
    envs = from_gymnasium()(env, num_envs=num_envs, **settings)
    yield loop(envs)
    envs.close()


@contextmanager
def gymnasium_sync(env: Any, num_envs: int) -> Iterator[Turns]:
    envs = needs("gymnasium").vector.SyncVectorEnv([env] * num_envs)
    yield loop(envs)
    envs.close()


@contextmanager
def gymnasium_async(env: Any, num_envs: int) -> Iterator[Turns]:
    envs = needs("gymnasium").vector.AsyncVectorEnv([env] * num_envs, shared_memory=True)
    yield loop(envs)
    envs.close()


@contextmanager
def gymnasium_pipes(env: Any, num_envs: int) -> Iterator[Turns]:
    """Without shared memory, which takes neither graphs nor spaces of one's own."""
    envs = needs("gymnasium").vector.AsyncVectorEnv([env] * num_envs, shared_memory=False)
    yield loop(envs)
    envs.close()


@contextmanager
def ours_with(package: str, env: Any, num_envs: int) -> Iterator[Turns]:
    """Envs of another package."""
    needs(package)
    with ours(env, num_envs, runner="process", num_workers=2) as turns:
        yield turns


def beside_async(
    name: str,
    what: str,
    env: Any,
    num_envs: int,
    at_least: float,
    *,
    package: str = "gymnasium",
    peer: Any = gymnasium_async,
) -> Bench:
    """Two workers of ours beside a process of Gymnasium's for each env."""
    opened = partial(peer, env, num_envs)
    return Bench(
        name=name,
        what=what,
        size=f"{num_envs} envs, 2 workers",
        ours=Contender("corral", partial(ours_with, package, env, num_envs)),
        theirs=[Contender("AsyncVectorEnv", opened, "gymnasium", wanted=at_least, apart=True)],
    )


@contextmanager
def sb3(env: Any, num_envs: int) -> Iterator[Turns]:
    """Forked, for its default start method would import torch in every worker."""
    subproc = needs("stable_baselines3_without_torch").SubprocVecEnv
    envs = subproc([env] * num_envs, start_method="fork")
    yield loop(envs)
    envs.close()


def puffer_env(env: Any, buf: Any = None, seed: int = 0) -> Any:
    return needs_pufferlib("pufferlib.emulation").GymnasiumPufferEnv(
        env_creator=env, buf=buf, seed=seed
    )


@contextmanager
def pufferlib(env: Any, num_envs: int, workers: int = 0) -> Iterator[Turns]:
    """In one process, or in that many workers."""
    vector = needs_pufferlib("pufferlib.vector")
    settings: dict[str, Any] = {"backend": vector.Serial}
    if workers:
        settings = {"backend": vector.Multiprocessing, "num_workers": workers}
    envs = vector.make(partial(puffer_env, env), num_envs=num_envs, **settings)
    envs.reset()
    yield Loop(envs.step, actions(num_envs), num_envs)
    envs.close()


def one_sleeper(num_envs: int) -> list[Any]:
    return [Sleeping, *[Trivial] * (num_envs - 1)]


@contextmanager
def in_flight(envs_of: Any, num_envs: int) -> Iterator[Turns]:
    """Counts the rows of all but the first worker's envs."""
    settings = {"num_workers": WORKERS, "batch_size": 32, "runner": "process"}
    envs = from_gymnasium()(envs_of(num_envs), num_envs=num_envs, **settings)
    envs.async_reset()
    pushes = actions(num_envs)[0]
    others = num_envs // WORKERS

    def turn(pushes: Any) -> int:
        ids = envs.recv()[4]["env_id"]
        envs.send(pushes[ids], ids)
        return int(np.count_nonzero(ids >= others))

    yield Loop(turn, [pushes], steps=None)
    envs.drain()
    envs.close()


def async_and_others(num_envs: int, at_least: float) -> list[Contender]:
    """The peers that a trivial env is measured against."""
    on = partial(Contender, apart=True)
    return [
        on(
            "AsyncVectorEnv",
            partial(gymnasium_async, Trivial, num_envs),
            "gymnasium",
            wanted=at_least,
        ),
        on("SubprocVecEnv", partial(sb3, Trivial, num_envs), "stable-baselines3", wanted=at_least),
        on("PufferLib, serial", partial(pufferlib, Trivial, num_envs), "pufferlib", wanted=1),
        on("PufferLib, 1 worker", partial(pufferlib, Trivial, num_envs, 1), "pufferlib", wanted=1),
        on("PufferLib, 2 workers", partial(pufferlib, Trivial, num_envs, 2), "pufferlib", wanted=1),
    ]


def processes(name: str, env: Any, num_envs: int) -> Contender:
    opened = partial(ours, env, num_envs, runner="process", num_workers=2)
    return Contender(name, opened)


def serial(env: Any, num_envs: int, wanted: float | None = None) -> Contender:
    opened = partial(ours, env, num_envs, runner="serial")
    return Contender("corral, serial", opened, wanted=wanted)


BENCHES = [
    Bench(
        name="python-64",
        what="a trivial env in Python",
        size="64 envs, 2 workers",
        ours=processes("corral", Trivial, 64),
        theirs=async_and_others(64, 40),
    ),
    Bench(
        name="python-8",
        what="a trivial env in Python",
        size="8 envs, 2 workers",
        ours=processes("corral", Trivial, 8),
        theirs=async_and_others(8, 10)[:2],
    ),
    Bench(
        name="python-serial",
        what="a trivial env in Python",
        size="64 envs, serial",
        ours=serial(Trivial, 64),
        theirs=[
            Contender(
                "SyncVectorEnv", partial(gymnasium_sync, Trivial, 64), "gymnasium", wanted=1.5
            )
        ],
    ),
    Bench(
        name="python-spin",
        what="a Python env that works 1 ms a step",
        size="64 envs, 2 workers",
        ours=processes("corral", Spinning, 64),
        theirs=[serial(Spinning, 64, wanted=1.9)],
    ),
    beside_async("python-pixels", "a Python env with 84×84×4 bytes", Pixels, 64, 30),
    beside_async("python-graphs", SHOWS_GRAPHS, Graphs, 64, 1, peer=gymnasium_pipes),
    beside_async("python-graphs-8", SHOWS_GRAPHS, Graphs, 8, 1, peer=gymnasium_pipes),
    beside_async(
        "python-minigrid",
        "MiniGrid-DoorKey-8x8-v0",
        minigrid,
        64,
        1.5,
        package="minigrid",
        peer=gymnasium_pipes,
    ),
    beside_async("python-lunarlander", "LunarLander-v3", lunar_lander, 64, 6, package="Box2D"),
    beside_async("python-breakout", "ALE/Breakout-v5, raw", breakout, 8, 1.3, package="ale_py"),
    Bench(
        name="python-slow",
        what="Python envs, one sleeps 100 ms a step",
        size=f"64 envs, {WORKERS} workers",
        ours=Contender("corral", partial(in_flight, one_sleeper, 64)),
        theirs=[
            Contender(
                "corral, none sleeps",
                partial(in_flight, lambda num_envs: [Trivial] * num_envs, 64),
                wanted=0.9,
            )
        ],
    ),
]
