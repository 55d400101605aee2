"""Ray's actors on this machine: fragments of CartPole by two of them beside the same in this
process, with and without a learner; and an evaluation by two actors beside one.

With a learner, actors gain as much as playing and learning can overlap. Updates of PPO by NumPy
take ten times as long as our CartPole, and about as long as Gymnasium's, which is in Python.
"""

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
Make = Callable[[int], corral.VectorEnv]


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


def ours(num_envs: int) -> corral.VectorEnv:
    return corral.make_vec("CartPole-v1", num_envs)


def gymnasiums(num_envs: int, runner: str = "serial") -> corral.VectorEnv:
    return corral.from_gymnasium("CartPole-v1", num_envs, runner=runner)


@contextmanager
def in_process(make: Make, learns: bool) -> Iterator[Turns]:
    agent = Agent(4, 2, CONFIG, 0)
    envs = make(NUM_ENVS)
    envs.reset(seed=0)

    def play(_: Any) -> None:
        rollout = envs.rollout(agent.sample, STEPS)
        if learns:
            learn(agent, rollout)

    yield Loop(play, [None], NUM_ENVS * STEPS)
    envs.close()


@contextmanager
def two_actors(make: Make, learns: bool) -> Iterator[Turns]:
    with cluster():
        import corral.ray

        agent = Agent(4, 2, CONFIG, 0)
        with corral.ray.pools(make, NUM_ENVS, 2, seed=0) as pools:

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


def rollouts(name: str, what: str, make: Make, learns: bool, *theirs: Contender) -> Bench:
    return Bench(
        name=name,
        what=what,
        size=f"{NUM_ENVS} envs, fragments of {STEPS} steps",
        ours=Contender("two actors", partial(two_actors, make, learns), "ray"),
        theirs=list(theirs),
    )


def alone(make: Make, learns: bool, wanted: float | None = None) -> Contender:
    return Contender("in this process", partial(in_process, make, learns), wanted=wanted)


IN_WORKERS = Contender(
    "envs in two workers", partial(in_process, partial(gymnasiums, runner="process"), True)
)

BENCHES = [
    rollouts(
        *("ray-rollouts", "fragments of CartPole by Ray's actors"),
        *(ours, False, alone(ours, False, 0.6)),
    ),
    rollouts(
        *("ray-learning", "fragments of Gymnasium's CartPole, and updates of PPO"),
        *(gymnasiums, True, alone(gymnasiums, True, 1.4), IN_WORKERS),
    ),
    rollouts(
        *("ray-learning-fast-envs", "fragments of CartPole, and updates of PPO"),
        *(ours, True, alone(ours, True)),
    ),
    Bench(
        name="ray-evaluation",
        what="an evaluation of 10,000 indices",
        size="64 envs an actor",
        ours=Contender("two actors", partial(evaluated, 2), "ray"),
        theirs=[Contender("one actor", partial(evaluated, 1), "ray", wanted=1.7)],
    ),
]
