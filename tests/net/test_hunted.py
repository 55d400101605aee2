"""Faults that a hunt found in the client and the server."""

from __future__ import annotations

import base64
import contextlib
import gc
import json
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import corral
from corral import errors
from tests.net.recorded import descriptors


def array(values: Any) -> dict[str, Any]:
    values = np.asarray(values)
    data = base64.b64encode(values.tobytes()).decode()
    shape = list(values.shape)
    return {"__kind__": "numpy", "dtype": values.dtype.name, "shape": shape, "data": data}


def box(name: str, low: float, high: float, dtype: str, shape: tuple[int, ...]) -> dict[str, Any]:
    sides = {"low": array(np.full(shape, low, dtype)), "high": array(np.full(shape, high, dtype))}
    return {"name": name, "dtype": dtype, "class_name": "Box", **sides}


TOLD = {
    "spec": None,
    "reward_range": [-1.0, 1.0],
    "metadata": {},
    "_action_space": {
        "spaces": [{"name": "_", "dtype": "int64", "class_name": "Discrete", "n": 2}]
    },
    "_step_space": {
        "spaces": [
            box("_", -1, 1, "float32", (2,)),
            box("_rews", -np.inf, np.inf, "float32", ()),
            box("_dones", False, True, "bool", ()),
        ]
    },
}
STEP_DATA = bytes(3 * 64)


class Stub:
    """A server of two envs, which falls silent where `silent` says, and adds `extra` to answers."""

    def __init__(self, silent: str = "", extra: bytes = b"") -> None:
        self.silent, self.extra = silent, extra
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self.listener.getsockname()[1]}"
        self.talks: list[socket.socket] = []
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                talk, _ = self.listener.accept()
                self.talks.append(talk)
                threading.Thread(target=self.talk, args=(talk,), daemon=True).start()

    def talk(self, talk: socket.socket) -> None:
        with contextlib.suppress(OSError):
            self.answer(talk)

    def answer(self, talk: socket.socket) -> None:
        file = talk.makefile("rb")
        if self.silent == "hello":
            return
        file.read(9)
        talk.sendall(b"netenv_v1")
        if self.silent == "request":
            return
        file.read(1)
        file.read(int.from_bytes(file.read(4), "big"))
        text = json.dumps(TOLD).encode()
        answer = b"\0" + len(text).to_bytes(4, "big") + text
        if self.silent == "answer":
            talk.sendall(answer[:30])
            return
        talk.sendall(answer)
        while command := file.read(1):
            if command == b"\2":
                file.read(64)
            elif command == b"\3":
                file.read(int.from_bytes(file.read(4), "big"))
                if self.silent == "picture":
                    continue
            talk.sendall(command + STEP_DATA + self.extra)

    def close(self) -> None:
        for one in (self.listener, *self.talks):
            one.close()


@pytest.fixture
def stub() -> Iterator[Callable[..., Stub]]:
    made: list[Stub] = []

    def make(**how: Any) -> Stub:
        made.append(Stub(**how))
        return made[-1]

    yield make
    for one in made:
        one.close()


@contextlib.contextmanager
def ctrl_c() -> Iterator[None]:
    """Ctrl-C comes in the middle of what is done. What does not hear it has no other end."""
    timer = threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        yield
    timer.join()


@pytest.mark.timeout(30)
@pytest.mark.parametrize("silent", ["hello", "request", "answer"])
def test_ctrl_c_ends_a_connection_that_is_being_made(stub: Any, silent: str) -> None:
    # Options that no socket takes at once are sent to a server that does not read them.
    options = {"text": "x" * 500_000} if silent == "request" else {}
    with ctrl_c():
        corral.connect(stub(silent=silent).address, 2, options, connect_timeout=None)


@pytest.mark.timeout(30)
def test_ctrl_c_ends_a_handshake(stub: Any) -> None:
    with ctrl_c():
        address = stub(silent="hello").address
        corral.connect(address, 2, fingerprint="00" * 32, connect_timeout=None)


@pytest.mark.timeout(30)
def test_ctrl_c_ends_the_wait_for_a_picture(stub: Any) -> None:
    envs = corral.connect(stub(silent="picture").address, 2)
    envs.reset()
    with ctrl_c():
        envs.native.call("render", (), {}, [0])
    with pytest.raises(errors.EnvError, match="interrupted"):
        envs.step([0, 0])
    envs.reset()
    envs.step([0, 0])


@pytest.mark.timeout(30)
def test_a_picture_has_the_timeout_of_a_step(stub: Any) -> None:
    envs = corral.connect(stub(silent="picture").address, 2, timeout=0.2)
    envs.reset()
    with pytest.raises(errors.EnvTimeoutError, match=r"render: .*200ms"):
        envs.native.call("render", (), {}, [0])
    envs.reset()
    envs.step([0, 0])


@pytest.mark.timeout(30)
def test_a_close_ends_the_wait_for_a_picture(stub: Any) -> None:
    envs = corral.connect(stub(silent="picture").address, 2)
    envs.reset()
    timer = threading.Timer(0.2, envs.close)
    timer.start()
    with pytest.raises(errors.ClosedError):
        envs.native.call("render", (), {}, [0])
    timer.join()


