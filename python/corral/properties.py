"""Properties of one env, by name: `VectorEnv.properties`."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from typing import Any, NamedTuple, NoReturn

from corral import _native, errors

_READABLE, _WRITABLE, _LISTABLE = 1, 2, 4
# Deeper than the properties of any env lie.
_DEEPEST = 64


class Attributes(NamedTuple):
    """What can be done with a property.

    Attributes:
        readable: it has a value.
        writable: its value can be set.
        listable: there are properties below it.
    """

    readable: bool
    writable: bool
    listable: bool


class Properties(MutableMapping[str, Any]):
    """The properties of one env, as a mapping from their names to their values.

    Every access asks the env. Names are full paths ("level.seed"). Values are what the env gives;
    those of EnvCApi libraries are texts, and what is written becomes one: a str as it is, any other
    value as JSON.

    Raises:
        KeyError: for a property that the env does not have.
        PermissionError: for one that cannot be read, written or listed.
        ValueError: for a value that the property does not take.
        UnsupportedError: for an env without properties.
    """

    def __init__(self, native: _native.VecEnv, env: int) -> None:
        self._native, self._env = native, env

    def __getitem__(self, name: str) -> Any:
        """The value of a property."""
        return self._call("get", name)

    def __setitem__(self, name: str, value: Any) -> None:
        """Sets a property."""
        self._call("set", name, value)

    def __delitem__(self, name: str) -> NoReturn:
        """Refused: an env keeps its properties."""
        raise PermissionError(f"property '{name}' cannot be deleted")

    def __iter__(self) -> Iterator[str]:
        """The names of all properties that can be read."""
        return (name for name, can in self.list(recursive=True).items() if can.readable)

    def __len__(self) -> int:
        """How many properties can be read."""
        return sum(1 for _ in self)

    def __contains__(self, name: object) -> bool:
        """Whether there is such a property, readable or not."""
        return isinstance(name, str) and name in self.list(recursive=True)

    def attributes(self, name: str) -> Attributes:
        """What can be done with a property."""
        listed = self.list(recursive=True)
        if name not in listed:
            raise KeyError(f"there is no property '{name}'")
        return listed[name]

    def list(self, name: str = "", *, recursive: bool = False) -> dict[str, Attributes]:
        """The properties below one, with what can be done with each; "" is the root.

        Args:
            name: the property below which they lie.
            recursive: those below these, too.
        """
        found = {name: attributes_of(can) for name, can in self._below(name).items()}
        depth = 0
        latest = found
        while recursive and latest and depth < _DEEPEST:
            depth += 1
            below: dict[str, Attributes] = {}
            for parent, can in latest.items():
                if can.listable:
                    below.update(
                        (child, attributes_of(one)) for child, one in self._below(parent).items()
                    )
            latest = {child: one for child, one in below.items() if child not in found}
            found.update(latest)
        return found

    def _below(self, name: str) -> dict[str, int | bool]:
        below: dict[str, int | bool] = self._call("list", name)
        if name and any(isinstance(can, bool) for can in below.values()):
            # An env in Rust, all of whose properties lie below the root.
            raise PermissionError(f"property '{name}' cannot be listed")
        return below

    def _call(self, kind: str, name: str, *args: Any) -> Any:
        if not isinstance(name, str):
            raise KeyError(f"names of properties are strings, not {name!r}")
        try:
            return self._native.call(name, args, {}, [self._env], kind)[0]
        except errors.UnknownNameError as error:
            raise KeyError(str(error)) from error
        except errors.UnsupportedError as error:
            if not self._native.can("call"):
                raise
            raise PermissionError(str(error)) from error

    def __repr__(self) -> str:
        return f"corral.Properties(env {self._env} of {self._native.id})"


def attributes_of(can: int | bool) -> Attributes:
    """From EnvCApi's sum, or from whether an env in Rust lets its property be set."""
    if isinstance(can, bool):
        return Attributes(readable=True, writable=can, listable=False)
    return Attributes(bool(can & _READABLE), bool(can & _WRITABLE), bool(can & _LISTABLE))
