"""The vec env under a manager, and what its rows mean. Here: what any has, and envs that functions
make."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from gymnasium import spaces as gym_spaces

from corral import errors, python_envs, registry, spaces
from corral._python_env import leaves_of
from corral.managers import parcel
from corral.managers.config import Config
from corral.managers.declared import Declared, is_modern
from corral.managers.hosted_env import OBSERVATION, ORDERS, PARCEL, EnvMaker
from corral.managers.timestep import BaseEnvTimestep
from corral.vector import RowKind, VectorEnv

Batch = tuple[Any, Any, Any, Any, dict[str, Any]]
Landed = tuple[dict[int, BaseEnvTimestep], bool]
"""By env the timesteps of rows that did not fail, and whether any of these may have an info."""
_FAILED = RowKind.FAILED.value


class ResetOrder(NamedTuple):
    """How an env's next episode begins.

    Attributes:
        seed: the seed; None where the env goes on.
        dynamic_seed: as for `BaseEnvManager.seed`.
        param: the keyword arguments of the env's `reset`, or None.
        is_new: whether the env may not know `dynamic_seed` and `param` yet.
    """

    seed: int | None
    dynamic_seed: bool | None
    param: dict[str, Any] | None
    is_new: bool


class Members:
    """The envs of a manager as one `VectorEnv` in the autoreset mode "disabled".

    Attributes:
        envs: the vec env.
        action_space: the space in which actions are batched.
        films: whether `film` does anything.
    """

    envs: VectorEnv
    action_space: Any
    films = False

    def __init__(self, copies: bool) -> None:
        self._copies = copies

    def send_resets(self, orders: dict[int, ResetOrder]) -> Iterator[int]:
        """Puts envs in flight to begin episodes, and gives the number of each that is.

        Raises:
            CorralError: as `VectorEnv.send_reset`.
        """
        raise NotImplementedError

    def send(self, actions: dict[int, Any]) -> None:
        """Puts envs in flight with their actions; nothing moves where one is wrong.

        Raises:
            InvalidActionError: names what is wrong.
        """
        ids = list(actions)
        try:
            batch = spaces.batch_actions(self.action_space, list(actions.values()))
        except (LookupError, TypeError, ValueError) as error:
            raise errors.InvalidActionError(
                f"the actions of envs {ids} are not all in {self.action_space}: {error!r}"
            ) from None
        self._send(_fitted(self.action_space, batch, len(ids)), ids)

    def _send(self, batch: Any, env_ids: list[int]) -> None:
        """Sends actions; those of all envs in order go as one batch, which is faster."""
        is_all = len(env_ids) == self.envs.num_envs and env_ids == list(range(len(env_ids)))
        # `VectorEnv.send` checks what a user gives.
        self.envs.native.send(batch, None if is_all else env_ids)

    def receive(self, timeout: float | None, min_rows: int, max_rows: int) -> Any:
        """Waits for rows of envs in flight, which `opened` takes.

        Raises:
            CorralError: as `VectorEnv.recv`.
        """
        return self.envs.native.recv(timeout, min_rows, max_rows)

    def step(self, actions: dict[int, Any], again: bool) -> Any:
        """Puts envs in flight with their actions, while no other is, and waits for all.

        Args:
            actions: by env.
            again: whether an env whose episode ends is reset at once.

        Returns:
            What `opened` takes; False where that takes two calls, and nothing has moved. With a
            dict and `again`, the envs whose episodes ended are in flight to be reset.

        Raises:
            InvalidActionError: as `send`.
        """
        return False

    def opened(self, received: Any) -> Landed:
        """The rows that `receive` or `step` brought.

        Raises:
            BaseException: what `step` brought instead.
        """
        if type(received) is dict:
            return received, False
        if isinstance(received, BaseException):
            raise received
        infos = received[4]
        timesteps = self.timesteps(received)
        rows = zip(infos["env_id"].tolist(), infos["row_kind"], timesteps, strict=True)
        return {env_id: timestep for env_id, kind, timestep in rows if kind != _FAILED}, True

    def timesteps(self, batch: Batch) -> list[BaseEnvTimestep]:
        """What each row is as the result of a step; of a reset its `obs` counts alone."""
        raise NotImplementedError

    def film(self, env_id: int, *, is_first: bool = False, is_last: bool = False) -> None:
        """Adds a picture of the env to its video, where that is not done in the env's own place."""

    def attribute(self, name: str) -> list[Any]:
        """An attribute of each env.

        Raises:
            AttributeError: where the vec env cannot tell.
        """
        raise NotImplementedError

    def invoke(self, env_id: int, name: str, *args: Any, **kwargs: Any) -> Any:
        """What a method of one env gives."""
        raise NotImplementedError

    def close(self) -> None:
        """Closes the envs."""
        self.envs.close()


