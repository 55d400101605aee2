"""The config of a manager: a dict with attribute access, its defaults, its checks."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from corral import _launch, _native, errors
from corral.settings import flag, near, text, whole

OTHER_KEYS = ("type", "cfg_type", "import_names")
"""Keys of DI-engine's configs that choose a manager. A manager that is chosen ignores them."""

BASE = {
    "episode_num": math.inf,
    "max_retry": 1,
    "retry_type": "reset",
    "auto_reset": True,
    "step_timeout": None,
    "reset_timeout": None,
    "retry_waiting_time": 0.1,
}
SUBPROCESS = {
    **BASE,
    "shared_memory": True,
    "copy_on_get": True,
    "context": "fork",
    "wait_num": math.inf,
    "step_wait_timeout": None,
    "connect_timeout": 60,
    "reset_inplace": False,
    "num_workers": None,
}


class Config(dict[str, Any]):
    """A dict whose keys are attributes too, as EasyDict's are; dicts within it are the same."""

    def __init__(self, given: Mapping[str, Any] | None = None, **more: Any) -> None:
        super().__init__()
        for key, value in {**(given or {}), **more}.items():
            self[key] = value

    def __setitem__(self, key: str, value: Any) -> None:
        is_plain = isinstance(value, Mapping) and not isinstance(value, Config)
        super().__setitem__(key, Config(value) if is_plain else value)

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise errors.UnknownNameError(
                f"the config has no key '{name}'{near([name], self)}"
            ) from None

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = value

    def __delattr__(self, name: str) -> None:
        getattr(self, name)
        del self[name]


def merged(default: Config, given: Any, owner: str) -> Config:
    """The defaults with what is given in their place, checked.

    Args:
        owner: the manager's name, for messages.

    Raises:
        ArgumentTypeError: for what is no mapping.
        UnknownOptionError: for a key that no manager has.
        ArgumentError, ArgumentTypeError: for a value that a key does not take.
    """
    if not isinstance(given, Mapping):
        raise errors.ArgumentTypeError(
            f"the config of {owner} is a dict, not {type(given).__name__}"
        )
    known = [*default, *(key for key in SUBPROCESS if key not in default)]
    for key in given:
        if key not in known and key not in OTHER_KEYS:
            names = ", ".join(key for key in default if key not in OTHER_KEYS)
            raise errors.UnknownOptionError(
                f"the config of {owner} has the unknown key '{key}'. Valid keys: {names}"
                f"{near([str(key)], known)}"
            )
    own = {key: value for key, value in given.items() if key in default or key in OTHER_KEYS}
    config = Config({**default, **own})
    for key, check in _CHECKS.items():
        if key in config:
            config[key] = check(key, config[key])
    if config.get("reset_inplace") and not config.auto_reset:
        raise errors.ArgumentError(
            "reset_inplace is True and auto_reset is False: there is no reset to do in place"
        )
    return config


def _count(name: str, value: Any) -> float:
    """A number of things, from 1 to inf."""
    if isinstance(value, float | np.floating) and value == math.inf:
        return math.inf
    return whole(name, value, 2**63 - 1)


def _attempts(name: str, value: Any) -> int:
    """A number of attempts; 0 means 1, as in DI-engine."""
    return max(whole(name, value, 2**63 - 1, least=0), 1)


def _seconds(name: str, value: Any) -> float:
    is_number = isinstance(value, int | float | np.integer | np.floating)
    if not is_number or isinstance(value, bool):
        raise errors.ArgumentTypeError(f"{name} is a number of seconds, not {value!r}")
    if not 0 <= value < math.inf:
        raise errors.ArgumentError(f"{name} is {value} seconds: it must be finite and at least 0")
    return float(value)


def _timeout(name: str, value: Any) -> float | None:
    """Seconds above 0, or None for no limit."""
    if value is None:
        return None
    seconds = _seconds(name, value)
    if seconds == 0:
        raise errors.ArgumentError(f"{name} is 0 seconds: give more, or None for no limit")
    return seconds


def _wait(name: str, value: Any) -> float | None:
    return None if value is None else _seconds(name, value)


def _retry_type(name: str, value: Any) -> str:
    if text(name, value) not in ("reset", "renew"):
        raise errors.ArgumentError(f"{name} is 'reset' or 'renew', not {value!r}")
    return str(value)


def _context(name: str, value: Any) -> str:
    _launch.launcher(text(name, value))
    return str(value)


def _workers(name: str, value: Any) -> int | None:
    return None if value is None else whole(name, value, _native.MAX_ENVS)


_CHECKS: dict[str, Callable[[str, Any], Any]] = {
    "episode_num": _count,
    "max_retry": _attempts,
    "retry_type": _retry_type,
    "auto_reset": flag,
    "step_timeout": _timeout,
    "reset_timeout": _timeout,
    "retry_waiting_time": _seconds,
    "shared_memory": flag,
    "copy_on_get": flag,
    "context": _context,
    "wait_num": _count,
    "step_wait_timeout": _wait,
    "connect_timeout": _timeout,
    "reset_inplace": flag,
    "num_workers": _workers,
}
