"""Gymnasium's `SyncVectorEnv` and `AsyncVectorEnv`, with their arguments and methods.

Above 400 lines because the two classes repeat each method of Gymnasium's.

Change the import and keep the rest:

    from corral.compat.gymnasium import AsyncVectorEnv, SyncVectorEnv

`docs/compat.md` tells what is different on purpose.
"""

from __future__ import annotations

import multiprocessing
import operator
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
from gymnasium import Env, Space, logger
from gymnasium.vector import AutoresetMode

from corral import _native, errors, python_envs
from corral._seen_env import AS_IT_IS, SeenEnv
from corral.compat import _asked
from corral.compat._asked import SpacesDifferError, WaitTimeoutError
from corral.settings import VecOptions
from corral.spaces import cast_actions
from corral.vector import VectorEnv, split_options

__all__ = ["AsyncVectorEnv", "SpacesDifferError", "SyncVectorEnv", "WaitTimeoutError"]

Factory = Callable[[], Env[Any, Any]]


class _Gymnasium(VectorEnv):
    """What both classes have in common."""

    def __init__(
        self,
        env_fns: Sequence[Factory],
        copy: bool,
        observation_mode: str | tuple[Space[Any], Space[Any]],
        autoreset_mode: str | AutoresetMode,
        **how: Any,
    ) -> None:
        _asked.check_autoreset_mode(autoreset_mode)
        factories = list(env_fns)
        _asked.check_functions(factories)
        kind = type(self).__name__
        shared = _asked.shared_space(kind, observation_mode, lambda: self._spaces_of(factories))
        self.env_fns = env_fns
        self.copy = copy
        self.observation_mode = observation_mode
        options = VecOptions(autoreset_mode=autoreset_mode)
        name = python_envs.name_of(factories[0])
        try:
            made_by = self._made_by(factories, None if shared is None else shared[1])
            native, held = python_envs.native_of(name, made_by, options, **how)
        except errors.SpaceError as error:
            raise SpacesDifferError(
                f"{kind}(..., observation_mode={observation_mode!r}): {error}. If observation "
                "spaces differ intentionally, use `observation_mode='different'` instead."
            ) from None
        super().__init__(native, render_mode=native.about.render_mode)
        if shared is not None:
            self.observation_space, self.single_observation_space = shared
        self._has_begun = False
        self.held = held
        # As Gymnasium's: one env's does not make all of them again.
        self.spec = None

    def _spaces_of(self, factories: list[Factory]) -> list[Space[Any]]:
        """Each env's observation space."""
        found = []
        for make in factories:
            env = make()
            found.append(env.observation_space)
            env.close()
        return found

    def _made_by(self, factories: list[Factory], space: Space[Any] | None) -> list[Factory]:
        """What makes the envs for the native half; they show `space`, if it is one."""
        return [partial(_seen, make, space) for make in factories]

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Any, dict[str, Any]]:
        """As Gymnasium's."""
        self._check_reset(seed, options)
        return super().reset(seed=seed, options=options)

    def _check_reset(self, seed: Any, options: Any) -> None:
        _asked.check_seeds(seed, self.num_envs)
        _asked.check_options(options, self.num_envs)
        self._has_begun = True

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """As Gymnasium's: floats and ints stand for the floats of a Box, and envs that were not
        reset yet are stepped."""
        return super().step(self._prepared(actions))

    def send(self, actions: Any, env_id: Any = None) -> None:
        """As `VectorEnv.send`, with actions as `step` takes them."""
        super().send(self._prepared(actions), env_id)

    def _prepared(self, actions: Any) -> Any:
        """Actions for the native half, whose envs have begun then."""
        _asked.check_actions(self.single_action_space, actions)
        if not self._has_begun:
            self.native.reset(options={AS_IT_IS: True})
            self._has_begun = True
        return cast_actions(self.single_action_space, actions)

    def set_attr(self, name: str, values: Any) -> None:
        """Sets an attribute of each env: to its own of a list or tuple of values, or all to one.

        Raises:
            ArgumentError: for a list or tuple of another length.
        """
        super().set_attr(name, _asked.each_value(values, self.num_envs))

    def __repr__(self) -> str:
        return f"{type(self).__name__}(num_envs={self.num_envs})"

    @property
    def np_random_seed(self) -> tuple[int, ...]:  # type: ignore[override]
        """The seed of each env's generator."""
        return self.get_attr("np_random_seed")

    @property  # type: ignore[misc]
    def np_random(self) -> tuple[np.random.Generator, ...]:  # type: ignore[override]
        """Each env's generator."""
        return self.get_attr("np_random")


