"""dm_env's `Environment` over corral's envs, single or batched, and a dm_env environment as a
Gymnasium env; see `corral.to_dm_env`, `corral.from_dm_env`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

import dm_env
import gymnasium
import numpy as np
from dm_env import specs
from gymnasium.vector import AutoresetMode

from corral import errors, python_envs
from corral._python_env import Foreign
from corral.adapters.dm_env_specs import (
    action_writer,
    observation_reader,
    of_space,
    space_of,
)
from corral.frames import LazyVectorEnv
from corral.single import Env
from corral.vector import RowKind, VectorEnv

NO_SEED = (
    "dm_env's interface has no seeds, nor indices: give takes_seed=True and a function of one "
    "argument, the seed, that makes an environment"
)
_NO_OPTIONS = "dm_env's reset takes no arguments"
# Python 3.11 looks a member of an Enum up in a microsecond.
_FIRST, _MID, _LAST = dm_env.StepType.FIRST, dm_env.StepType.MID, dm_env.StepType.LAST
_METHODS = ("reset", "step", "observation_spec", "action_spec", "reward_spec", "discount_spec")


class DmEnv(dm_env.Environment):  # type: ignore[misc]
    """One env; made by `corral.to_dm_env`.

    Attributes:
        env: the Gymnasium env underneath.
        info: the infos of the last step or reset, for which a `TimeStep` has no place.
    """

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        self.env = env
        self.info: dict[str, Any] = {}
        is_ours = isinstance(env, Env)
        self._observation, self._action = (
            of_space(space, name, is_batch=False, is_ours=is_ours)
            for space, name in (
                (env.observation_space, "observation"),
                (env.action_space, "action"),
            )
        )
        self._is_over = True

    def observation_spec(self) -> Any:
        """What observations are: a spec, or a dict or tuple of specs."""
        return self._observation.spec

    def action_spec(self) -> Any:
        """What `step` takes: a spec, or a dict or tuple of specs."""
        return self._action.spec

    def reset(self) -> Any:
        """Begins an episode: a FIRST `TimeStep`, whose reward and discount are None.

        Raises:
            EnvError: if the env failed; the next reset rebuilds it.
        """
        observation, self.info = self.env.reset()
        self._is_over = False
        return dm_env.restart(self._observation.to_dm(observation))

    def step(self, action: Any) -> Any:
        """Plays one action, nested as `action_spec`; begins an episode, and ignores the action,
        where none is under way.

        Returns:
            A `TimeStep`: MID with discount 1; LAST with discount 0 where the env terminated, and
            with discount 1 where it was truncated alone. The reward is a float.

        Raises:
            InvalidActionError: for an action outside the spec; nothing has moved.
            ResetNeededError: after a failure, until `reset`.
            EnvError: if the env failed.
        """
        if self._is_over:
            return self.reset()
        given = self._action.to_corral(action)
        observation, reward, terminated, truncated, self.info = self.env.step(given)
        self._is_over = bool(terminated or truncated)
        seen = self._observation.to_dm(observation)
        if terminated:
            return dm_env.termination(float(reward), seen)
        if truncated:
            return dm_env.truncation(float(reward), seen)
        return dm_env.transition(float(reward), seen)

    def close(self) -> None:
        """Closes the env."""
        self.env.close()


class DmVectorEnv(dm_env.Environment):  # type: ignore[misc]
    """Several envs, as EnvPool has them for dm_env; made by `corral.to_dm_env`.

    Specs are those of one env. Every array of a `TimeStep` has one row per env.

    Attributes:
        envs: the vector env underneath.
        num_envs: how many.
        infos: the infos of the last step or reset, as `corral.VectorEnv` has them.
    """

    def __init__(self, envs: VectorEnv) -> None:
        if envs.autoreset_mode is not AutoresetMode.NEXT_STEP:
            raise errors.UnsupportedError(
                "dm_env begins an episode in the step after the one that ended the last: make the "
                'envs with autoreset_mode="next_step"'
            )
        if isinstance(envs, LazyVectorEnv):
            raise errors.UnsupportedError(
                "dm_env has arrays: make the envs with frame_stack, without lazy_frames"
            )
        self.envs = envs
        self.num_envs = envs.num_envs
        self.infos: dict[str, Any] = {}
        self._observation, self._action = (
            of_space(space, name, is_batch=True, is_ours=True)
            for space, name in (
                (envs.single_observation_space, "observation"),
                (envs.single_action_space, "action"),
            )
        )
        self._has_begun = False

    def observation_spec(self) -> Any:
        """What one env's observations are: a spec, or a dict or tuple of specs."""
        return self._observation.spec

    def action_spec(self) -> Any:
        """What one env takes: a spec, or a dict or tuple of specs."""
        return self._action.spec

    def reset(self) -> Any:
        """Begins an episode in every env.

        Returns:
            A `TimeStep`: `step_type` int32 `(num_envs,)` of FIRST, `reward` float64 `(num_envs,)`
            of 0, `discount` float64 `(num_envs,)` of 1, `observation` arrays `(num_envs, …)`
            nested as `observation_spec`.

        Raises:
            EnvError: if envs failed; the others were reset.
        """
        observations, self.infos = self.envs.reset()
        self._has_begun = True
        n = self.num_envs
        types = np.full(n, _FIRST, dtype=np.int32)
        seen = self._observation.to_dm(observations)
        return dm_env.TimeStep(types, np.zeros(n), np.ones(n), seen)

    def step(self, action: Any) -> Any:
        """Plays one action in each env; the first call begins the episodes, as `reset`.

        Args:
            action: arrays `(num_envs, …)` nested as `action_spec`. An env whose last row was LAST
                ignores its own, and begins an episode.

        Returns:
            A `TimeStep` as `reset` gives. A row is MID with discount 1; LAST with discount 0 where
            the env terminated, and 1 where it was truncated alone; or FIRST with reward 0 and
            discount 1. Where `infos["discount"]` has numbers, as with `corral.from_dm_env`, these
            are the discounts of MID and LAST. A row of an env that failed earlier and is masked
            (`on_failure="mask"`) is FIRST too: it is no transition.

        Raises:
            InvalidActionError: names env, leaf, value and bounds; nothing has moved.
            ResetNeededError: after a failure, until `reset`.
            EnvError: if envs failed; the others completed.
            KeyboardInterrupt: the envs stay in flight, and `reset` drops their rows.
        """
        if not self._has_begun:
            return self.reset()
        # `step` does not tell which rows are of resets.
        self.envs.send(self._action.to_corral(action))
        batch = self.envs.drain()
        if batch is None:
            raise errors.NothingPendingError("an interrupt took the results of the step: reset()")
        observations, rewards, terminations, truncations, infos = batch
        kinds = infos.pop("row_kind")
        del infos["env_id"]
        self.infos = infos
        is_last = terminations | truncations
        types = np.full(self.num_envs, _MID, dtype=np.int32)
        types[kinds != RowKind.STEP] = _FIRST
        types[is_last] = _LAST
        discounts = np.where(terminations, 0.0, 1.0)
        told = infos.get("discount")
        if isinstance(told, np.ndarray) and told.dtype.kind == "f" and told.ndim == 1:
            has_told = infos["_discount"] & (types != _FIRST)
            discounts[has_told] = told[has_told]
        seen = self._observation.to_dm(observations)
        return dm_env.TimeStep(types, rewards, discounts, seen)

    def close(self) -> None:
        """Closes the envs."""
        self.envs.close()


