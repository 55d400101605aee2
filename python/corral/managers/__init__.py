"""DI-engine's env managers over corral's vec envs: put `corral.managers` in the place of
`ding.envs.env_manager`. See `docs/managers.md`."""

from corral.managers.base_env_manager import (
    BaseEnvInfo,
    BaseEnvManager,
    BaseEnvTimestep,
    EnvElementInfo,
    EnvState,
    create_env_manager,
    get_env_manager_cls,
)
from corral.managers.subprocess_env_manager import (
    AsyncSubprocessEnvManager,
    ShmBuffer,
    ShmBufferContainer,
    SyncSubprocessEnvManager,
)

__all__ = [
    "AsyncSubprocessEnvManager",
    "BaseEnvInfo",
    "BaseEnvManager",
    "BaseEnvTimestep",
    "EnvElementInfo",
    "EnvState",
    "ShmBuffer",
    "ShmBufferContainer",
    "SyncSubprocessEnvManager",
    "create_env_manager",
    "get_env_manager_cls",
]
