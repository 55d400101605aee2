"""Ray's actors on this machine: fragments of CartPole by two of them beside the same in this
process, with and without a learner; and an evaluation by two actors beside one."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import corral
from corral.bench import Bench, Contender, Loop, Turns, needs
from corral.examples.ppo import Agent, Config

NUM_ENVS = 256
STEPS = 128
CONFIG = Config(num_envs=NUM_ENVS, rollout_steps=STEPS, epochs=2, minibatches=8)
INDICES = range(10_000)


def make_policy(weights: Any, envs: range = range(1)) -> Callable[[Any], Any]:
    agent = Agent(4, 2, CONFIG, envs.start)
    agent.policy.parameters[:] = weights
    return agent.sample


def learn(agent: Agent, rollout: corral.Rollout) -> None:
    """One update of PPO."""
    obs, valid = rollout.observations, rollout.valid
    ends = rollout.terminations
    advantages, targets = agent.estimate(obs, rollout.rewards, ends, ends | rollout.truncations)
    taken = rollout.actions[valid]
    agent.update(obs[:-1][valid], taken, advantages[valid], targets[valid], 1e-4)


@contextmanager
def cluster() -> Iterator[None]:
    ray = needs("ray")
    # Ray's processes do not find this file.
    ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])
    is_first = not ray.is_initialized()
    if is_first:
        ray.init(include_dashboard=False, log_to_driver=False, configure_logging=False)
    try:
        yield
    finally:
        if is_first:
            ray.shutdown()


@contextmanager
def in_process(learns: bool) -> Iterator[Turns]:
    agent = Agent(4, 2, CONFIG, 0)
    envs = corral.make_vec("CartPole-v1", NUM_ENVS, seed=0)
    envs.reset()

    def play(_: Any) -> None:
        rollout = envs.rollout(agent.sample, STEPS)
        if learns:
            learn(agent, rollout)

    yield Loop(play, [None], NUM_ENVS * STEPS)
    envs.close()


@contextmanager
def two_actors(learns: bool) -> Iterator[Turns]:
    with cluster():
        import corral.ray

        agent = Agent(4, 2, CONFIG, 0)
        with corral.ray.pools("CartPole-v1", NUM_ENVS, 2, seed=0) as pools:

            def play(_: Any) -> None:
                parts = pools.collect(agent.policy.parameters, make_policy, STEPS)
                if learns:
                    learn(agent, corral.Rollout.joined([part.rollout for part in parts]))

            play(None)
            yield Loop(play, [None], NUM_ENVS * STEPS)


@contextmanager
def evaluated(actors: int) -> Iterator[Turns]:
    with cluster():
        import corral.ray

        act = Agent(4, 2, CONFIG, 0).act

        def play(_: Any) -> None:
            corral.ray.evaluate(act, "CartPole-v1", INDICES, actors, num_envs=64, progress=False)

        corral.ray.evaluate(act, "CartPole-v1", range(8), actors, progress=False)
        yield Loop(play, [None], len(INDICES))


def rollouts(name: str, what: str, learns: bool, wanted: float) -> Bench:
    return Bench(
        name=name,
        what=what,
        size=f"{NUM_ENVS} envs, fragments of {STEPS} steps",
        ours=Contender("two actors", partial(two_actors, learns), "ray"),
        theirs=[Contender("in this process", partial(in_process, learns), wanted=wanted)],
    )


BENCHES = [
    rollouts("ray-rollouts", "fragments of CartPole by Ray's actors", False, 0.6),
    rollouts("ray-learning", "fragments and updates of PPO", True, 1.4),
    Bench(
        name="ray-evaluation",
        what="an evaluation of 10,000 indices",
        size="64 envs an actor",
        ours=Contender("two actors", partial(evaluated, 2), "ray"),
        theirs=[Contender("one actor", partial(evaluated, 1), "ray", wanted=1.7)],
    ),
]
