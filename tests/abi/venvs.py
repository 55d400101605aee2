"""Runs what a peer's venv has, or skips the test where the peer cannot be had."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import pytest

from tests.abi import peers

ROOT = Path(__file__).resolve().parents[2]
P = ParamSpec("P")
R = TypeVar("R")


def fetched(fetch: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """What `fetch` of `peers` gives."""
    try:
        return fetch(*args, **kwargs)
    except peers.Missing as why:
        pytest.skip(str(why))


def run(
    python: Path, *args: object, path: tuple[Path, ...] = ()
) -> subprocess.CompletedProcess[str]:
    """Runs a program that finds corral, the tests and `path`."""
    found = os.pathsep.join(map(str, (*path, ROOT / "python", ROOT)))
    return subprocess.run(
        [str(part) for part in (python, *args)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": found, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
    )


def run_suite(
    python: Path, suite: Path, *args: object, path: tuple[Path, ...] = ()
) -> subprocess.CompletedProcess[str]:
    """Runs a file of tests by the venv's own pytest; `args` are more files, or its options."""
    options = ("-q", "-p", "no:cacheprovider", "--noconftest")
    return run(python, "-m", "pytest", *options, suite, *args, path=path)


def ask(peer: str, module: str, request: dict[str, Any]) -> Any:
    """What a module of the tests answers that is run by the peer's Python."""
    done = run(fetched(peers.venv_python, peer), "-m", module, json.dumps(request))
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])
