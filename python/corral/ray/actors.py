"""What runs in Ray's processes: envs with a policy that plays them, and parts of evaluations."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from corral.evaluation import Evaluation, evaluate
from corral.policy import Policy
from corral.rollouts import Rollout
from corral.specs import VecSpec

MakePolicy = Callable[..., Policy]


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
        spec: VecSpec,
        envs: range,
        seeds: Sequence[int],
        num_threads: int,
        state: bytes | None,
    ) -> None:
        self._numbers = envs
        self._envs = spec.make(num_envs=len(seeds), seed=None, num_threads=num_threads)
        self._envs.reset(seed=list(seeds))
        if state is not None:
            self._envs.load_state(state)
        self._made: tuple[int, Policy] | None = None

    def play(
        self, make_policy: MakePolicy, weights: Any, version: int, work: Work
    ) -> tuple[Rollout, bytes | None]:
        """A fragment by the policy of these weights, and the state of the envs after it."""
        if self._made is None or self._made[0] != version:
            named = {"envs": self._numbers} if _takes_envs(make_policy) else {}
            self._made = version, make_policy(weights, **named)
        rollout = self._envs.rollout(
            self._made[1], work.steps, infos=work.infos, extras=work.extras
        )
        return rollout, self._envs.save_state() if work.saves else None


def _takes_envs(make_policy: MakePolicy) -> bool:
    try:
        return "envs" in inspect.signature(make_policy).parameters
    except (TypeError, ValueError):
        return False


def play_shard(
    policy: Policy, spec: VecSpec, indices: Iterable[int], shard: tuple[int, int], more: Any
) -> Evaluation:
    """One part of an evaluation."""
    options = {name: value for name, value in spec.options.items() if name != "num_envs"}
    return evaluate(policy, spec.id, indices, shard=shard, progress=False, **more, **options)
