"""How a rollout comes about: a policy plays, and what the envs show lands in the final arrays."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
from gymnasium import spaces as gym_spaces
from gymnasium.vector import AutoresetMode

from corral import _native, errors
from corral.policy import Actor, Policy
from corral.rollouts import FLAGS, Episodes, Rollout

if TYPE_CHECKING:
    from corral.vector import VectorEnv

# How long Ctrl-C lets a step that is under way come to its end, in seconds.
_GRACE = 1.0
_MOST_STEPS = 2**31 - 1


def roll(
    envs: VectorEnv,
    policy: Policy,
    steps: int,
    *,
    infos: Sequence[str] = (),
    extras: Sequence[str] = (),
    out: Rollout | None = None,
) -> Rollout:
    """See `VectorEnv.rollout`."""
    # `corral.settings` imports the vec env's module, which imports this one.
    from corral.settings import whole

    actor = Actor(policy)
    asked = _Asked(
        whole("steps", steps, _MOST_STEPS), _names("infos", infos), _names("extras", extras)
    )
    source = _source(envs, asked, out)
    fragment = source.fragment
    names = asked.extras
    takes_infos = "infos" in actor.named
    # Most policies are plain functions: a call of these takes a tenth of an actor's time.
    plain = None if takes_infos else actor.plain
    step = 0
    actions: Any = None
    try:
        fragment.begin()
        if plain is not None and not names and not source.keeps_actions:
            fragment.play(plain)
            return source.rollout()
        observations, told = fragment.shown()
        for step in range(asked.steps):
            if plain is not None:
                given = plain(observations)
            else:
                given = actor(observations, {"infos": told or {}} if takes_infos else {})
            if names:
                actions, more = _parted(given, names)
                source.put_extras(step, more)
            else:
                actions = given
            observations, told = fragment.step(actions)
            if source.keeps_actions:
                source.put(step, actions)
    except BaseException as error:
        with contextlib.suppress(Exception):
            if isinstance(error, KeyboardInterrupt):
                fragment.recv(_GRACE)
            if source.keeps_actions and fragment.done > step:
                source.put(step, actions)
        with contextlib.suppress(Exception):
            error.rollout = source.rollout()  # type: ignore[attr-defined]
        raise
    return source.rollout()


class _Asked(NamedTuple):
    steps: int
    infos: tuple[str, ...]
    extras: tuple[str, ...]


class Source:
    """What fills a rollout, and fills it again."""

    def __init__(self, envs: VectorEnv, asked: _Asked) -> None:
        self.asked = asked
        self.fragment = _native.Fragment(envs.native, asked.steps, list(asked.infos))
        self._is_next_step = envs.autoreset_mode is AutoresetMode.NEXT_STEP
        self._num_envs = envs.num_envs
        self._arrays = 0
        self._actions = self._room_for(envs.single_action_space)
        # Most spaces are of one array, which the fragment writes to.
        is_plain = isinstance(self._actions, np.ndarray) and self._actions.dtype != object
        if is_plain:
            self.fragment.keep_actions(self._actions)
        self.keeps_actions = not is_plain
        self._extras: dict[str, npt.NDArray[Any]] = {}

    def _array(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> npt.NDArray[Any]:
        """Room for a row per step and env; `shape` is that of one step."""
        whole = (self.asked.steps, *shape)
        made = self.fragment.array(self._arrays, np.empty((), dtype), list(whole))
        self._arrays += 1
        return np.empty(whole, dtype) if made is None else made

    def _room_for(self, space: gym_spaces.Space[Any]) -> Any:
        if isinstance(space, gym_spaces.Dict):
            return {name: self._room_for(inner) for name, inner in space.spaces.items()}
        if isinstance(space, gym_spaces.Tuple):
            return tuple(self._room_for(inner) for inner in space.spaces)
        if space.shape is None or not isinstance(space.dtype, np.dtype):
            return np.full((self.asked.steps, self._num_envs), None, dtype=object)
        return self._array((self._num_envs, *space.shape), space.dtype)

    def put(self, step: int, actions: Any) -> None:
        """Keeps the actions of a step that was made."""
        _store(self._actions, step, actions)

    def put_extras(self, step: int, extras: Mapping[str, npt.NDArray[Any]]) -> None:
        """Keeps what the policy returned beside its actions, before the step is made.

        Raises:
            ArgumentError: for an array that has not a row for each env, or not the shape that it
                had in earlier steps.
        """
        for name, value in extras.items():
            kept = self._extras.get(name)
            right = (self._num_envs, *value.shape[1:]) if kept is None else kept.shape[1:]
            if value.shape != right:
                raise errors.ArgumentError(
                    f"the policy's '{name}' has shape {value.shape} at step {step}, where {right} "
                    "belongs: a row for each env, of one shape in all steps"
                )
            if kept is None:
                kept = self._extras[name] = self._array(value.shape, value.dtype)
            kept[step] = value

    def rollout(self) -> Rollout:
        """The steps that there are."""
        arrays, steps = self.fragment.arrays(), self.fragment.done
        infos = arrays["infos"]
        if undeclared := arrays["undeclared"]:
            infos = {**_by_step(undeclared, self._num_envs), **infos}
        episodes = None
        if "episodes" in arrays:
            places, *statistics = arrays["episodes"]
            episodes = Episodes(*np.divmod(places, self._num_envs), *statistics)
        kept = {
            "actions": self._actions,
            "extras": self._extras,
            **{name: arrays[name] for name in FLAGS},
        }
        shown = {"observations": arrays["observations"], "infos": infos}
        if steps < self.asked.steps:
            kept, shown = _first(kept, steps), _first(shown, steps + 1)
        rest = {
            "episodes": episodes,
            "_ended": arrays["finals"],
            "_is_next_step": self._is_next_step,
        }
        made = Rollout({**kept, **shown, **rest})
        made._source = self
        return made


def _source(envs: VectorEnv, asked: _Asked, out: Rollout | None) -> Source:
    if out is None:
        return Source(envs, asked)
    if not isinstance(out, Rollout):
        raise errors.ArgumentTypeError(f"out is a corral.Rollout of these envs, not {out!r}")
    source = out._source
    if source is None or source.asked != asked or not source.fragment.of(envs.native):
        raise errors.ArgumentError(
            "out is of other envs, or was made with other steps, infos or extras: its arrays have "
            "other shapes"
        )
    return source


def _parted(given: Any, names: tuple[str, ...]) -> tuple[Any, dict[str, npt.NDArray[Any]]]:
    """The actions, and what else the policy returned."""
    if not isinstance(given, tuple) or len(given) != 1 + len(names):
        raise errors.ArgumentError(
            f"with extras={list(names)} a policy returns a tuple of {1 + len(names)}, the actions "
            f"first, not {given!r}"
        )
    return given[0], {name: np.asarray(value) for name, value in zip(names, given[1:], strict=True)}


def _store(kept: Any, step: int, given: Any) -> None:
    if isinstance(kept, dict):
        for name, inner in kept.items():
            _store(inner, step, given[name])
    elif isinstance(kept, tuple):
        for inner, part in zip(kept, given, strict=True):
            _store(inner, step, part)
    elif kept.dtype == object:
        for row, one in enumerate(given):
            kept[step, row] = one
    else:
        kept[step] = given


def _first(value: Any, rows: int) -> Any:
    """The first rows of nested arrays."""
    if isinstance(value, dict):
        return {key: _first(inner, rows) for key, inner in value.items()}
    if isinstance(value, tuple):
        return tuple(None if inner is None else _first(inner, rows) for inner in value)
    return value[:rows]


def _by_step(infos: dict[str, Any], num_envs: int) -> dict[str, Any]:
    """Infos with a row for each step and env as infos with an axis for each."""
    return {
        key: _by_step(value, num_envs)
        if isinstance(value, dict)
        else value.reshape(-1, num_envs, *value.shape[1:])
        for key, value in infos.items()
    }


def _names(what: str, given: Any) -> tuple[str, ...]:
    if given == () and type(given) is tuple:
        return ()
    is_names = isinstance(given, Sequence) and all(isinstance(name, str) for name in given)
    if isinstance(given, str) or not is_names:
        raise errors.ArgumentTypeError(f"{what} is a list of names, not {given!r}")
    if len(set(given)) < len(given):
        raise errors.ArgumentError(f"{what} names one twice: {list(given)}")
    return tuple(given)
