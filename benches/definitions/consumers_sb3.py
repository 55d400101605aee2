"""Stable-Baselines3's interface over 512 CartPoles: what `corral.to_sb3` adds to a step, beside the
vec envs that SB3's users have."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np

import corral
from corral.bench import Bench, Contender, Loop, Turns, needs

NUM_ENVS = 512
PREPARED = 64


def actions() -> list[Any]:
    return list(np.random.default_rng(0).integers(0, 2, (PREPARED, NUM_ENVS)))


def cart_poles(**settings: Any) -> corral.VectorEnv:
    settings = {"seed": 0, "num_threads": 1, "autoreset_mode": "same_step", **settings}
    return corral.make_vec("CartPole-v1", NUM_ENVS, **settings)


def to_sb3(*, statistics: bool) -> Any:
    needs("stable_baselines3_without_torch")
    return corral.to_sb3(cart_poles(), episode_statistics=statistics)


def dummy_vec_env() -> Any:
    sb3 = needs("stable_baselines3_without_torch")
    make = needs("gymnasium").make
    return sb3.DummyVecEnv([lambda: make("CartPole-v1")] * NUM_ENVS)


def monitored(make: Callable[[], Any]) -> Any:
    return needs("stable_baselines3_without_torch").VecMonitor(make())


def read(step: Callable[[Any], Any]) -> Callable[[Any], None]:
    """Reads the infos as the learners of SB3 do."""

    def play(action: Any) -> None:
        for info in step(action)[3]:
            info.get("episode")
            info.get("is_success")

    return play


@contextmanager
def stepped(make: Callable[[], Any], *, reads: bool = False) -> Iterator[Turns]:
    envs = make()
    envs.reset()
    yield Loop(read(envs.step) if reads else envs.step, actions(), NUM_ENVS)
    envs.close()


def contender(
    name: str, make: Callable[[], Any], wanted: float | None = None, *, reads: bool = False
) -> Contender:
    peer = "stable_baselines3" if "VecEnv" in name else None
    return Contender(name, partial(stepped, make, reads=reads), peer, wanted=wanted)


ON, OFF = (partial(to_sb3, statistics=on) for on in (True, False))
SIZE = f"{NUM_ENVS} envs, 1 thread"

BENCHES = [
    Bench(
        name="consumers-sb3",
        what="to_sb3 over CartPole",
        size=SIZE,
        ours=contender("to_sb3", ON),
        theirs=[
            contender("DummyVecEnv", dummy_vec_env, 20),
            contender("DummyVecEnv under VecMonitor", partial(monitored, dummy_vec_env), 20),
            contender("to_sb3 under VecMonitor", partial(monitored, OFF), 1),
            contender("to_sb3 without statistics", OFF, 0.95),
            # What is added to a step takes no longer than the step.
            contender("its envs", cart_poles, 0.5),
        ],
    ),
    Bench(
        name="consumers-sb3-infos",
        what="the same, and all infos are read as by SB3's learners",
        size=SIZE,
        ours=contender("to_sb3", ON, reads=True),
        theirs=[
            contender("DummyVecEnv", dummy_vec_env, 20, reads=True),
            contender("to_sb3 under VecMonitor", partial(monitored, OFF), 1, reads=True),
            contender("to_sb3 without statistics", OFF, reads=True),
        ],
    ),
]
