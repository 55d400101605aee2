"""The three managers as the tests make them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from corral.managers import (
    AsyncSubprocessEnvManager,
    BaseEnvManager,
    SyncSubprocessEnvManager,
)

# An async manager that waits for all, resets included, is as the others are.
KINDS: dict[str, tuple[type[BaseEnvManager], dict[str, Any]]] = {
    "base": (BaseEnvManager, {}),
    "sync": (SyncSubprocessEnvManager, {}),
    "packed": (SyncSubprocessEnvManager, {"num_workers": 2}),
    "async": (AsyncSubprocessEnvManager, {"step_wait_timeout": None, "reset_inplace": True}),
}
every_manager = pytest.mark.parametrize("kind", KINDS)
in_workers = pytest.mark.parametrize("kind", ["sync", "packed", "async"])


def each(env: Callable[..., Any], count: int, *args: Any, **kwargs: Any) -> list[Any]:
    """Functions that make envs which know their numbers."""
    return [functools.partial(env, number, *args, **kwargs) for number in range(count)]


@contextmanager
def managed(kind: str, env_fn: list[Any], **cfg: Any) -> Iterator[Any]:
    """A manager that is not launched yet, and is closed afterwards."""
    manager, own = KINDS[kind]
    made = manager(env_fn, {**own, **cfg})
    try:
        yield made
    finally:
        made.close()


@contextmanager
def launched(kind: str, env_fn: list[Any], **cfg: Any) -> Iterator[Any]:
    """A manager that is launched."""
    with managed(kind, env_fn, **cfg) as manager:
        manager.launch()
        yield manager
