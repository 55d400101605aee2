"""The parent's side of a process in which a library is checked; see `corral._check`."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

from corral._launch import _command, _path_file, require_linux


class Examiner:
    """A process that runs `corral._check`, told what to check. It ends with the `with` block."""

    def __init__(self, asked: dict[str, Any]) -> None:
        require_linux("checks of libraries")
        self._reader, writer = os.pipe()
        self._silent = False
        try:
            with _path_file() as path:
                self._process = subprocess.Popen(
                    _command(path.fileno(), "corral._check", "main"),
                    stdin=subprocess.PIPE,
                    # What the library prints is no answer.
                    stdout=sys.stderr.fileno() if _has_file(sys.stderr) else subprocess.DEVNULL,
                    pass_fds=(path.fileno(), writer),
                )
        except BaseException:
            os.close(self._reader)
            raise
        finally:
            os.close(writer)
        assert self._process.stdin is not None
        try:
            with self._process.stdin as stdin:
                stdin.write(json.dumps({**asked, "answers": writer}, default=repr).encode())
        except BrokenPipeError:
            # How it ended is told later.
            pass

    def __enter__(self) -> Examiner:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._reader)

    def answers(self, limit: float | None) -> Iterator[dict[str, Any]]:
        """What the process tells, until it ends or is silent for `limit` seconds. The limit is the
        library's: the start of Python and its imports, up to the first answer, has none."""
        rest = b""
        started = False
        while True:
            until = None if limit is None or not started else time.monotonic() + limit
            while b"\n" not in rest:
                left = None if until is None else max(0.0, until - time.monotonic())
                if not select.select([self._reader], [], [], left)[0]:
                    self._silent = True
                    return
                more = os.read(self._reader, 1 << 16)
                if not more:
                    return
                rest += more
            line, _, rest = rest.partition(b"\n")
            if started:
                yield json.loads(line)
            started = True

    def ended(self, limit: float | None) -> str:
        """How it ended before it was done, in words."""
        if self._silent:
            return f"it gave no answer in {limit:g} s: it hangs, or is slow (timeout=)"
        code = self._process.wait()
        if code >= 0:
            return f"its process ended with exit code {code}"
        try:
            name = signal.Signals(-code).name
        except ValueError:
            # A real-time signal, most of which have no name in Python.
            return f"its process was ended by signal {-code}"
        return f"its process was ended by {name} ({signal.strsignal(-code)})"


def _has_file(stream: Any) -> bool:
    try:
        return isinstance(stream.fileno(), int)
    except (AttributeError, OSError, ValueError):
        return False
