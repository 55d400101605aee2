"""Stable-Baselines3's `VecEnv` over a `corral.VectorEnv`; see `corral.to_sb3`.

Above 400 lines because SB3's interface is one class.
"""

from __future__ import annotations

import operator
import time
import warnings
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from gymnasium import spaces as gym_spaces
from gymnasium.vector import AutoresetMode
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env.base_vec_env import VecEnv

from corral import FinalObservations, _native, errors, spaces
from corral._served import refuse_lazy
from corral.adapters.infos import each_of, rows, rows_in
from corral.adapters.sb3_infos import CUT, Info, Infos, Told
from corral.adapters.sb3_statistics import Ended, EpisodeStatistics
from corral.vector import VectorEnv

# What envs that are not Python's answer for all of them.
_OF_NATIVE = {
    "spec": "spec",
    "metadata": "metadata",
    "observation_space": "single_observation_space",
    "action_space": "single_action_space",
    "max_episode_steps": "max_episode_steps",
}
# Their methods that are answered here.
_METHODS = ("render", "action_masks")
# What a batch tells of the episodes that ended in it, and nothing of the envs' own; and what has no
# mask.
_OF_END = {
    *("final_obs", "_final_obs", "final_info", "_final_info", "episode", "_episode"),
    *("env_id", "row_kind"),
}
# What the runner tells of the step that ended an episode.
_OF_STEP = ("failed", CUT)
# What stands for an observation that there is not.
_NONE = object()
# The leaf by which an env tells which actions are valid.
_MASK = "action_mask"

Batch = tuple[Any, Any, Any, Any, dict[str, Any]]
"""What a step of the envs gives: `corral.VectorEnv.step`."""
Shown = tuple[Any, np.ndarray[Any, Any], np.ndarray[Any, Any], list[Any]]
"""(observations, rewards float32, dones bool, infos), all `(num_envs, …)`."""


class NoSuchEnvError(errors.ArgumentError, IndexError):
    """A number that no env has, or nothing for an env; an IndexError, as of SB3's own vec envs."""