def test_what_a_server_sends_unasked_is_not_taken_for_the_next_answer(stub: Any) -> None:
    envs = corral.connect(stub(extra=b"\2" + STEP_DATA).address, 2)
    with pytest.raises(errors.EnvError, match="more than it was asked for"):
        envs.reset()


@pytest.fixture
def full_socket(tmp_path: Path) -> Iterator[str]:
    """The address of a Unix socket whose owner accepts nobody, and that has no room for more."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(tmp_path / "socket"))
    listener.listen(0)
    waiting = []
    with contextlib.suppress(BlockingIOError):
        while True:
            waiting.append(socket.socket(socket.AF_UNIX))
            waiting[-1].setblocking(False)
            waiting[-1].connect(str(tmp_path / "socket"))
    yield f"unix:{tmp_path}/socket"
    for one in (listener, *waiting):
        one.close()


@pytest.mark.timeout(30)
def test_a_unix_socket_without_room_is_waited_for_until_the_timeout(full_socket: str) -> None:
    with pytest.raises(errors.EnvError, match="silent"):
        corral.connect(full_socket, 1, connect_timeout=0.2)
    with ctrl_c():
        corral.connect(full_socket, 1, connect_timeout=None)


@pytest.mark.timeout(30)
@pytest.mark.parametrize("kind", ["fifo", "endless"])
def test_files_without_an_end_are_refused(tmp_path: Path, kind: str) -> None:
    path = "/dev/zero"
    if kind == "fifo":
        path = str(tmp_path / "fifo")
        os.mkfifo(path)
    calls: list[Callable[[], object]] = [
        lambda: corral.connect("127.0.0.1:1", token_file=path),
        lambda: corral.connect("127.0.0.1:1", authority=path),
        lambda: corral.serve("CartPole-v1", "127.0.0.1:0", token_file=path),
        lambda: corral.serve("CartPole-v1", "127.0.0.1:0", certificate=path, key=path),
    ]
    for call in calls:
        with pytest.raises(errors.ArgumentError, match="regular file"):
            call()


@pytest.mark.parametrize("name", ["fingerprint", "authority"])
def test_arguments_of_another_type_are_refused(name: str) -> None:
    how: dict[str, Any] = {name: 5}
    with pytest.raises(errors.ArgumentTypeError, match=name):
        corral.connect("127.0.0.1:1", connect_timeout=0.1, **how)


def test_options_that_hold_themselves_are_refused() -> None:
    options: dict[str, Any] = {}
    options["itself"] = options
    with pytest.raises(errors.ArgumentError, match="hold themselves"):
        corral.connect("127.0.0.1:1", 1, options, connect_timeout=0.1)


@pytest.mark.parametrize(
    ("options", "where"),
    [
        ({"a": {"b": [0, {1}]}}, r"env_options\['a'\]\['b'\]\[1\] is \{1\}: what travels"),
        ({"a": object()}, r"env_options\['a'\] is <object"),
        ({"a": 2**63}, r"env_options\['a'\] is an integer of 64 bits"),
        ({"a": [10**5000]}, r"env_options\['a'\]\[0\] is an integer of 16610 bits"),
        ({"a": np.array(["text"])}, r"env_options\['a'\] is array"),
    ],
)
def test_an_option_that_cannot_travel_is_named(options: Any, where: str) -> None:
    for plain in (True, False):
        with pytest.raises(errors.OptionValueError, match=where):
            corral.connect("127.0.0.1:1", 2, options, plain=plain)


def test_an_array_of_objects_is_no_option(stub: Any) -> None:
    with pytest.raises(errors.OptionValueError, match="env_options"):
        corral.connect(stub().address, 2, {"x": np.zeros(2, object)})


def test_a_server_may_be_closed_in_a_fork() -> None:
    server = corral.serve("CartPole-v1", "127.0.0.1:0")
    pid = os.fork()
    if pid == 0:
        try:
            server.close()
        except BaseException:
            os._exit(1)
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
    envs = corral.connect(server.address, 2)
    envs.reset()
    envs.close()
    server.close()


def test_a_server_that_nobody_holds_ends() -> None:
    def serve() -> None:
        server = corral.serve("CartPole-v1", "127.0.0.1:0")
        corral.connect(server.address, 2).reset()

    serve()
    gc.collect()
    before = descriptors(), threading.active_count(), len(os.listdir("/proc/self/task"))
    for _ in range(5):
        serve()
    gc.collect()
    deadline = time.monotonic() + 20
    while True:
        now = descriptors(), threading.active_count(), len(os.listdir("/proc/self/task"))
        if now <= before or time.monotonic() > deadline:
            break
        time.sleep(0.05)
    assert now <= before


def test_a_closed_server_serves_no_more() -> None:
    server = corral.serve("CartPole-v1", "127.0.0.1:0")
    server.close()
    for look in (lambda: server.address, lambda: server.fingerprint, server.listen, server.run):
        with pytest.raises(errors.ClosedError):
            look()
