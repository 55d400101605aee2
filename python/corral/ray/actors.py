"""What runs in Ray's processes: envs with a policy that plays them, and parts of evaluations."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from corral import errors
from corral.evaluation import Evaluation, evaluate
from corral.policy import Policy
from corral.rollouts import Rollout
from corral.specs import VecSpec, spec
from corral.vector import VectorEnv

MakePolicy = Callable[..., Policy]

How = VecSpec | Callable[[int], VectorEnv]
"""How a vec env is made: by a spec, or by a function of the number of its envs."""

# How many envs a process has that plays a part of an evaluation, as `corral.evaluate` has.
WIDTH = 32


def how_made(env: Any, options: dict[str, Any]) -> How:
    """How a vec env of `env` is made, which was given with these options.

    Raises:
        ArgumentError: for options beside what has its own.
        ArgumentTypeError: for what does not travel to other processes.
        UnknownEnvError, …: as `corral.make_vec`.
    """
    if isinstance(env, str):
        return spec(env, 1, **options)
    if isinstance(env, VectorEnv) or not callable(env):
        raise errors.ArgumentTypeError(
            "env is an id, a corral.spec, or a function of a number that makes a VectorEnv of so "
            f"many envs, which travel to other processes, not {env!r}"
        )
    if options:
        raise errors.ArgumentError(f"options go with an id: {env!r} makes envs with its own")
    how: How = env
    return how


def _made(how: How, num_envs: int, **options: Any) -> VectorEnv:
    if isinstance(how, VecSpec):
        return how.make(num_envs=num_envs, **options)
    envs: Any = how(num_envs)
    if not isinstance(envs, VectorEnv) or envs.num_envs != num_envs:
        raise errors.ArgumentTypeError(
            f"the function that makes envs makes a VectorEnv of {num_envs} envs when it is given "
            f"{num_envs}; it has made {envs!r}"
        )
    return envs


@dataclass(frozen=True)
class Work:
    """What an actor is asked to play."""

    steps: int
    infos: tuple[str, ...]
    extras: tuple[str, ...]
    # Whether the state of the envs comes back too.
    saves: bool


class EnvActor:
    """Some of the envs of pools."""

    def __init__(
        self,
        how: How,
        envs: range,
        seeds: Sequence[int],
        num_threads: int,
        state: bytes | None,
    ) -> None:
        self._numbers = envs
        # Envs are made by the first fragment, whose exceptions reach the caller as what they are.
        self._begin = partial(_begun, how, seeds, num_threads, state)
        self._envs: VectorEnv | None = None
        self._made: tuple[int, Policy] | None = None

    def play(
        self, make_policy: MakePolicy, weights: Any, version: int, work: Work
    ) -> tuple[Rollout, bytes | None]:
        """A fragment by the policy of these weights, and the state of the envs after it."""
        if self._made is None or self._made[0] != version:
            named = {"envs": self._numbers} if _takes_envs(make_policy) else {}
            self._made = version, make_policy(weights, **named)
        if self._envs is None:
            self._envs = self._begin()
        rollout = self._envs.rollout(
            self._made[1], work.steps, infos=work.infos, extras=work.extras
        )
        return rollout, self._envs.save_state() if work.saves else None


def _begun(how: How, seeds: Sequence[int], num_threads: int, state: bytes | None) -> VectorEnv:
    envs = _made(how, len(seeds), seed=None, num_threads=num_threads)
    envs.reset(seed=list(seeds))
    if state is not None:
        envs.load_state(state)
    return envs


def _takes_envs(make_policy: MakePolicy) -> bool:
    try:
        return "envs" in inspect.signature(make_policy).parameters
    except (TypeError, ValueError):
        return False


def play_shard(
    policy: Policy,
    how: How,
    indices: Sequence[int],
    shard: tuple[int, int],
    num_envs: int | None,
    num_threads: int,
    success: Any,
) -> Evaluation:
    """One part of an evaluation."""
    more = {"shard": shard, "success": success, "progress": False}
    if isinstance(how, VecSpec):
        options = {"num_threads": num_threads, **how.options, "num_envs": num_envs}
        return evaluate(policy, how.id, indices, **more, **options)
    width = min(WIDTH, len(indices[shard[0] :: shard[1]])) if num_envs is None else num_envs
    with _made(how, width) as envs:
        return evaluate(policy, envs, indices, **more)