class SyncVectorEnv(_Gymnasium):
    """Envs stepped one after the other in this process; see `gymnasium.vector.SyncVectorEnv`.

    Args:
        env_fns: functions that make one env each.
        copy: arrays are always the caller's to keep.
        observation_mode: "same", "different", or a batched space and that of one env.
        autoreset_mode: Gymnasium's enum, or its values.

    Attributes:
        envs: the envs. One that failed is replaced at its next reset.
    """

    def __init__(
        self,
        env_fns: Sequence[Factory],
        copy: bool = True,
        observation_mode: str | tuple[Space[Any], Space[Any]] = "same",
        autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
    ) -> None:
        self.envs: list[Env[Any, Any]] = []
        # By number, envs that were made to see their spaces.
        self._made: dict[int, Env[Any, Any]] = {}
        super().__init__(env_fns, copy, observation_mode, autoreset_mode, runner="serial")

    def _spaces_of(self, factories: list[Factory]) -> list[Space[Any]]:
        self._made = dict(enumerate(make() for make in factories))
        return [env.observation_space for env in self._made.values()]

    def _made_by(self, factories: list[Factory], space: Space[Any] | None) -> list[Factory]:
        envs: list[Any] = [None] * len(factories)
        self.envs = envs
        made = self._made

        def noted(number: int, factory: Factory) -> Factory:
            def make() -> Env[Any, Any]:
                envs[number] = env = made.pop(number) if number in made else factory()
                return env

            return make

        each = [noted(number, factory) for number, factory in enumerate(factories)]
        return super()._made_by(each, space)


