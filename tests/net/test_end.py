"""Does a server end when it is to end, whatever its clients do, and is what was asked answered?"""

from __future__ import annotations

import contextlib
import threading
import time
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

import corral
from corral import errors
from tests.net.extended import RESET, STEP, greet, message
from tests.net.recorded import dial
from tests.net.test_faults import init, is_cut
from tests.net.waiting import until


class Slow:
    """An old VecEnv whose steps take a while where they are asked to."""

    observation_space = spaces.Box(0, 1, (2,), np.float32)
    action_space = spaces.Discrete(2)

    def __init__(self, num_envs: int, in_step: threading.Event) -> None:
        self.num_envs = num_envs
        self.in_step = in_step

    def reset(self) -> Any:
        return np.zeros((self.num_envs, 2), np.float32)

    def step(self, actions: Any) -> Any:
        if actions.any():
            self.in_step.set()
            time.sleep(0.4)
        ends = np.zeros(self.num_envs, bool)
        return np.ones((self.num_envs, 2), np.float32), np.ones(self.num_envs), ends, None


@pytest.mark.parametrize("plain", [True, False], ids=["plain", "extended"])
def test_the_end_answers_the_step_in_flight(plain: bool) -> None:
    in_step = threading.Event()
    server = corral.serve(lambda num_envs: Slow(num_envs, in_step), "127.0.0.1:0")
    envs = corral.connect(server.address, 2, plain=plain)
    envs.reset()
    envs.send(np.ones(2, np.int64))
    assert in_step.wait(20)
    ending = threading.Thread(target=server.close)
    ending.start()
    observations, rewards, *_ = envs.recv(timeout=30)
    assert observations.all()
    assert rewards.all()
    ending.join(30)
    assert not ending.is_alive()
    with pytest.raises(errors.EnvError, match="closed the connection"):
        envs.step(np.zeros(2, np.int64))
    envs.close()


@pytest.mark.parametrize("plain", [True, False], ids=["plain", "extended"])
def test_clients_that_go_on_asking_keep_no_server_from_its_end(plain: bool) -> None:
    """There is always a further command that waits to be read."""
    server = corral.serve("CartPole-v1", ("127.0.0.1", 0))
    begin, step = b"\1", b"\2" + bytes(64)
    if not plain:
        begin = message(RESET, bytes([0, 1, 0, 2, 0]))
        step = message(STEP, rows=1, columns=bytes(64))
    with dial(server) as connection:
        if plain:
            connection.sendall(init(1))
        else:
            greet(connection)
        connection.sendall(begin)

        def ask() -> None:
            with contextlib.suppress(OSError):
                while True:
                    connection.sendall(step * 200)

        asking = threading.Thread(target=ask)
        reading = threading.Thread(target=is_cut, args=(connection,))
        asking.start()
        reading.start()
        assert until(lambda: server.metrics()["steps"] > 1000)
        server.close()
        for thread in (asking, reading):
            thread.join(20)
            assert not thread.is_alive()
