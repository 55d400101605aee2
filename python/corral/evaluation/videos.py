"""Videos of the episodes that an evaluation stands for: the best, the median and the worst one."""

from __future__ import annotations

import os
import warnings
from contextlib import closing, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from corral import errors, video
from corral.evaluation.play import Episode, play
from corral.frames import LazyVectorEnv
from corral.policy import Actor, Policy
from corral.registry import make_vec
from corral.settings import file_path
from corral.vector import VectorEnv

if TYPE_CHECKING:
    from corral.evaluation.result import Evaluation


def write(
    evaluation: Evaluation,
    policy: Policy,
    folder: str | os.PathLike[str],
    env: VectorEnv | None,
    format: str,
) -> dict[str, Path]:
    """As `Evaluation.videos`."""
    actor = Actor(policy)
    target = Path(file_path("folder", folder))
    if format not in video.FORMATS:
        raise errors.ArgumentError(f"format is 'mp4' or 'gif', not {format!r}")
    if env is None:
        made = _make(evaluation)
        scope: Any = closing(made)
    else:
        made, scope = _checked(env, evaluation), nullcontext()
    with scope:
        target.mkdir(parents=True, exist_ok=True)
        paths: dict[str, Path] = {}
        for name, position in _chosen(evaluation).items():
            index = evaluation.indices[position]
            paths[name] = target / f"{name}_index_{index}.{format}"
            again = _film(actor, made, int(index), paths[name])
            if again.episode_return != evaluation.returns[position]:
                warnings.warn(
                    f"{paths[name]} shows another episode of index {index} than the one that was "
                    f"evaluated: its return is {again.episode_return:.6g}, and that was "
                    f"{evaluation.returns[position]:.6g}. Is it the same policy, and does it play "
                    "the same each time?",
                    stacklevel=3,
                )
    return paths


def _chosen(evaluation: Evaluation) -> dict[str, int]:
    """The positions of the episodes, by what they stand for."""
    order = np.argsort(evaluation.returns, kind="stable")
    return {
        "best": int(np.argmax(evaluation.returns)),
        "median": int(order[(len(order) - 1) // 2]),
        "worst": int(order[0]),
    }


def _make(evaluation: Evaluation) -> VectorEnv:
    limit = -1 if evaluation.max_episode_steps is None else evaluation.max_episode_steps
    config = {**evaluation.config, "max_episode_steps": limit}
    try:
        return make_vec(
            evaluation.id, 1, autoreset_mode="disabled", render_mode="rgb_array", **config
        )
    except errors.UnknownEnvError as error:
        raise errors.ArgumentError(
            f"{evaluation.id!r} is no id here: give env=, a corral.VectorEnv made with "
            'render_mode="rgb_array"'
        ) from error


def _checked(env: Any, evaluation: Evaluation) -> VectorEnv:
    if not isinstance(env, VectorEnv) or isinstance(env, LazyVectorEnv):
        raise errors.ArgumentTypeError(
            f"env is a corral.VectorEnv without lazy_frames, not {type(env).__name__}"
        )
    if evaluation.id not in ("", env.native.id):
        raise errors.ArgumentError(f"env is {env.native.id!r}, and {evaluation.id!r} was evaluated")
    if env.render_mode != "rgb_array":
        raise errors.UnsupportedError(
            f"env has render_mode={env.render_mode!r}, which gives no pictures: make it with "
            'render_mode="rgb_array"'
        )
    return env


class _Filming:
    """A policy that films what it is shown."""

    def __init__(self, actor: Actor, shoot: Any) -> None:
        self._actor, self._shoot = actor, shoot
        self.named = actor.named

    def __call__(self, observations: Any, more: dict[str, Any]) -> Any:
        self._shoot()
        return self._actor(observations, more)


def _film(actor: Actor, env: VectorEnv, index: int, path: Path) -> Episode:
    """Plays the episode of `index` in the first slot; what came of it."""
    fps = env.metadata.get("render_fps")
    # Another file of this name stays as it is until this one is whole.
    partial = path.with_name(f".partial_{path.name}")
    file = video.open_video(partial, fps)
    found: list[Episode] = []

    def shoot() -> None:
        frames = env.render([0])
        file.append_data(video.picture(None if frames is None else frames[0], env.native.id))

    def ended(episode: Episode) -> None:
        found.append(episode)
        # Under same_step the next episode has begun, and nothing shows the end of this one.
        if env.native.autoreset_mode != "same_step":
            shoot()

    try:
        try:
            filming: Any = _Filming(actor, shoot)
            play(filming, env, np.array([index]), [0], None, ended)
        finally:
            file.close()
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
    return found[0]
