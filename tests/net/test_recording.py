"""Is it the original's protocol, byte for byte?

The recording was taken from the original over TCP. Our server answers the recorded client, and our
client drives a server that answers with the recorded bytes.
"""

from __future__ import annotations

import inspect
import threading
from typing import Any

import numpy as np
import pytest

import corral
from tests.net.recorded import (
    SESSIONS,
    VENVS,
    Recorded,
    dial,
    exchanges,
    json_of,
    read,
)

NAMES = [session["name"] for session in SESSIONS]


@pytest.fixture(params=SESSIONS, ids=NAMES)
def session(request: pytest.FixtureRequest) -> Any:
    return request.param


def serving(session: dict[str, Any], made: list[Any], addr: Any = ("127.0.0.1", 0)) -> Any:
    def make(num_envs: int, **options: Any) -> Any:
        assert options == session["env_options"]
        made.append(VENVS[session["name"]](num_envs, session))
        return made[-1]

    kind = "unix" if isinstance(addr, str) else "tcp"
    return corral.netenv.Server(addr=addr, make_venv=make, socket_kind=kind)


@pytest.mark.parametrize("kind", ["tcp", "unix"])
def test_our_server_answers_the_recorded_client_as_the_original_did(
    session: dict[str, Any], kind: str, tmp_path: Any
) -> None:
    made: list[Any] = []
    addr = ("127.0.0.1", 0) if kind == "tcp" else str(tmp_path / "socket")
    with serving(session, made, addr) as server, dial(server) as connection:
        (_, asked, answer), *rest = exchanges(session)
        connection.sendall(asked[:10])
        # The command's byte comes before the rest of the request is there.
        assert read(connection, 10) == answer[:10]
        connection.sendall(asked[10:])
        length = int.from_bytes(read(connection, 4), "big")
        assert json_of(read(connection, length)) == json_of(answer)
        for operation, asked, answer in rest:
            if operation == "CLOSE":
                break
            connection.sendall(asked)
            if operation == "RENDER":
                head = read(connection, 5)
                assert head[:1] == answer[:1]
                told = json_of(read(connection, int.from_bytes(head[1:], "big")))
                assert told == json_of(answer)
            else:
                assert read(connection, len(answer)) == answer, operation
        assert made[0].drawn == [{"mode": "rgb_array"}]
    assert made[0].closed.wait(20)


def test_commands_may_be_sent_before_the_earlier_ones_are_answered(session: dict[str, Any]) -> None:
    with serving(session, []) as server, dial(server) as connection:
        (_, hello, _), *rest = exchanges(session)
        connection.sendall(hello + b"".join(asked for _, asked, _ in rest))
        read(connection, 10)
        read(connection, int.from_bytes(read(connection, 4), "big"))
        for operation, _, answer in rest:
            if operation == "RENDER":
                read(connection, int.from_bytes(read(connection, 5)[1:], "big"))
            else:
                assert read(connection, len(answer)) == answer


def test_a_step_before_the_first_reset_is_answered(session: dict[str, Any]) -> None:
    with serving(session, []) as server, dial(server) as connection:
        (_, hello, _), *rest = exchanges(session)
        _, asked, answer = next(one for one in rest if one[0] == "STEP")
        connection.sendall(hello + asked)
        read(connection, 10)
        read(connection, int.from_bytes(read(connection, 4), "big"))
        assert read(connection, len(answer)) == answer


