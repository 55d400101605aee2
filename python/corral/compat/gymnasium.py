"""Gymnasium's `SyncVectorEnv` and `AsyncVectorEnv`, with their arguments and methods.

Change the import and keep the rest:

    from corral.compat.gymnasium import AsyncVectorEnv, SyncVectorEnv

What is different on purpose:

- Every array that is returned is the caller's to keep, as Gymnasium's are with `copy=True`;
  `copy=False` saves nothing here.
- The caller's options keep their `"reset_mask"`; Gymnasium takes it out of them.
- After a reset of an env whose episode was over, Gymnasium's worker without shared memory still
  holds that flag, and resets again in the next step. Here it does not.
- A step of an env whose episode is over, with autoreset disabled, is an error;
  Gymnasium's workers play it.
- Text in Gymnasium's shared memory is never seen to change, and boxes without elements, graphs,
  sequences and spaces of one's own are refused there. Here all go as they are.
- A wait that passes its timeout can be made again; with Gymnasium the results stay in the pipes
  and are taken for those of the next call.
- An info that does not fit the array which an earlier env's made turns it into an object array,
  but for floats that lose their last bits; Gymnasium casts it (2.5 becomes 2) or raises.
- Actions are checked before any env moves, and observations when they come: a shape, a dtype or a
  NaN that does not belong there is an error that names env and leaf.
- Where an env fails the others finish their step, and its next reset makes it anew.
- Options that are empty are none: envs are given None, not `{}`.
- All envs have equal spaces: `observation_mode="different"` and spaces of one's own are refused.
"""

from __future__ import annotations

import multiprocessing
import operator
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from gymnasium import Env, Space, logger
from gymnasium.vector import AutoresetMode

from corral import _native, errors, python_envs
from corral.settings import VecOptions
from corral.spaces import cast_actions
from corral.vector import VectorEnv, split_options

Factory = Callable[[], Env[Any, Any]]


class SpacesDifferError(errors.SpaceError, RuntimeError):
    """Envs with spaces that are not equal; a RuntimeError, as Gymnasium's."""


class WaitTimeoutError(errors.RecvTimeoutError, multiprocessing.TimeoutError):
    """A wait that took longer than its timeout; what it waited for is still under way."""


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
        _check_observation_mode(observation_mode)
        factories = list(env_fns)
        if not factories:
            raise errors.ArgumentError("there are no envs: give at least one function")
        self.env_fns = env_fns
        self.copy = copy
        self.observation_mode = observation_mode
        options = VecOptions(autoreset_mode=autoreset_mode)
        name = python_envs.name_of(factories[0])
        try:
            native, held = python_envs.native_of(name, self._made_by(factories), options, **how)
        except errors.SpaceError as error:
            raise SpacesDifferError(str(error)) from None
        super().__init__(native, render_mode=native.about.render_mode)
        self.held = held
        # As Gymnasium's: one env's does not make all of them again.
        self.spec = None

    def _made_by(self, factories: list[Factory]) -> list[Factory]:
        return factories

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """As Gymnasium's: floats and ints stand for the floats of a Box."""
        return super().step(cast_actions(self.single_action_space, actions))

    def send(self, actions: Any, env_id: Any = None) -> None:
        """As `VectorEnv.send`, with actions as `step` takes them."""
        super().send(cast_actions(self.single_action_space, actions), env_id)

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
        observation_mode: "same".
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
        super().__init__(env_fns, copy, observation_mode, autoreset_mode, runner="serial")

    def _made_by(self, factories: list[Factory]) -> list[Factory]:
        envs: list[Any] = [None] * len(factories)
        self.envs = envs

        def noted(number: int, factory: Factory) -> Factory:
            def make() -> Env[Any, Any]:
                envs[number] = env = factory()
                return env

            return make

        return [noted(number, factory) for number, factory in enumerate(factories)]


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
        observation_mode: "same".
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
            raise WaitTimeoutError(f"call_wait: no results within {timeout} s")
        calling, self._calling, self._pending = self._calling, None, None
        return calling.results()

    def render(self, envs: Sequence[int] | None = None) -> tuple[Any, ...] | None:
        """What each env's `render` gives; errors as `reset_async`."""
        self._idle("call_async")
        return super().render(envs)

    def get_attr(self, name: str) -> tuple[Any, ...]:
        """An attribute of each env; errors as `reset_async`."""
        self._idle("call_async")
        return super().get_attr(name)

    def set_attr(self, name: str, values: Any) -> None:
        """Sets an attribute of each env; errors as `reset_async`."""
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
                logger.warn(f"close while a call of {pending}_async is under way")
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
            raise errors.PendingCallError(
                f"{doing} while a call of {self._pending}_async is under way: "
                f"call {self._pending}_wait first",
                self._pending,
            )

    def _open(self) -> None:
        if self.closed:
            raise errors.ClosedError("these envs are closed: make new ones")

    def _awaited(self, name: str) -> None:
        self._open()
        if self._pending != name:
            raise errors.NothingPendingError(f"{name}_wait without a {name}_async before it", name)

    def _wait(self, name: str, timeout: float | None) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        self._awaited(name)
        try:
            result = self.native.recv(timeout)
        except errors.RecvTimeoutError as error:
            raise WaitTimeoutError(f"{name}_wait: {error}") from None
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


def _check_observation_mode(mode: Any) -> None:
    if mode == "same":
        return
    if mode == "different" or isinstance(mode, tuple):
        raise errors.UnsupportedError(
            f"observation_mode={mode!r}: all envs of a vec env have equal spaces here; give them "
            "one by gymnasium.wrappers.TransformObservation"
        )
    raise errors.ArgumentError(f"observation_mode is 'same' here, not {mode!r}")


def _workers(num_workers: int | None, max_concurrency: int | None) -> int | None:
    """As many workers as were asked for, and no more than may run at one time."""
    if max_concurrency is None:
        return num_workers
    try:
        most = operator.index(max_concurrency)
    except TypeError:
        most = 0
    if most < 1:
        raise errors.ArgumentError(
            f"max_concurrency is an int of at least 1, or None, not {max_concurrency!r}"
        )
    return most if num_workers is None else min(num_workers, most)
