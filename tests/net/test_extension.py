"""The extension: does it stay out of the way of originals, and what does its misuse cost?"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

import corral
from corral import errors
from tests.net.extended import (
    ANSWER,
    ASK,
    BUILT,
    CLOSE,
    CLOSED,
    HEADER,
    RESET,
    ROWS,
    STEP,
    Parrot,
    Tail,
    Wire,
    greet,
    headers,
    heard,
    init,
    message,
    told,
)
from tests.net.recorded import SESSIONS, VENVS, by_name, dial, exchanges, read
from tests.net.test_faults import Elsewhere, held, is_cut
from tests.net.test_recording import recorded_actions
from tests.net.waiting import until


@pytest.fixture
def server() -> Iterator[Any]:
    with corral.serve(["CartPole-v1", "Maze-v0"], ("127.0.0.1", 0), max_connections=256) as server:
        yield server
        assert until(lambda: held(server) == (0, 0)), held(server)
        with contextlib.closing(corral.connect(server.address, 2)) as envs:
            envs.reset()
            envs.step(np.zeros(2, np.int64))


@pytest.fixture(scope="module")
def talk() -> tuple[bytes, bytes]:
    """All that a client and a server say in a short talk."""
    with corral.serve("CartPole-v1", ("127.0.0.1", 0)) as server:
        wire = Wire(server.listen())
        play(wire.address)
        wire.join(20)
        return wire.asked, wire.answered


def play(address: Any) -> None:
    envs = corral.connect(
        address, 1, seed=1, autoreset_mode="same_step", max_episode_steps=2, timeout=5.0
    )
    with contextlib.closing(envs):
        envs.reset(seed=3)
        for _ in range(3):
            envs.step(np.zeros(1, np.int64))
        envs.load_state(envs.save_state())


@pytest.mark.parametrize("session", SESSIONS, ids=[session["name"] for session in SESSIONS])
def test_an_original_server_never_notices(session: Any) -> None:
    """It looks up three keys by name. What it answers is what was recorded."""
    listener = socket.create_server(("127.0.0.1", 0))
    asked: list[Any] = []

    def original() -> None:
        connection, _ = listener.accept()
        with connection:
            (_, _, answer), *rest = exchanges(session)
            connection.sendall(answer[:9])
            assert read(connection, 10) == b"netenv_v1\0"
            connection.sendall(answer[9:10])
            asked.append(json.loads(read(connection, int.from_bytes(read(connection, 4), "big"))))
            connection.sendall(answer[10:])
            for operation, said, answer in rest:
                if operation not in ("RENDER", "CLOSE"):
                    assert read(connection, len(said)) == said
                    connection.sendall(answer)
            asked.append(read(connection, 1))

    peer = threading.Thread(target=original)
    peer.start()
    n = session["num_envs"]
    envs = corral.connect(listener.getsockname(), n, session["env_options"])
    assert envs.native.autoreset_mode == "same_step"
    assert not envs.native.can("seed")
    for one in session["exchanges"]:
        if one["op"].startswith("RESET"):
            envs.reset()
        elif one["op"] == "STEP":
            envs.step(recorded_actions(one["action"]))
    envs.close()
    peer.join(20)
    request, end = asked
    assert end == b""
    assert request.pop("corral")["version"] == 1
    assert request == {
        "num_envs": n,
        "use_shared_memory": False,
        "env_options": session["env_options"],
    }
    listener.close()


def test_what_an_original_server_has_no_word_for_is_refused() -> None:
    session = by_name("plain_spaces_wrapped")
    with Parrot() as parrot:
        parrot.says = exchanges(session)[0][2]
        for option in (
            {"seed": 1},
            {"id": "CartPole-v1"},
            {"autoreset_mode": "next_step"},
            {"max_episode_steps": 5},
            {"episode_statistics": True},
            {"debug": True},
        ):
            with pytest.raises(errors.UnsupportedError, match=next(iter(option))):
                corral.connect(parrot.address, 2, **option)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "keys", [{"version": 9, "minimum": 2}, {"version": 0, "minimum": 0}, {"token": "anything"}]
)
def test_versions_that_do_not_meet_speak_plain_netenv(server: Any, keys: Any) -> None:
    with dial(server) as connection:
        connection.sendall(init(2, **keys) + b"\1")
        names = [leaf["name"] for leaf in told(connection)["_step_space"]["spaces"]]
        assert names == ["_", "_rews", "_dones"]
        assert read(connection, 1 + 3 * 64)[:1] == b"\1"


def test_a_newer_client_that_knows_this_version_is_served(server: Any) -> None:
    with dial(server) as connection:
        connection.sendall(init(2, version=7, minimum=1))
        assert told(connection)["corral"] == {"version": 1}
        assert heard(connection)[0] == BUILT


def test_a_version_that_nobody_asked_for_is_an_error(talk: Any) -> None:
    with Parrot() as parrot:
        parrot.says = talk[1].replace(b'"version": 1', b'"version": 3')
        with pytest.raises(errors.EnvError, match="speaks version 3 of the extension"):
            corral.connect(parrot.address, 1)


def test_every_beginning_of_a_talk_may_be_cut_off(server: Any, talk: Any) -> None:
    asked, _ = talk
    for count in range(len(asked)):
        with dial(server) as connection:
            connection.sendall(asked[:count])


def test_every_beginning_of_a_servers_answers_is_an_error_of_the_client(talk: Any) -> None:
    _, answered = talk
    end = headers(answered, 14 + int.from_bytes(answered[10:14], "big"))[-1]
    with Parrot() as parrot:
        for count in range(0, end, 2):
            parrot.says = answered[:count]
            with pytest.raises(errors.CorralError):
                play(parrot.address)


@pytest.mark.parametrize("value", [0, 1, 2**31, 2**32 - 1])
def test_no_number_of_a_header_is_believed(server: Any, talk: Any, value: int) -> None:
    asked, answered = talk
    first = 14 + int.from_bytes(answered[10:14], "big")
    fields = [(at, field) for at in headers(answered, first) for field in (0, 8, 12)]
    with Parrot() as parrot:
        for at, field in fields:
            word = value.to_bytes(4, "little")
            parrot.says = answered[: at + field] + word + answered[at + field + 4 :]
            if parrot.says != answered:
                with contextlib.suppress(errors.CorralError):
                    play(parrot.address)
    first = 14 + int.from_bytes(asked[10:14], "big")
    for at, field in [(at, field) for at in headers(asked, first) for field in (0, 8, 12)]:
        with dial(server) as connection:
            connection.sendall(asked[: at + field] + value.to_bytes(4, "little"))
            connection.sendall(asked[at + field + 4 :])
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_WR)
            assert is_cut(connection)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_random_bytes_harm_nobody(server: Any, talk: Any) -> None:
    rng = random.Random(0)
    asked, answered = talk
    first = 14 + int.from_bytes(asked[10:14], "big")
    for _ in range(200):
        bytes_ = bytearray(asked)
        for _ in range(rng.randrange(1, 6)):
            bytes_[rng.randrange(first, len(bytes_))] = rng.randrange(256)
        with dial(server) as connection, contextlib.suppress(OSError):
            connection.sendall(bytes_)
            connection.shutdown(socket.SHUT_WR)
            is_cut(connection)
    first = 14 + int.from_bytes(answered[10:14], "big")
    with Parrot() as parrot:
        for _ in range(200):
            bytes_ = bytearray(answered)
            for _ in range(rng.randrange(1, 6)):
                bytes_[rng.randrange(first, len(bytes_))] = rng.randrange(256)
            parrot.says = bytes(bytes_)
            # Bytes that were changed in an observation are a right answer still.
            with contextlib.suppress(errors.CorralError):
                play(parrot.address)


@pytest.mark.parametrize(
    "said",
    [
        message(BUILT),
        message(ROWS),
        message(ANSWER),
        message(CLOSED),
        message(STEP, rows=3, columns=bytes(64)),
        message(STEP, rows=2, columns=bytes(63)),
        message(STEP, rows=1, columns=bytes(64)),
        message(STEP, b"\xff", rows=2, columns=bytes(64)),
        message(RESET, b"\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
        message(ASK, b"\x63"),
        message(ASK, bytes([5, 1, 0, 0, 1]) + b"x" + b"\x01\x01" * 4000),
        HEADER.pack(0, 9, 0, 0, 0, 0),
        HEADER.pack(0, CLOSE, 0, 1, 0, 0),
        HEADER.pack(0, STEP, 1, 0, 2, 0),
        HEADER.pack(2**32 - 1, ASK, 0, 0, 0, 0),
    ],
    ids=lambda said: said[:24].hex(),
)
def test_a_client_that_breaks_a_rule_is_closed(server: Any, said: bytes) -> None:
    with dial(server) as connection:
        greet(connection, 2)
        connection.sendall(said)
        assert is_cut(connection)


def test_what_the_envs_refuse_is_told_and_the_connection_goes_on(server: Any) -> None:
    """A step of all envs has no tail; that of a reset is `None`, two times `Own`, no options."""
    begin = message(RESET, bytes([0, 2, 0, 0, 2, 0]))
    with dial(server) as connection:
        greet(connection, 2)
        for said, kind, words in (
            (message(STEP, rows=2, columns=bytes(64)), ANSWER, b"has not begun"),
            (message(RESET, bytes([0, 1, 0, 2, 0])), ANSWER, b"1 beginnings for 2 envs"),
            (message(RESET, bytes([1, 1, 9, 1, 0, 2, 0])), ANSWER, b"env 9 does not exist"),
            (begin, ROWS, b""),
            (message(STEP, rows=2, columns=b"\7" + bytes(63)), ANSWER, b"env 0"),
            (message(STEP, rows=2, columns=bytes(64)), ROWS, b""),
            (message(ASK, bytes([2, 9])), ANSWER, b"env 9 does not exist"),
            (message(CLOSE), CLOSED, b""),
        ):
            connection.sendall(said)
            got, answer = heard(connection)
            assert (got, words in answer) == (kind, True), answer
        assert is_cut(connection)


def test_messages_may_be_sent_before_the_earlier_ones_are_answered(server: Any) -> None:
    begin = message(RESET, bytes([0, 1, 0, 2, 0]))
    with dial(server) as connection:
        connection.sendall(init() + begin + message(STEP, rows=1, columns=bytes(64)) * 50)
        told(connection)
        assert [heard(connection)[0] for _ in range(52)] == [BUILT] + [ROWS] * 51


def test_an_idle_client_is_not_cut_off_and_one_that_stops_in_a_message_is() -> None:
    with corral.serve("CartPole-v1", ("127.0.0.1", 0), idle_timeout=0.2) as server:
        envs = corral.connect(server.address, 2)
        envs.reset()
        with dial(server) as slow:
            greet(slow)
            slow.sendall(message(RESET, bytes(9))[:-3])
            assert is_cut(slow)
        time.sleep(0.3)
        envs.step(np.zeros(2, np.int64))
        envs.close()


def test_a_client_that_reads_nothing_is_closed() -> None:
    make: Any = lambda num_envs: corral.make_vec("Maze-v0", num_envs)  # noqa: E731
    with corral.serve(make, ("127.0.0.1", 0), idle_timeout=0.3) as server, dial(server) as deaf:
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        greet(deaf, 256)
        deaf.settimeout(0.2)
        begin = message(RESET, bytes([0, 0x80, 2, *[0] * 256, 2, 0]))
        with contextlib.suppress(TimeoutError, ConnectionError):
            while True:
                deaf.sendall(begin)
        assert until(lambda: held(server) == (0, 0))
        assert server.metrics()["resets"] > 0


def test_a_server_that_is_killed_in_a_step_is_named_and_a_reset_connects_again(
    tmp_path: Any,
) -> None:
    addr = f"unix:{tmp_path / 'socket'}"
    with Elsewhere(addr) as server:
        envs = corral.connect(addr, 3)
        envs.reset()
        envs.send(np.array([0, 1, 0]))
        assert server.line() == "in step"
        server.kill()
        with pytest.raises(errors.EnvError, match="closed the connection") as told:
            envs.recv()
        assert addr in str(told.value)
        assert "the episodes of all its envs are lost" in str(told.value)
        assert [failure.slot for failure in told.value.failures] == [0, 1, 2]
        with pytest.raises(errors.ResetNeededError):
            envs.step(np.zeros(3, np.int64))
        for ask in (lambda: envs.call("anything"), envs.save_state):
            with pytest.raises(errors.CorralError):
                ask()
    with Elsewhere(addr):
        envs.reset()
        envs.step(np.zeros(3, np.int64))
        envs.close()


@pytest.mark.parametrize("mode", ["same_step", "next_step", "disabled"])
def test_a_client_that_reconnects_begins_new_episodes_and_marks_the_old_ones(
    tmp_path: Any, mode: str
) -> None:
    addr = f"unix:{tmp_path / 'socket'}"
    with corral.serve("CartPole-v1", addr):
        envs = corral.connect(addr, 3, reconnect=True, autoreset_mode=mode, seed=1)
        envs.reset()
        envs.step(np.zeros(3, np.int64))
    with corral.serve("CartPole-v1", addr):
        observations, rewards, terminated, truncated, infos = envs.step(np.zeros(3, np.int64))
        assert truncated.all()
        assert not terminated.any()
        assert not rewards.any()
        assert infos["restarted" if mode == "same_step" else "_failed"].all()
        if mode == "disabled":
            observations, _ = envs.reset()
        elif mode == "next_step":
            observations, *_ = envs.step(np.zeros(3, np.int64))
        assert observations.any(axis=1).all()
        assert len({row.tobytes() for row in observations}) == 3
        _, rewards, *_ = envs.step(np.zeros(3, np.int64))
        assert rewards.all()
        envs.close()


def test_a_server_with_other_envs_is_no_place_to_go_on(tmp_path: Any) -> None:
    addr = f"unix:{tmp_path / 'socket'}"
    with corral.serve("CartPole-v1", addr):
        envs = corral.connect(addr, 2)
        envs.reset()
    with corral.serve("Acrobot-v1", addr):
        with pytest.raises(errors.SpaceError, match="other envs now"):
            envs.reset()
        envs.close()


class Sleeper(gymnasium.Env[Any, Any]):
    """An env with a call that takes its time."""

    observation_space = spaces.Discrete(9)
    action_space = spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        return 0, {}

    def step(self, action: Any) -> Any:
        return 1, 1.0, False, False, {}

    def nap(self, seconds: float) -> str:
        time.sleep(seconds)
        return "slept"


@pytest.fixture
def sleeping() -> Iterator[Any]:
    make: Any = lambda num_envs: corral.from_gymnasium([Sleeper] * num_envs)  # noqa: E731
    with corral.serve(make, "127.0.0.1:0") as server:
        yield server


def test_a_call_that_takes_longer_than_the_timeout_costs_the_connection(sleeping: Any) -> None:
    envs = corral.connect(sleeping.address, 2, timeout=0.3)
    envs.reset()
    assert envs.call("nap", 0.01) == ("slept", "slept")
    with pytest.raises(errors.ResetNeededError, match="reset, which connects again"):
        envs.call("nap", 0.6)
    with pytest.raises(errors.EnvTimeoutError):
        envs.step(np.zeros(2, np.int64))
    envs.reset()
    envs.step(np.zeros(2, np.int64))
    envs.close()


def test_ctrl_c_ends_a_call_whose_answer_confuses_nobody(sleeping: Any) -> None:
    envs = corral.connect(sleeping.address, 1)
    envs.reset()
    main = threading.main_thread().ident
    assert main is not None
    threading.Timer(0.2, lambda: signal.pthread_kill(main, signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        envs.call("nap", 1.0)
    assert envs.call("nap", 0.0) == ("slept",)
    assert envs.step(np.zeros(1, np.int64))[1].tolist() == [1]
    envs.close()


FORKED = """
import os, sys, time, numpy as np, corral, signal

