"""Envs over a socket, by the protocol of `netenv`: `serve`, `connect`, `Server`, `Client`.

`Server` and `Client` take the arguments of the original's classes, so that a program that used
those runs with only its import changed.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Literal, cast, overload

import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode
from typing_extensions import Unpack

from corral import _native, errors, openenv, settings
from corral._netenv import Address, net_address, packed, secret
from corral._served import CHOSEN, Makers, Served, settled
from corral._server import Addresses, ServerBase
from corral.rendering import check_render_mode
from corral.settings import VecOptions, documented, flag, text, whole
from corral.spaces import batched
from corral.vector import VectorEnv


class Server(ServerBase):
    """Serves envs by netenv: each connection has a vec env of its own.

    Args:
        addr: `(host, port)`, "host:port", or a path with `socket_kind="unix"`; port 0 lets the
            system choose. Or a list of addresses, "unix:path" among them.
        make_venv: `make_venv(num_envs=…, **env_options)` makes the envs of a connection: a
            `corral.VectorEnv`, a Gymnasium vector env, or an old VecEnv (`reset`, `step_async`,
            `step_wait`). Or an id of `corral.envs()`. Or a list of ids, or a dict of functions or
            ids by the names that clients choose them by; who names none gets the first.
        socket_kind: "tcp" or "unix".
        max_connections, max_envs: how many connections, and how many envs in all of them.
        max_payload: how many bytes the actions or the step data of one connection may take.
        idle_timeout: seconds that a client may be silent until its connection is closed.
        token_file: a file with the secret that clients must show, of at least 16 characters; None
            for the environment variable CORRAL_NETENV_TOKEN or, without that, no secret. Original
            clients have none to show.
        tls: whether TCP connections are encrypted, by a pair that is made here; `fingerprint` is
            to be given to clients.
        certificate, key: PEM files of a certificate of somebody's, for TLS.
        insecure: whether an address that other machines reach will do without a token and TLS.

    Raises:
        ArgumentError, ArgumentTypeError: name what is wrong.
    """

    def __init__(
        self,
        addr: Addresses,
        make_venv: Served,
        socket_kind: str = "tcp",
        *,
        max_connections: int = 64,
        max_envs: int = 65536,
        max_payload: int = 256 << 20,
        idle_timeout: float = 10.0,
        token_file: str | os.PathLike[str] | None = None,
        tls: bool = False,
        certificate: str | os.PathLike[str] | None = None,
        key: str | os.PathLike[str] | None = None,
        insecure: bool = False,
    ) -> None:
        super().__init__(
            addr,
            socket_kind,
            token_file=token_file,
            tls=tls,
            certificate=certificate,
            key=key,
            insecure=insecure,
        )
        self._made = Makers(make_venv)
        self._limits: dict[str, Any] = {
            "max_connections": whole("max_connections", max_connections, _native.MAX_ENVS),
            "max_envs": whole("max_envs", max_envs, _native.MAX_ENVS),
            "max_payload": whole("max_payload", max_payload, 2**40),
            "idle_timeout": idle_timeout,
        }

    def _serve(self) -> _native.NetServer:
        return _native.NetServer(self._addresses, self._made, **self._access, **self._limits)


@overload
def serve(
    make_venv: Served,
    addr: Addresses = ...,
    *,
    protocol: Literal["netenv"] = ...,
    **options: Any,
) -> Server: ...
@overload
def serve(
    make_venv: Served, addr: Addresses = ..., *, protocol: Literal["openenv"], **options: Any
) -> openenv.Server: ...
def serve(
    make_venv: Any,
    addr: Addresses = "127.0.0.1:2345",
    *,
    protocol: str = "netenv",
    **options: Any,
) -> Server | openenv.Server:
    """A server of envs, which serves from here on, until `close`, the end of a `with`, or until
    nobody holds it any more.

    Args:
        make_venv: an id of `corral.envs()`, or a function that makes the envs of a connection; or
            several, as `corral.netenv.Server` takes them.
        addr: "host:port", `(host, port)`, "unix:path" or a Path, or a list of these.
        protocol: "netenv", or "openenv" for OpenEnv's clients: one env for each session.
        **options: those of `corral.netenv.Server`, or of `corral.openenv.Server`.

    Raises:
        ArgumentError, ArgumentTypeError: name what is wrong.
        UnknownEnvError: for an id that no env has.
    """
    server: Server | openenv.Server
    if protocol == "openenv":
        server = openenv.Server(addr, make_venv, **options)
    elif protocol == "netenv":
        kind = options.pop("socket_kind", "unix" if isinstance(addr, os.PathLike) else "tcp")
        server = Server(addr, make_venv, kind, **options)
    else:
        raise errors.ArgumentError(f"protocol is 'netenv' or 'openenv', not {protocol!r}")
    server.listen()
    return server


_ALONE = "the server steps the envs of a message together"
_REFUSED = {
    "num_threads": _ALONE,
    "batch_size": _ALONE,
    "thread_affinity_offset": _ALONE,
    "final_frames": "a server draws no last pictures",
    "record": "the envs are not here, so their failures cannot be played again here",
}


@documented(_REFUSED)
def connect(
    addr: Address,
    num_envs: int = 1,
    env_options: Mapping[str, Any] | None = None,
    *,
    id: str | None = None,
    plain: bool = False,
    token_file: str | os.PathLike[str] | None = None,
    fingerprint: str | None = None,
    authority: str | os.PathLike[str] | None = None,
    use_shared_memory: bool = False,
    connect_timeout: float | None = 60.0,
    reconnect: bool = False,
    **vec_options: Unpack[VecOptions],
) -> VectorEnv:
    """Envs in a netenv server as a `VectorEnv`: corral's own server, or an original one.

    A server of corral's carries all that envs in this process do, but for objects of Python's. An
    original one speaks netenv alone: it steps and resets all envs together, in "same_step"; an
    episode's end is shown as terminated; seeds, indices, masks, options of resets, final
    observations, infos and states are refused or absent.

    Args:
        addr: "host:port", `(host, port)`, "unix:path" or a Path.
        num_envs: how many envs the server is to make.
        env_options: the envs' options: None, bools, numbers, strings, bytes, arrays, and lists and
            dicts of these.
        id: which envs, of a server that has several; None for its first ones.
        plain: whether netenv alone is spoken, with corral's servers too. Its envs have begun when
            they are made: a step may come before a reset.
        token_file: a file with the secret that the server asks for; None for the environment
            variable CORRAL_NETENV_TOKEN, if there is one.
        fingerprint: the SHA-256 of the certificate of a server with TLS, as that server tells it.
        authority: a PEM file of the certificates that sign those of servers with TLS. Without
            either there is no TLS.
        use_shared_memory: whether observations and actions travel in memory that both sides share,
            which takes a Unix socket.
        connect_timeout: seconds that the server may take to be there and to make its envs; None
            for no limit.
        reconnect: whether a connection that breaks is made again, with new envs. The episodes that
            were lost are reported truncated. The same as `on_failure="restart"`.
        **vec_options: as in `corral.make_vec`, but for what is said below:
            {names}.
        autoreset_mode (None): None for that of the server's envs, which is "same_step" where the
            server makes them by an id.
        seed, max_episode_steps, episode_statistics, debug: of envs that the server makes by an id.
        timeout (None): seconds that the server may take for an answer; then the connection is given
            up, and the episodes of all envs are lost.
        on_failure, max_restarts: what becomes of envs that fail, or whose connection breaks.

    Raises:
        EnvError: where the server cannot be reached, or does not make the envs.
        ArgumentError, ArgumentTypeError, OptionValueError, UnknownEnvError: name what is wrong.
        UnsupportedError: for what the server or its envs cannot do.
        SpaceError: where what the server says of its spaces makes no sense.
    """
    settings.check(connect, vec_options, _REFUSED)
    if flag("reconnect", reconnect):
        if vec_options.get("on_failure", "restart") != "restart":
            raise errors.ArgumentError('reconnect=True is on_failure="restart": give one of them')
        vec_options["on_failure"] = "restart"
    if env_options is not None and not isinstance(env_options, Mapping):
        raise errors.ArgumentTypeError(f"env_options is a dict, not {env_options!r}")
    if flag("plain", plain) and id is not None:
        raise errors.ArgumentError("netenv alone has no ids: give no id, or plain=False")
    num_envs = whole("num_envs", num_envs, _native.MAX_ENVS)
    vec_options = cast("VecOptions", settings.implied(vec_options))
    chosen = {name: vec_options.pop(name) for name in CHOSEN if name in vec_options}  # type: ignore[misc]
    source = _native.Source.netenv(
        net_address(addr),
        packed(dict(env_options or {})),
        asked=(None if id is None else text("id", id), settled(chosen)),
        plain=plain,
        token=secret(token_file),
        fingerprint=None if fingerprint is None else text("fingerprint", fingerprint),
        authority=None if authority is None else settings.file_path("authority", authority),
        shared_memory=flag("use_shared_memory", use_shared_memory),
        connect_timeout=connect_timeout,
    )
    for name in _REFUSED:
        vec_options.pop(name, None)  # type: ignore[misc]
    render_mode = vec_options.get("render_mode")
    native = settings.native(source, num_envs, vec_options, usual_mode=None)
    envs = settings.vector(native, vec_options, check_render_mode(native, render_mode))
    if native.metadata.get("autoreset_mode") == "next_step":
        # A Gymnasium vector env, which nobody can reset in part.
        envs.autoreset_mode = AutoresetMode.NEXT_STEP
        envs.metadata["autoreset_mode"] = AutoresetMode.NEXT_STEP
    envs.single_observation_space = _with_multi_binary(envs.single_observation_space)
    envs.single_action_space = _with_multi_binary(envs.single_action_space)
    envs.observation_space = batched(envs.single_observation_space, num_envs)
    envs.action_space = batched(envs.single_action_space, num_envs)
    return envs


def _with_multi_binary(space: Any) -> Any:
    """The space with what netenv calls MultiBinary by that name; the core has labels, 0 and 1."""
    if isinstance(space, spaces.Dict):
        inner = [(name, _with_multi_binary(one)) for name, one in space.spaces.items()]
        return spaces.Dict(inner)
    is_bits = (
        isinstance(space, spaces.MultiDiscrete)
        and space.dtype == np.int8
        and space.nvec.ndim == 1
        and (space.nvec == 2).all()
    )
    return spaces.MultiBinary(len(space.nvec)) if is_bits else space


class Client:
    """The original's client: an old VecEnv whose envs are in a server.

    Args:
        addr: `(host, port)`, or a path with `socket_kind="unix"`.
        num_envs: how many envs.
        socket_kind: "tcp" or "unix".
        env_options: the options of the envs.
        reuse_arrays: the original's; every array here is the caller's to keep.
        use_shared_memory: whether payloads travel in shared memory, over a Unix socket.

    Attributes:
        num_envs, observation_space, action_space: the spaces are those of one env.
        metadata, reward_range, spec: what the server tells.
        envs: the `corral.VectorEnv` underneath.
    """

    def __init__(
        self,
        addr: Address,
        num_envs: int,
        socket_kind: str = "tcp",
        env_options: Mapping[str, Any] | None = None,
        reuse_arrays: bool = False,
        use_shared_memory: bool = False,
    ) -> None:
        flag("reuse_arrays", reuse_arrays)
        self.envs = connect(
            net_address(addr, socket_kind),
            num_envs,
            env_options,
            plain=True,
            use_shared_memory=use_shared_memory,
        )
        self.num_envs = self.envs.num_envs
        self.observation_space = self.envs.single_observation_space
        self.action_space = self.envs.single_action_space
        told = dict(self.envs.native.metadata)
        self.reward_range = tuple(told.pop("reward_range"))
        self.metadata = told
        self.spec: Any = None

    def reset(self) -> Any:
        """Begins an episode in every env; the first observations."""
        return self.envs.reset()[0]

    def step_async(self, actions: Any) -> None:
        """Sends the actions. The server's envs have begun, so a step may come before a reset."""
        self.envs.send(actions)

    def step_wait(self) -> tuple[Any, Any, Any, list[dict[str, Any]]]:
        """Observations, rewards (float32), ends, and an empty dict for each env."""
        observations, rewards, terminated, truncated, _ = self.envs.recv()
        ends = terminated | truncated
        return observations, rewards.astype(np.float32), ends, [{} for _ in range(self.num_envs)]

    def step(self, actions: Any) -> tuple[Any, Any, Any, list[dict[str, Any]]]:
        """`step_async`, then `step_wait`."""
        self.step_async(actions)
        return self.step_wait()

    def render(self, mode: str = "human", **kwargs: Any) -> Any:
        """What the server's envs draw."""
        (picture,) = self.envs.native.call("render", (), {"mode": mode, **kwargs}, [0])
        return picture

    def close(self) -> None:
        """Closes the connection, and with it the server's envs."""
        self.envs.close()
