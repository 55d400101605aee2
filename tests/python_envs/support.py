"""Strict comparison of what vec envs give, and what Gymnasium's and ours have in common."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode

from corral.compat import gymnasium as ours
from tests.python_envs.drawn import Drawn

MODES = {mode.name: mode for mode in AutoresetMode}
IS_OLD = tuple(map(int, gymnasium.__version__.split(".")[:2])) < (1, 4)
# What Gymnasium 1.2 says by an assertion, 1.4 says by an exception.
OLD_ASSERTION = (AssertionError,) if IS_OLD else ()

CLASSES: dict[str, Callable[..., Any]] = {
    "gymnasium sync": gymnasium.vector.SyncVectorEnv,
    "gymnasium async": gymnasium.vector.AsyncVectorEnv,
    "gymnasium async, pipes": functools.partial(
        gymnasium.vector.AsyncVectorEnv, shared_memory=False
    ),
    "our sync": ours.SyncVectorEnv,
    "our async": functools.partial(ours.AsyncVectorEnv, context="forkserver"),
}
ASYNC = [name for name in CLASSES if "async" in name]
OURS = [name for name in CLASSES if "our" in name]


def fns(lengths: tuple[int, ...] = (3, 4, 5), **how: Any) -> list[Callable[[], Any]]:
    """Makers of envs whose episodes have these lengths."""
    return [functools.partial(Drawn, length=length, **how) for length in lengths]


def oracle(lengths: tuple[int, ...], mode: AutoresetMode, **how: Any) -> Any:
    """What the plain class gives, whatever the one under test is."""
    return gymnasium.vector.SyncVectorEnv(fns(lengths, **how), autoreset_mode=mode)


def assert_same(ours: Any, theirs: Any, at: str = "result") -> None:
    """Equal in value, type, dtype and shape."""
    if isinstance(theirs, np.ndarray):
        assert isinstance(ours, np.ndarray), at
        assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape), at
        if theirs.dtype == object:
            for row, (a, b) in enumerate(zip(ours, theirs, strict=True)):
                assert_same(a, b, f"{at}[{row}]")
        else:
            np.testing.assert_array_equal(ours, theirs, err_msg=at)
    elif isinstance(theirs, dict):
        assert isinstance(ours, dict), at
        assert list(map(str, sorted(ours))) == list(map(str, sorted(theirs))), at
        for key in theirs:
            assert_same(ours[key], theirs[key], f"{at}[{key!r}]")
    elif isinstance(theirs, tuple | list):
        assert type(ours) is type(theirs), f"{at}: {type(ours)} and {type(theirs)}"
        assert len(ours) == len(theirs), at
        for k, (a, b) in enumerate(zip(ours, theirs, strict=True)):
            assert_same(a, b, f"{at}[{k}]")
    else:
        assert type(ours) is type(theirs), f"{at}: {type(ours)} and {type(theirs)}"
        assert ours == theirs, at


def play(envs: Any, steps: int, seed: int = 3, mask: bool = False) -> list[Any]:
    """All that it gives in `steps` steps; in DISABLED what has ended is reset by mask."""
    envs.action_space.seed(seed)
    told: list[Any] = [envs.reset(seed=seed)]
    over = np.zeros(envs.num_envs, np.bool_)
    for _ in range(steps):
        if mask and over.any():
            told.append(envs.reset(options={"reset_mask": over.copy()}))
        told.append(envs.step(envs.action_space.sample()))
        over = told[-1][2] | told[-1][3]
    return told
