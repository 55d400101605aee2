"""Rollouts: what learners take of many envs at once, in one array per leaf.

`np.stack` of what `step` returns copies every observation once more and makes an array per step.
Here the envs write to their places in the final arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from corral import errors

if TYPE_CHECKING:
    from corral._rolling import Source

# The attributes of a rollout that do not travel to other processes.
_NOT_SENT = ("steps", "num_envs", "finals", "_source")
FLAGS = ("rewards", "terminations", "truncations", "row_kinds")


class Finals(NamedTuple):
    """How the k episodes that ended in a rollout ended, in the order of steps and envs."""

    steps: npt.NDArray[np.int64]
    """The step that ended each, `(k,)`."""
    envs: npt.NDArray[np.int64]
    """The env of each, `(k,)`."""
    observations: Any
    """The last observations, `(k, …)`, nested like the space. None for envs that show none: libenv
    libraries and gym3 envs."""
    infos: dict[str, Any]
    """Of the infos that were asked for, those of the last steps, `(k, …)`, with masks."""


class Episodes(NamedTuple):
    """The statistics of the k episodes that ended in a rollout, in the order of steps and envs."""

    steps: npt.NDArray[np.int64]
    """The step that ended each, `(k,)`."""
    envs: npt.NDArray[np.int64]
    """The env of each, `(k,)`."""
    returns: npt.NDArray[np.float64]
    """The sum of each episode's rewards, `(k,)`."""
    lengths: npt.NDArray[np.int64]
    """How many steps each took, `(k,)`."""
    seconds: npt.NDArray[np.float64]
    """How long each took, `(k,)`."""


class Rollout:
    """Some steps of a `VectorEnv`, made by `VectorEnv.rollout`. All arrays are the caller's.

    Row t of `observations` and `infos` is what was seen before step t, row t + 1 what step t
    showed. All else has a row for each step.

    Attributes:
        observations: `(steps + 1, num_envs, …)`, nested like the space. Leaves of text or of
            changing shape are object arrays `(steps + 1, num_envs)`.
        actions: `(steps, num_envs, …)`, nested like the space.
        rewards: float64 `(steps, num_envs)`.
        terminations, truncations: bool `(steps, num_envs)`.
        row_kinds: uint8 `(steps, num_envs)`: a `corral.RowKind` each.
        infos: those that were asked for, `(steps + 1, num_envs, …)`, each with its mask `_name`.
        extras: what the policy returned beside its actions, by name, `(steps, num_envs, …)`.
        episodes: the statistics of the episodes that ended, an `Episodes`; None for envs that were
            made without `episode_statistics`.
    """

    def __init__(self, arrays: dict[str, Any]) -> None:
        self.observations = arrays["observations"]
        self.actions = arrays["actions"]
        self.rewards: npt.NDArray[np.float64] = arrays["rewards"]
        self.terminations: npt.NDArray[np.bool_] = arrays["terminations"]
        self.truncations: npt.NDArray[np.bool_] = arrays["truncations"]
        self.row_kinds: npt.NDArray[np.uint8] = arrays["row_kinds"]
        self.infos: dict[str, Any] = arrays["infos"]
        self.extras: dict[str, npt.NDArray[Any]] = arrays["extras"]
        self.episodes: Episodes | None = arrays["episodes"]
        self.steps: int = self.rewards.shape[0]
        self.num_envs: int = self.rewards.shape[1]
        # Observations and infos of the episodes that ended. Observations are None where the last
        # ones are among all others, or are shown by nobody.
        self._ended: tuple[Any, dict[str, Any]] = arrays["_ended"]
        self._is_next_step: bool = arrays["_is_next_step"]
        self._source: Source | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        # What fills it again stays where the envs are.
        arrays = {name: value for name, value in vars(self).items() if name not in _NOT_SENT}
        return Rollout, (arrays,)

    @cached_property
    def finals(self) -> Finals:
        """The last observations and infos of the episodes that ended."""
        observations, infos = self._ended
        steps, envs = np.nonzero((self.terminations | self.truncations) & self.valid)
        if self._is_next_step:
            observations = _at(self.observations, steps + 1, envs)
        return Finals(steps, envs, observations, infos)

    @property
    def valid(self) -> npt.NDArray[np.bool_]:
        """Which rows are steps, `(steps, num_envs)`: false where an env only began its next episode
        ("next_step" ignores the action then), failed, or was rebuilt."""
        valid: npt.NDArray[np.bool_] = self.row_kinds == 0
        return valid

    def next_observations(self) -> Any:
        """What each step led to, `(steps, num_envs, …)`: the next observation, or the final one
        where the step ended an episode. The same in all autoreset modes, and a copy.

        A value function of these times `~terminations` bootstraps right, at truncations too.

        Raises:
            UnsupportedError: for envs that show no final observations.
        """
        if self._is_next_step:
            return _copied(self.observations)
        finals = self.finals
        if finals.observations is None and len(finals.steps):
            raise errors.UnsupportedError(
                f"{len(finals.steps)} episodes ended, of envs that do not show their final "
                "observations"
            )

        def put(shown: Any, last: Any) -> Any:
            if isinstance(shown, dict):
                return {key: put(inner, last[key]) for key, inner in shown.items()}
            if isinstance(shown, tuple):
                return tuple(put(inner, other) for inner, other in zip(shown, last, strict=True))
            following = shown[1:].copy()
            following[finals.steps, finals.envs] = last
            return following

        if not len(finals.steps):
            return _copied(self.observations)
        return put(self.observations, finals.observations)

    @staticmethod
    def joined(rollouts: Sequence[Rollout]) -> Rollout:
        """One rollout of the envs of all, in their order, in arrays of its own.

        Raises:
            ArgumentError: for none, and for rollouts of different numbers of steps.
        """
        steps = {rollout.steps for rollout in rollouts}
        if len(steps) != 1:
            raise errors.ArgumentError(
                f"rollouts of {sorted(steps)} steps are not joined: give some, all of as many steps"
            )
        firsts = np.cumsum([0, *(rollout.num_envs for rollout in rollouts)])
        arrays = {
            name: _joined([getattr(rollout, name) for rollout in rollouts])
            for name in ("observations", "actions", "extras", *FLAGS)
        }
        shown = [(rollout.steps + 1, rollout.num_envs) for rollout in rollouts]
        arrays["infos"] = _joined_infos([rollout.infos for rollout in rollouts], shown)
        arrays["_ended"] = _joined_ends([one.finals for one in rollouts], firsts)[2:]
        arrays["_is_next_step"] = all(one._is_next_step for one in rollouts)
        episodes = [one.episodes for one in rollouts if one.episodes is not None]
        complete = len(episodes) == len(rollouts)
        arrays["episodes"] = _joined_ends(episodes, firsts) if complete else None
        return Rollout(arrays)

    def __len__(self) -> int:
        return self.steps

    def __repr__(self) -> str:
        return (
            f"<corral.Rollout: {self.steps} steps of {self.num_envs} envs, "
            f"{len(self.finals.steps)} episodes ended>"
        )


