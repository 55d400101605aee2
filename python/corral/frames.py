"""Frames stacked when they are looked at: a rollout that keeps them keeps each frame once."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from gymnasium import spaces as gym_spaces
from gymnasium.vector import AutoresetMode

from corral import _native, errors, spaces
from corral.rollouts import Rollout
from corral.vector import GYMNASIUM_029, VectorEnv, split_options, state_bytes

_WHOLE = "lazy_frames goes with reset and step of all envs: leave it out for send and recv"


class StackedFrames:
    """The last k observations of each env, `(num_envs, k, …)`, oldest first, not yet stacked.

    Holds the k batches of observations as they came, which its neighbours in time hold too, and
    which of them each env's episode has. `np.asarray(frames)` stacks all, `frames[rows]` those
    rows (an int, a slice, an array of ints or of bools) as fresh arrays; nothing else copies.

    Attributes:
        shape, dtype, ndim: those of the stacked array.
        batches: the k batches `(num_envs, …)`, oldest first; not to be changed.
        ages: int64 `(num_envs,)`: how many of the earlier batches belong to the env's episode;
            in the place of others stands the episode's first observation.
    """

    def __init__(self, batches: tuple[Any, ...], ages: npt.NDArray[np.int64]) -> None:
        self.batches = batches
        self.ages = ages
        newest = batches[-1]
        self.shape: tuple[int, ...] = (len(newest), len(batches), *newest.shape[1:])
        self.dtype: np.dtype[Any] = newest.dtype
        self.ndim = len(self.shape)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, key: Any) -> Any:
        rows, rest = (key[0], key[1:]) if isinstance(key, tuple) and key else (key, ())
        if not _names_rows(rows) or not all(isinstance(k, slice) or type(k) is int for k in rest):
            # Several arrays are taken together, and a mask may name frames.
            return np.asarray(self)[key]
        which = np.arange(len(self))[rows]
        stacked = self._stack(which.ravel())
        stacked = stacked.reshape(*which.shape, *self.shape[1:])
        return stacked[(slice(None),) * which.ndim + rest] if rest else stacked

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        if copy is False:
            raise ValueError("frames that are not stacked yet make no array without a copy")
        stacked = self._stack(np.arange(len(self)))
        return stacked if dtype is None else stacked.astype(dtype, copy=False)

    def _stack(self, rows: npt.NDArray[np.intp]) -> npt.NDArray[Any]:
        k = len(self.batches)
        out = np.empty((len(rows), *self.shape[1:]), dtype=self.dtype)
        ages = self.ages[rows]
        for lag in range(k):
            # Before its episode's first observation stands that one.
            lags = np.minimum(lag, ages)
            for source in np.unique(lags):
                these = lags == source
                out[these, k - 1 - lag] = self.batches[k - 1 - source][rows[these]]
        return out

    def __repr__(self) -> str:
        return f"StackedFrames(shape={self.shape}, dtype={self.dtype})"


def _names_rows(key: Any) -> bool:
    """Whether a key, taken alone, names whole rows: an int, a slice, an array of ints, a mask of
    rows."""
    if isinstance(key, int | np.integer | slice):
        return not isinstance(key, bool)
    array = np.asarray(key) if isinstance(key, list) else key
    if not isinstance(array, np.ndarray):
        return False
    return array.dtype.kind in "iu" or (array.dtype.kind == "b" and array.ndim == 1)


def _check_room(box: gym_spaces.Box, k: int, num_envs: int) -> None:
    """Errors where there is no memory for the stacked spaces, which hold their bounds in full."""
    elements = k * int(np.prod(box.shape)) * (num_envs + 1)
    try:
        # Two bounds, and for each whether it is finite.
        _native.check_room(elements * 2 * (np.dtype(box.dtype).itemsize + 1))
    except MemoryError as error:
        raise errors.ArgumentError(
            f"frame_stack is {k}: so many frames fit no memory ({error})"
        ) from None


class LazyVectorEnv(VectorEnv):
    """A `VectorEnv` whose observations are `StackedFrames`; made by `corral.make_vec`.

    Shows what `frame_stack` alone would show, without keeping or copying any frame twice.
    """

    def __init__(self, native: _native.VecEnv, k: int, *, render_mode: str | None = None) -> None:
        super().__init__(native, render_mode=render_mode)
        if self.batch_size < self.num_envs:
            raise errors.UnsupportedError(f"{native.id}: {_WHOLE}")
        if not isinstance(self.single_observation_space, gym_spaces.Box):
            raise errors.UnsupportedError(
                f"{native.id}: lazy_frames is for observations that are one Box: "
                "leave it out, and frame_stack stacks any"
            )
        box = self.single_observation_space
        _check_room(box, k, self.num_envs)
        self.frame_stack = k
        self.single_observation_space = gym_spaces.Box(
            np.stack([box.low] * k), np.stack([box.high] * k), dtype=cast("Any", box.dtype)
        )
        self.observation_space = spaces.batched(self.single_observation_space, self.num_envs)
        self._batches: tuple[Any, ...] = ()
        self._ages = np.zeros(self.num_envs, dtype=np.int64)
        self._over = np.zeros(self.num_envs, dtype=np.bool_)

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Any, dict[str, Any]]:
        """As `VectorEnv.reset`, with `StackedFrames`."""
        _, mask, _ = split_options(options)
        try:
            observations, infos = super().reset(seed=seed, options=options)
        except BaseException as error:
            self._show_in(error, lambda batch: (self._begun(batch[0], mask), batch[1]))
            raise
        return self._begun(observations, mask), infos

    def step(self, actions: Any) -> Any:
        """As `VectorEnv.step`, with `StackedFrames`; final observations are stacked arrays."""
        try:
            batch = super().step(actions)
        except BaseException as error:
            self._show_in(error, self._stepped)
            raise
        return self._stepped(batch)

    @staticmethod
    def _show_in(error: BaseException, show: Callable[[Any], Any]) -> None:
        """Frames for the batch that an error carries, or the `EnvError` that is its cause."""
        told = error if isinstance(error, errors.EnvError) else error.__cause__
        if isinstance(told, errors.EnvError) and told.batch is not None:
            told.batch = show(told.batch)

    def _stacked(self) -> StackedFrames:
        if not self._batches:
            raise errors.StateError("the state that was loaded has no frames: reset the envs")
        missing = self.frame_stack - len(self._batches)
        return StackedFrames((*self._batches[:1] * missing, *self._batches), self._ages.copy())

    def _begun(self, observations: Any, mask: Any) -> StackedFrames:
        if mask is None or not self._batches:
            self._batches = (observations,)
            self._ages[:] = 0
            self._over[:] = False
        else:
            # The others' rows are what they were, also where a layer has changed since: the batch
            # takes the newest one's place.
            kept = ~np.asarray(mask)
            observations[kept] = self._batches[-1][kept]
            self._batches = (*self._batches[:-1], observations)
            self._ages[mask] = 0
            self._over[mask] = False
        return self._stacked()

    def _stepped(self, batch: Any) -> Any:
        observations, rewards, terminations, truncations, infos = batch
        ended = terminations | truncations
        same_step = self.autoreset_mode is AutoresetMode.SAME_STEP
        is_of_029 = self.native.info_layout == GYMNASIUM_029
        shown = "final_observation" if is_of_029 else "final_obs"
        if same_step and shown in infos:
            before = self._stacked()
            for row in np.flatnonzero(infos[f"_{shown}"]):
                # A Python env's own object may be a list.
                last = np.asarray(infos[shown][row], dtype=observations.dtype)
                if "_failed" in infos and infos["_failed"][row]:
                    infos[shown][row] = np.zeros(
                        self.single_observation_space.shape or (), last.dtype
                    )
                    continue
                earlier = before[row][1:] if self.frame_stack > 1 else before[row][:0]
                infos[shown][row] = np.concatenate([earlier, last[np.newaxis]])
        first = ended if same_step else self._over
        if "restarted" in infos:
            first = first | infos["restarted"]
        if "_failed" in infos:
            # Zeros alone are shown of an env that failed.
            first = first | infos["_failed"]
        self._batches = (*self._batches, observations)[-self.frame_stack :]
        self._ages = np.where(first, 0, np.minimum(self._ages + 1, self.frame_stack - 1))
        self._over = ended if self.autoreset_mode is AutoresetMode.NEXT_STEP else self._over
        return self._stacked(), rewards, terminations, truncations, infos

    def rollout(self, *args: Any, **kwargs: Any) -> Rollout:
        """Not with lazy frames: use `step`."""
        raise errors.UnsupportedError(
            "a rollout keeps whole observations: make the envs without lazy_frames"
        )

    def async_reset(self, **kwargs: Any) -> None:
        """Not with lazy frames: use `reset`."""
        raise errors.UnsupportedError(_WHOLE)

    def send_reset(self, env_id: Any = None, **kwargs: Any) -> None:
        """Not with lazy frames: use `reset`."""
        raise errors.UnsupportedError(_WHOLE)

    def send(self, actions: Any, env_id: Any = None) -> None:
        """Not with lazy frames: use `step`."""
        raise errors.UnsupportedError(_WHOLE)

    def save_state(self, env: int | None = None) -> bytes:
        """As `VectorEnv.save_state`; the frames are part of it."""
        below = np.frombuffer(super().save_state(env), dtype=np.uint8)
        rows = slice(None) if env is None else slice(env, env + 1)
        batches = [batch[rows] for batch in self._stacked().batches] if self._batches else []
        frames: npt.NDArray[Any] = np.array(batches)
        file = io.BytesIO()
        np.savez(file, below=below, frames=frames, ages=self._ages[rows], over=self._over[rows])
        return file.getvalue()

    def load_state(self, state: bytes, env: int | None = None) -> None:
        """As `VectorEnv.load_state`, of a state with lazy frames."""
        try:
            with np.load(io.BytesIO(state_bytes(state)), allow_pickle=False) as saved:
                parts = {name: saved[name] for name in ("below", "frames", "ages", "over")}
        except errors.ArgumentTypeError:
            raise
        except Exception:
            # What NumPy tells of such bytes is about files of its own.
            raise errors.StateError(
                f"these {len(state)} bytes are no state of envs with lazy_frames, or not all of "
                "it: make the envs with the options that the state was saved under"
            ) from None
        frames, ages, over = parts["frames"], parts["ages"], parts["over"]
        n = self.num_envs if env is None else 1
        shape = self.observation_space.shape or ()
        expected = (self.frame_stack, n, *shape[2:])
        has_frames = frames.shape != (0,)
        if ages.shape != (n,) or over.shape != (n,) or (has_frames and frames.shape != expected):
            raise errors.StateError(
                f"this state has frames of shape {frames.shape}, where {expected} belongs"
            )
        if has_frames and frames.dtype != self.observation_space.dtype:
            raise errors.StateError(
                f"this state has {frames.dtype} frames, where {self.observation_space.dtype} belong"
            )
        is_whole = ages.dtype == np.int64 and over.dtype == np.bool_
        if not is_whole or ages.min() < 0 or ages.max() >= self.frame_stack:
            raise errors.StateError(
                f"this state's frames have ages {ages}, where numbers from 0 to "
                f"{self.frame_stack - 1} belong"
            )
        super().load_state(parts["below"].tobytes(), env)
        rows = slice(None) if env is None else slice(env, env + 1)
        batches = [batch.copy() for batch in self._stacked().batches] if self._batches else []
        if not has_frames:
            return
        if not batches:
            batches = [np.zeros((self.num_envs, *shape[2:]), frames.dtype) for _ in frames]
        for batch, saved_batch in zip(batches, frames, strict=True):
            batch[rows] = saved_batch
        self._batches = tuple(batches)
        self._ages[rows], self._over[rows] = ages, over

    def observe(self) -> StackedFrames:
        """As `VectorEnv.observe`, with `StackedFrames`."""
        super().observe()
        return self._stacked()
