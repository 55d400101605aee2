"""Envs for OpenEnv's clients: sessions over WebSocket and HTTP, each a slot of one vec env.

The protocol is that of the package `openenv-core`, whose clients use the server as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from corral import _native, errors, registry
from corral._served import refuse_lazy
from corral._server import Addresses, File, ServerBase
from corral.settings import whole
from corral.vector import VectorEnv

MakeSessions = str | Callable[..., VectorEnv]


class Server(ServerBase):
    """Serves envs to OpenEnv's clients. Each session is a slot of one vec env.

    Args:
        addr: `(host, port)` or "host:port"; port 0 lets the system choose. Or a list of these.
        make_venv: an id of `corral.envs()`. Or `make_venv(num_envs=…)`, which makes a
            `corral.VectorEnv` of `autoreset_mode="disabled"` with an env for each session.
        max_sessions: how many sessions there may be. Each has its env from the beginning.
        max_message: how many bytes a client's message may have.
        idle_timeout: seconds that a client may give no sign of life. Clients answer pings by
            themselves, so one that thinks for longer keeps its session.
        token_file: a file with the secret that clients must show, of at least 16 characters; None
            for the environment variable CORRAL_NETENV_TOKEN or, without that, no secret.
        tls: whether connections are encrypted, by a pair that is made here.
        certificate, key: PEM files of a certificate of somebody's, for TLS.
        insecure: whether an address that other machines reach will do without a token and TLS.

    Raises:
        ArgumentError, ArgumentTypeError: name what is wrong.
    """

    def __init__(
        self,
        addr: Addresses,
        make_venv: MakeSessions,
        *,
        max_sessions: int = 256,
        max_message: int = 4 << 20,
        idle_timeout: float = 300.0,
        token_file: File | None = None,
        tls: bool = False,
        certificate: File | None = None,
        key: File | None = None,
        insecure: bool = False,
    ) -> None:
        super().__init__(
            addr,
            "tcp",
            token_file=token_file,
            tls=tls,
            certificate=certificate,
            key=key,
            insecure=insecure,
        )
        if not isinstance(make_venv, str) and not callable(make_venv):
            raise errors.ArgumentTypeError(
                f"OpenEnv serves one kind of env: give an id or a function, not {make_venv!r}"
            )
        self._make_venv = make_venv
        self._max_sessions = whole("max_sessions", max_sessions, _native.MAX_ENVS)
        self._limits: dict[str, Any] = {
            # Requests without a session, and clients that are told that there is none left.
            "max_connections": self._max_sessions + 64,
            "max_message": whole("max_message", max_message, 2**30),
            "idle_timeout": idle_timeout,
        }

    def _serve(self) -> _native.SessionServer:
        venv = self._made()
        about = registry.envs().get(venv.native.id, {}).get("about")
        return _native.SessionServer(
            self._addresses,
            venv.native,
            keep=venv,
            description=about or f"{venv.native.id}, served by corral",
            version=_native.__version__,
            **self._access,
            **self._limits,
        )

    def _made(self) -> VectorEnv:
        if isinstance(self._make_venv, str):
            return registry.make_vec(self._make_venv, self._max_sessions, autoreset_mode="disabled")
        venv = self._make_venv(num_envs=self._max_sessions)
        if not isinstance(venv, VectorEnv):
            raise errors.ArgumentTypeError(
                f"make_venv returned {venv!r}: OpenEnv's sessions step one by one, which takes a "
                "corral.VectorEnv (corral.from_gymnasium makes one of Gymnasium's envs)"
            )
        refuse_lazy(venv)
        if venv.num_envs != self._max_sessions:
            raise errors.ArgumentError(
                f"make_venv made {venv.num_envs} envs, and there are {self._max_sessions} sessions"
            )
        return venv

    @property
    def url(self) -> str:
        """The first of its addresses, as OpenEnv's clients take it."""
        return f"{'http' if self.fingerprint is None else 'https'}://{self.address}"
