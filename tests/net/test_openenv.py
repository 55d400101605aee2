"""Does the server of OpenEnv's sessions speak the protocol, and outlive what clients do?

`openenv_suite.py` is run with openenv-core itself, in a venv of its own for each version.
"""

from __future__ import annotations

import contextlib
import errno
import json
import logging
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

import corral
from corral import errors
from tests.abi import peers
from tests.abi.venvs import fetched, run_suite
from tests.net.recorded import descriptors
from tests.net.test_tls import pair
from tests.net.waiting import until
from tests.net.websocket import BINARY, CLOSE, PING, PONG, TEXT, WebSocket, frame

ROOT = Path(__file__).parents[2]
SUITE = Path(__file__).with_name("openenv_suite.py")
ENV = "CartPole-v1"


@pytest.mark.parametrize("version", peers.OPENENV)
def test_openenvs_own_client_plays(version: str) -> None:
    python, package = fetched(peers.openenv, version)
    done = run_suite(python, SUITE, path=(package,))
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture
def server() -> Iterator[corral.openenv.Server]:
    with serve(max_sessions=4, max_message=4096) as server:
        yield server
        serves_still(server)


def serve(make: Any = ENV, **options: Any) -> corral.openenv.Server:
    return corral.serve(make, "127.0.0.1:0", protocol="openenv", **options)


