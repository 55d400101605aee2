"""procgen's own library: under gym3's host, and loaded by corral."""

from __future__ import annotations

import importlib.util
import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import corral
from corral.bench import Bench, Contender, Loop, Program, Skip, Turns

NUM_ENVS = 64
ABI = Path(__file__).resolve().parents[2] / "tests" / "abi"


def fetched() -> Any:
    """The tests' own way to procgen and gym3."""
    spec = importlib.util.spec_from_file_location("abi_peers", ABI / "peers.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def actions() -> list[Any]:
    drawn = np.random.default_rng(0).integers(0, 15, (64, NUM_ENVS)).astype(np.int32)
    return [{"action": action} for action in drawn]


@contextmanager
def ours(threads: int = 0, **settings: Any) -> Iterator[Turns]:
    """With that many threads of procgen's own in each instance."""
    load = getattr(corral, "load_libenv", None)
    if load is None:
        raise Skip("this corral has no load_libenv")
    peers = fetched()
    try:
        library = peers.procgen()
    except peers.Missing as why:
        raise Skip(str(why)) from None
    options = [
        peers.procgen_options(library, num_threads=threads, rand_seed=seed) for seed in (7, 8)
    ]
    envs = load(library, NUM_ENVS, lambda instance: options[instance], **settings)
    envs.reset()
    yield Loop(envs.step, actions(), NUM_ENVS)
    envs.close()


@contextmanager
def gym3(threads: int, reuse_arrays: bool = False) -> Iterator[Turns]:
    """gym3's host, in a Python of its own."""
    peers = fetched()
    try:
        library, python = peers.procgen(), peers.venv_python("gym3")
    except peers.Missing as why:
        raise Skip(str(why)) from None
    job = {
        "library": str(library),
        "num_envs": NUM_ENVS,
        "options": peers.procgen_options(library, num_threads=threads),
        "reuse_arrays": reuse_arrays,
    }
    with tempfile.TemporaryDirectory() as folder:
        told = Path(folder) / "job.json"
        told.write_text(json.dumps(job))
        with Program([python, ABI / "gym3_host.py", "measure", told]) as program:
            yield program


def on_gym3(threads: int, wanted: float, reuse_arrays: bool = False) -> Contender:
    name = f"gym3, {threads or 1} thread{'s' if threads else ''}"
    if reuse_arrays:
        name += ", reuse_arrays"
    return Contender(name, partial(gym3, threads, reuse_arrays), wanted=wanted)


BENCHES = [
    Bench(
        name="procgen-1",
        what="CoinRun, by procgen's library",
        size="64 envs, 1 worker",
        ours=Contender("corral", partial(ours, isolation="process"), apart=True),
        theirs=[on_gym3(0, 0.97), on_gym3(0, 0.97, reuse_arrays=True)],
    ),
    Bench(
        name="procgen-here",
        what="CoinRun, by procgen's library",
        size="64 envs, in this process",
        ours=Contender("corral", partial(ours, isolation="thread"), apart=True),
        theirs=[on_gym3(0, 0.97)],
    ),
    Bench(
        name="procgen-2",
        what="CoinRun, by procgen's library",
        size="64 envs, 2 workers",
        ours=Contender("corral", partial(ours, isolation="process", num_workers=2), apart=True),
        theirs=[on_gym3(0, 1.5), on_gym3(2, 1.5), on_gym3(4, 1.5)],
    ),
]
