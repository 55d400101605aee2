"""`corral.ray.pools`: many envs, divided among actors."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import ray

from corral import errors
from corral._native import MAX_ENVS
from corral.ray.actors import EnvActor, How, MakePolicy, Work, how_made
from corral.rollouts import Rollout
from corral.settings import whole
from corral.specs import VecSpec

_MOST_STEPS = 2**31 - 1


class Part(NamedTuple):
    """What one actor has played."""

    rollout: Rollout
    """The fragment, in arrays that cannot be written to: they lie in memory that Ray shares."""
    envs: range
    """Which of all envs its columns are."""
    age: int
    """How many calls of `collect` ago the weights that it was played with were given."""
    began_anew: bool
    """Whether the actor before died: these envs began new episodes, from other seeds, and what they
    were playing is lost. False with `resume=True`, which plays the same steps again."""


def pools(
    env: str | How,
    num_envs: int | None = None,
    actors: int = 2,
    *,
    seed: int | None = None,
    num_cpus: float = 1,
    resume: bool = False,
    max_restarts: int = 3,
    actor_options: dict[str, Any] | None = None,
    **options: Any,
) -> Pools:
    """Vec envs in Ray's actors, which act as one of `num_envs` envs.

    Args:
        env: an id, a `corral.spec`, or a function of a number that makes a `VectorEnv` of so many
            envs: `lambda n: corral.from_gymnasium("Ant-v5", n, runner="serial")`. It is pickled.
        num_envs: how many envs, in all actors together; by default as many as the spec has.
        actors: how many actors they are divided among.
        seed: env i of all begins with `seed + i`, whatever the number of actors; None for a seed
            from the system.
        num_cpus: what Ray sets aside for each actor. Envs of an id or a spec are stepped by as many
            threads.
        resume: an actor that dies is replaced by one that goes on from the state of its envs
            after the last fragment, so that nothing changes by its death. Saving the states takes
            time. Without it, the envs of its successor begin anew, and the part says so.
        max_restarts: how often in a row an actor is replaced that dies without having played a
            fragment.
        actor_options: further options of Ray's for actors: `{"resources": {"node": 1}}`.
        **options: as of `corral.make_vec`, for an id.

    Returns:
        A `Pools`.

    Raises:
        ArgumentError, UnknownEnvError, …: as `corral.make_vec`.
    """
    how = how_made(env, options)
    given = how.options if isinstance(how, VecSpec) else {}
    if num_envs is None and not given:
        raise errors.ArgumentError("num_envs is missing: a function makes any number of envs")
    count = given["num_envs"] if num_envs is None else num_envs
    return Pools(
        how,
        whole("num_envs", count, MAX_ENVS),
        whole("actors", actors, MAX_ENVS),
        given.get("seed") if seed is None else seed,
        resume=resume,
        max_restarts=whole("max_restarts", max_restarts, 2**31, least=0),
        actor_options={"num_cpus": num_cpus, **(actor_options or {})},
    )


@dataclass(frozen=True)
class _Order:
    """What actors play next: Ray's references to the policy and its weights."""

    make_policy: Any
    weights: Any
    version: int
    work: Work


@dataclass
class _Member:
    """An actor, and what is known of its envs."""

    envs: range
    actor: Any = None
    under_way: Any = None
    order: _Order | None = None
    state: Any = None
    restarts: int = 0
    in_a_row: int = 0
    began_anew: bool = False