signal.alarm(30)
server = corral.serve("CartPole-v1", "127.0.0.1:0")
mine = corral.connect(server.address, 2, plain=sys.argv[1] == "plain")
mine.reset()
child = os.fork()
if child == 0:
    try:
        mine.step(np.zeros(2, np.int64))
    except corral.errors.CorralError as error:
        assert "fork" in str(error), error
        mine.close()
        server.close()
        if sys.argv[2] == "exit":
            sys.exit(7)
        print("waits", flush=True)
        time.sleep(60)
    os._exit(1)
if sys.argv[2] == "exit":
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
else:
    time.sleep(0.3)
mine.step(np.zeros(2, np.int64))
address = server.address
mine.close()
server.close()
# The child has the sockets still, and nobody waits for it.
try:
    corral.connect(address, 1, connect_timeout=0.1)
except corral.errors.EnvError as error:
    print("refused" if "refused" in str(error) else error)
if sys.argv[2] != "exit":
    os.kill(child, signal.SIGKILL)
"""


@pytest.mark.parametrize("how", ["plain", "extended"])
@pytest.mark.parametrize("child", ["exit", "wait"])
def test_a_forked_child_hangs_on_nothing_and_holds_nothing(how: str, child: str) -> None:
    command = [sys.executable, "-W", "ignore", "-c", FORKED, how, child]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.split()[-1] == "refused", ran.stdout


ENDING = """
import sys, numpy as np, corral
server = corral.serve("CartPole-v1", "127.0.0.1:0")
envs = corral.connect(server.address, 2)
envs.reset()
envs.send(np.zeros(2, np.int64))
print("ends", flush=True)
sys.exit(5)
"""


def test_an_interpreter_that_ends_with_a_server_and_a_client_ends() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", ENDING], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ends\n"
        try:
            _, told = process.communicate(timeout=20)
        finally:
            process.kill()
        assert (process.returncode, told) == (5, "")


def test_the_command_serves_several_ids_at_several_addresses(tmp_path: Any) -> None:
    path = tmp_path / "socket"
    command = [sys.executable, "-m", "corral", "serve", "CartPole-v1", "Maze-v0"]
    command += ["--addr", "127.0.0.1:0", "--unix", str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            addresses = [process.stdout.readline().split()[-1] for _ in range(2)]
            assert addresses[1] == f"unix:{path}"
            for address in addresses:
                for id in ("CartPole-v1", "Maze-v0"):
                    with contextlib.closing(corral.connect(address, 2, id=id)) as envs:
                        assert envs.native.id == id
                        envs.reset()
            process.terminate()
            assert process.wait(20) == 0
        finally:
            process.kill()
    assert not os.path.exists(path)


def test_shared_memory_that_a_peer_cannot_have_is_refused(server: Any) -> None:
    with dial(server) as connection:
        assert b"only Unix sockets have shared memory" in greet(connection, 2, shared=True)
        assert is_cut(connection)


@pytest.mark.parametrize("name", list(VENVS))
def test_old_vec_envs_are_served_by_the_extension_too(name: str) -> None:
    session = by_name(name)
    with corral.serve(lambda num_envs: VENVS[name](num_envs, session), "127.0.0.1:0") as server:
        envs = corral.connect(server.address, session["num_envs"])
        assert envs.native.can("remote")
        envs.reset()
        envs.step(envs.action_space.sample())
        picture = next(one for one in session["exchanges"] if one["op"] == "RENDER")["decoded"]
        (drawn, *_) = envs.call("render", mode="rgb_array")
        assert (None if drawn is None else drawn.tolist()) == picture
        envs.close()


def test_a_program_that_has_only_read_the_protocol_plays(server: Any) -> None:
    """CartPole, of which only the bytes are looked at; beside it, an env in this process."""
    here = corral.make_vec("CartPole-v1", 2, autoreset_mode="same_step", max_episode_steps=3)
    with dial(server) as connection:
        settings = {"seed": 5, "max_episode_steps": 3, "autoreset_mode": "same_step"}
        connection.sendall(init(2, version=1, minimum=1, settings=settings))
        told(connection)
        tail = Tail(heard(connection)[1])
        built = tail.built()
        assert tail.at == len(tail.bytes)
        [observation], nodes = built["observation"]
        assert nodes == [("", 0, 0)]
        space = here.single_observation_space
        assert (observation["dtype"], observation["shape"]) == ("float32", [4])
        assert np.array(observation["high"], np.float32).tolist() == space.high.tolist()
        [action], _ = built["action"]
        assert (action["discrete"], action["low"], action["high"]) == (True, [0], [1])
        assert (built["id"], built["num_envs"], built["autoreset"]) == ("CartPole-v1", 2, 1)
        assert (built["max_episode_steps"], built["seeded"]) == (3, True)
        assert built["metadata"]["render_fps"] == here.metadata["render_fps"]
        # All envs, two seeds (zigzag), no options.
        connection.sendall(message(RESET, bytes([0, 2, 1, 18, 1, 20, 2, 0])))
        _, rows = heard(connection)
        shown, _ = here.reset(seed=[9, 10])
        assert rows[:32] == shown.tobytes()
        for step in range(3):
            actions = np.array([1, 0])
            connection.sendall(message(STEP, rows=2, columns=actions.tobytes() + bytes(48)))
            _, rows = heard(connection)
            shown, rewards, terminated, truncated, infos = here.step(actions)
            assert rows[:32] == shown.tobytes()
            assert rows[64:80] == rewards.tobytes()
            assert rows[128:130] == terminated.tobytes()
            assert rows[192:194] == truncated.tobytes()
            assert rows[256:258] == bytes(2), "rows of a step"
            assert rows[320:322] == (terminated | truncated).tobytes(), "rows that ended"
            if step == 2:
                assert rows[384:416] == np.stack(list(infos["final_obs"])).tobytes()
                assert len(rows) == 448
        connection.sendall(message(ASK, bytes([5, 1, 1, 0]) + b"\x05hello" + bytes([1, 0, 2, 0])))
        kind, answer = heard(connection)
        assert (kind, answer[:2]) == (ANSWER, bytes([1, 0])), "an error, which is a text"
        assert b"hello" in answer
