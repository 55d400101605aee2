"""Measures what Ray costs on this machine, and tells by these figures what many actors would do.

    pip install ray
    python tools/ray_model.py

Model: an actor plays fragments one after the other. The driver takes each (a call, and so many
seconds a byte over the network), joins it to the others and learns from it. Actors and driver work
at the same time, so the rate is that of whoever is slower.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import ray

import corral
import corral.ray

STEPS = 128
ACTORS = (1, 2, 5, 10, 20, 50, 100)
# Bytes a second that one machine's network carries, 10 Gbit/s.
NETWORK = 1.25e9


class Case(NamedTuple):
    """An env, how many of it an actor has, the seconds a row that a learner takes, and those that
    a slower env would take on top."""

    id: str
    num_envs: int
    learner: float
    slower: float = 0.0


# A PPO update of the demo takes 4 µs a row on one core; one of a small convolutional network, 6
# epochs on a GPU, about 20 µs.
CASES = (
    Case("CartPole-v1", 256, 4e-6),
    Case("CartPole-v1", 64, 4e-6, slower=1e-3),
    Case("Maze-v0", 64, 20e-6),
)


def make_policy(weights: Any) -> Callable[[Any], Any]:
    """Matrix products of 64 hidden units over every observation, as flat float32."""
    first, last = weights

    def act(seen: Any) -> Any:
        flat = seen.reshape(len(seen), -1).astype(np.float32)
        return (np.tanh(flat @ first) @ last).argmax(axis=1)

    return act


def weights_for(case: Case) -> Any:
    """Random weights of that policy."""
    envs = corral.make_vec(case.id, 1)
    size, actions = envs.single_observation_space.shape, envs.single_action_space.n
    rng = np.random.default_rng(0)
    shape = (int(np.prod(size)), 64)
    return (rng.standard_normal(shape).astype(np.float32), rng.standard_normal((64, int(actions))))


def best(measure: Callable[[], float], times: int = 7) -> float:
    """The median of some measurements."""
    return float(np.median([measure() for _ in range(times)]))


def size_of(rollout: corral.Rollout) -> int:
    """The bytes of a fragment of one array per observation."""
    arrays = (rollout.observations, rollout.actions, rollout.rewards, rollout.row_kinds)
    return sum(one.nbytes for one in (*arrays, rollout.terminations, rollout.truncations))


def measured(case: Case) -> tuple[float, float, int]:
    """Seconds to play a fragment, seconds that the driver takes for one, and its bytes."""
    weights = weights_for(case)
    envs = corral.make_vec(case.id, case.num_envs, seed=0, num_threads=1)
    envs.reset()

    def play() -> float:
        began = time.perf_counter()
        envs.rollout(make_policy(weights), STEPS)
        return time.perf_counter() - began

    play()
    alone = best(play)
    with corral.ray.pools(case.id, case.num_envs, 1, seed=0) as pools:

        def take() -> float:
            pools.collect(weights, make_policy, STEPS)
            # The next fragment is there before it is asked for.
            time.sleep(2 * alone + 0.05)
            began = time.perf_counter()
            parts = pools.collect(weights, make_policy, STEPS)
            corral.Rollout.joined([part.rollout for part in parts])
            return time.perf_counter() - began

        taken = best(take)
        size = size_of(pools.collect(weights, make_policy, STEPS)[0].rollout)
    return alone, taken, size


def main() -> None:
    """Prints a table for each case."""
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, configure_logging=False)
    for case in CASES:
        alone, taken, size = measured(case)
        rows = case.num_envs * STEPS
        alone += rows * case.slower
        learn = rows * case.learner
        driver = taken + learn
        slower = ", 1 ms slower a step" if case.slower else ""
        print(
            f"\n{case.id}{slower}, {case.num_envs} envs an actor, fragments of {STEPS} steps: "
            f"{size / 2**20:.1f} MiB, played in {alone * 1e3:.1f} ms, "
            f"taken in {taken * 1e3:.2f} ms, learned from in {learn * 1e3:.1f} ms\n"
        )
        print("| actors | steps a second | MB a second | the learner is busy | what limits |")
        print("|---|---|---|---|---|")
        for actors in ACTORS:
            played = actors / alone
            wire = NETWORK / size
            rate = min(played, 1 / driver, wire)
            limit = {played: "the actors", 1 / driver: "the learner", wire: "the network"}[rate]
            print(
                f"| {actors} | {rate * rows:,.0f} | {rate * size / 1e6:,.0f} | "
                f"{rate * driver:.0%} | {limit} |"
            )
    ray.shutdown()


if __name__ == "__main__":
    main()
