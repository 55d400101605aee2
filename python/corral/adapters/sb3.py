"""Stable-Baselines3's `VecEnv` over a `corral.VectorEnv`; see `corral.to_sb3`."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium import spaces as gym_spaces
from gymnasium.vector import AutoresetMode
from stable_baselines3.common.vec_env.base_vec_env import VecEnv

from corral import errors, spaces
from corral.adapters.infos import rows
from corral.vector import VectorEnv

# What envs that are not Python's answer for all of them.
_OF_NATIVE = {
    "spec": "spec",
    "metadata": "metadata",
    "observation_space": "single_observation_space",
    "action_space": "single_action_space",
    "max_episode_steps": "max_episode_steps",
}
# What the runner tells of the step that ended an episode.
_OF_STEP = ("episode", "failed")
# The leaf by which an env tells which actions are valid.
_MASK = "action_mask"


class SB3VecEnv(VecEnv):  # type: ignore[misc]
    """Made by `corral.to_sb3`.

    Attributes:
        envs: the vector env underneath.
    """

    def __init__(self, envs: VectorEnv) -> None:
        if envs.autoreset_mode is not AutoresetMode.SAME_STEP:
            raise errors.UnsupportedError(
                "SB3 resets an env in the step that ends its episode: make the envs with "
                'autoreset_mode="same_step"'
            )
        self.envs = envs
        # What each env told last, of the episode that it is in.
        self._told: list[dict[str, Any]] = [{} for _ in range(envs.num_envs)]
        super().__init__(envs.num_envs, envs.single_observation_space, envs.single_action_space)
        self.metadata = envs.metadata

    def reset(self) -> Any:
        """Observations of all envs; their infos are in `reset_infos`. Seeds and options set
        before are used up by it."""
        seeds = self._seeds if any(seed is not None for seed in self._seeds) else None
        first = self._options[0] if self._options else {}
        if all(options == first for options in self._options):
            observations, infos = self.envs.reset(seed=seeds, options=first or None)
            self.reset_infos = rows(infos, self.num_envs)
        else:
            observations = self._reset_one_by_one(seeds)
        self._told = list(self.reset_infos)
        self._reset_seeds()
        self._reset_options()
        return observations

    def _reset_one_by_one(self, seeds: list[int | None] | None) -> Any:
        """Each with options of its own."""
        # All must have begun before some can be left as they are.
        observations, infos = self.envs.reset(seed=seeds)
        self.reset_infos = rows(infos, self.num_envs)
        for env, options in enumerate(self._options):
            mask = np.zeros(self.num_envs, dtype=np.bool_)
            mask[env] = True
            seed = None if seeds is None else [s if k == env else None for k, s in enumerate(seeds)]
            observations, infos = self.envs.reset(
                seed=seed, options={**options, "reset_mask": mask}
            )
            self.reset_infos[env] = rows(infos, self.num_envs)[env]
        return observations

    def step_async(self, actions: Any) -> None:
        """Sends the actions, an array `(num_envs, …)` or a list of one per env; `step_wait`
        receives."""
        space = self.action_space
        if isinstance(actions, list | tuple):
            try:
                actions = spaces.batch_actions(space, actions)
            except (LookupError, TypeError, ValueError) as error:
                raise errors.InvalidActionError(
                    f"actions are no list of one action of {space} per env: {error!r}"
                ) from None
        self.envs.send(spaces.cast_actions(space, actions))

    def step_wait(self) -> tuple[Any, np.ndarray[Any, Any], np.ndarray[Any, Any], list[Any]]:
        """(observations, rewards float32, dones, infos), all `(num_envs, …)`."""
        batch = self.envs.drain()
        if batch is None:
            raise errors.NothingPendingError("step_async comes before step_wait")
        observations, rewards, terminations, truncations, infos = batch
        del infos["env_id"], infos["row_kind"]
        dones = terminations | truncations
        each = rows(infos, self.num_envs) if infos else [{} for _ in range(self.num_envs)]
        self._told = list(each)
        ended = np.flatnonzero(dones)
        if ended.size:
            self._end(ended, infos, each)
        cut = truncations & ~terminations
        for info, truncated in zip(each, cut.tolist(), strict=True):
            info["TimeLimit.truncated"] = truncated
        return observations, rewards.astype(np.float32), dones, each

    def _end(self, ended: Any, infos: dict[str, Any], each: list[dict[str, Any]]) -> None:
        """In rows that ended, the infos that lie on top are the next episode's. Envs without final
        observations tell of both episodes there."""
        last = rows(infos.get("final_info", {}), self.num_envs)
        for row in ended:
            top = each[row]
            if "final_obs" not in top:
                self.reset_infos[row] = {
                    key: told for key, told in top.items() if key not in _OF_STEP
                }
                continue
            info = last[row]
            info["terminal_observation"] = top.pop("final_obs")
            top.pop("final_info", None)
            for key in _OF_STEP:
                if key in top:
                    info[key] = top.pop(key)
            self.reset_infos[row] = top
            each[row] = info

    def close(self) -> None:
        """Closes the envs."""
        self.envs.close()

    def get_images(self) -> Sequence[Any]:
        """Frames `uint8 (height, width, 3)` of all envs."""
        if self.render_mode != "rgb_array":
            warnings.warn(f"the render mode is {self.render_mode}, not rgb_array", stacklevel=2)
            return [None] * self.num_envs
        return list(self.envs.render() or ())

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """An attribute of each env, through its wrappers.

        Envs that are not Python's have `spec`, `metadata`, their spaces, `max_episode_steps`,
        `render_mode` and `action_masks`.
        """
        if attr_name == "render_mode":
            return [self.envs.render_mode for _ in self._numbers(indices)]
        if self.envs.native.about is None and attr_name in _OF_NATIVE:
            return [getattr(self.envs, _OF_NATIVE[attr_name]) for _ in self._numbers(indices)]
        return self._call(attr_name, indices, (), {})

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Sets an attribute of each env."""
        self._call(attr_name, indices, (value,), {}, kind="set")

    def env_method(
        self, method_name: str, *method_args: Any, indices: Any = None, **method_kwargs: Any
    ) -> list[Any]:
        """Calls a method of each env, through its wrappers.

        Envs that are not Python's have `render` and `action_masks`.
        """
        return self._call(method_name, indices, method_args, method_kwargs)

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        """Whether each env has such a wrapper around it."""
        if self.envs.native.about is None:
            return [False for _ in self._numbers(indices)]
        return self._call("corral:is_wrapped", indices, (wrapper_class,), {})

    def _call(
        self,
        name: str,
        indices: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        kind: str = "call",
    ) -> list[Any]:
        numbers = self._numbers(indices)
        if self.envs.native.about is None and name == "action_masks" and not (args or kwargs):
            return self._action_masks(numbers)
        if self.envs.native.about is None and name == "render" and not (args or kwargs):
            return list(self.envs.render(numbers) or [None] * len(numbers))
        try:
            return list(self.envs.native.call(name, args, kwargs, numbers, kind))
        except errors.UnsupportedError as error:
            raise AttributeError(str(error)) from None

    def _numbers(self, indices: Any) -> list[int]:
        """The envs that `indices` name; a negative one counts from the last."""
        n = self.num_envs
        numbers = [operator.index(index) for index in self._get_indices(indices)]
        for number in numbers:
            if not -n <= number < n:
                raise errors.ArgumentError(f"there is no env {number}: there are {n}")
        return [number % n for number in numbers]

    def _action_masks(self, numbers: list[int]) -> list[Any]:
        """Which actions are valid: what the env tells as `action_mask`; else all that there are.

        Raises:
            AttributeError: for action spaces without a mask.
        """
        native, space = self.envs.native, self.action_space
        if any(leaf["name"] == _MASK for leaf in native.info_leaves):
            if not all(_MASK in self._told[number] for number in numbers):
                raise AttributeError(f"the envs have told no {_MASK} yet: reset them")
            return [np.asarray(self._told[number][_MASK], np.bool_) for number in numbers]
        if any(leaf["name"] == _MASK for leaf in native.observation_leaves):
            masks = self.envs.observe()[_MASK]
            return [masks[number].astype(np.bool_) for number in numbers]
        if isinstance(space, gym_spaces.Discrete):
            return [np.ones(int(space.n), np.bool_) for _ in numbers]
        if isinstance(space, gym_spaces.MultiDiscrete):
            return [np.ones(int(space.nvec.sum()), np.bool_) for _ in numbers]
        raise AttributeError(f"{native.id} has no action_masks: its actions are {space}")
