"""The demo's PPO with envs in Ray's actors, which play the next fragments while the learner learns.

    python examples/ray_ppo.py [--quick] [--actors 2]

The envs are Gymnasium's CartPole, written in Python: actors are for envs that take as long as the
learning. (Corral's own CartPole takes a hundredth of it.) The policy that plays is one update older
than the one that learns, so the ratio of PPO's objective is to the log probabilities that the
actions were drawn with: the rollouts bring them along. `--actors 0` has the same envs in this
process. Needs Ray (`pip install ray`). Measured on 2 shared cores with OPENBLAS_NUM_THREADS=1, and
as much faster with seeds 2 to 4:

    250,922 steps in 4.0 s with 2 actors: a mean return of 500.0
    243,439 steps in 5.3 s in this process: a mean return of 500.0
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

import corral
from corral.examples.ppo import Agent, Config

CONFIG = replace(Config(), num_envs=256, rollout_steps=32, epochs=4, minibatches=8)
EXTRAS = ("logs",)
LAST_EPISODES = 100


def make_envs(num_envs: int) -> corral.VectorEnv:
    """So many envs, stepped one after the other in the process that makes them."""
    return corral.from_gymnasium(CONFIG.env, num_envs, runner="serial", episode_statistics=True)


def make_policy(weights: Any, envs: range = range(1)) -> Callable[[Any], tuple[Any, ...]]:
    """The policy of some weights. Its random numbers are those of the update and of the envs."""
    update, parameters = weights
    agent = Agent(4, 2, CONFIG, 0)
    agent.policy.parameters[:] = parameters
    agent.rng = np.random.default_rng([update, envs.start])

    def act(observations: Any) -> tuple[Any, ...]:
        actions = agent.sample(observations)
        return actions, agent.log_probabilities(observations, actions)

    return act


@contextmanager
def collector(actors: int, seed: int) -> Iterator[Callable[[Any], corral.Rollout]]:
    """A function that gives the next fragment of all envs."""
    if actors:
        from corral.ray import pools as make_pools

        # Ray's workers have a low priority by default. The learner would wait for them beside any
        # other program.
        os.environ.setdefault("RAY_worker_niceness", "0")
        with make_pools(make_envs, CONFIG.num_envs, actors, seed=seed) as pools:

            def collect(weights: Any) -> corral.Rollout:
                parts = pools.collect(weights, make_policy, CONFIG.rollout_steps, extras=EXTRAS)
                return corral.Rollout.joined([part.rollout for part in parts])

            yield collect
        return
    envs = make_envs(CONFIG.num_envs)
    envs.reset(seed=seed)
    roll = partial(envs.rollout, steps=CONFIG.rollout_steps, extras=EXTRAS)
    yield lambda weights: roll(make_policy(weights))
    envs.close()


def train(actors: int, seed: int, max_steps: int) -> tuple[Agent, int, float]:
    """A trained agent, the steps that it took and the seconds."""
    agent = Agent(4, 2, CONFIG, seed)
    returns: list[float] = []
    steps = update = 0
    with collector(actors, seed) as collect:
        began = time.perf_counter()
        while steps < max_steps:
            rollout = collect((update, [np.array(one) for one in agent.policy.parameters]))
            valid, ends = rollout.valid, rollout.terminations
            steps += int(valid.sum())
            returns += rollout.episodes.returns.tolist()
            obs = rollout.observations
            advantages, targets = agent.estimate(
                obs, rollout.rewards, ends, ends | rollout.truncations
            )
            columns = (obs[:-1], rollout.actions, advantages, targets)
            rate = CONFIG.learning_rate * max(0.0, 1 - steps / CONFIG.max_steps)
            agent.update(
                *(column[valid] for column in columns), rate, rollout.extras["logs"][valid]
            )
            update += 1
            if np.mean(returns[-LAST_EPISODES:]) >= CONFIG.solved_return:
                break
        return agent, steps, time.perf_counter() - began


def main() -> None:
    """Trains and evaluates."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--actors", type=int, default=2, help="0: in this process (default: 2)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="for a moment only")
    options = parser.parse_args()
    most = 40_000 if options.quick else CONFIG.max_steps
    agent, steps, seconds = train(options.actors, options.seed, most)
    result = corral.evaluate(agent.act, CONFIG.env, indices=range(1000, 1032), progress=False)
    print(f"{steps:,} steps in {seconds:.1f} s, {steps / seconds:,.0f} a second")
    print(f"{len(result.indices)} indices: a mean return of {result.mean:.1f}")


if __name__ == "__main__":
    main()
