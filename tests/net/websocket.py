"""The least that speaks WebSocket and HTTP, so that a test can send what no client would."""

from __future__ import annotations

import json
import socket
import ssl
from typing import Any

from typing_extensions import Self

TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10


def frame(opcode: int, payload: bytes, *, length: int | None = None, last: bool = True) -> bytes:
    """A client's frame; `length` is what it says of its length. The mask changes nothing."""
    length = len(payload) if length is None else length
    head = bytes([opcode | (0x80 if last else 0)])
    if length < 126:
        head += bytes([0x80 | length])
    elif length < 1 << 16:
        head += bytes([0x80 | 126]) + length.to_bytes(2, "big")
    else:
        head += bytes([0x80 | 127]) + length.to_bytes(8, "big")
    return head + bytes(4) + payload


class WebSocket:
    """A connection to a server's `/ws`; `status` is that of its answer."""

    def __init__(self, address: str, *head: str, tls: ssl.SSLContext | None = None) -> None:
        host, _, port = address.rpartition(":")
        self.socket = socket.create_connection((host, int(port)), timeout=60)
        if tls is not None:
            self.socket = tls.wrap_socket(self.socket, server_hostname="localhost")
        self.file = self.socket.makefile("rb")
        lines = (
            "GET /ws HTTP/1.1",
            f"Host: {address}",
            "Connection: Upgrade",
            "Upgrade: websocket",
            "Sec-WebSocket-Version: 13",
            "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==",
            *head,
        )
        self.socket.sendall("\r\n".join((*lines, "", "")).encode())
        self.status = int(self.file.readline().split()[1])
        while self.file.readline() != b"\r\n":
            pass

    def send(self, message: Any) -> None:
        """Sends a message; a text is sent as it is."""
        text = message if isinstance(message, str) else json.dumps(message)
        self.socket.sendall(frame(TEXT, text.encode()))

    def receive(self) -> tuple[int, bytes]:
        """The next frame: its opcode, and its payload."""
        first, second = self.file.read(2)
        assert second < 128, "a server masks nothing"
        if second == 126:
            second = int.from_bytes(self.file.read(2), "big")
        elif second == 127:
            second = int.from_bytes(self.file.read(8), "big")
        return first & 15, self.file.read(second)

    def answer(self) -> Any:
        """The next message."""
        opcode, payload = self.receive()
        assert opcode == TEXT, (opcode, payload)
        return json.loads(payload)

    def ask(self, kind: str, **data: Any) -> Any:
        """The data of the answer to a message; `ask("error", …)` is a mistake of the test's."""
        self.send({"type": kind, "data": data} if kind in ("reset", "step") else {"type": kind})
        return self.answer()["data"]

    def is_closed(self) -> int:
        """The code with which the server closes the connection, once it does."""
        while True:
            opcode, payload = self.receive()
            if opcode == CLOSE:
                return int.from_bytes(payload[:2], "big")

    def close(self) -> None:
        self.file.close()
        self.socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
