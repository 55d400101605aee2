"""A terminal's keys, and pictures drawn in it by letters."""

from __future__ import annotations

import os
import select
import signal
import sys
import termios
import tty
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import groupby
from types import FrameType
from typing import NoReturn

import numpy as np
import numpy.typing as npt
from rich.color import Color
from rich.segment import Segment, Segments
from rich.style import Style

from corral import errors

# What terminals send for keys that are no letter, in both of their modes.
_SEQUENCES = {
    b"\x1b[A": "up",
    b"\x1b[B": "down",
    b"\x1b[C": "right",
    b"\x1b[D": "left",
    b"\x1bOA": "up",
    b"\x1bOB": "down",
    b"\x1bOC": "right",
    b"\x1bOD": "left",
    b" ": "space",
    b"\r": "enter",
    b"\n": "enter",
}
_ESCAPE = b"\x1b"
# The upper half of a letter's place is in its own colour, the lower one in the background's.
_HALF = "▀"


class Keys:
    """The keys that are pressed, read one at a time. Made by `keyboard`."""

    def __init__(self, file: int) -> None:
        self._file, self._waiting = file, b""

    def read(self, seconds: float | None) -> str | None:
        """The next key's name; None if none comes in so many seconds (None: waits), and "q" once
        there will be no more."""
        if not self._waiting:
            ready, _, _ = select.select([self._file], [], [], seconds)
            if not ready:
                return None
            self._waiting = os.read(self._file, 64)
        if not self._waiting:
            return "q"
        for sequence, name in _SEQUENCES.items():
            if self._waiting.startswith(sequence):
                self._waiting = self._waiting[len(sequence) :]
                return name
        if self._waiting.startswith(_ESCAPE):
            # A key without a name here, or a part of one.
            self._waiting = b""
            return ""
        text = self._waiting.decode(errors="replace")
        self._waiting = text[1:].encode()
        return text[0]


@contextmanager
def keyboard() -> Iterator[Keys]:
    """The terminal's keys as they are pressed, unseen; the terminal is as it was afterwards,
    whatever ends this.

    Raises:
        UnsupportedError: where standard input and output are no terminal.
    """
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise errors.UnsupportedError("keys are read from a terminal: this is none")
    file = sys.stdin.fileno()
    before = termios.tcgetattr(file)
    handlers = {number: signal.signal(number, _end) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        # Ctrl-C stays a signal.
        tty.setcbreak(file)
        yield Keys(file)
    finally:
        # A terminal that was closed has nothing to restore.
        with suppress(termios.error):
            termios.tcsetattr(file, termios.TCSADRAIN, before)
        for number, handler in handlers.items():
            signal.signal(number, handler)


def _end(number: int, _frame: FrameType | None) -> NoReturn:
    sys.exit(128 + number)


def scaled(picture: npt.NDArray[np.uint8], width: int, height: int) -> npt.NDArray[np.uint8]:
    """The picture within `width` columns and `height` rows of pixels, in its own proportions. Of a
    large one each pixel is the mean of those that it stands for; a small one is enlarged by a whole
    number."""
    rows, columns = picture.shape[:2]
    share = min(width / columns, height / rows)
    if share >= 1:
        larger: npt.NDArray[np.uint8] = picture.repeat(int(share), 0).repeat(int(share), 1)
        return larger
    wide, high = max(1, int(columns * share)), max(1, int(rows * share))
    across, down = np.arange(wide) * columns // wide, np.arange(high) * rows // high
    sums = np.add.reduceat(np.add.reduceat(picture.astype(np.int64), down, 0), across, 1)
    sizes = np.outer(np.diff([*down, rows]), np.diff([*across, columns]))
    mean: npt.NDArray[np.uint8] = (sums // sizes[:, :, None]).astype(np.uint8)
    return mean


def blocks(picture: npt.NDArray[np.uint8]) -> Segments:
    """The picture, two rows of pixels to a line."""
    if len(picture) % 2:
        picture = np.concatenate([picture, picture[-1:]])
    segments = []
    pairs: list[list[list[int]]] = np.concatenate([picture[0::2], picture[1::2]], axis=2).tolist()
    for line in pairs:
        for colours, alike in groupby(line):
            style = Style(color=Color.from_rgb(*colours[:3]), bgcolor=Color.from_rgb(*colours[3:]))
            segments.append(Segment(_HALF * len(list(alike)), style))
        segments.append(Segment.line())
    return Segments(segments)
