"""The vec env classes that one suite holds alike: Gymnasium's and ours."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import gymnasium.vector
from gymnasium.vector import AutoresetMode

import corral
import corral.compat.gymnasium as compat


@dataclass(frozen=True, eq=False)
class Kind:
    """One class, or one way to use it."""

    name: str
    make: Callable[..., Any]
    is_gymnasiums: bool = False
    # Whether it is driven by reset_async, step_async and so on, too.
    is_async: bool = False
    # Whether its envs are objects of this process.
    is_here: bool = False
    # Whether observations of every space can be carried.
    takes_all: bool = True

    def __call__(
        self,
        makers: Sequence[Callable[[], Any]],
        mode: AutoresetMode = AutoresetMode.NEXT_STEP,
        **more: Any,
    ) -> Any:
        return self.make(makers, autoreset_mode=mode, **more)

    def __str__(self) -> str:
        return self.name


def _ours(makers: Sequence[Callable[[], Any]], **more: Any) -> Any:
    return corral.from_gymnasium(list(makers), **more)


REFERENCE = Kind("gymnasium Sync", gymnasium.vector.SyncVectorEnv, is_gymnasiums=True, is_here=True)
KINDS = (
    REFERENCE,
    Kind(
        "gymnasium Async",
        gymnasium.vector.AsyncVectorEnv,
        is_gymnasiums=True,
        is_async=True,
        takes_all=False,
    ),
    Kind(
        "gymnasium Async by pipe",
        functools.partial(gymnasium.vector.AsyncVectorEnv, shared_memory=False),
        is_gymnasiums=True,
        is_async=True,
    ),
    Kind("compat Sync", compat.SyncVectorEnv, is_here=True),
    Kind(
        "compat Async",
        functools.partial(compat.AsyncVectorEnv, context="forkserver", num_workers=2),
        is_async=True,
    ),
    Kind("serial", functools.partial(_ours, runner="serial"), is_here=True),
    Kind("thread", functools.partial(_ours, runner="thread", num_threads=2), is_here=True),
    Kind(
        "process",
        functools.partial(_ours, runner="process", num_workers=2, context="forkserver"),
    ),
)
OURS = tuple(kind for kind in KINDS if not kind.is_gymnasiums)
ASYNC = tuple(kind for kind in KINDS if kind.is_async)
MODES = tuple(AutoresetMode)
