"""A progress bar: rich's where rich is installed, else one line that is written over."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any


class Progress:
    """Shows how much of `total` is done, on stderr; `shown=None`: where that is a terminal."""

    def __init__(self, title: str, total: int, shown: bool | None) -> None:
        self._title, self._total = title, total
        # Python has no stderr where it was closed.
        is_terminal = sys.stderr is not None and sys.stderr.isatty()
        self._shown = is_terminal if shown is None else shown and sys.stderr is not None
        self._rich: Any = None
        self._task: Any = None
        self._last = 0.0

    def __enter__(self) -> Progress:
        if self._shown:
            try:
                from rich.console import Console
                from rich.progress import Progress as RichProgress
            except ImportError:
                self._line(0)
            else:
                self._rich = RichProgress(console=Console(stderr=True))
                self._rich.start()
                self._task = self._rich.add_task(self._title, total=self._total)
        return self

    def update(self, done: int) -> None:
        """Says that `done` are done."""
        if self._rich is not None:
            self._rich.update(self._task, completed=done)
        elif self._shown and (time.monotonic() - self._last > 0.1 or done == self._total):
            self._line(done)

    def _line(self, done: int) -> None:
        self._last = time.monotonic()
        print(f"\r{self._title} {done}/{self._total}", end="", file=sys.stderr, flush=True)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._rich is not None:
            self._rich.stop()
        elif self._shown:
            print(file=sys.stderr)
