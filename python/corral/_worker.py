"""The program of a worker process, and what its parent tells it."""

from __future__ import annotations

import contextlib
import dataclasses
import faulthandler
import itertools
import os
import pickle
import signal
import sys
import weakref
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from corral import _native, errors
from corral._launch import import_path
from corral._transport import by_value

# Their id, what makes them, whether to look for NaN, whether the user gave seeds.
Envs = tuple[str, list[Callable[[], Any]], bool, bool]


@dataclasses.dataclass(frozen=True)
class _Payload:
    id: str
    path: list[str]
    directory: str
    # Pickled by themselves, for they may need the path.
    factories: bytes
    check_nan: bool
    seeded: bool


def payload(
    id: str, factories: Sequence[Callable[[], Any]], check_nan: bool, seeded: bool
) -> bytes:
    """What tells a worker to make these envs.

    Raises:
        UnsupportedError: for a factory that cannot be pickled.
    """
    try:
        pickled = by_value(list(factories))
    except Exception as error:
        raise errors.UnsupportedError(_unpicklable(factories, error)) from error
    told = _Payload(id, import_path(), directory(), pickled, check_nan, seeded)
    return pickle.dumps(told, protocol=5)


class Pickled:
    """What workers are told of envs: pickled when they are first told, and kept so for those that
    are started again."""

    def __init__(
        self, id: str, factories: list[Callable[[], Any]], check_nan: bool, seeded: bool
    ) -> None:
        self._id, self._factories = id, factories
        self._check_nan, self._seeded = check_nan, seeded
        self._told: dict[tuple[int, int], bytes] = {}

    def payload(self, start: int, stop: int) -> bytes:
        """As the module's `payload`, of these envs."""
        told = self._told.get((start, stop))
        if told is None:
            told = payload(self._id, self._factories[start:stop], self._check_nan, self._seeded)
            self._told[start, stop] = told
        return told

    def forget(self) -> None:
        """Lets go of the factories, once every worker has been told: they may hold who holds the
        vec env."""
        self._factories = []


@dataclasses.dataclass(frozen=True)
class _Inherited:
    key: int
    start: int
    stop: int


class Inheritance:
    """What workers forked from this process find where it left it: nothing is pickled."""

    _keys = itertools.count()
    # Whoever makes the workers holds it, and nobody else does.
    _left: ClassVar[weakref.WeakValueDictionary[int, Inheritance]] = weakref.WeakValueDictionary()

    def __init__(
        self, id: str, factories: list[Callable[[], Any]], check_nan: bool, seeded: bool
    ) -> None:
        self._told = (id, factories, check_nan, seeded)
        self._key = next(self._keys)
        self._left[self._key] = self

    @property
    def payload(self) -> Callable[[int, int], bytes]:
        """As the module's `payload`, of these envs; does not hold them."""
        key = self._key
        return lambda start, stop: pickle.dumps(_Inherited(key, start, stop), protocol=5)

    def forget(self) -> None:
        """Forgets nothing: workers that are started again find it here too."""

    @classmethod
    def envs_of(cls, told: _Inherited) -> Envs:
        """As the module's `envs_of`."""
        id, factories, check_nan, seeded = cls._left[told.key]._told
        return id, factories[told.start : told.stop], check_nan, seeded


def _unpicklable(factories: Sequence[Callable[[], Any]], error: Exception) -> str:
    culprit = next((f for f in factories if not _pickles(f)), factories[0])
    return (
        f"{culprit!r} cannot be sent to a worker process: {error}. Make what cannot be pickled "
        "(locks, files, sockets, loaded libraries, other envs) inside the function, not before "
        'it; or use runner="serial", or context="fork"'
    )


def _pickles(factory: Callable[[], Any]) -> bool:
    try:
        by_value(factory)
    except Exception:
        return False
    return True


@dataclasses.dataclass(frozen=True)
class _Hosted:
    """What tells a worker to host a library."""

    path: str
    directory: str

    def payload(self) -> bytes:
        """As the module's `payload`."""
        return pickle.dumps(self, protocol=5)

    def source(self) -> _native.Source:
        """What steps in the worker."""
        # The library's own files may be where the parent is.
        _go_to(self.directory)
        # What a library says on its standard output is among its last words too.
        os.dup2(2, 1)
        return self.load()

    def load(self) -> _native.Source:
        """Loads the library."""
        raise NotImplementedError


@dataclasses.dataclass(frozen=True)
class Instance(_Hosted):
    """What tells a worker to host an instance of a libenv library."""

    num_envs: int
    options: list[tuple[str, str, bytes]]
    seeded: bool
    functions: list[tuple[str, str]]

    def load(self) -> _native.Source:
        """The instance, made."""
        return _native.Source.libenv(
            self.path,
            self.num_envs,
            [self.options],
            seeded=self.seeded,
            functions=self.functions,
        )


@dataclasses.dataclass(frozen=True)
class Contexts(_Hosted):
    """What tells a worker to host contexts of an EnvCApi library.

    Attributes:
        settings: those of each context, or one list for all.
        keywords: the further arguments of `_native.Source.env_c_api`.
    """

    settings: list[list[tuple[str, str]]]
    keywords: dict[str, Any]

    def load(self) -> _native.Source:
        """The contexts, made."""
        return _native.Source.env_c_api(self.path, self.settings, **self.keywords)


def directory() -> str:
    """This process's working directory; nothing where it was deleted, and a worker stays where it
    begins."""
    try:
        return os.getcwd()
    except FileNotFoundError:
        return ""


def _go_to(directory: str) -> None:
    with contextlib.suppress(OSError):
        os.chdir(directory)


def told(data: bytes) -> _native.Source | Envs:
    """What a `payload` says is to be hosted: a source that steps here, or Python envs;
    called by the native half."""
    told = pickle.loads(data)
    if isinstance(told, _Hosted):
        return told.source()
    if isinstance(told, _Inherited):
        return Inheritance.envs_of(told)
    sys.path[:] = told.path
    _go_to(told.directory)
    return told.id, pickle.loads(told.factories), told.check_nan, told.seeded


def scatter(number: int) -> None:
    """Gives this process, fork number `number` of its parent, its own numbers from NumPy's global
    generator: determined by what the parent's was, where somebody had seeded that."""
    # Python itself seeds `random` anew in every fork.
    inherited = np.random.randint(0, 2**32, 8, np.uint64)
    with contextlib.suppress(TypeError):
        # Somebody's own bit generator, put in its place, cannot be seeded.
        np.random.seed([*inherited.tolist(), number])


def main() -> None:
    """Serves the parent at the other end of the standard input, until it ends."""
    # Ctrl-C is the parent's to handle.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Were one of these closed, something else would be opened in its place, and printed into.
    for fd in (1, 2):
        try:
            os.fstat(fd)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    # Not `sys.stderr`: a fork has its parent's, which may go elsewhere.
    faulthandler.enable(2)
    _native.work()
