"""OpenEnv: what many sessions of a trivial env cost."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import openenv_peer
from corral.bench import Bench, Contender, Loop, Skip, Turns

SESSIONS = 256
PEERS = Path(__file__).parents[2] / "tests" / "abi" / "peers.py"


def fetched() -> Any:
    """`tests/abi/peers.py`, which fetches openenv-core."""
    spec = importlib.util.spec_from_file_location("abi_peers", PEERS)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@contextmanager
def played(*command: str, path: str | None = None) -> Iterator[Turns]:
    """Sessions of a server in another process, whose first line ends with its port."""
    env = os.environ if path is None else {**os.environ, "PYTHONPATH": path}
    # Each connection is a line of the log.
    log = subprocess.DEVNULL
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=log, text=True, env=env
    ) as process:
        assert process.stdout is not None
        try:
            port = process.stdout.readline().split()[-1].rpartition(":")[2]
            sessions = openenv_peer.Sessions(f"127.0.0.1:{port}", SESSIONS)
            actions = list(np.random.default_rng(0).integers(0, 2, (64, SESSIONS)))
            yield Loop(sessions.step, actions, SESSIONS)
            sessions.close()
        finally:
            process.kill()


@contextmanager
def ours() -> Iterator[Turns]:
    command = ("-m", "corral", "serve", "CartPole-v1", "--openenv", "--addr", "127.0.0.1:0")
    with played(sys.executable, *command, "--max-sessions", str(SESSIONS)) as turns:
        yield turns


@contextmanager
def theirs() -> Iterator[Turns]:
    peers = fetched()
    try:
        python, package = peers.openenv(peers.OPENENV[0])
    except peers.Missing as why:
        raise Skip(str(why)) from None
    command = (str(python), str(Path(openenv_peer.__file__)), str(SESSIONS))
    with played(*command, path=str(package)) as turns:
        yield turns


BENCHES = [
    Bench(
        name="openenv-256",
        what="CartPole in sessions of OpenEnv over WebSocket on loopback",
        size=f"{SESSIONS} sessions, 2 processes",
        ours=Contender("corral, openenv", ours),
        theirs=[Contender("openenv-core's own server", theirs, wanted=5)],
    )
]
