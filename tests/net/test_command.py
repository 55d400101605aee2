"""Does `corral serve` show what it should, and stay as small as it began?"""

from __future__ import annotations

import contextlib
import os
import pty
import re
import select
import socket
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import psutil

import corral
from tests.net.test_faults import init
from tests.net.waiting import until

COMMAND = [sys.executable, "-m", "corral", "serve", "CartPole-v1", "--addr", "127.0.0.1:0"]


@contextlib.contextmanager
def serving(*more: str, **how: Any) -> Iterator[tuple[subprocess.Popen[str], list[str]]]:
    """The command, and the lines with which it begins, the last of which tells its address."""
    how = {"stderr": subprocess.DEVNULL, **how}
    with subprocess.Popen([*COMMAND, *more], stdout=subprocess.PIPE, text=True, **how) as process:
        assert process.stdout is not None
        try:
            lines = [process.stdout.readline()]
            while " at 127.0.0.1" not in lines[-1]:
                lines.append(process.stdout.readline())
                assert lines[-1]
            yield process, lines
            process.terminate()
            assert process.wait(30) == 0
        finally:
            process.kill()


def test_the_fingerprint_that_is_printed_is_what_clients_pin() -> None:
    with serving("--tls") as (_, [fingerprint, told]):
        word, pin = fingerprint.split()
        assert word == "fingerprint"
        with contextlib.closing(corral.connect(told.split()[-1], 2, fingerprint=pin)) as envs:
            envs.reset()


def test_a_terminal_shows_how_much_is_served() -> None:
    ours, theirs = pty.openpty()
    shown = b""
    try:
        with serving(stderr=theirs, env={**os.environ, "TERM": "xterm"}) as (_, [told]):
            envs = corral.connect(told.split()[-1], 3)
            envs.reset()
            for _ in range(2):
                envs.step(np.zeros(3, np.int64))

            def is_shown() -> bool:
                nonlocal shown
                while select.select([ours], [], [], 0)[0]:
                    shown += os.read(ours, 1 << 16)
                return b"1 connections, 3 envs, 2 steps" in shown

            assert until(is_shown), shown
            envs.close()
    finally:
        os.close(ours)
        os.close(theirs)


def test_a_thousand_connections_leave_the_memory_as_it_was() -> None:
    with serving("--metrics", "0") as (process, [_, told]):
        host, _, port = told.split()[-1].rpartition(":")
        server = psutil.Process(process.pid)

        def drop(count: int) -> tuple[int, int]:
            """The memory and the descriptors after so many connections that were dropped."""
            before = server.num_fds()
            for attempt in range(count):
                with socket.create_connection((host, int(port))) as connection:
                    if attempt % 2:
                        connection.sendall((init(2) + b"\1")[: attempt % 120])
            assert until(lambda: server.num_fds() <= before)
            return server.memory_info().rss, server.num_fds()

        first_rss, first_fds = drop(200)
        last_rss, last_fds = drop(1000)
        assert last_fds == first_fds
        assert last_rss < 1.05 * first_rss


def test_a_clients_text_makes_no_further_line_in_the_log() -> None:
    with serving(stderr=subprocess.PIPE) as (process, [told]):
        host, _, port = told.split()[-1].rpartition(":")
        forged = "x\n2026-01-01 00:00:00,000 INFO corral.netenv left\x1b[2J"
        with socket.create_connection((host, int(port)), timeout=20) as connection:
            connection.sendall(init(1, corral={"version": 1, "minimum": 1, "id": forged}))
            while connection.recv(1 << 16):
                pass
        process.terminate()
        assert process.stderr is not None
        lines = process.stderr.read().splitlines()
    assert any("no envs called" in line for line in lines)
    begins = re.compile(r"[-\d]{10} [:,\d]{12} (INFO|WARNING) corral\.netenv [a-z ]+: peer=")
    assert all(begins.match(line) for line in lines), lines
    assert not any("\x1b" in line for line in lines)
