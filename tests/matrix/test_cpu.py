"""Envs give the same bytes in all vector registers, and one by one."""

from __future__ import annotations

import os
import platform
import subprocess
import sys

import pytest

import corral

PROGRAM = """
import hashlib, numpy as np, corral
print(*corral.simd())
for id, options in [
    ("CartPole-v1", {}),
    ("CartPole-v1", {"low": -1.5, "high": 1.5}),
    ("Pendulum-v1", {}),
    ("MountainCar-v0", {}),
    ("MountainCarContinuous-v0", {}),
    ("Acrobot-v1", {}),
]:
    digest = hashlib.sha256()
    for num_envs, num_threads in ((1, 1), (7, 1), (200, 1), (200, 2)):
        envs = corral.make_vec(id, num_envs, seed=3, num_threads=num_threads)
        digest.update(envs.reset(options=options)[0])
        choices = getattr(envs.single_action_space, "n", None)
        for t in range(300):
            numbers = np.arange(num_envs) * 7 + t * t // 3
            force = ((numbers % 41 - 20) * 0.13).astype(np.float32)[:, None]
            for array in envs.step(force if choices is None else numbers % choices)[:4]:
                digest.update(array)
        for slot in range(num_envs):
            digest.update(envs.native.save(slot))
    print(id, digest.hexdigest())
"""
# glibc then gives the functions that it has for CPUs without fused multiply-adds.
NO_FMA = {
    "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-AVX2_Usable,-FMA,-FMA_Usable,-FMA4,-FMA4_Usable"
}


def played(level: str, **more: str) -> tuple[list[str], list[str]]:
    """What is in use at a level, and the digests."""
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, "CORRAL_SIMD": level, **more},
        capture_output=True,
        text=True,
        check=True,
    )
    in_use, *digests = run.stdout.splitlines()
    return in_use.split(), digests


@pytest.mark.parametrize("more", [{}, NO_FMA], ids=["this libm", "a libm without FMA"])
def test_kernels_give_the_same_bytes_as_envs_one_by_one(more: dict[str, str]) -> None:
    """A CPU that has not what a level names runs the best that it has."""
    in_use, expected = played("any", **more)
    assert in_use == ["any", "library"]
    assert len(set(expected)) == len(expected) == 6
    sines = set()
    for level in ("avx2", "avx512"):
        in_use, digests = played(level, **more)
        assert digests == expected, in_use
        sines.add(in_use[1])
    if platform.libc_ver()[0] == "glibc" and platform.machine() == "x86_64":
        assert sines <= {"plain" if more else "fused", "library"}


def test_this_process_tells_what_it_uses() -> None:
    assert corral.simd().registers in ("any", "avx2", "avx512")
    assert corral.simd().sines in ("fused", "plain", "library")
