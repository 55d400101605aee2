"""Installs PufferLib 3.0.0 into the Python that runs this: `make bench-peers`.

Its own setup.py wants torch, and downloads libraries for a web browser, which are not to be had
from a package registry. So its source package is unpacked, its Python half copied as it is, and
the one extension that is measured, CartPole, compiled with setup.py's optimisation flags against
the raylib that the source package brings. pip gets it with a stand-in for torch's build tools, for
pip asks setup.py even for a download.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
from pathlib import Path

PACKAGE = "pufferlib==3.0.0"
# Its imports at run time. gym comes without its dependencies, for their pins are of another age.
NEEDED = ["psutil", "setuptools<81", "wheel", "gymnasium", "numpy"]
STAND_IN = """
from setuptools import Extension as CppExtension, Extension as CUDAExtension
from setuptools.command.build_ext import build_ext as BuildExtension
CUDA_HOME = None
# What is there is not downloaded.
import os
for name in ("raylib-5.5_webassembly", "box2d-web", "box2d-linux-amd64"):
    os.makedirs(name, exist_ok=True)
"""
FLAGS = ["-O2", "-flto", "-fwrapv", "-fPIC", "-shared", "-DPLATFORM_DESKTOP"]
QUIET = ["-Wno-implicit-function-declaration", "-Wno-alloc-size-larger-than"]


def main() -> None:
    """Says what failed in one line."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            install(Path(folder))
        except (subprocess.CalledProcessError, OSError) as error:
            said = getattr(error, "stderr", None) or str(error)
            sys.exit(f"{PACKAGE} cannot be built here: {said.strip().splitlines()[-1]}")
    print(f"{PACKAGE} is installed: its vector envs, and its CartPole in C")


def install(folder: Path) -> None:
    """Downloads, compiles and copies."""
    run("-m", "pip", "install", "--quiet", *NEEDED)
    run("-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "gym==0.23.1")
    stand_in = folder / "stand_in" / "torch" / "utils"
    stand_in.mkdir(parents=True)
    (stand_in / "cpp_extension.py").write_text(STAND_IN)
    download = ["download", "--quiet", "--no-deps", "--no-binary", ":all:", "--no-build-isolation"]
    settings = {"PYTHONPATH": str(folder / "stand_in"), "NO_TRAIN": "1"}
    run("-m", "pip", *download, "--dest", str(folder), PACKAGE, **settings)
    with tarfile.open(next(folder.glob("*.tar.gz"))) as archive:
        archive.extractall(folder, filter="data")
    source = next(folder.glob("pufferlib-*"))
    compile_cart_pole(source)
    target = Path(sysconfig.get_path("purelib")) / "pufferlib"
    shutil.rmtree(target, ignore_errors=True)
    leave_out = shutil.ignore_patterns("resources", "*.onnx", "*.bin", "*.wasm")
    shutil.copytree(source / "pufferlib", target, ignore=leave_out)


def compile_cart_pole(source: Path) -> None:
    """Its binding, beside its source."""
    import numpy

    raylib = source / "raylib-5.5_linux_amd64"
    room = source / "pufferlib" / "ocean" / "cartpole"
    includes = [numpy.get_include(), sysconfig.get_path("include"), str(raylib / "include")]
    command = [
        *("gcc", *FLAGS, *QUIET, "-DNPY_NO_DEPRECATED_API=NPY_1_7_API_VERSION"),
        *(f"-I{include}" for include in includes),
        *(str(room / "binding.c"), "-o", str(room / "binding.so")),
        *(str(raylib / "lib" / "libraylib.a"), "-lm", "-lpthread", "-ldl"),
    ]
    subprocess.run(command, check=True, capture_output=True, text=True)


def run(*arguments: str, **settings: str) -> None:
    """This Python with these arguments."""
    environment = {**os.environ, **settings}
    command = [sys.executable, *arguments]
    subprocess.run(command, check=True, capture_output=True, text=True, env=environment)


if __name__ == "__main__":
    main()
