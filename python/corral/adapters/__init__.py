"""A `corral.VectorEnv` as what other libraries train on, and what they have as one of ours. Each
imports its library when called."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from corral import errors
from corral.vector import VectorEnv

if TYPE_CHECKING:
    from corral.adapters.gym3 import Gym3Env
    from corral.adapters.sb3 import SB3VecEnv


def to_gym3(envs: VectorEnv) -> Gym3Env:
    """A gym3 `Env` of these envs, all of which begin anew; closing it closes them.

    Args:
        envs: made with `autoreset_mode="same_step"`, which is gym3's.

    Returns:
        A real subclass of gym3's `Env`, with float32 rewards and `first`. What gym3 has no word
        for is in `get_info()`: `terminated`, `truncated`, `final_obs`, `final_info`, `episode`,
        `failed` (a `corral.SlotFailure`) of an env that failed, whose `final_obs` is zeros then,
        and `rgb` of envs that draw. Spaces become gym3's types as `docs/gym3.md` tells.

    Raises:
        UnsupportedError: for envs of another autoreset mode, and for spaces that gym3 has no type
            for.
        ImportError: without gym3.
    """
    _check_vector(envs)
    from corral.adapters.gym3 import Gym3Env

    return Gym3Env(envs)


def from_gym3(env: Any, *, episode_statistics: bool = False) -> VectorEnv:
    """A gym3 env as a `VectorEnv`, in this process; closing it closes the env.

    Args:
        env: any gym3 `Env`, wrapped or not.
        episode_statistics: as in `corral.make_vec`.

    Returns:
        A `VectorEnv` in SAME_STEP, without final observations. `first` becomes `terminated`,
        unless the env's infos tell `terminated` and `truncated` apart. Seeds, masks, indices,
        options and time limits are not gym3's, and refused; so is a second reset, unless the env
        has a `reset` of its own. What the env raises is raised here, as what it is, with an
        `EnvError` as its cause; the envs cannot be used after it.

    Raises:
        ArgumentTypeError: for what is no gym3 env.
        SpaceError: for types that are not gym3's.
        ImportError: without gym3.
    """
    from corral._python_batch import vector_env
    from corral.adapters.gym3 import Batch

    batch = Batch(env)
    return vector_env(type(env).__name__, batch, episode_statistics=episode_statistics)


def to_sb3(envs: VectorEnv) -> SB3VecEnv:
    """A Stable-Baselines3 `VecEnv` of these envs; closing it closes them.

    Args:
        envs: made with `autoreset_mode="same_step"`, which is SB3's.

    Returns:
        A real subclass of SB3's `VecEnv`, with SB3's conventions: float32 rewards, `dones`, one
        info dict per env with `terminal_observation` and `TimeLimit.truncated`, `reset_infos`,
        seeds and options that hold for the next reset. Envs made with `episode_statistics=True`
        tell `info["episode"]`, as SB3's Monitor does. Of an env that failed `info["failed"]` is the
        `corral.SlotFailure`, and `terminal_observation` is zeros. Envs that show no final
        observations (a libenv library that corral did not export, gym3 envs) have no
        `terminal_observation`: SB3's algorithms do without it at an end that is no truncation.

    Raises:
        UnsupportedError: for envs of another autoreset mode.
        ImportError: without stable-baselines3.
    """
    _check_vector(envs)
    from corral.adapters.sb3 import SB3VecEnv

    return SB3VecEnv(envs)


def _check_vector(envs: Any) -> None:
    if not isinstance(envs, VectorEnv):
        raise errors.ArgumentTypeError(f"envs is a corral.VectorEnv, not {envs!r}")


__all__ = ["from_gym3", "to_gym3", "to_sb3"]
