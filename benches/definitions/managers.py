"""DI-engine's env managers: their loop (`ready_obs`, actions, `step`) on theirs and ours."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np

from corral.bench import Bench, Contender, Loop, Turns, needs
from engine_envs import EngineCartPole, EnginePixels, SleepingCartPole

SYNC, ASYNC = "SyncSubprocessEnvManager", "AsyncSubprocessEnvManager"


def played(manager: Any, counted: int) -> Loop:
    """The loop; rows of the first `counted` envs count."""
    manager.seed(0)
    manager.launch()
    actions = [np.array([k % 2]) for k in range(64)]

    def turn(action: Any) -> int:
        timesteps = manager.step(dict.fromkeys(manager.ready_obs, action))
        return sum(env_id < counted for env_id in timesteps)

    return Loop(turn, actions, steps=None)


@contextmanager
def ours(name: str, envs: list[Any], counted: int | None = None, **cfg: Any) -> Iterator[Turns]:
    manager = getattr(needs("corral.managers"), name)(envs, cfg)
    yield played(manager, len(envs) if counted is None else counted)
    manager.close()


@contextmanager
def di_engine(name: str, envs: list[Any]) -> Iterator[Turns]:
    """The original, with its defaults."""
    managers = needs("di_engine_without_torch")
    manager_class = getattr(managers, name)
    manager = manager_class(envs, manager_class.default_config())
    yield played(manager, len(envs))
    manager.close()


def original(envs: list[Any], wanted: float) -> Contender:
    opened = partial(di_engine, SYNC, envs)
    return Contender("DI-engine", opened, "DI-engine", wanted=wanted, apart=True)


def contender(name: str, manager: str, envs: list[Any], **cfg: Any) -> Contender:
    return Contender(name, partial(ours, manager, envs, **cfg))


CART_POLES = [EngineCartPole] * 8
# Without a limit of its own a step would gather for 10 ms, whoever sleeps.
AT_ONCE = {"counted": 7, "wait_num": 7, "step_wait_timeout": 0.0}

BENCHES = [
    Bench(
        name="managers-8",
        what="CartPole in Python under DI-engine's sync manager",
        size="8 envs, a worker each",
        ours=contender("corral", SYNC, CART_POLES),
        theirs=[original(CART_POLES, 2)],
    ),
    Bench(
        name="managers-8-packed",
        what="CartPole in Python under DI-engine's sync manager",
        size="8 envs, 2 workers",
        ours=contender("corral", SYNC, CART_POLES, num_workers=2),
        theirs=[original(CART_POLES, 10)],
    ),
    Bench(
        name="managers-slow",
        what="DI-engine's async manager, one env sleeps 100 ms",
        size="8 envs, a worker each",
        ours=contender("corral", ASYNC, [*CART_POLES[:7], SleepingCartPole], **AT_ONCE),
        theirs=[
            Contender(
                "corral, none sleeps", partial(ours, ASYNC, CART_POLES, **AT_ONCE), wanted=0.9
            )
        ],
    ),
    Bench(
        name="managers-pixels",
        what="84×84×4 bytes under DI-engine's sync manager",
        size="64 envs, a worker each",
        ours=contender("corral", SYNC, [EnginePixels] * 64),
        theirs=[original([EnginePixels] * 64, 3)],
    ),
    Bench(
        name="managers-pixels-packed",
        what="84×84×4 bytes under DI-engine's sync manager",
        size="64 envs, 2 workers",
        ours=contender("corral", SYNC, [EnginePixels] * 64, num_workers=2),
        theirs=[original([EnginePixels] * 64, 3)],
    ),
]
