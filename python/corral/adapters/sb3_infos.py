"""The list of infos that a step of `corral.to_sb3` gives.

Most envs have nothing to tell in most steps, but for one key that is the same for all. What the
others tell is of the episodes that ended, and many programs read only what became of a few of them.
A dict for each env takes longer than the step of a light env. So the dicts are made when one of
them is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, SupportsIndex

import numpy as np

Info = dict[str, Any]
Told = Callable[[], list[tuple[int, Info]]]
"""Makes what some envs have to tell: an env's number, and its dict."""

CUT = "TimeLimit.truncated"
"""SB3's name of whether an episode was truncated and not terminated."""


def _of_all(method: Callable[..., Any]) -> Any:
    """A method of `list`, once each env has a dict of its own."""

    def call(self: Infos, *args: Any, **kwargs: Any) -> Any:
        self._own_all()
        return method(self, *args, **kwargs)

    call.__name__, call.__doc__ = method.__name__, method.__doc__
    return call


class Infos(list[Info]):
    """A list with a dict for each env, as `DummyVecEnv` gives.

    A dict that was read stays: what is written into it is found there again, and no two envs or
    steps have one in common. Pickles and copies are plain lists. Python's own C code reads a
    subclass of `list` by its methods; an extension that reads the list's memory, unasked, finds
    a dict of nothing but `CUT` there until the list is read for the first time.

    Args:
        num_envs: how many envs.
        told: makes the dicts of the envs that have more to tell; called once, by the first read.
    """

    __slots__ = ("_common", "_told")

    def __init__(self, num_envs: int, told: Told | None = None) -> None:
        # What every env whose dict was not made yet has.
        self._common: Info = {CUT: False}
        self._told = told
        # Grown in place: a list made of another list is filled twice.
        list.append(self, self._common)
        list.__imul__(self, num_envs)

    def _tell(self) -> None:
        told, self._told = self._told, None
        for env, info in told() if told is not None else ():
            list.__setitem__(self, env, info)

    def _own_all(self) -> None:
        self._tell()
        common = self._common
        # A dict that no env has, so that the next call finds nothing to do.
        self._common = {}
        if common:
            every = super().__iter__()
            owned = [{CUT: False} if info is common else info for info in every]
            list.__setitem__(self, slice(None), owned)

    def __getitem__(self, key: SupportsIndex | slice) -> Any:
        if self._told is not None:
            self._tell()
        info: Any = list.__getitem__(self, key)
        if info is self._common or isinstance(key, slice):
            self._own_all()
            info = list.__getitem__(self, key)
        return info

    def __iter__(self) -> Iterator[Info]:
        self._own_all()
        return super().__iter__()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.array(list(self), object if dtype is None else dtype)

    def __radd__(self, other: Any) -> Any:
        return other + list(self)

    def __reduce_ex__(self, protocol: SupportsIndex) -> tuple[Any, ...]:
        return list, (list(self),)

    __reversed__ = _of_all(list.__reversed__)
    __add__ = _of_all(list.__add__)
    __mul__ = _of_all(list.__mul__)
    __rmul__ = _of_all(list.__rmul__)
    __eq__ = _of_all(list.__eq__)
    __ne__ = _of_all(list.__ne__)
    __lt__ = _of_all(list.__lt__)
    __le__ = _of_all(list.__le__)
    __gt__ = _of_all(list.__gt__)
    __ge__ = _of_all(list.__ge__)
    __repr__ = _of_all(list.__repr__)
    __contains__ = _of_all(list.__contains__)
    __setitem__ = _of_all(list.__setitem__)
    __delitem__ = _of_all(list.__delitem__)
    __iadd__ = _of_all(list.__iadd__)
    __imul__ = _of_all(list.__imul__)
    append = _of_all(list.append)
    clear = _of_all(list.clear)
    copy = _of_all(list.copy)
    count = _of_all(list.count)
    extend = _of_all(list.extend)
    index = _of_all(list.index)
    insert = _of_all(list.insert)
    pop = _of_all(list.pop)
    remove = _of_all(list.remove)
    reverse = _of_all(list.reverse)
    sort = _of_all(list.sort)
