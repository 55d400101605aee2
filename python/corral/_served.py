"""What a server of netenv takes from a function that makes envs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode

from corral import _native, errors
from corral._python_batch import vector_env
from corral._python_env import as_gymnasium
from corral.frames import StackedFrames
from corral.vector import VectorEnv

# The native vec env, what clients are told, the range of rewards, what draws, and what is to live
# as long as the envs.
Served = tuple[_native.VecEnv, dict[str, Any], tuple[float, float], Callable[..., Any] | None, Any]


def served(venv: Any) -> Served:
    """The parts of what `make_venv` returned, which the native server takes over."""
    metadata = _plain(getattr(venv, "metadata", None) or {})
    reward_range = _range(getattr(venv, "reward_range", None))
    if isinstance(venv, VectorEnv):
        if venv.native.frame_stack is None and _is_lazy(venv):
            raise errors.UnsupportedError(
                "lazy_frames are stacked where they are looked at: make what is served with "
                "frame_stack alone"
            )
        return venv.native, metadata, reward_range, None, venv
    name = type(venv).__name__
    batch = _GymnasiumBatch(venv) if isinstance(venv, gymnasium.vector.VectorEnv) else _Old(venv)
    envs = vector_env(name, batch, episode_statistics=False)
    draw = venv.render if callable(getattr(venv, "render", None)) else None
    if draw is not None and isinstance(batch, _GymnasiumBatch):
        draw = batch.draw
    return envs.native, metadata, reward_range, draw, (venv, envs)


def _is_lazy(venv: VectorEnv) -> bool:
    from corral.frames import LazyVectorEnv

    return isinstance(venv, LazyVectorEnv)


def _range(given: Any) -> tuple[float, float]:
    try:
        low, high = given
        return float(low), float(high)
    except (TypeError, ValueError):
        return -math.inf, math.inf


def _plain(value: Any, depth: int = 0) -> Any:
    """The part of a metadata's value that JSON has words for."""
    if isinstance(value, AutoresetMode):
        return value.name.lower()
    if value is None or isinstance(value, bool | float | str | np.ndarray):
        return value
    if isinstance(value, int):
        return value if -(2**63) <= value < 2**63 else float(value)
    if isinstance(value, Mapping) and depth < 16:
        return {str(key): _plain(one, depth + 1) for key, one in value.items()}
    if isinstance(value, list | tuple) and depth < 16:
        return [_plain(one, depth + 1) for one in value]
    return str(value)


class _Old:
    """An old VecEnv as a `PythonBatch`: `reset()` gives observations, a step four things, and an
    env whose episode ended shows the next one's first observation."""

    def __init__(self, venv: Any) -> None:
        for name in ("num_envs", "observation_space", "action_space", "reset"):
            if not hasattr(venv, name):
                raise errors.ArgumentTypeError(
                    f"make_venv returned {venv!r}, which is no vec env: it has no {name}"
                )
        self.venv = venv
        self.num_envs = int(venv.num_envs)
        self.observation_space = as_gymnasium(venv.observation_space)
        self.action_space = as_gymnasium(venv.action_space)
        self.can_reset = True

    def reset(self) -> tuple[Any, None]:
        """Begins all envs."""
        return self.venv.reset(), None

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, None]:
        """Plays the actions; an end is shown as terminated."""
        if callable(getattr(self.venv, "step_async", None)):
            self.venv.step_async(actions)
            observations, rewards, dones, _ = self.venv.step_wait()
        else:
            observations, rewards, dones, _ = self.venv.step(actions)
        ends = np.array(dones, dtype=np.bool_)
        return observations, np.asarray(rewards, np.float64), ends, np.zeros_like(ends), None

    def close(self) -> None:
        """Closes the envs, if they can be."""
        if callable(getattr(self.venv, "close", None)):
            self.venv.close()


class _GymnasiumBatch:
    """A Gymnasium vector env as a `PythonBatch`.

    One in DISABLED is reset here where episodes end. One in NEXT_STEP cannot step some envs alone:
    it shows the final observation, and the next step begins an episode, with reward 0. Its metadata
    says so.
    """

    def __init__(self, venv: gymnasium.vector.VectorEnv[Any, Any, Any]) -> None:
        self.venv = venv
        self.num_envs = int(venv.num_envs)
        self.observation_space = venv.single_observation_space
        self.action_space = venv.single_action_space
        self.can_reset = True
        self._is_disabled = venv.metadata.get("autoreset_mode") in (
            AutoresetMode.DISABLED,
            AutoresetMode.DISABLED.value,
        )

    def reset(self) -> tuple[Any, None]:
        """Begins all envs."""
        return _shown(self.venv.reset()[0]), None

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, None]:
        """Plays the actions."""
        observations, rewards, terminated, truncated, _ = self.venv.step(actions)
        # Arrays of an env that reuses them change with the reset.
        terminated, truncated = np.array(terminated), np.array(truncated)
        rewards, ends = np.array(rewards, np.float64), terminated | truncated
        if self._is_disabled and ends.any():
            observations, _ = self.venv.reset(options={"reset_mask": ends})
        return _shown(observations), rewards, terminated, truncated, None

    def draw(self, **_kwargs: Any) -> Any:
        """The pictures of all envs as one array, or None."""
        frames = self.venv.render()
        if frames is None or any(frame is None for frame in frames):
            return None
        return np.stack(list(frames))

    def close(self) -> None:
        """Closes the envs."""
        self.venv.close()


def _shown(observations: Any) -> Any:
    return np.asarray(observations) if isinstance(observations, StackedFrames) else observations
