"""Ways to start a worker: a new Python, a fork of this process, a fork of a server.

Above 400 lines because the three ways share what a child must not inherit.
"""

from __future__ import annotations

import contextlib
import functools
import io
import itertools
import marshal
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Protocol

from corral import errors

# Windows has none, and `require_linux` keeps what takes it from being called there. A forked child
# must not import it.
with contextlib.suppress(ModuleNotFoundError):
    import fcntl

# The exit code of a process of which nobody can tell it. No process has it.
GONE = 256


class Child(Protocol):
    """A process that was started, and that is another process's child."""

    pid: int

    def poll(self) -> int | None:
        """Its exit code, or minus the signal that ended it; None while it runs."""
        ...

    def kill(self) -> None:
        """Ends it at once, and what it has started."""
        ...


class Launcher(Protocol):
    """A way to start a worker."""

    def launch(self, worker: int, control: int, stderr: int) -> int | Child:
        """Starts worker number `worker` in a process group of its own; both file descriptors are
        the caller's. A child of this process is told of by its pid.

        Raises:
            OSError, EnvError: where it cannot be started.
        """
        ...


def _noted(start: Callable[[], int], *files: io.IOBase) -> int:
    """The pid that `start` gives; closes `files`. Where a signal's handler raises meanwhile, the
    process ends, for nobody would know of it."""
    pids: list[int] = []
    try:
        # No handler runs within a call: what is started is noted.
        pids.extend(itertools.islice(iter(start, None), 1))
        for file in files:
            file.close()
        return pids[0]
    except BaseException:
        for pid in pids:
            if pid == 0:
                # This is the fork.
                os._exit(70)
            os.kill(pid, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)
        raise


def import_path() -> list[str]:
    """What of `sys.path` counts: Python passes over entries that are no strings."""
    return [str(entry) for entry in sys.path if isinstance(entry, str)]


def _path_file() -> io.FileIO:
    """A file that holds this process's import path, which may be longer than a command line or an
    environment can be. It has no name, and a number above those of the standard files."""
    made = os.memfd_create("corral-path")
    try:
        os.pwrite(made, marshal.dumps(import_path()), 0)
        return io.FileIO(fcntl.fcntl(made, fcntl.F_DUPFD_CLOEXEC, 4))
    finally:
        os.close(made)


def _command(path: int, module: str, function: str) -> list[str]:
    """Runs a function of ours in a new Python that has this one's flags, and its import path from
    the open file number `path`."""
    flags: list[str] = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]
    program = (
        f"import sys, marshal; f = open({path}, 'rb'); sys.path[:] = marshal.load(f); f.close(); "
        f"import {module} as m; m.{function}()"
    )
    return [sys.executable, *flags, "-c", program]


class Spawn:
    """Starts a new Python, which runs the function `main` of a module of ours."""

    def __init__(self, module: str = "corral._worker") -> None:
        self._module = module

    def launch(self, worker: int, control: int, stderr: int) -> int:
        """As `Launcher.launch`."""
        path = _path_file()
        command = _command(3, self._module, "main")
        start = functools.partial(
            os.posix_spawn,
            command[0],
            command,
            os.environ,
            file_actions=[
                (os.POSIX_SPAWN_DUP2, control, 0),
                (os.POSIX_SPAWN_DUP2, stderr, 2),
                (os.POSIX_SPAWN_DUP2, path.fileno(), 3),
            ],
            # The terminal's Ctrl-C is the parent's.
            setpgroup=0,
            setsigmask=(),
        )
        return _noted(start, path)


def _become(control: int, stderr: int, number: int) -> None:
    """Makes this process, fork number `number` of its parent, a worker; it does not return."""
    code = 70
    try:
        # The terminal's Ctrl-C is the parent's.
        os.setpgid(0, 0)
        # Above those that they are to become, should the parent have had these closed.
        own = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 3) for fd in (control, stderr)]
        for fd in (control, stderr):
            os.close(fd)
        for fd, standard in zip(own, (0, 2), strict=True):
            os.dup2(fd, standard)
            os.close(fd)
        from corral import _worker

        _worker.scatter(number)
        _worker.main()
        code = 0
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        with contextlib.suppress(BaseException):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