class Sleeping(gymnasium.Env[Any, Any]):
    """Sleeps for as many hundredths of a second as its action says."""

    observation_space = gymnasium.spaces.Discrete(99)
    action_space = gymnasium.spaces.Discrete(99)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        return 0, {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        time.sleep(0.01 * action)
        return int(action), 1.0, False, False, {}


def test_a_step_beside_others_that_threads_make_waits_for_them() -> None:
    def make(num_envs: int) -> corral.VectorEnv:
        return corral.from_gymnasium(
            Sleeping, num_envs, autoreset_mode="disabled", runner="thread", num_threads=2
        )

    def send(session: WebSocket, action: int) -> None:
        session.send({"type": "step", "data": {"action": action}})

    with serve(make, max_sessions=4) as server:
        sessions = [WebSocket(server.address) for _ in range(4)]
        for seed, session in enumerate(sessions):
            session.ask("reset", seed=seed)
        first, brief, long, late = sessions
        # Which thread makes the long step is a matter of luck.
        for _ in range(6):
            send(first, 5)
            time.sleep(0.02)
            send(brief, 3)
            send(long, 20)
            first.answer()
            time.sleep(0.1)
            assert late.ask("step", action=1)["observation"]["observation"] == 1
            assert late.ask("reset", seed=7)["observation"]["observation"] == 0
            for session, action in ((brief, 3), (long, 20)):
                assert session.answer()["data"]["observation"]["observation"] == action
        for session in sessions:
            session.close()


def is_idle(server: corral.openenv.Server) -> bool:
    metrics = server.metrics()
    return metrics["connections"] == metrics["envs"] == 0


def serves_still(server: corral.openenv.Server) -> None:
    """The server has no connection left, and serves as many sessions as at first."""
    assert until(lambda: is_idle(server)), server.metrics()
    sessions = [WebSocket(server.address) for _ in range(4)]
    for session in sessions:
        assert plays(session)
        session.close()
    assert until(lambda: is_idle(server)), server.metrics()


def plays(session: WebSocket) -> bool:
    """The session shows what the env shows here."""
    envs = corral.make_vec(ENV, 1, autoreset_mode="disabled")
    shown = session.ask("reset", seed=11)["observation"]["observation"]
    assert shown == envs.reset(seed=11)[0][0].tolist()
    step = session.ask("step", action=1)
    assert step["observation"]["observation"] == envs.step(np.ones(1, np.int64))[0][0].tolist()
    envs.close()
    return (step["reward"], step["done"]) == (1.0, False)


@pytest.mark.parametrize(
    ("message", "code", "why"),
    [
        ("{", "INVALID_JSON", "Invalid JSON: byte 1"),
        ("", "INVALID_JSON", "no value"),
        ("[" * 2000, "INVALID_JSON", "nested more than"),
        ("[]", "VALIDATION_ERROR", "no object"),
        ({}, "UNKNOWN_TYPE", "Unknown message type"),
        ({"type": "dance"}, "UNKNOWN_TYPE", "dance"),
        ({"type": 3}, "VALIDATION_ERROR", "its type is no text"),
        ({"type": "step"}, "VALIDATION_ERROR", "a step without data"),
        ({"type": "step", "data": []}, "VALIDATION_ERROR", "its data is no object"),
        ({"type": "step", "data": {}}, "EXECUTION_ERROR", "no episode has begun"),
        ({"type": "state", "data": {}}, "VALIDATION_ERROR", "state has no field 'data'"),
        ({"type": "reset", "data": {"seed": 2**70}}, "INVALID_JSON", "more than 64 bits"),
        ({"type": "reset", "more": 1}, "VALIDATION_ERROR", "reset has no field 'more'"),
        ({"type": "reset", "data": {"episode_id": ["a"]}}, "VALIDATION_ERROR", "a list of 1"),
        ({"type": "reset", "data": {"options": {"a": 1}}}, "VALIDATION_ERROR", "take none"),
    ],
)
def test_what_is_no_message_is_told_and_the_session_goes_on(
    server: corral.openenv.Server, message: Any, code: str, why: str
) -> None:
    with WebSocket(server.address) as session:
        session.send(message)
        answer = session.answer()
        assert (answer["type"], answer["data"]["code"]) == ("error", code)
        assert why in answer["data"]["message"]
        assert plays(session)


def test_frames_that_are_no_text_are_answered(server: corral.openenv.Server) -> None:
    with WebSocket(server.address) as session:
        session.socket.sendall(frame(BINARY, b"\0\1"))
        assert "a binary frame" in session.answer()["data"]["message"]
        session.socket.sendall(frame(PING, b"here?"))
        assert session.receive() == (PONG, b"here?")
        half = json.dumps({"type": "state"}).encode()
        session.socket.sendall(frame(TEXT, half[:5], last=False) + frame(0, half[5:]))
        assert session.answer() == {
            "type": "state",
            "data": {"episode_id": None, "step_count": 0},
        }
        session.send({"type": "mcp", "data": {"jsonrpc": "2.0", "id": 5, "method": "tools/list"}})
        answer = session.answer()
        assert (answer["type"], answer["data"]["id"]) == ("mcp", 5)
        assert "no tools" in answer["data"]["error"]["message"]
        assert plays(session)
        session.send({"type": "close"})
        session.is_closed()


@pytest.mark.parametrize(
    "sent",
    [
        frame(TEXT, b"", length=4097),
        frame(TEXT, b"", length=2**62),
        frame(TEXT, b"", length=2**63),
        frame(TEXT, b"x" * 4000, last=False) + frame(0, b"x" * 200),
        frame(TEXT, b"\xff\xfe"),
        frame(3, b"no such frame"),
        frame(TEXT, b"{}", last=False) + frame(TEXT, b"{}"),
        b"\x81\x02{}",
        b"\xff" * 40,
    ],
    ids=lambda sent: sent[:12].hex(),
)
def test_what_breaks_the_rules_of_websockets_ends_its_own_connection(
    server: corral.openenv.Server, sent: bytes
) -> None:
    with WebSocket(server.address) as other, WebSocket(server.address) as session:
        session.socket.sendall(sent)
        answer = session.answer()
        assert (answer["type"], answer["data"]["code"]) == ("error", "INVALID_JSON")
        session.is_closed()
        assert plays(other)


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"\r\n\r\n",
        b"netenv_v1",
        b"GET /ws HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET /ws HTTP/1.1\r\n" + b"X: " + b"a" * 100_000,
        b"POST /reset HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999\r\n\r\n{}",
        b"POST /reset HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n",
        b"POST /reset HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nfffffff\r\n"
        + b"a" * 9000,
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc",
    ],
    ids=lambda sent: sent[:24].decode(errors="replace"),
)
def test_what_is_no_request_is_refused(server: corral.openenv.Server, sent: bytes) -> None:
    host, _, port = server.address.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=60) as connection:
        try:
            connection.sendall(sent)
            connection.shutdown(socket.SHUT_WR)
            while connection.recv(1 << 16):
                pass
        except OSError as error:
            # The server closed the connection before it had read all.
            assert error.errno in (errno.ECONNRESET, errno.EPIPE, errno.ENOTCONN)  # noqa: PT017


