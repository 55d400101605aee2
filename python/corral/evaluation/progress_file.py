"""The progress of an evaluation on disk: a line for each episode, appended when it has ended.

The first line says what is evaluated. A process that is killed leaves at most one line torn, which
the next one drops. What a machine that loses power had not yet written is played again.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import stat
from types import TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt

from corral import errors
from corral.evaluation.about import About, number
from corral.evaluation.play import Episode
from corral.evaluation.success import Success, name_of

_FORMAT = "corral evaluation progress"
_FORMAT_VERSION = 1


class ProgressFile:
    """The file at `path`, made if missing.

    Attributes:
        done: the episodes that it has, by position.
    """

    def __init__(
        self,
        path: str,
        about: About,
        indices: npt.NDArray[np.int64],
        success: Success | None,
        shard: tuple[int, int] | None,
    ) -> None:
        self._path, self._indices = path, indices
        self._header = {
            "format": _FORMAT,
            "format_version": _FORMAT_VERSION,
            "id": about.id,
            "config": about.config,
            "max_episode_steps": about.max_episode_steps,
            "spaces": about.spaces,
            "version": about.version,
            "success": name_of(success),
            "shard": None if shard is None else list(shard),
            "episodes": len(indices),
            "indices": hashlib.sha256(indices.astype("<i8").tobytes()).hexdigest(),
        }
        self.done: dict[int, Episode] = {}
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
        try:
            self._lock()
            with open(self._fd, "rb", closefd=False) as file:
                self._size = self._read(file.read())
            # What a torn line has left.
            os.ftruncate(self._fd, self._size)
            if self._size == 0:
                self._write(self._header)
        except BaseException:
            os.close(self._fd)
            raise

    def _lock(self) -> None:
        if not stat.S_ISREG(os.fstat(self._fd).st_mode):
            raise errors.ArgumentError(f"progress_file {self._path} is no ordinary file")
        try:
            import fcntl
        except ModuleNotFoundError:
            # Windows has none: there the user alone keeps two evaluations apart.
            return
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise errors.ArgumentError(
                f"progress_file {self._path} is in use by another evaluation: give each its own"
            ) from None
        except OSError:
            # Some file systems have no locks.
            pass

    def _read(self, data: bytes) -> int:
        """Reads the lines that are whole; how many bytes these are."""
        lines = data.split(b"\n")
        if len(lines) == 1:
            if not self._line(self._header).startswith(data):
                raise self._refused("its first line is not one of theirs")
            return 0
        self._check_header(lines[0])
        for at, line in enumerate(lines[1:-1], 2):
            try:
                episode = self._episode(json.loads(line))
            except (ValueError, TypeError, KeyError, OverflowError, RecursionError) as error:
                raise self._refused(f"line {at} is damaged ({error})") from None
            self.done[episode.position] = episode
        return len(data) - len(lines[-1])

    def _check_header(self, line: bytes) -> None:
        try:
            told = json.loads(line)
        except (ValueError, RecursionError):
            told = None
        if not isinstance(told, dict) or told.get("format") != _FORMAT:
            raise self._refused("its first line is not one of theirs")
        for name, ours in self._header.items():
            theirs = told.get(name)
            if theirs != ours:
                what = f"its {name} is {theirs!r}, and this one's is {ours!r}"
                if name in ("indices", "spaces"):
                    what = f"its {name} are others"
                raise errors.ArgumentError(
                    f"progress_file {self._path} holds the progress of another evaluation: {what}. "
                    "Give another file, or delete it to begin anew"
                )

    def _episode(self, told: dict[str, Any]) -> Episode:
        position, length, success = told["position"], told["length"], told["success"]
        if type(position) is not int or not 0 <= position < len(self._indices):
            raise ValueError(f"position {position!r}")
        if told["index"] != self._indices[position]:
            raise ValueError(f"index {told['index']!r}")
        if type(length) is not int or not isinstance(success, bool | None):
            raise ValueError(f"length {length!r}, success {success!r}")
        if (success is None) != (self._header["success"] is None):
            raise ValueError(f"success {success!r}")
        return Episode(position, float(told["return"]), length, success)

    def _refused(self, why: str) -> errors.ArgumentError:
        return errors.ArgumentError(
            f"progress_file {self._path} is no file of an evaluation's progress: {why}; give "
            "another file, or delete it to begin anew"
        )

    def append(self, episode: Episode) -> None:
        """Writes the episode.

        Raises:
            ProgressFileError: where it cannot be written; the file keeps what it had.
        """
        self._write(
            {
                "position": episode.position,
                "index": int(self._indices[episode.position]),
                "return": number(episode.episode_return),
                "length": episode.length,
                "success": episode.success,
            }
        )
        self.done[episode.position] = episode

    @staticmethod
    def _line(value: dict[str, Any]) -> bytes:
        return json.dumps(value, allow_nan=False).encode() + b"\n"

    def _write(self, value: dict[str, Any]) -> None:
        line = self._line(value)
        try:
            # A disk that is full takes some of it, and refuses the rest.
            rest = line
            while rest:
                rest = rest[os.write(self._fd, rest) :]
        except OSError as error:
            with contextlib.suppress(OSError):
                os.ftruncate(self._fd, self._size)
            told = errors.ProgressFileError(
                f"progress_file {self._path} cannot be written ({error.strerror}): it holds "
                f"{len(self.done)} of {len(self._indices)} episodes. Make room, and evaluate again "
                "with the same arguments: it goes on from there"
            )
            told.errno = error.errno
            raise told from error
        self._size += len(line)

    def __enter__(self) -> ProgressFile:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        os.close(self._fd)
