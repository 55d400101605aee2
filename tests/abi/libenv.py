"""Compiles `c/faulty_libenv.c`, in as many ways as tests ask for, once each."""

from __future__ import annotations

import functools
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import corral

HERE = Path(__file__).parent
INCLUDE = Path(corral.__file__).parent / "include"


@functools.cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="corral-libenv-")


@functools.cache
def compiled(*defines: str) -> Path:
    """The library with these defined, such as `FAULT=NULL_MAKE`."""
    if shutil.which("cc") is None:
        pytest.skip("there is no C compiler: install gcc or clang")
    if not (INCLUDE / "libenv.h").exists():
        pytest.skip("corral has no include/libenv.h")
    name = "_".join(["libenv", *defines]).replace("=", "_") + ".so"
    built = Path(_folder().name) / name
    flags = [
        "-std=gnu11",
        "-Wall",
        "-Werror",
        "-Wno-unused-function",
        "-shared",
        "-fPIC",
        f"-I{INCLUDE}",
    ]
    source = HERE / "c" / "faulty_libenv.c"
    command = ["cc", *flags, *(f"-D{define}" for define in defines), "-o", built, source]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return built


def load(*defines: str, num_envs: int = 2, **settings: Any) -> corral.VectorEnv:
    return corral.load_libenv(compiled(*defines), num_envs, **settings)


def actions(num_envs: int, move: Any = 1, push: Any = 0.0) -> dict[str, Any]:
    """The same for all envs, or one each."""
    return {
        "move": np.array(np.broadcast_to(move, num_envs), np.int32),
        "push": np.array(np.broadcast_to(push, (num_envs, 2)), np.float32),
    }