def test_half_open_and_silent_connections_end() -> None:
    before = descriptors()
    with serve(max_sessions=4, idle_timeout=0.4) as server:
        host, _, port = server.address.rpartition(":")
        # Only what answers the server's pings keeps its session.
        with (
            WebSocket(server.address) as alive,
            WebSocket(server.address) as dead,
            socket.create_connection((host, int(port))) as half,
        ):
            half.sendall(b"POST /step HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n{")
            end = time.monotonic() + 1.2
            while time.monotonic() < end:
                opcode, payload = alive.receive()
                assert opcode == PING
                alive.socket.sendall(frame(PONG, payload))
            assert plays(alive)
            assert dead.is_closed() == 1008
            assert half.recv(100) == b""
        assert until(lambda: is_idle(server))
    assert until(lambda: descriptors() == before)


def test_a_client_that_reads_nothing_costs_one_answer_and_its_session() -> None:
    with serve("Maze-v0", max_sessions=2, idle_timeout=1.0) as server:
        with WebSocket(server.address) as greedy, WebSocket(server.address) as other:
            greedy.socket.settimeout(0.2)
            # The answers are not read, until nobody takes a question any more.
            asked = frame(TEXT, b'{"type": "reset"}') * 1_000_000
            with pytest.raises((TimeoutError, ConnectionError)):
                greedy.socket.sendall(asked)
            assert other.ask("reset", seed=1)["done"] is False
        assert until(lambda: is_idle(server))


def test_many_connections_are_dropped_and_nothing_is_left(server: corral.openenv.Server) -> None:
    WebSocket(server.address).close()
    assert until(lambda: is_idle(server))
    before = descriptors()
    for number in range(300):
        session = WebSocket(server.address)
        if number % 2:
            session.send({"type": "reset", "data": {}})
        session.close()
    assert until(lambda: is_idle(server))
    assert until(lambda: descriptors() == before)
    assert server.metrics()["accepted"] >= 301


def test_sessions_beyond_the_most_are_told_so(server: corral.openenv.Server) -> None:
    sessions = [WebSocket(server.address) for _ in range(4)]
    assert all(plays(session) for session in sessions)
    with WebSocket(server.address) as late:
        told = late.answer()["data"]
        assert (told["code"], told["active_sessions"], told["max_sessions"]) == (
            "CAPACITY_REACHED",
            4,
            4,
        )
        late.send({"type": "reset"})
        assert late.is_closed() == 1013
    for session in sessions:
        assert plays(session)
        session.close()


def test_one_slow_env_of_threads_delays_nobody() -> None:
    def make(num_envs: int) -> corral.VectorEnv:
        faulty: dict[str, Any] = {"fault": "sleep_in_step", "of_seed": 5, "at_step": 0}
        return corral.make_vec(
            "testing/Faulty-v0",
            num_envs,
            autoreset_mode="disabled",
            batch_size=1,
            num_threads=2,
            timeout=2.0,
            **faulty,
        )

    with (
        serve(make, max_sessions=2) as server,
        WebSocket(server.address) as slow,
        WebSocket(server.address) as quick,
    ):
        action = smallest_action(server)
        slow.ask("reset", seed=5)
        quick.ask("reset", seed=1)
        slow.send({"type": "step", "data": action})
        for _ in range(5):
            assert "observation" in quick.ask("step", **action)
        told = slow.answer()["data"]
        assert told["code"] == "EXECUTION_ERROR"
        assert "went silent" in told["message"]
        assert slow.ask("reset", seed=1)["done"] is False