class HostedMembers(Members):
    """Envs that functions make: in worker processes, or (runner "serial") in this process."""

    def __init__(
        self,
        env_fn: Sequence[Callable[[], Any] | str],
        ref: Any,
        expected: Declared,
        config: Config,
        replay_paths: Sequence[str | None],
        runner: dict[str, Any],
    ) -> None:
        super().__init__(config.get("copy_on_get", False))
        shown = expected.observation if config.get("shared_memory", True) else None
        # An env of DI-engine takes its action as it is, whatever space it declares.
        taken = expected.action if is_modern(ref) else None
        self.action_space, self._shown = taken, shown
        sizes = (
            parcel.SMALL if shown is not None else _size_of(expected.observation),
            _size_of(expected.action, parcel.ACTION),
        )
        self._action_size = sizes[1]
        self._are_arrays = isinstance(shown, gym_spaces.Box)
        mode = render_mode(replay_paths)
        makers = [
            functools.partial(registry.make, fn, render_mode=mode) if isinstance(fn, str) else fn
            for fn in env_fn
        ]
        hosts = [
            EnvMaker(
                env_id,
                fn,
                expected,
                shown,
                taken,
                sizes,
                keeps=config.retry_type == "reset",
                replay_path=replay_paths[env_id],
            )
            for env_id, fn in enumerate(makers)
        ]
        self.envs = python_envs.hosted(
            python_envs.name_of(env_fn[0]),
            list(hosts),
            # Of the bytes of a parcel none is out of bounds.
            {**vec_options(config), **({"action_bounds": "unchecked"} if taken is None else {})},
            {"check_nan": False, **runner},
        )

    def send_resets(self, orders: dict[int, ResetOrder]) -> Iterator[int]:
        """As `Members.send_resets`. Options are looked at in the workers, which is waited for: envs
        that know their orders get none, and all others get theirs by one call."""
        told = {k: (one.param, one.dynamic_seed) for k, one in orders.items() if one.is_new}
        # `VectorEnv.send_reset` checks what a user gives, which takes as long as all the rest.
        send = self.envs.native.send_reset
        for env_ids, options in (
            ([env_id for env_id in orders if env_id not in told], None),
            (list(told), {ORDERS: told}),
        ):
            if env_ids:
                seeds = [orders[env_id].seed for env_id in env_ids]
                are_none = seeds.count(None) == len(seeds)
                send(env_ids, seed=None if are_none else seeds, options=options)
                yield from env_ids

    def send(self, actions: dict[int, Any]) -> None:
        """As `Members.send`."""
        if self.action_space is not None:
            super().send(actions)
            return
        if self.envs.native.send_arrays(actions, self._action_size):
            return
        ids = list(actions)
        leaves, others = parcel.packed_actions(list(actions.values()), self._action_size)
        for place, action in others.items():
            self.envs.native.call("hold", (action,), {}, [ids[place]])
        self._send(leaves, ids)

    def receive(self, timeout: float | None, min_rows: int, max_rows: int) -> Any:
        """As `Members.receive`."""
        if not self._are_arrays:
            return super().receive(timeout, min_rows, max_rows)
        limits = timeout, min_rows, max_rows
        return self.envs.native.recv_timesteps(BaseEnvTimestep, self._copies, *limits)

    def step(self, actions: dict[int, Any], again: bool) -> Any:
        """As `Members.step`. A parent that shares a CPU with a worker keeps it from running until
        the parent waits. With one call it waits soonest."""
        if self.action_space is not None or not self._are_arrays:
            return False
        what = self._action_size, BaseEnvTimestep, self._copies
        return self.envs.native.step_arrays(actions, *what, again)

    def timesteps(self, batch: Batch) -> list[BaseEnvTimestep]:
        """As `Members.timesteps`."""
        shown, numbers, terminations, truncations, infos = batch
        leaves, messages = shown[PARCEL], infos.get(PARCEL)
        count = len(numbers)
        firsts = leaves[:, 0].tolist()
        rewards = parcel.formed(firsts, numbers)
        # Asked of bytes, this takes a tenth of what `any` takes.
        are_cut = 1 in truncations.tobytes()
        dones = ((terminations | truncations) if are_cut else terminations).tolist()
        told: list[Any] = [{} for _ in range(count)]
        observations: list[Any] = [None] * count
        if self._shown is not None:
            observations = rows_of(self._shown, shown[OBSERVATION], count, self._copies)
        if messages is not None or max(firsts) >= parcel.PICKLED:
            for row, first in enumerate(firsts):
                aside = None if messages is None else messages[row]
                if first >= parcel.PICKLED:
                    aside = parcel.unpacked(leaves[row])
                if aside is None:
                    continue
                told[row], reward, *rest = aside
                if rest:
                    observations[row] = rest[0]
                if len(rest) == 2:
                    rewards[row], dones[row] = reward, rest[1]
                elif reward is not None:
                    rewards[row] = reward
        if are_cut:
            mark_cut(told, terminations, truncations)
        return list(map(_timestep, zip(observations, rewards, dones, told)))

    def attribute(self, name: str) -> list[Any]:
        """An attribute of each env; None of an env that lacks it."""
        return list(self.envs.call("attribute", name))

    def invoke(self, env_id: int, name: str, *args: Any, **kwargs: Any) -> Any:
        """What a method of one env gives."""
        given = (name, args, kwargs)
        return self.envs.native.call("invoke", given, {}, [env_id])[0]


