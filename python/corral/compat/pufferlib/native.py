"""Envs of a corral id with PufferLib's face: they step natively, in this process."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt

from corral import errors, registry
from corral.adapters.infos import rows
from corral.compat.pufferlib.base import PufferEnv
from corral.compat.pufferlib.emulation import Emulation, nativize

_SET_HERE = {
    "num_envs": "num_envs of vector.make or NativeEnvs says how many",
    "autoreset_mode": "the backend decides",
    "episode_statistics": "infos are made of them: they are always on",
    "batch_size": "batch_size of vector.make says it",
    "lazy_frames": "observations are arrays here",
    "render_mode": "render_mode of NativeEnvs says it",
}


class NativeEnvs(PufferEnv):
    """The envs of an id, each an agent: a `PufferEnv`.

    Every array that it gives is the caller's to keep.

    Args:
        id: as of `corral.make_vec`.
        num_envs: how many.
        seed: as of `corral.make_vec`.
        same_step: whether an env is reset in the step that ends its episode, as PufferLib's envs
            in C are, or in the next one, as its emulation does.
        render_mode: as of `corral.make_vec`.
        **options: others of `corral.make_vec`, and the env's own.

    Attributes:
        envs: the `corral.VectorEnv` underneath.
        env: `observation_space` and `action_space` of one env, before they were flattened.
        env_infos: what `VectorEnv.step` told last, as arrays.
    """

    def __init__(
        self,
        id: str,
        num_envs: int = 1,
        *,
        seed: int | None = None,
        same_step: bool = True,
        render_mode: str | None = None,
        **options: Any,
    ) -> None:
        for name in _SET_HERE:
            if name in options:
                raise errors.UnsupportedError(
                    f"envs with PufferLib's face take no {name}: {_SET_HERE[name]}"
                )
        self.envs = registry.make_vec(
            id,
            num_envs,
            seed=seed,
            autoreset_mode="same_step" if same_step else "next_step",
            episode_statistics=True,
            render_mode=render_mode,
            **options,
        )
        self._emulation = Emulation(
            self.envs.single_observation_space, self.envs.single_action_space
        )
        self.env = SimpleNamespace(
            observation_space=self.envs.single_observation_space,
            action_space=self.envs.single_action_space,
        )
        self.single_observation_space = self._emulation.observation_space
        self.single_action_space = self._emulation.action_space
        self.num_agents = num_envs
        self.same_step = same_step
        self.env_infos: dict[str, Any] = {}
        super().__init__()

    @property
    def emulated(self) -> Any:
        """The dtypes of an observation, flat and as a struct; False where nothing is flattened and
        envs are reset in the step that ends their episode, as of PufferLib's envs in C."""
        is_flat = self._emulation.is_obs_emulated or not self.same_step
        return self._emulation.emulated if is_flat else False

    def reset(self, seed: int | None = None) -> tuple[npt.NDArray[Any], list[dict[str, Any]]]:
        """Begins new episodes.

        Args:
            seed: env i plays `seed + i`; None goes on with each env's own stream.

        Returns:
            Observations `(num_envs, …)`, and infos: none in PufferLib's manner for envs in C, and
            in the manner of its emulation one dict per env.
        """
        observations, self.env_infos = self.envs.reset(seed=seed)
        count = self.num_agents
        self.observations = self._emulation.flat(observations, count)
        self.rewards = np.zeros(count, np.float32)
        self.terminals, self.truncations = np.zeros((2, count), np.bool_)
        self.masks = np.ones(count, np.bool_)
        self.infos = [] if self.same_step else rows(self.env_infos, count)
        return self.observations, self.infos

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, list[dict[str, Any]]]:
        """Plays one action in each env.

        Args:
            actions: `(num_envs, …)` of the flat space.

        Returns:
            Observations `(num_envs, …)`, rewards float32, terminals and truncations bool
            `(num_envs,)`, and infos. With `same_step` infos are one dict of means over the
            episodes that ended, and their number `n`; else a dict for each of them. The means
            are of `episode_return` and `episode_length`. `env_infos` has all others.
        """
        if self._emulation.is_atn_emulated:
            actions = nativize(np.asarray(actions), self._emulation.native_action_space)
        observations, rewards, self.terminals, self.truncations, infos = self.envs.step(actions)
        self.observations = self._emulation.flat(observations, self.num_agents)
        self.rewards = rewards.astype(np.float32)
        self.env_infos = infos
        self.infos = self._of_episodes(infos) if "episode" in infos else []
        return self.observations, self.rewards, self.terminals, self.truncations, self.infos

    def _of_episodes(self, infos: dict[str, Any]) -> list[dict[str, Any]]:
        (ended,) = infos["_episode"].nonzero()
        episode = infos["episode"]
        returns, lengths = episode["r"].take(ended), episode["l"].take(ended)
        if self.same_step:
            # A `mean` takes as long as the rest of this.
            number = float(len(ended))
            return [
                {
                    "episode_return": float(np.add.reduce(returns)) / number,
                    "episode_length": float(np.add.reduce(lengths)) / number,
                    "n": number,
                }
            ]
        return [
            {"episode_return": total, "episode_length": length}
            for total, length in zip(returns.tolist(), lengths.tolist(), strict=True)
        ]

    def notify(self) -> None:
        """Does nothing: envs in Rust have no such method."""

    def render(self) -> Any:
        """A picture of the first env, if it was made with a render mode."""
        drawn = self.envs.render([0])
        return None if drawn is None else drawn[0]

    def close(self) -> None:
        """Closes the envs."""
        self.envs.close()
