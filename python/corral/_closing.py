"""The `with` statement, for what has `close`."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Protocol

from typing_extensions import Self


class _HasClose(Protocol):
    @property
    def close(self) -> Callable[[], None]: ...


class Closing:
    """Calls the class's `close` at the end of a `with` block."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self: _HasClose,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
