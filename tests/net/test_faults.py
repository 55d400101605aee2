"""What does a peer's misuse cost? Its own connection, and nothing else."""

from __future__ import annotations

import contextlib
import gc
import json
import logging
import random
import signal
import socket
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import corral
from corral import errors
from tests.net.recorded import VENVS, by_name, descriptors, dial, exchanges
from tests.net.waiting import until

SESSION = by_name("plain_spaces_wrapped")
TALK = b"".join(asked for _, asked, _ in exchanges(SESSION))
HELLO = b"netenv_v1"


def held(server: Any) -> tuple[int, int]:
    """How many connections and envs the server has."""
    metrics = server.metrics()
    return metrics["connections"], metrics["envs"]


def init(num_envs: int = 1, shared: bool = False, **extra: Any) -> bytes:
    """The first bytes of a client."""
    request = {"num_envs": num_envs, "use_shared_memory": shared, "env_options": {}, **extra}
    text = json.dumps(request).encode()
    return HELLO + b"\0" + len(text).to_bytes(4, "big") + text


def is_cut(connection: socket.socket) -> bool:
    """Reads what is left, until the server closes the connection."""
    try:
        while connection.recv(1 << 16):
            pass
    except ConnectionResetError:
        pass
    return True


@pytest.fixture
def server() -> Iterator[Any]:
    def make(num_envs: int, **options: Any) -> Any:
        return VENVS[SESSION["name"]](num_envs, SESSION)

    with corral.serve(make, ("127.0.0.1", 0), max_connections=256) as server:
        yield server
        serves_still(server)


def serves_still(server: Any) -> None:
    """The server has no connection left, and takes another."""
    assert until(lambda: held(server) == (0, 0)), held(server)
    envs = corral.connect(server.address, 2)
    envs.reset()
    envs.step(np.zeros(2, np.int64))
    envs.close()
    assert until(lambda: held(server) == (0, 0)), held(server)


def test_every_beginning_of_a_talk_may_be_cut_off(server: Any) -> None:
    for count in range(len(TALK)):
        with dial(server) as connection:
            connection.sendall(TALK[:count])


@pytest.mark.parametrize("length", [0, 1, 2**31, 2**32 - 1])
@pytest.mark.parametrize("where", ["INIT", "RENDER"])
def test_no_length_is_believed(server: Any, where: str, length: int) -> None:
    field = length.to_bytes(4, "big")
    with dial(server) as connection:
        if where == "INIT":
            connection.sendall(HELLO + b"\0" + field + b"{")
        else:
            connection.sendall(init(2) + b"\3" + field + b"{")
        with contextlib.suppress(OSError):
            connection.shutdown(socket.SHUT_WR)
        assert is_cut(connection)


@pytest.mark.parametrize(
    "request_",
    [
        init(0),
        init(-1),
        init(2**62),
        init(10**9),
        HELLO + b"\0" + (2).to_bytes(4, "big") + b"{}",
        HELLO + b"\0" + (4).to_bytes(4, "big") + b"[[[[",
        HELLO + b"\1",
        b"netenv_v2",
        b"GET / HTTP/1.1\r\n\r\n",
        init(2) + b"\4",
        init(2) + b"\xff",
        init(2, shared=True),
    ],
    ids=lambda request: request[9:40].hex(),
)
def test_a_client_that_asks_for_what_may_not_be_is_closed(server: Any, request_: bytes) -> None:
    with dial(server) as connection:
        connection.sendall(request_)
        assert is_cut(connection)


def test_random_bytes_harm_nobody(server: Any) -> None:
    rng = random.Random(0)
    for _ in range(150):
        talk = bytearray(TALK)
        for _ in range(rng.randrange(1, 8)):
            talk[rng.randrange(9, len(talk))] = rng.randrange(256)
        with dial(server) as connection:
            connection.sendall(
                rng.choice([bytes(talk), rng.randbytes(200), HELLO + rng.randbytes(99)])
            )


