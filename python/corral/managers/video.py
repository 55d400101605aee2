"""Episodes as video files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from corral import errors

_FPS = 30


def writer() -> Callable[..., Any]:
    """What opens a video file.

    Raises:
        UnsupportedError: without imageio and imageio-ffmpeg.
    """
    try:
        import imageio.v2
        import imageio_ffmpeg  # noqa: F401
    except ImportError:
        raise errors.UnsupportedError(
            "videos need imageio and imageio-ffmpeg: pip install imageio imageio-ffmpeg"
        ) from None
    opened: Callable[..., Any] = imageio.v2.get_writer
    return opened


class Recorder:
    """Writes each episode of one env to a file of its own: `env_<id>_episode_<number>.mp4` in a
    folder. The number is the first one from 0 that no file has yet: none is replaced.

    Args:
        folder: made if missing.
        env_id: the env's number.
        fps: pictures a second; 30 where the env tells of none.
    """

    def __init__(self, folder: str, env_id: int, fps: float | None = None) -> None:
        self._open = writer()
        self._folder, self._env_id, self._fps = Path(folder), env_id, fps or _FPS
        self._folder.mkdir(parents=True, exist_ok=True)
        self._file: Any = None
        self._episode = 0

    def begin(self, frame: Any) -> None:
        """Begins a file with an episode's first picture; ends the file before it."""
        self.end()
        while (path := self._path()).exists():
            self._episode += 1
        # Frames of an even size are written as they are.
        self._file = self._open(path, fps=self._fps, macro_block_size=1)
        self._episode += 1
        self.add(frame)

    def _path(self) -> Path:
        return self._folder / f"env_{self._env_id}_episode_{self._episode}.mp4"

    def add(self, frame: Any) -> None:
        """Adds a picture, uint8 `(height, width, 3)`."""
        if self._file is not None:
            self._file.append_data(even(self._checked(frame)))

    def end(self) -> None:
        """Ends the episode's file, if one is open."""
        file, self._file = self._file, None
        if file is not None:
            file.close()

    def _checked(self, frame: Any) -> np.ndarray[Any, Any]:
        picture = np.asarray(frame)
        if picture.dtype != np.uint8 or picture.ndim != 3 or picture.shape[2] != 3:
            raise errors.UnsupportedError(
                f"env {self._env_id} draws no pictures for its replay: its render gave "
                f"{type(frame).__name__}, where a uint8 array (height, width, 3) belongs; make "
                'the env with render_mode="rgb_array"'
            )
        return picture


def even(picture: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The picture with an even height and width, which the codec wants: its last row or column is
    doubled."""
    height, width = picture.shape[:2]
    if height % 2 == 0 and width % 2 == 0:
        return picture
    return np.pad(picture, ((0, height % 2), (0, width % 2), (0, 0)), mode="edge")
