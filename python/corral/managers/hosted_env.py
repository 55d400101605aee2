"""An env of any of the interfaces that managers take as a Gymnasium env, where it is stepped: in a
worker process, or in the manager's own process.

What DI-engine's envs do otherwise is decided here: how they are seeded and reset, what their
timesteps hold, which instance goes on after a failure, what is filmed.
"""

from __future__ import annotations

import copy
import functools
import pickle
import weakref
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from corral import errors
from corral._transport import by_value
from corral.managers import parcel
from corral.managers.declared import Declared, check_same, declared, is_modern
from corral.managers.timestep import as_arrays, is_abnormal
from corral.managers.video import Recorder

ORDERS = "corral.managers.orders"
"""The option that carries `(reset_param, dynamic_seed)` by env; they hold until changed."""
OBSERVATION, PARCEL = "observation", "parcel"
"""The leaves that a hosted env shows: its observation, where it declares its space, and a parcel
(`corral.managers.parcel`) with what a row of numbers cannot carry: `(info, reward)`, where a reward
of None is the row's; `(info, reward, observation)`, where there is no leaf for that; of an abnormal
timestep `(info, reward, observation, done)`. A parcel that does not fit is an info of this name."""


# By the id of an env that is hosted in this process, its host.
_HOSTS: weakref.WeakValueDictionary[int, HostedEnv] = weakref.WeakValueDictionary()


class EnvMaker:
    """Makes the env of one place, and keeps an instance that failed for the next reset, where
    `retry_type` is "reset".

    An env is built at its first reset: the limits of a reset hold for its building, too, and a
    worker that starts loads nothing of the user's.

    Args:
        env_id: the env's number.
        fn: makes the env.
        expected: what env 0 declares.
        shown: the space of the observation's leaf, or None.
        taken: the space of actions; None for actions that come in a parcel.
        sizes: the bytes of the parcels of what is shown, and of actions.
        keeps: whether an instance that failed goes on.
        replay_path: the folder of its videos, or None.

    Attributes:
        param, dynamic_seed: what the env was told last; they outlive an instance.
    """

    def __init__(
        self,
        env_id: int,
        fn: Callable[[], Any],
        expected: Declared,
        shown: Any,
        taken: Any,
        sizes: tuple[int, int],
        *,
        keeps: bool,
        replay_path: str | None,
    ) -> None:
        self.env_id, self._fn, self.expected = env_id, fn, expected
        self.shown, self.taken, self.sizes = shown, taken, sizes
        self._keeps, self.replay_path = keeps, replay_path
        self.param: dict[str, Any] | None = None
        self.dynamic_seed: bool | None = None
        self._kept: Any = None
        # Closes what is kept when nobody comes back for it.
        self._last_will: weakref.finalize[Any, Any] | None = None

    def __repr__(self) -> str:
        return f"env_fn[{self.env_id}] ({self._fn!r})"

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_fn": by_value(self._fn), "_kept": None, "_last_will": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        # Loaded when it is called: what it imports may be slow, or fail.
        self._fn = functools.partial(_call_pickled, state["_fn"])

    def __call__(self) -> HostedEnv:
        """The env's host, which builds it or goes on with what was kept."""
        return HostedEnv(self)

    def made(self) -> tuple[Any, bool]:
        """An instance, and whether it is a new one.

        Raises:
            SpaceError: if its spaces are not env 0's.
            Exception: what the function raises.
        """
        kept, self._kept = self._kept, None
        if kept is None:
            return self._fn(), True
        if self._last_will is not None:
            self._last_will.detach()
        return kept, False

    def take_back(self, env: Any, *, failed: bool) -> None:
        """Keeps an instance that failed, or closes it."""
        if failed and self._keeps:
            self._kept = env
            self._last_will = weakref.finalize(self, _close, env)
        else:
            _close(env)


def _call_pickled(fn: bytes) -> Any:
    return pickle.loads(fn)()


def _close(env: Any) -> None:
    close = getattr(env, "close", None)
    if close is not None:
        close()


