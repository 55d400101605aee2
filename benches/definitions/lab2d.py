"""DeepMind Lab2D through `from_dm_env`, beside its own API: chase_eat, whose observations are
pixels and counters."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np

import corral
from corral.bench import Bench, Contender, Loop, Turns, needs
from python_envs import LAB2D_SHOWN, lab2d, lab2d_level

NUM_ENVS = 64


@contextmanager
def ours(**how: Any) -> Iterator[Turns]:
    needs("dmlab2d")
    envs = corral.from_dm_env(lab2d, NUM_ENVS, takes_seed=True, seed=0, **how)
    envs.reset()
    envs.action_space.seed(0)
    yield Loop(envs.step, [envs.action_space.sample() for _ in range(8)], NUM_ENVS)
    envs.close()


@contextmanager
def own_api() -> Iterator[Turns]:
    """The library's own API, one env after the other; its arrays are copied, as a trainer must."""
    needs("dmlab2d")
    levels = [lab2d_level() for _ in range(NUM_ENVS)]
    for k, one in enumerate(levels):
        one.start(0, k)
    episodes = [0] * NUM_ENVS
    running = needs("dmlab2d").RUNNING
    names = levels[0].action_discrete_names()
    bounds = [levels[0].action_discrete_spec(name) for name in names]
    rng = np.random.default_rng(0)
    low, high = [bound["min"] for bound in bounds], [bound["max"] + 1 for bound in bounds]
    draws = [rng.integers(low, high, (NUM_ENVS, len(names))).astype(np.int32) for _ in range(8)]

    def step(actions: Any) -> None:
        for k, one in enumerate(levels):
            one.act_discrete(actions[k])
            status, _ = one.advance()
            for name in LAB2D_SHOWN:
                np.array(one.observation(name))
            if status != running:
                episodes[k] += 1
                one.start(episodes[k], k + NUM_ENVS * episodes[k])

    yield Loop(step, draws, NUM_ENVS)


@contextmanager
def dm_env_loop() -> Iterator[Turns]:
    """The library's dm_env environments, one after the other."""
    needs("dmlab2d")
    levels = [lab2d(k) for k in range(NUM_ENVS)]
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
            for _ in range(NUM_ENVS)
        ]
        for _ in range(8)
    ]

    def step(actions: Any) -> None:
        for one, action in zip(levels, actions):
            one.step(action)

    yield Loop(step, draws, NUM_ENVS)


its_own = partial(Contender, "its own API", own_api)

BENCHES = [
    Bench(
        name="env_c_api-lab2d-1-process",
        what="DeepMind Lab2D, chase_eat",
        size="64 envs, 1 process",
        ours=Contender("from_dm_env", partial(ours, runner="serial")),
        theirs=[
            its_own(wanted=0.98),
            Contender("its dm_env environments in a loop", dm_env_loop),
        ],
    ),
    Bench(
        name="env_c_api-lab2d-2-workers",
        what="DeepMind Lab2D, chase_eat",
        size="64 envs, 2 processes",
        ours=Contender("from_dm_env", partial(ours, num_workers=2)),
        theirs=[its_own(wanted=1.8)],
    ),
]
