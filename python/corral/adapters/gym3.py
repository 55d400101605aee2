"""gym3's `Env` over a `corral.VectorEnv`, and the way back; see `corral.to_gym3`, `from_gym3`."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from gym3.env import Env
from gym3.types import DictType
from gymnasium.vector import AutoresetMode

from corral import errors
from corral.adapters.gym3_types import of_space, space_of
from corral.adapters.infos import rows
from corral.vector import VectorEnv


class Gym3Env(Env):  # type: ignore[misc]
    """Made by `corral.to_gym3`.

    Attributes:
        envs: the vector env underneath.
    """

    def __init__(self, envs: VectorEnv) -> None:
        if envs.autoreset_mode is not AutoresetMode.SAME_STEP:
            raise errors.UnsupportedError(
                "gym3 shows the next episode's first observation in the step that ends one: make "
                'the envs with autoreset_mode="same_step"'
            )
        self.envs = envs
        self._observation = of_space(envs.single_observation_space, "the observation")
        self._action = of_space(envs.single_action_space, "the action", is_action=True)
        super().__init__(
            ob_space=self._observation.type, ac_space=self._action.type, num=envs.num_envs
        )
        self._is_pending = False
        self._failure: BaseException | None = None
        self._each: list[dict[str, Any]] | None = None
        self.reset()

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> None:
        """Begins all envs anew, as `VectorEnv.reset` does; gym3 itself has no such thing."""
        if self._is_pending:
            # What is in flight belongs to episodes that end here.
            with contextlib.suppress(Exception):
                self._settle()
        observations, infos = self.envs.reset(seed=seed, options=options)
        zeros, ones = np.zeros(self.num, np.bool_), np.ones(self.num, np.bool_)
        self._failure = None
        self._show(observations, np.zeros(self.num), ones, (zeros, zeros), infos)

    def observe(self) -> tuple[Any, Any, Any]:
        """(rewards float32, observations, first), all `(num, …)`; waits for `act`.

        Arrays are the caller's own: nothing that is done to them shows later.
        """
        self._settle()
        return self._reward.copy(), self._observation.to_gym3(self._seen), self._first.copy()

    def act(self, ac: Any) -> None:
        """Sends the actions; `observe` waits for what comes of them."""
        self._settle()
        self.envs.send(self._action.to_corral(ac))
        self._is_pending = True

    def get_info(self) -> list[dict[str, Any]]:
        """What each env told at the time of `observe`, with `terminated` and `truncated`.

        Where an episode ended there are also `final_obs` and `final_info`, as Gymnasium names
        them, and `episode` if asked for. Where that was because the env failed there is `failed`,
        and `final_obs` is zeros. With `render_mode="rgb_array"` there is `rgb`.
        """
        self._settle()
        if self._each is None:
            self._each = self._tell()
        return [dict(info) for info in self._each]

    def callmethod(self, method: str, *args: Sequence[Any], **kwargs: Sequence[Any]) -> list[Any]:
        """A method of this class or, with one argument for each env, of the envs."""
        if method.startswith("_"):
            raise errors.ArgumentError(f"{method} is private: call a method without the _")
        if callable(getattr(self, method, None)):
            given = super().callmethod(method, *args, **kwargs)
            return [None] * self.num if given is None else list(given)
        self._settle()
        for values in (*args, *kwargs.values()):
            if len(values) != self.num:
                raise errors.ArgumentError(
                    f"{method} is given {len(values)} values for {self.num} envs: give one each"
                )
        results: list[Any] = []
        for env in range(self.num):
            its_args = tuple(values[env] for values in args)
            its_kwargs = {name: values[env] for name, values in kwargs.items()}
            results += self.envs.native.call(method, its_args, its_kwargs, [env])
        return results

    def close(self) -> None:
        """Closes the envs."""
        self.envs.close()

    def _settle(self) -> None:
        """Waits for what `act` has put in flight."""
        if self.envs.closed:
            raise errors.ClosedError("the envs are closed: make new ones")
        if self._failure is not None:
            raise errors.ResetNeededError(
                "envs failed at an earlier act: reset() begins all anew "
                '(on_failure="restart" would have done so by itself)'
            ) from self._failure
        if not self._is_pending:
            return
        try:
            batch = self.envs.drain()
        except errors.ClosedError:
            raise
        except Exception as error:
            self._is_pending, self._failure = False, error
            raise
        self._is_pending = False
        if batch is None:
            self._failure = errors.NothingPendingError("an interrupt took the last act's results")
            raise self._failure
        observations, rewards, terminations, truncations, infos = batch
        del infos["env_id"], infos["row_kind"]
        flags = (terminations, truncations)
        self._show(observations, rewards, terminations | truncations, flags, infos)

    def _show(self, seen: Any, rewards: Any, first: Any, flags: Any, infos: dict[str, Any]) -> None:
        self._seen, self._first, self._flags, self._infos = seen, first, flags, infos
        self._reward = rewards.astype(np.float32)
        self._each = None

    def _tell(self) -> list[dict[str, Any]]:
        each = rows(self._infos, self.num)
        terminated, truncated = (flags.tolist() for flags in self._flags)
        frames = self.envs.render() if self.envs.render_mode == "rgb_array" else None
        for env, info in enumerate(each):
            info["terminated"], info["truncated"] = terminated[env], truncated[env]
            if "final_obs" in info:
                info["final_obs"] = self._observation.to_gym3(info["final_obs"])
            if frames is not None:
                info["rgb"] = frames[env]
        return each


class Batch:
    """A gym3 env as a `PythonBatch`."""

    def __init__(self, env: Any) -> None:
        for name in ("observe", "act", "get_info", "ob_space", "ac_space", "num"):
            if not hasattr(env, name):
                raise errors.ArgumentTypeError(f"{env!r} is no gym3 env: it has no {name}")
        self.env = env
        self.num_envs = int(env.num)
        self.observation_space = space_of(env.ob_space, "ob_space")
        self.action_space = space_of(env.ac_space, "ac_space")
        self.can_reset = callable(getattr(env, "reset", None))
        self._has_begun = False

    def reset(self) -> tuple[Any, list[dict[str, Any]]]:
        """Observes; later times resets before, of the envs that can."""
        if self._has_begun:
            self.env.reset()
        _, ob, _ = self._observed()
        infos = [_ends_and_rest(info)[1] for info in self._told()]
        self._has_begun = True
        return ob, infos

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, list[dict[str, Any]]]:
        """Acts and observes, once each."""
        self.env.act(_as_typed(self.env.ac_space, actions))
        reward, ob, first = self._observed()
        terminated = np.array(first, dtype=np.bool_)
        truncated = np.zeros_like(terminated)
        infos = []
        for env, info in enumerate(self._told()):
            ends, rest = _ends_and_rest(info)
            infos.append(rest)
            if ends is not None and any(ends) and terminated[env]:
                terminated[env], truncated[env] = ends
        return ob, reward, terminated, truncated, infos

    def _told(self) -> list[dict[str, Any]]:
        """What `get_info` gives, checked to be a dict for each env."""
        told = self.env.get_info()
        is_list = isinstance(told, list | tuple) and len(told) == self.env.num
        if not is_list or not all(isinstance(info, dict) for info in told):
            raise errors.ConformanceError(
                f"get_info gave {told!r}, where a list of one dict for each of {self.env.num} envs "
                "belongs"
            )
        return list(told)

    def _observed(self) -> tuple[Any, Any, Any]:
        """What `observe` gives, checked to be three things."""
        observed = self.env.observe()
        if not isinstance(observed, tuple | list) or len(observed) != 3:
            raise errors.ConformanceError(
                f"observe gave {observed!r}, where a tuple of reward, ob and first belongs"
            )
        return observed[0], observed[1], observed[2]

    def close(self) -> None:
        """Closes the env, if it can be."""
        if callable(getattr(self.env, "close", None)):
            self.env.close()


def _ends_and_rest(info: dict[str, Any]) -> tuple[tuple[bool, bool] | None, dict[str, Any]]:
    """How an episode ended, where the infos say both, as ours do; and the other infos."""
    if "terminated" not in info or "truncated" not in info:
        return None, info
    rest = {name: value for name, value in info.items() if name not in ("terminated", "truncated")}
    return (bool(info["terminated"]), bool(info["truncated"])), rest


def _as_typed(type_: Any, actions: Any) -> Any:
    """Actions in the dtypes that the env's own types name: some envs insist."""
    if isinstance(type_, DictType):
        return {name: _as_typed(inner, actions[name]) for name, inner in type_.items()}
    return np.asarray(actions).astype(type_.eltype.dtype_name, copy=False)
