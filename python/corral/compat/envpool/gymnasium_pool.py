"""EnvPool's interface of Gymnasium, and the one of Gym before 0.26."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import Space
from gymnasium.vector import AutoresetMode
from gymnasium.vector import VectorEnv as GymnasiumVectorEnv

from corral import errors
from corral.compat.envpool.pool import EnvPool, Rows


class GymnasiumEnvPool(EnvPool, GymnasiumVectorEnv[Any, Any, Any], gymnasium.Env[Any, Any]):  # type: ignore[misc]
    """Several envs as EnvPool has them for Gymnasium: an instance of both of Gymnasium's classes.

    Attributes:
        num_envs: how many.
        observation_space, action_space: of one env, as EnvPool's are; `single_observation_space`
            and `single_action_space` are the same.
        metadata: the env's, with "autoreset_mode", which is NEXT_STEP.
    """

    is_vector_env = True

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.num_envs = self.envs.num_envs
        self.observation_space: Space[Any] = self.envs.single_observation_space
        self.action_space: Space[Any] = self.envs.single_action_space
        self.single_observation_space = self.observation_space
        self.single_action_space = self.action_space
        self.metadata = {**self.envs.metadata, "autoreset_mode": AutoresetMode.NEXT_STEP}
        self.render_mode = self.envs.render_mode

    def reset(
        self,
        env_id: Any = None,
        *,
        seed: Any = None,
        options: dict[str, Any] | None = None,
    ) -> Any:
        """Begins episodes.

        Args:
            env_id: which envs; all without.
            seed: as `corral.VectorEnv.reset` takes it; with `env_id` a sequence has one for each
                of these.
            options: `"reset_mask"`, bool `(num_envs,)`, says which envs in place of `env_id`; the
                rest as `corral.VectorEnv.reset` takes it.

        Returns:
            observations `(rows, …)` of these envs, and infos: see `recv`.

        Raises:
            ArgumentError, ArgumentTypeError: for envs, seeds and options that make no sense.
            EnvError: if envs failed; the others were reset.
        """
        mask = None
        if options is not None and "reset_mask" in options:
            mask = options["reset_mask"]
            options = {name: value for name, value in options.items() if name != "reset_mask"}
        if mask is not None:
            if env_id is not None:
                raise errors.ArgumentError("give env_id or options['reset_mask'], not both")
            mask = np.asarray(mask)
            if mask.dtype != np.bool_ or mask.shape != (len(self),) or not mask.any():
                raise errors.ArgumentError(
                    f"reset_mask is bool ({len(self)},) and has a True, not {mask!r}"
                )
            env_id = np.flatnonzero(mask)
        return self._reset(env_id, seed=seed, options=options)

    def close(self, **kwargs: Any) -> None:
        """Closes the envs."""
        self.envs.close()
        self.closed = True

    def _told(self, rows: Rows, is_reset: bool, with_info: bool) -> Any:
        """(observations, infos), or (observations, rewards float32, terminations, truncations,
        infos)."""
        infos = {
            "env_id": rows.env_id,
            "players": {"env_id": rows.env_id},
            "elapsed_step": rows.elapsed,
            # Whoever clips rewards in place finds the env's own here.
            "reward": rows.rewards.copy(),
            "terminated": rows.terminated,
            **rows.infos,
        }
        if is_reset:
            return rows.observations, infos
        return rows.observations, rows.rewards, rows.terminations, rows.truncations, infos


class GymEnvPool(GymnasiumEnvPool):
    """Several envs as EnvPool before 1.0 had them for Gym before 0.26."""

    def _told(self, rows: Rows, is_reset: bool, with_info: bool) -> Any:
        """Observations, with infos where they are asked for; or (observations, rewards float32,
        dones, infos)."""
        observations, *_, infos = super()._told(rows, is_reset, with_info)
        infos["TimeLimit.truncated"] = rows.truncations
        if not is_reset:
            return observations, rows.rewards, rows.terminations | rows.truncations, infos
        return (observations, infos) if with_info else observations
