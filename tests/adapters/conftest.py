"""Stable-Baselines3 for the tests, without torch, which its packages import and its vec envs do
not use: its own files, as they are, but for the packages' `__init__`."""

from __future__ import annotations

import importlib
import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

_PEERS = Path(__file__).parents[2] / ".cache" / "peers" / "stable-baselines3"


class _Torch(ModuleType):
    """Stands where torch would be named in annotations."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {})


def _install() -> None:
    if not (_PEERS / "stable_baselines3").is_dir():
        command = ["install", "--quiet", "--no-deps", "--target", str(_PEERS)]
        done = subprocess.run(
            [sys.executable, "-m", "pip", *command, "stable-baselines3==2.*"],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            reason = done.stderr.strip().splitlines()[-1:]
            pytest.skip(f"stable-baselines3 cannot be installed here: {reason}")
    sys.path.append(str(_PEERS))


def _bare(name: str, folder: Path) -> None:
    package = ModuleType(name)
    package.__path__ = [str(folder)]
    sys.modules[name] = package


@pytest.fixture(scope="session")
def sb3() -> Any:
    """`stable_baselines3.common.vec_env`, and its `Monitor`."""
    if importlib.util.find_spec("stable_baselines3") is None:
        _install()
    if importlib.util.find_spec("torch") is None:
        for name in ("torch", "torch.nn", "torch.nn.functional"):
            sys.modules[name] = _Torch(name)
        spec = importlib.util.find_spec("stable_baselines3")
        assert spec is not None
        assert spec.submodule_search_locations
        folder = Path(spec.submodule_search_locations[0])
        for name, inner in (("", ""), (".common", "common"), (".common.vec_env", "common/vec_env")):
            _bare(f"stable_baselines3{name}", folder / inner)
    monitor = importlib.import_module("stable_baselines3.common.monitor")
    parts = {"Monitor": monitor.Monitor}
    for module, name in (
        ("base_vec_env", "VecEnv"),
        ("dummy_vec_env", "DummyVecEnv"),
        ("vec_monitor", "VecMonitor"),
        ("vec_frame_stack", "VecFrameStack"),
        ("vec_check_nan", "VecCheckNan"),
        ("vec_video_recorder", "VecVideoRecorder"),
    ):
        found = importlib.import_module(f"stable_baselines3.common.vec_env.{module}")
        parts[name] = getattr(found, name)
    return type("sb3", (), parts)
