"""The native half; everything public wraps it."""

import os
import pathlib
from collections.abc import Sequence
from typing import Any, final

import numpy as np
import numpy.typing as npt

__all__ = [
    "MAX_ENVS",
    "MAX_FRAMES",
    "MAX_THREADS",
    "NetServer",
    "Plugin",
    "Recording",
    "Schedule",
    "SessionServer",
    "Source",
    "Statistics",
    "VecEnv",
    "__version__",
    "check_room",
    "entries",
    "exports",
    "make",
    "simd",
    "work",
]

__version__: str
# The core's limits.
MAX_ENVS: int
MAX_FRAMES: int
MAX_THREADS: int

def make(source: Source, num_envs: int, settings: dict[str, Any]) -> VecEnv: ...
def check_room(bytes: int) -> None: ...
def work() -> None: ...
def exports(path: str | os.PathLike[str]) -> list[str]: ...
def entries() -> list[dict[str, Any]]: ...
def simd() -> tuple[str, str]: ...

@final
class Plugin:
    def __new__(cls, path: str | os.PathLike[str]) -> Plugin: ...
    @property
    def name(self) -> str: ...
    @property
    def version(self) -> str: ...
    @property
    def path(self) -> pathlib.Path: ...
    def entries(self) -> list[dict[str, Any]]: ...

@final
class NetServer:
    def __new__(
        cls,
        addresses: Sequence[str],
        make: Any,
        *,
        max_connections: int,
        max_envs: int,
        max_payload: int,
        idle_timeout: float,
        token: str | None = None,
        tls: tuple[str | os.PathLike[str] | None, str | os.PathLike[str] | None, str] | None = None,
    ) -> NetServer: ...
    @property
    def addresses(self) -> list[str]: ...
    @property
    def fingerprint(self) -> str | None: ...
    def metrics(self) -> dict[str, int]: ...
    def close(self) -> None: ...

@final
class SessionServer:
    def __new__(
        cls,
        addresses: Sequence[str],
        envs: VecEnv,
        *,
        keep: Any,
        description: str,
        version: str,
        max_connections: int,
        max_message: int,
        idle_timeout: float,
        token: str | None = None,
        tls: tuple[str | os.PathLike[str] | None, str | os.PathLike[str] | None, str] | None = None,
    ) -> SessionServer: ...
    @property
    def addresses(self) -> list[str]: ...
    @property
    def fingerprint(self) -> str | None: ...
    def metrics(self) -> dict[str, int]: ...
    def close(self) -> None: ...

@final
class Source:
    @staticmethod
    def builtin(id: str, options: dict[str, Any] | None = None) -> Source: ...
    @staticmethod
    def plugin(
        plugin: Plugin, namespace: str, id: str, options: dict[str, Any] | None = None
    ) -> Source: ...
    @staticmethod
    def python(
        id: str, factories: list[Any], *, check_nan: bool = True, seeded: bool = False
    ) -> Source: ...
    @staticmethod
    def python_batch(id: str, envs: Any) -> Source: ...
    @staticmethod
    def workers(
        payload: Any,
        launcher: Any,
        *,
        num_workers: int | None = None,
        what: str | None = None,
        make_timeout: float | None = None,
    ) -> Source: ...
    @staticmethod
    def libenv(
        path: str | os.PathLike[str],
        num_envs: int,
        instances: Sequence[Sequence[tuple[str, str, bytes]]],
        *,
        seeded: bool = False,
        functions: Sequence[tuple[str, str]] = ...,
    ) -> Source: ...
    @staticmethod
    def netenv(
        address: str,
        env_options: dict[str, Any],
        *,
        asked: tuple[str | None, dict[str, Any]],
        plain: bool = False,
        token: str | None = None,
        fingerprint: str | None = None,
        authority: str | os.PathLike[str] | None = None,
        shared_memory: bool = False,
        connect_timeout: float | None = None,
    ) -> Source: ...
    @staticmethod
    def env_c_api(
        path: str | os.PathLike[str],
        settings: Sequence[Sequence[tuple[str, str]]],
        *,
        connect: str | None = None,
        params: str | os.PathLike[str] | None = None,
        copies: bool = False,
        strict: bool = False,
        steps: int = 1,
        eagain_limit: float = 10.0,
        max_shape: Sequence[tuple[str, Sequence[int]]] = ...,
    ) -> Source: ...

