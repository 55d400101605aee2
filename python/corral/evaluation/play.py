"""The episodes of indices, played in the slots of a vec env, which refill as episodes end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from corral import errors
from corral._native import Schedule
from corral.evaluation.rows import Together, put, put_infos, take, take_infos
from corral.evaluation.success import Judge
from corral.policy import Actor
from corral.vector import VectorEnv


class Episode(NamedTuple):
    """What came of the episode of the index at a position of the list of indices."""

    position: int
    episode_return: float
    length: int
    success: bool | None


def play(
    actor: Actor,
    env: VectorEnv,
    indices: npt.NDArray[np.int64],
    positions: Sequence[int],
    judge: Judge | None,
    ended: Callable[[Episode], None],
) -> None:
    """Plays the episodes of the indices at `positions`, and tells of each when it has ended, before
    its slot begins the next one.

    Raises:
        UnsupportedError: if the env cannot play an index, or some slots while others wait.
        EnvError: if an env failed.
    """
    if not env.native.can("index"):
        raise errors.UnsupportedError(
            f"{env.native.id} cannot play the episode of an index, which an evaluation is made of"
        )
    num_envs = env.native.num_envs
    # Without the one, what the other says of it is told.
    apart = env.native.can("subset") or not env.native.can("mask")
    native: Any = env.native if apart else Together(env.native)
    tree = env.native.observation_tree
    # By position, for an index may be there twice.
    schedule = Schedule(list(positions))
    returns = np.zeros(num_envs)
    lengths = np.zeros(num_envs, dtype=np.int64)

    def position_of(slot: int) -> int:
        return cast("int", schedule.index(slot))

    def begin(slots: list[int]) -> tuple[list[int], Any, dict[str, Any]]:
        """Gives each of `slots` its next index; those that got one, and what they show and tell."""
        started = [slot for slot in slots if schedule.next(slot) is not None]
        returns[slots], lengths[slots] = 0.0, 0
        if not started:
            return started, None, {}
        playing = [int(indices[position_of(slot)]) for slot in started]
        observations, infos = native.reset_slots(started, playing)
        _check_played(infos)
        return started, observations, infos

    def finish(slot: int, row: int, infos: dict[str, Any]) -> None:
        position = position_of(slot)
        total, length = float(returns[slot]), int(lengths[slot])
        index = int(indices[position])
        success = None if judge is None else judge(infos, row, index, total)
        schedule.finish(slot, total, length)
        ended(Episode(position, total, length, success))

    slots, observations, infos = begin(list(range(num_envs)))
    began = np.ones(len(slots), dtype=np.bool_)
    while slots:
        more: dict[str, Any] = {}
        if "began" in actor.named:
            more["began"] = began
        if "index" in actor.named:
            more["index"] = indices[[position_of(slot) for slot in slots]]
        if "infos" in actor.named:
            more["infos"] = infos
        actions = actor(observations, more)
        observations, rewards, terminations, truncations, infos = native.step_slots(slots, actions)
        _check_played(infos)
        returns[slots] += rewards
        lengths[slots] += 1
        over = np.flatnonzero(terminations | truncations).tolist()
        began = np.zeros(len(slots), dtype=np.bool_)
        if not over:
            continue
        for row in over:
            finish(slots[row], row, infos)
        rows = {slot: row for row, slot in enumerate(slots)}
        started, first, told = begin([slots[row] for row in over])
        if started:
            anew = [rows[slot] for slot in started]
            began[anew] = True
            observations = put(observations, anew, first, tree)
            if "infos" in actor.named:
                infos = put_infos(infos, len(slots), anew, told)
        keep = [row for row, slot in enumerate(slots) if schedule.index(slot) is not None]
        if len(keep) < len(slots):
            slots, began = [slots[row] for row in keep], began[keep]
            observations = take(observations, keep, tree)
            if "infos" in actor.named:
                infos = take_infos(infos, keep)


def _check_played(infos: dict[str, Any]) -> None:
    """An episode that its env did not live to play has no result, whatever `on_failure` says."""
    if "_failed" in infos:
        failures = [failure for failure in infos["failed"] if failure is not None]
        raise errors.EnvError.of(failures, None)
