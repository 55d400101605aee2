"""What `debug=True` costs: the time of a step of batches with it and without, in turns."""

from __future__ import annotations

import time

import corral

BATCHES = {"CartPole-v1": 1024, "Pendulum-v1": 1024, "MiniGrid-Empty-8x8-v0": 256}
ROUNDS, STEPS = 15, 150


def main() -> None:
    """Prints the best times and their ratio."""
    for id, num_envs in BATCHES.items():
        makes = {
            debug: corral.make_vec(id, num_envs, seed=0, num_threads=1, debug=debug)
            for debug in (False, True)
        }
        actions = makes[False].action_space.sample()
        best = dict.fromkeys(makes, float("inf"))
        for envs in makes.values():
            envs.reset()
        for _ in range(ROUNDS):
            for debug, envs in makes.items():
                started = time.perf_counter()
                for _ in range(STEPS):
                    envs.step(actions)
                best[debug] = min(best[debug], time.perf_counter() - started)
        plain, checked = (best[debug] / STEPS / num_envs * 1e9 for debug in (False, True))
        ratio = checked / plain
        print(f"{id}, {num_envs} envs: {plain:.1f} ns, with debug {checked:.1f} ns ({ratio:.2f})")


if __name__ == "__main__":
    main()
