"""What the loaders of C libraries share: paths, worker processes, their limits."""

from __future__ import annotations

import numbers
import os
from collections.abc import Callable
from typing import Any

from corral import _launch, _native, errors

# A century or so, which any clock can count.
_MAX_SECONDS = 1 << 32


def absolute(name: str, path: Any) -> str:
    """The whole path of a file.

    Raises:
        ArgumentTypeError: for what is no path.
        ArgumentError: for a relative one, where the working directory is gone.
    """
    try:
        found = os.path.abspath(os.fsdecode(path))
        os.fsencode(found)
    except UnicodeEncodeError:
        raise errors.ArgumentError(f"{name} is {path!r}, which no file is called") from None
    except TypeError:
        raise errors.ArgumentTypeError(f"{name} is a file's path, not {path!r}") from None
    except FileNotFoundError:
        raise errors.ArgumentError(
            f"{name} {path!r} is relative, and the working directory was deleted: give all of it"
        ) from None
    return found


def seconds(name: str, value: Any, otherwise: str = "") -> float:
    """Seconds above 0, checked to be a number of them; an error ends with `otherwise`."""
    is_time = isinstance(value, numbers.Real) and not isinstance(value, bool)
    if not is_time or not 0 < value <= _MAX_SECONDS:
        raise errors.ArgumentError(
            f"{name} is {value!r}: give seconds above 0 (at most {_MAX_SECONDS}){otherwise}"
        )
    return float(value)


def in_workers(
    library: str,
    payload: Callable[[int, int], bytes],
    num_workers: int | None,
    make_timeout: float | None,
) -> _native.Source:
    """A library's envs in worker processes; `payload(start, stop)` tells a worker of its envs."""
    if make_timeout is not None:
        make_timeout = seconds("make_timeout", make_timeout, ", or None for no limit")
    return _native.Source.workers(
        payload,
        _launch.launcher("spawn"),
        num_workers=num_workers,
        what=f"the envs of {library}",
        make_timeout=make_timeout,
    )
