"""A bench of any env by its id: how many steps a second, beside Gymnasium's where that has it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from typing import Any

import gymnasium
from gymnasium.vector import SyncVectorEnv

import corral
from corral.bench.definition import Bench, Contender, Loop, Turns
from corral.cli import ids
from corral.spaces import batched

# Batches of random actions that are played over and over.
_BATCHES = 64


def is_id(name: str) -> bool:
    """Whether a name is an env's, or looks like one."""
    versioned = name.rpartition("-v")[2].isdecimal() and "-v" in name
    return versioned or is_known(name)


def is_known(name: str) -> bool:
    """Whether a name is that of an env, or of one in a module that is still to be imported."""
    return ":" in name or name in corral.envs() or name in gymnasium.registry


def bench_of(id: str, num_envs: int, num_threads: int, config: dict[str, Any]) -> Bench:
    """What the env by this id is measured by.

    Raises:
        UnknownEnvError: if there is none.
    """
    python = ids.python_spec(id)
    # Workers are a matter of their own: Python envs are stepped here, one after the other.
    threads = "1 thread" if python is not None or num_threads == 1 else f"{num_threads} threads"
    more = {} if python is not None else {"num_threads": num_threads}
    make = partial(ids.make, id, num_envs, config, autoreset_mode="next_step", seed=0, **more)
    theirs = []
    name = id.rpartition(":")[2].removeprefix("corral/")
    registered = gymnasium.registry.get(name)
    is_theirs = registered is not None and not ids.is_of_corral(registered)
    # Options of ours are not theirs.
    if python is not None or (is_theirs and not config):
        sync = partial(_sync, name, num_envs, config)
        theirs.append(Contender("Gymnasium's SyncVectorEnv", partial(_loop, sync), "gymnasium"))
    ours = Contender("corral", partial(_loop, make), "corral")
    return Bench(name=id, what=id, size=f"{num_envs:,} envs, {threads}", ours=ours, theirs=theirs)


def _sync(name: str, num_envs: int, config: dict[str, Any]) -> Any:
    return SyncVectorEnv([partial(gymnasium.make, name, **config)] * num_envs)


@contextmanager
def _loop(make: Callable[[], Any]) -> Iterator[Turns]:
    with closing(make()) as envs:
        space = batched(envs.single_action_space, envs.num_envs)
        space.seed(0)
        actions = [space.sample() for _ in range(_BATCHES)]
        envs.reset(seed=0)
        yield Loop(envs.step, actions, steps=envs.num_envs)
