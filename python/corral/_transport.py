"""How Python objects travel between processes: by pickle, and by cloudpickle where that is not
enough. Exceptions always arrive, whatever they hold."""

from __future__ import annotations

import pickle
import sys
import traceback
from typing import Any

import cloudpickle

from corral import errors

_PROTOCOL = 5


def pack(value: Any) -> bytes:
    """The bytes of a value.

    Raises:
        Exception: whatever pickle has against it.
    """
    if isinstance(value, BaseException):
        return _pack_exception(value)
    try:
        return pickle.dumps(value, _PROTOCOL)
    except Exception:
        return by_value(value)


def by_value(value: Any) -> bytes:
    """The bytes of a value, functions and classes that cannot be imported included."""
    main = sys.modules.get("__mp_main__")
    if main is not None and main.__name__ == "__mp_main__":
        # The main script in a process that multiprocessing started: as with `__main__`, what it
        # defines is no other process's to import.
        cloudpickle.register_pickle_by_value(main)
    data: bytes = cloudpickle.dumps(value, _PROTOCOL)
    return data


def unpack(data: bytes) -> Any:
    """The value that `pack` made these bytes of."""
    value = pickle.loads(data)
    return value.open() if isinstance(value, _PackedException) else value


class _PackedException:
    """An exception with the text of its traceback, which cannot travel itself."""

    def __init__(self, exception: Any, text: str) -> None:
        self.exception = exception
        self.text = text

    def open(self) -> BaseException:
        exception: BaseException = (
            self.exception.open() if isinstance(self.exception, _Rebuilt) else self.exception
        )
        errors.set_in(exception, "__corral_traceback__", self.text)
        return exception


class _Rebuilt:
    """An exception that pickle cannot carry, as its class and what of it can be carried."""

    def __init__(self, kind: type[BaseException], args: Any, state: dict[str, Any]) -> None:
        self.kind, self.args, self.state = kind, args, state

    def open(self) -> BaseException:
        exception = self.kind.__new__(self.kind)
        errors.set_in(exception, "args", self.args)
        exception.__dict__.update(self.state)
        return exception


def _pack_exception(exception: BaseException) -> bytes:
    text = "".join(traceback.format_exception(exception))
    for candidate in (
        lambda: exception,
        lambda: _Rebuilt(
            type(exception), tuple(map(_carried, exception.args)), _state_of(exception)
        ),
    ):
        try:
            data = by_value(_PackedException(candidate(), text))
            opened = unpack(data)
        except Exception:
            continue
        if type(opened).__name__ == type(exception).__name__:
            return data
    name = type(exception).__qualname__
    told = errors.EnvError(f"{name}: {exception} (its class cannot be pickled)")
    return pickle.dumps(_PackedException(told, text), _PROTOCOL)


def _state_of(exception: BaseException) -> dict[str, Any]:
    return {
        name: value
        for name, value in vars(exception).items()
        if not name.startswith("__") and _can_travel(value)
    }


def _carried(value: Any) -> Any:
    return value if _can_travel(value) else repr(value)


def _can_travel(value: Any) -> bool:
    try:
        pickle.loads(by_value(value))
    except Exception:
        return False
    return True
