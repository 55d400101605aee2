"""An evaluation in several processes: each plays every n-th index, and tells of every episode when
it has ended. This process alone writes and shows."""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import socket
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any

import numpy as np
import numpy.typing as npt

from corral import errors, plugins
from corral._launch import Spawn, import_path, require_linux
from corral._transport import by_value, pack, unpack
from corral._worker import directory
from corral.evaluation.play import Episode, play
from corral.evaluation.success import Judge, Success
from corral.policy import Actor, Policy
from corral.registry import make_vec


@dataclass(frozen=True)
class Job:
    """What the processes play."""

    policy: Policy
    id: str
    indices: npt.NDArray[np.int64]
    success: Success | None
    num_envs: int
    config: dict[str, Any]


@dataclass(frozen=True)
class _Payload:
    path: list[str]
    directory: str
    libraries: list[tuple[str, str]]
    # Pickled by itself, for it may need the path.
    job: bytes
    positions: list[int]


def play_in_processes(
    job: Job, positions: Sequence[int], count: int, ended: Callable[[Episode], None]
) -> None:
    """Plays as `play` does, in `count` processes (one for each position, if those are fewer).

    Raises:
        UnsupportedError: for a policy that cannot be pickled, and on any system but Linux.
        EnvError: where a process died.
        Exception: what was raised in a process.
    """
    require_linux("evaluations in several processes")
    data = _pickled(job)
    libraries = _libraries(job.id)
    workers: list[_Worker] = []
    try:
        for k in range(min(count, len(positions))):
            workers.append(_Worker(k))
        for k, worker in enumerate(workers):
            part = list(positions[k :: len(workers)])
            worker.tell(_Payload(import_path(), directory(), libraries, data, part))
        at_work: dict[Any, _Worker] = {worker.link: worker for worker in workers}
        while at_work:
            for link in wait(list(at_work)):
                told = at_work[link].hear()
                if told is None:
                    del at_work[link]
                else:
                    ended(told)
    finally:
        for worker in workers:
            worker.end()


def _pickled(job: Job) -> bytes:
    try:
        return by_value(job)
    except Exception as error:
        what = "policy"
        with contextlib.suppress(Exception):
            by_value(job.policy)
            what = "success" if job.success is not None else "options"
        raise errors.UnsupportedError(
            f"the {what} cannot be sent to other processes: {error}. Make what cannot be pickled "
            "(locks, files, sockets, envs) inside the function, not before it; or leave "
            "num_processes out"
        ) from error


def _is_open(fd: int) -> bool:
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True


class _Worker:
    """A process, seen from the one that started it."""

    def __init__(self, number: int) -> None:
        import fcntl  # Windows has none.

        ours, theirs = socket.socketpair()
        self.link = Connection(ours.detach())
        try:
            with theirs, open(os.devnull, "wb") as nothing:
                # Above the numbers of the standard files, should these have been closed.
                control, stderr = (
                    fcntl.fcntl(one, fcntl.F_DUPFD_CLOEXEC, 4)
                    for one in (theirs.fileno(), 2 if _is_open(2) else nothing.fileno())
                )
                try:
                    launcher = Spawn("corral.evaluation.processes")
                    self._pid: int | None = launcher.launch(number, control, stderr)
                finally:
                    os.close(control)
                    os.close(stderr)
        except BaseException:
            self.link.close()
            raise

    def tell(self, payload: _Payload) -> None:
        """Says what to play. Where nobody listens any more, `hear` tells why."""
        with contextlib.suppress(OSError):
            self.link.send_bytes(pickle.dumps(payload, protocol=5))

    def hear(self) -> Episode | None:
        """The next episode; None when it has played all."""
        try:
            kind, value = pickle.loads(self.link.recv_bytes())
        except (EOFError, OSError):
            code = self._wait()
            how = f"by signal {-code}" if code < 0 else f"with exit code {code}"
            raise errors.EnvError(
                f"process {self._told}, which played a part of the indices, ended {how} before it "
                "was done: what it printed says why"
            ) from None
        if kind == "error":
            raise unpack(value)
        return None if kind == "done" else Episode(*value)

    def _wait(self) -> int:
        self._told, self._pid = self._pid, None
        try:
            return os.waitstatus_to_exitcode(os.waitpid(self._told or 0, 0)[1])
        except ChildProcessError:
            return 0

    def end(self) -> None:
        """Ends the process, with what it has started."""
        self.link.close()
        if self._pid is not None:
            with contextlib.suppress(OSError):
                os.killpg(self._pid, signal.SIGKILL)
            self._wait()


def main() -> None:
    """Plays what the process at the other end of the standard input asks for."""
    # Ctrl-C is the parent's to handle.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    link = Connection(os.dup(0))
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)

    def tell(kind: str, value: Any) -> None:
        try:
            link.send_bytes(pickle.dumps((kind, value), protocol=5))
        except OSError:
            # The parent is gone, and nobody waits for the rest.
            os._exit(0)

    with contextlib.suppress(EOFError, OSError):
        payload = link.recv_bytes()
        try:
            _play(pickle.loads(payload), lambda episode: tell("episode", tuple(episode)))
        except BaseException as error:
            tell("error", pack(error))
        else:
            tell("done", None)


def _libraries(id: str) -> list[tuple[str, str]]:
    """`(namespace, path)` of the library that has this env, and of all others whose files are still
    there: a policy may play with their envs. A file that is gone matters to who needs it alone."""
    own = id.partition("/")[0]
    return [one for one in plugins.loaded() if one[0] == own or os.path.exists(one[1])]


def _play(payload: _Payload, ended: Callable[[Episode], None]) -> None:
    sys.path[:] = payload.path
    with contextlib.suppress(OSError):
        os.chdir(payload.directory)
    for namespace, path in payload.libraries:
        if plugins.namespace_of(path) != namespace:
            plugins.load(path, namespace=namespace)
    job: Job = pickle.loads(payload.job)
    judge = None if job.success is None else Judge(job.success)
    width = min(job.num_envs, len(payload.positions))
    config = {"num_threads": 1, **job.config}
    env = make_vec(job.id, width, autoreset_mode="disabled", **config)
    with contextlib.closing(env):
        play(Actor(job.policy), env, job.indices, payload.positions, judge, ended)
