"""Envs whose messages are large, or are no messages."""

from __future__ import annotations

import os
import signal
import stat
import struct
import sys
import time
from typing import Any

import gymnasium
import numpy as np

from tests.faults.sick import children

MEGABYTE = 1_000_000


class Correspondent(gymnasium.Env[Any, Any]):
    """Takes texts, and does what they say."""

    observation_space = gymnasium.spaces.Box(-1, 1e9, (1,), np.float64)
    action_space = gymnasium.spaces.Text(50 * MEGABYTE, charset="abcdefghijklmnopqrstuvwxyz ")

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        size = 0.0 if not options else float(len(options["text"]))
        return np.array([size]), {}

    def step(self, action: str) -> Any:
        infos: dict[str, Any] = {}
        match action.split():
            case ["sleep"]:
                time.sleep(3600)
            case ["tell"]:
                infos["frame"] = np.ones(10 * MEGABYTE, np.uint8)
            case ["complain"]:
                # More than two pipes and a terminal hold.
                sys.stderr.write("x" * MEGABYTE)
            case ["garble", "message"]:
                infos["some"] = 1.0
                _say(b"\xff" * 5)
            case ["garble", "row"]:
                # News (3) that refuse nothing, have no columns, and one info, of row 1000.
                infos["some"] = 1.0
                _say(b"\x03\x00\x00\x01\xe8\x07\x01a\x00\x00\x00\x00")
            case ["interrupt"]:
                infos["touchy"] = Touchy()
        return np.array([float(len(action))]), 0.0, False, False, infos

    def size_of(self, value: Any) -> int:
        return len(value)

    def pid(self) -> int:
        return os.getpid()


def _say(body: bytes) -> None:
    """Sends what is no message of a worker to its parent."""
    for name in os.listdir("/proc/self/fd"):
        try:
            mode = os.fstat(int(name)).st_mode
        except OSError:
            continue
        if stat.S_ISSOCK(mode):
            os.write(int(name), struct.pack("=Q", len(body)) + body)
            return


class Touchy:
    """Ctrl-C comes once, while this is unpickled."""

    def __init__(self) -> None:
        self.home = os.getpid()

    def __setstate__(self, state: Any) -> None:
        self.__dict__.update(state)
        if os.getpid() != self.home and not seen:
            seen.append(True)
            raise KeyboardInterrupt


seen: list[bool] = []


class Large:
    """A factory that is large."""

    def __init__(self) -> None:
        self.filler = os.urandom(5 * MEGABYTE)

    def __call__(self) -> Correspondent:
        return Correspondent()


class Stopper:
    """While this is pickled, all processes that this one has started are stopped."""

    def __call__(self) -> Correspondent:
        return Correspondent()

    def __reduce__(self) -> Any:
        for child in children():
            os.kill(child, signal.SIGSTOP)
        return Stopper, ()
