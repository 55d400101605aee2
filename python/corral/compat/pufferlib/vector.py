"""`vector.make` and its backends.

`Serial` steps envs one after the other, in this process. `Multiprocessing` steps them in worker
processes, and batches come in order, each of `batch_size` envs that stand side by side.
`PufferEnv` is for an env that holds several agents itself: `make` gives it as it is. Envs of a
corral id are native with any of them: `Serial` steps them by one thread, `Multiprocessing` by
`num_workers` threads, `PufferEnv` by as many as are worth it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from corral import errors
from corral.compat.pufferlib.backends import Multiprocessing, Serial, native_of, reset, step
from corral.compat.pufferlib.base import APIUsageError, PufferEnv
from corral.compat.pufferlib.hosted import check_kind

__all__ = ["Multiprocessing", "PufferEnv", "Serial", "make", "reset", "step"]

_ARGUMENTS = ("num_workers", "batch_size", "zero_copy", "overwork")
_BACKENDS: dict[str, Any] = {
    "Serial": Serial,
    "Multiprocessing": Multiprocessing,
    "PufferEnv": PufferEnv,
}


def _backend(given: Any) -> Any:
    if given == "Ray":
        raise errors.UnsupportedError(
            "the backend Ray: use Multiprocessing, or one vec env in each of Ray's actors"
        )
    for name, backend in _BACKENDS.items():
        if given in (name, backend):
            return backend
    raise APIUsageError(f"backend is one of {', '.join(_BACKENDS)}, not {given!r}")


def make(
    env_creator_or_creators: Any,
    env_args: Any = None,
    env_kwargs: Any = None,
    backend: Any = PufferEnv,
    num_envs: int = 1,
    seed: int | None = 0,
    **kwargs: Any,
) -> Any:
    """Envs behind one of the backends.

    Args:
        env_creator_or_creators: a function that makes an env, a list with one for each env, or a
            corral id.
        env_args, env_kwargs: what it is called with; with a list one for each env. Of an id
            `env_kwargs` are options of `corral.make_vec`, and `num_envs` among them is a factor
            of `num_envs`.
        backend: Serial, Multiprocessing or PufferEnv; or its name.
        num_envs: how many envs.
        seed: env i is made with `seed + i`. PufferLib does not pass it on.
        **kwargs: `num_workers`, `batch_size`, `zero_copy`, `overwork`: see `Multiprocessing`.
            `num_workers` and `batch_size` may be "auto".

    Returns:
        A `Serial` or `Multiprocessing`; with PufferEnv what the function makes, or a `NativeEnvs`.

    Raises:
        APIUsageError: names what is wrong.
    """
    _check_count(num_envs)
    backend = _backend(backend)
    is_id = isinstance(env_creator_or_creators, str)
    told = _shared(num_envs, kwargs)
    if backend is PufferEnv:
        if is_id:
            workers = told.get("num_workers")
            own = env_kwargs or {}
            return native_of(env_creator_or_creators, num_envs, own, seed, workers, same_step=True)
        return _one(env_creator_or_creators(*(env_args or ()), **(env_kwargs or {})), num_envs)
    env_args, env_kwargs = env_args or [], env_kwargs or {}
    if is_id:
        creators = env_creator_or_creators
        if env_args:
            raise APIUsageError(f"{creators} takes no env_args: give options as env_kwargs")
        env_kwargs = [env_kwargs]
    elif isinstance(env_creator_or_creators, list | tuple):
        creators = env_creator_or_creators
    else:
        creators = [env_creator_or_creators] * num_envs
        env_args, env_kwargs = [env_args] * num_envs, [env_kwargs] * num_envs
    if not is_id:
        _check_each(creators, env_args, env_kwargs, num_envs)
    if backend is Serial and told.get("batch_size") is not None:
        # As with Multiprocessing, a batch has so many rows.
        num_envs = told["batch_size"]
        creators = creators if is_id else creators[:num_envs]
    return backend(creators, env_args, env_kwargs, num_envs, seed=seed, **told)


def _one(env: Any, num_envs: int) -> Any:
    """An env that holds its agents itself."""
    if num_envs != 1:
        raise APIUsageError(
            f"num_envs is {num_envs}: a PufferEnv holds its agents itself; the backends Serial and "
            "Multiprocessing take several"
        )
    if getattr(env, "emulated", None) is not False:
        raise APIUsageError(
            f"the backend PufferEnv takes a PufferEnv, not a {type(env).__name__}: the backends "
            "Serial and Multiprocessing take it"
        )
    check_kind(env)
    return env


def _check_count(num_envs: Any) -> None:
    if num_envs != int(num_envs) or num_envs < 1:
        raise APIUsageError(f"num_envs is {num_envs}: it is an int of at least 1")


def _shared(num_envs: int, given: Mapping[str, Any]) -> dict[str, Any]:
    """The backends' own arguments, checked."""
    for name in given:
        if name not in _ARGUMENTS:
            raise APIUsageError(
                f"{name} is no argument of vector.make: it takes {', '.join(_ARGUMENTS)}"
            )
    told = dict(given)
    if told.get("num_workers") == "auto":
        told["num_workers"] = num_envs
    if told.get("batch_size") == "auto":
        told["batch_size"] = max(num_envs // 2, 1)
    workers, batch = told.get("num_workers"), told.get("batch_size")
    if workers is not None:
        if num_envs % workers:
            raise APIUsageError(f"num_workers {workers} does not divide num_envs {num_envs}")
        if batch is not None and batch % (num_envs // workers):
            raise APIUsageError(
                f"batch_size {batch} is no multiple of the {num_envs // workers} envs of a worker"
            )
    return told


def _check_each(creators: Any, args: Any, kwargs: Any, num_envs: int) -> None:
    named = (("env_creators", creators), ("env_args", args), ("env_kwargs", kwargs))
    for name, given in named:
        if len(given) != num_envs:
            raise APIUsageError(f"{name} has {len(given)} entries for {num_envs} envs")
    for creator, own_args, own_kwargs in zip(creators, args, kwargs, strict=True):
        if not callable(creator):
            raise APIUsageError(f"an env is made by a function, not by {creator!r}")
        if not isinstance(own_args, list | tuple):
            raise APIUsageError(f"env_args has a list for each env, not {own_args!r}")
        if not isinstance(own_kwargs, dict):
            raise APIUsageError(f"env_kwargs has a dict for each env, not {own_kwargs!r}")