def _at(shown: Any, steps: npt.NDArray[np.int64], envs: npt.NDArray[np.int64]) -> Any:
    """These rows of nested arrays."""
    if isinstance(shown, dict):
        return {key: _at(inner, steps, envs) for key, inner in shown.items()}
    if isinstance(shown, tuple):
        return tuple(_at(inner, steps, envs) for inner in shown)
    return shown[steps, envs]


def _copied(shown: Any) -> Any:
    if isinstance(shown, dict):
        return {key: _copied(inner) for key, inner in shown.items()}
    if isinstance(shown, tuple):
        return tuple(_copied(inner) for inner in shown)
    return shown[1:].copy()


def _joined(parts: Sequence[Any]) -> Any:
    """Nested arrays `(steps, num_envs, …)`, side by side."""
    if isinstance(parts[0], dict):
        return {key: _joined([part[key] for part in parts]) for key in parts[0]}
    if isinstance(parts[0], tuple):
        return tuple(map(_joined, zip(*parts, strict=True)))
    return np.concatenate(parts, axis=1)


def _joined_infos(infos: Sequence[Any], sizes: Sequence[tuple[int, ...]]) -> Any:
    """Infos side by side, along the last axis of `sizes`, with which the arrays of each begin. What
    one rollout lacks (None) is told by none of its rows."""
    there = [one for one in infos if one is not None]
    if not there:
        return None
    if isinstance(there[0], dict):
        keys = dict.fromkeys(key for one in there for key in one)
        parts = {key: [None if one is None else one.get(key) for one in infos] for key in keys}
        return {key: _joined_infos(part, sizes) for key, part in parts.items()}
    if isinstance(there[0], tuple):
        branches = range(len(there[0]))
        parts = {k: [None if one is None else one[k] for one in infos] for k in branches}
        return tuple(_joined_infos(part, sizes) for part in parts.values())
    axis, like = len(sizes[0]) - 1, there[0]
    # Object arrays have None in rows without a value.
    empty = None if like.dtype == object else 0
    columns = [
        np.full((*size, *like.shape[axis + 1 :]), empty, like.dtype) if one is None else one
        for one, size in zip(infos, sizes, strict=True)
    ]
    return np.concatenate(columns, axis=axis)


def _joined_ends(parts: Sequence[Any], firsts: npt.NDArray[np.int64]) -> Any:
    """Finals or episodes of all rollouts, by step and env."""
    steps = np.concatenate([part.steps for part in parts])
    envs = np.concatenate([part.envs + first for part, first in zip(parts, firsts, strict=False)])
    order = np.lexsort((envs, steps))

    def sorted_(columns: Sequence[Any]) -> Any:
        if any(column is None for column in columns):
            return None
        if isinstance(columns[0], dict):
            return {key: sorted_([column[key] for column in columns]) for key in columns[0]}
        if isinstance(columns[0], tuple):
            return tuple(map(sorted_, zip(*columns, strict=True)))
        return np.concatenate(columns)[order]

    if isinstance(parts[0], Episodes):
        return Episodes(steps[order], envs[order], *map(sorted_, [*zip(*parts)][2:]))
    sizes = [(len(part.steps),) for part in parts]
    infos = _joined_infos([part.infos for part in parts], sizes)
    observations = sorted_([part.observations for part in parts])
    return Finals(steps[order], envs[order], observations, sorted_([infos]))
