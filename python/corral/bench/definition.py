"""What a definition is made of.

A contender opens a loop of calls, all of whose inputs are made beforehand. A bench is ours, and
those whom it is measured against, each with the ratio that is wanted.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from itertools import cycle, islice
from time import perf_counter
from typing import Any, Protocol


class Skip(Exception):
    """A contender that cannot run here; the message says why, and what to do about it."""


def needs(module: str, install: str = "make bench-peers") -> Any:
    """The module, or `Skip` with how to get it."""
    try:
        return importlib.import_module(module)
    except ImportError:
        raise Skip(f"{module.partition('.')[0]} is not installed: {install}") from None


class Turns(Protocol):
    """Something that can be let run for a while."""

    def play(self, seconds: float) -> float:
        """Runs for about that long; how many steps a second it made."""


class Loop:
    """Calls `call` with each of `inputs`, over and over.

    Attributes:
        steps: how many environment steps a call is; None if the call returns that.
    """

    def __init__(
        self, call: Callable[[Any], Any], inputs: Sequence[Any], steps: int | None = 1
    ) -> None:
        self._call, self._inputs, self._steps = call, cycle(inputs), steps
        self._batch = 1

    def play(self, seconds: float) -> float:
        """Calls for about that long; how many steps a second it made.

        The clock is read once in so many calls that it does not weigh.
        """
        done, began = 0, perf_counter()
        while True:
            before = perf_counter()
            done += self._run()
            now = perf_counter()
            if now - before < min(0.002, seconds / 10):
                self._batch *= 2
            if now - began >= seconds:
                return done / (now - began)

    def _run(self) -> int:
        call, inputs = self._call, islice(self._inputs, self._batch)
        if self._steps is None:
            return sum(map(call, inputs))
        for one in inputs:
            call(one)
        return self._batch * self._steps


@dataclass(frozen=True)
class Contender:
    """Somebody who takes part.

    Attributes:
        name: of the library and, in short, its setting.
        open: gives its loop, and clears up when left; raises `Skip` where it cannot run.
        package: whose version is recorded.
        wanted: how many times its rate ours should be; None to record it only.
        apart: runs in a process group of its own, which is stopped while others have their turn:
            for those that start processes, or threads that spin.
    """

    name: str
    open: Callable[[], AbstractContextManager[Turns]]
    package: str | None = None
    wanted: float | None = None
    apart: bool = False


@dataclass(frozen=True)
class Limit:
    """A rate, in steps a second, that is to be reached whoever else there is."""

    name: str
    rate: float
    wanted: float | None = 1.0


@dataclass(frozen=True)
class Bench:
    """One thing that is measured.

    Attributes:
        name: for the command line, short and unique.
        what: for the reader.
        size: how much of it: "4,096 envs, 1 thread".
        ours: the contender whose rate is divided by the others'.
        theirs: whom it is measured against.
        per_call: show microseconds a step instead of steps a second.
        group: a name that chooses all benches that have it.
        one_cpu: whether all take their turns on one CPU, another one in each window. This is for
            those that use one thread: CPUs of a shared machine differ in speed.
    """

    name: str
    what: str
    size: str
    ours: Contender
    theirs: Sequence[Contender | Limit] = field(default=())
    per_call: bool = False
    group: str = ""
    one_cpu: bool = False
