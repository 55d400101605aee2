"""Gymnasium's `SyncVectorEnv` and `AsyncVectorEnv`: its arguments, methods and results, on corral.

    from corral.compat.gymnasium import AsyncVectorEnv  # was: from gymnasium.vector

One suite (`tests/python_envs/test_gymnasium_classes.py`) passes on Gymnasium's classes and these.

On purpose, these differ from Gymnasium's:

- `AsyncVectorEnv` has one worker process per core, each with several envs, and not one per env.
- `context=None` is "spawn" on every platform, for a fork keeps the locks that other threads hold.
  What was registered or changed in this process by hand is not there in a spawned one: do it
  inside the function that makes the env, in a module that it imports, or give `context="fork"`.
- Every array is the caller's to keep: `copy=False` is taken and changes nothing.
- `shared_memory` is taken and changes nothing; a space of another kind than Gymnasium's own goes
  by pickle, the rest through shared memory.
- Actions are checked before any env moves, and so are observations (shape, dtype, NaN).
- Actions of another float or integer type than a Box of floats has come to the envs as its own.
- Options without any in them (`{}`, or a `reset_mask` alone) reach the envs as None.
- A step before the first reset is `ResetNeeded`, whatever the envs would have said.
- After `close`, `SyncVectorEnv` raises as `AsyncVectorEnv` does.
- A `worker` of one's own, `observation_mode="different"` and a pair of spaces are not to be had.

Faults of Gymnasium 1.4 that these do not have:

- `reset` takes `reset_mask` out of the caller's `options`.
- `AsyncVectorEnv(shared_memory=False)` forgets that a reset has ended the episode: in NEXT_STEP the
  first step after it resets again, and the action is lost.
- `AsyncVectorEnv(shared_memory=True)` shows empty strings, for ever, where a space has a Text.
- `AsyncVectorEnv` in DISABLED does not notice a step of an episode that has ended.
- After a timeout of `step_wait`, `reset_wait` or `call_wait` the late results stay in the pipes and
  are taken for the next call's. Here they stay in flight, and one waits for them again.
- A wrong number of actions moves some envs (all there are, in `SyncVectorEnv`) before the error,
  and leaves `AsyncVectorEnv`'s workers with answers that nobody awaits.
- An env's exception ends its worker and with it the use of `AsyncVectorEnv`; it arrives as its
  class called with the exception, without attributes, and not at all where the class wants other
  arguments. Here it arrives whole, and the env is made anew by the next reset.
- `final_obs` of `SyncVectorEnv` and an env that writes all observations into one array: it shows
  the next episode's first.
- An info that does not fit the array that the first env's made is cast, or is an error: 0.5 after a
  0 is 0, "longer" after an array of "abc" is cut. Here the array becomes one of objects.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import multiprocessing
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

import gymnasium
import numpy as np
from gymnasium import logger, spaces
from gymnasium.vector import AutoresetMode
from gymnasium.vector.async_vector_env import AsyncState

from corral import errors
from corral.python_envs import from_gymnasium
from corral.vector import VectorEnv, split_options

__all__ = ["AsyncVectorEnv", "SpacesDifferError", "SyncVectorEnv", "WaitTimeoutError"]

EnvFns = Sequence[Callable[[], gymnasium.Env[Any, Any]]]
_Mode = str | AutoresetMode
Step = tuple[Any, Any, Any, Any, dict[str, Any]]


class SpacesDifferError(errors.SpaceError, RuntimeError):
    """Envs whose spaces differ; a RuntimeError, as Gymnasium's."""


class WaitTimeoutError(errors.RecvTimeoutError, multiprocessing.TimeoutError):
    """A wait that took longer than its timeout; what it waited for stays under way."""


class _Compat(VectorEnv):
    """What both classes have in common."""

    env_fns: EnvFns
    copy: bool
    observation_mode: str

    def __init__(
        self,
        env_fns: EnvFns,
        copy: bool,
        observation_mode: Any,
        autoreset_mode: _Mode,
        **how: Any,
    ) -> None:
        if observation_mode != "same":
            _refuse_observation_mode(observation_mode)
        try:
            made = from_gymnasium(list(env_fns), autoreset_mode=autoreset_mode, **how)
        except errors.SpaceError as error:
            raise SpacesDifferError(*error.args) from error
        super().__init__(made.native, render_mode=made.render_mode)
        # Gymnasium's classes leave it to `make_vec`, which knows what they were made by.
        self.spec = None
        self.env_fns = env_fns
        self.copy = copy
        self.observation_mode = observation_mode

    def step(self, actions: Any) -> Step:
        """As `VectorEnv.step`."""
        return self.native.step(_cast(self.single_action_space, actions))

    __repr__ = gymnasium.vector.VectorEnv.__repr__

    # Gymnasium's classes give the envs' own, not one of the batch's.
    @property
    def np_random_seed(self) -> Any:  # type: ignore[misc]
        """The seed of each env's generator."""
        return self.get_attr("np_random_seed")

    @property
    def np_random(self) -> Any:
        """Each env's generator; of envs in workers, a copy of it."""
        return self.get_attr("np_random")


