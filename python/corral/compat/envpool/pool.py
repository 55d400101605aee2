"""`EnvPool`: what EnvPool's two interfaces have in common, over a `corral.VectorEnv`.

A step of all envs is one native call, and then a dozen passes over arrays of a number for each env.
EnvPool plays an env that was never reset by beginning its first episode, and so does this.
"""

from __future__ import annotations

import itertools
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, NoReturn

import numpy as np
import numpy.typing as npt
from gymnasium import spaces as gym_spaces

from corral import errors
from corral.compat.envpool.spec import EnvSpec, is_narrow
from corral.vector import RowKind, VectorEnv

Ids = npt.NDArray[np.int64]
# From `np.float32` NumPy makes the dtype at every cast, which takes as long as a small cast.
_FLOAT32, _INT32 = np.dtype(np.float32), np.dtype(np.int32)


class Rows(NamedTuple):
    """A batch with what EnvPool tells of each row; every array is `(rows, …)`.

    Attributes:
        observations: nested as the space of one env; labels are int32.
        rewards: float32.
        terminations, truncations: bool.
        terminated: int32, the terminations as numbers.
        infos: the envs' own, without masks.
        env_id: int32, which env each row is of.
        elapsed: int32, steps taken in the episode; 0 where a row begins one.
    """

    observations: Any
    rewards: npt.NDArray[np.float32]
    terminations: npt.NDArray[np.bool_]
    truncations: npt.NDArray[np.bool_]
    terminated: npt.NDArray[np.int32]
    infos: dict[str, Any]
    env_id: npt.NDArray[np.int32]
    elapsed: npt.NDArray[np.int32]


