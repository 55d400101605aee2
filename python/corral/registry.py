"""Environments by id: `make`, `make_vec`, and Gymnasium's registry."""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Iterable, Mapping
from typing import Any

import gymnasium
from gymnasium.envs.registration import EnvSpec
from gymnasium.vector import AutoresetMode

from corral import _native, errors, plugins
from corral.settings import Settings, text
from corral.single import Env
from corral.vector import VectorEnv

_NAMESPACE = "corral/"
_RENDER_MODES = (None, "rgb_array")


def envs() -> dict[str, dict[str, Any]]:
    """All envs, the built-in ones and those of libraries: by id, what each is (`about`,
    `max_episode_steps`, `reward_threshold`, `render_fps`, `options`)."""
    built_in = {
        entry["id"]: {**entry, "options": json.loads(entry["options"]) or {}}
        for entry in _native.entries()
    }
    return {**built_in, **plugins.entries()}


def make_vec(
    id: str,
    num_envs: int = 1,
    *,
    autoreset_mode: str | AutoresetMode = "next_step",
    seed: int | None = None,
    max_episode_steps: int | None = None,
    episode_statistics: bool = False,
    action_bounds: str = "env",
    render_mode: str | None = None,
    num_threads: int | None = None,
    batch_size: int | None = None,
    timeout: float | None = None,
    on_failure: str = "raise",
    max_restarts: int = 10,
    thread_affinity_offset: int | None = None,
    record: str | os.PathLike[str] | None = None,
    frame_stack: int | None = None,
    lazy_frames: bool = False,
    normalize_observation: bool = False,
    normalize_reward: bool = False,
    reward_gamma: float = 0.99,
    **config: Any,
) -> VectorEnv:
    """A batch of environments.

    Args:
        id: "CartPole-v1", or "corral/CartPole-v1"; "library/Name-v0" for an env of a library that
            is installed or was loaded by `corral.load`.
        num_envs: how many, at least 1.
        autoreset_mode: "next_step", "same_step", "disabled", or Gymnasium's `AutoresetMode`.
        seed: env i is built from `seed + i`, so that the first `reset()` is `reset(seed=seed)`;
            None for seeds from the system.
        max_episode_steps: truncates episodes after so many steps; None for the env's usual
            limit, -1 for none.
        episode_statistics: adds `infos["episode"]` = {"r": returns, "l": lengths, "t": seconds}
            with its mask `infos["_episode"]` to steps that end episodes.
        action_bounds: what becomes of finite actions outside their box: "env" (it sees them),
            "clip" or "error". A label outside its `Discrete` and what is not finite are errors
            under all three. "unchecked": whatever fits the leaf's dtype is passed on, labels and
            NaN too; what comes of it is up to the env, whose panic or error is `EnvError` as ever.
        render_mode: None or "rgb_array".
        num_threads: how many threads step envs, the caller's included; None for as many as there
            are cores, where that is faster than one (it is measured as it goes). The results are
            the same for any number.
        batch_size: how many envs a `recv` waits for. With fewer than `num_envs` every env runs by
            itself in the background, driven by `send` and `recv`; a slow env holds up no other
            while a thread is free.
        timeout: seconds that an env may take for one step or reset. One that takes longer fails;
            its thread is left behind, for code in this process cannot be stopped. No env runs on
            the caller's thread then, so that Ctrl-C always gets through. None for no limit.
        on_failure: what becomes of an env that fails, by panic, error or silence. "raise":
            `EnvError`, which carries the others' results; the env waits for its reset. "restart":
            it is rebuilt and its episode reported truncated, marked by `infos["_failed"]` and
            `infos["restarted"]`. "mask": its rows are zeros, marked by `infos["_failed"]`, and its
            actions ignored until it is reset. The last observation of an episode that ended so was
            seen by nobody: zeros stand in its place, in the row or (same_step) in
            `infos["final_obs"]`, and `infos["_failed"]` of that row is True, `infos["failed"]` the
            `corral.SlotFailure`.
        max_restarts: with "restart", how often in a row one env may be restarted without ending an
            episode in between, before its failure is raised.
        thread_affinity_offset: binds thread k to the k-th core after this one, of those that this
            process may use; None (or EnvPool's -1) leaves that to the system.
        record: a directory, made if missing, for a file of every env that fails; its path is in
            the failure's `replay`, and `corral.replay` or the command `corral replay` plays it.
            Keeps 64 KiB of actions an env at most.
        frame_stack: shows each env's last so many observations, oldest first, as
            `(num_envs, frame_stack, …)`; an episode's first observation fills the stack. As
            Gymnasium's FrameStackObservation, but right under autoreset and `reset_mask`. Each
            frame is kept once, in a ring; a step copies one frame in and `frame_stack` out.
        lazy_frames: observations are `corral.StackedFrames`, which are stacked when they are
            looked at, whole or some rows: a rollout that keeps them keeps each frame once, and a
            step copies none. For observations that are one Box.
        normalize_observation: shows real observations as float32 `(x - mean) / sqrt(var + 1e-8)`,
            by running statistics that every new observation updates once, final ones included.
            `observation_normalization` has them, and freezes them. Frames are normalised before
            they are stacked.
        normalize_reward: divides rewards by the root of the running variance of discounted
            returns, as Gymnasium's NormalizeReward; `reward_normalization` has the statistics.
            Episode statistics stay those of the env's own rewards.
        reward_gamma: the discount of these returns, from 0 to 1.
        **config: the env's own options.

    Raises:
        UnknownEnvError, UnknownOptionError: list what there is.
        OptionValueError, ArgumentError: name what is wrong.
        UnsupportedError: for what this env cannot do: frames of ragged or text leaves, for
            instance.
        EnvError: if an env could not be built.
    """
    settings = Settings(
        autoreset_mode=autoreset_mode,
        seed=seed,
        max_episode_steps=max_episode_steps,
        episode_statistics=episode_statistics,
        action_bounds=action_bounds,
        num_threads=num_threads,
        batch_size=batch_size,
        timeout=timeout,
        on_failure=on_failure,
        max_restarts=max_restarts,
        thread_affinity_offset=thread_affinity_offset,
        record=record,
        frame_stack=frame_stack,
        lazy_frames=lazy_frames,
        normalize_observation=normalize_observation,
        normalize_reward=normalize_reward,
        reward_gamma=reward_gamma,
    )
    native = settings.native(plugins.source(text("id", id), config), num_envs)
    vector_env = settings.vector(native, _check_render_mode(native, render_mode))
    vector_env.spec = _spec(native.id, render_mode, config)
    return vector_env


