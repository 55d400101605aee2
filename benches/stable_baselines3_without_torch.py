"""Stable-Baselines3's vec envs, without the gigabytes of torch that its package imports.

The classes themselves are NumPy and pipes. Their packages' `__init__` files are passed over, and
their own files are imported as they are; where torch is installed, so is it all.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from types import ModuleType
from typing import Any

_VEC_ENVS = "stable_baselines3.common.vec_env"
# What they import of torch, for annotations and for functions that vec envs do not call.
_OF_TORCH = ("torch", "torch.nn", "torch.nn.functional")


class _NoTorch(ModuleType):
    """Stands where torch would be named in annotations."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {})


_FOUND = importlib.util.find_spec("stable_baselines3")
if _FOUND is None or _FOUND.submodule_search_locations is None:
    raise ImportError("stable_baselines3 is not installed")

_HAS_TORCH = importlib.util.find_spec("torch") is not None
if not _HAS_TORCH:
    sys.modules.update((name, _NoTorch(name)) for name in _OF_TORCH)
    folder = _FOUND.submodule_search_locations[0]
    for name in ("", ".common", ".common.vec_env"):
        package = ModuleType("stable_baselines3" + name)
        package.__path__ = [folder + name.replace(".", "/")]
        sys.modules[package.__name__] = package
    # What they import for one question, which is not measured.
    utilities = ModuleType("stable_baselines3.common.env_util")
    utilities.is_wrapped = lambda env, wrapper: False
    sys.modules[utilities.__name__] = utilities

DummyVecEnv = importlib.import_module(f"{_VEC_ENVS}.dummy_vec_env").DummyVecEnv
SubprocVecEnv = importlib.import_module(f"{_VEC_ENVS}.subproc_vec_env").SubprocVecEnv
VecMonitor = importlib.import_module(f"{_VEC_ENVS}.vec_monitor").VecMonitor

if not _HAS_TORCH:
    for name in _OF_TORCH:
        del sys.modules[name]