class DmAsGymnasium(Foreign):
    """A dm_env environment as a Gymnasium env, which the runners of `corral.from_gymnasium` host.

    Where `fn` takes a seed, an indexed episode is played by an environment that is made for it.
    The slot's own environment is put aside meanwhile.
    """

    metadata = {"render_modes": []}  # noqa: RUF012

    def __init__(self, fn: Callable[..., Any], takes_seed: bool) -> None:
        self._fn, self.can_put_aside = fn, takes_seed
        self._aside: Any = None
        self.inner = self._made(None)
        try:
            self._read_specs()
        except BaseException:
            self.inner.close()
            raise

    def _read_specs(self) -> None:
        _check_number("reward_spec", self.inner.reward_spec())
        _check_number("discount_spec", self.inner.discount_spec())
        seen, taken = self.inner.observation_spec(), self.inner.action_spec()
        self.observation_space = space_of(seen, "observation_spec")
        self.action_space = space_of(taken, "action_spec", is_action=True)
        self._read = observation_reader(seen, "the observation")
        self._written = action_writer(taken)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begins an episode; with a seed, of an environment that is made of it."""
        if seed is not None:
            if not self.can_put_aside:
                raise errors.UnsupportedError(NO_SEED)
            self._replace(self._made(seed))
        timestep = _timestep("reset", self.inner.reset())
        if timestep.step_type != _FIRST:
            raise errors.ConformanceError(f"reset gave a step of type {timestep.step_type!r}")
        return self._read(timestep.observation), {"discount": 1.0}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Plays one action."""
        step_type, reward, discount, observation = _timestep(
            "step", self.inner.step(self._written(action))
        )
        if step_type == _FIRST:
            raise errors.ConformanceError(
                "step began an episode though the last one had not ended: dm_env says FIRST only "
                "after LAST"
            )
        reward, discount = _number("reward", reward), _number("discount", discount)
        if not 0 <= discount <= 1:
            raise errors.ConformanceError(f"the discount is {discount}: it must be from 0 to 1")
        is_last = step_type == _LAST
        terminated, truncated = is_last and discount == 0, is_last and discount > 0
        return self._read(observation), reward, terminated, truncated, {"discount": discount}

    def close(self) -> None:
        """Closes the environment, and one that is put aside."""
        aside, self._aside = self._aside, None
        self.inner.close()
        if aside is not None and aside is not self.inner:
            aside.close()

    def put_aside(self) -> Any:
        """Gives the environment, which stays open."""
        if self._aside is not None and self._aside is not self.inner:
            # A seed made another the slot's own, after an indexed episode.
            self._aside.close()
        self._aside = self.inner
        return self.inner

    def take_back(self, own: Any) -> None:
        """Goes on with an environment that was put aside."""
        self._replace(own)
        self._aside = None

    def _replace(self, env: Any) -> None:
        earlier, self.inner = self.inner, env
        if earlier is not env and earlier is not self._aside:
            earlier.close()

    def __getattr__(self, name: str) -> Any:
        """The environment's own attributes, for `VectorEnv.call` and `get_attr`."""
        if name.startswith("_") or name == "inner":
            raise AttributeError(name)
        return getattr(self.inner, name)

    def set_wrapper_attr(self, name: str, value: Any, *, force: bool = True) -> bool:
        """Sets an attribute of the environment."""
        setattr(self.inner, name, value)
        return True

    def _made(self, seed: int | None) -> Any:
        env = self._fn(seed) if self.can_put_aside else self._fn()
        for name in _METHODS:
            if not callable(getattr(env, name, None)):
                raise errors.ArgumentTypeError(
                    f"the function made {env!r}, which is no dm_env.Environment: it has no {name}"
                )
        return env