class HostedEnv(gymnasium.Env[Any, Any]):
    """One env of a manager, with Gymnasium's interface.

    Attributes:
        inner: the env as `env_fn` made it; None before the first reset.
        has_failed: whether the last call raised an exception, or one is under way; the native half
            says so of steps that it plays itself.
        _corral_direct: what the native half needs to step `inner` without this object, where an
            action and a timestep are as most are (`envpy/src/py_env/direct.rs`): the env's own
            `step`, and the parcels of float32 and float64 rewards. None before the first reset, and
            of envs whose every step needs this object.
    """

    _corral_direct: tuple[Any, Any, Any] | None = None

    def __init__(self, maker: EnvMaker) -> None:
        self._maker = maker
        leaves = {PARCEL: parcel.space_of(maker.sizes[0])}
        if maker.shown is not None:
            leaves = {OBSERVATION: maker.shown, **leaves}
        self.observation_space = spaces.Dict(list(leaves.items()))
        taken = maker.taken
        self.action_space = parcel.space_of(maker.sizes[1]) if taken is None else taken
        self.inner: Any = None
        self._empty = parcel.empty(maker.sizes[0])
        self._forms = parcel.reward_forms(maker.sizes[0])
        self._reader = parcel.ActionReader() if maker.taken is None else None
        self._is_shown = maker.shown is not None
        self._is_modern = False
        # What an abnormal timestep shows, for it may have nothing to show. Any valid observation
        # does: the manager gives the one in the parcel.
        self._last: Any = None
        self._told_seed: tuple[int | None, bool | None] | None = None
        self._recorder: Recorder | None = None
        self._is_checked = False
        self.has_failed = False

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begins an episode, with the parameters that were told last."""
        maker = self._maker
        if options is not None and ORDERS in options:
            maker.param, maker.dynamic_seed = options[ORDERS][maker.env_id]
        # Whoever fails is closed next.
        self.has_failed = True
        if self.inner is None:
            self._build()
        observation = self._begun(seed)
        if not self._is_checked:
            self._is_checked = True
            check_same(declared(self.inner), maker.expected, maker.env_id)
        if self._recorder is not None:
            self._recorder.begin(self.inner.render())
        shown, _, infos = self._row(observation, 0.0, None)
        is_array = self._reader is not None and isinstance(maker.shown, spaces.Box)
        if is_array and maker.replay_path is None:
            # A reset may give the env another step.
            self._corral_direct = (self.inner.step, *self._forms.values())
        self.has_failed = False
        return shown, infos

    def _build(self) -> None:
        maker = self._maker
        self.inner, is_new = maker.made()
        other = _HOSTS.get(id(self.inner))
        if other is not None and other is not self and other.inner is self.inner:
            self.inner = None
            raise errors.ArgumentError(
                f"env_fn[{other._maker.env_id}] and env_fn[{maker.env_id}] gave the same object: "
                "what makes an env must make a new one at every call, and not, as `lambda: env` "
                "does, give one that there is already"
            )
        _HOSTS[id(self.inner)] = self
        for name in ("reset", "step"):
            if not callable(getattr(self.inner, name, None)):
                raise errors.ArgumentTypeError(
                    f"env_fn[{maker.env_id}] made {self.inner!r}, which is no env: it has no {name}"
                )
        self._is_modern = is_modern(self.inner)
        if maker.replay_path is None:
            return
        own = getattr(self.inner, "enable_save_replay", None)
        if not callable(own):
            metadata = getattr(self.inner, "metadata", None) or {}
            fps = metadata.get("render_fps")
            self._recorder = Recorder(maker.replay_path, maker.env_id, fps)
        elif is_new:
            own(maker.replay_path)

    def _begun(self, seed: int | None) -> Any:
        """The first observation of an episode."""
        param, dynamic_seed = self._maker.param or {}, self._maker.dynamic_seed
        if self._is_modern:
            given = param if seed is None else {"seed": seed, **param}
            begun = self.inner.reset(**given)
            is_pair = isinstance(begun, tuple) and len(begun) == 2 and isinstance(begun[1], dict)
            # Old gym's took a seed before it gave an info.
            return begun[0] if is_pair else begun
        told = (seed, dynamic_seed)
        # An env that repeats its seed does so by itself.
        if seed is not None and not (dynamic_seed is False and told == self._told_seed):
            if not callable(getattr(self.inner, "seed", None)):
                raise errors.UnsupportedError(
                    f"env {self._maker.env_id} takes no seed: it has no method seed, and its reset "
                    "has no argument seed"
                )
            self.inner.seed(seed, *(() if dynamic_seed is None else (dynamic_seed,)))
            self._told_seed = told
        return self.inner.reset(**param)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Plays one action."""
        self.has_failed = True
        given = action if self._reader is None else self._reader.read(action)
        return self.finish(self.inner.step(given))

    def finish(self, result: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """What `step` gives where the env's own `step` gave `result`."""
        self.has_failed = True
        if len(result) == 5:
            observation, reward, terminated, truncated, info = result
            done = terminated or truncated
        else:
            observation, reward, done, info = result
            is_cut = bool(done and isinstance(info, dict) and info.get("TimeLimit.truncated"))
            terminated, truncated = done and not is_cut, is_cut
        if info and is_abnormal(info):
            self.has_failed = False
            shown, infos = self._with_aside(self._last, (info, reward, observation, done))
            return shown, 0.0, False, False, infos
        if self._recorder is not None:
            self._recorder.add(self.inner.render())
            if done:
                self._recorder.end()
        shown, number, infos = self._row(observation, reward, info)
        self.has_failed = False
        return shown, number, bool(terminated), bool(truncated), infos

    def _row(self, observation: Any, reward: Any, info: Any) -> tuple[Any, float, dict[str, Any]]:
        """What is shown, the row's own reward, and infos."""
        number, own = (reward, None) if type(reward) is float else (0.0, reward)
        if not self._is_shown:
            shown, infos = self._with_aside(None, (info, own, as_arrays(observation)))
            return shown, number, infos
        self._last = observation
        if not info:
            if own is None:
                return {OBSERVATION: observation, PARCEL: self._empty}, number, {}
            if isinstance(own, np.ndarray):
                form = self._forms.get((own.dtype.char, own.shape))
                if form is not None:
                    return {OBSERVATION: observation, PARCEL: form}, float(own[0]), {}
        shown, infos = self._with_aside(observation, (info, own))
        return shown, number, infos

    def _with_aside(self, observation: Any, aside: tuple[Any, ...]) -> tuple[Any, dict[str, Any]]:
        """What is shown, with a parcel, and infos."""
        leaf = parcel.packed(aside, len(self._empty))
        infos = {}
        if leaf is None:
            # The env may change its own objects.
            leaf, infos = self._empty, {PARCEL: (*aside[:2], *copy.deepcopy(aside[2:]))}
        shown = {PARCEL: leaf}
        if self._is_shown:
            shown[OBSERVATION] = observation
        return shown, infos

    def hold(self, action: Any) -> None:
        """Keeps an action that is larger than its leaf, for the next step."""
        if self._reader is not None:
            self._reader.held = (action,)

    def close(self) -> None:
        """Ends the video; closes the env, or leaves it to its maker after a failure."""
        recorder, self._recorder = self._recorder, None
        inner, self.inner = self.inner, None
        try:
            if recorder is not None:
                recorder.end()
        finally:
            if inner is not None:
                self._maker.take_back(inner, failed=self.has_failed)

    def attribute(self, name: str) -> Any:
        """An attribute of the env, through its wrappers; None where it has none."""
        find = getattr(self.inner, "get_wrapper_attr", None)
        try:
            return getattr(self.inner, name) if find is None else find(name)
        except AttributeError:
            return None

    def invoke(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What a method of the env gives."""
        find = getattr(self.inner, "get_wrapper_attr", None)
        method = getattr(self.inner, name) if find is None else find(name)
        return method(*args, **kwargs)
