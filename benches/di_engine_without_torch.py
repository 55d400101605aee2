"""DI-engine's env managers, without the gigabytes of torch that their packages import.

The managers themselves are NumPy, pipes and shared memory. The `__init__` files of their packages
are passed over, and their own files are imported as they are. What these files name and the
managers do not use (torch, treetensor) is an empty stand-in; old gym's spaces are Gymnasium's.
"""

from __future__ import annotations

import importlib
import importlib.util
import logging
import sys
from types import ModuleType
from typing import Any

import gymnasium

_FOUND = importlib.util.find_spec("ding")
if _FOUND is None or _FOUND.submodule_search_locations is None:
    raise ImportError("DI-engine is not installed")
_FOLDER = _FOUND.submodule_search_locations[0]


class _Empty(ModuleType):
    """Has whatever is asked of it, and does nothing."""

    __path__: list[str] = []  # noqa: RUF012

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {"__init__": lambda *_: None})


def _bare(name: str, *files: str) -> None:
    """A package that has what these of its files define."""
    package = ModuleType(name)
    package.__path__ = ["/".join([_FOLDER, *name.split(".")[1:]])]
    sys.modules[name] = package
    for file in files:
        module = importlib.import_module(f"{name}.{file}")
        for key, value in vars(module).items():
            if not key.startswith("__"):
                setattr(package, key, value)


if importlib.util.find_spec("torch") is None:
    for missing in ("torch", "treetensor", "treetensor.torch", "treetensor.numpy", "ditk"):
        package, _, part = missing.partition(".")
        sys.modules[missing] = _Empty(missing)
        if part:
            setattr(sys.modules[package], part, sys.modules[missing])
    sys.modules["torch"].set_num_threads = lambda count: None  # type: ignore[attr-defined]
    sys.modules["ditk"].logging = logging  # type: ignore[attr-defined]
    sys.modules.setdefault("gym", gymnasium)
    _bare("ding")
    sys.modules["ding"].enable_linklink = False  # type: ignore[attr-defined]
    _bare(
        "ding.utils",
        "default_helper",
        "compression_helper",
        "lock_helper",
        "registry_factory",
        "system_helper",
        "import_helper",
        "time_helper",
    )
    _bare("ding.data", "shm_buffer")
    _bare("ding.envs")
    _bare("ding.envs.env", "base_env")
    for shared in ("BaseEnv", "BaseEnvTimestep"):
        setattr(sys.modules["ding.envs"], shared, getattr(sys.modules["ding.envs.env"], shared))
    _bare("ding.envs.env_manager")

_MANAGERS = importlib.import_module("ding.envs.env_manager.subprocess_env_manager")
BaseEnvTimestep: Any = _MANAGERS.BaseEnvTimestep
SyncSubprocessEnvManager: Any = _MANAGERS.SyncSubprocessEnvManager
AsyncSubprocessEnvManager: Any = _MANAGERS.AsyncSubprocessEnvManager
