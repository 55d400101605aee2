"""What Gymnasium's vector classes refuse, in their words and by their types of errors.

Each message begins as Gymnasium's, by which programs and their tests may know it.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from typing import Any

import gymnasium.error
import numpy as np
from gymnasium import Space, spaces
from gymnasium.spaces.utils import is_space_dtype_shape_equiv
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_differing_spaces

from corral import errors

_ONE_AN_ENV = (spaces.Box, spaces.Discrete, spaces.MultiDiscrete, spaces.MultiBinary)


class SpacesDifferError(errors.SpaceError, RuntimeError):
    """Envs with spaces that are not equal; a RuntimeError, as Gymnasium's."""


class WaitTimeoutError(errors.RecvTimeoutError, multiprocessing.TimeoutError):
    """A wait that took longer than its timeout; what it waited for is still under way."""


class NoActionsError(errors.InvalidActionError, TypeError):
    """What has no action for each env in it; a TypeError, as Gymnasium's."""


class NoEnvsError(errors.ArgumentError, IndexError):
    """No functions that make envs; an IndexError, as Gymnasium's."""


class NegativeSeedError(errors.ArgumentError, gymnasium.error.Error):
    """A seed below zero; Gymnasium's `Error` too."""


def check_functions(factories: list[Any]) -> None:
    """Errors where there are none."""
    if not factories:
        raise NoEnvsError("there are no envs: give at least one function")


def check_autoreset_mode(mode: Any) -> None:
    """Errors for what is no mode of Gymnasium's."""
    try:
        AutoresetMode(mode)
    except ValueError as error:
        known = ", ".join(repr(one.value) for one in AutoresetMode)
        raise errors.ArgumentError(f"{error}: give one, or one of {known}") from None


def check_actions(space: Space[Any], actions: Any) -> None:
    """Errors for what cannot be iterated over, where the envs' actions are arrays."""
    if isinstance(actions, np.ndarray):
        is_one = actions.ndim == 0
    else:
        is_one = not hasattr(actions, "__iter__")
    if is_one and isinstance(space, _ONE_AN_ENV):
        raise NoActionsError(
            f"Unable to iterate over the following elements: {actions}. Give one action for each "
            "env"
        )


def check_seeds(seed: Any, num_envs: int) -> None:
    """Errors for seeds of another number than envs, and for negative ones."""
    if seed is None:
        return
    if isinstance(seed, int | np.integer):
        each: Any = [seed]
    else:
        each = seed
        # What has no length is Python's own TypeError.
        if len(seed) != num_envs:
            raise errors.ArgumentError(
                "If seeds are passed as a list the length must match "
                f"num_envs={num_envs} but got length={len(seed)}."
            )
    for one in each:
        if isinstance(one, int | np.integer) and one < 0:
            raise NegativeSeedError(
                f"Seed must be greater or equal to zero, actual value: {one}. No env was reset"
            )


def check_options(options: Any, num_envs: int) -> None:
    """Errors for a `reset_mask` that makes no sense."""
    if not isinstance(options, dict) or "reset_mask" not in options:
        return
    mask, what = options["reset_mask"], "`options['reset_mask']` must"
    if not isinstance(mask, np.ndarray):
        raise errors.ArgumentTypeError(f"{what} be a numpy array, got {type(mask)}")
    if mask.shape != (num_envs,):
        raise errors.ArgumentError(f"{what} have shape `({num_envs},)`, got {mask.shape}")
    if mask.dtype != np.bool_:
        raise errors.ArgumentTypeError(f"{what} have `dtype=np.bool_`, got {mask.dtype}")
    if not mask.any():
        raise errors.ArgumentError(
            f"{what} contain a boolean array with at least one True value, got reset_mask={mask}"
        )


def each_value(values: Any, num_envs: int) -> list[Any] | tuple[Any, ...]:
    """A value for each env, of a list of these or of one value."""
    if not isinstance(values, list | tuple):
        return [values] * num_envs
    if len(values) != num_envs:
        raise errors.ArgumentError(
            "Values must be a list or tuple with length equal to the number of environments. "
            f"Got `{len(values)}` values for {num_envs} environments."
        )
    return values


def check_concurrency(most: Any) -> None:
    """Errors for what is no number of envs that may run at one time."""
    if most is None:
        return
    if not isinstance(most, int | np.integer):
        raise errors.ArgumentError(
            f"`max_concurrency` must be an integer or None, got {type(most)}."
        )
    if most < 1:
        raise errors.ArgumentError(f"`max_concurrency` must be a positive or None, got {most}.")


def pending(doing: str, name: str) -> errors.PendingCallError:
    """The error of a call while another one is under way."""
    return errors.PendingCallError(
        f"Calling `{doing}` while waiting for a pending call to `{name}` to complete: call "
        f"{name}_wait first",
        name,
    )


def nothing_pending(name: str) -> errors.NothingPendingError:
    """The error of a wait for what was not begun."""
    return errors.NothingPendingError(
        f"Calling `{name}_wait` without any prior call to `{name}_async`.", name
    )


def closed(kind: str) -> errors.ClosedError:
    """The error of a call after the end."""
    return errors.ClosedError(f"Trying to operate on `{kind}`, after a call to `close()`.")


def timed_out(name: str, timeout: float | None) -> WaitTimeoutError:
    """The error of a wait that took too long."""
    return WaitTimeoutError(
        f"The call to `{name}_wait` has timed out after {timeout} second(s). It can be made again"
    )


def shared_space(
    kind: str, mode: Any, found: Callable[[], list[Space[Any]]]
) -> tuple[Space[Any], Space[Any]] | None:
    """The batched space and that of one env that `observation_mode` asks for; None for "same".

    Args:
        kind: the class's name.
        found: gives each env's observation space.
    """
    if isinstance(mode, str) and mode == "same":
        return None
    if isinstance(mode, tuple) and len(mode) == 2:
        if not all(isinstance(space, Space) for space in mode):
            raise errors.ArgumentTypeError(
                "Expected both elements of observation_mode to be Spaces, got "
                f"{type(mode[0])} and {type(mode[1])}"
            )
        each = found()
        batched, single = mode
    elif isinstance(mode, str) and mode == "different":
        each = found()
        single = each[0]
    else:
        raise errors.ArgumentError(
            "Invalid `observation_mode`, expected: 'same' or 'different' or tuple of single and "
            f"batch observation space, actual got {mode}"
        )
    for number, space in enumerate(each):
        if not is_space_dtype_shape_equiv(space, single):
            raise SpacesDifferError(
                f"{kind}(..., observation_mode='different' or custom space) however the "
                "sub-environments observation spaces do not share a common shape and dtype: "
                f"single_observation_space={single}, and that of env {number} is {space}"
            )
    if isinstance(mode, str):
        batched = batch_differing_spaces(each)
    return batched, single
