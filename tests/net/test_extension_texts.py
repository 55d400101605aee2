"""Rows whose texts a server of the extension tells not, not all, or wrongly."""

from __future__ import annotations

import contextlib

import pytest

import corral
from corral import errors
from tests.net.extended import HEADER, ROWS, Parrot, Wire, headers

# A row's text, and that of a row that did not end.
TEXT, NONE = b"\0\4\x1cget to the green goal square", b"\0\0"


def minigrids_answers() -> tuple[bytes, int]:
    """What a server of two MiniGrids says until they are reset, and where its rows' header is."""
    with corral.serve("MiniGrid-Empty-5x5-v0", ("127.0.0.1", 0)) as server:
        wire = Wire(server.listen())
        with contextlib.closing(corral.connect(wire.address, 2)) as envs:
            envs.reset()
        wire.join(20)
    answered = wire.answered
    talk = headers(answered, 14 + int.from_bytes(answered[10:14], "big"))
    return answered, next(at for at in talk if HEADER.unpack_from(answered, at)[1] == ROWS)


def with_rows(answered: bytes, at: int, said: bytes) -> bytes:
    """What was answered until the header at `at`, whose message is `said`."""
    return (
        answered[:at]
        + len(said).to_bytes(4, "little")
        + answered[at + 4 :][: HEADER.size - 4]
        + said
    )


def told_columns(*columns: tuple[bytes, int]) -> bytes:
    """A tail's beginning: nothing refused, and columns of a value for as many rows."""
    shown = [bytes([rows]) + value * rows for value, rows in columns]
    return bytes([0, len(columns)]) + b"".join(shown)


@pytest.mark.parametrize(
    ("tail", "why"),
    [
        (told_columns((TEXT, 1), (NONE, 2)), "1 values of leaf 'mission', where 2"),
        (told_columns((TEXT, 3), (NONE, 2)), "3 values of leaf 'mission', where 2"),
        (told_columns((TEXT, 0), (NONE, 2)), "0 values of leaf 'mission', where 2"),
        (told_columns((TEXT, 2), (NONE, 1)), "1 values of leaf 'mission', where 2"),
        (told_columns((TEXT, 2)), "1 columns of no fixed shape, where 2"),
        (told_columns((TEXT, 2), (NONE, 2), (NONE, 2)), "3 columns of no fixed shape, where 2"),
        (told_columns(), "0 columns of no fixed shape, where 2"),
        (None, "0 columns of no fixed shape, where 2"),
        (b"\1\1x\0", "it refused work and sent its rows"),
    ],
)
def test_a_server_that_tells_not_each_text_of_its_rows_is_cut_off(
    tail: bytes | None, why: str
) -> None:
    answered, at = minigrids_answers()
    columns = answered[at + HEADER.size :].split(told_columns((TEXT, 2), (NONE, 2)))[0]
    # Nothing else is told: no infos, no final infos, no failures.
    said = columns if tail is None else columns + tail + bytes(4)
    with Parrot() as parrot:
        parrot.says = with_rows(answered, at, said)
        with (
            contextlib.closing(corral.connect(parrot.address, 2)) as envs,
            pytest.raises(errors.EnvError, match=why),
        ):
            envs.reset()


@pytest.mark.parametrize("value", [NONE, b"\0\1\1", b"\0\2\4", b"\0\4\x61" + b"x" * 97])
def test_what_is_no_text_of_the_space_fails_its_env_alone(value: bytes) -> None:
    answered, at = minigrids_answers()
    right = told_columns((TEXT, 2), (NONE, 2))
    columns, rest = answered[at + HEADER.size :].split(right)[0], bytes(4)
    said = columns + right.replace(TEXT, value, 1) + rest
    with Parrot() as parrot:
        parrot.says = with_rows(answered, at, said)
        with (
            contextlib.closing(corral.connect(parrot.address, 2)) as envs,
            pytest.raises(errors.EnvError, match="leaf 'mission': ") as raised,
        ):
            envs.reset()
    assert [failure.slot for failure in raised.value.failures] == [0]
