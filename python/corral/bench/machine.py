"""What the figures were measured on and with; no host names, no paths."""

from __future__ import annotations

import os
import platform
import re
from importlib import metadata
from pathlib import Path


def describe() -> dict[str, str]:
    """Cores that this process may use, the CPU's model, the system and the versions."""
    usable = getattr(os, "sched_getaffinity", None)
    return {
        "cores": str(len(usable(0)) if usable else os.cpu_count()),
        "cpu": _cpu(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "numpy": version("numpy"),
        "corral": version("corral"),
    }


def version(package: str | None) -> str:
    """A package's version; "" if it is not installed."""
    if package is None:
        return ""
    if package == "corral":
        from corral import __version__

        return __version__
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


def _cpu() -> str:
    try:
        found = re.search(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    except OSError:
        found = None
    return found[1].strip() if found else platform.processor() or platform.machine()
