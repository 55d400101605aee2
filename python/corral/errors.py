"""What corral raises: one base class; each error is also the one that Python or Gymnasium has."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, field
from typing import Any

import gymnasium.error


class CorralError(Exception):
    """Every error that corral raises on purpose."""


class InvalidActionError(CorralError, gymnasium.error.InvalidAction, ValueError):
    """An action that the action space does not hold. No env has moved."""


class ArgumentError(CorralError, ValueError):
    """A seed, index, mask or count of the wrong value. Nothing has changed."""


class ArgumentTypeError(CorralError, TypeError):
    """An argument of the wrong type. Nothing has changed."""


class MissingFileError(CorralError, FileNotFoundError):
    """A file that should have come with the package."""


class UnknownOptionError(CorralError, TypeError):
    """An option that there is not; the message lists those that there are."""


class OptionValueError(CorralError, ValueError):
    """An option with a value that the env does not take."""


class UnknownEnvError(CorralError, gymnasium.error.NameNotFound):
    """An id that no env has; the message lists those that are near."""


class UnknownNameError(CorralError, AttributeError):
    """A method or property that the envs do not have."""


class LibraryError(CorralError, ImportError):
    """A library that cannot be loaded, or is not what it claims to be."""


class SpaceError(CorralError, ValueError):
    """An env whose spaces contradict themselves: its author's fault."""


class UnsupportedError(CorralError, NotImplementedError):
    """Something that this env cannot do."""


class ResetNeededError(CorralError, gymnasium.error.ResetNeeded):
    """A step before a reset, or of an episode that has ended."""


class PendingCallError(CorralError, gymnasium.error.AlreadyPendingCallError):
    """A call while an earlier one is under way."""

    def __init__(self, message: str, name: str = "step") -> None:
        super().__init__(message, name)

    def __str__(self) -> str:
        return str(self.args[0])


class NothingPendingError(CorralError, gymnasium.error.NoAsyncCallError):
    """A receive with nothing in flight."""

    def __init__(self, message: str, name: str = "recv") -> None:
        super().__init__(message, name)

    def __str__(self) -> str:
        return str(self.args[0])


class RecvTimeoutError(CorralError, TimeoutError):
    """A `recv` or `drain` that took longer than its own timeout. Nothing is lost."""


class ForkedError(CorralError, RuntimeError):
    """A call in a process forked from the one that made the envs."""


class ClosedError(CorralError, gymnasium.error.ClosedEnvironmentError):
    """A call after `close`."""


class StateError(CorralError, ValueError):
    """Bytes that are no state of this env."""


class VideoError(CorralError, OSError):
    """A film that could not be written; the envs went on.

    Attributes:
        batch: what the call would have returned.
    """

    batch: Any = None


@dataclass(frozen=True)
class SlotFailure:
    """One env that failed.

    Attributes:
        slot: its place in the vec env.
        seed: the seed of its own random stream; None for a Python env that nobody seeded,
            and for envs that take no seed.
        index: the index of its episode, if it was an indexed one.
        episode: which episode of the env it was, from 0 since it was last seeded.
        step: steps taken in the episode before the failing one.
        action: the failing step's action, as text.
        phase: "build", "reset", "step", "render", …
        cause: "error" (it returned one), "panic", "silence" (it did not come back in time), "death"
            (its process ended), "interrupt" (Ctrl-C reached it), or "instance" (it shares an
            instance of a library with the env that failed, or the instance failed as a whole).
        message: the panic's or the error's message, or how long it was silent.
        text: all of it to read.
        replay: the file that replays it (see `corral.replay`), where the envs were made with
            `record=` and it could be written; `text` says why not.
        exception: what a Python env raised, if it did.
        backtrace: the calls in Rust that led to a panic, where `RUST_BACKTRACE` asks for them.
    """

    slot: int
    seed: int | None
    index: int | None
    episode: int
    step: int
    action: str | None
    phase: str
    cause: str
    message: str
    text: str
    replay: str | None = None
    exception: BaseException | None = None
    backtrace: str | None = field(default=None, compare=False, repr=False)

    @classmethod
    def _make(
        cls,
        place: tuple[int, int | None, int | None, int, int, str | None],
        phase: str,
        cause: str,
        message: str,
        text: str,
        replay: os.PathLike[str] | None,
        exception: BaseException | None,
        backtrace: str | None,
    ) -> SlotFailure:
        file = None if replay is None else os.fspath(replay)
        return cls(*place, phase, cause, message, text, file, exception, backtrace)


