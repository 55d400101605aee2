"""Tianshou's `BaseVectorEnv` over a `corral.VectorEnv`; see `corral.to_tianshou`."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from gymnasium import spaces as gym_spaces
from gymnasium.vector import AutoresetMode
from tianshou.env import BaseVectorEnv

from corral import errors, spaces
from corral.adapters.infos import each_of, rows
from corral.vector import VectorEnv

# What is of one env, and is copied for each.
_SPACES = ("observation_space", "action_space")
# What a batch tells of its own rows.
_OF_BATCH = ("env_id", "row_kind")


Rows: TypeAlias = tuple[
    Any,
    npt.NDArray[np.float64],
    npt.NDArray[np.bool_],
    npt.NDArray[np.bool_],
    npt.NDArray[np.object_],
]


class TianshouVecEnv(BaseVectorEnv):  # type: ignore[misc]
    """Made by `corral.to_tianshou`.

    Attributes:
        envs: the vector env underneath.
        observation_space, action_space: a list with one for each env. Each can be seeded and
            sampled by itself.
    """

    # The base class makes a worker for each env. Here are none.
    def __init__(self, envs: VectorEnv) -> None:
        if envs.autoreset_mode is not AutoresetMode.DISABLED:
            raise errors.UnsupportedError(
                "Tianshou's collectors reset envs themselves: make the envs with "
                'autoreset_mode="disabled"'
            )
        if envs.batch_size != envs.num_envs:
            raise errors.UnsupportedError(
                f"the envs have a batch_size of {envs.batch_size}, and Tianshou's Collector waits "
                "for all: make them without one"
            )
        _check(envs.single_observation_space, "the observation")
        self.envs = envs
        self.workers: list[Any] = []
        self.env_num = self.wait_num = envs.num_envs
        self.timeout = None
        self.is_async = self.is_closed = False
        self.waiting_conn: list[Any] = []
        self.waiting_id: list[int] = []
        self.ready_id = list(range(envs.num_envs))
        self._all = np.arange(envs.num_envs)
        self._of_each = {
            name: [copy.deepcopy(getattr(envs, f"single_{name}")) for _ in self._all]
            for name in _SPACES
        }

    def reset(self, env_id: Any = None, **kwargs: Any) -> tuple[Any, npt.NDArray[np.object_]]:
        """Begins episodes in all envs, or in those of `env_id`.

        Args:
            env_id: a number, or a list or array of them.
            **kwargs: `seed` and `options` as `corral.VectorEnv.send_reset` takes them.

        Returns:
            observations `(rows, …)` and infos, a dict each, in the order of `env_id`.

        Raises:
            ArgumentError, ArgumentTypeError: for envs, seeds and options that make no sense.
            EnvError: if envs failed; the others were reset.
        """
        self._assert_is_not_closed()
        self.envs.send_reset(None if env_id is None else np.atleast_1d(env_id), **kwargs)
        observations, _, _, _, infos = self._drained()
        return observations, infos

    def step(self, action: Any, id: Any = None) -> Rows:
        """Plays one action in each env, or in each of `id`.

        Args:
            action: an array, tensor or list with a row for each of these envs.
            id: a number, or a list or array of them.

        Returns:
            observations `(rows, …)`, rewards float64, terminations and truncations bool `(rows,)`,
            and infos, a dict each with `"env_id"`, in the order of `id`.

        Raises:
            InvalidActionError: names env, leaf, value and bounds; nothing has moved.
            ResetNeededError: for an env whose episode has ended; nothing has moved.
            ArgumentError, ArgumentTypeError: for envs that there are not.
            EnvError: if envs failed; the others completed, see its `batch`.
        """
        self._assert_is_not_closed()
        if action is None:
            raise errors.ArgumentTypeError("action is an array with a row for each env, not None")
        space = self.envs.single_action_space
        actions = spaces.cast_actions(space, np.asarray(action))
        numbers = self._all if id is None else np.atleast_1d(id)
        self.envs.send(actions, numbers)
        played = self._drained()
        for info, number in zip(played[-1], numbers.tolist(), strict=True):
            info["env_id"] = number
        return played

    def _drained(self) -> Rows:
        """The rows of all envs in flight, in the order in which they were sent."""
        batch = self.envs.drain()
        assert batch is not None
        observations, rewards, terminations, truncations, infos = batch
        count = len(rewards)
        told = np.empty(count, object)
        told[:] = rows({key: infos[key] for key in infos if key not in _OF_BATCH}, count)
        return self._seen(observations, count), rewards, terminations, truncations, told

    def _seen(self, observations: Any, count: int) -> Any:
        """As Tianshou has them: an array, where each env shows one; else an object each."""
        if isinstance(observations, np.ndarray):
            return observations
        seen = np.empty(count, object)
        seen[:] = list(each_of(self.envs.single_observation_space, observations, count))
        return seen

    def seed(self, seed: int | Sequence[int] | None = None) -> list[list[int] | None]:
        """Seeds the envs and their spaces, and begins an episode in each: env i with `seed + i`, or
        with its own of a sequence."""
        self._assert_is_not_closed()
        each = [None] * len(self) if seed is None else seed
        each = [each + number for number in range(len(self))] if isinstance(each, int) else each
        self.envs.reset(seed=each)
        for one, *of_one in zip(each, *self._of_each.values(), strict=True):
            for space in of_one if one is not None else ():
                space.seed(one)
        return [None if one is None else [one] for one in each]

    def get_env_attr(self, key: str, id: Any = None) -> list[Any]:
        """An attribute of each env, or of each of `id`: what `corral.VectorEnv.get_attr` answers.

        Raises:
            AttributeError: for what they do not have.
        """
        self._assert_is_not_closed()
        try:
            of_all = self._of_each[key] if key in _SPACES else self.envs.get_attr(key)
        except errors.UnsupportedError as error:
            raise AttributeError(str(error)) from None
        return [of_all[number] for number in np.atleast_1d(self._all if id is None else id)]

    def set_env_attr(self, key: str, value: Any, id: Any = None) -> None:
        """Sets an attribute of each env, or of each of `id`, as `corral.VectorEnv.set_attr`."""
        self._assert_is_not_closed()
        numbers = self._all if id is None else np.atleast_1d(id)
        self.envs.native.call(key, (value,), {}, numbers.tolist(), "set")

    def render(self, **kwargs: Any) -> list[Any]:
        """A frame of each env: see `corral.VectorEnv.render`."""
        self._assert_is_not_closed()
        return list(self.envs.render(**kwargs) or [None] * len(self))

    def close(self) -> None:
        """Closes the envs; again does nothing."""
        self.envs.close()
        self.is_closed = True


def _check(space: gym_spaces.Space[Any], where: str) -> None:
    if isinstance(space, gym_spaces.Tuple):
        raise errors.UnsupportedError(
            f"Tianshou's batches have no place for tuples, and {where} is {space}"
        )
    if isinstance(space, gym_spaces.Dict):
        for name, inner in space.spaces.items():
            _check(inner, f"{where}[{name!r}]")
