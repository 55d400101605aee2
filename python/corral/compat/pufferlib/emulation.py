"""Spaces of any form as flat ones: one Box of observations, one MultiDiscrete of actions.

An observation is a C struct, each leaf at its own alignment. Its bytes are shown as one vector: in
the dtype that all leaves share, else as bytes. `emulated` tells both dtypes, so that a policy can
view the vector as the struct again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium import Space
from gymnasium import spaces as gym_spaces

from corral import errors
from corral._python_env import as_gymnasium
from corral.compat.pufferlib.base import APIUsageError, Buffers, set_buffers

_NUMBERS = (gym_spaces.Box, gym_spaces.MultiBinary)


def _inner(space: Space[Any]) -> list[tuple[str, Space[Any]]] | None:
    """The fields of a space that holds others."""
    if isinstance(space, gym_spaces.Dict):
        return list(space.items())
    if isinstance(space, gym_spaces.Tuple):
        return [(f"f{place}", inner) for place, inner in enumerate(space)]
    return None


def dtype_from_space(space: Space[Any]) -> np.dtype[Any]:
    """The struct that holds a value of the space: fields are a Dict's keys, or f0, f1, … of a
    Tuple; Discrete and MultiDiscrete are int32; of a Text it holds two characters.

    Raises:
        UnsupportedError: for leaves that are no arrays: Graph, Sequence and others.
    """
    fields = _inner(space)
    described: Any
    if fields is not None:
        described = [(name, dtype_from_space(inner)) for name, inner in fields]
    elif isinstance(space, gym_spaces.Discrete):
        described = (np.int32, ())
    elif isinstance(space, gym_spaces.MultiDiscrete):
        described = (np.int32, (len(space.nvec),))
    elif isinstance(space, _NUMBERS):
        described = (space.dtype, space.shape)
    elif isinstance(space, gym_spaces.Text):
        # PufferLib's, so that a policy of its size fits.
        described = "<U2"
    else:
        raise errors.UnsupportedError(
            f"{space} has no fixed number of bytes, so that emulation cannot flatten it: leave it "
            "out, or turn it into a Box, by a wrapper"
        )
    struct: np.dtype[Any] = np.dtype(described, align=True)
    return struct


def flatten_space(space: Space[Any]) -> list[Space[Any]]:
    """The leaves of a space, in the order of their fields."""
    fields = _inner(space)
    if fields is None:
        return [space]
    return [leaf for _, inner in fields for leaf in flatten_space(inner)]


def emulate_observation_space(space: Space[Any]) -> tuple[gym_spaces.Box, np.dtype[Any]]:
    """The flat space of observations, and the struct that its vectors hold.

    Returns:
        A Box as it is. Any other space becomes a Box `(n,)` of the leaves' dtype if that is one,
        else of uint8, that is as large as the struct.
    """
    struct = dtype_from_space(space)
    if isinstance(space, gym_spaces.Box):
        return space, struct
    dtypes = {np.dtype(leaf.dtype) for leaf in flatten_space(space)}
    dtype = dtypes.pop() if len(dtypes) == 1 else np.dtype(np.uint8)
    if dtype.kind == "U":
        dtype = np.dtype(np.uint8)
    # Labels are int64 in their spaces and int32 in the struct, which two by two are int64 again.
    if struct.itemsize % dtype.itemsize:
        dtype = np.dtype(np.int32)
    low, high = _bounds(dtype)
    shape = (struct.itemsize // dtype.itemsize,)
    return gym_spaces.Box(low, high, shape, dtype), struct


def _bounds(dtype: np.dtype[Any]) -> tuple[Any, Any]:
    if dtype.kind == "b":
        return 0, 1
    if dtype.kind in "iu":
        whole = np.iinfo(dtype)
        return whole.min, whole.max
    real = np.finfo(np.float32)
    return real.min, real.max


def emulate_action_space(space: Space[Any]) -> tuple[Space[Any], np.dtype[Any]]:
    """The flat space of actions, and the struct that they stand for.

    Returns:
        A Box, Discrete or MultiDiscrete as it is; of a Dict or Tuple the MultiDiscrete of its
        leaves, a label for each.

    Raises:
        UnsupportedError: for a Dict or Tuple with a leaf that is no Discrete or MultiDiscrete.
    """
    if isinstance(space, gym_spaces.Box):
        return space, np.dtype(space.dtype)
    if isinstance(space, gym_spaces.Discrete | gym_spaces.MultiDiscrete):
        return space, np.dtype(np.int32)
    counts: list[int] = []
    for leaf in flatten_space(space):
        if isinstance(leaf, gym_spaces.Discrete):
            counts.append(int(leaf.n))
        elif isinstance(leaf, gym_spaces.MultiDiscrete) and leaf.nvec.ndim == 1:
            counts.extend(int(n) for n in leaf.nvec)
        else:
            raise errors.UnsupportedError(
                f"actions of {space} cannot become one MultiDiscrete: {leaf} is no Discrete or "
                "MultiDiscrete of one axis"
            )
    return gym_spaces.MultiDiscrete(counts), dtype_from_space(space)


def emulate(struct: npt.NDArray[Any], observations: Any, space: Space[Any]) -> None:
    """Writes observations into an array `(n,)` of `dtype_from_space(space)`: a batch of n of them,
    or one of them into all rows."""
    fields = _inner(space)
    if fields is None:
        struct[...] = observations
        return
    for place, (name, inner) in enumerate(fields):
        key: Any = name if isinstance(space, gym_spaces.Dict) else place
        emulate(struct[name], observations[key], inner)


def nativize(actions: npt.NDArray[Any], space: Space[Any]) -> Any:
    """Actions `(n, …)` of the flat space as a batch of n actions of the space."""
    if _inner(space) is None:
        return actions
    return _nativize(actions, space, [0])


def _nativize(actions: npt.NDArray[Any], space: Space[Any], place: list[int]) -> Any:
    """`place`: the next column."""
    fields = _inner(space)
    if fields is not None:
        values = {name: _nativize(actions, inner, place) for name, inner in fields}
        return values if isinstance(space, gym_spaces.Dict) else tuple(values.values())
    first = place[0]
    if isinstance(space, gym_spaces.Discrete):
        place[0] += 1
        return actions[:, first]
    place[0] += len(space.nvec)  # type: ignore[attr-defined]
    return actions[:, first : place[0]]


def _row(batch: Any, space: Space[Any]) -> Any:
    """The first action of a batch, as one env takes it."""
    fields = _inner(space)
    if fields is None:
        return int(batch[0]) if isinstance(space, gym_spaces.Discrete) else batch[0]
    if isinstance(space, gym_spaces.Dict):
        return {name: _row(batch[name], inner) for name, inner in fields}
    return tuple(_row(one, inner) for one, (_, inner) in zip(batch, fields, strict=True))


class Emulation:
    """The flat spaces of an env.

    Attributes:
        native_observation_space, native_action_space: the env's own.
        observation_space, action_space: the flat ones.
        obs_dtype, atn_dtype: the structs that they stand for.
        is_obs_emulated, is_atn_emulated: whether they are other than the env's own.
        emulated: the dtypes of an observation, flat and as a struct.
    """

    def __init__(self, observation_space: Any, action_space: Any) -> None:
        self.native_observation_space = as_gymnasium(observation_space)
        self.native_action_space = as_gymnasium(action_space)
        self.observation_space, self.obs_dtype = emulate_observation_space(
            self.native_observation_space
        )
        self.action_space, self.atn_dtype = emulate_action_space(self.native_action_space)
        self.is_obs_emulated = self.observation_space is not self.native_observation_space
        self.is_atn_emulated = self.action_space is not self.native_action_space
        self.emulated = {
            "observation_dtype": self.observation_space.dtype,
            "emulated_observation_dtype": self.obs_dtype,
        }

    def flat(self, observations: Any, count: int) -> npt.NDArray[Any]:
        """A batch of `count` observations as an array `(count, …)` of the flat space."""
        if not self.is_obs_emulated:
            array: npt.NDArray[Any] = observations
            return array
        struct = np.zeros(count, self.obs_dtype)
        emulate(struct, observations, self.native_observation_space)
        return struct.view(self.observation_space.dtype).reshape(count, -1)


class GymnasiumPufferEnv(Buffers, gymnasium.Env[Any, Any]):
    """A Gymnasium env as one agent with flat spaces, whose arrays have a row for it.

    Args:
        env: an env.
        env_creator: a function that makes an env, in place of `env`.
        env_args, env_kwargs: what it is called with.
        buf: the arrays to write into; see `set_buffers`.
        seed: not used: `reset` takes seeds.

    Attributes:
        env: the env.
        done: whether an episode must begin.
        emulated: the dtypes of an observation, flat and as a struct.
    """

    num_agents = 1

    def __init__(
        self,
        env: gymnasium.Env[Any, Any] | None = None,
        env_creator: Callable[..., gymnasium.Env[Any, Any]] | None = None,
        env_args: Sequence[Any] | None = (),
        env_kwargs: Mapping[str, Any] | None = None,
        buf: Mapping[str, npt.NDArray[Any]] | None = None,
        seed: int | None = 0,
    ) -> None:
        self.env = _made(env, env_creator, env_args or (), env_kwargs or {})
        self.emulation = Emulation(self.env.observation_space, self.env.action_space)
        self.observation_space = self.single_observation_space = self.emulation.observation_space
        self.action_space = self.single_action_space = self.emulation.action_space
        self.obs_dtype, self.atn_dtype = self.emulation.obs_dtype, self.emulation.atn_dtype
        self.is_obs_emulated = self.emulation.is_obs_emulated
        self.is_atn_emulated = self.emulation.is_atn_emulated
        self.emulated = self.emulation.emulated
        self._is_label = isinstance(self.emulation.native_action_space, gym_spaces.Discrete)
        self.initialized = False
        self.done = True
        self.is_observation_checked = False
        self.is_action_checked = False
        set_buffers(self, buf)
        self.obs_struct = _struct(self.observations, self.obs_dtype)

    @property
    def render_mode(self) -> Any:  # type: ignore[override]
        """The env's own."""
        return self.env.render_mode

    def reset(  # type: ignore[override]
        self, seed: int | None = None
    ) -> tuple[npt.NDArray[Any], dict[str, Any]]:
        """Begins an episode.

        Returns:
            Observations `(1, …)`, which the next step overwrites, and the env's infos.

        Raises:
            APIUsageError: where the env's first observation is not in its space.
        """
        observation, info = self.env.reset() if seed is None else self.env.reset(seed=seed)
        self.initialized, self.done = True, False
        if not self.is_observation_checked:
            _check("observation", observation, self.emulation.native_observation_space)
            self.is_observation_checked = True
        self._show(observation)
        self.rewards[0] = 0
        self.terminals[0] = self.truncations[0] = False
        self.masks[0] = True
        return self.observations, info

    def step(self, action: Any) -> tuple[npt.NDArray[Any], Any, bool, bool, dict[str, Any]]:
        """Plays one action.

        Args:
            action: one of the flat space, with or without a first axis of length 1.

        Returns:
            Observations `(1, …)`, which the next step overwrites, and what the env gave else.

        Raises:
            APIUsageError: before a reset, after an episode's end, and where the first action is
                not in its space.
        """
        if self.done:
            when = "after an episode's end" if self.initialized else "before reset"
            raise APIUsageError(f"step {when}: call reset first")
        if self._is_label and type(action) is np.ndarray and action.ndim == 1:
            played = action[0]
        else:
            played = self._native(action)
        if not self.is_action_checked:
            _check("action", played, self.emulation.native_action_space)
            self.is_action_checked = True
        observation, reward, terminated, truncated, info = self.env.step(played)
        self._show(observation)
        self.rewards[0] = reward
        self.terminals[0] = terminated
        self.truncations[0] = truncated
        self.done = bool(terminated or truncated)
        return self.observations, reward, terminated, truncated, info

    def _native(self, action: Any) -> Any:
        space = self.emulation.native_action_space
        if self.is_atn_emulated:
            flat = np.asarray(action, np.int32).reshape(1, -1)
            return _row(nativize(flat, space), space)
        if not isinstance(action, np.ndarray):
            return action
        if self._is_label:
            return action.ravel()[0]
        return action.reshape(space.shape or ())

    def _show(self, observation: Any) -> None:
        if self.is_obs_emulated:
            emulate(self.obs_struct, observation, self.emulation.native_observation_space)
        else:
            self.observations[:] = observation

    def render(self) -> Any:
        """What the env draws."""
        return self.env.render()

    def close(self) -> None:
        """Closes the env."""
        self.env.close()


def _struct(flat: npt.NDArray[Any], struct: np.dtype[Any]) -> npt.NDArray[Any]:
    """The one row of a flat array as the struct; writing to it writes to the row."""
    if struct.fields is not None:
        return flat.view(struct)[:, 0]
    return flat.view(struct.base).reshape(1, *struct.shape)


def _made(env: Any, creator: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    if (env is None) == (creator is None):
        raise errors.ArgumentError("give an env or an env_creator, and not both")
    if creator is None:
        if callable(env):
            raise errors.ArgumentTypeError(
                f"env is an env, and {env!r} is what makes one: give it as env_creator"
            )
        return env
    if not callable(creator):
        raise errors.ArgumentTypeError(f"env_creator is a function, not {creator!r}")
    return creator(*args, **kwargs)


def _check(what: str, value: Any, space: Space[Any]) -> None:
    try:
        is_inside = space.contains(value)
    except Exception as error:
        raise APIUsageError(f"the {what} {value!r} cannot be held to {space}: {error}") from error
    if not is_inside:
        raise APIUsageError(f"the {what} {value!r} is not in {space}")
