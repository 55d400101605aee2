"""Other ways to start a worker than a new Python: forks of this process, or of a server."""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import socket
import subprocess
import sys
import threading
from typing import Any, Protocol

from corral import errors


class Child(Protocol):
    """A process that was started."""

    pid: int

    def poll(self) -> int | None:
        """Its exit code, or minus the signal that ended it; None while it runs."""
        ...

    def kill(self) -> None:
        """Ends it at once."""
        ...


def _become(control: int, stderr: int) -> None:
    """Makes this process, a fork, a worker; it does not return."""
    code = 70
    try:
        # The terminal's Ctrl-C is the parent's.
        os.setpgid(0, 0)
        # Above those that they are to become, should the parent have had these closed.
        control, stderr = (fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 3) for fd in (control, stderr))
        os.dup2(control, 0)
        os.dup2(stderr, 2)
        os.close(control)
        os.close(stderr)
        from corral import _worker

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


def _code(status: int) -> int:
    return int(os.waitstatus_to_exitcode(status))


class _Forked:
    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._code: int | None = None

    def poll(self) -> int | None:
        if self._code is None:
            try:
                pid, status = os.waitpid(self.pid, os.WNOHANG)
            except ChildProcessError:
                # Someone else has waited for it.
                self._code = 255
            else:
                if pid:
                    self._code = _code(status)
        return self._code

    def kill(self) -> None:
        if self._code is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)


class Fork:
    """Forks this process: fast, and nothing needs to be pickled; but whatever locks other threads
    hold at that moment stay locked in the worker for ever."""

    def launch(self, worker: int, control: int, stderr: int) -> Child:
        """Starts a worker; both file descriptors are its own from now on."""
        for stream in (sys.stdout, sys.stderr):
            # What is buffered, the worker would print as well.
            with contextlib.suppress(AttributeError, OSError, ValueError):
                stream.flush()
        pid = os.fork()
        if pid == 0:
            _become(control, stderr)
        os.close(control)
        os.close(stderr)
        return _Forked(pid)


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
                os.kill(self.pid, signal.SIGKILL)


class ForkServer:
    """Forks a process that has imported corral and done nothing else, and no thread runs in."""

    def __init__(self) -> None:
        self._socket: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._codes: dict[int, int] = {}
        self._asked = 0
        self._heard = b""
        self._lock = threading.Lock()
        self._pid = os.getpid()

    def launch(self, worker: int, control: int, stderr: int) -> Child:
        """Starts a worker; both file descriptors are its own from now on."""
        try:
            with self._lock:
                link = self._start()
                # Ctrl-C may have ended an earlier wait, whose answer is still to come.
                self._asked += 1
                socket.send_fds(link, [self._asked.to_bytes(8, "big")], [control, stderr])
                link.settimeout(30)
                while True:
                    kind, pid, number = self._hear()
                    if kind == "ended":
                        self._codes[pid] = number
                    elif number == self._asked:
                        # An earlier process's, of the same number.
                        self._codes.pop(pid, None)
                        return _Served(self, link, pid)
        except (OSError, ValueError) as error:
            self._socket = None
            raise errors.EnvError(f"the fork server is gone: {error}") from error
        finally:
            os.close(control)
            os.close(stderr)

    def ended(self, link: socket.socket, pid: int) -> int | None:
        """The exit code of a worker that the server at `link` started, once it has ended; told
        once."""
        with self._lock:
            if link is not self._socket:
                # Its workers end with it.
                return 255
            link.settimeout(0)
            try:
                while pid not in self._codes:
                    kind, ended, number = self._hear()
                    if kind == "ended":
                        self._codes[ended] = number
            except BlockingIOError:
                pass
            except (OSError, ValueError):
                self._socket = None
                return self._codes.pop(pid, 255)
            return self._codes.pop(pid, None)

    def _hear(self) -> tuple[str, int, int]:
        """The server's next line; keeps what of it has come, should it not be whole."""
        assert self._socket is not None
        while b"\n" not in self._heard:
            piece = self._socket.recv(4096)
            if not piece:
                raise ValueError("it has ended")
            self._heard += piece
        line, self._heard = self._heard.split(b"\n", 1)
        kind, pid, number = line.split()
        return kind.decode(), int(pid), int(number)

    def _start(self) -> socket.socket:
        if self._socket is not None and self._pid == os.getpid():
            return self._socket
        ours, theirs = socket.socketpair()
        flags: list[str] = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]
        program = f"import sys; sys.path[:] = {sys.path!r}; import corral._launch as l; l.serve()"
        # A session of its own: the terminal's Ctrl-C is the parent's.
        self._process = subprocess.Popen(
            [sys.executable, *flags, "-c", program], stdin=theirs.fileno(), start_new_session=True
        )
        theirs.close()
        self._socket, self._heard, self._codes, self._pid = ours, b"", {}, os.getpid()
        return ours


fork_server = ForkServer()


def serve() -> None:
    """The fork server's program: forks when asked, and tells how its children end."""
    from corral import _worker  # noqa: F401  what is imported here, no worker imports again

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    link = socket.socket(fileno=os.dup(0))
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    link.settimeout(0.05)
    children: set[int] = set()
    parent = os.getppid()
    # The link may outlive the parent: in forks of it.
    while os.getppid() == parent:
        try:
            asked, fds, _, _ = socket.recv_fds(link, 8, 2)
            if not asked:
                return
            pid = os.fork()
            if pid == 0:
                link.close()
                _become(*fds)
            for fd in fds:
                os.close(fd)
            children.add(pid)
            link.sendall(f"started {pid} {int.from_bytes(asked, 'big')}\n".encode())
        except TimeoutError:
            pass
        for pid in list(children):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                children.discard(pid)
                link.sendall(f"ended {pid} {_code(status)}\n".encode())


def launcher(context: str) -> Any:
    """What starts workers in this way; None for a new Python each."""
    if context == "spawn":
        return None
    if context == "fork":
        return Fork()
    if context == "forkserver":
        return fork_server
    raise errors.ArgumentError(f"context is 'spawn', 'forkserver' or 'fork', not {context!r}")
