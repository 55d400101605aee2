"""EnvPool's interface of dm_env."""

from __future__ import annotations

from typing import Any

import dm_env
import numpy as np

from corral.compat.envpool.pool import EnvPool, Rows
from corral.compat.envpool.spec import record

_LAST = int(dm_env.StepType.LAST)


class DMEnvPool(EnvPool, dm_env.Environment):  # type: ignore[misc]
    """Several envs as EnvPool has them for dm_env."""

    def reset(self, env_id: Any = None) -> Any:
        """Begins episodes in all envs, or in those of `env_id`.

        Returns:
            A `TimeStep` of FIRST.

        Raises:
            ArgumentError, ArgumentTypeError: for envs that there are not.
            EnvError: if envs failed; the others were reset.
        """
        return self._reset(env_id)

    def observation_spec(self) -> Any:
        """What one env shows: a named tuple of specs."""
        return self.spec.observation_spec()

    def action_spec(self) -> Any:
        """What one env takes."""
        return self.spec.action_spec()

    def _told(self, rows: Rows, is_reset: bool, with_info: bool) -> Any:
        """A `TimeStep` of arrays `(rows,)`: `step_type` int32, `reward` and `discount` float32;
        its observation is a named tuple with the infos in it."""
        # FIRST is 0 and MID is 1.
        types = (rows.elapsed > 0).astype(np.int32)
        types[rows.terminations | rows.truncations] = _LAST
        seen = rows.observations
        state = {
            "env_id": rows.env_id,
            "players": {"env_id": rows.env_id},
            **(seen if isinstance(seen, dict) else {"obs": seen}),
            **rows.infos,
        }
        discounts = 1 - rows.terminated.astype(np.float32)
        return dm_env.TimeStep(types, rows.rewards, discounts, record("State", state))
