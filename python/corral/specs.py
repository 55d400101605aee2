"""`corral.spec`: how to make a vec env, as a value that travels to other processes.

A vec env is not pickled, for it holds threads, processes and libraries. What is sent instead is its
id and its options. A library that was loaded by a path travels as that path, and is loaded again
where the spec is unpickled.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NoReturn

import numpy as np

from corral import errors, plugins
from corral.registry import make_vec
from corral.vector import VectorEnv


def spec(id: str, num_envs: int = 1, **options: Any) -> VecSpec:
    """How to make a vec env: `corral.make_vec` with these arguments, wherever and whenever.

    The vec env is made once and closed, so that what is wrong with the arguments is an error here
    and not in another process.

    Args:
        id, num_envs, **options: as of `corral.make_vec`.

    Returns:
        A `VecSpec`, which can be pickled, compared, hashed and printed.

    Raises:
        UnknownEnvError, UnknownOptionError, …: as `corral.make_vec`.
    """
    make_vec(id, num_envs, **options).close()
    return VecSpec(id, {"num_envs": num_envs, **options})


class VecSpec:
    """How to make a vec env; made by `corral.spec`, and not changed afterwards.

    Attributes:
        id: of `corral.make_vec`.
        options: the other arguments of `corral.make_vec` by name, `num_envs` first: a mapping that
            cannot be changed.
    """

    __slots__ = ("_key", "id", "options")

    id: str
    options: Mapping[str, Any]
    _key: tuple[str, Any]

    def __init__(self, id: str, options: Mapping[str, Any]) -> None:
        own = copy.deepcopy(dict(options))
        object.__setattr__(self, "id", id)
        object.__setattr__(self, "options", MappingProxyType(own))
        object.__setattr__(self, "_key", (id, _frozen(own)))

    def make(self, **overrides: Any) -> VectorEnv:
        """The vec env, with other options where `overrides` names them.

        Raises:
            ArgumentError, …: as `corral.make_vec`.
        """
        return make_vec(self.id, **{**copy.deepcopy(dict(self.options)), **overrides})

    def __call__(self, config: Mapping[str, Any] | None = None, /) -> VectorEnv:
        """As `make`, with the overrides in a mapping: RLlib's runners call it so."""
        if not isinstance(config, Mapping | None):
            raise errors.ArgumentTypeError(
                f"a spec is called without arguments or with a dict of options, not {config!r}"
            )
        return self.make(**(config or {}))

    def __reduce__(self) -> tuple[Any, ...]:
        namespace = self.id.partition("/")[0]
        path = dict(plugins.loaded()).get(namespace) if plugins.is_loaded(self.id) else None
        library = None if path is None else (namespace, os.path.abspath(path))
        return _unpickled, (self.id, dict(self.options), library)

    def __eq__(self, other: object) -> bool:
        return self._key == other._key if isinstance(other, VecSpec) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._key)

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise errors.UnsupportedError(
            f"{self} is not changed: make(**overrides) takes other options, and corral.spec makes "
            "another spec"
        )

    def __repr__(self) -> str:
        given = "".join(f", {name}={value!r}" for name, value in self.options.items())
        return f"corral.spec({self.id!r}{given})"


def _unpickled(id: str, options: dict[str, Any], library: tuple[str, str] | None) -> VecSpec:
    """The spec, once its library is loaded: the one it was made with where this machine has the
    file, else one of the same name that is installed here."""
    if library is not None:
        namespace, path = library
        if os.path.exists(path):
            if plugins.namespace_of(path) != namespace:
                plugins.load(path, namespace=namespace)
        elif not plugins.is_loaded(id):
            raise errors.LibraryError(
                f"{id} is of a library that is not on this machine: there is no file {path}. "
                "Copy the library there, or install its package"
            )
    return VecSpec(id, options)


def _frozen(value: Any) -> Any:
    """What an option's value is compared and hashed by."""
    if isinstance(value, Mapping):
        return frozenset((name, _frozen(one)) for name, one in value.items())
    if isinstance(value, list | tuple):
        return tuple(map(_frozen, value))
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tobytes()
    return value
