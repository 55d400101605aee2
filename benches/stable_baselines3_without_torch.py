"""Stable-Baselines3's SubprocVecEnv, without the gigabytes of torch that its package imports.

The class itself is NumPy and pipes. Its packages' `__init__` files are passed over, and its own
file is imported as it is; where torch is installed, so is it all.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from types import ModuleType

_FOUND = importlib.util.find_spec("stable_baselines3")
if _FOUND is None or _FOUND.submodule_search_locations is None:
    raise ImportError("stable_baselines3 is not installed")

if importlib.util.find_spec("torch") is None:
    folder = _FOUND.submodule_search_locations[0]
    for name in ("", ".common", ".common.vec_env"):
        package = ModuleType("stable_baselines3" + name)
        package.__path__ = [folder + name.replace(".", "/")]
        sys.modules[package.__name__] = package
    # What its workers import for one command, which is not measured.
    utilities = ModuleType("stable_baselines3.common.env_util")
    utilities.is_wrapped = lambda env, wrapper: False
    sys.modules[utilities.__name__] = utilities

SubprocVecEnv = importlib.import_module(
    "stable_baselines3.common.vec_env.subproc_vec_env"
).SubprocVecEnv
