"""Fetches what real libraries and hosts the tests and benches take: procgen's wheel, gym3, DeepMind
Lab2D, minigrid, minatar, EnvPool, PufferLib, Ray, rliable, openenv-core, LeRobot's source; and
trainers.

Everything comes from the package registry that pip knows, once, into `.peers/`.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import platform
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).resolve().parents[2]
PEERS = _ROOT / ".peers"
TORCH = _ROOT / ".venv-torch" / "bin" / "python"
PROCGEN = "procgen==0.10.7"
LEROBOT = "lerobot==0.6.1"
# What procgen's wheel was built for; the library in it is tied to no Python.
_PLATFORMS = ("manylinux2014_x86_64", "manylinux_2_17_x86_64")


class Missing(Exception):
    """A peer that cannot be had here, and why."""


def _run(what: str, *command: object) -> None:
    try:
        done = subprocess.run(
            [str(part) for part in command], capture_output=True, text=True, timeout=3000
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Missing(f"{what} cannot be fetched: {error}") from error
    if done.returncode != 0:
        said = (done.stderr.strip() or "no reason given").splitlines()[-1]
        raise Missing(f"{what} cannot be fetched: {said}")


@contextlib.contextmanager
def _alone() -> Iterator[None]:
    """Lets one process at a time fetch; several run the tests."""
    PEERS.mkdir(exist_ok=True)
    with open(PEERS / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@functools.cache
def procgen() -> Path:
    """procgen's `libenv.so`.

    Raises:
        Missing: without a registry, or on another kind of machine.
    """
    with _alone():
        return _procgen()


def _procgen() -> Path:
    library = PEERS / "procgen" / "procgen" / "data" / "prebuilt" / "libenv.so"
    if library.exists():
        return library
    if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        raise Missing(f"{PROCGEN} has no library for {platform.system()} {platform.machine()}")
    wheels = PEERS / "wheels"
    choice = ["--no-deps", "--python-version", "3.10", "--only-binary=:all:"]
    platforms = [f"--platform={name}" for name in _PLATFORMS]
    _run(PROCGEN, *_pip(), "download", "--quiet", PROCGEN, *choice, *platforms, "--dest", wheels)
    with zipfile.ZipFile(next(wheels.glob("procgen-*.whl"))) as wheel:
        wheel.extractall(PEERS / "procgen")
    return library


@functools.cache
def lerobot() -> Path:
    """The folder that has LeRobot's source. LeRobot wants Python 3.12 and gigabytes; its source can
    be read by any.

    Raises:
        Missing: without a registry.
    """
    with _alone():
        folder = PEERS / LEROBOT.replace("==", "-")
        if not folder.exists():
            wheels = PEERS / "wheels"
            choice = ["--no-deps", "--python-version", "3.12", "--only-binary=:all:"]
            _run(LEROBOT, *_pip(), "download", "--quiet", LEROBOT, *choice, "--dest", wheels)
            with zipfile.ZipFile(next(wheels.glob("lerobot-*.whl"))) as wheel:
                wheel.extractall(folder)
        return folder


def procgen_options(library: Path, **more: Any) -> dict[str, Any]:
    """What procgen must be told; `more` comes on top."""
    return {
        "env_name": "coinrun",
        "num_actions": 15,
        "num_levels": 0,
        "start_level": 0,
        "rand_seed": 7,
        "num_threads": 0,
        "distribution_mode": 1,
        "use_backgrounds": True,
        "center_agent": True,
        "resource_root": f"{library.parents[1] / 'assets'}/",
        **more,
    }


_GYMNASIUM = "gymnasium>=1.2,<1.5"
_FOR_CORRAL = (_GYMNASIUM, "cloudpickle>=3", "typing_extensions>=4.3")
_FOR_PYTEST = ("pytest>=8", "pytest-timeout>=2.3")

# What each peer's venv has, where it takes corral by PYTHONPATH.
_VENVS = {
    # gym3 wants a NumPy of its age.
    "gym3": ("numpy==1.26.*", "cffi", "imageio", "imageio-ffmpeg", *_FOR_CORRAL, *_FOR_PYTEST),
    "dmlab2d": ("dmlab2d==1.0.2", "numpy>=2", *_FOR_CORRAL, *_FOR_PYTEST),
    "minigrid": ("minigrid==3.2.*", "numpy>=2", *_FOR_CORRAL),
    "minatar": ("minatar==1.0.*", "numpy>=2", *_FOR_CORRAL),
    # What EnvPool imports; it is itself in `_ALONE`.
    "envpool": ("dm-env>=1.6", "optree", "packaging", "numpy>=2", *_FOR_CORRAL),
    # The interface of Gym before 0.26, which EnvPool had before 1.0.
    "envpool-0.8": ("envpool==0.8.4", "gym==0.23.1", "numpy<2", "setuptools<80", *_FOR_CORRAL),
    # PufferLib itself comes by its installer; see `_INSTALLERS`.
    "pufferlib": ("numpy>=2", *_FOR_CORRAL, *_FOR_PYTEST),
    # The Gymnasium whose infos `info_layout="gymnasium-0.29"` gives. corral itself is not for it.
    "gymnasium029": ("gymnasium==0.29.1", "numpy<2"),
    # The dependency arch of rliable is not of an age with pandas 3.
    "rliable": ("rliable==1.2.0", "pandas<3"),
    "ray": ("ray>=2.40", "numpy>=2", *_FOR_CORRAL, *_FOR_PYTEST),
    # Of what openenv-core depends on, only what its client, server and validation import.
    "openenv": (
        *("fastapi>=0.116", "fastmcp>=3,<5", "pydantic>=2", "requests>=2.25", "uvicorn>=0.24"),
        *("websockets>=15.0.1", "numpy>=2", *_FOR_CORRAL, *_FOR_PYTEST),
    ),
}
# Programs that the venv's Python runs at last, to install what pip cannot.
_INSTALLERS = {"pufferlib": _ROOT / "benches" / "install_pufferlib.py"}
# What each trainer's venv has on top of the venv of PyTorch.
_TRAINERS: dict[str, tuple[str, ...]] = {
    "rl_games": ("rl_games==1.6.*", *_FOR_CORRAL),
    "tianshou": ("tianshou==2.0.*", *_FOR_CORRAL),
    # What LeRobot's evaluation imports; see `lerobot`.
    "lerobot": ("einops>=0.8", "termcolor>=2.4", "tqdm>=4.66", "huggingface-hub>=1.6", _GYMNASIUM),
    "trl": ("trl==1.16.*", _GYMNASIUM),
    # Pixels take torchvision; the release that goes with the PyTorch of .venv-torch.
    "torchrl": ("torchrl>=0.14",),
    "rllib": ("ray[rllib]>=2.60",),
    "skrl": ("skrl>=2.1",),
}
# What comes without its dependencies: gym3 pins old versions of what it needs for windows alone.
# EnvPool takes 600 MB of models and pictures for envs that the tests do not play.
_ALONE = {"gym3": ("gym3==0.3.3",), "envpool": ("envpool>=1.2.5",)}


@functools.cache
def venv_python(peer: str) -> Path:
    """The Python of the venv of `peer`, made where it is not there yet. The peer is one of
    `_VENVS`.

    Raises:
        Missing: without a registry, or where the peer has no wheel for this Python and machine.
    """
    with _alone():
        return _venv_python(peer)


@functools.cache
def trainer_python(trainer: str) -> Path:
    """The Python of the venv of a trainer of `_TRAINERS`, made where it is not there yet. What it
    does not have itself is imported from the venv of PyTorch.

    Raises:
        Missing: without a registry, or without the venv that `make torch` makes.
    """
    torch()
    with _alone():
        return _venv_python(trainer)


def _venv_python(peer: str) -> Path:
    is_trainer = peer in _TRAINERS
    packages, alone = (_TRAINERS if is_trainer else _VENVS)[peer], _ALONE.get(peer, ())
    venv = PEERS / peer
    python, stamp = venv / "bin" / "python", venv / "installed.txt"
    wanted = "\n".join((*packages, *alone))
    if stamp.exists() and stamp.read_text() == wanted:
        return python
    _run(peer, sys.executable, "-m", "venv", "--clear", venv)
    if is_trainer:
        version = f"python{sys.version_info.major}.{sys.version_info.minor}"
        below = TORCH.parents[1] / "lib" / version / "site-packages"
        own = venv / "lib" / version / "site-packages"
        (own / "pytorch.pth").write_text(f"{below}\n")
    pip = (python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    _run(peer, *pip, "--only-binary=dmlab2d", *packages)
    if alone:
        _run(peer, *pip, "--no-deps", *alone)
    if peer in _INSTALLERS:
        _run(peer, python, _INSTALLERS[peer])
    stamp.write_text(wanted)
    return python


def torch() -> Path:
    """The Python of the venv that `make torch` makes, with PyTorch and Stable-Baselines3. It is not
    made here.

    Raises:
        Missing: where there is no such venv.
    """
    if not TORCH.exists():
        raise Missing(
            "PyTorch is not installed here, for it takes gigabytes: `make torch` installs it into "
            ".venv-torch"
        )
    return TORCH


OPENENV = ("0.3.0", "0.2.3")


@functools.cache
def openenv(version: str) -> tuple[Path, Path]:
    """The Python of the venv "openenv", and the folder that has this version of openenv-core. The
    folder is taken by PYTHONPATH.

    Raises:
        Missing: without a registry.
    """
    with _alone():
        python = _venv_python("openenv")
        folder = PEERS / f"openenv-core-{version}"
        if not (folder / "openenv").exists():
            package = f"openenv-core=={version}"
            _run(package, *_pip(), "install", "--quiet", "--no-deps", "--target", folder, package)
        return python, folder


def _pip() -> list[str]:
    return [sys.executable, "-m", "pip"]
