"""What managers are given, checked."""

from __future__ import annotations

import numbers
import os
from collections.abc import Mapping
from typing import Any

from corral import errors


def env_number(env_id: Any, env_num: int) -> int:
    """An env's number, checked to be one.

    Raises:
        ArgumentTypeError, ArgumentError: name what is wrong.
    """
    is_number = type(env_id) is int or isinstance(env_id, numbers.Integral)
    if not is_number or isinstance(env_id, bool):
        raise errors.ArgumentTypeError(f"an env id is an int, not {env_id!r}")
    if not 0 <= env_id < env_num:
        raise errors.ArgumentError(f"there is no env {env_id}: the envs are 0 to {env_num - 1}")
    return int(env_id)


def one_each(name: str, given: list[Any] | tuple[Any, ...], env_num: int) -> dict[int, Any]:
    """The elements of a list of one for each env, by env.

    Raises:
        ArgumentError: for a list of another length.
    """
    if len(given) != env_num:
        raise errors.ArgumentError(
            f"{name} has {len(given)} elements for {env_num} envs: give one each"
        )
    return dict(enumerate(given))


def by_env(name: str, given: Any, env_num: int, kinds: str = "a dict by env") -> dict[int, Any]:
    """A dict by env, whose keys are checked.

    Raises:
        ArgumentTypeError, ArgumentError: name what is wrong.
    """
    # Asking an abstract class takes a third of a microsecond.
    if type(given) is not dict and not isinstance(given, Mapping):
        raise errors.ArgumentTypeError(f"{name} is {kinds}, not {type(given).__name__}")
    # Asked of all keys at once, this takes a third of the time.
    if set(map(type, given)) == {int} and min(given) >= 0 and max(given) < env_num:
        return dict(given)
    return {env_number(env_id, env_num): one for env_id, one in given.items()}


def reset_params(given: Any, env_num: int) -> dict[int, dict[str, Any] | None]:
    """The arguments of resets, by env.

    Raises:
        ArgumentTypeError, ArgumentError: name what is wrong.
    """
    if given is None:
        return {}
    if isinstance(given, list | tuple):
        given = one_each("reset_param", given, env_num)
    kinds = "a dict by env or a list of one per env"
    params = by_env("reset_param", given, env_num, kinds)
    for env_id, param in params.items():
        if param is not None and not isinstance(param, Mapping):
            raise errors.ArgumentTypeError(
                f"the reset_param of env {env_id} is {param!r}: it is a dict of the keyword "
                "arguments of the env's reset, or None"
            )
    return {env_id: None if param is None else dict(param) for env_id, param in params.items()}


def replay_paths(given: Any, env_num: int) -> list[str | None]:
    """The folder of each env's replays.

    Raises:
        ArgumentTypeError, ArgumentError: name what is wrong.
    """
    if isinstance(given, str | os.PathLike):
        folder = os.fsdecode(given)
        return [os.path.join(folder, f"env_{env_id}") for env_id in range(env_num)]
    is_list = isinstance(given, list | tuple)
    if not is_list or not all(isinstance(path, str | os.PathLike) for path in given):
        raise errors.ArgumentTypeError(
            f"replay_path is a path or a list of one per env, not {given!r}"
        )
    return [os.fsdecode(path) for path in one_each("replay_path", given, env_num).values()]


def functions(env_fn: Any) -> list[Any]:
    """What makes each env.

    Raises:
        ArgumentTypeError, ArgumentError: name what is wrong.
    """
    if not isinstance(env_fn, list | tuple):
        raise errors.ArgumentTypeError(
            f"env_fn is a list of functions that make an env, one each, not {env_fn!r}"
        )
    if not env_fn:
        raise errors.ArgumentError("env_fn is empty: give a function for each env, at least one")
    for env_id, fn in enumerate(env_fn):
        if not callable(fn) and not isinstance(fn, str):
            raise errors.ArgumentTypeError(
                f"env_fn[{env_id}] is {fn!r}: it is a function that makes an env, or the id of an "
                "env of corral's"
            )
        if (isinstance(fn, str) or isinstance(env_fn[0], str)) and fn != env_fn[0]:
            raise errors.ArgumentError(
                f"env_fn[{env_id}] is {fn!r} and env_fn[0] is {env_fn[0]!r}: ids are the same for "
                "all envs; give functions for envs of several kinds"
            )
    return list(env_fn)
