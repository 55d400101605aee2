"""The recording of the original, and envs that play what it played."""

from __future__ import annotations

import json
import os
import socket
import threading
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces

SESSIONS: list[dict[str, Any]] = json.loads((Path(__file__).parent / "recorded.json").read_text())


def by_name(name: str) -> dict[str, Any]:
    """The recorded session of this name."""
    return next(session for session in SESSIONS if session["name"] == name)


def exchanges(session: dict[str, Any]) -> list[tuple[str, bytes, bytes]]:
    """(operation, what the client sent, what the server sent)."""
    return [
        (one["op"], bytes.fromhex(one["c2s_hex"]), bytes.fromhex(one["s2c_hex"]))
        for one in session["exchanges"]
    ]


class OldVenv:
    """An old VecEnv that shows what was recorded, whatever it is given."""

    def __init__(self, num_envs: int, session: dict[str, Any]) -> None:
        self.num_envs = num_envs
        self.steps = [one for one in session["exchanges"] if one["op"] == "STEP"]
        self.first = next(one for one in session["exchanges"] if one["op"] == "RESET")
        self.picture = next(one for one in session["exchanges"] if one["op"] == "RENDER")
        self.given: list[Any] = []
        self.drawn: list[dict[str, Any]] = []
        self.closed = threading.Event()
        self.played = 0

    def reset(self) -> Any:
        self.played = 0
        return self.shown(self.first)

    def step_async(self, actions: Any) -> None:
        self.given.append(actions)

    def step_wait(self) -> tuple[Any, Any, Any, list[dict[str, Any]]]:
        step = self.steps[self.played % len(self.steps)]
        self.played += 1
        told = step["decoded"]
        return (
            self.shown(step),
            np.array(told["rews"], np.float32),
            np.array(told["dones"], np.bool_),
            [{} for _ in range(self.num_envs)],
        )

    def render(self, **kwargs: Any) -> Any:
        self.drawn.append(kwargs)
        picture = self.picture["decoded"]
        return None if picture is None else np.array(picture, np.uint8)

    def close(self) -> None:
        self.closed.set()

    def shown(self, exchange: dict[str, Any]) -> Any:
        raise NotImplementedError


class DictVenv(OldVenv):
    """The envs of the session "dict_spaces"."""

    metadata: ClassVar[dict[str, Any]] = {"render.modes": ["rgb_array"]}
    reward_range = (-float("inf"), 10.0)
    action_space = spaces.Dict(
        [("move", spaces.Discrete(4)), ("force", spaces.Box(-1.0, 1.0, (2,), np.float32))]
    )
    observation_space = spaces.Dict(
        [
            ("zimg", spaces.Box(0, 255, (2, 3), np.uint8)),
            (
                "vec",
                spaces.Box(np.array([-1, -np.inf], np.float32), np.array([1, np.inf], np.float32)),
            ),
            ("disc", spaces.Discrete(5)),
            ("bits", spaces.MultiBinary(3)),
            ("f64", spaces.Box(-2.0, 2.0, (), np.float64)),
        ]
    )

    def shown(self, exchange: dict[str, Any]) -> Any:
        told = exchange["decoded"]["obs"]
        return {
            "zimg": np.array(told["zimg"], np.uint8),
            "vec": np.array(told["vec"], np.float32),
            "disc": np.array(told["disc"], np.int64),
            "bits": np.array(told["bits"], np.int8),
            "f64": np.array(told["f64"], np.float64),
        }


class PlainVenv(OldVenv):
    """The envs of the session "plain_spaces_wrapped"."""

    metadata: ClassVar[dict[str, Any]] = {"render.modes": []}
    action_space = spaces.Discrete(3)
    observation_space = spaces.Box(0, 255, (4,), np.uint8)

    def shown(self, exchange: dict[str, Any]) -> Any:
        return np.array(exchange["decoded"]["obs"], np.uint8)


VENVS = {"dict_spaces": DictVenv, "plain_spaces_wrapped": PlainVenv}


def read(connection: socket.socket, count: int) -> bytes:
    """So many bytes; fewer only where the other side is gone."""
    got = b""
    while len(got) < count:
        piece = connection.recv(count - len(got))
        if not piece:
            return got
        got += piece
    return got


def dial(server: Any, timeout: float = 20.0) -> socket.socket:
    """A bare connection to a server."""
    address = server.listen()
    kind = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET
    connection = socket.socket(kind, socket.SOCK_STREAM)
    connection.settimeout(timeout)
    connection.connect(address)
    return connection


class Recorded(threading.Thread):
    """A server that answers one client with the recorded bytes, and keeps what the client sent."""

    def __init__(self, session: dict[str, Any], path: str | None = None) -> None:
        super().__init__(daemon=True)
        self.session, self.received = session, list[bytes]()
        kind = socket.AF_INET if path is None else socket.AF_UNIX
        self.listener = socket.socket(kind, socket.SOCK_STREAM)
        self.listener.bind(("127.0.0.1", 0) if path is None else path)
        self.listener.listen()
        self.listener.settimeout(20)
        self.memory: int | None = None
        self.start()

    @property
    def address(self) -> Any:
        return self.listener.getsockname()

    def run(self) -> None:
        connection, _ = self.listener.accept()
        connection.settimeout(20)
        with connection:
            (_, hello, answer), *rest = exchanges(self.session)
            self.received.append(read(connection, 9))
            connection.sendall(answer[:9])
            # As the original: the command's byte comes before the JSON is read.
            self.received[0] += read(connection, 1)
            connection.sendall(answer[9:10])
            self.received[0] += read(connection, len(hello) - 10)
            connection.sendall(answer[10:])
            for _, asked, answer in rest:
                if asked:
                    self.received.append(read(connection, len(asked)))
                    connection.sendall(answer)
            self.received.append(read(connection, 1))


def json_of(message: bytes) -> Any:
    """The JSON in a message, from its first brace on."""
    return json.loads(message[message.index(b"{") :])


def descriptors() -> int:
    """How many files this process has open."""
    return len(os.listdir("/proc/self/fd"))
