"""Methods of a manager that one thread calls at a time."""

from __future__ import annotations

import functools
from typing import Any

from corral import errors


def alone(method: Any) -> Any:
    """A method of a manager that one thread calls at a time: two would take each other's rows."""

    @functools.wraps(method)
    def called(self: Any, *args: Any, **kwargs: Any) -> Any:
        if self._call.locked():
            raise errors.PendingCallError(
                "another call of this manager is under way, in another thread or in this one: wait "
                "for it"
            )
        # Ctrl-C may come as soon as any call returns: `with` lets go of the lock even so.
        with self._call:
            try:
                return method(self, *args, **kwargs)
            except BaseException:
                if self._fleet is not None:
                    self._fleet.may_be_torn = True
                raise

    return called
