"""Compiles the library that the wheel carries, by `$CC` or else `cc`."""

import os
import subprocess
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class Library(BuildHookInterface):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        target = Path(self.root) / "python" / "my_env" / "_native" / "libmy_env.so"
        target.parent.mkdir(exist_ok=True)
        flags = ["-std=c11", "-O2", "-Wall", "-Wextra", "-shared", "-fPIC", "-Ivendor"]
        command = [os.environ.get("CC", "cc"), *flags, "-o", str(target), "src/walk.c"]
        subprocess.run(command, cwd=self.root, check=True)
        # There is no Python in the library, so one wheel is for every Python.
        platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["tag"] = f"py3-none-{platform}"
        build_data["pure_python"] = False
        build_data["artifacts"].append(str(target.relative_to(self.root)))
