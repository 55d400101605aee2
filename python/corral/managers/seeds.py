"""The seeds that envs are given at their resets."""

from __future__ import annotations

import numbers
from collections.abc import Mapping
from typing import Any

from corral import errors
from corral.managers.arguments import by_env, one_each
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
            given = one_each("seed", seed, n)
        elif isinstance(seed, Mapping):
            given = by_env("seed", seed, n)
        else:
            raise errors.ArgumentTypeError(
                f"seed is an int, a list of one per env or a dict by env, not {seed!r}"
            )
        return {
            env_id: whole(f"the seed of env {env_id}", one, _MOST, least=0)
            for env_id, one in given.items()
        }

    def has_any(self) -> bool:
        """Whether the next reset of any env has a seed."""
        return bool(self._next or self._repeated)

    def take(self, env_id: int) -> int | None:
        """The seed of an env's next reset, which counts once; None where it goes on."""
        return self._next.pop(env_id, self._repeated.get(env_id))
