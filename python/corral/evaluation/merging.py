"""Parts of an evaluation, and the whole of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from corral import errors
from corral.settings import whole

if TYPE_CHECKING:
    from corral.evaluation.result import Evaluation


def read_shard(shard: Any, count: int) -> tuple[int, int]:
    """The shard `(k, n)` of `count` indices, checked to have some."""
    if not isinstance(shard, tuple | list) or len(shard) != 2:
        raise errors.ArgumentTypeError(
            f"shard is a pair (k, n), the k-th of n parts from 0, not {shard!r}"
        )
    n = whole("shard's n", shard[1], 2**63 - 1)
    k = whole("shard's k", shard[0], n - 1, least=0)
    if k >= count:
        raise errors.ArgumentError(
            f"shard ({k}, {n}) has no index: there are {count}; take at most {count} shards"
        )
    return k, n


def merge(kind: type[Evaluation], parts: Iterable[Evaluation]) -> Evaluation:
    """As `Evaluation.merge`."""
    read = list(parts)
    for part in read:
        if not isinstance(part, kind):
            raise errors.ArgumentTypeError(
                f"merge takes evaluations, not {type(part).__name__}: {part!r}"
            )
    if not read:
        raise errors.ArgumentError("there is nothing to merge: give at least one evaluation")
    first = read[0]
    for number, part in enumerate(read[1:], 1):
        for name in ("id", "config", "max_episode_steps", "version"):
            ours, theirs = getattr(first, name), getattr(part, name)
            if ours != theirs:
                raise errors.ArgumentError(
                    f"evaluations of different envs make no whole: the {name} of number 0 is "
                    f"{ours!r}, that of number {number} is {theirs!r}"
                )
        if (first.successes is None) != (part.successes is None):
            raise errors.ArgumentError(
                f"number 0 and number {number} differ in whether they tell of successes"
            )
    if all(part.shard is None for part in read):
        places = np.arange(sum(len(part.indices) for part in read))
    else:
        read, places = _in_order(read)

    def joined(columns: list[npt.NDArray[Any]]) -> npt.NDArray[Any]:
        whole = np.concatenate(columns)
        ordered = np.empty_like(whole)
        ordered[places] = whole
        return ordered

    successes = [part.successes for part in read if part.successes is not None]
    return kind(
        joined([part.indices for part in read]),
        joined([part.returns for part in read]),
        joined([part.lengths for part in read]),
        joined(list(successes)) if successes else None,
        first.id,
        first.config,
        first.max_episode_steps,
        first.version,
    )


def _in_order(parts: list[Evaluation]) -> tuple[list[Evaluation], npt.NDArray[np.int64]]:
    """The shards by number, and which place of the whole each of their episodes has."""
    shards = [part.shard for part in parts]
    known = [shard for shard in shards if shard is not None]
    if len(known) < len(shards) or len({n for _, n in known}) > 1:
        told = ", ".join("no shard" if shard is None else str(shard) for shard in shards)
        raise errors.ArgumentError(f"these are not shards of one evaluation: {told}")
    n = known[0][1]
    count = sum(len(part.indices) for part in parts)
    expected = list(range(min(n, count)))
    if sorted(k for k, _ in known) != expected:
        missing = sorted(set(expected) - {k for k, _ in known})
        twice = sorted({k for k, _ in known if known.count((k, n)) > 1})
        raise errors.ArgumentError(
            f"these shards make no whole: of {n}, "
            + " and ".join(
                f"{what} {', '.join(map(str, ks))}"
                for what, ks in (("there is no", missing), ("there are several of", twice))
                if ks
            )
        )
    ordered = [part for _, part in sorted(zip(known, parts), key=lambda pair: pair[0])]
    places = [np.arange(k, count, n) for k in range(len(ordered))]
    for k, (part, place) in enumerate(zip(ordered, places)):
        if len(part.indices) != len(place):
            raise errors.ArgumentError(
                f"these are not shards of one evaluation: shard ({k}, {n}) has "
                f"{len(part.indices)} indices, and of {count} it would have {len(place)}"
            )
    return ordered, np.concatenate(places)
