"""The functions that Stable-Baselines3's `make_vec_env` makes envs by, as one vec env; see
`corral.sb3_vec_env`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import gymnasium
from gymnasium.wrappers import OrderEnforcing, PassiveEnvChecker, TimeLimit
from stable_baselines3.common.monitor import Monitor

from corral import errors, python_envs, registry
from corral.adapters.sb3 import SB3VecEnv
from corral.single import Env

Factory = Callable[[], Any]

# Wrappers whose work the vec env does itself.
_DROPPED = (TimeLimit, OrderEnforcing, PassiveEnvChecker)


@dataclass(frozen=True)
class _Recipe:
    """What makes a vec env of envs like one that was looked at."""

    id: str
    options: dict[str, Any]


def sb3_vec_env(
    env_fns: Sequence[Factory],
    hosting: Mapping[str, Any],
    vec_options: Mapping[str, Any],
    episode_statistics: bool,
) -> SB3VecEnv:
    """As `corral.sb3_vec_env`.

    Args:
        hosting: those of the options of `from_gymnasium` that were given and are not among
            `vec_options`.
    """
    each = python_envs.each_of(env_fns, None)
    options = {**vec_options, "autoreset_mode": "same_step"}
    if episode_statistics and vec_options.get("normalize_reward"):
        # What is counted outside the vec env is of normalised rewards.
        options["episode_statistics"] = True
    if not hosting:
        made = _looked_at(each)
        if made is not None:
            recipe, monitors = made
            envs = registry.make_vec(recipe.id, len(each), **recipe.options, **options)
            wants = episode_statistics or bool(monitors)
            return SB3VecEnv(envs, episode_statistics=wants, monitors=monitors)
    hosted = python_envs.from_gymnasium(each, **options, **hosting)
    return SB3VecEnv(hosted, episode_statistics=episode_statistics)


def _looked_at(env_fns: list[Factory]) -> tuple[_Recipe, list[Monitor]] | None:
    """What makes the envs of these functions, and their monitors; None where they are not all
    corral's and alike, or wrapped in what has work of its own."""
    envs: list[Any] = []
    monitors: list[Monitor] = []
    recipe: _Recipe | None = None
    try:
        for make in env_fns:
            envs.append(make())
            seen = _recipe(envs[-1])
            if seen is None or (recipe is not None and not _are_alike(recipe, seen)):
                return None
            recipe = seen
            if isinstance(envs[-1], Monitor):
                monitors.append(envs[-1])
        _check_own(envs)
        if recipe is None or len(monitors) not in (0, len(envs)):
            return None
        envs = [monitor.env for monitor in monitors] or envs
        return recipe, monitors
    finally:
        for env in envs:
            env.close()


def _recipe(env: Any) -> _Recipe | None:
    if isinstance(env, Monitor):
        if type(env) is not Monitor or env.reset_keywords or not env.allow_early_resets:
            return None
        env = env.env
    limit: int | None = None
    while isinstance(env, gymnasium.Wrapper):
        if type(env) not in _DROPPED:
            return None
        if isinstance(env, TimeLimit):
            if limit is not None:
                return None
            limit = env._max_episode_steps
        env = env.env
    if type(env) is not Env or env.made is None:
        return None
    id, options = env.made
    if "seed" in options:
        # All would have one seed, and the envs of a vec env have one each.
        return None
    if limit is not None:
        if env.max_episode_steps is not None:
            return None
        options = {**options, "max_episode_steps": limit}
    return _Recipe(id, dict(options))


def _are_alike(one: _Recipe, other: _Recipe) -> bool:
    """Whether two envs have the same arguments. Arguments whose equality is no bool, as of arrays,
    are not the same."""
    try:
        return bool(one == other)
    except Exception:
        return False


def _check_own(envs: list[Any]) -> None:
    if len({id(env.unwrapped) for env in envs}) < len(envs):
        raise errors.ArgumentError(
            "env_fns gave one env object for several envs: each call must make an env of its own"
        )
