"""Plays CartPole beside Gymnasium's own, from the same seeds with the same actions.

Run as a program, so that NumPy's CPU features can be chosen before it is imported:
`python cart_pole.py SEEDS EPISODES` prints one JSON object.
"""

import json
import math
import sys

import gymnasium
import numpy as np

import corral

AVX512 = "AVX512F AVX512CD AVX512_SKX AVX512_CLX AVX512_CNL AVX512_ICL AVX512_SPR X86_V4"


def numpy_is_libm(samples: int = 50_000) -> bool:
    """Whether NumPy's float64 sin and cos are libm's, on the pole's range of angles."""
    angles = np.random.default_rng(0).uniform(-0.5, 0.5, samples)
    return all(np.sin(a) == math.sin(a) and np.cos(a) == math.cos(a) for a in angles)


def compare(seeds: int, episodes: int) -> dict[str, object]:
    """The first difference, or None, and how much was compared."""
    theirs = gymnasium.make("CartPole-v1")
    ours = corral.make("CartPole-v1")
    steps = truncated = 0
    for seed in range(seeds):
        actions = np.random.default_rng([seed, 1])
        for episode in range(episodes):
            start = {"seed": seed} if episode == 0 else {}
            expected, _ = theirs.reset(**start)
            got, _ = ours.reset(**start)
            if got.tobytes() != expected.tobytes() or got.dtype != expected.dtype:
                return {"difference": f"seed {seed}, episode {episode}: reset {got} != {expected}"}
            # Every fourth episode is balanced by a rule, and so reaches the time limit.
            balanced = (seed + episode) % 4 == 0
            done = False
            while not done:
                rule = int(expected[2] + expected[3] > 0)
                action = rule if balanced else int(actions.integers(2))
                expected, *flags = theirs.step(action)[:4]
                got, *our_flags = ours.step(action)[:4]
                steps += 1
                # Observations are float32: the float64 state, which our saved bytes hold as it
                # is, shows differences in the last bit long before they do.
                exact = theirs.unwrapped.state.tobytes() in ours.native.save(0)
                if not exact or got.tobytes() != expected.tobytes() or our_flags != flags:
                    where = f"seed {seed}, episode {episode}, step {steps}"
                    seen = f"{got, our_flags} and {expected, flags}, states alike: {exact}"
                    return {"difference": f"{where}: {seen}"}
                done = flags[1] or flags[2]
            truncated += bool(flags[2])
    return {"difference": None, "steps": steps, "truncated": truncated}


if __name__ == "__main__":
    result = {"libm": numpy_is_libm(), **compare(int(sys.argv[1]), int(sys.argv[2]))}
    print(json.dumps(result))
