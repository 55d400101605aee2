"""Are large observations whole, however the bytes come, and whoever asks for which rows?"""

from __future__ import annotations

import contextlib
import itertools
import socket
import threading
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
import pytest
from gymnasium import spaces

import corral
from tests.net.recorded import read

NUM_ENVS = 9
# Padded to 64 bytes: pictures, flags, levels; then float32 rewards and bool ends.
PAYLOAD = 9 * 12288 + 9024 + 256 + 64 + 64


class Noise:
    """An old VecEnv that shows other bytes at each step. Every third step ends some episodes."""

    metadata: ClassVar[dict[str, Any]] = {"render.modes": []}
    reward_range = (-1.0, 1.0)
    action_space = spaces.Discrete(3)
    observation_space = spaces.Dict(
        [
            ("picture", spaces.Box(0, 255, (64, 64, 3), np.uint8)),
            ("flags", spaces.MultiBinary(1001)),
            ("levels", spaces.Box(-np.inf, np.inf, (3,), np.float64)),
        ]
    )

    def __init__(self, num_envs: int, seed: int = 0) -> None:
        assert num_envs == NUM_ENVS
        self.num_envs = num_envs
        self.rng = np.random.default_rng(seed)
        self.played = 0

    def shown(self) -> dict[str, Any]:
        n = self.num_envs
        return {
            "picture": self.rng.integers(0, 256, (n, 64, 64, 3), np.uint8),
            "flags": self.rng.integers(0, 2, (n, 1001), np.int8),
            "levels": self.rng.normal(size=(n, 3)),
        }

    def reset(self) -> dict[str, Any]:
        return self.shown()

    def step_async(self, actions: Any) -> None:
        pass

    def step_wait(self) -> tuple[Any, Any, Any, list[dict[str, Any]]]:
        self.played += 1
        ends = self.rng.random(self.num_envs) < (0.3 if self.played % 3 == 0 else 0)
        rewards = self.rng.random(self.num_envs).astype(np.float32)
        return self.shown(), rewards, ends, [{} for _ in range(self.num_envs)]

    def close(self) -> None:
        pass


class Relay(threading.Thread):
    """Passes bytes between one client and a server; answers to steps in pieces of these sizes."""

    def __init__(self, server: Any, pieces: list[int]) -> None:
        super().__init__(daemon=True)
        self._there = server.listen()
        self._pieces = pieces
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = self._listener.getsockname()
        self.start()

    def run(self) -> None:
        client, _ = self._listener.accept()
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        server = socket.create_connection(self._there)
        threading.Thread(target=self._ask, args=(client, server), daemon=True).start()
        with contextlib.suppress(OSError):
            # The greeting, and the answer to INIT with its length.
            client.sendall(read(server, 9))
            client.sendall(read(server, 1))
            head = read(server, 4)
            client.sendall(head + read(server, int.from_bytes(head, "big")))
            while answer := read(server, 1 + PAYLOAD):
                sizes = itertools.cycle(self._pieces)
                while answer:
                    size = next(sizes)
                    client.sendall(answer[:size])
                    answer = answer[size:]
        self._listener.close()
        client.close()

    def _ask(self, client: socket.socket, server: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while asked := client.recv(1 << 16):
                server.sendall(asked)
        server.close()


def same(shown: dict[str, Any], expected: dict[str, Any], rows: Any = slice(None)) -> None:
    assert set(shown) == set(expected)
    for name, leaf in expected.items():
        assert shown[name].dtype == leaf.dtype
        np.testing.assert_array_equal(shown[name], leaf[rows], name)


@pytest.fixture
def server() -> Iterator[Any]:
    with corral.serve(lambda num_envs: Noise(num_envs), "127.0.0.1:0") as server:
        yield server


@pytest.mark.parametrize("pieces", [[1 << 20], [1, 1 << 20], [1, 63, 4096, 70_001], [2, 12_287]])
def test_an_answer_may_come_in_any_pieces(server: Any, pieces: list[int]) -> None:
    envs = corral.connect(Relay(server, pieces).address, NUM_ENVS, plain=True)
    here = Noise(NUM_ENVS)
    same(envs.reset()[0], here.reset())
    kept = []
    for _ in range(7):
        shown, rewards, terminated, _, _ = envs.step(np.zeros(NUM_ENVS, np.int64))
        expected, told, ends, _ = here.step_wait()
        same(shown, expected)
        np.testing.assert_array_equal(rewards, told.astype(np.float64))
        np.testing.assert_array_equal(terminated, ends)
        kept.append((shown, expected))
        # What the caller writes is the caller's.
        shown_last = envs.observe()
        shown["picture"][:] = 7
        same(envs.observe(), expected)
        same(shown_last, expected)
    assert all((shown["picture"] == 7).all() for shown, _ in kept)
    for shown, expected in kept:
        same({**shown, "picture": expected["picture"]}, expected)
    envs.close()


@pytest.mark.parametrize("way", ["tcp", "unix", "shared"])
def test_rows_may_be_taken_a_few_at_a_time(way: str, tmp_path: Any) -> None:
    address = "127.0.0.1:0" if way == "tcp" else f"unix:{tmp_path}/socket"
    with corral.serve(lambda num_envs: Noise(num_envs), address) as server:
        envs = corral.connect(
            server.address, NUM_ENVS, plain=True, use_shared_memory=way == "shared"
        )
        here = Noise(NUM_ENVS)
        same(envs.reset()[0], here.reset())
        for taken in (2, NUM_ENVS, 4, NUM_ENVS, NUM_ENVS):
            envs.send(np.zeros(NUM_ENVS, np.int64))
            expected, told, ends, _ = here.step_wait()
            seen = 0
            while seen < NUM_ENVS:
                shown, rewards, terminated, _, infos = envs.recv(min_rows=1, max_rows=taken)
                rows = infos["env_id"]
                same(shown, expected, rows)
                np.testing.assert_array_equal(rewards, told[rows].astype(np.float64))
                np.testing.assert_array_equal(terminated, ends[rows])
                seen += len(rows)
        envs.close()


def test_a_server_that_ends_within_an_answer_loses_the_envs_and_no_more(server: Any) -> None:
    """What had arrived is shown to nobody, and the next connection's answers are whole."""
    listener = socket.create_server(("127.0.0.1", 0))
    ends = threading.Event()

    def half() -> None:
        client, _ = listener.accept()
        there = socket.create_connection(server.listen())
        there.sendall(read(client, 9))
        client.sendall(read(there, 9))
        there.sendall(read(client, 1))
        client.sendall(read(there, 1))
        head = read(client, 4)
        there.sendall(head + read(client, int.from_bytes(head, "big")))
        head = read(there, 4)
        client.sendall(head + read(there, int.from_bytes(head, "big")))
        there.sendall(read(client, 1))
        client.sendall(read(there, 1 + PAYLOAD)[: PAYLOAD // 2])
        client.close()
        there.close()
        ends.set()

    threading.Thread(target=half, daemon=True).start()
    envs = corral.connect(listener.getsockname(), NUM_ENVS, plain=True)
    with pytest.raises(corral.errors.EnvError, match="closed the connection") as failed:
        envs.reset()
    assert ends.wait(20)
    batch = failed.value.batch
    assert batch is not None
    assert all(not leaf.any() for leaf in batch[0].values())
    listener.close()
    envs.close()
