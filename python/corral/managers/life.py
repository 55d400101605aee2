"""What a manager knows of one env."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any

from corral.managers.members import ResetOrder


class EnvState(enum.IntEnum):
    """The state of an env."""

    VOID = 0
    """There is no env: before `launch` and after `close`."""
    INIT = 1
    """The env awaits its first reset."""
    RUN = 2
    """The env takes actions."""
    RESET = 3
    """The env is being reset."""
    DONE = 4
    """The env has played `episode_num` episodes."""
    ERROR = 5
    """The env failed, or its timestep was abnormal; it waits for `reset`."""
    NEED_RESET = 6
    """The env's episode is over and `auto_reset` is off; it waits for `reset`."""


@dataclass(slots=True)
class Life:
    """One env.

    Attributes:
        param: the arguments of its resets.
        knows: the `param` and the dynamic seed that the env was told last.
        order: the reset that is under way, or None.
        attempts: how often that reset has failed.
    """

    state: EnvState = EnvState.INIT
    episodes: int = 0
    param: dict[str, Any] | None = None
    knows: tuple[dict[str, Any] | None, bool | None] = (None, None)
    order: ResetOrder | None = None
    attempts: int = 0

    def has_heard(self, param: dict[str, Any] | None, dynamic_seed: bool | None) -> bool:
        """Whether the env need not be told these. A param is the same if it is the same object:
        arrays in it have no equality."""
        return self.knows[0] is param and self.knows[1] is dynamic_seed
