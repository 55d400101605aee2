"""`corral.ray.evaluate`: every index once, played by Ray's processes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import ray

from corral import errors
from corral._progress import Progress
from corral.evaluation import Evaluation
from corral.policy import Policy
from corral.ray.actors import WIDTH, How, how_made, play_shard
from corral.settings import whole

# A part that is played again after a death is so much smaller than what one process plays, and
# processes that are done early take parts of the others.
_PARTS = 4
# Fewer parts for so few indices that a part would have fewer episodes than these for each of its
# envs: at the end of each part, envs that have played theirs wait for the others.
_EPISODES = 32
# Ray plays a part again where its process dies.
_RETRIES = 3
_MOST = 2**20


def evaluate(
    policy: Policy,
    env: str | How,
    indices: Iterable[int] = range(100),
    actors: int = 2,
    num_envs: int | None = None,
    *,
    success: str | Callable[..., bool] | None = None,
    num_cpus: float = 1,
    progress: bool | None = None,
    **config: Any,
) -> Evaluation:
    """Plays the episode of every index once, by several of Ray's processes.

    The result is that of `corral.evaluate`: the same for any number of processes, and after the
    death of any. A process that dies costs its part of the indices, which Ray plays again.

    Args:
        policy: as of `corral.evaluate`; it is pickled, and so is `success`.
        env: an id, a `corral.spec`, or a function of a number that makes a `VectorEnv` of so many
            envs: of Gymnasium's, for instance. It is pickled.
        indices, num_envs, success, progress: as of `corral.evaluate`; `num_envs` is of each
            process.
        actors: how many processes play at a time.
        num_cpus: what Ray sets aside for each; envs are stepped by as many threads.
        **config: options as in `corral.make_vec`, for an id.

    Raises:
        ArgumentError, UnsupportedError, …: as `corral.evaluate`.
        EnvError: where a part failed again and again by the death of its process.
    """
    count = whole("actors", actors, _MOST)
    played = list(indices)
    if not played:
        raise errors.ArgumentError("there are no indices to evaluate")
    made = how_made(env, config)
    width = WIDTH if num_envs is None else whole("num_envs", num_envs, _MOST)
    shards = parts_of(len(played), count, width)
    more = (num_envs, max(1, int(num_cpus)), success)
    task = ray.remote(play_shard).options(num_cpus=num_cpus, max_retries=_RETRIES)
    handed = [ray.put(one) for one in (policy, made, played)]
    found: list[Evaluation] = []
    running: list[Any] = []
    waiting = [(k, shards) for k in range(shards)]
    try:
        with Progress("evaluating", len(played), progress) as bar:
            while waiting or running:
                while waiting and len(running) < count:
                    running.append(task.remote(*handed, waiting.pop(0), *more))
                done, running = ray.wait(running, num_returns=1)
                found.append(_part(done[0]))
                bar.update(sum(len(part.indices) for part in found))
    finally:
        for one in running:
            ray.cancel(one, force=True)
    return Evaluation.merge(found)


def parts_of(indices: int, actors: int, num_envs: int) -> int:
    """Into how many parts `indices` indices are divided, for processes of `num_envs` envs."""
    worthwhile = indices // (num_envs * _EPISODES)
    return min(max(actors, min(actors * _PARTS, worthwhile)), indices)


def _part(ref: Any) -> Evaluation:
    try:
        part: Evaluation = ray.get(ref)
    except ray.exceptions.RayTaskError as error:
        raise error.as_instanceof_cause() from None
    except ray.exceptions.WorkerCrashedError as error:
        raise errors.EnvError(
            f"a process of Ray died {1 + _RETRIES} times while it played the same part of the "
            f"indices: {error}"
        ) from error
    return part