class EnvPool(ABC):
    """Several envs with EnvPool's interface; made by `corral.compat.envpool.make`.

    Every array that it returns is the caller's to keep and to change.

    Attributes:
        envs: the `corral.VectorEnv` underneath, in NEXT_STEP.
        spec: an `EnvSpec`.
        is_async: whether a `recv` waits for fewer than all envs.
    """

    def __init__(
        self,
        envs: VectorEnv,
        spec: EnvSpec,
        env_seeds: Sequence[int] | None = None,
        render_env_id: int = 0,
    ) -> None:
        n = envs.num_envs
        self.envs = envs
        self.spec: Any = spec
        self.is_async = envs.batch_size < n
        self._num_envs = n
        self._ids = np.arange(n)
        self._env_id = np.arange(n, dtype=np.int32)
        self._ones = np.ones(n, np.int32)
        self._elapsed = np.zeros(n, np.int32)
        # -1, all bits set, where an episode goes on; 0 where the env's next row begins another.
        self._goes_on = np.full(n, -1, np.int32)
        self._has_begun = np.zeros(n, np.bool_)
        self._have_all_begun = False
        self._env_seeds = env_seeds
        self._render_env_id = render_env_id
        self._seen = _reader(envs.single_observation_space)
        self._step_all = envs.step
        self._is_of_labels = isinstance(
            envs.single_action_space,
            gym_spaces.Discrete | gym_spaces.MultiDiscrete | gym_spaces.MultiBinary,
        )
        self._has_named_actions = isinstance(envs.single_action_space, gym_spaces.Dict)

    @property
    def config(self) -> dict[str, Any]:
        """All options, by name."""
        shown: dict[str, Any] = self.spec.config._asdict()
        return shown

    @property
    def all_env_ids(self) -> npt.NDArray[np.int32]:
        """The numbers of all envs, int32 `(num_envs,)`."""
        return self._env_id.copy()

    def __len__(self) -> int:
        return self._num_envs

    def step(self, action: Any, env_id: Any = None) -> Any:
        """Plays one action in each env, or in those of `env_id`: `send`, then `recv`.

        Args:
            action: an array `(rows, …)` in the action space of one env, or a dict with such an
                array as "action", and maybe "env_id".
            env_id: which envs; all without.

        Returns:
            As `recv`.

        Raises:
            InvalidActionError: names env, leaf, value and bounds; nothing has moved.
            EnvError: if envs failed; the others completed, see its `batch`.
            ArgumentError, ArgumentTypeError: for envs that there are not.
        """
        if (
            type(action) is not np.ndarray
            or not self._have_all_begun
            or self.is_async
            or not (env_id is None or self._is_all(env_id))
        ):
            self.send(action, env_id)
            return self.recv()
        if self._is_of_labels and action.dtype.kind == "f":
            action = action.astype(np.int32)
        try:
            batch = self._step_all(action)
        except errors.EnvError as error:
            if error.batch is not None:
                self._all_rows(error.batch)
            raise
        return self._told(self._all_rows(batch), False, True)

    def send(self, action: Any, env_id: Any = None) -> None:
        """Puts envs in flight with their actions; errors as `step`. The action of an env whose
        episode is over, or that was never reset, is ignored: an episode begins.

        Raises:
            PendingCallError: if any of them is in flight.
        """
        if isinstance(action, Mapping):
            env_id = action.get("env_id", env_id)
        actions = self._actions(action)
        ids = self._ids if env_id is None else _numbers(env_id)
        if self._have_all_begun:
            self.envs.send(actions, ids)
            return
        has_begun = self._has_begun[self._checked(ids)]
        # Rows come back in the order in which they are sent.
        for begun, run in itertools.groupby(range(len(ids)), key=has_begun.__getitem__):
            rows = list(run)
            if begun:
                self.envs.send(_part(actions, rows), ids[rows])
            else:
                self._begin(ids[rows])

    def recv(self, reset: bool = False, return_info: bool = True) -> Any:
        """Waits for `batch_size` envs in flight, or for all if fewer are.

        Args:
            reset: whether to give what `reset` gives, in place of what `step` gives.
            return_info: with `reset`, whether to give infos too, where Gym before 0.26 gave none.

        Raises:
            NothingPendingError: if nothing is in flight.
            EnvError: if envs failed, see its `batch`.
        """
        try:
            batch = self.envs.recv()
        except errors.EnvError as error:
            if error.batch is not None:
                *values, infos = error.batch
                # The error's own infos keep their `env_id` and `row_kind`.
                self._some_rows((*values, dict(infos)))
            raise
        return self._told(self._some_rows(batch), reset, return_info)

    def async_reset(self) -> None:
        """Puts all envs in flight to begin episodes; `recv` gives them."""
        self._begin(self._ids)

    def seed(self, seed: Any = None) -> None:
        """Does nothing but warn, as EnvPool's: seeds are given where envs are made."""
        warnings.warn("seed() does nothing: give seed= where the envs are made", stacklevel=2)

    def render(self, env_ids: Any = None, camera_id: int | None = None) -> npt.NDArray[np.uint8]:
        """Frames uint8 `(rows, height, width, 3)` of `env_ids`; without, of `render_env_id`.

        Raises:
            UnsupportedError: for envs made without a render mode, and for a camera.
        """
        if camera_id is not None:
            raise errors.UnsupportedError("these envs have no cameras: leave camera_id out")
        if self.envs.render_mode is None:
            raise errors.UnsupportedError('make the envs with render_mode="rgb_array" to draw them')
        ids = self._render_env_id if env_ids is None else env_ids
        return np.stack(self.envs.render(_numbers(ids).tolist()) or ())

    def xla(self) -> NoReturn:
        """Refused: there are no functions for XLA.

        Raises:
            UnsupportedError: always.
        """
        raise errors.UnsupportedError("there is no XLA interface: use send and recv, or step")

    def close(self) -> None:
        """Closes the envs."""
        self.envs.close()

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in self.config.items())
        return f"{type(self).__name__}({self.spec.id}, {shown})"

    @abstractmethod
    def _told(self, rows: Rows, is_reset: bool, with_info: bool) -> Any:
        """A batch in the interface's own form."""

    def _reset(self, env_id: Any, *, seed: Any = None, options: Any = None) -> Any:
        """Begins episodes, and waits for them."""
        returns_info = self.spec.config.gym_reset_return_info
        if env_id is not None or self.is_async:
            self._begin(self._ids if env_id is None else _numbers(env_id), seed, options)
            return self.recv(True, returns_info)
        observations, infos = self.envs.reset(seed=self._seeds(self._ids, seed), options=options)
        self._note_begun(self._ids)
        n = self._num_envs
        self._elapsed = np.zeros(n, np.int32)
        self._goes_on = np.full(n, -1, np.int32)
        rows = Rows(
            self._seen(observations) if self._seen else observations,
            np.zeros(n, np.float32),
            np.zeros(n, np.bool_),
            np.zeros(n, np.bool_),
            np.zeros(n, np.int32),
            _unmasked(infos),
            self._env_id.copy(),
            np.zeros(n, np.int32),
        )
        return self._told(rows, True, returns_info)

    def _begin(self, ids: Ids, seed: Any = None, options: Any = None) -> None:
        self.envs.send_reset(self._checked(ids), seed=self._seeds(ids, seed), options=options)
        self._note_begun(ids)

    def _seeds(self, ids: Ids, seed: Any) -> Any:
        """What a reset of these envs is seeded with: the seeds that the envs were made with, where
        they are beginning."""
        if seed is not None or self._env_seeds is None or self._has_begun[ids].all():
            return seed
        return [None if self._has_begun[k] else self._env_seeds[k] for k in ids.tolist()]

    def _is_all(self, env_id: Any) -> bool:
        """Whether these are all envs, in order: trainers name them in every step."""
        ids = _numbers(env_id)
        return ids.size == self._num_envs and bool((ids == self._ids).all())

    def _note_begun(self, ids: Ids) -> None:
        if not self._have_all_begun:
            self._has_begun[ids] = True
            self._have_all_begun = bool(self._has_begun.all())

    def _checked(self, ids: Ids) -> Ids:
        if ids.size and not (ids.min() >= 0 and ids.max() < self._num_envs):
            raise errors.ArgumentError(
                f"env_id is {ids.tolist()}: envs are numbered from 0 to {self._num_envs - 1}"
            )
        return ids

    def _actions(self, action: Any) -> Any:
        """An action as the vec env takes it."""
        if isinstance(action, Mapping):
            if self._has_named_actions:
                own = self.envs.single_action_space
                return {name: action[name] for name in own if name in action}  # type: ignore[attr-defined]
            if "action" not in action:
                raise errors.InvalidActionError(
                    f"an action that is a dict has a key 'action'; this one has {list(action)}"
                )
            action = action["action"]
        elif self._has_named_actions:
            return action
        actions = np.asarray(action)
        if self._is_of_labels and actions.dtype.kind == "f":
            return actions.astype(np.int32)
        return actions

    def _all_rows(self, batch: tuple[Any, ...]) -> Rows:
        """A step of all envs."""
        observations, rewards, terminations, truncations, infos = batch
        terminated = terminations.astype(_INT32)
        # For a few envs, NumPy's `+=` takes twice as long as `+`. For many, an assignment by mask,
        # whose branches are by chance, takes longer than all these passes.
        self._elapsed = elapsed = (self._elapsed + self._ones) & self._goes_on
        # Asked of bytes, this takes a tenth of what `any` takes.
        if 1 in truncations.tobytes():
            self._goes_on = (terminations | truncations).astype(np.int32) - self._ones
        else:
            self._goes_on = terminated - self._ones
        return Rows(
            self._seen(observations) if self._seen else observations,
            rewards.astype(_FLOAT32),
            terminations,
            truncations,
            terminated,
            _unmasked(infos) if infos else infos,
            self._env_id.copy(),
            elapsed.copy(),
        )

    def _some_rows(self, batch: tuple[Any, ...]) -> Rows:
        """What was received."""
        observations, rewards, terminations, truncations, infos = batch
        ids = infos.pop("env_id")
        elapsed = self._elapsed[ids] + np.int32(1)
        elapsed[infos.pop("row_kind") != RowKind.STEP] = 0
        self._elapsed[ids] = elapsed
        self._goes_on[ids] = (terminations | truncations).astype(np.int32) - np.int32(1)
        return Rows(
            self._seen(observations) if self._seen else observations,
            rewards.astype(_FLOAT32),
            terminations,
            truncations,
            terminations.astype(np.int32),
            _unmasked(infos) if infos else infos,
            ids.astype(np.int32),
            elapsed,
        )


