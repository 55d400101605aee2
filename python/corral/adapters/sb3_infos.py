"""The list of infos that a step of `corral.to_sb3` gives.

Most envs have nothing to tell in most steps, but for one key that is the same for all. A dict for
each of them takes longer than the step of a light env. So these dicts are made when one of them is
read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, SupportsIndex

import numpy as np

Info = dict[str, Any]

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
    steps have one in common. Pickles and copies are plain lists. C code that reads a list's memory
    (`json.dumps`, an assignment to a slice of another list) finds the right contents, too, but one
    dict for all envs that have nothing to tell, as long as nothing was read.
    """

    __slots__ = ("_common",)

    def __init__(self, num_envs: int) -> None:
        # What every env whose dict was not made yet has.
        self._common: Info = {CUT: False}
        super().__init__([self._common] * num_envs)

    def _own_all(self) -> None:
        common = self._common
        # A dict that no env has, so that the next call finds nothing to do.
        self._common = {}
        if common:
            every = super().__iter__()
            self[:] = [{CUT: False} if info is common else info for info in every]

    def __getitem__(self, key: SupportsIndex | slice) -> Any:
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
    __imul__ = _of_all(list.__imul__)
    copy = _of_all(list.copy)
    pop = _of_all(list.pop)
    sort = _of_all(list.sort)
