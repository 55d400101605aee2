"""What servers of either protocol are: where they listen, who may use them, how they end."""

from __future__ import annotations

import os
import time
from abc import ABC, abstractmethod
from typing import Any

from typing_extensions import Self

from corral import _native, errors
from corral._closing import Closing
from corral._netenv import Address, host_of, is_loopback, net_address, secret, told_address
from corral.settings import flag

Addresses = Address | list[Address]
File = str | os.PathLike[str]


class ServerBase(ABC, Closing):
    """Serves from `listen` until `close`."""

    def __init__(
        self,
        addr: Addresses,
        socket_kind: str,
        *,
        token_file: File | None,
        tls: bool,
        certificate: File | None,
        key: File | None,
        insecure: bool,
    ) -> None:
        given = addr if isinstance(addr, list) and addr else [addr]
        self._addresses = [net_address(one, socket_kind) for one in given]
        token = secret(token_file)
        if (certificate is None) is not (key is None):
            raise errors.ArgumentError("certificate and key belong together: give both or neither")
        has_tls = flag("tls", tls) or certificate is not None
        is_safe = token is not None and has_tls
        exposed = [one for one in self._addresses if not is_loopback(one)]
        if exposed and not (is_safe or flag("insecure", insecure)):
            raise errors.ArgumentError(
                f"addr is '{exposed[0]}', which other machines reach: whoever does may make "
                "envs here. Give a token (token_file or CORRAL_NETENV_TOKEN) and TLS (tls=True, or "
                "certificate and key), or insecure=True"
            )
        self._access: dict[str, Any] = {
            "token": token,
            "tls": (certificate, key, host_of(self._addresses[0])) if has_tls else None,
        }
        self._is_closed = False
        self._native: _native.NetServer | _native.SessionServer | None = None

    @abstractmethod
    def _serve(self) -> _native.NetServer | _native.SessionServer:
        """The native server, which serves."""

    def listen(self) -> Any:
        """Begins to serve. Returns the bound address: `(host, port)`, or the path.

        Raises:
            ClosedError: after `close`.
            ArgumentError: where it cannot serve at its address.
        """
        if self._is_closed:
            raise errors.ClosedError(
                f"the server at '{self._addresses[0]}' is closed: make a new one"
            )
        if self._native is None:
            self._native = self._serve()
        return told_address(self._native.addresses[0])

    @property
    def addresses(self) -> list[str]:
        """Where it listens, in the form that `corral.connect` takes."""
        self.listen()
        assert self._native is not None
        return self._native.addresses

    @property
    def address(self) -> str:
        """The first of `addresses`."""
        return self.addresses[0]

    @property
    def fingerprint(self) -> str | None:
        """The SHA-256 of its certificate, which clients pin; None without TLS."""
        self.listen()
        return None if self._native is None else self._native.fingerprint

    def metrics(self) -> dict[str, int]:
        """What it has (`connections`, `envs`) and has done: connections `accepted`, `refused`
        because there were too many and `broken`; `resets` and `steps` that were answered."""
        return {} if self._native is None else self._native.metrics()

    def run(self) -> None:
        """Serves until Ctrl-C, SIGTERM's handler or `close` in another thread ends it."""
        self.listen()
        try:
            while self._native is not None:
                time.sleep(0.05)
        finally:
            self.close()

    def close(self) -> None:
        """Ends the server: steps in flight are answered, then every connection is closed."""
        self._is_closed = True
        native, self._native = self._native, None
        if native is not None:
            native.close()

    def __enter__(self) -> Self:
        self.listen()
        return self
