"""Frames to files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from corral import errors


class Frames:
    """Writes frames to a GIF, or as PNGs numbered by step to a directory."""

    def __init__(self, target: Path, fps: float) -> None:
        try:
            import imageio.v3
            import PIL  # noqa: F401
        except ImportError:
            raise errors.UnsupportedError(
                "frames need imageio and pillow: pip install imageio pillow"
            ) from None
        self._write = imageio.v3.imwrite
        self._target, self._fps = target, fps
        self._is_gif = target.suffix.lower() == ".gif"
        self._kept: list[np.ndarray[Any, Any]] = []
        self.count = 0
        (target.parent if self._is_gif else target).mkdir(parents=True, exist_ok=True)

    def add(self, step: int, frame: np.ndarray[Any, Any]) -> None:
        """The frame after `step` steps."""
        self.count += 1
        if self._is_gif:
            self._kept.append(frame)
        else:
            self._write(self._target / f"step{step:05}.png", frame)

    def close(self) -> str:
        """Ends it; what was written."""
        if self._is_gif and self._kept:
            duration = 1000 / self._fps
            self._write(self._target, np.stack(self._kept), duration=duration, loop=0)
        return f"{self.count} in {self._target}"
