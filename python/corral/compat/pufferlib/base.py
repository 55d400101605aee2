"""`PufferEnv`, the class of envs that hold several agents, and what all modules here use."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium import Space
from gymnasium import spaces as gym_spaces

from corral import errors
from corral.compat.pufferlib.spaces import joint_space


class APIUsageError(errors.CorralError, RuntimeError):
    """A call that PufferLib's interface does not allow.

    Attributes:
        message: what is wrong.
    """

    def __init__(self, message: str = "API usage error.") -> None:
        self.message = message
        super().__init__(message)


class InvalidAgentError(errors.CorralError, ValueError):
    """An agent that the env does not have."""

    def __init__(self, agent_id: Any, agents: Any) -> None:
        super().__init__(f"there is no agent {agent_id!r}: the agents are {agents!r}")


class Buffers:
    """The arrays that an env with `num_agents` agents writes into.

    Attributes:
        observations: `(num_agents, …)`, in the dtype of the space.
        rewards: float32 `(num_agents,)`.
        terminals, truncations, masks: bool `(num_agents,)`.
        actions: `(num_agents, …)`, int32 unless the action space is a Box.
    """

    num_agents: int
    single_observation_space: Space[Any]
    single_action_space: Space[Any]
    observations: npt.NDArray[Any]
    rewards: npt.NDArray[np.float32]
    terminals: npt.NDArray[np.bool_]
    truncations: npt.NDArray[np.bool_]
    masks: npt.NDArray[np.bool_]
    actions: npt.NDArray[Any]


def set_buffers(env: Any, buf: Mapping[str, npt.NDArray[Any]] | None = None) -> None:
    """Gives an env the arrays of `Buffers`: those of `buf`, by these names, or new ones."""
    if buf is None:
        count, space = env.num_agents, env.single_observation_space
        joint = joint_space(env.single_action_space, count)
        is_box = isinstance(env.single_action_space, gym_spaces.Box)
        buf = {
            "observations": np.zeros((count, *space.shape), space.dtype),
            "rewards": np.zeros(count, np.float32),
            "terminals": np.zeros(count, np.bool_),
            "truncations": np.zeros(count, np.bool_),
            "masks": np.ones(count, np.bool_),
            "actions": np.zeros(joint.shape or (), joint.dtype if is_box else np.int32),
        }
    for name in ("observations", "rewards", "terminals", "truncations", "masks", "actions"):
        setattr(env, name, buf[name])


class PufferEnv(Buffers):
    """An env with `num_agents` agents that writes into its `Buffers` and resets itself.

    A subclass sets `single_observation_space` (a Box), `single_action_space` (a Discrete,
    MultiDiscrete or Box) and `num_agents`, then calls `super().__init__(buf)`. It defines `reset`,
    `step` and `close`.
    """

    def __init__(self, buf: Mapping[str, npt.NDArray[Any]] | None = None) -> None:
        for name in ("single_observation_space", "single_action_space", "num_agents"):
            if not hasattr(self, name):
                raise APIUsageError(
                    f"{type(self).__name__} has no {name}: set it before super().__init__(buf)"
                )
        for name in ("observation_space", "action_space"):
            if hasattr(self, name):
                raise APIUsageError(
                    f"{type(self).__name__} sets {name}, which is the space of all agents and is "
                    f"made here: set single_{name}"
                )
        if self.num_agents < 1:
            raise APIUsageError(f"num_agents is {self.num_agents}: it must be at least 1")
        if not isinstance(self.single_observation_space, gym_spaces.Box):
            raise APIUsageError(
                f"single_observation_space is a Box, not {self.single_observation_space}"
            )
        allowed = (gym_spaces.Discrete, gym_spaces.MultiDiscrete, gym_spaces.Box)
        if not isinstance(self.single_action_space, allowed):
            raise APIUsageError(
                "single_action_space is a Discrete, MultiDiscrete or Box, not "
                f"{self.single_action_space}"
            )
        set_buffers(self, buf)
        self.action_space = joint_space(self.single_action_space, self.num_agents)
        self.observation_space = joint_space(self.single_observation_space, self.num_agents)
        self.agent_ids = np.arange(self.num_agents)
        self.infos: list[dict[str, Any]] = []

    @property
    def agents_per_batch(self) -> int:
        """All agents share each batch."""
        return self.num_agents

    @property
    def emulated(self) -> Any:
        """False: observations are what the env shows."""
        return False

    @property
    def done(self) -> bool:
        """False: the env resets itself."""
        return False

    @property
    def driver_env(self) -> Any:
        """The env itself."""
        return self

    def reset(self, seed: int | None = None) -> tuple[npt.NDArray[Any], list[dict[str, Any]]]:
        """Observations `(num_agents, …)`, and a list of infos."""
        raise NotImplementedError

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, list[dict[str, Any]]]:
        """Observations, rewards, terminals, truncations of all agents, and a list of infos."""
        raise NotImplementedError

    def close(self) -> None:
        """Gives back what the env holds."""
        raise NotImplementedError

    def async_reset(self, seed: int | None = None) -> None:
        """Resets; `recv` gives the result."""
        self.infos = self._listed(self.reset(seed)[1])

    def send(self, actions: Any) -> None:
        """Steps; `recv` gives the result."""
        self.infos = self._listed(self.step(actions)[4])

    def recv(self) -> tuple[Any, Any, Any, Any, list[dict[str, Any]], Any, Any]:
        """Observations, rewards, terminals, truncations, infos, agents' numbers, masks."""
        return (
            *(self.observations, self.rewards, self.terminals, self.truncations),
            *(self.infos, self.agent_ids, self.masks),
        )

    def _listed(self, infos: Any) -> list[dict[str, Any]]:
        if not isinstance(infos, list):
            raise APIUsageError(
                f"{type(self).__name__} gives infos of type {type(infos).__name__}: a PufferEnv "
                "gives a list of dicts"
            )
        return infos


def unroll_nested_dict(nested: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The values within nested dicts, each with its keys joined by "/"."""
    for key, value in nested.items():
        if isinstance(value, dict):
            for inner, leaf in unroll_nested_dict(value):
                yield f"{key}/{inner}", leaf
        else:
            yield key, value
