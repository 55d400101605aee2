"""Kernels give the same bytes on every CPU, with and without its vector registers."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

PROGRAM = """
import hashlib, numpy as np, corral
digest = hashlib.sha256()
for num_envs in (1, 7, 200):
    envs = corral.make_vec("CartPole-v1", num_envs, seed=3, fast=True, num_threads=1)
    digest.update(envs.reset()[0])
    for t in range(300):
        for array in envs.step((np.arange(num_envs) * 7 + t * t // 3) % 2)[:4]:
            digest.update(array)
print(digest.hexdigest())
"""

# Of a run on a Cascade Lake. No libm has a part in it, so no machine may differ.
RECORDED = "47241c2d6063456c53d3ba15f542393f3b2fef5105f94428271e9e8c1fc06cae"


@pytest.mark.parametrize("level", ["any", "avx2", "avx512"])
def test_a_kernel_gives_the_same_bytes_on_every_cpu(level: str) -> None:
    """A CPU that has not what a level names runs the best that it has."""
    environment = {**os.environ, "CORRAL_SIMD": level}
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() == RECORDED
