"""Builds the wheel: maturin, and what a wheel of maturin's has no place for.

Maturin builds one library a wheel. Corral's carries more: the built-in envs for hosts without
Python (`corral/lib/`), and what `corral new` and `corral vendor` write (`corral/_sources/`: the
core's sources, the pages on how an env is written and the templates, in the folders that they have
in the repository). Both are laid into the package, where git ignores them and pyproject.toml's
`include` names them, before maturin packs it.

pip calls this as the build backend (PEP 517). `make build` runs it as a program before `maturin
develop`, and lays down the library alone: in a checkout the sources are the repository's.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from maturin import build_editable as _build_editable
from maturin import (  # noqa: F401
    build_sdist,
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
    get_requires_for_build_wheel,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)
from maturin import build_wheel as _build_wheel

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "python" / "corral"
# What PEP 600 calls what older PEPs gave other names.
_FULL_TAG = {"manylinux2014": "manylinux_2_17", "manylinux2010": "manylinux_2_12"}
SOURCES = (
    "Cargo.toml",
    "Cargo.lock",
    "LICENSE",
    "crates/envcore-derive/Cargo.toml",
    "crates/envcore-derive/src",
    "crates/envcore/Cargo.toml",
    "crates/envcore/src",
    "docs/how-do-i.md",
    "docs/writing-an-env.md",
    "templates",
)


def build_wheel(
    wheel_directory: str,
    config_settings: dict[str, Any] | None = None,
    metadata_directory: str | None = None,
) -> str:
    """A wheel with all of it."""
    # First, for it takes no time, and fails where the source distribution lacks something.
    lay_sources()
    lay_library()
    try:
        return _build_wheel(wheel_directory, config_settings, metadata_directory)
    finally:
        # In a checkout they would grow old.
        shutil.rmtree(PACKAGE / "_sources")


def build_editable(
    wheel_directory: str,
    config_settings: dict[str, Any] | None = None,
    metadata_directory: str | None = None,
) -> str:
    """A wheel that points at this checkout."""
    lay_library()
    return _build_editable(wheel_directory, config_settings, metadata_directory)


def lay_library() -> None:
    """Builds the crate `envlib` to `corral/lib/libcorral_envs.so`, under that name on every system.

    With the core's features as the bindings have them, so that both builds share what they compile;
    and for the system and the C library that maturin is told to build for.
    """
    command = [*_cargo(shlex.split(os.environ.get("MATURIN_PEP517_ARGS", ""))), "--release"]
    command += ["-p", "envlib"]
    # Cargo strikes from the lock file what only crates take that the source distribution lacks.
    if (ROOT / "crates" / "benches").is_dir():
        command += ["--locked"]
    if sys.platform == "linux":
        command += ["--features", "envcore/load,envcore/openenv,envcore/processes"]
    command += ["--message-format", "json-render-diagnostics"]
    ran = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True)
    target = PACKAGE / "lib" / "libcorral_envs.so"
    target.parent.mkdir(exist_ok=True)
    # Not written over: a process that has it loaded keeps the old file.
    target.unlink(missing_ok=True)
    shutil.copyfile(_artefact(ran.stdout), target)


def _cargo(arguments: list[str]) -> list[str]:
    """The command that builds as maturin builds with these arguments."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--zig", action="store_true")
    parser.add_argument("--target")
    parser.add_argument("--compatibility", default="")
    told, _ = parser.parse_known_args(arguments)
    if not told.zig:
        return ["cargo", "build", *(["--target", told.target] if told.target else [])]
    target = told.target
    if target is None:
        shown = subprocess.run(["rustc", "-vV"], stdout=subprocess.PIPE, text=True, check=True)
        target = re.findall(r"(?m)^host: (.*)$", shown.stdout)[0]
    return ["cargo-zigbuild", "zigbuild", "--target", target + _glibc(told.compatibility)]


def _glibc(compatibility: str) -> str:
    """The version of the C library that a platform tag is for, as zig's targets end."""
    found = re.fullmatch(r"manylinux_(\d+)_(\d+)", _FULL_TAG.get(compatibility, compatibility))
    if found is None:
        raise RuntimeError(
            f"--zig takes a --compatibility such as manylinux2014, not {compatibility!r}"
        )
    return f".{found[1]}.{found[2]}"


def _artefact(messages: bytes) -> str:
    for message in map(json.loads, messages.splitlines()):
        if (
            message["reason"] == "compiler-artifact"
            and "cdylib" in message["target"]["crate_types"]
        ):
            for file in message["filenames"]:
                if Path(file).suffix in (".so", ".dylib", ".dll"):
                    return str(file)
    raise RuntimeError("cargo built no shared library of the crate envlib: is it a cdylib?")


def lay_sources() -> None:
    """Copies to `corral/_sources` what `corral new` and `corral vendor` read."""
    target = PACKAGE / "_sources"
    shutil.rmtree(target, ignore_errors=True)
    for name in SOURCES:
        source, copy = ROOT / name, target / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, copy)
        else:
            shutil.copyfile(source, copy)


if __name__ == "__main__":
    lay_library()
