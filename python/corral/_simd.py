"""Which vector registers step the built-in envs in this process."""

from __future__ import annotations

from typing import NamedTuple

from corral import _native


class Simd(NamedTuple):
    """What `corral.simd` tells."""

    registers: str
    """"avx512", "avx2", or "any": those that every CPU of this kind has."""
    sines: str
    """By which formulas sines and cosines are computed in vector registers: "fused" or "plain",
    those of glibc with and without fused multiply-adds. "library" where the C library's own
    functions are called, env by env."""


def simd() -> Simd:
    """Which vector registers step the built-in envs in this process, and how.

    CartPole-v1, Pendulum-v1, MountainCar-v0, MountainCarContinuous-v0 and Acrobot-v1 are stepped in
    vector registers unless `sines` is "library". Their bytes are the same either way. The variable
    `CORRAL_SIMD` ("any", "avx2" or "avx512"), read once, names the widest registers to use; "any"
    steps these envs one by one.

    Returns:
        The registers, and the formulas.
    """
    return Simd(*_native.simd())
