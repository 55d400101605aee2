"""Rollouts of CartPole: 128 steps at a time, beside `step` calls that keep nothing, and those whose
arrays are stacked. The policy costs nothing: its actions are made beforehand."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from itertools import cycle
from typing import Any

import numpy as np

import corral
from corral.bench import Bench, Contender, Loop, Turns

STEPS = 128
PREPARED = 64


@contextmanager
def cart_poles(num_envs: int) -> Iterator[tuple[corral.VectorEnv, list[Any]]]:
    envs = corral.make_vec("CartPole-v1", num_envs, seed=0, num_threads=1)
    envs.reset()
    yield envs, list(np.random.default_rng(0).integers(0, 2, (PREPARED, num_envs)))
    envs.close()


@contextmanager
def rollout(num_envs: int) -> Iterator[Turns]:
    with cart_poles(num_envs) as (envs, actions):
        turn = cycle(actions)
        play = lambda _: envs.rollout(lambda _: next(turn), STEPS)  # noqa: E731
        yield Loop(play, [None], num_envs * STEPS)


@contextmanager
def bare(num_envs: int) -> Iterator[Turns]:
    with cart_poles(num_envs) as (envs, actions):
        turn = cycle(actions)

        def play(_: Any) -> None:
            for _ in range(STEPS):
                envs.step(next(turn))

        yield Loop(play, [None], num_envs * STEPS)


@contextmanager
def stacked(num_envs: int) -> Iterator[Turns]:
    with cart_poles(num_envs) as (envs, actions):
        turn = cycle(actions)

        def play(_: Any) -> list[Any]:
            kept = []
            for _ in range(STEPS):
                action = next(turn)
                kept.append((action, *envs.step(action)[:4]))
            return [np.stack(column) for column in zip(*kept, strict=True)]

        yield Loop(play, [None], num_envs * STEPS)


BENCHES = [
    Bench(
        name=f"consumers-rollout-{num_envs}",
        what="a rollout of 128 steps of CartPole",
        size=f"{num_envs:,} envs, 1 thread",
        ours=Contender("VectorEnv.rollout", partial(rollout, num_envs)),
        theirs=[
            Contender("step, nothing kept", partial(bare, num_envs), wanted=0.9),
            Contender("step, and np.stack", partial(stacked, num_envs), wanted=1.5),
        ],
    )
    for num_envs in (1024, 4096)
]