# Calling the class takes three times as long.
_timestep = functools.partial(tuple.__new__, BaseEnvTimestep)


def mark_cut(infos: list[Any], terminations: Any, truncations: Any) -> None:
    """Tells in the infos which episodes were truncated alone, as old gym did."""
    if truncations.any():
        for row in np.flatnonzero(truncations & ~terminations):
            if isinstance(infos[row], dict):
                infos[row] = {**infos[row], "TimeLimit.truncated": True}


def render_mode(replay_paths: Sequence[str | None]) -> str | None:
    """Envs of ours draw where they are filmed."""
    return "rgb_array" if any(path is not None for path in replay_paths) else None


def vec_options(config: Config) -> dict[str, Any]:
    """Options of `make_vec` and `from_gymnasium`."""
    return {
        "autoreset_mode": "disabled",
        "timeout": config.step_timeout,
        "reset_timeout": config.reset_timeout,
    }


def _size_of(space: Any, more: int = parcel.SMALL) -> int:
    """The bytes of a parcel that holds a value of a space, as the largest numbers, and more."""
    leaves = [] if space is None else leaves_of(space)[1]
    if not leaves or any(leaf["kind"] != "fixed" for leaf in leaves):
        return parcel.UNKNOWN
    numbers = sum(int(np.prod(leaf["shape"])) for leaf in leaves)
    return min(more + 8 * numbers, parcel.LARGE)


def _fitted(space: Any, batch: Any, num_rows: int) -> Any:
    """Labels of shape (1,), which DI-engine's policies give, as labels."""
    is_column = isinstance(batch, np.ndarray) and batch.shape == (num_rows, 1)
    if is_column and isinstance(space, gym_spaces.Discrete):
        return batch.reshape(num_rows)
    return batch


def rows_of(space: Any, batch: Any, count: int, copies: bool) -> list[Any]:
    """Each row of a batch of observations; arrays, where a row is one number, too."""
    if isinstance(batch, np.ndarray):
        if batch.ndim == 1:
            return [np.asarray(one) for one in batch]
        return [one.copy() for one in batch] if copies else list(batch)
    if isinstance(space, gym_spaces.Dict):
        parts = {
            key: rows_of(inner, batch[key], count, copies) for key, inner in space.spaces.items()
        }
        return [{key: part[row] for key, part in parts.items()} for row in range(count)]
    if isinstance(space, gym_spaces.Tuple):
        each = (rows_of(inner, part, count, copies) for inner, part in zip(space.spaces, batch))
        return list(zip(*each))
    return list(batch)