def smallest_action(server: corral.openenv.Server) -> dict[str, Any]:
    """An action of the server's envs, made of what their schema says."""
    with urllib.request.urlopen(f"{server.url}/schema", timeout=60) as page:
        fields = json.load(page)["action"]["properties"]
    return {name: sample(one) for name, one in fields.items() if name != "metadata"}


def sample(schema: dict[str, Any]) -> Any:
    """The smallest value of a schema."""
    if "properties" in schema:
        return {name: sample(one) for name, one in schema["properties"].items()}
    if schema["type"] == "array":
        return [sample(schema["items"])] * schema.get("minItems", 0)
    if schema["type"] in ("integer", "number"):
        return schema.get("minimum", 0)
    return {"object": {}, "boolean": False, "string": ""}[schema["type"]]


def test_envs_that_cannot_be_sessions_are_refused() -> None:
    for make, why in (
        (lambda num_envs: corral.make_vec(ENV, num_envs), "autoreset_mode='disabled'"),
        (lambda num_envs: corral.make_vec(ENV, 1, autoreset_mode="disabled"), "made 1 envs"),
        (lambda num_envs: corral.make(ENV), "takes a corral.VectorEnv"),
        ("testing/Odd-v0", "no autoreset mode but same_step"),
        ([ENV, "Maze-v0"], "one kind of env"),
        ("Nothing-v0", "Nothing-v0"),
    ):
        with pytest.raises(errors.CorralError, match=why):
            serve(make)
    for options, why in (
        ({"addr": "unix:/tmp/a"}, "URLs"),
        ({"addr": "0.0.0.0:0"}, "other machines reach"),
        ({"addr": "127.0.0.1:0", "protocol": "gym"}, "protocol is"),
        ({"addr": "127.0.0.1:0", "max_sessions": 0}, "max_sessions"),
        ({"addr": "127.0.0.1:0", "idle_timeout": 0}, "idle_timeout"),
    ):
        with pytest.raises(errors.CorralError, match=why):
            corral.serve(ENV, **{"protocol": "openenv", **options})  # type: ignore[call-overload]


def test_web_pages_are_not_served_without_a_token(server: corral.openenv.Server) -> None:
    with WebSocket(server.address, "Origin: http://evil.example") as session:
        assert session.status == 403


