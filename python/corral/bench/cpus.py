"""Which CPUs a turn may use, where the system lets one choose."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator


@contextlib.contextmanager
def one(number: int) -> Iterator[None]:
    """Keeps the calling thread on one CPU meanwhile: of those that it may use, number `number`,
    round and round."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    usual = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {sorted(usual)[number % len(usual)]})
    try:
        yield
    finally:
        os.sched_setaffinity(0, usual)


def follow(pid: int) -> None:
    """Lets a process use the CPUs that the calling thread may use. Threads that the process has
    started keep theirs."""
    if hasattr(os, "sched_setaffinity"):
        # It may be gone.
        with contextlib.suppress(ProcessLookupError):
            os.sched_setaffinity(pid, os.sched_getaffinity(0))
