"""Trains PPO in NumPy on three envs, and evaluates each on the episodes of indices 0 to 999.

    python examples/ppo.py [--quick]

The algorithm is `corral.examples.ppo`. Needs nothing but corral. Measured on 2 shared cores:

    CartPole-v1      101,472 steps in  13.9 s, then a mean return of 500.000 in 1000 episodes
    Catch-v0          66,368 steps in   8.6 s, then a mean return of 1.000 in 1000 episodes
    ConnectFour-v0   348,889 steps in 123.1 s, then a mean return of 0.800 in 1000 episodes

Connect Four stops after 120 seconds, and reaches more where these are not shared.
"""

from __future__ import annotations

import os
import sys
from dataclasses import replace

# The matrices are so small that a second BLAS thread saves next to no time.
os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"

import corral
from corral.examples.ppo import Config, train

RUNS = [
    Config("CartPole-v1"),
    Config("Catch-v0", solved_return=1.0, max_steps=200_000, entropy_bonus=0.01),
    Config(
        "ConnectFour-v0",
        # A random opponent; a stone into a full column loses.
        solved_return=0.99,
        max_steps=3_000_000,
        max_seconds=120,
        num_envs=256,
        hidden=(128, 128),
        learning_rate=1e-3,
        entropy_bonus=0.005,
    ),
]


def main(quick: bool) -> None:
    """Trains on each env, for a moment only if `quick`."""
    for config in RUNS:
        if quick:
            config = replace(config, max_steps=10_000)
        progress = list(train(1, config))[-1]
        result = corral.evaluate(
            progress.agent.act,
            config.env,
            indices=range(100 if quick else 1000),
            num_envs=64,
            **config.options,
        )
        print(
            f"{config.env:15} {progress.steps:9,} steps in {progress.seconds:5.1f} s, then "
            f"a mean return of {result.mean:.3f} in {len(result.returns)} episodes"
        )


if __name__ == "__main__":
    main("--quick" in sys.argv[1:])