def test_an_answer_of_random_bytes_is_an_error_of_the_client() -> None:
    rng = random.Random(0)
    listener = socket.create_server(("127.0.0.1", 0))
    answers = b"".join(answer for _, _, answer in exchanges(SESSION)[:3])
    for _ in range(60):
        answer = bytearray(answers)
        for _ in range(rng.randrange(1, 6)):
            answer[rng.randrange(len(answer))] = rng.randrange(256)

        def play(answer: bytes = bytes(answer)) -> None:
            connection, _ = listener.accept()
            with connection:
                connection.settimeout(10)
                with contextlib.suppress(OSError):
                    connection.sendall(answer)
                    connection.shutdown(socket.SHUT_WR)
                    is_cut(connection)

        peer = threading.Thread(target=play)
        peer.start()
        # Bytes that were changed in an observation are a right answer still.
        with contextlib.suppress(errors.CorralError):
            envs = corral.connect(listener.getsockname(), 2, timeout=5.0, connect_timeout=5.0)
            with contextlib.closing(envs):
                envs.reset()
                envs.step(envs.action_space.sample())
        peer.join(20)
        assert not peer.is_alive()
    listener.close()


def test_a_thousand_connections_leave_nothing_behind(server: Any) -> None:
    serves_still(server)
    gc.collect()
    before = descriptors()
    for attempt in range(1000):
        with dial(server) as connection:
            if attempt % 2:
                connection.sendall(init(2)[: attempt % 60])
    assert until(lambda: held(server) == (0, 0))
    assert until(lambda: descriptors() <= before), (descriptors(), before)


def test_a_silent_client_and_one_that_reads_nothing_are_closed() -> None:
    make = lambda num_envs: corral.make_vec("Maze-v0", num_envs, autoreset_mode="same_step")  # noqa: E731
    with corral.serve(make, ("127.0.0.1", 0), idle_timeout=0.3) as server:
        with dial(server) as silent:
            assert is_cut(silent)
        with dial(server) as deaf:
            deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            deaf.settimeout(0.2)
            deaf.sendall(init(256))
            with contextlib.suppress(TimeoutError, ConnectionError):
                while True:
                    deaf.sendall(b"\1" * 4096)
            assert until(lambda: held(server) == (0, 0))


def test_there_are_so_many_connections_and_envs_and_no_more() -> None:
    limits = {"max_connections": 2, "max_envs": 5}
    with corral.serve("CartPole-v1", ("127.0.0.1", 0), **limits) as server:
        one = corral.connect(server.address, 3)
        for _ in range(20):  # a refused client may come again at once
            with pytest.raises(errors.EnvError, match="its log says why"):
                corral.connect(server.address, 3, plain=True)
            with pytest.raises(
                errors.EnvError, match="asks for 3 envs, and all clients may have 5"
            ):
                corral.connect(server.address, 3)
        assert until(lambda: held(server) == (1, 3))
        two = corral.connect(server.address, 2)
        with pytest.raises(errors.EnvError, match="closed the connection"):
            corral.connect(server.address, 1)
        for envs in (one, two):
            envs.reset()
            envs.step(envs.action_space.sample())
            envs.close()
        assert until(lambda: held(server) == (0, 0))


def test_what_makes_no_envs_costs_the_connection_and_a_line_of_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def make(num_envs: int, how: str) -> Any:
        if how == "raise":
            raise RuntimeError("no envs today")
        if how == "text":
            return corral.make_vec("testing/Odd-v0", num_envs, autoreset_mode="same_step")
        return 3 if how == "none" else corral.make_vec("CartPole-v1", num_envs + 1)

    with corral.serve(make, ("127.0.0.1", 0)) as server:
        caplog.set_level(logging.INFO, "corral.netenv")
        for how, why in WHY.items():
            caplog.clear()
            with pytest.raises(errors.EnvError, match="no envs from the netenv server"):
                corral.connect(server.address, 2, {"how": how}, plain=True)
            assert until(lambda why=why: why in caplog.text), caplog.text
        assert until(lambda: held(server) == (0, 0))


WHY = {
    "raise": "no envs today",
    "text": "netenv cannot carry these envs",
    "none": "which is no vec env",
    "more": "it asks for 2 envs, and 3 were made",
}


