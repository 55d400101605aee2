"""rl_games' `IVecEnv` over a `corral.VectorEnv`; see `corral.to_rl_games`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium import Space, spaces
from gymnasium.vector import AutoresetMode
from rl_games.common.ivecenv import IVecEnv

from corral import errors
from corral.vector import VectorEnv

_MASK = "action_mask"


class RlGamesVecEnv(IVecEnv):  # type: ignore[misc]
    """Made by `corral.to_rl_games`.

    Attributes:
        envs: the vector env underneath.
        observation_space, action_space: of one env, in the spaces that rl_games takes.
    """

    def __init__(self, envs: VectorEnv) -> None:
        if envs.autoreset_mode is not AutoresetMode.SAME_STEP:
            raise errors.UnsupportedError(
                "rl_games trains on an observation after an episode's end as on the next one's "
                'first: make the envs with autoreset_mode="same_step"'
            )
        self.envs = envs
        self.observation_space, self._seen = _of_observations(
            envs.single_observation_space, "the observation"
        )
        self.action_space, self._first_labels = _of_actions(envs.single_action_space)
        self._has_masks = any(leaf["name"] == _MASK for leaf in envs.native.info_leaves)
        self._masks: npt.NDArray[np.bool_] | None = None
        self._seed: int | None = None

    def reset(self) -> Any:
        """Begins an episode in every env, with the seed that `seed` was given last.

        Returns:
            observations `(num_envs, …)`: uint8 or float32.

        Raises:
            EnvError: if envs failed; the others were reset.
        """
        observations, infos = self.envs.reset(seed=self._seed)
        self._seed = None
        self._note_masks(infos)
        return self._seen(observations)

    def step(self, actions: Any) -> tuple[Any, Any, Any, dict[str, Any]]:
        """Plays one action in each env.

        Args:
            actions: an array of numbers `(num_envs, …)`; labels count from 0.

        Returns:
            observations `(num_envs, …)`, rewards float32 `(num_envs,)`, dones bool `(num_envs,)`,
            and the infos of `corral.VectorEnv.step` with `"time_outs"`, bool `(num_envs,)`: where
            an episode was truncated and did not terminate.

        Raises:
            InvalidActionError: names env, leaf, value and bounds; nothing has moved.
            EnvError: if envs failed; the others completed, see its `batch`.
        """
        if self._first_labels is not None:
            actions = np.asarray(actions) + self._first_labels
        observations, rewards, terminations, truncations, infos = self.envs.step(actions)
        self._note_masks(infos)
        infos["time_outs"] = truncations & ~terminations
        dones = terminations | truncations
        return self._seen(observations), rewards.astype(np.float32), dones, infos

    def has_action_masks(self) -> bool:
        """Whether the envs tell which actions are valid."""
        return self._has_masks

    def get_action_masks(self) -> npt.NDArray[np.bool_]:
        """Which actions are valid in the last observations, bool `(num_envs, choices)`.

        Raises:
            UnsupportedError: for envs that do not tell.
            ResetNeededError: before the first reset.
        """
        if not self._has_masks:
            raise errors.UnsupportedError(
                f"{self.envs.native.id} tells no {_MASK}: leave use_action_masks out of the config"
            )
        if self._masks is None:
            raise errors.ResetNeededError(f"the envs have told no {_MASK} yet: reset them")
        return self._masks

    def get_number_of_agents(self) -> int:
        """1: every env has one agent."""
        return 1

    def get_env_info(self) -> dict[str, Any]:
        """The spaces of one env."""
        return {
            "action_space": self.action_space,
            "observation_space": self.observation_space,
            "agents": 1,
            "value_size": 1,
        }

    def seed(self, seed: int | None) -> None:
        """Seeds the next reset: env i with `seed + i`."""
        self._seed = seed

    def close(self) -> None:
        """Closes the envs."""
        self.envs.close()

    def _note_masks(self, infos: dict[str, Any]) -> None:
        if self._has_masks and _MASK in infos:
            self._masks = infos[_MASK].astype(np.bool_)


def _of_observations(space: Space[Any], where: str) -> tuple[Space[Any], Callable[[Any], Any]]:
    """A space that rl_games takes, and what makes its observations of the envs'."""
    if isinstance(space, spaces.Dict):
        parts = {
            name: _of_observations(inner, f"{where}[{name!r}]")
            for name, inner in space.spaces.items()
        }
        inner_spaces = [(name, inner) for name, (inner, _) in parts.items()]
        return spaces.Dict(inner_spaces), lambda values: {
            name: read(values[name]) for name, (_, read) in parts.items()
        }
    if not isinstance(space, spaces.Box):
        raise errors.UnsupportedError(
            f"rl_games' networks take arrays, and {where} is {space}: make the envs show a Box"
        )
    if space.dtype in (np.uint8, np.float32):
        return space, lambda values: values
    low, high = (np.asarray(side, np.float32) for side in (space.low, space.high))
    box = spaces.Box(low, high, space.shape, np.float32)
    return box, lambda values: values.astype(np.float32)


def _of_actions(space: Space[Any]) -> tuple[Space[Any], Any]:
    """A space that rl_games takes, and the first label of each choice where it is not 0."""
    match space:
        case spaces.Box() if len(space.shape) == 1:
            return space, None
        case spaces.Discrete():
            return spaces.Discrete(int(space.n)), int(space.start) or None
        case spaces.MultiDiscrete() if len(space.shape) == 1:
            start = np.asarray(getattr(space, "start", np.zeros_like(space.nvec)))
            choices = spaces.Tuple([spaces.Discrete(int(n)) for n in space.nvec])
            return choices, start if start.any() else None
    raise errors.UnsupportedError(
        f"rl_games chooses numbers, labels or several labels, and these actions are {space}"
    )
