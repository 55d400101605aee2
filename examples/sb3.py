"""Trains Stable-Baselines3's PPO on CartPole, and evaluates it on the episodes of indices 0 to 99.

    python examples/sb3.py [--quick]

`corral.to_sb3` gives a real `VecEnv` of Stable-Baselines3. Needs `pip install 'corral[sb3]'`.
Measured on 2 shared cores, with PyTorch 2.15 and Stable-Baselines3 2.9:

    CartPole-v1: 100,096 steps in 27.2 s, then a mean return of 500.0 in 100 episodes
"""

from __future__ import annotations

import sys
import time

import corral

try:
    from stable_baselines3 import PPO
except ImportError as error:
    sys.exit(
        f"examples/sb3.py needs Stable-Baselines3 and PyTorch: pip install 'corral[sb3]' ({error})"
    )

ID = "CartPole-v1"


def main(quick: bool) -> None:
    """Trains, for a moment only if `quick`."""
    envs = corral.to_sb3(corral.make_vec(ID, 8, seed=0, autoreset_mode="same_step"))
    # As RL Baselines3 Zoo sets them for CartPole; `left` goes from 1 to 0.
    model = PPO(
        "MlpPolicy",
        envs,
        learning_rate=lambda left: 1e-3 * left,
        n_steps=32,
        batch_size=256,
        n_epochs=20,
        gamma=0.98,
        gae_lambda=0.8,
        clip_range=lambda left: 0.2 * left,
        seed=0,
        device="cpu",
    )
    began = time.perf_counter()
    model.learn(4096 if quick else 100_000)
    seconds = time.perf_counter() - began
    result = corral.evaluate(
        lambda observations: model.predict(observations, deterministic=True)[0],
        ID,
        indices=range(100),
        num_envs=32,
    )
    print(
        f"{ID}: {model.num_timesteps:,} steps in {seconds:.1f} s, then a mean return of "
        f"{result.mean:.1f} in {len(result.returns)} episodes"
    )


if __name__ == "__main__":
    main("--quick" in sys.argv[1:])