def make(
    id: str,
    *,
    seed: int | None = None,
    max_episode_steps: int | None = None,
    action_bounds: str = "env",
    render_mode: str | None = None,
    **config: Any,
) -> Env:
    """One environment; arguments and errors as `make_vec`."""
    native = _native.make(
        plugins.source(text("id", id), config),
        1,
        seed=seed,
        autoreset_mode="disabled",
        max_episode_steps=max_episode_steps,
        action_bounds=text("action_bounds", action_bounds),
        num_threads=1,
    )
    env = Env(native, render_mode=_check_render_mode(native, render_mode))
    env.spec = _spec(native.id, render_mode, config)
    return env


def _check_render_mode(native: _native.VecEnv, render_mode: str | None) -> str | None:
    if not isinstance(render_mode, str | None) or render_mode not in _RENDER_MODES:
        raise errors.ArgumentError(f"render_mode is None or 'rgb_array', not {render_mode!r}")
    if render_mode is not None and not native.can("render"):
        raise errors.UnsupportedError(f"{native.id} draws no pictures: leave render_mode at None")
    return render_mode


def _spec(id: str, render_mode: str | None, config: dict[str, Any]) -> EnvSpec | None:
    """What Gymnasium has registered, with this env's own arguments."""
    registered = gymnasium.registry.get(_gymnasium_id(id))
    if registered is None:
        return None
    spec = copy.deepcopy(registered)
    spec.kwargs.update(config)
    if render_mode is not None:
        spec.kwargs["render_mode"] = render_mode
    return spec


def _gymnasium_id(id: str) -> str:
    return id if plugins.is_loaded(id) else _NAMESPACE + id


def register_with_gymnasium() -> None:
    """Registers what is not registered yet: every built-in env as `corral/…`, those of libraries
    as `library/…`."""
    for id, entry in envs().items():
        if _gymnasium_id(id) not in gymnasium.registry:
            _register(_gymnasium_id(id), id, entry)


def register_library(
    entries: Mapping[str, Mapping[str, Any]], *, instead_of: Iterable[str] = ()
) -> None:
    """Registers a library's envs, by id, in place of those of an earlier one: all, or none.

    Raises:
        LibraryError: for what Gymnasium does not register.
    """
    before = dict(gymnasium.registry)
    try:
        for id in (*instead_of, *entries):
            gymnasium.registry.pop(id, None)
        for id, entry in entries.items():
            _register(id, id, entry)
    except Exception as error:
        gymnasium.registry.clear()
        gymnasium.registry.update(before)
        raise errors.LibraryError(f"Gymnasium does not register {id!r}: {error}") from error


def _register(gymnasium_id: str, id: str, entry: Mapping[str, Any]) -> None:
    gymnasium.register(
        gymnasium_id,
        entry_point="corral.registry:make_for_gymnasium",
        vector_entry_point="corral.registry:make_vec_for_gymnasium",
        reward_threshold=entry["reward_threshold"],
        max_episode_steps=entry["max_episode_steps"],
        kwargs={"corral_id": id},
    )


def make_for_gymnasium(corral_id: str, **kwargs: Any) -> Env:
    """What `gymnasium.make` calls. The time limit is Gymnasium's wrapper's there."""
    return make(corral_id, max_episode_steps=-1, **kwargs)


make_for_gymnasium.metadata = {"render_modes": ["rgb_array"]}  # type: ignore[attr-defined]


def make_vec_for_gymnasium(corral_id: str, **kwargs: Any) -> VectorEnv:
    """What `gymnasium.make_vec` calls, with the time limit among the arguments."""
    return make_vec(corral_id, **kwargs)
