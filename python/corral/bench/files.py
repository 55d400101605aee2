"""Finds definitions."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from corral import errors
from corral.bench.definition import Bench


def find_root(given: Path | None) -> Path:
    """The folder with `definitions/`: the one given, or `benches` here or further up.

    Raises:
        ArgumentError: if there is none.
    """
    here = Path.cwd()
    tried = [given] if given else [folder / "benches" for folder in (here, *here.parents)]
    for root in tried:
        if (root / "definitions").is_dir():
            return root
    where = given or "benches here or in a folder above"
    raise errors.ArgumentError(
        f"no definitions in {where}: run it in a checkout of corral, or say --benches FOLDER"
    )


def load(root: Path) -> dict[Path, Sequence[Bench]]:
    """The benches of every file.

    Raises:
        ArgumentError: for a file without `BENCHES`, and for names used twice.
    """
    loaded = {file: benches_of(file) for file in sorted((root / "definitions").glob("*.py"))}
    names = [bench.name for benches in loaded.values() for bench in benches]
    for name in names:
        if names.count(name) > 1:
            raise errors.ArgumentError(f"two benches are called '{name}': rename one")
    return loaded


def benches_of(file: Path) -> Sequence[Bench]:
    """The benches of one file.

    The folder above is put on the path, for this process and those that it starts: env classes
    that workers import live there.
    """
    root = str(file.resolve().parent.parent)
    if root not in sys.path:
        sys.path.insert(0, root)
        others = os.environ.get("PYTHONPATH")
        os.environ["PYTHONPATH"] = os.pathsep.join([root, others] if others else [root])
    spec = importlib.util.spec_from_file_location(f"definitions_{file.stem}", file)
    if spec is None or spec.loader is None:
        raise errors.ArgumentError(f"{file} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    benches: Sequence[Bench] | None = getattr(module, "BENCHES", None)
    if benches is None:
        raise errors.ArgumentError(f"{file} has no list BENCHES: see docs/benchmarks.md")
    return benches
