"""DI-engine's managers whose envs are in worker processes: `SyncSubprocessEnvManager` and
`AsyncSubprocessEnvManager`."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, ClassVar

from corral.managers import config as configs
from corral.managers.alone import alone
from corral.managers.base_env_manager import BaseEnvManager
from corral.managers.choosing import registered
from corral.managers.fleet import Fleet
from corral.managers.shm_buffer import ShmBuffer, ShmBufferContainer
from corral.managers.timestep import BaseEnvTimestep

__all__ = [
    "AsyncSubprocessEnvManager",
    "ShmBuffer",
    "ShmBufferContainer",
    "SyncSubprocessEnvManager",
]


class _SubprocessEnvManager(BaseEnvManager):
    def _hosted_runner(self) -> dict[str, Any]:
        return {
            "runner": "process",
            "num_workers": self._cfg.num_workers or self.env_num,
            "context": self._cfg.context,
        }


@registered("async_subprocess")
class AsyncSubprocessEnvManager(_SubprocessEnvManager):
    """Envs in worker processes, one each unless `num_workers` says otherwise; `step` returns when
    some of them have. Envs of ours, given by id, run in threads unless `num_workers` is given."""

    config: ClassVar[dict[str, Any]] = {
        **configs.SUBPROCESS,
        "wait_num": 2,
        "step_wait_timeout": 0.01,
    }

    def _native_runner(self) -> dict[str, Any]:
        # In the background, where a slow env holds up no other.
        return {"batch_size": 1} if self.env_num > 1 else {}

    def _ready(self, fleet: Fleet) -> dict[int, Any]:
        """Waits for a reset where no env is ready."""
        while not (ready := fleet.ready()) and fleet.resets:
            fleet.collect()
        return ready

    @alone
    def step(self, actions: Mapping[int, Any]) -> dict[int, BaseEnvTimestep]:
        """Sends these actions, and waits for some of the envs in flight.

        The wait ends once `wait_num` of them have come back (fewer where fewer were sent) and
        `step_wait_timeout` seconds have passed (None: once all have come back). It goes on while
        all that came back ended an episode and others are in flight.

        Args:
            actions: as for `BaseEnvManager.step`. Without any, envs in flight are waited for.

        Returns:
            A timestep for each env that came back; some may have been sent by earlier calls. Those
            that have not stay in flight, and are not in `ready_obs`.

        Raises:
            Exception: as `BaseEnvManager.step`.
        """
        fleet = self._launched()
        sent = self._checked(fleet, actions)
        fleet.send(sent)
        began = time.monotonic()
        wait = self._cfg.step_wait_timeout
        wanted = max(min(self._cfg.wait_num, len(sent)), 1)
        while True:
            while fleet.in_step and (wait is None or len(fleet.landed) < wanted):
                fleet.collect(len(fleet.in_step) if wait is None else wanted - len(fleet.landed))
            while fleet.in_step and (left := began + (wait or 0) - time.monotonic()) > 0:
                fleet.collect(len(fleet.in_step), left)
            if not fleet.in_step or not all(one.done for one in fleet.landed.values()):
                break
            wanted = len(fleet.landed) + 1
        if self._cfg.reset_inplace:
            fleet.finish_resets()
        timesteps, fleet.landed = fleet.landed, {}
        return timesteps


@registered("subprocess")
class SyncSubprocessEnvManager(_SubprocessEnvManager):
    """Envs in worker processes, one each unless `num_workers` says otherwise; `step` returns what
    every env that it was given gave. Envs of ours, given by id, run in threads unless
    `num_workers` is given."""

    config: ClassVar[dict[str, Any]] = configs.SUBPROCESS

    def _native_runner(self) -> dict[str, Any]:
        return {}