def _numbers(env_id: Any) -> Ids:
    """Numbers of envs as an array `(rows,)`."""
    ids = np.atleast_1d(np.asarray(env_id))
    if ids.ndim != 1 or ids.dtype.kind not in "iu":
        raise errors.ArgumentTypeError(
            f"env_id is an int or an array of ints (rows,), not {env_id!r}"
        )
    return ids.astype(np.int64, copy=False)


def _part(actions: Any, rows: list[int]) -> Any:
    if isinstance(actions, Mapping):
        return {name: np.asarray(part)[rows] for name, part in actions.items()}
    return actions[rows]


def _unmasked(infos: dict[str, Any]) -> dict[str, Any]:
    """Infos without masks: EnvPool has none. `_failed` is no mask, but an info of its own."""
    return {
        name: _unmasked(value) if isinstance(value, dict) else value
        for name, value in infos.items()
        if name == "_failed" or not (name.startswith("_") and name[1:] in infos)
    }


def _reader(space: Any) -> Callable[[Any], Any] | None:
    """What makes EnvPool's observations of corral's: labels become int32. None changes nothing."""
    if isinstance(space, gym_spaces.Discrete) and is_narrow(space):
        return lambda labels: labels.astype(np.int32)
    if isinstance(space, gym_spaces.Dict):
        each = {name: _reader(inner) or _same for name, inner in space.spaces.items()}
        return lambda parts: {name: read(parts[name]) for name, read in each.items()}
    if isinstance(space, gym_spaces.Tuple):
        several = [_reader(inner) or _same for inner in space.spaces]
        return lambda parts: tuple(read(part) for read, part in zip(several, parts, strict=True))
    return None


def _same(observations: Any) -> Any:
    return observations
