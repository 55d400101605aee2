"""What a server of netenv makes for a client: by an id, or by a function of the server's own."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode

from corral import _native, errors, registry, settings
from corral._netenv import opened
from corral._python_batch import vector_env
from corral._python_env import as_gymnasium
from corral.frames import StackedFrames
from corral.settings import flag, text, whole
from corral.vector import VectorEnv, autoreset_name

MakeVenv = Callable[..., Any]
Served = str | MakeVenv | Sequence[str] | Mapping[str, str | MakeVenv]

# The native vec env, what clients are told, the range of rewards, what draws, what is to live
# as long as the envs, and whether they are built from the seed that was asked for.
Made = tuple[
    _native.VecEnv, dict[str, Any], tuple[float, float], Callable[..., Any] | None, Any, bool
]

CHOSEN = ("autoreset_mode", "seed", "max_episode_steps", "episode_statistics", "debug")
"""The vec env's options that a client may choose. The others write files, or take the server's
threads and cores, or are the client's own matter."""


def settled(chosen: Mapping[str, Any]) -> dict[str, Any]:
    """What a client chooses of these options, in the form in which it travels."""
    told = {name: value for name, value in chosen.items() if value is not None}
    if "autoreset_mode" in told:
        told["autoreset_mode"] = autoreset_name(told["autoreset_mode"])
    if "seed" in told:
        told["seed"] = whole("seed", told["seed"], 2**63 - 1, 0)
    if "max_episode_steps" in told:
        told["max_episode_steps"] = whole("max_episode_steps", told["max_episode_steps"], 2**62, -1)
    for name in ("episode_statistics", "debug"):
        if name in told and not flag(name, told[name]):
            del told[name]
    return told


class Makers:
    """Makes the envs of connections: all that the server has, by the names that clients choose."""

    def __init__(self, given: Served) -> None:
        if isinstance(given, Mapping):
            self._by_name = dict(given)
        elif isinstance(given, str) or not isinstance(given, Sequence):
            self._by_name = {given if isinstance(given, str) else "": given}
        else:
            self._by_name = {text("an id", id): id for id in given}
        if not self._by_name:
            raise errors.ArgumentError("make_venv has no envs: give an id, or a function")
        for name, maker in self._by_name.items():
            text("a name of envs", name)
            if isinstance(maker, str):
                # An id that there is not is told now, and not to every client.
                registry.make_vec(maker, 1, autoreset_mode="same_step").close()
            elif not callable(maker):
                raise errors.ArgumentTypeError(f"make_venv is a function or an id, not {maker!r}")

    def __call__(
        self,
        num_envs: int,
        env_options: dict[str, Any],
        asked: tuple[str | None, dict[str, Any]] | None,
    ) -> Made:
        """The envs of a connection; see `_native.NetServer`."""
        is_plain = asked is None
        id, chosen = asked or (None, {})
        if id is None:
            id = next(iter(self._by_name))
        maker = self._by_name.get(id)
        if maker is None:
            raise errors.UnknownEnvError(
                f"this server has no envs called '{id}', but {', '.join(self._by_name)}"
            )
        options = {name: opened(value) for name, value in env_options.items()}
        if isinstance(maker, str):
            return self._by_id(maker, num_envs, options, asked)
        # Their maker knows of no seed; the client is told so.
        chosen.pop("seed", None)
        made = served(maker(num_envs=num_envs, **options), is_plain=is_plain)
        mode = chosen.pop("autoreset_mode", made[0].autoreset_mode)
        if mode != made[0].autoreset_mode:
            raise errors.UnsupportedError(
                f"a client asks for autoreset_mode='{mode}', and these envs are made in "
                f"'{made[0].autoreset_mode}'"
            )
        if chosen:
            raise errors.UnsupportedError(
                f"a client asks for {', '.join(chosen)}: the server makes these envs as they are"
            )
        return made

    def _by_id(
        self,
        id: str,
        num_envs: int,
        options: dict[str, Any],
        asked: tuple[str | None, dict[str, Any]] | None,
    ) -> Made:
        chosen = {} if asked is None else asked[1]
        for name, value in options.items():
            if name in settings.NAMES:
                raise errors.UnsupportedError(
                    f"a client asks for {name}={value!r} in env_options, which has the envs' own "
                    "options: the vec env's are arguments of corral.connect, or the server's"
                )
        for name in chosen:
            if name not in CHOSEN:
                raise errors.UnsupportedError(f"a client may not choose {name}")
        told: dict[str, Any] = {"autoreset_mode": "same_step", **chosen}
        venv = registry.make_vec(id, num_envs, **told, **options)
        return served(venv, is_plain=asked is None, is_seeded="seed" in chosen)


def served(venv: Any, *, is_plain: bool, is_seeded: bool = False) -> Made:
    """The parts of what `make_venv` returned, which the native server takes over. `is_plain` says
    that the client speaks netenv alone."""
    metadata = _plain(getattr(venv, "metadata", None) or {})
    reward_range = _range(getattr(venv, "reward_range", None))
    if isinstance(venv, VectorEnv):
        refuse_lazy(venv)
        # To a client of plain netenv, the server resets envs in the step that ends an episode.
        metadata["autoreset_mode"] = "same_step" if is_plain else venv.native.autoreset_mode
        return venv.native, metadata, reward_range, None, venv, is_seeded
    name = type(venv).__name__
    batch: _GymnasiumBatch | _Old
    if isinstance(venv, gymnasium.vector.VectorEnv):
        batch = _GymnasiumBatch(venv, has_infos=not is_plain)
        metadata["autoreset_mode"] = "next_step" if batch.is_next_step else "same_step"
    else:
        batch = _Old(venv)
    envs = vector_env(name, batch, episode_statistics=False)
    draw = venv.render if callable(getattr(venv, "render", None)) else None
    if draw is not None and isinstance(batch, _GymnasiumBatch):
        draw = batch.draw
    return envs.native, metadata, reward_range, draw, (venv, envs), is_seeded


