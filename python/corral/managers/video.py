"""Episodes as video files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from corral import video


class Recorder:
    """Writes each episode of one env to a file of its own: `env_<id>_episode_<number>.mp4` in a
    folder. The number is the first one from 0 that no file has yet: none is replaced.

    Args:
        folder: made if missing.
        env_id: the env's number.
        fps: pictures a second; 30 where the env tells of none.
    """

    def __init__(self, folder: str, env_id: int, fps: float | None = None) -> None:
        video.writer()
        self._folder, self._env_id, self._fps = Path(folder), env_id, fps
        self._folder.mkdir(parents=True, exist_ok=True)
        self._file: Any = None
        self._episode = 0

    def begin(self, frame: Any) -> None:
        """Begins a file with an episode's first picture; ends the file before it."""
        self.end()
        while (path := self._path()).exists():
            self._episode += 1
        self._file = video.open_video(path, self._fps)
        self._episode += 1
        self.add(frame)

    def _path(self) -> Path:
        return self._folder / f"env_{self._env_id}_episode_{self._episode}.mp4"

    def add(self, frame: Any) -> None:
        """Adds a picture, uint8 `(height, width, 3)`."""
        if self._file is not None:
            self._file.append_data(video.picture(frame, f"env {self._env_id}"))

    def end(self) -> None:
        """Ends the episode's file, if one is open."""
        file, self._file = self._file, None
        if file is not None:
            file.close()
