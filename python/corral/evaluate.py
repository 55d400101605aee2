"""Indexed evaluation: every index once, results in index order, the same at any width."""

from __future__ import annotations

import csv
import inspect
import operator
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from corral import errors
from corral._native import Schedule
from corral._progress import Progress
from corral.frames import LazyVectorEnv
from corral.registry import make_vec
from corral.settings import whole
from corral.spaces import Tree
from corral.vector import VectorEnv

Policy = Callable[..., Any]


_GIVEN_BY_NAME = ("began", "index", "infos")


@dataclass(frozen=True)
class Evaluation:
    """What an evaluation found, in the order of its indices.

    Attributes:
        indices: `int64 (n,)`.
        returns: `float64 (n,)`, the sum of each episode's rewards.
        lengths: `int64 (n,)`, each episode's steps.
    """

    indices: npt.NDArray[np.int64]
    returns: npt.NDArray[np.float64]
    lengths: npt.NDArray[np.int64]

    @property
    def mean(self) -> float:
        """The mean return."""
        return float(self.returns.mean())

    @property
    def std(self) -> float:
        """The returns' standard deviation."""
        return float(self.returns.std())

    def table(self, most: int = 20) -> str:
        """A table of at most `most` episodes (0 for none), and a summary.

        Raises:
            ArgumentError, ArgumentTypeError: for another number than an int of at least 0.
        """
        most = whole("most", most, sys.maxsize, least=0)
        lines = [f"{'index':>8} {'return':>12} {'length':>8}"]
        for index, value, length in list(zip(self.indices, self.returns, self.lengths))[:most]:
            lines.append(f"{index:>8} {value:>12.4g} {length:>8}")
        if len(self.indices) > most:
            lines.append(f"{'…':>8} {'…':>12} {'…':>8}   ({len(self.indices) - most} more)")
        lines.append(
            f"{len(self.indices)} episodes: return {self.mean:.4g} ± {self.std:.4g} "
            f"(min {self.returns.min():.4g}, max {self.returns.max():.4g}), "
            f"length {self.lengths.mean():.4g}"
        )
        return "\n".join(lines)

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Writes columns index, return, length."""
        with open(path, "w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["index", "return", "length"])
            writer.writerows(
                zip(self.indices.tolist(), self.returns.tolist(), self.lengths.tolist())
            )

    def __str__(self) -> str:
        return self.table()


def evaluate(
    policy: Policy,
    env: str | VectorEnv,
    indices: Iterable[int] = range(100),
    num_envs: int | None = None,
    *,
    progress: bool | None = None,
    **config: Any,
) -> Evaluation:
    """Plays the episode of every index once.

    Only envs that hold an index are stepped: towards the end the batch shrinks. The result is the
    same for any `num_envs` if the policy's rows depend neither on the batch's size nor on each
    other; matrix products by BLAS may, in their last bits.

    Args:
        policy: `policy(observations)` gives the actions, both with rows first. If it takes them by
            name, it also gets `began`, bool `(rows,)`: which rows begin an episode, and `index`,
            int64 `(rows,)`: which index each row plays (a recurrent policy keeps its state by it);
            and `infos`, as of a reset or step of these rows: `infos["action_mask"]`, for instance.
        env: an id, or a `corral.VectorEnv`, which is reset and left at the end of its episodes.
        indices: which episodes; repeated ones are played as often.
        num_envs: the batch's width for an id; by default 32, or the number of indices.
        progress: whether to show a bar; by default where stderr is a terminal.
        **config: options as in `corral.make_vec`, for an id.

    Raises:
        ArgumentError, ArgumentTypeError: for indices or a width that make no sense.
        UnsupportedError: if the env cannot play an index, or some slots while others wait; for
            `lazy_frames`.
        EnvError: if an env failed.
    """
    if not callable(policy):
        raise errors.ArgumentTypeError(f"policy is a function of observations, not {policy!r}")
    played = _read_indices(indices)
    if config.get("lazy_frames") is True or isinstance(env, LazyVectorEnv):
        raise errors.UnsupportedError(
            "evaluate shows the policy frames that are stacked: leave lazy_frames out, and "
            "frame_stack alone stacks the same"
        )
    if isinstance(env, str):
        if "autoreset_mode" in config:
            raise errors.ArgumentError("evaluate chooses autoreset_mode itself: leave it out")
        width = 32 if num_envs is None else num_envs
        if isinstance(width, int | np.integer):
            width = min(width, len(played))
        made = make_vec(env, width, autoreset_mode="disabled", **config)
        scope: Any = closing(made)
    elif isinstance(env, VectorEnv):
        if num_envs is not None or config:
            raise errors.ArgumentError("num_envs and options go with an id: this env has its own")
        made, scope = env, nullcontext()
    else:
        raise errors.ArgumentTypeError(
            f"env is an id or a corral.VectorEnv, not {type(env).__name__}: "
            "put wrappers' work into the policy"
        )
    wanted = _named_parameters(policy)
    with scope, Progress("evaluating", len(played), progress) as bar:
        results = _play(policy, wanted, made, played, bar)
    returns, lengths = zip(*results, strict=True)
    return Evaluation(played, np.array(returns), np.array(lengths, dtype=np.int64))


def _read_indices(indices: Iterable[int]) -> npt.NDArray[np.int64]:
    try:
        read = [_read_index(index) for index in indices]
    except TypeError:
        kind = type(indices).__name__
        raise errors.ArgumentTypeError(f"indices are ints, not {kind}: {indices!r}") from None
    if not read:
        raise errors.ArgumentError("there are no indices to evaluate")
    return np.array(read, dtype=np.int64)


def _read_index(index: int) -> int:
    if isinstance(index, bool):
        raise TypeError
    number = operator.index(index)
    if not 0 <= number < 2**63:
        raise errors.ArgumentError(f"index {number} is not within 0 to 2**63 - 1")
    return number


def _named_parameters(policy: Policy) -> set[str]:
    try:
        parameters = inspect.signature(policy).parameters.values()
    except (TypeError, ValueError):
        return set()
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return set(_GIVEN_BY_NAME)
    return {p.name for p in parameters if p.kind is not p.POSITIONAL_ONLY}.intersection(
        _GIVEN_BY_NAME
    )


def _play(
    policy: Policy,
    wanted: set[str],
    env: VectorEnv,
    indices: npt.NDArray[np.int64],
    bar: Progress,
) -> list[tuple[float, int]]:
    num_envs = env.native.num_envs
    # Without the one, what the other says of it is told.
    apart = env.native.can("subset") or not env.native.can("mask")
    native: Any = env.native if apart else _Together(env.native)
    tree = env.native.observation_tree
    schedule = Schedule(indices.tolist())
    returns = np.zeros(num_envs)
    lengths = np.zeros(num_envs, dtype=np.int64)

    def begin(slots: list[int]) -> tuple[list[int], Any, dict[str, Any]]:
        """Gives each of `slots` its next index; those that got one, and what they show and tell."""
        started = [slot for slot in slots if schedule.next(slot) is not None]
        returns[slots], lengths[slots] = 0.0, 0
        if not started:
            return started, None, {}
        playing = [cast("int", schedule.index(slot)) for slot in started]
        observations, infos = native.reset_slots(started, playing)
        _check_played(infos)
        return started, observations, infos

    slots, observations, infos = begin(list(range(num_envs)))
    began = np.ones(len(slots), dtype=np.bool_)
    while slots:
        extra: dict[str, Any] = {}
        if "began" in wanted:
            extra["began"] = began
        if "index" in wanted:
            extra["index"] = np.array([schedule.index(slot) for slot in slots], dtype=np.int64)
        if "infos" in wanted:
            extra["infos"] = infos
        actions = policy(observations, **extra)
        observations, rewards, terminations, truncations, infos = native.step_slots(slots, actions)
        _check_played(infos)
        returns[slots] += rewards
        lengths[slots] += 1
        ended = terminations | truncations
        began = np.zeros(len(slots), dtype=np.bool_)
        if not ended.any():
            continue
        for slot in (slots[row] for row in np.flatnonzero(ended)):
            schedule.finish(slot, float(returns[slot]), int(lengths[slot]))
        bar.update(schedule.finished())
        rows = {slot: row for row, slot in enumerate(slots)}
        started, first, told = begin([slots[row] for row in np.flatnonzero(ended)])
        if started:
            anew = [rows[slot] for slot in started]
            began[anew] = True
            observations = _put(observations, anew, first, tree)
            if "infos" in wanted:
                infos = _put_infos(infos, len(slots), anew, told)
        keep = [row for row, slot in enumerate(slots) if schedule.index(slot) is not None]
        if len(keep) < len(slots):
            slots, began = [slots[row] for row in keep], began[keep]
            observations = _take(observations, keep, tree)
            if "infos" in wanted:
                infos = _take_infos(infos, keep)
    results = schedule.results()
    assert results is not None
    return results


class _Together:
    """Calls of some slots, for envs that can only step all: the others play on, and what comes of
    that is thrown away."""

    def __init__(self, native: Any) -> None:
        self._native = native
        self._has_begun = False

    def reset_slots(self, slots: list[int], indices: list[int]) -> tuple[Any, dict[str, Any]]:
        n = self._native.num_envs
        mask = np.full(n, not self._has_begun)
        mask[slots] = True
        playing = np.full(n, indices[0], dtype=np.int64)
        playing[slots] = indices
        observations, infos = self._native.reset(index=playing, mask=mask)
        self._has_begun = True
        return self._take(observations, slots), _take_infos(infos, slots)

    def step_slots(self, slots: list[int], actions: Any) -> tuple[Any, ...]:
        rows = np.zeros(self._native.num_envs, dtype=np.int64)
        rows[slots] = np.arange(len(slots))
        spread = _spread(actions, rows, self._native.action_tree)
        observations, *columns, infos = self._native.step(spread)
        told = _take_infos(infos, slots)
        return (self._take(observations, slots), *(column[slots] for column in columns), told)

    def _take(self, observations: Any, slots: list[int]) -> Any:
        return _take(observations, slots, self._native.observation_tree)


def _spread(actions: Any, rows: npt.NDArray[np.int64], tree: Tree) -> Any:
    """Actions of all slots: of each, that row of `actions`, which are nested as the tree."""
    kind, inner = tree
    if kind == "dict" and isinstance(actions, dict) and actions.keys() == dict(inner).keys():
        return {name: _spread(actions[name], rows, branch) for name, branch in inner}
    if kind == "tuple" and isinstance(actions, tuple) and len(actions) == len(inner):
        return tuple(_spread(part, rows, branch) for part, branch in zip(actions, inner))
    if kind != "leaf":
        # The env says what is wrong with them.
        return actions
    if isinstance(actions, tuple):
        return tuple(actions[row] for row in rows)
    return np.asarray(actions)[rows]


def _check_played(infos: dict[str, Any]) -> None:
    """An episode that its env did not live to play has no result, whatever `on_failure` says."""
    if "_failed" in infos:
        failures = [failure for failure in infos["failed"] if failure is not None]
        raise errors.EnvError.of(failures, None)


def _take(batch: Any, rows: Sequence[int], tree: Tree) -> Any:
    """These rows of a batch of observations, nested as the tree: a leaf is an array, or a tuple of
    objects."""
    kind, inner = tree
    if kind == "dict":
        return {name: _take(batch[name], rows, branch) for name, branch in inner}
    if kind == "tuple":
        return tuple(_take(part, rows, branch) for part, branch in zip(batch, inner))
    if isinstance(batch, tuple):
        return tuple(batch[row] for row in rows)
    return batch[list(rows)]


def _take_infos(infos: dict[str, Any], rows: Sequence[int]) -> dict[str, Any]:
    """These rows of infos: arrays, and dicts of them."""
    return {
        name: _take_infos(value, rows) if isinstance(value, dict) else value[list(rows)]
        for name, value in infos.items()
    }


def _put_infos(
    infos: dict[str, Any], count: int, rows: Sequence[int], new: dict[str, Any]
) -> dict[str, Any]:
    """Infos of `count` rows, of which these are replaced; what only some rows have is zeros (None)
    in the others. What fits no common array becomes objects."""
    merged: dict[str, Any] = {}
    for name in {**infos, **new}:
        old, fresh = infos.get(name), new.get(name)
        both = [part for part in (old, fresh) if part is not None]
        if all(isinstance(part, dict) for part in both):
            merged[name] = _put_infos(old or {}, count, rows, fresh or {})
            continue
        if any(isinstance(part, dict) for part in both):
            old, fresh = _as_objects(old, count), _as_objects(fresh, len(rows))
            both = [old, fresh]
        column = _column_for(both, count)
        empty = None if column.dtype == object else 0
        for at, part in ((slice(None), old), (list(rows), fresh)):
            if part is None:
                column[at] = empty
            elif column.ndim == 1 and part.ndim > 1:
                for row, value in zip(np.arange(count)[at], part, strict=True):
                    column[row] = value
            else:
                column[at] = part
        merged[name] = column
    return merged


def _column_for(parts: list[npt.NDArray[Any]], count: int) -> npt.NDArray[Any]:
    """An array of `count` rows that takes rows of all `parts` as they are."""
    shapes, kinds = {part.shape[1:] for part in parts}, {part.dtype.kind for part in parts}
    dtypes = {part.dtype for part in parts}
    if len(shapes) == 1 and (len(dtypes) == 1 or kinds <= set("iuf")):
        return np.zeros((count, *shapes.pop()), np.result_type(*dtypes))
    return np.full(count, None, object)


def _as_objects(part: Any, count: int) -> npt.NDArray[np.object_]:
    """The rows of infos, one object each."""
    column = np.full(count, None, object)
    for row in range(count):
        column[row] = _row_of(part, row)
    return column


def _row_of(part: Any, row: int) -> Any:
    if not isinstance(part, dict):
        return part[row]
    # Beside what is told stands its mask: which rows have it.
    shown = {}
    for name, value in part.items():
        mask = part.get(f"_{name}")
        is_mask = name.startswith("_") and name[1:] in part
        if not is_mask and (mask is None or mask[row]):
            shown[name] = _row_of(value, row)
    return shown


def _put(batch: Any, rows: Sequence[int], new: Any, tree: Tree) -> Any:
    """The batch, nested as the tree, with these rows replaced; arrays in place: they are ours."""
    kind, inner = tree
    if kind == "dict":
        return {name: _put(batch[name], rows, new[name], branch) for name, branch in inner}
    if kind == "tuple":
        parts = zip(batch, new, inner)
        return tuple(_put(part, rows, fresh, branch) for part, fresh, branch in parts)
    if isinstance(batch, tuple):
        fresh = list(batch)
        for row, value in zip(rows, new, strict=True):
            fresh[row] = value
        return tuple(fresh)
    batch[list(rows)] = new
    return batch