@final
class VecEnv:
    @property
    def about(self) -> Any: ...
    def call(
        self,
        name: str,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        slots: Sequence[int] | None = None,
        kind: str = "call",
    ) -> tuple[Any, ...]: ...
    @property
    def id(self) -> str: ...
    @property
    def num_envs(self) -> int: ...
    @property
    def batch_size(self) -> int: ...
    @property
    def autoreset_mode(self) -> str: ...
    @property
    def max_episode_steps(self) -> int | None: ...
    @property
    def caps(self) -> list[str]: ...
    @property
    def metadata(self) -> dict[str, Any]: ...
    @property
    def observation_leaves(self) -> list[dict[str, Any]]: ...
    @property
    def observation_tree(self) -> tuple[str, Any]: ...
    @property
    def action_tree(self) -> tuple[str, Any]: ...
    @property
    def action_leaves(self) -> list[dict[str, Any]]: ...
    @property
    def info_leaves(self) -> list[dict[str, Any]]: ...
    @property
    def frame_stack(self) -> int | None: ...
    @property
    def observation_statistics(self) -> Statistics | None: ...
    @property
    def reward_statistics(self) -> Statistics | None: ...
    @property
    def allocations(self) -> int: ...
    def reset(
        self,
        *,
        seed: Any | None = None,
        index: Any | None = None,
        mask: Any | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Any, dict[str, Any]]: ...
    def step(
        self, actions: Any
    ) -> tuple[
        Any, npt.NDArray[np.float64], npt.NDArray[np.bool_], npt.NDArray[np.bool_], dict[str, Any]
    ]: ...
    def observe(self) -> tuple[Any, dict[str, Any]]: ...
    def observe_single(self) -> Any: ...
    def send_reset(
        self,
        slots: Any | None = None,
        *,
        seed: Any | None = None,
        index: Any | None = None,
        mask: Any | None = None,
        options: dict[str, Any] | None = None,
    ) -> None: ...
    def send(self, actions: Any, slots: Any | None = None) -> None: ...
    def recv(
        self,
        timeout: float | None = None,
        min_rows: int | None = None,
        max_rows: int | None = None,
    ) -> tuple[
        Any, npt.NDArray[np.float64], npt.NDArray[np.bool_], npt.NDArray[np.bool_], dict[str, Any]
    ]: ...
    def drain(
        self, timeout: float | None = None
    ) -> (
        tuple[
            Any,
            npt.NDArray[np.float64],
            npt.NDArray[np.bool_],
            npt.NDArray[np.bool_],
            dict[str, Any],
        ]
        | None
    ): ...
    def in_flight(self) -> int: ...
    def reset_slots(self, slots: list[int], indices: list[int]) -> tuple[Any, dict[str, Any]]: ...
    def step_slots(
        self, slots: list[int], actions: Any
    ) -> tuple[
        Any, npt.NDArray[np.float64], npt.NDArray[np.bool_], npt.NDArray[np.bool_], dict[str, Any]
    ]: ...
    def reset_single(
        self,
        *,
        seed: Any | None = None,
        index: Any | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Any, dict[str, Any]]: ...
    def step_single(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]: ...
    def render(self, slots: list[int] | None = None) -> list[npt.NDArray[np.uint8]]: ...
    def save(self, slot: int | None = None) -> bytes: ...
    def load(self, state: bytes, slot: int | None = None) -> None: ...
    def prepare(self, recording: Recording) -> None: ...
    def play(self, recording: Recording, call: int) -> tuple[Any, ...] | None: ...
    def set_next_index(self, slot: int, index: int) -> None: ...
    def can(self, name: str) -> bool: ...
    def close(self, hasty: bool = False) -> None: ...

@final
class Recording:
    def __new__(cls, path: str | os.PathLike[str]) -> Recording: ...
    @property
    def head(self) -> str: ...
    @property
    def num_calls(self) -> int: ...
    @property
    def seed(self) -> int | None: ...
    def call(self, call: int) -> str | None: ...
    def is_reset(self, call: int) -> bool: ...
    def is_of(self, phase: str, cause: str, message: str) -> bool: ...

@final
class Statistics:
    @property
    def updates(self) -> bool: ...
    @updates.setter
    def updates(self, value: bool) -> None: ...
    @property
    def moments(self) -> list[tuple[float, list[float], list[float]] | None]: ...
    def set_moments(self, moments: list[tuple[float, list[float], list[float]] | None]) -> None: ...

@final
class Schedule:
    def __new__(cls, indices: list[int]) -> Schedule: ...
    def next(self, slot: int) -> int | None: ...
    def index(self, slot: int) -> int | None: ...
    def finish(self, slot: int, episode_return: float, length: int) -> None: ...
    def active(self) -> list[int]: ...
    def finished(self) -> int: ...
    def results(self) -> list[tuple[float, int]] | None: ...
