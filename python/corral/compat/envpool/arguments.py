"""EnvPool's arguments as options of `corral.make_vec`."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from corral import _native, errors, registry, settings

NO_LIMIT = 2**31 - 1
"""What EnvPool shows as the limit of episodes that have none."""

_MOST = 2**31 - 1
_SEED = 42
# EnvPool's own, in the order in which `config` shows them, with their defaults.
_OWN: dict[str, Any] = {
    "num_envs": 1,
    "batch_size": 0,
    "num_threads": 0,
    "max_num_players": 1,
    "thread_affinity_offset": -1,
    "seed": _SEED,
    "env_seed": None,
    "gym_reset_return_info": True,
    "max_episode_steps": None,
    "reward_threshold": None,
    "stack_num": 1,
    "render_mode": None,
    "render_env_id": 0,
}
_REFUSED = {
    "autoreset_mode": "EnvPool begins an episode in the step after the one that ended the last",
    "final_frames": "EnvPool's last observation of an episode is in the row that ends it",
    "frame_stack": "EnvPool's name for it is stack_num",
    "lazy_frames": "EnvPool's observations are arrays",
}
# Of corral's, those that EnvPool has no name for.
_PASSED = tuple(name for name in settings.NAMES if name not in _OWN and name not in _REFUSED)


@dataclasses.dataclass(frozen=True)
class Arguments:
    """What `make` was asked for.

    Attributes:
        id: corral's id of the env.
        num_envs: how many.
        options: what `corral.make_vec` is given.
        env_seeds: one seed for each env, where they were given so.
        returns_info: False for the interface of Gym before 0.26.
        render_env_id: the env that `render` draws.
        shown: what `config` shows.
    """

    id: str
    num_envs: int
    options: dict[str, Any]
    env_seeds: list[int] | None
    returns_info: bool
    render_env_id: int
    shown: dict[str, Any]


def parse(task_id: str, given: Mapping[str, Any]) -> Arguments:
    """EnvPool's arguments, checked as far as `corral.make_vec` does not."""
    entries = registry.envs()
    id = _corral_id(task_id, entries)
    own_options = entries.get(id, {}).get("options", {})
    for name in given:
        if name in _REFUSED and name not in own_options:
            raise errors.UnsupportedError(f"EnvPool's make takes no {name}: {_REFUSED[name]}")
    # What is not listed, `corral.make_vec` knows or refuses.
    if id in entries:
        _check_names(id, given, own_options)
    asked = {**_OWN, **{name: value for name, value in given.items() if name in _OWN}}
    num_envs = settings.whole("num_envs", asked["num_envs"], _MOST)
    batch_size = settings.whole("batch_size", asked["batch_size"], num_envs, 0) or num_envs
    num_threads = settings.whole("num_threads", asked["num_threads"], _MOST, 0)
    stack_num = settings.whole("stack_num", asked["stack_num"], _native.MAX_FRAMES)
    settings.whole("max_num_players", asked["max_num_players"], 1)
    render_env_id = settings.whole("render_env_id", asked["render_env_id"], num_envs - 1, 0)
    seed, env_seeds = _seeds(asked["seed"], asked["env_seed"], num_envs)
    rest = {name: value for name, value in given.items() if name not in _OWN}
    threshold = asked["reward_threshold"]
    if threshold is None:
        threshold = entries.get(id, {}).get("reward_threshold")
    options = {
        **rest,
        "seed": seed,
        "batch_size": batch_size if batch_size < num_envs else None,
        "num_threads": num_threads or None,
        "thread_affinity_offset": asked["thread_affinity_offset"],
        "max_episode_steps": asked["max_episode_steps"],
        "frame_stack": stack_num if stack_num > 1 else None,
        "render_mode": asked["render_mode"],
    }
    shown = {
        **asked,
        "batch_size": batch_size,
        "seed": 0 if seed is None else seed,
        "env_seed": env_seeds or [],
        "reward_threshold": threshold,
        **own_options,
        **rest,
    }
    del shown["render_mode"], shown["render_env_id"]
    returns_info = settings.flag("gym_reset_return_info", asked["gym_reset_return_info"])
    return Arguments(id, num_envs, options, env_seeds, returns_info, render_env_id, shown)


def _corral_id(task_id: str, entries: Mapping[str, Any]) -> str:
    """The id by which corral knows a task; where it knows none, what it was called."""
    id = settings.text("task_id", task_id).removeprefix("corral/")
    if id in entries or "/" in id:
        return id
    of_libraries = [one for one in entries if one.rpartition("/")[2] == id]
    if len(of_libraries) > 1:
        raise errors.ArgumentError(
            f"several libraries have a {id!r}: give one of {', '.join(of_libraries)}"
        )
    return of_libraries[0] if of_libraries else id


def _check_names(id: str, given: Mapping[str, Any], own_options: Mapping[str, Any]) -> None:
    for name in given:
        if name not in _OWN and name not in _PASSED and name not in own_options:
            known = [*_OWN, *_PASSED, *own_options]
            own = ", ".join(own_options) or "none"
            raise errors.UnknownOptionError(
                f"make: unknown option '{name}'. EnvPool's options: {', '.join(_OWN)}. "
                f"{id}'s own: {own}. Corral's: {', '.join(_PASSED)}{settings.near([name], known)}"
            )


def _seeds(seed: Any, env_seed: Any, num_envs: int) -> tuple[int | None, list[int] | None]:
    """One seed for all, or one for each."""
    if isinstance(seed, Sequence | np.ndarray) and not isinstance(seed, str | bytes):
        if env_seed is not None:
            raise errors.ArgumentError("seed has one for each env already: leave env_seed out")
        seed, env_seed = _SEED, seed
    if env_seed is None or len(env_seed) == 0:
        return settings.whole("seed", seed, 2**63 - 1, 0), None
    if len(env_seed) != num_envs or np.ndim(env_seed) != 1:
        raise errors.ArgumentError(
            f"there are seeds of shape {np.shape(env_seed)} for {num_envs} envs: give one each"
        )
    each = [settings.whole(f"seed of env {k}", one, 2**63 - 1, 0) for k, one in enumerate(env_seed)]
    return None, each