def test_a_wrong_token_is_refused_and_never_told(
    tmp_path: Any, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    right, wrong = tmp_path / "right", tmp_path / "wrong"
    right.write_text("correct horse battery staple\n")
    wrong.write_text("correct horse battery stapler\n")
    caplog.set_level(logging.INFO, "corral.netenv")
    with corral.serve("CartPole-v1", ("127.0.0.1", 0), token_file=right) as server:
        for shown in (None, wrong):
            with pytest.raises(errors.EnvError, match="closed the connection"):
                corral.connect(server.address, 2, token_file=shown)
        with dial(server) as original:
            original.sendall(init(2, corral={"token": 3}))
            assert is_cut(original)
        assert until(lambda: caplog.text.count("its token is missing or wrong") == 3)
        corral.connect(server.address, 2, token_file=right).close()
        monkeypatch.setenv("CORRAL_NETENV_TOKEN", right.read_text())
        corral.connect(server.address, 2).close()
        assert until(lambda: held(server) == (0, 0))
    assert "horse" not in caplog.text
    short = tmp_path / "short"
    short.write_text("short")
    with pytest.raises(errors.ArgumentError, match="from 16 to 4096 characters"):
        corral.serve("CartPole-v1", ("127.0.0.1", 0), token_file=short)
    with pytest.raises(errors.ArgumentError, match="no token can be read"):
        corral.serve("CartPole-v1", ("127.0.0.1", 0), token_file=tmp_path / "none")


def test_a_client_may_not_choose_what_is_the_servers(tmp_path: Any) -> None:
    with corral.serve("CartPole-v1", ("127.0.0.1", 0)) as server:
        for options in ({"record": str(tmp_path / "x")}, {"num_threads": 64}, {"no_such": 1}):
            with pytest.raises(errors.EnvError, match="its log says why"):
                corral.connect(server.address, 2, options, plain=True)
        assert not (tmp_path / "x").exists()


def test_an_address_that_others_reach_is_refused() -> None:
    # A name that begins as a loopback address may be that of any machine.
    others = ("127.example.org:80", "127.0.0.1.example.org:80", "[::]:0", "localhost.org:1")
    for addr in ("0.0.0.0:0", ("", 0), ":0", "example.org:80", *others):
        with pytest.raises(errors.ArgumentError, match="addr"):
            corral.netenv.Server(addr, "CartPole-v1")
    corral.netenv.Server("0.0.0.0:0", "CartPole-v1", insecure=True)


SLOW = """
import sys, time, numpy as np
from gymnasium import spaces
import corral

class Slow:
    observation_space = spaces.Box(0, 1, (2,), np.float32)
    action_space = spaces.Discrete(2)
    def __init__(self, num_envs): self.num_envs = num_envs
    def reset(self): return np.zeros((self.num_envs, 2), np.float32)
    def step(self, actions):
        if actions.any():
            print("in step", flush=True)
            time.sleep(float(sys.argv[2]))
        shown = np.ones((self.num_envs, 2), np.float32)
        return shown, np.ones(self.num_envs), np.zeros(self.num_envs, bool), None

server = corral.serve(lambda num_envs: Slow(num_envs), sys.argv[1])
print(server.address, flush=True)
server.run()
"""


class Elsewhere:
    """A server in another process, with envs that may take a while."""

    def __init__(self, addr: str = "127.0.0.1:0", seconds: float = 600.0) -> None:
        command = [sys.executable, "-c", SLOW, addr, str(seconds)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.address = self.line()

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(20)

    def __enter__(self) -> Elsewhere:
        return self

    def __exit__(self, *_: Any) -> None:
        self.kill()
        assert self.process.stdout is not None
        self.process.stdout.close()


def test_a_server_that_is_killed_in_a_step_is_named_and_what_was_lost_is_told() -> None:
    with Elsewhere() as server:
        envs = corral.connect(server.address, 3, plain=True)
        envs.reset()
        envs.step(np.zeros(3, np.int64))
        envs.send(np.array([0, 1, 0]))
        assert server.line() == "in step"
        server.kill()
        with pytest.raises(errors.EnvError, match="closed the connection") as told:
            envs.recv()
        assert server.address in str(told.value)
        assert "the episodes of all its envs are lost" in str(told.value)
        assert [failure.slot for failure in told.value.failures] == [0, 1, 2]
        with pytest.raises(errors.ResetNeededError):
            envs.step(np.zeros(3, np.int64))
        envs.close()


def test_a_client_that_reconnects_begins_new_episodes_and_marks_the_old_ones(
    tmp_path: Any,
) -> None:
    addr = f"unix:{tmp_path / 'socket'}"
    with Elsewhere(addr) as first:
        envs = corral.connect(addr, 3, reconnect=True, plain=True)
        envs.reset()
        envs.send(np.array([0, 1, 0]))
        assert first.line() == "in step"
        first.kill()
        with Elsewhere(addr):
            observations, rewards, terminated, truncated, infos = envs.recv()
            assert truncated.all()
            assert not terminated.any()
            assert not rewards.any()
            assert infos["restarted"].all()
            assert not observations.any()
            observations, rewards, *_ = envs.step(np.zeros(3, np.int64))
            assert rewards.all()
            assert observations.all()
            envs.close()


@pytest.mark.parametrize("plain", [True, False], ids=["plain", "extended"])
def test_a_server_that_is_silent_for_longer_than_the_timeout_is_given_up(plain: bool) -> None:
    with Elsewhere() as server:
        envs = corral.connect(server.address, 2, timeout=0.2, plain=plain)
        envs.reset()
        with pytest.raises(errors.EnvTimeoutError, match="timeout"):
            envs.step(np.ones(2, np.int64))
        envs.reset()
        envs.step(np.zeros(2, np.int64))
        envs.close()


@pytest.mark.parametrize("plain", [True, False], ids=["plain", "extended"])
def test_ctrl_c_ends_a_wait_and_the_rows_stay_in_flight(plain: bool) -> None:
    with Elsewhere(seconds=1.5) as server:
        envs = corral.connect(server.address, 2, plain=plain)
        envs.reset()
        main = threading.main_thread().ident
        assert main is not None
        threading.Timer(0.3, lambda: signal.pthread_kill(main, signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt):
            envs.step(np.ones(2, np.int64))
        observations, *_ = envs.recv(timeout=30)
        assert observations.all()
        with pytest.raises(errors.NothingPendingError):
            envs.recv()
        envs.close()


def test_a_wait_may_have_an_end_of_its_own() -> None:
    with Elsewhere(seconds=1.0) as server:
        envs = corral.connect(server.address, 2)
        envs.reset()
        envs.send(np.ones(2, np.int64))
        with pytest.raises(errors.RecvTimeoutError, match="2 envs stay in flight"):
            envs.recv(timeout=0.05)
        one, *_, infos = envs.recv(timeout=30, max_rows=1)
        assert one.shape == (1, 2)
        assert infos["env_id"].tolist() == [0]
        rest, *_, infos = envs.recv(timeout=30)
        assert rest.shape == (1, 2)
        assert infos["env_id"].tolist() == [1]
        envs.close()


def test_nobody_to_connect_to_is_an_error_that_names_the_address() -> None:
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        port = nobody.getsockname()[1]
    with pytest.raises(errors.EnvError, match=f"127.0.0.1:{port}"):
        corral.connect(("127.0.0.1", port), 2, connect_timeout=0.1)


def test_sigterm_lets_the_command_answer_and_end() -> None:
    command = [sys.executable, "-m", "corral", "serve", "CartPole-v1", "--addr", "127.0.0.1:0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        address = process.stdout.readline().split()[-1]
        envs = corral.connect(address, 4)
        envs.reset()
        observations, *_ = envs.step(np.zeros(4, np.int64))
        assert observations.shape == (4, 4)
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
        with pytest.raises(errors.EnvError, match="closed the connection"):
            envs.step(np.zeros(4, np.int64))
        envs.close()


def test_the_command_tells_prometheus_what_it_has_done() -> None:
    command = [sys.executable, "-m", "corral", "serve", "CartPole-v1", "--addr", "127.0.0.1:0"]
    with subprocess.Popen(
        [*command, "--metrics", "0"], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        page = process.stdout.readline().split()[-1]
        envs = corral.connect(process.stdout.readline().split()[-1], 4)
        envs.reset()
        for _ in range(3):
            envs.step(np.zeros(4, np.int64))
        with urllib.request.urlopen(page, timeout=20) as answer:
            lines = answer.read().decode().splitlines()
        told = dict(line.split() for line in lines if not line.startswith("#"))
        assert told["corral_netenv_connections"] == "1"
        assert told["corral_netenv_envs"] == "4"
        assert told["corral_netenv_resets_total"] == "1"
        assert told["corral_netenv_steps_total"] == "3"
        envs.close()
        process.terminate()
        assert process.wait(20) == 0
