"""DeepMind Lab2D through `from_dm_env`, beside its own API.

clean_up draws a large world and a player's view of it, which takes it milliseconds. A step of
chase_eat takes 60 microseconds: what hosting costs shows.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np

import corral
from corral.bench import Bench, Contender, Loop, Turns, needs
from python_envs import LAB2D_SHOWN, lab2d, lab2d_level

NUM_ENVS = {"chase_eat": 64, "clean_up": 16}


@contextmanager
def ours(level: str, **how: Any) -> Iterator[Turns]:
    needs("dmlab2d")
    num_envs = NUM_ENVS[level]
    make = partial(lab2d, level)
    envs = corral.from_dm_env(make, num_envs, takes_seed=True, seed=0, **how)
    envs.reset()
    envs.action_space.seed(0)
    yield Loop(envs.step, [envs.action_space.sample() for _ in range(8)], num_envs)
    envs.close()


@contextmanager
def own_api(level: str, is_batched: bool = False) -> Iterator[Turns]:
    """The library's own API, one env after the other. Its arrays are copied, for the next step
    overwrites them: each by itself and dropped at once, or into a new batch of all envs."""
    needs("dmlab2d")
    num_envs, shown = NUM_ENVS[level], LAB2D_SHOWN[level]
    levels = [lab2d_level(level) for _ in range(num_envs)]
    for k, one in enumerate(levels):
        one.start(0, k)
    episodes = [0] * num_envs
    running = needs("dmlab2d").RUNNING
    names = levels[0].action_discrete_names()
    bounds = [levels[0].action_discrete_spec(name) for name in names]
    rng = np.random.default_rng(0)
    low, high = [bound["min"] for bound in bounds], [bound["max"] + 1 for bound in bounds]
    draws = [rng.integers(low, high, (num_envs, len(names))).astype(np.int32) for _ in range(8)]

    def new_batch() -> dict[str, Any]:
        first = levels[0]
        arrays = {name: np.asarray(first.observation(name)) for name in shown}
        return {name: np.empty((num_envs, *one.shape), one.dtype) for name, one in arrays.items()}

    def step(actions: Any) -> None:
        batch = new_batch() if is_batched else {}
        for k, one in enumerate(levels):
            one.act_discrete(actions[k])
            status, _ = one.advance()
            for name in shown:
                if is_batched:
                    batch[name][k] = one.observation(name)
                else:
                    np.array(one.observation(name))
            if status != running:
                episodes[k] += 1
                one.start(episodes[k], k + num_envs * episodes[k])

    yield Loop(step, draws, num_envs)


@contextmanager
def dm_env_loop(level: str) -> Iterator[Turns]:
    """The library's dm_env environments, one after the other."""
    needs("dmlab2d")
    num_envs = NUM_ENVS[level]
    levels = [lab2d(level, k) for k in range(num_envs)]
    for one in levels:
        one.reset()
    names = list(levels[0].action_spec())
    rng = np.random.default_rng(0)
    specs = levels[0].action_spec()
    draws = [
        [
            {
                name: specs[name].dtype.type(rng.integers(0, specs[name].maximum + 1))
                for name in names
            }
            for _ in range(num_envs)
        ]
        for _ in range(8)
    ]

    def step(actions: Any) -> None:
        for one, action in zip(levels, actions):
            one.step(action)

    yield Loop(step, draws, num_envs)


def beside(level: str, one_process: float | None, two: float | None) -> list[Bench]:
    """A level in this process and in two workers, with the ratios that are wanted."""
    what, num_envs = f"DeepMind Lab2D, {level}", NUM_ENVS[level]

    def own(wanted: float | None) -> list[Contender]:
        return [
            Contender("its own API", partial(own_api, level), wanted=wanted),
            Contender("its own API, batches", partial(own_api, level, is_batched=True)),
        ]

    return [
        Bench(
            name=f"env_c_api-lab2d-{level}-1-process",
            what=what,
            size=f"{num_envs} envs, 1 process",
            ours=Contender("from_dm_env", partial(ours, level, runner="serial")),
            theirs=[
                *own(one_process),
                Contender("its dm_env environments in a loop", partial(dm_env_loop, level)),
            ],
        ),
        Bench(
            name=f"env_c_api-lab2d-{level}-2-workers",
            what=what,
            size=f"{num_envs} envs, 2 processes",
            ours=Contender("from_dm_env", partial(ours, level, num_workers=2)),
            theirs=own(two),
        ),
    ]


BENCHES = [*beside("chase_eat", 0.98, 1.8), *beside("clean_up", None, None)]