def test_tls_and_the_token_are_asked_for(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("correct-horse-battery-staple")
    files = pair(tmp_path, "2")
    with corral.serve(
        ENV, "0.0.0.0:0", protocol="openenv", token_file=tmp_path / "token", **files
    ) as server:
        assert server.url.startswith("https://")
        address = "127.0.0.1:" + server.address.rpartition(":")[2]
        trusted = ssl.create_default_context(cafile=str(files["certificate"]))
        for head, status in (
            ((), 401),
            (("Authorization: Bearer correct-horse-battery-stapler",), 401),
            (("Authorization: Bearer",), 401),
            (("Authorization: Basic !!!",), 401),
            (("Authorization: Bearer correct-horse-battery-staple",), 101),
        ):
            with WebSocket(address, *head, tls=trusted) as session:
                assert session.status == status
                assert status != 101 or plays(session)
        with pytest.raises(ssl.SSLError):
            WebSocket(address, tls=ssl.create_default_context())
        host, _, port = address.rpartition(":")
        with socket.create_connection((host, int(port)), timeout=60) as plain:
            plain.sendall(b"GET /health HTTP/1.1\r\nHost: a\r\n\r\n")
            assert b"healthy" not in plain.recv(1 << 12)


def test_the_end_answers_the_step_in_flight() -> None:
    def make(num_envs: int) -> corral.VectorEnv:
        return corral.make_vec(
            "testing/Faulty-v0",
            num_envs,
            autoreset_mode="disabled",
            fault="sleep_in_step",
            sleep=0.5,
            at_step=0,
        )

    server = serve(make, max_sessions=2)
    action = smallest_action(server)
    with WebSocket(server.address) as busy, WebSocket(server.address) as idle:
        busy.ask("reset")
        busy.send({"type": "step", "data": action})
        time.sleep(0.1)
        ending = threading.Thread(target=server.close)
        ending.start()
        assert "reward" in busy.answer()["data"]
        assert busy.is_closed() == idle.is_closed() == 1001
        ending.join(60)
        assert not ending.is_alive()
    assert server.metrics() == {}
    server.close()
    with pytest.raises(errors.ClosedError):
        server.listen()


def test_clients_that_go_on_asking_keep_no_server_from_its_end() -> None:
    """A further message always comes while one is answered."""

    class Slow(gymnasium.Env[Any, Any]):
        observation_space = action_space = gymnasium.spaces.Discrete(2)

        def reset(self, *, seed: Any = None, options: Any = None) -> Any:
            time.sleep(0.005)
            return 0, {}

        def step(self, action: Any) -> Any:
            return 0, 0.0, False, False, {}

    server = serve(
        lambda num_envs: corral.from_gymnasium(
            Slow, num_envs=num_envs, runner="serial", autoreset_mode="disabled"
        ),
        max_sessions=2,
    )
    with WebSocket(server.address) as session:
        told = threading.Event()

        def ask() -> None:
            with contextlib.suppress(OSError):
                while not told.is_set():
                    session.send({"type": "reset", "data": {}})

        def listen() -> None:
            # A server that only drops its connections says nothing.
            with contextlib.suppress(OSError, ValueError, IndexError):
                while session.receive()[0] != CLOSE:
                    pass
                told.set()

        threads = [threading.Thread(target=ask), threading.Thread(target=listen)]
        for thread in threads:
            thread.start()
        assert until(lambda: server.metrics()["resets"] > 100)
        server.close()
        assert told.wait(20)
        for thread in threads:
            thread.join(20)
            assert not thread.is_alive()


def test_the_log_says_who_was_refused(
    caplog: pytest.LogCaptureFixture, server: corral.openenv.Server
) -> None:
    caplog.set_level(logging.INFO, "corral.openenv")
    with WebSocket(server.address) as session:
        session.socket.sendall(b"\xff" * 40)
        session.is_closed()
    assert until(lambda: "connection closed" in caplog.text)


def test_the_command_serves_and_counts() -> None:
    command = ["-m", "corral", "serve", ENV, "--openenv", "--addr", "127.0.0.1:0"]
    with subprocess.Popen(
        [sys.executable, *command, "--max-sessions", "2", "--metrics", "0"],
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        metrics = process.stdout.readline().split()[-1]
        url = process.stdout.readline().split(" at ")[1].strip()
        assert url.startswith("http://127.0.0.1:")
        with WebSocket(url.removeprefix("http://")) as session:
            assert plays(session)
            with urllib.request.urlopen(metrics, timeout=60) as page:
                counts = page.read().decode()
            assert "\ncorral_openenv_envs 1\n" in counts
            assert "\ncorral_openenv_steps_total 1\n" in counts
            process.send_signal(signal.SIGTERM)
            assert session.is_closed() == 1001
        assert process.wait(60) == 0
    for more, why in (
        (["Maze-v0"], "serves one id"),
        (["--max-envs", "3"], "--max-envs goes without --openenv"),
    ):
        done = subprocess.run([sys.executable, *command, *more], capture_output=True, text=True)
        assert done.returncode != 0
        assert why in done.stderr
