"""Corral's envs as what other libraries train on, and what they have as a `corral.VectorEnv`. Each
function imports its library when called."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any, overload

import gymnasium
from typing_extensions import Unpack

from corral import errors, python_envs, settings
from corral.settings import VecOptions, documented, flag
from corral.vector import VectorEnv, check_layout

if TYPE_CHECKING:
    from corral.adapters.dm_env import DmEnv, DmVectorEnv
    from corral.adapters.gym3 import Gym3Env
    from corral.adapters.rl_games import RlGamesVecEnv
    from corral.adapters.sb3 import SB3VecEnv
    from corral.adapters.tianshou import TianshouVecEnv
    from corral.adapters.trl import TrlEnvironment


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


def to_sb3(envs: VectorEnv, *, episode_statistics: bool = True) -> SB3VecEnv:
    """A Stable-Baselines3 `VecEnv` of these envs; closing it closes them.

    Args:
        envs: made with `autoreset_mode="same_step"`, which is SB3's.
        episode_statistics: whether `info["episode"]` of an episode's last step is what SB3's
            Monitor tells: {"r": return, "l": length, "t": seconds since this call}. The return is
            of the rewards that `envs` give; of the envs' own, which `normalize_reward` leaves
            aside, where `envs` were made with `episode_statistics=True`.

    Returns:
        A real subclass of SB3's `VecEnv`, with SB3's conventions: float32 rewards, `dones`, one
        info dict per env with `terminal_observation` and `TimeLimit.truncated`, `reset_infos`,
        seeds and options that hold for the next reset. The list of infos makes its dicts when one
        of them is read. Of an env that failed `info["failed"]` is the `corral.SlotFailure`, and
        `terminal_observation` is zeros. Envs that show no final observations (a libenv library
        that corral did not export, gym3 envs) have no `terminal_observation`: SB3's algorithms do
        without it at an end that is no truncation.

    Raises:
        ArgumentTypeError: for what is no `VectorEnv`.
        UnsupportedError: for envs of another autoreset mode.
        ImportError: without stable-baselines3.
    """
    _check_vector(envs)
    statistics = flag("episode_statistics", episode_statistics)
    from corral.adapters.sb3 import SB3VecEnv

    return SB3VecEnv(envs, episode_statistics=statistics)


_OF_SB3 = {
    **python_envs._REFUSED,
    "autoreset_mode": 'SB3 resets an env in the step that ends its episode: it is "same_step"',
    "seed": "SB3 seeds envs by the vec env's seed(), which make_vec_env calls with its own",
    "max_episode_steps": "the functions make envs with the limit that they have",
    "render_mode": "the functions make envs with the render mode that they have",
    "final_frames": "SB3's interface has no place for them",
}


@documented(_OF_SB3)
def sb3_vec_env(
    env_fns: Sequence[Callable[[], Any]],
    *,
    runner: str | None = None,
    num_workers: int | None = None,
    context: str | None = None,
    check_nan: bool | None = None,
    **options: Unpack[VecOptions],
) -> SB3VecEnv:
    """What Stable-Baselines3's `make_vec_env` takes as its `vec_env_cls`; `vec_env_kwargs` are the
    arguments behind the first.

    Args:
        env_fns: functions that make one env each. Each is called once to see what it makes, and
            its env is closed. Envs of `corral.make` or of `gymnasium.make("corral/…")`, all with
            the same arguments and wrapped in nothing but SB3's Monitor and what `gymnasium.make`
            adds, become one vec env in Rust. Their monitors' files and `info_keywords` go on. All
            others are hosted by `corral.from_gymnasium`, as they are.
        runner, num_workers, context, check_nan: as in `corral.from_gymnasium`; None for its
            defaults. Where one is given, corral's envs are hosted as Python's.
        **options: as in `corral.make_vec`, but of its options only these:
            {names}.
        episode_statistics (True): as in `corral.to_sb3`, of the envs' own rewards. Envs with a
            Monitor tell of their episodes either way.

    Returns:
        As `corral.to_sb3`.

    Raises:
        ArgumentError, ArgumentTypeError, UnknownOptionError: name what is wrong.
        UnsupportedError: for options that these envs do not have.
        Exception: what `env_fns` raise.
        ImportError: without stable-baselines3.
    """
    settings.check(sb3_vec_env, options, _OF_SB3)
    for make in env_fns if isinstance(env_fns, list | tuple) else [env_fns]:
        if not callable(make):
            raise errors.ArgumentTypeError(
                f"env_fns is a list of functions that make an env each, not {env_fns!r}"
            )
    statistics = flag("episode_statistics", options.get("episode_statistics", True))
    vec_options = {
        name: value
        for name, value in options.items()
        if name not in _OF_SB3 and name != "episode_statistics"
    }
    given = {
        "runner": runner,
        "num_workers": num_workers,
        "context": context,
        "check_nan": check_nan,
    }
    hosting = {name: value for name, value in given.items() if value is not None}
    from corral.adapters import sb3_fns

    return sb3_fns.sb3_vec_env(env_fns, hosting, vec_options, statistics)


def to_rl_games(envs: VectorEnv) -> RlGamesVecEnv:
    """An rl_games `IVecEnv` of these envs; its `close` closes them.

    Args:
        envs: made with `autoreset_mode="same_step"`, which is what rl_games' agents expect.

    Returns:
        A real subclass of rl_games' `IVecEnv`. Observations are uint8 or float32 (any other dtype
        is cast), a Box or a Dict of these. Rewards are float32. `infos["time_outs"]`, bool
        `(num_envs,)`, is True where an episode was truncated and did not terminate:
        `value_bootstrap: True` in rl_games' config makes use of it. Envs that tell
        `infos["action_mask"]` have `get_action_masks`, for `use_action_masks: True`.

    Raises:
        UnsupportedError: for envs of another autoreset mode, and for spaces that rl_games has no
            networks for: observations that are no Box, actions that are none of Discrete,
            MultiDiscrete and a Box of one axis.
        LibraryError: without rl_games (an ImportError).
    """
    _check_vector(envs)
    made: RlGamesVecEnv = _module("rl_games", "rl-games").RlGamesVecEnv(envs)
    return made


def to_tianshou(envs: VectorEnv) -> TianshouVecEnv:
    """A Tianshou `BaseVectorEnv` of these envs, for its `Collector`; its `close` closes them.

    Args:
        envs: made with `autoreset_mode="disabled"`, for Tianshou's collectors reset envs
            themselves.

    Returns:
        A real subclass of Tianshou's `BaseVectorEnv`. `reset(ids)` and `step(actions, ids)` play
        some of the envs. Infos are an array with a dict for each. Rewards are float64.

    Raises:
        ArgumentTypeError: for what is no `VectorEnv`.
        UnsupportedError: for envs of another autoreset mode, with a `batch_size`, or whose
            observations have tuples in them.
        LibraryError: without Tianshou (an ImportError).
    """
    _check_vector(envs)
    made: TianshouVecEnv = _module("tianshou", "tianshou").TianshouVecEnv(envs)
    return made


@overload
def to_dm_env(env: VectorEnv) -> DmVectorEnv: ...
@overload
def to_dm_env(env: gymnasium.Env[Any, Any]) -> DmEnv: ...
def to_dm_env(env: VectorEnv | gymnasium.Env[Any, Any]) -> DmEnv | DmVectorEnv:
    """A `dm_env.Environment` of one env, or of a batch of envs in EnvPool's form; closing it closes
    what it was made of.

    Args:
        env: a `corral.Env`, or any Gymnasium env; or a `VectorEnv` made with
            `autoreset_mode="next_step"`, the default, which is EnvPool's.

    Returns:
        Of one env a `TimeStep` is dm_env's, to the letter: reward and discount None at FIRST; MID
        with discount 1; LAST with discount 0 where the env terminated, with 1 where it was
        truncated alone. `step` before a reset and after LAST begins an episode and ignores the
        action. Of a `VectorEnv` a `TimeStep` has arrays: `step_type` int32, `reward` and
        `discount` float64, all `(num_envs,)`, and observations `(num_envs, …)`; at FIRST the
        reward is 0 and the discount 1. Specs are of one env, as `docs/dm_env.md` tells. Infos are
        in the attribute `info` or `infos`.

    Raises:
        ArgumentTypeError: for what is no env.
        UnsupportedError: for a `VectorEnv` of another autoreset mode, or with `lazy_frames`.
        LibraryError: without dm_env (an ImportError).
    """
    if not isinstance(env, VectorEnv | gymnasium.Env):
        raise errors.ArgumentTypeError(
            f"env is a corral.VectorEnv, a corral.Env or a Gymnasium env, not {env!r}"
        )
    module = _module("dm_env", "dm-env")
    made: DmEnv | DmVectorEnv
    made = module.DmVectorEnv(env) if isinstance(env, VectorEnv) else module.DmEnv(env)
    return made


_REFUSED = {
    **python_envs._REFUSED,
    "render_mode": "dm_env's interface draws no pictures",
    "final_frames": "dm_env's interface draws no pictures",
}


@documented(_REFUSED)
def from_dm_env(
    fn: Callable[..., Any] | Sequence[Callable[..., Any]],
    num_envs: int | None = None,
    *,
    takes_seed: bool = False,
    runner: str = "process",
    num_workers: int | None = None,
    context: str = "spawn",
    check_nan: bool = True,
    **options: Unpack[VecOptions],
) -> VectorEnv:
    """A batch of dm_env environments, hosted as `from_gymnasium` hosts Gymnasium's.

    Args:
        fn: a function that makes a `dm_env.Environment`, or a list with one per env.
        num_envs: how many; with a list, its length.
        takes_seed: whether `fn` takes one argument, the seed: an int, or None where nobody gave
            one. dm_env has no seeds of its own. With `takes_seed` a reset with seed s closes the
            environment and makes `fn(s)`, and the episode of index ix is the first of `fn(ix)`;
            without, seeds and indices are errors.
        runner, num_workers, context, check_nan: as in `from_gymnasium`.
        **options: as in `corral.make_vec`, but for what is said below:
            {names}.
        seed (None): needs `takes_seed`; env i is made by `fn(seed + i)`.
        num_threads, timeout: as in `from_gymnasium`.

    Returns:
        A `VectorEnv`. LAST with discount 0 is `terminated`, with a greater discount `truncated`.
        `infos["discount"]`, float64 `(num_envs,)`, is each row's discount, but for rows of envs
        that failed; at FIRST, where dm_env has None, it is 1. Specs become spaces as
        `docs/dm_env.md` tells.

    Raises:
        ArgumentError, ArgumentTypeError, UnknownOptionError: name what is wrong.
        UnsupportedError: for options that these envs do not have, seeds among them, and for
            functions that cannot be sent to another process.
        SpaceError: for specs that corral has no space for, and for a reward or discount that is
            not one number.
        LibraryError: without dm_env (an ImportError).
        Exception: what `fn` raises.
    """
    settings.check(from_dm_env, options, _REFUSED)
    takes_seed = flag("takes_seed", takes_seed)
    for one in fn if isinstance(fn, list | tuple) else [fn]:
        if not callable(one):
            raise errors.ArgumentTypeError(
                f"fn is a function that makes a dm_env.Environment, or a list of these, not {one!r}"
            )
    module = _module("dm_env", "dm-env")
    if options.get("seed") is not None and not takes_seed:
        raise errors.UnsupportedError(f"from_dm_env takes no seed: {module.NO_SEED}")
    each = python_envs.each_of(fn, num_envs)
    made: VectorEnv = module.vector_env(
        each,
        options,
        takes_seed=takes_seed,
        runner=runner,
        num_workers=num_workers,
        context=context,
        check_nan=check_nan,
    )
    return made


def _module(library: str, package: str) -> ModuleType:
    """The module here that is named like the library that it imports; `package` is pip's name."""
    try:
        return importlib.import_module(f"corral.adapters.{library}")
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != library:
            raise
        message = f"{library} is not installed: pip install {package}"
        raise errors.LibraryError(message) from error