def _cast(space: Any, actions: Any) -> Any:
    """What stands for floats as the floats of its space: policies give float64s and ints."""
    if isinstance(space, spaces.Box) and space.dtype is not None and space.dtype.kind == "f":
        if isinstance(actions, np.ndarray) and actions.dtype.kind in "fiu":
            return actions.astype(space.dtype, copy=False)
    elif isinstance(space, spaces.Dict) and isinstance(actions, Mapping):
        return {name: _cast(space.spaces.get(name), part) for name, part in actions.items()}
    elif isinstance(space, spaces.Tuple) and isinstance(actions, tuple):
        # Another length is for the check behind this to name.
        inner = (*space.spaces, *[None] * len(actions))
        return tuple(_cast(one, part) for one, part in zip(inner, actions))
    return actions


def _refuse_observation_mode(mode: Any) -> NoReturn:
    if mode == "different" or (isinstance(mode, tuple) and len(mode) == 2):
        raise errors.UnsupportedError(
            f"observation_mode {mode!r} is not supported: all envs must have the same space. Give "
            "them one that holds all their observations (TransformObservation's, for instance), "
            "or use Gymnasium's own class"
        )
    raise errors.ArgumentError(f"observation_mode is 'same', not {mode!r}")


class SyncVectorEnv(_Compat):
    """Gymnasium's `SyncVectorEnv`: envs of this process, stepped one after the other.

    Args:
        env_fns: functions that make the envs.
        copy: taken; arrays are always the caller's own.
        observation_mode: "same"; no other is supported.
        autoreset_mode: Gymnasium's, or its value.

    Raises:
        SpacesDifferError: if the envs' spaces differ.
        UnsupportedError: for other observation modes.
    """

    def __init__(
        self,
        env_fns: EnvFns,
        copy: bool = True,
        observation_mode: Any = "same",
        autoreset_mode: _Mode = AutoresetMode.NEXT_STEP,
    ) -> None:
        super().__init__(env_fns, copy, observation_mode, autoreset_mode, runner="serial")

    @property
    def envs(self) -> list[gymnasium.Env[Any, Any]]:
        """The envs themselves."""
        return list(self.native.call("corral:self", (), {}))