class EnvError(CorralError, RuntimeError):
    """Envs failed; the others completed their step.

    Attributes:
        failures: one `SlotFailure` per env that failed.
        batch: what the call would have returned, with zeros for the envs that failed; None where
            there is none. A failed env is rebuilt at its next reset.
    """

    failures: tuple[SlotFailure, ...] = ()
    # A tuple; under a manager of `corral.managers` the timesteps by env.
    batch: Any = None

    @classmethod
    def of(cls, failures: list[SlotFailure], batch: tuple[Any, ...] | None) -> EnvError:
        """The error of these failures."""
        lines: list[str] = []
        told: set[str] = set()
        for failure in failures[:8]:
            _, _, rest = failure.message.partition("\n")
            # Slots that died together have the same last words.
            again = rest and failure.message in told
            lines.append(failure.text.replace(f"\n{rest}", "") if again else failure.text)
            told.add(failure.message)
        if len(failures) > 8:
            lines.append(f"… and {len(failures) - 8} more")
        if batch is not None:
            lines.append("The others completed (see .batch); reset these to rebuild them.")
        silent = all(failure.cause == "silence" for failure in failures)
        error = (EnvTimeoutError if silent else cls)("\n".join(lines))
        error.failures = tuple(failures)
        error.batch = batch
        for failure in failures[:8]:
            if failure.backtrace is not None:
                _note(error, f"env {failure.slot}, stack backtrace:\n{failure.backtrace.rstrip()}")
        return error


class EnvTimeoutError(EnvError, TimeoutError):
    """Envs did not answer within the timeout; see `EnvError`."""


class RetriesUsedUpError(EnvError):
    """A manager's env could not be reset in as many attempts as it has; the manager is closed."""

    @classmethod
    def of_resets(
        cls, failures: list[SlotFailure], attempts: int, cause: EnvError
    ) -> RetriesUsedUpError:
        """The error of resets that failed for the last time."""
        envs = ", ".join(f"env {failure.slot}" for failure in failures)
        error = cls(
            f"{envs}: no reset in {attempts} attempt{'s' * (attempts > 1)} (max_retry). The "
            f"manager is closed: launch it again. The last failure: {failures[-1].text}"
        )
        error.failures, error.batch = tuple(failures), cause.batch
        return error


class LaunchError(CorralError, RuntimeError):
    """A call of a manager before its `launch`, or one that belongs before it."""


class ProgressFileError(CorralError, OSError):
    """A file of an evaluation's progress that cannot be written."""


class WorkerTraceback(CorralError):
    """Where an exception was raised in a worker process; the cause of the `EnvError` behind it."""


def with_backtrace(message: str, backtrace: str) -> EnvError:
    """The error of a panic of no slot, with the calls that led to it."""
    error = EnvError(message)
    _note(error, f"stack backtrace:\n{backtrace.rstrip()}")
    return error


def _note(error: EnvError, text: str) -> None:
    """Adds a note (PEP 678), which Python prints after the error. Python 3.10 prints none: there
    the text becomes part of the error's own."""
    if sys.version_info >= (3, 11):
        error.add_note(text)
    else:
        error.args = (f"{error.args[0]}\n{text}", *error.args[1:])


def as_raised(exception: BaseException, error: EnvError) -> BaseException:
    """A Python env's own exception, to be raised because of `error`."""
    remote = getattr(exception, "__corral_traceback__", None)
    if isinstance(remote, str):
        error.__cause__ = WorkerTraceback("\n" + remote.rstrip())
    elif exception.__cause__ is not None and exception.__cause__ is not error:
        error.__cause__ = exception.__cause__
    set_in(exception, "__cause__", error)
    note = next((f.text for f in error.failures if f.exception is exception), None)
    told = getattr(exception, "__notes__", [])
    # Python prints what is no list of notes as it is: there is no place for one more.
    has_place = isinstance(told, list) and hasattr(exception, "add_note")
    if note is not None and has_place and note not in told:
        set_in(exception, "__notes__", [*told, note])
    return exception


def set_in(exception: BaseException, name: str, value: Any) -> None:
    """Sets an attribute of an exception, of a class that refuses it (a frozen dataclass), too."""
    object.__setattr__(exception, name, value)


class ConformanceError(CorralError, AssertionError):
    """An env that breaks its contract: see `corral.testing.check_env`."""