def to_trl(
    env: str | Callable[[], gymnasium.Env[Any, Any]],
    *,
    describe: Callable[[Any, dict[str, Any]], str] | None = None,
    tool: str = "act",
    about: str = "Plays one action in the environment.",
    actions: Sequence[str] | None = None,
    column: str = "index",
    **options: Any,
) -> type[TrlEnvironment]:
    """A class for the `environment_factory` of TRL's `GRPOTrainer`: each instance is one env.

    Args:
        env: an id as of `corral.make`, or a function that makes a Gymnasium env.
        describe: a function of an observation and its infos that gives the text which the model
            reads. Without one a text is shown as it is, and other observations as numbers; of envs
            made with `render_mode="ansi"` their picture in letters.
        tool: the name of the method that plays an action, which the model calls as a tool.
        about: what the model is told of the tool.
        actions: names for the labels of a Discrete action space, in place of numbers.
        column: the dataset's column with the index of the episode.
        **options: those of `corral.make`, for an id.

    Returns:
        A class without arguments. `reset(index=ix, …)` plays index ix, so that all completions of
        a row begin with the same bytes: of an env of corral its index ix, of any other
        `reset(seed=ix)`. The tool takes an int, a list of numbers, a name or a text, by the
        action space, and gives the text of what follows. `get_reward()` is the sum of the rewards.
        A wrong action is an error that the model reads, and moves nothing.

    Raises:
        UnsupportedError: for action spaces that no tool can be made of.
        ArgumentError, ArgumentTypeError: name what is wrong.
    """
    from corral.adapters.trl import environment

    return environment(env, describe, tool, about, actions, column, options)


def _check_vector(envs: Any) -> None:
    if not isinstance(envs, VectorEnv):
        raise errors.ArgumentTypeError(f"envs is a corral.VectorEnv, not {envs!r}")
    check_layout(envs)


__all__ = [
    "from_dm_env",
    "from_gym3",
    "sb3_vec_env",
    "to_dm_env",
    "to_gym3",
    "to_rl_games",
    "to_sb3",
    "to_tianshou",
    "to_trl",
]