def test_our_client_steps_before_a_reset_with_the_originals_bytes(session: dict[str, Any]) -> None:
    first, *rest = session["exchanges"]
    step = next(one for one in rest if one["op"] == "STEP")
    server = Recorded({**session, "exchanges": [first, step]})
    client = corral.netenv.Client(
        server.address, session["num_envs"], env_options=session["env_options"]
    )
    with pytest.raises(corral.errors.ResetNeededError):
        client.envs.observe()
    observations, rewards, *_ = client.step(_actions(step))
    venv = VENVS[session["name"]](session["num_envs"], session)
    _check(observations, venv.shown(step))
    assert rewards.tolist() == step["decoded"]["rews"]
    _check(client.envs.observe(), venv.shown(step))
    with pytest.raises(corral.errors.EnvError, match="broke"):
        client.step(_actions(step))
    with pytest.raises(corral.errors.ResetNeededError):
        client.step(_actions(step))
    client.close()
    server.join(20)
    assert server.received[1] == bytes.fromhex(step["c2s_hex"])


def _actions(step: dict[str, Any]) -> Any:
    given = step["action"]
    if isinstance(given, dict):
        return {"move": np.array(given["move"]), "force": np.array(given["force"], np.float32)}
    return np.array(given)


@pytest.mark.parametrize("kind", ["tcp", "unix"])
def test_our_client_says_what_the_originals_said_and_reads_what_it_read(
    session: dict[str, Any], kind: str, tmp_path: Any
) -> None:
    server = Recorded(session, None if kind == "tcp" else str(tmp_path / "socket"))
    client = corral.netenv.Client(
        server.address, session["num_envs"], socket_kind=kind, env_options=session["env_options"]
    )
    played = [one for one in session["exchanges"] if "decoded" in one]
    venv = VENVS[session["name"]](session["num_envs"], session)
    for one in played:
        if one["op"].startswith("RESET"):
            _check(client.reset(), venv.shown(one))
        elif one["op"] == "STEP":
            observations, rewards, dones, infos = client.step(_actions(one))
            _check(observations, venv.shown(one))
            assert rewards.dtype == np.float32
            assert rewards.tolist() == one["decoded"]["rews"]
            assert dones.tolist() == one["decoded"]["dones"]
            assert infos == [{}] * session["num_envs"]
        else:
            picture = client.render(mode="rgb_array")
            assert (None if picture is None else picture.tolist()) == one["decoded"]
    assert client.reward_range == getattr(venv, "reward_range", (-np.inf, np.inf))
    assert client.metadata == venv.metadata
    assert client.observation_space == venv.observation_space
    assert client.action_space == venv.action_space
    client.close()
    server.join(20)
    assert not server.is_alive()
    sent = [asked for _, asked, _ in exchanges(session)]
    assert server.received[0][:14] == sent[0][:14]
    assert json_of(server.received[0]) == json_of(sent[0])
    for got, asked in zip(server.received[1:], sent[1:], strict=True):
        if b"{" in asked:
            assert json_of(got) == json_of(asked)
        else:
            assert got == asked


def _check(shown: Any, expected: Any) -> None:
    if not isinstance(expected, dict):
        shown, expected = {"_": shown}, {"_": expected}
    assert list(shown) == list(expected)
    for name, array in expected.items():
        assert shown[name].dtype == array.dtype
        np.testing.assert_array_equal(shown[name], array)


@pytest.mark.parametrize("shared", [False, True])
def test_our_client_and_our_server_understand_each_other(
    session: dict[str, Any], shared: bool, tmp_path: Any
) -> None:
    made: list[Any] = []
    with serving(session, made, str(tmp_path / "socket")) as server:
        client = corral.netenv.Client(
            server.listen(),
            session["num_envs"],
            socket_kind="unix",
            env_options=session["env_options"],
            use_shared_memory=shared,
        )
        venv = VENVS[session["name"]](session["num_envs"], session)
        first, *_ = [one for one in session["exchanges"] if one["op"] == "RESET"]
        steps = [one for one in session["exchanges"] if one["op"] == "STEP"]
        _check(client.reset(), venv.shown(first))
        for step in steps:
            observations, rewards, dones, _ = client.step(recorded_actions(step["action"]))
            _check(observations, venv.shown(step))
            assert rewards.tolist() == step["decoded"]["rews"]
            assert dones.tolist() == step["decoded"]["dones"]
        for given, step in zip(made[0].given, steps, strict=True):
            _check(given, recorded_actions(step["action"]))
        client.close()
        assert made[0].closed.wait(20)


