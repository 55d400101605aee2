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
from corral.settings import VecOptions, documented, text
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
    vector_env = settings.vector(native, vec_options, _check_render_mode(native, render_mode))
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
    vec_options = VecOptions(
        seed=seed,
        autoreset_mode="disabled",
        max_episode_steps=max_episode_steps,
        action_bounds=action_bounds,
        num_threads=1,
    )
    native = settings.native(_source(id, config, make.__kwdefaults__ or ()), 1, vec_options)
    env = Env(native, render_mode=_check_render_mode(native, render_mode))
    env.spec = _spec(native.id, render_mode, config)
    return env


def _source(id: str, config: dict[str, Any], known: Iterable[str]) -> _native.Source:
    """The source of an env with its own options; where one is unknown, `known` may be near."""
    try:
        return plugins.source(text("id", id), config)
    except errors.UnknownOptionError as error:
        raise errors.UnknownOptionError(f"{error}{settings.near(config, known)}") from None


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
            registration.register(_gymnasium_id(id), id, entry)


def make_for_gymnasium(corral_id: str, **kwargs: Any) -> Env:
    """What `gymnasium.make` calls. The time limit is Gymnasium's wrapper's there."""
    return make(corral_id, max_episode_steps=-1, **kwargs)


make_for_gymnasium.metadata = {"render_modes": ["rgb_array"]}  # type: ignore[attr-defined]


def make_vec_for_gymnasium(corral_id: str, **kwargs: Any) -> VectorEnv:
    """What `gymnasium.make_vec` calls, with the time limit among the arguments."""
    return make_vec(corral_id, **kwargs)
