"""Contenders in another process.

They are let run by a line with seconds on their standard input, and answer with a line of steps
and seconds. Between their turns their whole process group is stopped, so that what spins there
takes no core from others.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from corral.bench import cpus
from corral.bench.definition import Skip

# A group of its own in this session: if this process is killed, the system ends what is stopped.
_OWN_GROUP: dict[str, Any] = (
    {"process_group": 0} if sys.version_info >= (3, 11) else {"preexec_fn": os.setpgrp}
)
# Seconds for getting ready, or beyond a turn: some peers hang when their workers fail.
_PATIENCE = 60.0


class Program:
    """A program that is let run turn by turn; ends with the `with`.

    Raises:
        Skip: with the last line of what it said, if it does not get ready.
    """

    def __init__(self, command: Sequence[str | os.PathLike[str]]) -> None:
        # Closed with the process.
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            **_OWN_GROUP,
        )
        try:
            ready = self._answer(_PATIENCE)
            if ready != "ready":
                raise Skip(ready.removeprefix("skip ") or self._said())
            self._signal(signal.SIGSTOP)
        except BaseException:
            self.__exit__()
            raise

    def __enter__(self) -> Program:
        return self

    def __exit__(self, *_: object) -> None:
        # All of them, for what it started may outlive it.
        self._signal(signal.SIGKILL)
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout, self._errors):
            assert pipe is not None
            with contextlib.suppress(BrokenPipeError):
                pipe.close()

    def play(self, seconds: float) -> float:
        """Lets it run for about that long, on the CPUs that the caller may use; how many steps a
        second it made."""
        cpus.follow(self._process.pid)
        self._signal(signal.SIGCONT)
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(f"{seconds}\n")
            self._process.stdin.flush()
        answer = self._answer(seconds + _PATIENCE).split()
        if len(answer) != 2:
            raise Skip(f"it ended during its turn: {self._said()}")
        self._signal(signal.SIGSTOP)
        return float(answer[0]) / float(answer[1])

    def _answer(self, patience: float) -> str:
        """A line of its output; "" at the end of it."""
        assert self._process.stdout is not None
        readable, _, _ = select.select([self._process.stdout], [], [], patience)
        if not readable:
            raise Skip(f"no answer within {patience:g} s: {self._said()}")
        return str(self._process.stdout.readline()).strip()

    def _said(self) -> str:
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else "it said nothing"

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)

    @classmethod
    def rust_example(cls, package: str, name: str, *arguments: str) -> Program:
        """An optimised example of a crate, built if need be."""
        if shutil.which("cargo") is None:
            raise Skip("cargo is not installed: rustup or the system's packages have it")
        build = [
            *("cargo", "build", "--release", "--locked", "--quiet", "--message-format=json"),
            *("--package", package, "--example", name),
        ]
        built = subprocess.run(build, capture_output=True, text=True)
        if built.returncode != 0:
            raise Skip(f"`{' '.join(build)}` failed: run it to see why")
        return cls([_executable(built.stdout.splitlines(), name), *arguments])


def _executable(messages: Sequence[str], name: str) -> str:
    for message in map(json.loads, messages):
        if message.get("executable") and message["target"]["name"] == name:
            return str(message["executable"])
    raise Skip(f"cargo built no example '{name}'")


@contextlib.contextmanager
def apart(file: Path, bench: str, contender: str) -> Iterator[Program]:
    """A contender of a definition, in a Python of its own."""
    command: list[Any] = [sys.executable, "-m", "corral.bench.child", file, bench, contender]
    with Program(command) as program:
        yield program
