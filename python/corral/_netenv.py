"""Addresses, tokens and options of netenv, in the forms of users and of the native half."""

from __future__ import annotations

import base64
import ipaddress
import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from corral import errors, settings
from corral.settings import text, whole

Address = str | tuple[str, int] | os.PathLike[str]

TOKEN_VARIABLE = "CORRAL_NETENV_TOKEN"
"""The environment variable that has the token, where no file is named."""

_KINDS = ("tcp", "unix")


def net_address(addr: Any, socket_kind: str = "tcp") -> str:
    """The address as the native half takes it: "host:port", or "unix:path"."""
    if socket_kind not in _KINDS:
        raise errors.ArgumentError(f"socket_kind is 'tcp' or 'unix', not {socket_kind!r}")
    if socket_kind == "unix":
        path = settings.file_path("addr", addr)
        return path if path.startswith("unix:") else f"unix:{path}"
    if isinstance(addr, tuple | list) and len(addr) == 2:
        host, port = text("the host of addr", addr[0]), whole("the port of addr", addr[1], 65535, 0)
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    if isinstance(addr, os.PathLike):
        return f"unix:{os.fspath(addr)}"
    return text("addr", addr)


def told_address(address: str) -> Any:
    """The address as the original's `listen` returns it: a pair, or a path."""
    if address.startswith("unix:"):
        return address.removeprefix("unix:")
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port)


def host_of(address: str) -> str:
    return address.rpartition(":")[0].strip("[]")


def is_loopback(address: str) -> bool:
    """Whether only this machine reaches the address; a name may be that of any machine."""
    host = host_of(address)
    if address.startswith("unix:") or host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def secret(token_file: Any) -> str | None:
    """The token in a file or, without one, in the environment, where there is one."""
    if token_file is None:
        return os.environ.get(TOKEN_VARIABLE) or None
    path = settings.file_path("token_file", token_file)
    if os.path.exists(path) and not os.path.isfile(path):
        raise errors.ArgumentError(f"token_file: {path} is no regular file")
    try:
        with open(path, encoding="utf-8") as file:
            return file.read(1 << 16)
    except (OSError, ValueError) as error:
        raise errors.ArgumentError(f"token_file: no token can be read: {error}") from None


def opened(value: Any) -> Any:
    """An option as the client gave it: bytes travel as an object that says so."""
    if isinstance(value, dict):
        if value.get("__kind__") == "bytes" and isinstance(value.get("data"), str):
            return base64.b64decode(value["data"], validate=True)
        return {key: opened(one) for key, one in value.items()}
    return [opened(one) for one in value] if isinstance(value, list) else value


def packed(value: Any, at: str = "env_options", depth: int = 0) -> Any:
    """An option as it travels; `at` is where it is among the options."""
    if depth > 64:
        raise errors.ArgumentError("env_options are nested more than 64 deep, or hold themselves")
    if isinstance(value, bytes):
        return {"__kind__": "bytes", "data": base64.b64encode(value).decode()}
    if isinstance(value, Mapping):
        return {key: packed(one, f"{at}[{key!r}]", depth + 1) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [packed(one, f"{at}[{k}]", depth + 1) for k, one in enumerate(value)]
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise errors.OptionValueError(
            f"{at} is an integer of {value.bit_length()} bits, and integers of 64 bits travel"
        )
    is_array = isinstance(value, np.ndarray | np.generic) and value.dtype.kind in "biuf"
    if not (value is None or is_array or isinstance(value, bool | int | float | str)):
        raise errors.OptionValueError(
            f"{at} is {value!r:.200}: what travels are None, bools, numbers, strings, bytes, "
            "arrays of numbers, and lists and dicts of these"
        )
    return value