class Fork:
    """Forks this process: fast, and nothing needs to be pickled; but whatever locks other threads
    hold at that moment stay locked in the worker for ever."""

    _numbers = itertools.count()

    def launch(self, worker: int, control: int, stderr: int) -> int:
        """As `Launcher.launch`."""
        for stream in (sys.stdout, sys.stderr):
            # What is buffered, the worker would print as well.
            with contextlib.suppress(AttributeError, OSError, ValueError):
                stream.flush()
        number, caller = next(self._numbers), os.getpid()
        try:
            pid = _noted(os.fork)
            if pid == 0:
                _become(control, stderr, number)
            return pid
        finally:
            # A signal's handler may raise in the fork: nothing of the caller's runs there.
            if os.getpid() != caller:
                os._exit(70)


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        # A worker may have become another user's.
        pass
    return True


class _Served:
    def __init__(self, server: ForkServer, link: socket.socket, pid: int) -> None:
        self.pid = pid
        self._server = server
        self._link = link
        self._code: int | None = None

    def poll(self) -> int | None:
        if self._code is None:
            self._code = self._server.ended(self._link, self.pid)
        return self._code

    def kill(self) -> None:
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)


class ForkServer:
    """Forks a process that has imported corral and done nothing else, and no thread runs in."""

    def __init__(self) -> None:
        self._socket: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._codes: dict[int, int] = {}
        self._asked = 0
        self._heard = b""
        # Its own thread may come again: the garbage collector and signal handlers run anywhere.
        self._lock = threading.RLock()
        self._busy = False
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._leave)

    def launch(self, worker: int, control: int, stderr: int) -> int | Child:
        """As `Launcher.launch`."""
        with self._alone() as alone:
            if not alone:
                # The answer that this thread waits for is not this one's: a new Python does.
                return Spawn().launch(worker, control, stderr)
            with contextlib.suppress(OSError, ValueError):
                return self._ask(control, stderr)
            # The server has been ended: a new one does as well.
            self._end()
            try:
                return self._ask(control, stderr)
            except (OSError, ValueError) as error:
                self._end()
                raise errors.EnvError(f"the fork server is gone: {error}") from error

    @contextlib.contextmanager
    def _alone(self) -> Iterator[bool]:
        """Keeps other threads out; whether this thread is not within such a block already."""
        with self._lock:
            if self._busy:
                yield False
                return
            try:
                self._busy = True
                yield True
            finally:
                self._busy = False

    def _ask(self, control: int, stderr: int) -> Child:
        link = self._start()
        # Ctrl-C may have ended an earlier wait, whose answer is still to come.
        self._asked += 1
        socket.send_fds(link, [self._asked.to_bytes(8, "big")], [control, stderr])
        link.settimeout(30)
        while True:
            kind, pid, number = self._hear()
            if kind == "ended":
                self._codes[pid] = number
            elif number != self._asked:
                continue
            elif kind == "failed":
                raise errors.EnvError(f"a worker process could not be forked: {os.strerror(pid)}")
            else:
                # An earlier process's, of the same number.
                self._codes.pop(pid, None)
                return _Served(self, link, pid)

    def ended(self, link: socket.socket, pid: int) -> int | None:
        """The exit code of a worker that the server at `link` started, once it has ended; told
        once."""
        with self._alone() as alone:
            if not alone:
                return None if _exists(pid) else GONE
            if link is not self._socket:
                # Its workers end with it.
                return GONE
            link.settimeout(0)
            try:
                while pid not in self._codes:
                    kind, ended, number = self._hear()
                    if kind == "ended":
                        self._codes[ended] = number
            except BlockingIOError:
                pass
            except (OSError, ValueError):
                code = self._codes.pop(pid, GONE)
                self._end()
                return code
            return self._codes.pop(pid, None)

    def _hear(self) -> tuple[str, int, int]:
        """The server's next line; keeps what of it has come, should it not be whole."""
        if self._socket is None:
            raise ValueError("it is another process's")
        while b"\n" not in self._heard:
            piece = self._socket.recv(4096)
            if not piece:
                raise ValueError("it has ended")
            self._heard += piece
        line, self._heard = self._heard.split(b"\n", 1)
        kind, pid, number = line.split()
        return kind.decode(), int(pid), int(number)

    def _start(self) -> socket.socket:
        if self._socket is not None:
            return self._socket
        ours, theirs = socket.socketpair()
        with _path_file() as path, theirs:
            # A session of its own: the terminal's Ctrl-C is the parent's.
            self._process = subprocess.Popen(
                _command(path.fileno(), "corral._launch", "serve"),
                stdin=theirs.fileno(),
                pass_fds=[path.fileno()],
                start_new_session=True,
            )
        self._socket, self._heard, self._codes = ours, b"", {}
        return ours

    def _end(self) -> None:
        """Ends the server, if there is one, and with it its workers."""
        link, process, self._socket, self._process = self._socket, self._process, None, None
        if link is not None:
            link.close()
        if process is not None:
            process.kill()
            process.wait()

    def _leave(self) -> None:
        """Leaves the server to the parent of this fork, one of whose threads may hold the lock."""
        self._lock, self._busy = threading.RLock(), False
        link, process, self._socket, self._process = self._socket, self._process, None, None
        if link is not None:
            link.close()
        if process is not None:
            # It is no child of this process: that is all that is noted.
            process.poll()


