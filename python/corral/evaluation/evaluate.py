"""`evaluate`: every index once, results in index order, the same at any width and however split."""

from __future__ import annotations

import operator
import os
from collections.abc import Iterable
from contextlib import closing, nullcontext
from typing import Any

import numpy as np
import numpy.typing as npt

from corral import errors
from corral._native import MAX_ENVS
from corral._progress import Progress
from corral.evaluation.about import About
from corral.evaluation.merging import read_shard
from corral.evaluation.play import Episode, play
from corral.evaluation.processes import Job, play_in_processes
from corral.evaluation.progress_file import ProgressFile
from corral.evaluation.result import Evaluation
from corral.evaluation.success import Judge, Success
from corral.frames import LazyVectorEnv
from corral.policy import Actor, Policy
from corral.registry import make_vec
from corral.settings import file_path, whole
from corral.vector import VectorEnv

_WIDTH = 32
_MAX_PROCESSES = 1024


def evaluate(
    policy: Policy,
    env: str | VectorEnv,
    indices: Iterable[int] = range(100),
    num_envs: int | None = None,
    *,
    success: Success | None = None,
    progress_file: str | os.PathLike[str] | None = None,
    shard: tuple[int, int] | None = None,
    num_processes: int | None = None,
    progress: bool | None = None,
    **config: Any,
) -> Evaluation:
    """Plays the episode of every index once.

    Only envs that hold an index are stepped: towards the end the batch shrinks. The result is the
    same for any `num_envs`, any split by `shard` and any `num_processes`, if the policy's rows
    depend neither on the batch's size nor on each other; matrix products by BLAS may, in their last
    bits.

    Args:
        policy: `policy(observations)` gives the actions, both with rows first. If it takes them by
            name, it also gets `began`, bool `(rows,)`: which rows begin an episode, and `index`,
            int64 `(rows,)`: which index each row plays (a recurrent policy keeps its state by it);
            and `infos`, as of a reset or step of these rows: `infos["action_mask"]`, for instance.
            A `torch.nn.Module` gets tensors on its own device; actions may be tensors. Where torch
            is imported, the policy runs under `torch.inference_mode`.
        env: an id, or a `corral.VectorEnv`, which is reset and left at the end of its episodes.
        indices: which episodes; repeated ones are played as often.
        num_envs: the batch's width for an id; by default 32, or the number of indices. With
            `num_processes`, of each process.
        success: what makes an episode a success: the key of an info whose value at the episode's
            end is true ("a.b" for "b" within "a"), or `success(infos, episode_return)`, with the
            infos of the episode's last step, as of one env.
        progress_file: a file to which every episode is appended when it has ended. A call with the
            same arguments plays those that it does not have; the policy is not among what is
            compared, nor are widths and processes.
        shard: `(k, n)`: plays the k-th of n parts alone (k from 0), which has every n-th index.
            `Evaluation.merge` makes the whole of all parts.
        num_processes: plays in so many processes, each with a copy of the policy and its own envs;
            for an id. Each has one thread, unless `num_threads` says more.
        progress: whether to show a bar; by default where stderr is a terminal.
        **config: options as in `corral.make_vec`, for an id.

    Raises:
        ArgumentError, ArgumentTypeError: for indices or a width that make no sense, and for a
            progress file of another evaluation.
        UnsupportedError: if the env cannot play an index, or some slots while others wait; for
            `lazy_frames`; for a policy that cannot be sent to another process; for running
            statistics (`normalize_observation`) where not one process plays all of it.
        ProgressFileError: where the progress file cannot be written.
        EnvError: if an env failed, or a process died.
    """
    actor = Actor(policy)
    judge = None if success is None else Judge(success)
    played = _read_indices(indices)
    if shard is not None:
        shard = read_shard(shard, len(played))
        played = played[shard[0] :: shard[1]].copy()
    count = None if num_processes is None else whole("num_processes", num_processes, _MAX_PROCESSES)
    made, options, scope = _made(env, len(played), num_envs, count, config)
    with scope:
        if (progress_file, shard, count) != (None, None, None):
            _refuse_running_statistics(made)
        about = About.of(made, options)
        file: ProgressFile | nullcontext[None] = nullcontext()
        if progress_file is not None:
            path = file_path("progress_file", progress_file)
            file = ProgressFile(path, about, played, success, shard)
        with file as kept, Progress("evaluating", len(played), progress) as bar:
            found: dict[int, Episode] = dict(kept.done) if kept is not None else {}

            def ended(episode: Episode) -> None:
                if kept is not None:
                    kept.append(episode)
                found[episode.position] = episode
                bar.update(len(found))

            left = [position for position in range(len(played)) if position not in found]
            bar.update(len(found))
            if count is None:
                play(actor, made, played, left, judge, ended)
            elif left:
                made.close()
                job = Job(policy, str(env), played, success, num_envs or _WIDTH, config)
                play_in_processes(job, left, count, ended)
    episodes = [found[position] for position in range(len(played))]
    return Evaluation(
        played,
        np.array([episode.episode_return for episode in episodes], dtype=np.float64),
        np.array([episode.length for episode in episodes], dtype=np.int64),
        None if judge is None else np.array([episode.success for episode in episodes], np.bool_),
        about.id,
        about.config,
        about.max_episode_steps,
        about.version,
        shard,
    )


def _made(
    env: str | VectorEnv,
    episodes: int,
    num_envs: int | None,
    num_processes: int | None,
    config: dict[str, Any],
) -> tuple[VectorEnv, dict[str, Any] | None, Any]:
    """The vec env, the options that it was made with here, and what closes it where that is ours to
    do. Where other processes play, it is of one env."""
    if config.get("lazy_frames") is True or isinstance(env, LazyVectorEnv):
        raise errors.UnsupportedError(
            "evaluate shows the policy frames that are stacked: leave lazy_frames out, and "
            "frame_stack alone stacks the same"
        )
    if isinstance(env, str):
        if "autoreset_mode" in config:
            raise errors.ArgumentError("evaluate chooses autoreset_mode itself: leave it out")
        width = _WIDTH if num_envs is None else num_envs
        if num_processes is not None:
            whole("num_envs", width, MAX_ENVS)
            width = 1
        if isinstance(width, int | np.integer):
            width = min(width, episodes)
        made = make_vec(env, width, autoreset_mode="disabled", **config)
        return made, config, closing(made)
    if isinstance(env, VectorEnv):
        if num_envs is not None or config:
            raise errors.ArgumentError("num_envs and options go with an id: this env has its own")
        if num_processes is not None:
            raise errors.ArgumentError(
                "num_processes goes with an id: a VectorEnv is of this process. Evaluate a shard= "
                "in each of several programs, and Evaluation.merge what they find"
            )
        return env, None, nullcontext()
    raise errors.ArgumentTypeError(
        f"env is an id or a corral.VectorEnv, not {type(env).__name__}: "
        "put wrappers' work into the policy"
    )


def _refuse_running_statistics(env: VectorEnv) -> None:
    """Statistics that go on would be of a part of the episodes, and those depend on the split."""
    for one in (env.observation_normalization, env.reward_normalization):
        if one is not None and one.update:
            raise errors.UnsupportedError(
                f"{env.native.id} is normalised by running statistics, which depend on which "
                "episodes one process plays: with progress_file, shard or num_processes give a "
                "corral.VectorEnv whose statistics stand still (observation_normalization.update "
                "= False)"
            )


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
