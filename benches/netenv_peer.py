"""The least that speaks netenv in Python, both sides, and a bare socket that carries as many bytes.

`python netenv_peer.py plain|bare ENV NUM_ENVS ACTION_BYTES STEP_BYTES` serves one client and prints
its port.
"""

from __future__ import annotations

import socket
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

# The rows of CartPole: four float32s, then `_rews` and `_dones`, each padded to 64 bytes.
LEAVES = (("float32", (4,)), ("float32", ()), ("bool", ()))


def padded(size: int) -> int:
    return -(-size // 64) * 64


def fill(connection: socket.socket, view: memoryview) -> None:
    at = 0
    while at < len(view):
        count = connection.recv_into(view[at:])
        if not count:
            sys.exit()
        at += count


def listening() -> socket.socket:
    listener = socket.create_server(("127.0.0.1", 0))
    print(listener.getsockname()[1], flush=True)
    connection, _ = listener.accept()
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def dialled(port: int) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", port))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def serve_plain(env: str, num_envs: int) -> None:
    """RESET and STEP, and nothing else of the protocol."""
    import corral

    venv = corral.make_vec(env, num_envs, seed=0, autoreset_mode="same_step")
    connection = listening()
    actions = bytearray(padded(8 * num_envs))
    command = bytearray(1)
    rewards, dones = np.zeros(num_envs, np.float32), np.zeros(num_envs, np.bool_)
    while True:
        fill(connection, memoryview(command))
        if command[0] == 1:
            observations, _ = venv.reset()
        else:
            fill(connection, memoryview(actions))
            given = np.frombuffer(actions, np.int64, num_envs)
            observations, rewards, terminated, truncated, _ = venv.step(given)
            rewards, dones = rewards.astype(np.float32), terminated | truncated
        parts = [bytes(command)]
        for array in (observations, rewards, dones):
            data = array.tobytes()
            parts.append(data.ljust(padded(len(data)), b"\0"))
        connection.sendall(b"".join(parts))


def serve_bare(action_bytes: int, step_bytes: int) -> None:
    """As many bytes as a step has, and no envs."""
    connection = listening()
    actions, steps = bytearray(1 + action_bytes), bytes(1 + step_bytes)
    while True:
        fill(connection, memoryview(actions))
        connection.sendall(steps)


def plain_client(port: int, num_envs: int) -> Callable[[Any], Any]:
    """A function that steps the peer's envs."""
    connection = dialled(port)
    sizes = [
        num_envs * int(np.prod(shape, dtype=int)) * np.dtype(kind).itemsize
        for kind, shape in LEAVES
    ]
    answer = bytearray(1 + sum(map(padded, sizes)))

    def step(actions: Any) -> Any:
        data = actions.tobytes()
        connection.sendall(b"\2" + data.ljust(padded(len(data)), b"\0"))
        fill(connection, memoryview(answer))
        at, arrays = 1, []
        for (kind, shape), size in zip(LEAVES, sizes):
            count = size // np.dtype(kind).itemsize
            array = np.frombuffer(answer, kind, count, at).reshape(num_envs, *shape)
            arrays.append(array.copy())
            at += padded(size)
        return arrays

    connection.sendall(b"\1")
    fill(connection, memoryview(answer))
    return step


def bare_client(port: int, action_bytes: int, step_bytes: int) -> Callable[[Any], Any]:
    """A function that exchanges as many bytes as a step has."""
    connection = dialled(port)
    asked, answer = bytes(1 + action_bytes), bytearray(1 + step_bytes)

    def step(_: Any) -> None:
        connection.sendall(asked)
        fill(connection, memoryview(answer))

    return step


if __name__ == "__main__":
    how, env, *numbers = sys.argv[1:]
    count, action_size, step_size = map(int, numbers)
    if how == "plain":
        serve_plain(env, count)
    else:
        serve_bare(action_size, step_size)
