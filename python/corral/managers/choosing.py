"""Which manager a config's `type` names."""

from __future__ import annotations

import copy
import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from corral import errors
from corral.settings import near

if TYPE_CHECKING:
    from corral.managers.base_env_manager import BaseEnvManager

_Manager = TypeVar("_Manager", bound="type[BaseEnvManager]")

_MANAGERS: dict[str, type[BaseEnvManager]] = {}


def registered(name: str) -> Callable[[_Manager], _Manager]:
    """Makes a manager known by a config's `type`."""

    def register(manager: _Manager) -> _Manager:
        _MANAGERS[name] = manager
        return manager

    return register


def get_env_manager_cls(cfg: Any) -> type[BaseEnvManager]:
    """The manager that a config's `type` names.

    Args:
        cfg: a dict with "type": "base", "subprocess" or "async_subprocess". The modules that
            "import_names" lists are imported first.

    Raises:
        ArgumentError: for a type that is missing or unknown; lists those that there are.
    """
    if not isinstance(cfg, Mapping):
        raise errors.ArgumentTypeError(f"cfg is a dict with a 'type', not {type(cfg).__name__}")
    names = cfg.get("import_names", [])
    for module in [names] if isinstance(names, str) else names:
        importlib.import_module(module)
    known = ", ".join(repr(name) for name in _MANAGERS)
    if "type" not in cfg:
        raise errors.ArgumentError(f"the config has no 'type': it is one of {known}")
    chosen = cfg["type"]
    if chosen not in _MANAGERS:
        raise errors.ArgumentError(
            f"the config's type is {chosen!r}: it is one of {known}{near([str(chosen)], _MANAGERS)}"
        )
    return _MANAGERS[chosen]


def create_env_manager(
    manager_cfg: Any, env_fn: Sequence[Callable[[], Any] | str]
) -> BaseEnvManager:
    """The manager that a config's `type` names, with the rest of the config, which is not changed.

    Raises:
        ArgumentError: as `get_env_manager_cls`, and as the manager.
    """
    manager = get_env_manager_cls(manager_cfg)
    cfg = copy.deepcopy(dict(manager_cfg))
    for key in ("type", "import_names"):
        cfg.pop(key, None)
    return manager(env_fn, cfg)
