"""openenv-core's own server over Gymnasium's CartPole, and the least that drives many sessions.

`python openenv_peer.py NUM_SESSIONS` serves, and prints its port.
"""

from __future__ import annotations

import json
import os
import select
import socket
import sys
from typing import Any

RESET = b'{"type": "reset", "data": {"seed": 1}}'


def framed(text: bytes) -> bytes:
    """A client's frame of a short text. The mask changes nothing."""
    assert len(text) < 126
    return bytes([0x81, 0x80 | len(text)]) + bytes(4) + text


class Sessions:
    """So many sessions of a server, each with one request under way at a time.

    What is sent was made beforehand, and of what comes only the frames are read, so that the
    server is measured and not this client.
    """

    def __init__(self, address: str, count: int) -> None:
        host, _, port = address.rpartition(":")
        self.sockets = [socket.create_connection((host, int(port))) for _ in range(count)]
        request = (
            f"GET /ws HTTP/1.1\r\nHost: {address}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
            "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
        )
        for one in self.sockets:
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            one.sendall(request.encode())
            answer = b""
            while not answer.endswith(b"\r\n\r\n"):
                answer += one.recv(1 << 12)
            assert b" 101 " in answer, answer
        self.poll = select.epoll()
        self.by_fd = {one.fileno(): one for one in self.sockets}
        for fd in self.by_fd:
            self.poll.register(fd, select.EPOLLIN)
        self.reset, self.steps = (
            framed(RESET),
            [
                framed(json.dumps({"type": "step", "data": {"action": action}}).encode())
                for action in (0, 1)
            ],
        )
        self.ask([self.reset] * count)

    def ask(self, requests: list[bytes]) -> None:
        """Sends one request to each session, and waits for all answers. A session whose episode is
        over begins another."""
        for one, request in zip(self.sockets, requests, strict=True):
            one.send(request)
        waiting, parts = len(requests), {}
        while waiting:
            for fd, _ in self.poll.poll():
                answer = parts.pop(fd, b"") + self.by_fd[fd].recv(1 << 16)
                if not is_whole(answer):
                    parts[fd] = answer
                elif answer.endswith(b'"done":true}}'):
                    self.by_fd[fd].send(self.reset)
                else:
                    assert b'"error"' not in answer, answer
                    waiting -= 1

    def step(self, actions: Any) -> None:
        """Plays an action in each session."""
        self.ask([self.steps[action] for action in actions])

    def close(self) -> None:
        for one in self.sockets:
            one.close()
        self.poll.close()


def is_whole(answer: bytes) -> bool:
    """Whether a server's frame is there to its end."""
    if len(answer) < 4:
        return False
    if answer[1] < 126:
        return len(answer) >= 2 + answer[1]
    return len(answer) >= 4 + int.from_bytes(answer[2:4], "big")


def main() -> None:
    import gymnasium
    import uvicorn
    from openenv.core.env_server.http_server import create_fastapi_app
    from openenv.core.env_server.interfaces import Environment
    from openenv.core.env_server.types import Action, Observation, State

    class Label(Action):
        action: int

    class Floats(Observation):
        observation: list[float]

    class CartPole(Environment[Label, Floats, State]):
        SUPPORTS_CONCURRENT_SESSIONS = True

        def __init__(self) -> None:
            super().__init__()
            self.env = gymnasium.make("CartPole-v1").unwrapped
            self._state = State()

        def reset(self, seed: int | None = None, episode_id: str | None = None, **_: Any) -> Floats:
            self._state = State(episode_id=episode_id)
            return Floats(observation=self.env.reset(seed=seed)[0].tolist())

        def step(self, action: Label, timeout_s: float | None = None, **_: Any) -> Floats:
            self._state.step_count += 1
            observation, reward, terminated, truncated, _ = self.env.step(action.action)
            done = bool(terminated or truncated)
            return Floats(observation=observation.tolist(), reward=float(reward), done=done)

        @property
        def state(self) -> State:
            return self._state

    app = create_fastapi_app(CartPole, Label, Floats, max_concurrent_envs=int(sys.argv[1]) + 8)
    listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
    print(listener.getsockname()[1], flush=True)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    config = uvicorn.Config(app, log_level="error", access_log=False)
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main()
