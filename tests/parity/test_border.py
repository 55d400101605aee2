"""Border's own evaluator over our CartPole finds what `corral.evaluate` finds."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import corral

ROOT = Path(__file__).resolve().parents[2]
CRATE = ROOT / "examples" / "border"
EPISODES = 100


def balance(observations: Any) -> Any:
    """The policy of `examples/border/tests/policy.rs`."""
    return (observations[:, 2] + observations[:, 3] > 0).astype(np.int64)


@pytest.mark.thorough
@pytest.mark.timeout(1200)
def test_borders_evaluator_finds_the_same_mean_return() -> None:
    build = ["cargo", "run", "--quiet", "--locked", "--example", "evaluate"]
    where = ["--target-dir", str(ROOT / "target" / "border"), "--", str(EPISODES)]
    ended = subprocess.run([*build, *where], cwd=CRATE, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    ours = corral.evaluate(balance, "CartPole-v1", range(EPISODES))
    # Border's mean is a float32. The returns are whole numbers that a float32 holds.
    assert np.float32(ended.stdout.strip()) == np.float32(ours.returns.sum()) / np.float32(EPISODES)
