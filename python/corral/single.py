"""`Env`: one environment with Gymnasium's face."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Any, NoReturn

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium import logger

from corral import _native, errors, spaces
from corral.rendering import drawn, render_modes
from corral.vector import NO_COPY, split_options, state_bytes


class Env(gymnasium.Env[Any, Any]):
    """One environment; made by `corral.make`. A real `gymnasium.Env`.

    A finished episode must be reset before the next step. Arrays returned are the caller's.

    Attributes:
        max_episode_steps: the time limit in force, or None.
        native: the native vec env of one slot underneath.
        made: the arguments that `corral.make` made it by: its id, and its options by name.
    """

    made: tuple[str, Mapping[str, Any]] | None = None

    def __init__(self, native: _native.VecEnv, *, render_mode: str | None = None) -> None:
        self.native = native
        self.max_episode_steps = native.max_episode_steps
        self.render_mode = render_mode
        self.metadata = {**native.metadata, "render_modes": render_modes(native)}
        self.observation_space = spaces.from_leaves(
            native.observation_tree, native.observation_leaves
        )
        self.action_space = spaces.from_leaves(native.action_tree, native.action_leaves)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begins a new episode: `(observation, info)`.

        Args:
            seed: None continues the env's own random stream; an int starts it anew.
            options: `"index"`: play the episode of this index. Anything else goes to the env and
                holds until changed. Not modified.

        Raises:
            ArgumentError, ArgumentTypeError: for a seed or index that makes no sense.
            UnsupportedError: for what this env cannot do.
            EnvError: if the env failed.
        """
        index, mask, own = split_options(options)
        if mask is not None:
            raise errors.UnsupportedError("reset_mask is for vector envs: this is a single one")
        try:
            whole = None if seed is None else operator.index(seed)
        except TypeError:
            kind = type(seed).__name__
            raise errors.ArgumentTypeError(f"seed is an int (or None), not {kind}") from None
        result = self.native.reset_single(seed=seed, index=index, options=own)
        # Only now: Gymnasium refuses seeds with errors of its own, and NumPy's ints.
        super().reset(seed=whole)
        return result

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Plays one action: `(observation, reward, terminated, truncated, info)`.

        Raises:
            InvalidActionError: for an action outside the space; nothing has moved.
            ResetNeededError: before the first reset and after an episode's end.
            EnvError: if the env failed; the next reset rebuilds it.
        """
        return self.native.step_single(action)

    def save_state(self) -> bytes:
        """All that the rest of the run depends on; see `VectorEnv.save_state`."""
        return self.native.save(0)

    def load_state(self, state: bytes) -> Any:
        """Takes up what `save_state` gave, and gives the observation there.

        Raises:
            StateError: for a state of another env, config or version; nothing has changed.
        """
        self.native.load(state_bytes(state), 0)
        return self.native.observe_single()

    def render(self) -> npt.NDArray[np.uint8] | str | None:
        """A frame `uint8 (height, width, 3)`, or a text with `render_mode="ansi"`; None, with a
        warning, without `render_mode`."""
        if self.render_mode is None:
            logger.warn(
                "render() without a render mode gives nothing: "
                'make the env with render_mode="rgb_array"'
            )
            return None
        frame: npt.NDArray[np.uint8] | str = drawn(self.native, self.render_mode)[0]
        return frame

    def close(self) -> None:
        """Ends the env; again does nothing."""
        self.native.close()

    def __reduce__(self) -> NoReturn:
        raise errors.UnsupportedError(NO_COPY)

    def __str__(self) -> str:
        return f"<corral.Env<{self.native.id}>>"

    __repr__ = __str__
