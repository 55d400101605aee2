"""The seeds that envs are given at their resets."""

from __future__ import annotations

import numbers
from collections.abc import Mapping
from typing import Any

from corral import errors
from corral.settings import flag, whole

_MOST = 2**63 - 1


class Seeds:
    """Which seed each env's next reset has.

    Attributes:
        dynamic: what each env was told last as DI-engine's `dynamic_seed`: True where it varies its
            seed, False where it repeats it, None where nobody said.
    """

    def __init__(self, env_num: int) -> None:
        self._env_num = env_num
        self._next: dict[int, int] = {}
        self._repeated: dict[int, int] = {}
        self.dynamic: list[bool | None] = [None] * env_num

    def give(self, seed: Any, dynamic_seed: Any) -> dict[int, int]:
        """Takes seeds for the next resets; gives those of each env.

        Raises:
            ArgumentTypeError, ArgumentError: nothing has changed.
        """
        dynamic = None if dynamic_seed is None else flag("dynamic_seed", dynamic_seed)
        given = self._each(seed)
        for env_id, one in given.items():
            self._next[env_id], self.dynamic[env_id] = one, dynamic
            self._repeated.pop(env_id, None)
            if dynamic is False:
                self._repeated[env_id] = one
        return given

    def _each(self, seed: Any) -> dict[int, int]:
        n = self._env_num
        if isinstance(seed, numbers.Integral):
            first = whole("seed", seed, _MOST - n, least=0)
            return {env_id: first + env_id for env_id in range(n)}
        if isinstance(seed, list | tuple):
            if len(seed) != n:
                raise errors.ArgumentError(
                    f"seed has {len(seed)} elements for {n} envs: give one each"
                )
            given = dict(enumerate(seed))
        elif isinstance(seed, Mapping):
            given = {check_env_id(env_id, n): one for env_id, one in seed.items()}
        else:
            raise errors.ArgumentTypeError(
                f"seed is an int, a list of one per env or a dict by env, not {seed!r}"
            )
        return {
            env_id: whole(f"the seed of env {env_id}", one, _MOST, least=0)
            for env_id, one in given.items()
        }

    def take(self, env_id: int) -> int | None:
        """The seed of an env's next reset, which counts once; None where it goes on."""
        return self._next.pop(env_id, self._repeated.get(env_id))


def check_env_id(env_id: Any, env_num: int) -> int:
    """An env's number, checked to be one.

    Raises:
        ArgumentTypeError, ArgumentError: name what is wrong.
    """
    is_number = type(env_id) is int or isinstance(env_id, numbers.Integral)
    if not is_number or isinstance(env_id, bool):
        raise errors.ArgumentTypeError(f"an env id is an int, not {env_id!r}")
    if not 0 <= env_id < env_num:
        raise errors.ArgumentError(f"there is no env {env_id}: the envs are 0 to {env_num - 1}")
    return int(env_id)