fork_server = ForkServer()


def serve() -> None:
    """The fork server's program: forks when asked, and tells how its children end."""
    from corral import _worker  # noqa: F401  what is imported here, no worker imports again

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Where the parent ignores it, nobody could wait for a child.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    link = socket.socket(fileno=os.dup(0))
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    # Where the link breaks, the parent is gone.
    with contextlib.suppress(ConnectionError):
        _serve(link)


def _serve(link: socket.socket) -> None:
    children: set[int] = set()
    parent = os.getppid()
    # The link may outlive the parent: in forks of it.
    while os.getppid() == parent:
        if select.select([link], [], [], 0.05)[0]:
            asked, fds, _, _ = socket.recv_fds(link, 8, 2, socket.MSG_CMSG_CLOEXEC)
            if not asked:
                return
            number = int.from_bytes(asked, "big")
            link.sendall(_forked(link, fds, number, children))
        for pid in list(children):
            code = _ended(pid)
            if code is not None:
                children.discard(pid)
                link.sendall(f"ended {pid} {code}\n".encode())


def _forked(link: socket.socket, fds: list[int], number: int, children: set[int]) -> bytes:
    """Forks a worker; what is said of it."""
    try:
        pid = os.fork()
        if pid == 0:
            link.close()
            _become(fds[0], fds[1], number)
    except OSError as error:
        return f"failed {error.errno} {number}\n".encode()
    finally:
        for fd in fds:
            os.close(fd)
    children.add(pid)
    with contextlib.suppress(OSError):
        # Its own call may be yet to come, and its group is to be there when it is told of.
        os.setpgid(pid, pid)
    return f"started {pid} {number}\n".encode()


def _ended(pid: int) -> int | None:
    """How a child ended, if it has. Unless it did by itself, with code 0, what it had started ends
    with it."""
    ended = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    if ended is None:
        return None
    if (ended.si_code, ended.si_status) != (os.CLD_EXITED, 0):
        # As long as nobody has waited for it, its number is no other group's.
        with contextlib.suppress(OSError):
            os.killpg(pid, signal.SIGKILL)
    return int(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))


def require_linux(what: str) -> None:
    """Stops where this system has no worker processes of Corral's.

    Raises:
        UnsupportedError: on any system but Linux.
    """
    if sys.platform != "linux":
        raise errors.UnsupportedError(
            f"{what} are supported on Linux only, and this is {sys.platform}: run Python envs with "
            'runner="serial" or "thread", and evaluations in this process'
        )


def launcher(context: str) -> Launcher:
    """What starts workers in this way.

    Raises:
        ArgumentError: for a way that there is not.
        UnsupportedError: on any system but Linux.
    """
    require_linux("worker processes")
    if context == "spawn":
        return Spawn()
    if context == "fork":
        return Fork()
    if context == "forkserver":
        return fork_server
    raise errors.ArgumentError(f"context is 'spawn', 'forkserver' or 'fork', not {context!r}")