class AsyncVectorEnv(_Gymnasium):
    """Envs in worker processes; see `gymnasium.vector.AsyncVectorEnv`.

    Args:
        env_fns: functions that make one env each.
        shared_memory: observations of fixed shape always go through shared memory, others never.
        copy: arrays are always the caller's to keep.
        context: how workers are started; None for the default of `multiprocessing`. See
            `corral.from_gymnasium`.
        daemon: workers end with this process, and may have children of their own, either way.
        worker: None: there is one program for workers.
        observation_mode: "same", "different", or a batched space and that of one env.
        autoreset_mode: Gymnasium's enum, or its values.
        max_concurrency: how many envs run at one time, at most.
        num_workers: how many processes share the envs; None for as many as there are cores. Envs
            that wait rather than compute want more.
    """

    def __init__(
        self,
        env_fns: Sequence[Factory],
        shared_memory: bool = True,
        copy: bool = True,
        context: str | None = None,
        daemon: bool = True,
        worker: Callable[..., None] | None = None,
        observation_mode: str | tuple[Space[Any], Space[Any]] = "same",
        autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
        max_concurrency: int | None = None,
        *,
        num_workers: int | None = None,
    ) -> None:
        if worker is not None:
            raise errors.UnsupportedError(
                "a worker of one's own: corral's workers host many envs each and have their own "
                "program; wrap the envs instead"
            )
        _asked.check_concurrency(max_concurrency)
        self.shared_memory = shared_memory
        self.context = context
        self.daemon = daemon
        self.worker = worker
        self.max_concurrency = max_concurrency
        self._pending: str | None = None
        self._calling: _Calling | None = None
        super().__init__(
            env_fns,
            copy,
            observation_mode,
            autoreset_mode,
            runner="process",
            context=context or multiprocessing.get_context().get_start_method(),
            num_workers=_workers(num_workers, max_concurrency),
        )

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Any, dict[str, Any]]:
        """`reset_async`, then `reset_wait`."""
        self._idle("reset_async")
        with self._warning():
            return super().reset(seed=seed, options=options)

    def reset_async(
        self,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> None:
        """Begins new episodes, and returns at once.

        Raises:
            ClosedError, PendingCallError: Gymnasium's ClosedEnvironmentError and
                AlreadyPendingCallError.
        """
        self._idle("reset_async")
        self._check_reset(seed, options)
        index, mask, own = split_options(options)
        self.native.send_reset(seed=seed, index=index, mask=mask, options=own)
        self._pending = "reset"

    def reset_wait(self, timeout: float | None = None) -> tuple[Any, dict[str, Any]]:
        """The observations and infos of `reset_async`.

        Raises:
            NothingPendingError: Gymnasium's NoAsyncCallError.
            WaitTimeoutError: multiprocessing's TimeoutError; it can be waited for again.
        """
        observations, _, _, _, infos = self._wait("reset", timeout)
        return observations, infos

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """`step_async`, then `step_wait`."""
        self._idle("step_async")
        with self._warning():
            return super().step(actions)

    def step_async(self, actions: Any) -> None:
        """Steps all envs, and returns at once; errors as `reset_async`."""
        self._idle("step_async")
        self.send(actions)
        self._pending = "step"

    def step_wait(self, timeout: float | None = None) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """What `step_async` led to; errors as `reset_wait`."""
        return self._wait("step", timeout)

    def call(self, name: str, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """`call_async`, then `call_wait`."""
        self._idle("call_async")
        with self._warning():
            return super().call(name, *args, **kwargs)

    def call_async(self, name: str, /, *args: Any, **kwargs: Any) -> None:
        """Calls a method of each env, and returns at once; errors as `reset_async`."""
        self._idle("call_async")
        self._calling = _Calling(self.native, name, args, kwargs)
        self._pending = "call"

    def call_wait(self, timeout: float | None = None) -> tuple[Any, ...]:
        """What `call_async` led to, one result per env; errors as `reset_wait`."""
        self._awaited("call")
        assert self._calling is not None
        if not self._calling.done(timeout):
            raise _asked.timed_out("call", timeout)
        calling, self._calling, self._pending = self._calling, None, None
        with self._warning():
            return calling.results()

    def render(self, envs: Sequence[int] | None = None) -> tuple[Any, ...] | None:
        """What each env's `render` gives; errors as `reset_async`."""
        self._idle("call_async")
        with self._warning():
            return super().render(envs)

    def get_attr(self, name: str) -> tuple[Any, ...]:
        """An attribute of each env; errors as `reset_async`."""
        self._idle("call_async")
        with self._warning():
            return super().get_attr(name)

    def set_attr(self, name: str, values: Any) -> None:
        """Sets an attribute of each env; errors as `reset_async`."""
        self._open()
        values = _asked.each_value(values, self.num_envs)
        self._idle("set_attr")
        super().set_attr(name, values)

    def close_extras(
        self, timeout: float | None = None, terminate: bool = False, **kwargs: Any
    ) -> None:
        """Ends the workers.

        Args:
            timeout: how long to wait for a call that is under way; after that it is ended.
            terminate: not to wait for it.
        """
        pending, wait, hasty = self._pending, 0 if terminate else timeout, terminate
        try:
            if pending is not None:
                logger.warn(
                    f"Calling `close` while waiting for a pending call to `{pending}` to complete."
                )
                try:
                    getattr(self, f"{pending}_wait")(wait)
                except TimeoutError:
                    hasty = True
        finally:
            self._pending = None
            self._close_native(hasty=hasty)

    def _idle(self, doing: str) -> None:
        """Errors unless a call can be made."""
        self._open()
        if self._pending is not None:
            raise _asked.pending(doing, self._pending)

    def _open(self) -> None:
        if self.closed:
            raise _asked.closed(type(self).__name__)

    @contextmanager
    def _warning(self) -> Iterator[None]:
        """Warns of each env's failure, as Gymnasium does, before its error is raised."""
        try:
            yield
        except Exception as error:
            failed = error if isinstance(error, errors.EnvError) else error.__cause__
            if isinstance(failed, errors.EnvError):
                for failure in failed.failures:
                    logger.error(f"Received the following error from Worker-{failure.slot}")
                    remote = getattr(failure.exception, "__corral_traceback__", None)
                    logger.error(str(remote or failure.text).rstrip())
                logger.error("Raising the last exception back to the main process.")
            raise

    def _awaited(self, name: str) -> None:
        self._open()
        if self._pending != name:
            raise _asked.nothing_pending(name)

    def _wait(self, name: str, timeout: float | None) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        self._awaited(name)
        try:
            with self._warning():
                result = self.native.recv(timeout)
        except errors.RecvTimeoutError:
            raise _asked.timed_out(name, timeout) from None
        except Exception:
            self._pending = None
            raise
        self._pending = None
        del result[4]["env_id"], result[4]["row_kind"]
        return result


class _Calling:
    """A call by name, made in a thread of its own."""

    def __init__(
        self, native: _native.VecEnv, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        self._results: tuple[Any, ...] = ()
        self._error: BaseException | None = None

        def run() -> None:
            try:
                self._results = native.call(name, args, kwargs)
            except BaseException as error:
                self._error = error

        self._thread = threading.Thread(target=run, name=f"corral call of {name}", daemon=True)
        self._thread.start()

    def done(self, timeout: float | None) -> bool:
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def results(self) -> tuple[Any, ...]:
        if self._error is not None:
            raise self._error
        return self._results


def _seen(make: Factory, space: Space[Any] | None) -> Any:
    """The env that `make` makes, for the native half; an env of old gym's as it is."""
    env = make()
    return SeenEnv(env, space) if isinstance(env, Env) else env


def _workers(num_workers: int | None, max_concurrency: int | None) -> int | None:
    """As many workers as were asked for, and no more than may run at one time."""
    if max_concurrency is None:
        return num_workers
    most = operator.index(max_concurrency)
    return most if num_workers is None else min(num_workers, most)