class AsyncVectorEnv(_Compat):
    """Gymnasium's `AsyncVectorEnv`: envs in worker processes.

    Args:
        env_fns: functions that make the envs; cloudpickle sends them.
        shared_memory: taken; there always is.
        copy: taken; arrays are always the caller's own.
        context: "spawn" (and None), "forkserver" or "fork", as in `corral.from_gymnasium`.
        daemon: taken; workers always end with this process, and their envs may have children.
        worker: None; no other is supported.
        observation_mode: "same"; no other is supported.
        autoreset_mode: Gymnasium's, or its value.
        max_concurrency: how many envs run at one time: the number of workers.

    Raises:
        SpacesDifferError: if the envs' spaces differ.
        UnsupportedError: for a `worker` and for other observation modes.
    """

    def __init__(
        self,
        env_fns: EnvFns,
        shared_memory: bool = True,
        copy: bool = True,
        context: str | None = None,
        daemon: bool = True,
        worker: Callable[..., None] | None = None,
        observation_mode: Any = "same",
        autoreset_mode: _Mode = AutoresetMode.NEXT_STEP,
        max_concurrency: int | None = None,
    ) -> None:
        if worker is not None:
            raise errors.UnsupportedError(
                "worker: corral's workers host many envs each and take no program of one's own; "
                "put what it does into a wrapper of the envs, or use Gymnasium's own class"
            )
        self._state = AsyncState.DEFAULT
        self._called: concurrent.futures.Future[tuple[Any, ...]] | None = None
        super().__init__(
            env_fns,
            copy,
            observation_mode,
            autoreset_mode,
            runner="process",
            context="spawn" if context is None else context,
            num_workers=max_concurrency,
        )
        self.shared_memory = shared_memory
        self.context = context
        self.daemon = daemon
        self.worker = worker
        self.max_concurrency = max_concurrency

    def reset(
        self, *, seed: Any = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """As `VectorEnv.reset`."""
        self._must_be_free("reset")
        return super().reset(seed=seed, options=options)

    def step(self, actions: Any) -> Step:
        """As `VectorEnv.step`."""
        self._must_be_free("step")
        return super().step(actions)

    def reset_async(self, seed: Any = None, options: dict[str, Any] | None = None) -> None:
        """Begins a reset; `reset_wait` gives its result.

        Raises:
            ClosedError: after `close`.
            PendingCallError: while another call is under way.
        """
        self._must_be_free("reset_async")
        index, mask, own = split_options(options)
        self.native.async_reset(seed=seed, index=index, mask=mask, options=own)
        self._state = AsyncState.WAITING_RESET

    def reset_wait(self, timeout: float | None = None) -> tuple[Any, dict[str, Any]]:
        """The result of `reset_async`.

        Raises:
            ClosedError: after `close`.
            NothingPendingError: if none was begun.
            WaitTimeoutError: if it took longer than `timeout` seconds; wait for it again.
        """
        observations, _, _, _, infos = self._received(AsyncState.WAITING_RESET, timeout)
        return observations, infos

    def step_async(self, actions: Any) -> None:
        """Begins a step; `step_wait` gives its result.

        Raises:
            ClosedError: after `close`.
            PendingCallError: while another call is under way.
        """
        self._must_be_free("step_async")
        self.native.send(_cast(self.single_action_space, actions))
        self._state = AsyncState.WAITING_STEP

    def step_wait(self, timeout: float | None = None) -> Step:
        """The result of `step_async`; raises as `reset_wait`."""
        return self._received(AsyncState.WAITING_STEP, timeout)

    def call(self, name: str, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """What a method of each env gives, or the attribute of that name."""
        self._must_be_free("call")
        return super().call(name, *args, **kwargs)

    def call_async(self, name: str, /, *args: Any, **kwargs: Any) -> None:
        """Begins a call; `call_wait` gives its result.

        Raises:
            ClosedError: after `close`.
            PendingCallError: while another call is under way.
        """
        self._must_be_free("call_async")
        called: concurrent.futures.Future[tuple[Any, ...]] = concurrent.futures.Future()

        def work() -> None:
            try:
                called.set_result(self.native.call(name, args, kwargs))
            except BaseException as error:
                called.set_exception(error)

        threading.Thread(target=work, name="corral-call", daemon=True).start()
        self._called = called
        self._state = AsyncState.WAITING_CALL

    def call_wait(self, timeout: float | None = None) -> tuple[Any, ...]:
        """The result of `call_async`; raises as `reset_wait`."""
        self._must_wait_for(AsyncState.WAITING_CALL)
        assert self._called is not None
        concurrent.futures.wait([self._called], timeout)
        if not self._called.done():
            raise WaitTimeoutError(f"call_wait: no result after {timeout} s; it goes on")
        called, self._called = self._called, None
        self._state = AsyncState.DEFAULT
        return called.result()

    def set_attr(self, name: str, values: Any) -> None:
        """As `VectorEnv.set_attr`."""
        self._must_be_free("set_attr")
        super().set_attr(name, values)

    def close_extras(
        self, timeout: float | None = None, terminate: bool = False, **kwargs: Any
    ) -> None:
        """Ends the workers.

        Args:
            timeout: how long to wait for a call that is under way; None for as long as it takes.
            terminate: whether not to wait at all.
        """
        if self._state != AsyncState.DEFAULT and not terminate:
            logger.warn(f"close while a call to {self._state.value} is under way")
            # It is over then, whatever came of it.
            with contextlib.suppress(Exception):
                getattr(self, f"{self._state.value}_wait")(timeout)
        self._state = AsyncState.DEFAULT
        super().close_extras(**kwargs)

    def _received(self, state: AsyncState, timeout: float | None) -> Step:
        self._must_wait_for(state)
        try:
            batch = self.native.recv(None if timeout is None else max(timeout, 0.0))
        except errors.RecvTimeoutError as error:
            raise WaitTimeoutError(f"{state.value}_wait: {error}") from None
        except Exception:
            self._state = AsyncState.DEFAULT
            raise
        self._state = AsyncState.DEFAULT
        del batch[4]["env_id"]
        return batch

    def _must_be_open(self) -> None:
        if self.closed:
            raise errors.ClosedError(f"{type(self).__name__} is closed")

    def _must_be_free(self, wanted: str) -> None:
        self._must_be_open()
        if self._state != AsyncState.DEFAULT:
            pending = str(self._state.value)
            raise errors.PendingCallError(
                f"{wanted}: a call to {pending} is under way: {pending}_wait comes first", pending
            )

    def _must_wait_for(self, state: AsyncState) -> None:
        self._must_be_open()
        if self._state != state:
            name = str(state.value)
            raise errors.NothingPendingError(
                f"{name}_wait: there was no {name}_async before it", name
            )