def refuse_lazy(venv: VectorEnv, what: str = "what is served") -> None:
    """Raises where frames are stacked only when somebody looks at them.

    Args:
        venv: the vec env.
        what: whatever the envs are, for the message.
    """
    from corral.frames import LazyVectorEnv

    if venv.native.frame_stack is None and isinstance(venv, LazyVectorEnv):
        raise errors.UnsupportedError(
            f"lazy_frames are stacked where they are looked at: make {what} with frame_stack alone"
        )


def _range(given: Any) -> tuple[float, float]:
    try:
        low, high = given
        return float(low), float(high)
    except (TypeError, ValueError):
        return -math.inf, math.inf


def _plain(value: Any, depth: int = 0) -> Any:
    """The part of a metadata's value that JSON has words for."""
    if isinstance(value, AutoresetMode):
        return value.name.lower()
    if value is None or isinstance(value, bool | float | str | np.ndarray):
        return value
    if isinstance(value, int):
        return value if -(2**63) <= value < 2**63 else float(value)
    if isinstance(value, Mapping) and depth < 16:
        return {str(key): _plain(one, depth + 1) for key, one in value.items()}
    if isinstance(value, list | tuple) and depth < 16:
        return [_plain(one, depth + 1) for one in value]
    return str(value)


class _Old:
    """An old VecEnv as a `PythonBatch`: `reset()` gives observations, a step four things, and an
    env whose episode ended shows the next one's first observation."""

    def __init__(self, venv: Any) -> None:
        for name in ("num_envs", "observation_space", "action_space", "reset"):
            if not hasattr(venv, name):
                raise errors.ArgumentTypeError(
                    f"make_venv returned {venv!r}, which is no vec env: it has no {name}"
                )
        self.venv = venv
        self.num_envs = int(venv.num_envs)
        self.observation_space = as_gymnasium(venv.observation_space)
        self.action_space = as_gymnasium(venv.action_space)
        self.can_reset = True

    def reset(self) -> tuple[Any, None]:
        """Begins all envs."""
        return self.venv.reset(), None

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, None]:
        """Plays the actions; an end is shown as terminated."""
        if callable(getattr(self.venv, "step_async", None)):
            self.venv.step_async(actions)
            observations, rewards, dones, _ = self.venv.step_wait()
        else:
            observations, rewards, dones, _ = self.venv.step(actions)
        ends = np.array(dones, dtype=np.bool_)
        return observations, np.asarray(rewards, np.float64), ends, np.zeros_like(ends), None

    def close(self) -> None:
        """Closes the envs, if they can be."""
        if callable(getattr(self.venv, "close", None)):
            self.venv.close()


class _GymnasiumBatch:
    """A Gymnasium vector env as a `PythonBatch`.

    One in DISABLED is reset here where episodes end. One in NEXT_STEP cannot step some envs alone:
    it shows the final observation, and the next step begins an episode, with reward 0. Its metadata
    says so.
    """

    def __init__(self, venv: gymnasium.vector.VectorEnv[Any, Any, Any], *, has_infos: bool) -> None:
        self.venv = venv
        self._has_infos = has_infos
        self.num_envs = int(venv.num_envs)
        self.observation_space = venv.single_observation_space
        self.action_space = venv.single_action_space
        self.can_reset = True
        mode = venv.metadata.get("autoreset_mode")
        self._is_disabled = mode in (AutoresetMode.DISABLED, AutoresetMode.DISABLED.value)
        self.is_next_step = mode in (AutoresetMode.NEXT_STEP, AutoresetMode.NEXT_STEP.value)

    def reset(self) -> tuple[Any, Any]:
        """Begins all envs."""
        observations, infos = self.venv.reset()
        return _shown(observations), self._told(infos)

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, Any]:
        """Plays the actions."""
        observations, rewards, terminated, truncated, infos = self.venv.step(actions)
        # Arrays of an env that reuses them change with the reset.
        terminated, truncated = np.array(terminated), np.array(truncated)
        rewards, ends = np.array(rewards, np.float64), terminated | truncated
        if self._is_disabled and ends.any():
            observations, _ = self.venv.reset(options={"reset_mask": ends})
        return _shown(observations), rewards, terminated, truncated, self._told(infos)

    def _told(self, infos: dict[str, Any]) -> list[dict[str, Any]] | None:
        """Each env's infos, if anybody is told of them."""
        return [_info_of(infos, env) for env in range(self.num_envs)] if self._has_infos else None

    def draw(self, **_kwargs: Any) -> Any:
        """The pictures of all envs as one array, or None."""
        frames = self.venv.render()
        if frames is None or any(frame is None for frame in frames):
            return None
        return np.stack(list(frames))

    def close(self) -> None:
        """Closes the envs."""
        self.venv.close()


def _info_of(infos: dict[str, Any], env: int) -> dict[str, Any]:
    """The infos of one env, by the masks. What an episode showed last is not among them."""
    own = {}
    for key, value in infos.items():
        if not key.startswith(("_", "final_")) and infos.get(f"_{key}", _ALL)[env]:
            own[key] = _info_of(value, env) if isinstance(value, dict) else value[env]
    return own


class _Everyone:
    """A mask that is True for every env."""

    def __getitem__(self, env: int) -> bool:
        return True


_ALL = _Everyone()


def _shown(observations: Any) -> Any:
    return np.asarray(observations) if isinstance(observations, StackedFrames) else observations
