"""A terminal with the command in it."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path
from typing import Any

# Seconds after which a command counts as hanging.
PATIENCE = 100


class Terminal:
    """Runs `corral` in a terminal of its own, and waits for its end when left."""

    def __init__(self, *arguments: object, cwd: Path, rows: int = 24, columns: int = 80) -> None:
        self._ours, self._theirs = pty.openpty()
        fcntl.ioctl(self._theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self._before = termios.tcgetattr(self._theirs)
        self.screen = b""
        self.process = subprocess.Popen(
            [sys.executable, "-m", "corral", *map(str, arguments)],
            stdin=self._theirs,
            stdout=self._theirs,
            stderr=self._theirs,
            cwd=cwd,
            env={**os.environ, "TERM": "xterm-256color", "COLORTERM": "truecolor"},
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_: Any) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._ours)
        os.close(self._theirs)

    def press(self, keys: str) -> None:
        """Presses keys."""
        os.write(self._ours, keys.encode())

    def wait_for(self, text: str) -> None:
        """Waits until a text was shown after all that was waited for before."""
        began, end = time.monotonic(), len(self.screen)
        while text.encode() not in self.screen[end:]:
            assert time.monotonic() - began < PATIENCE, self.screen.decode()
            assert self.process.poll() is None or self._is_readable(), self.screen.decode()
            self._read()

    def finish(self) -> int:
        """Waits for the end; the exit code."""
        began = time.monotonic()
        while self.process.poll() is None or self._is_readable():
            assert time.monotonic() - began < PATIENCE, self.screen.decode()
            self._read()
        return self.process.returncode

    @property
    def is_restored(self) -> bool:
        """Whether the terminal takes input as before, and shows its usual screen and cursor."""
        shown = self.screen
        leaves = shown.rfind(b"\x1b[?1049l") >= shown.rfind(b"\x1b[?1049h")
        cursor = shown.rfind(b"\x1b[?25h") >= shown.rfind(b"\x1b[?25l")
        return termios.tcgetattr(self._theirs) == self._before and leaves and cursor

    def _is_readable(self, seconds: float = 0.0) -> bool:
        return bool(select.select([self._ours], [], [], seconds)[0])

    def _read(self) -> None:
        if self._is_readable(0.05):
            self.screen += os.read(self._ours, 65536)