class SB3VecEnv(VecEnv):  # type: ignore[misc]
    """Made by `corral.to_sb3` and `corral.sb3_vec_env`.

    Attributes:
        envs: the vector env underneath.
    """

    def __init__(
        self,
        envs: VectorEnv,
        *,
        episode_statistics: bool = True,
        monitors: Sequence[Monitor] = (),
    ) -> None:
        if envs.autoreset_mode is not AutoresetMode.SAME_STEP:
            raise errors.UnsupportedError(
                "SB3 resets an env in the step that ends its episode: make the envs with "
                'autoreset_mode="same_step"'
            )
        refuse_lazy(envs, "what SB3 gets")
        self.envs = envs
        self._totals = _native.EpisodeTotals(envs.num_envs)
        self._statistics = EpisodeStatistics(monitors) if episode_statistics else None
        # By env, the actions that its last observation allows, where the envs tell them.
        self._masks: np.ndarray[Any, Any] | None = None
        super().__init__(envs.num_envs, envs.single_observation_space, envs.single_action_space)
        self.metadata = envs.metadata
        # Integers are taken as they are, and to look at their space takes as long as to send them.
        labels = gym_spaces.Discrete | gym_spaces.MultiDiscrete | gym_spaces.MultiBinary
        self._is_cast = not isinstance(envs.single_action_space, labels)
        self._is_whole = envs.batch_size == envs.num_envs

    def reset(self) -> Any:
        """Observations of all envs; their infos are in `reset_infos`. Seeds and options set
        before are used up by it."""
        given, n = len(self._options), self.num_envs
        if given != n:
            kind = NoSuchEnvError if given < n else errors.ArgumentError
            raise kind(f"set_options got a list of {given}: there are {n} envs")
        seeds = self._seeds if any(seed is not None for seed in self._seeds) else None
        first = self._options[0]
        if all(_are_same(options, first) for options in self._options):
            observations = self._begin(seeds, first or None)
        else:
            observations = self._reset_one_by_one(seeds)
        self._totals.begin()
        self._reset_seeds()
        self._reset_options()
        return observations

    def _begin(self, seeds: list[int | None] | None, options: dict[str, Any] | None) -> Any:
        observations, infos = self.envs.reset(seed=seeds, options=options)
        self.reset_infos = rows(infos, self.num_envs)
        self._masks = None
        self._note_masks(infos)
        return observations

    def _reset_one_by_one(self, seeds: list[int | None] | None) -> Any:
        """Each with options of its own."""
        # All must have begun before some can be left as they are.
        observations = self._begin(seeds, None)
        for env, options in enumerate(self._options):
            mask = np.zeros(self.num_envs, dtype=np.bool_)
            mask[env] = True
            seed = None if seeds is None else [s if k == env else None for k, s in enumerate(seeds)]
            observations, infos = self.envs.reset(
                seed=seed, options={**options, "reset_mask": mask}
            )
            self.reset_infos[env] = rows(infos, self.num_envs)[env]
            self._note_masks(infos)
        return observations

    def _note_masks(self, infos: dict[str, Any]) -> None:
        masks, told = infos.get(_MASK), infos.get(f"_{_MASK}")
        if not isinstance(masks, np.ndarray) or not isinstance(told, np.ndarray):
            return
        if self._masks is None:
            self._masks = np.ones(masks.shape, np.bool_)
        self._masks[told] = masks[told]

    def _given(self, actions: Any) -> Any:
        """The actions as the envs take them."""
        space = self.action_space
        if isinstance(actions, np.ndarray):
            if not self._is_cast:
                return actions
        elif isinstance(actions, list | tuple):
            try:
                actions = spaces.batch_actions(space, actions)
            except (LookupError, TypeError, ValueError) as error:
                raise errors.InvalidActionError(
                    f"actions are no list of one action of {space} per env: {error!r}"
                ) from None
        return spaces.cast_actions(space, actions)

    def step(self, actions: Any) -> Shown:
        """What `step_async` and then `step_wait` give, in less time."""
        if self._is_whole:
            return self._shown(self.envs.step(self._given(actions)))
        self.step_async(actions)
        return self.step_wait()

    def step_async(self, actions: Any) -> None:
        """Sends the actions, an array `(num_envs, …)` or a list of one per env; `step_wait`
        receives."""
        self.envs.send(self._given(actions))

    def step_wait(self) -> Shown:
        """(observations, rewards float32, dones bool, infos), all `(num_envs, …)`.

        Raises:
            NothingPendingError: if no actions were sent.
        """
        batch = self.envs.drain()
        if batch is None:
            raise errors.NothingPendingError("step_async comes before step_wait")
        return self._shown(batch)

    def _shown(self, batch: Batch) -> Shown:
        """A step of the envs as SB3 shows it."""
        observations, exact_rewards, terminations, truncations, infos = batch
        # One native call finds ends and narrows rewards; to count in it as well costs nothing, with
        # or without statistics.
        rewards, dones, ended, returns, lengths = self._totals.step(
            exact_rewards, terminations, truncations
        )
        if infos.keys() <= _OF_END:
            of_end, infos = infos, {}
        else:
            of_end = {key: infos.pop(key) for key in _OF_END & infos.keys()}
        told: Told | None = None
        if ended.size:
            flags = (terminations, truncations)
            told = partial(self._told, ended, flags, of_end, (returns, lengths, time.time()))
        # Files are written as episodes end; nothing else of them is needed before it is read.
        is_logged = self._statistics is not None and self._statistics.monitors
        if not infos and not is_logged:
            begun = self.reset_infos
            for row in ended.tolist():
                begun[row] = {}
            return observations, rewards, dones, Infos(self.num_envs, told)
        self._note_masks(infos)
        each = rows(infos, self.num_envs)
        for info in each:
            info[CUT] = False
        if told is not None:
            self._put(told(), each)
        return observations, rewards, dones, each

    def _told(
        self,
        ended: Any,
        flags: tuple[Any, Any],
        of_end: Info,
        counted: tuple[Any, Any, float],
    ) -> list[tuple[int, Info]]:
        """What the envs `ended` have to tell of the episodes that ended, with their numbers.

        Args:
            ended: the numbers of the envs, `(k,)`.
            flags: the terminations and truncations of all envs, bool `(num_envs,)`.
            of_end: what the runner tells of episodes that ended.
            counted: the fields of their `Ended`.
        """
        numbers = ended.tolist()
        terminated, truncated = (each[ended] for each in flags)
        cuts = truncated & ~terminated
        last_infos = of_end.get("final_info")
        lasts = rows_in(last_infos, numbers) if last_infos else [{} for _ in numbers]
        for last, final, cut in zip(lasts, self._finals(of_end, numbers), cuts.tolist()):
            if final is not _NONE:
                last["terminal_observation"] = final
            last[CUT] = cut
        if self._statistics is not None:
            of_envs = of_end.get("episode")
            by_envs = of_envs and tuple(of_envs[key][ended].tolist() for key in "rl")
            self._statistics.tell(lasts, Ended(*counted), by_envs)
        return list(zip(numbers, lasts, strict=True))

    def _put(self, told: list[tuple[int, Info]], each: list[Info]) -> None:
        """Puts what is `told` of episodes that ended in the place of what `each` of the envs tells.
        That is of the episodes that began; of envs without final observations it is of both."""
        for row, last in told:
            top = each[row]
            self.reset_infos[row] = {key: top[key] for key in top if key not in _OF_STEP}
            is_of_both = "terminal_observation" not in last
            last.update((key, top[key]) for key in top if key == "failed" or is_of_both)
            each[row] = last
        if self._statistics is not None:
            self._statistics.log(told)

    def _finals(self, of_end: dict[str, Any], numbers: list[int]) -> list[Any]:
        """The last observations of the envs `numbers`, whose episodes ended; `_NONE` of those
        that show none."""
        final = of_end.get("final_obs")
        if final is None:
            return [_NONE] * len(numbers)
        if type(final) is FinalObservations and self._is_native and final.rows.tolist() == numbers:
            return list(each_of(self.observation_space, final.stacked, len(numbers)))
        # Python envs' own objects; frames that are stacked when they are read.
        shown = of_end["_final_obs"]
        return [final[row] if shown[row] else _NONE for row in numbers]

    def close(self) -> None:
        """Closes the envs; again does nothing."""
        self.envs.close()
        if self._statistics is not None:
            self._statistics.close()

    def get_images(self) -> Sequence[Any]:
        """Frames `uint8 (height, width, 3)` of all envs."""
        if self.render_mode != "rgb_array":
            warnings.warn(
                f"The render mode is {self.render_mode}, and pictures take `rgb_array`: make the "
                'envs with render_mode="rgb_array"',
                stacklevel=2,
            )
            return [None] * self.num_envs
        return list(self.envs.render() or ())

    def has_attr(self, attr_name: str) -> bool:
        """Whether each env has the attribute, or one of its wrappers."""
        if self._is_native:
            try:
                self.get_attr(attr_name)
            except AttributeError:
                return False
            return True
        return all(self.envs.native.call("corral:has", (attr_name,), {}))

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """An attribute of each env, through its wrappers.

        Envs that are not Python's have `spec`, `metadata`, their spaces, `max_episode_steps`,
        `render_mode`, the methods `render` and `action_masks`, and their properties.

        Raises:
            AttributeError: for what they do not have.
            NoSuchEnvError: an IndexError, for an index that no env has.
        """
        numbers = self._numbers(indices)
        if attr_name == "render_mode":
            return [self.envs.render_mode for _ in numbers]
        if not self._is_native:
            return list(self.envs.native.call("corral:get", (attr_name,), {}, numbers))
        if attr_name in _OF_NATIVE:
            return [getattr(self.envs, _OF_NATIVE[attr_name]) for _ in numbers]
        if attr_name in _METHODS:
            # Which raises where there are none.
            self._method(attr_name, numbers[:1])
            return [partial(self._method_of, attr_name, number) for number in numbers]
        return self._call(attr_name, numbers, (), {}, "get")

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Sets an attribute of each env, on its outermost wrapper as SB3 does. Of envs that are not
        Python's only properties can be set; errors as `get_attr`."""
        numbers = self._numbers(indices)
        if self._is_native:
            self._call(attr_name, numbers, (value,), {}, "set")
        else:
            self.envs.native.call("corral:set", (attr_name, value), {}, numbers)

    def env_method(
        self, method_name: str, *method_args: Any, indices: Any = None, **method_kwargs: Any
    ) -> list[Any]:
        """Calls a method of each env, through its wrappers.

        Envs that are not Python's have `render`, `action_masks`, and what their `Env::call`
        answers. Errors as `get_attr`.
        """
        numbers = self._numbers(indices)
        if not self._is_native:
            arguments = (method_name, *method_args)
            return list(self.envs.native.call("corral:do", arguments, method_kwargs, numbers))
        if method_name in _METHODS:
            if method_args or method_kwargs:
                raise errors.ArgumentTypeError(f"{method_name} of these envs takes no arguments")
            return self._method(method_name, numbers)
        if method_name in (*_OF_NATIVE, "render_mode"):
            raise errors.ArgumentTypeError(f"{method_name} of these envs is no method: get_attr it")
        return self._call(method_name, numbers, method_args, method_kwargs, "call")

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        """Whether each env has such a wrapper around it. With `episode_statistics` each is as one
        with SB3's Monitor."""
        numbers = self._numbers(indices)
        if wrapper_class is Monitor and self._statistics is not None:
            return [True for _ in numbers]
        if self._is_native:
            return [False for _ in numbers]
        return list(self.envs.native.call("corral:is_wrapped", (wrapper_class,), {}, numbers))

    @property
    def _is_native(self) -> bool:
        return self.envs.native.about is None

    def _call(
        self, name: str, numbers: list[int], args: tuple[Any, ...], kwargs: dict[str, Any], how: str
    ) -> list[Any]:
        try:
            return list(self.envs.native.call(name, args, kwargs, numbers, how))
        except errors.UnsupportedError as error:
            raise AttributeError(str(error)) from None

    def _numbers(self, indices: Any) -> list[int]:
        """The envs that `indices` name; a negative one counts from the last."""
        n = self.num_envs
        numbers = [operator.index(index) for index in self._get_indices(indices)]
        for number in numbers:
            if not -n <= number < n:
                raise NoSuchEnvError(f"there is no env {number}: there are {n}")
        return [number % n for number in numbers]

    def _method(self, name: str, numbers: list[int]) -> list[Any]:
        if name == "render":
            return list(self.envs.render(numbers) or [None] * len(numbers))
        return self._action_masks(numbers)

    def _method_of(self, name: str, number: int) -> Any:
        return self._method(name, [number])[0]

    def _action_masks(self, numbers: list[int]) -> list[Any]:
        """Which actions are valid: what the env tells as `action_mask`; else all that there are.

        Raises:
            AttributeError: for action spaces without a mask.
        """
        native, space = self.envs.native, self.action_space
        if any(leaf["name"] == _MASK for leaf in native.info_leaves):
            if self._masks is None:
                raise AttributeError(f"the envs have told no {_MASK} yet: reset them")
            return list(self._masks[numbers])
        if any(leaf["name"] == _MASK for leaf in native.observation_leaves):
            return list(self.envs.observe()[_MASK].astype(np.bool_)[numbers])
        if isinstance(space, gym_spaces.Discrete):
            return [np.ones(int(space.n), np.bool_) for _ in numbers]
        if isinstance(space, gym_spaces.MultiDiscrete):
            return [np.ones(int(space.nvec.sum()), np.bool_) for _ in numbers]
        raise AttributeError(f"{native.id} has no action_masks: its actions are {space}")


def _are_same(options: dict[str, Any], first: dict[str, Any]) -> bool:
    """Whether two envs' options are the same. Options whose equality is no bool, as of arrays, are
    not."""
    try:
        return options is first or bool(options == first)
    except Exception:
        return False
