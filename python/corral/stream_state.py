"""How far the random stream of an env was drawn, read from its saved state."""

from __future__ import annotations

import numpy as np

_MOST = 10_000
_MULTIPLIER = 0x2360ED051FC65DA44385DF649FCCF645
_WORD = 2**64


def drawn(state: bytes, seed: int) -> int:
    """How many words were drawn from the stream of `seed` whose generator is in `state`.

    A saved generator is its state and its increment, which is the seed's own. 0 where no
    generator of this seed is in the state, where any is as it began, or where all have moved by
    more than 10,000 words.
    """
    bits = np.random.PCG64(seed).state["state"]
    now, increment = int(bits["state"]), int(bits["inc"])
    if _saved(increment) not in state or _saved(now) + _saved(increment) in state:
        return 0
    for count in range(1, _MOST + 1):
        now = (now * _MULTIPLIER + increment) % 2**128
        if _saved(now) + _saved(increment) in state:
            return count
    return 0


def _saved(number: int) -> bytes:
    """A number of 128 bits as Postcard writes two words of 64, the high one first."""
    return _varint(number // _WORD) + _varint(number % _WORD)


def _varint(word: int) -> bytes:
    out = bytearray()
    while word >= 128:
        out.append(word % 128 + 128)
        word //= 128
    return bytes([*out, word])
