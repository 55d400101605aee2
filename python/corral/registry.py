"""Environments by id: `make`, `make_vec`, and Gymnasium's registry."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable
from typing import Any, overload

import gymnasium
from gymnasium.envs.registration import EnvSpec
from typing_extensions import Unpack

from corral import _native, errors, plugins, registration, settings
from corral.rendering import check_render_mode, render_modes
from corral.settings import VecOptions, documented, text
from corral.single import Env
from corral.vector import VectorEnv

_NAMESPACE = "corral/"


def envs() -> dict[str, dict[str, Any]]:
    """All envs, the built-in ones and those of libraries: by id, what each is (`about`,
    `max_episode_steps`, `reward_threshold`, `render_fps`), its `options` with their defaults, and
    `option_docs`: of each option its `type` and `meaning`, and `low`, `high`, `choices` or `fields`
    where it has any."""
    built_in = {
        entry["id"]: {
            **entry,
            "options": json.loads(entry["options"]) or {},
            "option_docs": json.loads(entry["option_docs"]),
        }
        for entry in _native.entries()
    }
    return {**built_in, **plugins.entries()}


@overload
def make_vec(id: str, num_envs: int = 1, **options: Unpack[VecOptions]) -> VectorEnv: ...
@overload
def make_vec(id: str, num_envs: int = 1, **options: Any) -> VectorEnv: ...
@documented()
def make_vec(id: str, num_envs: int = 1, **options: Any) -> VectorEnv:
    """A batch of environments.

    Args:
        id: "CartPole-v1", or "corral/CartPole-v1"; "library/Name-v0" for an env of a library that
            is installed or was loaded by `corral.load`.
        num_envs: how many, at least 1.
        **options: those below; by any other name, the env's own.
        {options}

    Raises:
        UnknownEnvError, UnknownOptionError: list what there is.
        OptionValueError, ArgumentError, ArgumentTypeError: name what is wrong.
        UnsupportedError: for what this env cannot do: frames of ragged or text leaves, for
            instance.
        EnvError: if an env could not be built.
    """
    vec_options, config = settings.split(options, settings.NAMES)
    render_mode = vec_options.get("render_mode")
    native = settings.native(_source(id, config, settings.NAMES), num_envs, vec_options)
    vector_env = settings.vector(native, vec_options, check_render_mode(native, render_mode))
    vector_env.spec = _spec(native, render_mode, config)
    return vector_env


_IN_BATCHES = "it is for batches; make_vec takes it, with num_envs=1 too"
_REFUSED = {
    "autoreset_mode": "the caller of one env resets it",
    "num_threads": "one env runs on the caller's thread",
    "episode_statistics": "gymnasium.wrappers.RecordEpisodeStatistics adds them",
    "frame_stack": "gymnasium.wrappers.FrameStackObservation stacks frames",
    "normalize_observation": "gymnasium.wrappers.NormalizeObservation does that",
    "normalize_reward": "gymnasium.wrappers.NormalizeReward does that",
    **dict.fromkeys(
        (
            "batch_size",
            "final_frames",
            "info_layout",
            "timeout",
            "reset_timeout",
            "on_failure",
            "max_restarts",
            "thread_affinity_offset",
            "record",
            "lazy_frames",
            "reward_gamma",
        ),
        _IN_BATCHES,
    ),
}


@overload
def make(id: str, **options: Unpack[VecOptions]) -> Env: ...
@overload
def make(id: str, **options: Any) -> Env: ...
@documented(_REFUSED)
def make(id: str, **options: Any) -> Env:
    """One environment.

    Args:
        id: as of `make_vec`.
        **options: as in `corral.make_vec`, but of its options only these:
            {names}.

    Raises:
        UnsupportedError: for any other option of `make_vec`; the message says what does its work.
        EnvError, UnknownEnvError, …: as `make_vec`.
    """
    vec_options, config = settings.split(options, settings.NAMES)
    settings.check(make, vec_options, _REFUSED)
    given = {name: vec_options[name] for name in vec_options if name not in _REFUSED}
    render_mode = given.get("render_mode")
    given |= {"autoreset_mode": "disabled", "num_threads": 1}
    known = [name for name in settings.NAMES if name not in _REFUSED]
    native = settings.native(_source(id, config, known), 1, given)
    env = Env(native, render_mode=check_render_mode(native, render_mode))
    env.spec = _spec(native, render_mode, config)
    env.made = (id, options)
    return env


def _source(id: str, config: dict[str, Any], known: Iterable[str]) -> _native.Source:
    """The source of an env with its own options; where one is unknown, `known` may be near."""
    try:
        return plugins.source(text("id", id), config)
    except errors.UnknownOptionError as error:
        # Callers who try an option and do without it where there is none look for Python's words.
        pythons = [
            f" (in Python's words: unexpected keyword argument '{name}')"
            for name in config
            if f"unknown option '{name}'" in str(error)
        ]
        told = f"{error}{settings.near(config, known)}{''.join(pythons[:1])}"
        raise errors.UnknownOptionError(told) from None


def _spec(
    native: _native.VecEnv, render_mode: str | None, config: dict[str, Any]
) -> EnvSpec | None:
    """What Gymnasium has registered, with this env's own arguments and time limit."""
    registered = gymnasium.registry.get(_gymnasium_id(native.id))
    if registered is None:
        return None
    spec = copy.deepcopy(registered)
    spec.max_episode_steps = native.max_episode_steps
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
            registration.register(_gymnasium_id(id), id, entry)


def make_for_gymnasium(corral_id: str, **kwargs: Any) -> Env:
    """What `gymnasium.make` calls. The time limit is Gymnasium's wrapper's there."""
    return make(corral_id, max_episode_steps=-1, **kwargs)


make_for_gymnasium.metadata = {"render_modes": render_modes()}  # type: ignore[attr-defined]


def make_vec_for_gymnasium(corral_id: str, **kwargs: Any) -> VectorEnv:
    """What `gymnasium.make_vec` calls, with the time limit among the arguments."""
    return make_vec(corral_id, **kwargs)