@dataclass
class Pools:
    """Vec envs in Ray's actors; made by `corral.ray.pools`. `with pools:` closes them.

    Attributes:
        how: how the vec env of an actor is made, apart from its size and seeds: a spec or a
            function.
        num_envs: how many envs there are in all actors together.
        num_actors: how many actors there are.
        restarts: how many actors had to be replaced so far.
    """

    how: How
    num_envs: int
    num_actors: int
    _seed: int | None
    resume: bool = field(kw_only=True)
    max_restarts: int = field(kw_only=True)
    actor_options: dict[str, Any] = field(kw_only=True)

    def __post_init__(self) -> None:
        if self.num_actors > self.num_envs:
            raise errors.ArgumentError(
                f"{self.num_actors} actors for {self.num_envs} envs: an actor has at least 1"
            )
        if self._seed is None:
            self._seed = int(np.random.SeedSequence().generate_state(1)[0])
        self._seed = whole("seed", self._seed, 2**62, least=0)
        self.restarts = 0
        self._version = -1
        self._last_policy: tuple[MakePolicy, Any] | None = None
        self._ready: list[tuple[int, Part]] = []
        self._closed = False
        bounds = np.linspace(0, self.num_envs, self.num_actors + 1).astype(int).tolist()
        self._members = [_Member(range(a, b)) for a, b in pairwise(bounds)]
        for member in self._members:
            self._hire(member)

    def collect(
        self,
        weights: Any,
        policy: MakePolicy,
        steps: int,
        *,
        infos: Sequence[str] = (),
        extras: Sequence[str] = (),
        wait: int | None = None,
        ahead: bool = True,
    ) -> list[Part]:
        """Fragments of all actors, while which the next ones are already under way.

        An actor that has nothing to play begins at once, by these weights. When a fragment has
        arrived, its actor begins the next one, by these weights too: it plays while the caller
        learns. So, but for the first call, fragments were played with the weights of the call
        before (`Part.age` is 1). `ahead=False` begins nothing on its way out, and every fragment
        is of the weights that are given (`age` is 0).

        Args:
            weights: anything that can be pickled. It is sent once for all actors, and arrays in it
                arrive as arrays that cannot be written to.
            policy: `policy(weights)` makes the policy of `VectorEnv.rollout`, once for every
                weights in every actor. With a parameter `envs` it is given the range of the
                actor's envs, for random numbers that differ between actors. It is pickled, and
                sent again where it is another.
            steps, infos, extras: as of `VectorEnv.rollout`. A fragment that is under way keeps
                those of the call that began it.
            wait: how many fragments to wait for: those that arrive first; None for one of every
                actor.
            ahead: whether to begin the next fragments.

        Returns:
            A part for each fragment; in the order of the actors, where all are waited for.

        Raises:
            ArgumentError: for a `wait` that makes no sense.
            EnvError: where an actor died more often than `max_restarts` allows.
            Exception: what the policy or an env raised. What has arrived is returned by the next
                call, and so it is after Ctrl-C.
        """
        if self._closed:
            raise errors.ClosedError("these pools are closed: make new ones")
        count = self.num_actors if wait is None else whole("wait", wait, self.num_actors)
        work = Work(whole("steps", steps, _MOST_STEPS), tuple(infos), tuple(extras), self.resume)
        self._version += 1
        if self._last_policy is None or self._last_policy[0] is not policy:
            self._last_policy = policy, ray.put(policy)
        order = _Order(self._last_policy[1], ray.put(weights), self._version, work)
        self._begin_all(order)
        while len(self._ready) < count:
            under_way = {one.under_way: one for one in self._members if one.under_way is not None}
            missing = count - len(self._ready)
            arrived, _ = ray.wait(list(under_way), num_returns=min(missing, len(under_way)))
            for reference in arrived:
                self._take(under_way[reference])
        ready, self._ready = self._ready[:count], self._ready[count:]
        if ahead:
            self._begin_all(order)
        if wait is None:
            ready.sort(key=lambda one: one[1].envs.start)
        return [part._replace(age=self._version - version) for version, part in ready]

    def close(self) -> None:
        """Ends the actors, and what they play."""
        self._closed = True
        for member in self._members:
            with contextlib.suppress(Exception):
                ray.kill(member.actor)

    def __enter__(self) -> Pools:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _hire(self, member: _Member) -> None:
        """A new actor for its envs."""
        assert self._seed is not None
        seeds = [self._seed + env for env in member.envs]
        if member.restarts:
            seeds = [_anew(seed, member.restarts) for seed in seeds]
        threads = max(1, int(self.actor_options["num_cpus"]))
        if isinstance(self.how, VecSpec):
            threads = self.how.options.get("num_threads") or threads
        remote = ray.remote(EnvActor).options(max_restarts=0, **self.actor_options)
        member.actor = remote.remote(self.how, member.envs, seeds, threads, member.state)

    def _begin_all(self, order: _Order) -> None:
        waiting = {part.envs for _, part in self._ready}
        for member in self._members:
            if member.under_way is None and member.envs not in waiting:
                self._begin(member, order)

    def _begin(self, member: _Member, order: _Order) -> None:
        member.order = order
        member.under_way = member.actor.play.remote(
            order.make_policy, order.weights, order.version, order.work
        )

    def _take(self, member: _Member) -> None:
        """What a member has played; its successor plays it where the actor died."""
        reference, member.under_way = member.under_way, None
        assert member.order is not None
        try:
            rollout, state = ray.get(reference)
        except ray.exceptions.RayActorError as error:
            self._replace(member, error)
            return
        except ray.exceptions.RayTaskError as error:
            raise error.as_instanceof_cause() from None
        member.state, member.in_a_row = state, 0
        part = Part(rollout, member.envs, 0, member.began_anew)
        member.began_anew = False
        self._ready.append((member.order.version, part))

    def _replace(self, member: _Member, error: Exception) -> None:
        member.in_a_row += 1
        self.restarts += 1
        first, last = member.envs.start, member.envs.stop - 1
        if member.in_a_row > self.max_restarts:
            raise errors.EnvError(
                f"the actor of envs {first} to {last} died {member.in_a_row} times in a row, and "
                f"max_restarts is {self.max_restarts}: {error}"
            ) from error
        if not self.resume:
            member.restarts += 1
            member.began_anew = True
        self._hire(member)
        assert member.order is not None
        self._begin(member, member.order)


def _anew(seed: int, restarts: int) -> int:
    """The seed of an env whose actor was replaced: none that the envs began with."""
    return int(np.random.SeedSequence([seed, restarts]).generate_state(1, np.uint64)[0] >> 32)
