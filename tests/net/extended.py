"""The extension, spoken by bare sockets: what a program in another language would write."""

from __future__ import annotations

import contextlib
import json
import socket
import struct
import threading
from typing import Any

from tests.net.recorded import read

HELLO = b"netenv_v1"
BUILT, STEP, RESET, ASK, CLOSE, ROWS, ANSWER, CLOSED = range(8)
HEADER = struct.Struct("<IBBHII")


def init(num_envs: int = 1, shared: bool = False, **keys: Any) -> bytes:
    """The first bytes of a client that asks for the extension."""
    request = {
        "num_envs": num_envs,
        "use_shared_memory": shared,
        "env_options": {},
        "corral": keys or {"version": 1, "minimum": 1},
    }
    text = json.dumps(request).encode()
    return HELLO + b"\0" + len(text).to_bytes(4, "big") + text


def message(kind: int, tail: bytes = b"", rows: int = 0, columns: bytes = b"") -> bytes:
    return HEADER.pack(len(columns) + len(tail), kind, 0, 0, rows, 0) + columns + tail


def greet(connection: socket.socket, num_envs: int = 1, shared: bool = False) -> bytes:
    """Begins a talk. Returns what the server says of its envs."""
    connection.sendall(init(num_envs, shared))
    assert told(connection)["corral"] == {"version": 1}
    kind, built = heard(connection)
    assert kind == BUILT
    return built


def told(connection: socket.socket) -> dict[str, Any]:
    """The server's response to INIT."""
    assert read(connection, 10) == HELLO + b"\0"
    response = json.loads(read(connection, int.from_bytes(read(connection, 4), "big")))
    assert isinstance(response, dict)
    return response


def heard(connection: socket.socket) -> tuple[int, bytes]:
    """The next message of the server: its kind, and what follows its header."""
    length, kind, _, _, _, _ = HEADER.unpack(read(connection, HEADER.size))
    return kind, read(connection, length)


class Wire(threading.Thread):
    """A wire between one client and a server that keeps the bytes of both directions."""

    def __init__(self, server: Any) -> None:
        super().__init__(daemon=True)
        self.asked = self.answered = b""
        self.server = server
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.start()

    @property
    def address(self) -> Any:
        return self.listener.getsockname()

    def run(self) -> None:
        client, _ = self.listener.accept()
        with client, socket.create_connection(self.server) as server:
            back = threading.Thread(target=self.copy, args=(server, client, "answered"))
            back.start()
            self.copy(client, server, "asked")
            back.join()

    def copy(self, source: socket.socket, sink: socket.socket, name: str) -> None:
        with contextlib.suppress(OSError):
            while piece := source.recv(1 << 16):
                setattr(self, name, getattr(self, name) + piece)
                sink.sendall(piece)
            sink.shutdown(socket.SHUT_WR)


class Parrot:
    """A server that gives each client bytes of its own, whatever the client says, and then ends."""

    def __init__(self) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.says = b""
        threading.Thread(target=self.run, daemon=True).start()

    @property
    def address(self) -> Any:
        return self.listener.getsockname()

    def run(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self.listener.accept()
                with connection, contextlib.suppress(OSError):
                    connection.settimeout(10)
                    connection.sendall(self.says)
                    connection.shutdown(socket.SHUT_WR)
                    while connection.recv(1 << 16):
                        pass

    def __enter__(self) -> Parrot:
        return self

    def __exit__(self, *_: Any) -> None:
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


def headers(talk: bytes, first: int) -> list[int]:
    """Where the headers of messages are in `talk`, the first of them at byte `first`."""
    found, at = [], first
    while at < len(talk):
        found.append(at)
        at += HEADER.size + HEADER.unpack_from(talk, at)[0]
    return found


class Tail:
    """Reads a tail as `docs/protocol.md` says."""

    def __init__(self, bytes_: bytes) -> None:
        self.bytes, self.at = bytes_, 0

    def take(self, count: int) -> bytes:
        assert self.at + count <= len(self.bytes)
        self.at += count
        return self.bytes[self.at - count : self.at]

    def n(self) -> int:
        number = shift = 0
        while True:
            byte = self.take(1)[0]
            number |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return number

    def int(self) -> int:
        number = self.n()
        return (number >> 1) ^ -(number & 1)

    def float(self) -> float:
        (number,) = struct.unpack("<d", self.take(8))
        assert isinstance(number, float)
        return number

    def bool(self) -> bool:
        return self.take(1) == b"\1"

    def text(self) -> str:
        return self.take(self.n()).decode()

    def list(self, each: Any) -> Any:
        return [each() for _ in range(self.n())]

    def option(self, some: Any) -> Any:
        return some() if self.bool() else None

    def scalar(self) -> Any:
        return self.float() if self.n() else self.int()

    def leaf(self) -> dict[str, Any]:
        leaf: dict[str, Any] = {"name": self.text()}
        assert self.n() == 0, "of fixed shape"
        leaf["dtype"] = DTYPES[self.n()]
        leaf["shape"] = self.list(self.n)
        leaf["low"], leaf["high"] = self.list(self.scalar), self.list(self.scalar)
        leaf["discrete"] = self.bool()
        return leaf

    def node(self) -> tuple[str, int, int]:
        return self.text(), self.n(), self.n()

    def space(self) -> Any:
        return self.list(self.leaf), self.list(self.node)

    def value(self) -> Any:
        """A `Value'`."""
        kind = self.n()
        if kind == 0:
            return self.plain()
        assert kind in (1, 2)
        if kind == 1:
            return self.list(self.value)
        return {name: value for name, value in self.list(lambda: (self.text(), self.value()))}

    def plain(self) -> Any:
        """A `Value`."""
        kinds = [lambda: None, self.bool, self.int, self.float, self.text, self.array]
        kind = self.n()
        if kind == 6:
            return self.list(self.plain)
        if kind == 7:
            return dict(self.list(lambda: (self.text(), self.plain())))
        return kinds[kind]()

    def array(self) -> tuple[str, Any, bytes]:
        return DTYPES[self.n()], self.list(self.n), self.take(self.n())

    def built(self) -> dict[str, Any]:
        assert self.n() == 0, "no error"
        return {
            "id": self.text(),
            "num_envs": self.n(),
            "observation": self.space(),
            "action": self.space(),
            "info": self.space(),
            "autoreset": self.n(),
            "caps": self.n(),
            "max_episode_steps": self.option(self.n),
            "metadata": self.value(),
            "num_agents": self.n(),
            "seeded": self.bool(),
            "version": self.text(),
        }


DTYPES = ["bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64"]
DTYPES += ["float16", "float32", "float64"]