def _check_number(name: str, spec: Any) -> None:
    """Errors for a spec that is not of one number."""
    is_number = isinstance(spec, specs.Array) and spec.shape == () and spec.dtype.kind in "biuf"
    if not is_number:
        raise errors.SpaceError(f"{name} is {spec!r}: corral takes one number, of shape ()")


def _timestep(what: str, value: Any) -> Any:
    """What `reset` or `step` gave as a `TimeStep`, checked to be like one."""
    if type(value) is dm_env.TimeStep and type(value.step_type) is dm_env.StepType:
        return value
    for name in dm_env.TimeStep._fields:
        if not hasattr(value, name):
            raise errors.ConformanceError(
                f"{what} gave {value!r}, where a dm_env.TimeStep belongs: it has no {name}"
            )
    if np.ndim(value.step_type) != 0:
        raise errors.ConformanceError(
            f"{what} gave the step type {value.step_type!r}, where one dm_env.StepType belongs"
        )
    return dm_env.TimeStep(*(getattr(value, name) for name in dm_env.TimeStep._fields))


def _number(name: str, value: Any) -> float:
    """A reward or discount, checked to be one number."""
    if type(value) is float:
        return value
    array = np.asarray(value)
    if array.shape != () or array.dtype.kind not in "biuf":
        raise errors.ConformanceError(
            f"the {name} is {value!r}: dm_env has a number there, in every step but FIRST"
        )
    return float(array)


def vector_env(
    each: list[Callable[..., Any]],
    vec_options: Mapping[str, Any],
    *,
    takes_seed: bool,
    **own: Any,
) -> VectorEnv:
    """The environments that these functions make; see `corral.from_dm_env`.

    Args:
        own: the options that `corral.python_envs.native_of` has of its own.
    """
    factories: list[Callable[[], Any]] = [
        functools.partial(DmAsGymnasium, fn, takes_seed) for fn in each
    ]
    envs = python_envs.hosted(python_envs.name_of(each[0]), factories, vec_options, own)
    envs.refused = (
        {"options": _NO_OPTIONS} if takes_seed else {"seed": NO_SEED, "options": _NO_OPTIONS}
    )
    return envs
