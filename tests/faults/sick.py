"""Envs that misbehave where they are told to, for workers to host."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np

import corral

CONTEXTS = ("spawn", "forkserver", "fork")


class OwnError(Exception):
    """With what pickle stumbles over: another signature than its args."""

    def __init__(self, *, code: int, hint: str) -> None:
        super().__init__(f"code {code}")
        self.code = code
        self.hint = hint


class Unreadable(Exception):
    """One that refuses to be pickled."""

    def __reduce__(self) -> Any:
        raise TypeError("not me")


def _raise(error: BaseException) -> None:
    raise error


def _raise_local() -> None:
    class Local(Exception):
        pass

    raise Local("made here")


def _with_lock() -> None:
    error = OwnError(code=3, hint="held")
    error.lock = threading.Lock()  # type: ignore[attr-defined]
    raise error


def _kill_soon() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _print_much() -> None:
    for stream in (sys.stdout, sys.stderr):
        for k in range(20_000):
            print(f"{k} " + "x" * 100, file=stream)


def _fork_a_child() -> None:
    if os.fork() == 0:
        time.sleep(30)
        os._exit(0)


def _lasting_thread() -> None:
    threading.Thread(target=time.sleep, args=(3600,)).start()


def _close_standard_files() -> None:
    sys.stdout = open(os.devnull, "w")  # noqa: SIM115
    for fd in (0, 1, 2):
        with contextlib.suppress(OSError):
            os.close(fd)


def _out_of_memory() -> None:
    with open("/proc/self/statm") as file:
        room = int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE") + (64 << 20)
    resource.setrlimit(resource.RLIMIT_AS, (room, room))
    np.ones(1 << 30)


WHAT: dict[str, Callable[[], Any]] = {
    "kill -9": _kill_soon,
    "segv": lambda: ctypes.string_at(0),
    "_exit": lambda: os._exit(3),
    "sys.exit": lambda: sys.exit(5),
    "sleep": lambda: time.sleep(3600),
    "sleep a second": lambda: time.sleep(1),
    "sleep in C": lambda: ctypes.PyDLL(None).sleep(3600),
    "own error": lambda: _raise(OwnError(code=7, hint="look")),
    "value error": lambda: _raise(ValueError("bad luck")),
    "unreadable": lambda: _raise(Unreadable("closed book")),
    "local": _raise_local,
    "with a lock": _with_lock,
    "print much": _print_much,
    "fork": _fork_a_child,
    "thread": _lasting_thread,
    "close 0 1 2": _close_standard_files,
    "chdir": lambda: os.chdir("/"),
    "memory": _out_of_memory,
    "popen": lambda: subprocess.Popen(["sleep", "30"]),
}


class Sick(gymnasium.Env[Any, Any]):
    """Does `what` in its call number `at` of `where`; its rows tell seed and steps."""

    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (2,), np.float32)
    action_space = gymnasium.spaces.Discrete(4)
    metadata = {"render_modes": ["rgb_array"]}  # noqa: RUF012
    render_mode = "rgb_array"

    def __init__(self, where: str = "", what: str = "", at: int = 0) -> None:
        self.where, self.what, self.left = where, what, at
        self._turn("init")

    def _turn(self, where: str) -> None:
        if where == self.where:
            self.left -= 1
            if self.left < 0:
                WHAT[self.what]()

    def _show(self) -> Any:
        return np.array([self.mark, self.steps], np.float32)

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self._turn("reset")
        self.mark, self.steps = self.np_random.random(), 0
        return self._show(), {}

    def step(self, action: Any) -> Any:
        self._turn("step")
        self.steps += 1
        return self._show(), float(action), self.steps >= 7, False, {}

    def render(self) -> Any:
        self._turn("render")
        return np.zeros((2, 2, 3), np.uint8)

    def close(self) -> None:
        self._turn("close")

    def act(self) -> int:
        self._turn("call")
        return os.getpid()

    def nap(self, seconds: float) -> None:
        time.sleep(seconds)


Ailment = tuple[str, str] | tuple[str, str, int]


def sick(n: int, ailments: dict[int, Ailment], **how: Any) -> corral.VectorEnv:
    """`n` envs, of which these have something, in two workers unless told otherwise."""
    how = {"num_workers": 2, "seed": 7, "context": "forkserver", **how}
    return corral.from_gymnasium(
        [functools.partial(Sick, *ailments.get(slot, ())) for slot in range(n)], **how
    )


def zeros(n: int) -> Any:
    return np.zeros(n, np.int64)


def pids(envs: corral.VectorEnv) -> list[int]:
    """Each env's process."""
    return list(envs.call("act"))


def children() -> set[int]:
    """Processes that this one started, dead ones that nobody has waited for included."""
    found: set[int] = set()
    for task in os.listdir("/proc/self/task"):
        # A thread may end meanwhile.
        with (
            contextlib.suppress(FileNotFoundError, ProcessLookupError),
            open(f"/proc/self/task/{task}/children") as file,
        ):
            found.update(map(int, file.read().split()))
    return found


def children_that_run(program: str) -> set[int]:
    """Those whose command line holds `program`."""
    return {pid for pid in children() if program in _command_of(pid)}


def _command_of(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/cmdline") as file:
            return file.read()
    except OSError:
        return ""


def is_gone(pid: int) -> bool:
    """Whether no process has this number, a dead one that nobody has waited for included."""
    return not os.path.exists(f"/proc/{pid}")


def are_gone_within(numbers: list[int], seconds: float) -> bool:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if all(_is_over(pid) for pid in numbers):
            return True
        time.sleep(0.02)
    return False


def _is_over(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True
