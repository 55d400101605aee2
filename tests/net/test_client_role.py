"""What does a server's misuse cost a client of plain netenv? The connection, and an error."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

import numpy as np
import pytest

import corral
from corral import errors
from tests.net.extended import Parrot
from tests.net.recorded import by_name, exchanges

SESSION = by_name("plain_spaces_wrapped")
# The answers to INIT, to a RESET and to a STEP.
HELLO, *ANSWERS = [answer for _, _, answer in exchanges(SESSION)[:3]]
NUM_ENVS = SESSION["num_envs"]


def connect(parrot: Parrot) -> corral.VectorEnv:
    return corral.connect(parrot.address, NUM_ENVS, plain=True, timeout=5.0, connect_timeout=5.0)


WHOLE = HELLO + b"".join(ANSWERS)
# Within the JSON, which is one text, every eighth.
SOME = sorted({*range(20), *range(20, len(HELLO), 8), *range(len(HELLO) - 2, len(WHOLE))})


@pytest.mark.parametrize(
    "counts",
    [
        pytest.param(SOME, id="some"),
        pytest.param(range(len(WHOLE)), id="every", marks=pytest.mark.thorough),
    ],
)
def test_a_beginning_of_a_servers_answers_is_an_error_of_the_client(counts: Sequence[int]) -> None:
    with Parrot() as parrot:
        for count in counts:
            parrot.says = WHOLE[:count]
            with pytest.raises(errors.EnvError):
                play(parrot)


def play(parrot: Parrot) -> None:
    with contextlib.closing(connect(parrot)) as envs:
        envs.reset()
        envs.step(np.zeros(NUM_ENVS, np.int64))


@pytest.mark.parametrize("length", [0, 1, 2**31, 2**32 - 1])
def test_no_length_that_a_server_names_is_believed(length: int) -> None:
    field = length.to_bytes(4, "big")
    with Parrot() as parrot:
        parrot.says = HELLO[:10] + field + HELLO[14:]
        with pytest.raises(errors.EnvError, match="no envs from the netenv server"):
            connect(parrot)
        parrot.says = HELLO + b"\3" + field + b"{"
        with contextlib.closing(connect(parrot)) as envs:
            with pytest.raises(errors.EnvError, match=r"127\.0\.0\.1:\d+ broke"):
                envs.call("render", mode="rgb_array")
            parrot.says = HELLO + ANSWERS[0]
            envs.reset()
        parrot.says = HELLO + ANSWERS[0]
        with contextlib.closing(connect(parrot)) as envs:
            envs.reset()
            with pytest.raises(errors.EnvError, match="was lost in render"):
                envs.call("render", mode="rgb_array")


def test_a_header_of_arrays_that_no_memory_holds_is_refused() -> None:
    """The shape that the server tells makes payloads of any size."""
    said = HELLO[14:].replace(b'"n": 3', b'"n": 4611686018427387904')
    with Parrot() as parrot:
        parrot.says = HELLO[:10] + len(said).to_bytes(4, "big") + said + ANSWERS[0]
        with contextlib.closing(connect(parrot)) as envs:
            assert envs.single_action_space.n == 2**62
        said = HELLO[14:].replace(b'"Discrete"', b'"MultiBinary"').replace(b'"int64"', b'"int8"', 1)
        said = said.replace(b'"n": 3', b'"n": 4611686018427387904')
        parrot.says = HELLO[:10] + len(said).to_bytes(4, "big") + said
        with pytest.raises(errors.EnvError, match="bytes, which is the limit"):
            connect(parrot)
