"""EnvPool's functions over corral's envs.

Change the import and keep the rest:

    import corral.compat.envpool as envpool

`docs/trainers/envpool.md` lists what is different on purpose.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import corral
from corral import errors
from corral.compat.envpool import arguments
from corral.compat.envpool.gymnasium_pool import GymEnvPool, GymnasiumEnvPool
from corral.compat.envpool.pool import EnvPool
from corral.compat.envpool.spec import EnvSpec

if TYPE_CHECKING:
    from corral.compat.envpool.dm_pool import DMEnvPool

_TYPES = ("gym", "gymnasium", "dm")


def make(task_id: str, env_type: str, **kwargs: Any) -> EnvPool:
    """A batch of envs with EnvPool's interface.

    Args:
        task_id: "CartPole-v1" or "corral/CartPole-v1"; "library/Name-v0", or "Name-v0" alone where
            one library has an env of that name.
        env_type: "gymnasium" and "gym" for five values from `step`, "dm" for a `dm_env.TimeStep`.
        num_envs (1): how many envs.
        batch_size (0): how many envs a `recv` waits for; 0 for all.
        num_threads (0): how many threads step envs; 0 leaves that to corral.
        thread_affinity_offset (-1): as in `corral.make_vec`.
        seed (42): env i is built from `seed + i`; a list or an array has one for each env. Never
            negative.
        env_seed (None): EnvPool's other name for one seed for each env.
        max_episode_steps: truncates episodes after so many steps; without it the env's usual limit
            holds, with -1 none.
        reward_threshold: what `spec.reward_threshold` says; without it the env's usual one.
        stack_num (1): shows each env's last so many observations along a first axis of their own.
        render_mode (None): "rgb_array" for frames from `render`.
        render_env_id (0): which env `render` draws where it is told none.
        max_num_players (1): 1: every env has one player.
        gym_reset_return_info (True): False, with "gym", gives the interface of Gym before 0.26, as
            EnvPool before 1.0 had it: `reset` gives observations alone, and `step` four values.
        **kwargs: the env's own options, and those options of `corral.make_vec` that EnvPool has no
            name for: action_bounds, check_actions, debug, timeout, on_failure, record and more.

    Raises:
        UnknownEnvError, UnknownOptionError: list what there is.
        OptionValueError, ArgumentError, ArgumentTypeError: name what is wrong.
        UnsupportedError: for options that make no sense under EnvPool's interface.
        LibraryError: with "dm", without dm_env (an ImportError).
    """
    if env_type not in _TYPES:
        raise errors.ArgumentError(
            f"env_type is one of {', '.join(map(repr, _TYPES))}, not {env_type!r}"
        )
    asked = arguments.parse(task_id, kwargs)
    if not asked.returns_info and env_type != "gym":
        raise errors.ArgumentError(
            "gym_reset_return_info=False is the interface of Gym before 0.26: give it with "
            f"env_type='gym', not {env_type!r}"
        )
    kind: type[EnvPool] = GymnasiumEnvPool if asked.returns_info else GymEnvPool
    if env_type == "dm":
        kind = _dm_pool()
    return kind(*_made(asked, asked.num_envs), asked.env_seeds, asked.render_env_id)


def make_gym(task_id: str, **kwargs: Any) -> EnvPool:
    """As `make` with "gym"."""
    return make(task_id, "gym", **kwargs)


def make_gymnasium(task_id: str, **kwargs: Any) -> EnvPool:
    """As `make` with "gymnasium"."""
    return make(task_id, "gymnasium", **kwargs)


def make_dm(task_id: str, **kwargs: Any) -> EnvPool:
    """As `make` with "dm"."""
    return make(task_id, "dm", **kwargs)


def make_spec(task_id: str, **kwargs: Any) -> EnvSpec:
    """What `make` with these arguments would have as `spec`; errors as `make`."""
    envs, spec = _made(arguments.parse(task_id, kwargs), 1)
    envs.close()
    return spec


def list_all_envs() -> list[str]:
    """The ids of all envs, those of libraries too."""
    return list(corral.envs())


def _made(asked: arguments.Arguments, num_envs: int) -> tuple[corral.VectorEnv, EnvSpec]:
    options = asked.options if num_envs == asked.num_envs else {**asked.options, "batch_size": None}
    envs = corral.make_vec(asked.id, num_envs, **options)
    limit = envs.max_episode_steps
    shown = {**asked.shown, "max_episode_steps": arguments.NO_LIMIT if limit is None else limit}
    return envs, EnvSpec(asked.id, shown, envs)


def _dm_pool() -> type[DMEnvPool]:
    try:
        from corral.compat.envpool.dm_pool import DMEnvPool
    except ModuleNotFoundError as error:
        if error.name != "dm_env":
            raise
        raise errors.LibraryError("dm_env is not installed: pip install dm-env") from error
    return DMEnvPool


def __getattr__(name: str) -> Any:
    if name == "DMEnvPool":
        return _dm_pool()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "DMEnvPool",
    "EnvPool",
    "EnvSpec",
    "GymEnvPool",
    "GymnasiumEnvPool",
    "list_all_envs",
    "make",
    "make_dm",
    "make_gym",
    "make_gymnasium",
    "make_spec",
]
