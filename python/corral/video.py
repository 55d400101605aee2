"""Frames as video files, by imageio."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from corral import errors

FPS = 30
"""Pictures a second, where the env tells of none."""

FORMATS = ("mp4", "gif")


# By format, the module and the package that imageio takes.
_BESIDE = {"mp4": ("imageio_ffmpeg", "imageio-ffmpeg"), "gif": ("PIL", "pillow")}


def writer(format: str = "mp4") -> Callable[..., Any]:
    """What opens a file of a format.

    Raises:
        UnsupportedError: without the packages that this takes.
    """
    module, package = _BESIDE[format]
    try:
        import imageio.v2

        import_module(module)
    except ImportError:
        raise errors.UnsupportedError(
            f"{format} videos need imageio and {package}: pip install imageio {package}"
        ) from None
    opened: Callable[..., Any] = imageio.v2.get_writer
    return opened


def open_video(path: Path, fps: float | None = None) -> Any:
    """A new video file, mp4 or gif by its name: it has `append_data(picture)` and `close()`.

    Raises:
        UnsupportedError: without the packages that this takes.
    """
    rate = fps or FPS
    if path.suffix.lower() == ".gif":
        # The format counts in hundredths of a second, and viewers slow down what takes less than
        # two of them.
        return writer("gif")(path, duration=max(20, round(100 / rate) * 10), loop=0)
    # Frames of an even size are written as they are.
    return writer()(path, fps=rate, macro_block_size=1)


def picture(frame: Any, env: str) -> np.ndarray[Any, Any]:
    """A frame, checked to be one, as the codec takes it: see `even`.

    Raises:
        UnsupportedError: for what is no frame; `env` says whose it is.
    """
    found = np.asarray(frame)
    if found.dtype != np.uint8 or found.ndim != 3 or found.shape[2] != 3:
        raise errors.UnsupportedError(
            f"{env} draws no pictures for its replay: its render gave {type(frame).__name__}, "
            "where a uint8 array (height, width, 3) belongs; make the env with "
            'render_mode="rgb_array"'
        )
    return even(found)


def even(frame: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The frame with an even height and width, which the codec wants: its last row or column is
    doubled."""
    height, width = frame.shape[:2]
    if height % 2 == 0 and width % 2 == 0:
        return frame
    return np.pad(frame, ((0, height % 2), (0, width % 2), (0, 0)), mode="edge")