def recorded_actions(given: Any) -> Any:
    if not isinstance(given, dict):
        return np.array(given)
    return {"move": np.array(given["move"]), "force": np.array(given["force"], np.float32)}


def test_shared_memory_is_as_the_reference_says(tmp_path: Any) -> None:
    """A bare client: size, offsets and the descriptor, with the sizes measured on the original."""
    import array
    import os
    import socket

    session = next(one for one in SESSIONS if one["name"] == "dict_spaces")
    with serving(session, [], str(tmp_path / "socket")) as server, dial(server) as connection:
        (_, hello, answer), *rest = exchanges(session)
        head, text = hello[:10], hello[14:].replace(b"false", b"true")
        connection.sendall(head + len(text).to_bytes(4, "big") + text)
        read(connection, 10)
        read(connection, int.from_bytes(read(connection, 4), "big"))
        word, control, _, _ = connection.recvmsg(7, socket.CMSG_SPACE(4))
        assert word == b"send_fd"
        [(_, _, data)] = control
        memory = array.array("i", data)[0]
        try:
            assert os.fstat(memory).st_size == 702
            for operation, asked, answer in rest:
                if operation.startswith("RESET"):
                    connection.sendall(asked)
                elif operation == "STEP":
                    os.pwrite(memory, asked[1:], 0)
                    connection.sendall(asked[:1])
                else:
                    continue
                assert read(connection, 1) == answer[:1]
                assert os.pread(memory, 448, 192) == answer[1:]
        finally:
            os.close(memory)


def test_all_named_arguments_reach_the_render_of_the_envs() -> None:
    session = next(one for one in SESSIONS if one["name"] == "dict_spaces")
    given = {"width": 3, "names": ["a", None], "scale": float("inf"), "deep": {"on": True}}
    made: list[Any] = []
    with serving(session, made) as server:
        client = corral.netenv.Client(
            server.listen(), session["num_envs"], env_options=session["env_options"]
        )
        picture = client.render("rgb_array", **given)
        recorded = next(one for one in session["exchanges"] if one["op"] == "RENDER")["decoded"]
        assert picture.tolist() == recorded
        client.render()
        assert made[0].drawn == [{"mode": "rgb_array", **given}, {"mode": "human"}]
        client.close()


def test_arguments_are_the_originals_with_its_defaults() -> None:
    """As the reference has them; what is ours alone is given by name."""
    for ours, originals in (
        (
            corral.netenv.Client,
            "addr, num_envs, socket_kind='tcp', env_options=None, reuse_arrays=False, "
            "use_shared_memory=False",
        ),
        (corral.netenv.Server, "addr, make_venv, socket_kind='tcp'"),
    ):
        bare = [
            one.replace(annotation=inspect.Parameter.empty)
            for one in inspect.signature(ours).parameters.values()
            if one.kind is not inspect.Parameter.KEYWORD_ONLY
        ]
        assert str(inspect.Signature(bare)) == f"({originals})"
    own = inspect.signature(corral.netenv.Server).parameters
    assert own["idle_timeout"].default == 10.0, "that of the original"


def test_the_seeds_usage_runs_with_only_the_import_changed() -> None:
    from corral.netenv import Client, Server

    session = next(one for one in SESSIONS if one["name"] == "plain_spaces_wrapped")
    s = Server(
        addr=("127.0.0.1", 0),
        make_venv=lambda num_envs: VENVS[session["name"]](num_envs, session),
    )
    addr = s.listen()
    running = threading.Thread(target=s.run)
    running.start()
    env = Client(addr=addr, num_envs=16)
    assert env.num_envs == 16
    env.close()
    s.close()
    running.join(20)
    assert not running.is_alive()
