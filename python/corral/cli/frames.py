"""Frames to files."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from corral import errors, video

FORMATS = (".gif", ".mp4")
"""How files end that hold films; anything else is a folder of PNGs."""

# Viewers take pictures of a GIF that follow each other faster as slow ones, and it counts in
# hundredths of a second.
_GIF_LEAST, _GIF_UNIT = 20, 10


class Frames:
    """Writes frames to a GIF or an MP4 file, or as PNGs numbered by step to a directory.

    Left by an exception it leaves no film.
    """

    def __init__(self, target: Path, fps: float) -> None:
        self._target, self._fps = target, fps
        self._kind = target.suffix.lower() if target.suffix.lower() in FORMATS else ""
        self._film: Any = None
        self._kept: list[Any] = []
        self.count = 0
        if self._kind == ".mp4":
            open_film = video.writer()
        else:
            self._images, self._write = _image_writers()
        (target.parent if self._kind else target).mkdir(parents=True, exist_ok=True)
        if self._kind == ".mp4":
            self._film = open_film(target, fps=fps, macro_block_size=1)

    def add(self, step: int, frame: np.ndarray[Any, Any]) -> None:
        """The frame after `step` steps."""
        self.count += 1
        if self._kind == ".mp4":
            self._film.append_data(video.even(frame))
        elif self._kind == ".gif":
            # As the file keeps them, at a third of the memory.
            self._kept.append(self._images.fromarray(frame).quantize(dither=0))
        else:
            self._write(self._target / f"step{step:05}.png", frame)

    def close(self) -> str:
        """Ends it; what was written."""
        film, self._film = self._film, None
        if film is not None:
            film.close()
        if self._kept:
            pause = max(_GIF_LEAST, round(1000 / self._fps / _GIF_UNIT) * _GIF_UNIT)
            self._kept[0].save(
                self._target, save_all=True, append_images=self._kept[1:], duration=pause, loop=0
            )
            self._kept = []
        return f"{self.count} in {self._target}"

    def __enter__(self) -> Frames:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None:
            self.close()
        elif self._film is not None:
            self._film.close()
            self._film = None
            self._target.unlink(missing_ok=True)


def _image_writers() -> tuple[Any, Any]:
    try:
        import imageio.v3
        from PIL import Image
    except ImportError:
        raise errors.UnsupportedError(
            "frames need imageio and pillow: pip install imageio pillow"
        ) from None
    return Image, imageio.v3.imwrite
