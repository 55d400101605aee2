"""The backends of `vector.make`: agents in blocks of envs, some blocks to a batch."""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from corral.compat.pufferlib.base import APIUsageError
from corral.compat.pufferlib.hosted import Batch, HostedEnvs, check_kind
from corral.compat.pufferlib.native import NativeEnvs
from corral.compat.pufferlib.spaces import joint_space

# What a caller may do next.
_RESET, _SEND, _RECV = range(3)


def reset(vecenv: Any, seed: int | None = 42) -> tuple[Any, list[Any]]:
    """Begins new episodes: observations `(agents_per_batch, …)`, and infos."""
    vecenv.async_reset(seed)
    received = vecenv.recv()
    return received[0], received[4]


def step(vecenv: Any, actions: Any) -> tuple[Any, Any, Any, Any, list[Any]]:
    """`send`, then `recv`: observations, rewards, terminals, truncations, infos."""
    vecenv.send(actions)
    received: tuple[Any, Any, Any, Any, list[Any]] = vecenv.recv()[:5]
    return received


class _NativeBlock:
    """Native envs as a part of a backend: they step in `send`."""

    def __init__(self, envs: NativeEnvs) -> None:
        self.envs = envs
        self.num_envs = envs.num_agents

    def reset(self, seed: int | None) -> None:
        self.envs.reset(seed)

    def send(self, actions: Any) -> None:
        self.envs.step(actions)

    def recv(self) -> Batch:
        envs = self.envs
        return (
            *(envs.observations, envs.rewards, envs.terminals, envs.truncations),
            *(envs.infos, envs.masks),
        )

    def notify(self) -> None:
        self.envs.notify()

    def close(self) -> None:
        self.envs.close()


class _Backend:
    """Agents in blocks of envs, some of which make a batch.

    Every array that it gives is the caller's to keep.

    Attributes:
        num_agents: all agents.
        agents_per_batch: the rows of a batch; `num_envs` is the same.
        driver_env: one env, to ask about spaces.
        emulated: the dtypes of an observation, flat and as a struct; False of a `PufferEnv`.
        single_observation_space, single_action_space: an agent's.
        observation_space, action_space: a batch's.
        observations, rewards, terminals, truncations, masks: of the last batch.
        infos: a list of dicts.
    """

    reset = reset
    step = step

    def __init__(self, blocks: Sequence[Any], driver: Any, agents: int, per_batch: int) -> None:
        self._blocks = blocks
        self._agents_per_block = agents // len(blocks)
        self._blocks_per_batch = per_batch // self._agents_per_block
        self.driver_env = driver
        self.emulated = driver.emulated
        self.num_agents = agents
        self.agents_per_batch = per_batch
        self.single_observation_space = driver.single_observation_space
        self.single_action_space = driver.single_action_space
        self.observation_space = joint_space(self.single_observation_space, per_batch)
        self.action_space = joint_space(self.single_action_space, per_batch)
        self.agent_ids = np.arange(agents)
        self.infos: list[Any] = []
        self.flag = _RESET
        self.initialized = False
        # The blocks that are in flight, the next batch's first; and those of the last batch.
        self._waiting: list[int] = []
        self._received: list[int] = []

    @property
    def num_envs(self) -> int:
        """The rows of a batch."""
        return self.agents_per_batch

    def async_reset(self, seed: int | None = 0) -> None:
        """Begins new episodes; `recv` gives the first batch of them.

        Args:
            seed: env i plays `seed + i`; None for envs to go on with their own streams.
        """
        self.flag = _RESET
        for number, block in enumerate(self._blocks):
            block.reset(None if seed is None else seed + number * block.num_envs)
        self._waiting = list(range(len(self._blocks)))
        self.flag = _RECV

    def send(self, actions: Any) -> None:
        """Steps the agents of the last batch; `recv` gives the next batch.

        Args:
            actions: one for each agent of the last `recv`.

        Raises:
            APIUsageError: before `recv`, and where the first actions are not in the space.
            InvalidActionError: where later actions are not; nothing has moved in their block.
        """
        if self.flag != _SEND:
            raise APIUsageError("send before recv: call reset, or async_reset and recv, first")
        actions = np.asarray(actions)
        if not self.initialized:
            if not self.action_space.contains(actions):
                raise APIUsageError(f"the actions are not in {self.action_space}: {actions!r}")
            self.initialized = True
        self.flag = _RESET
        if self._blocks_per_batch == 1:
            self._blocks[self._received[0]].send(actions)
        else:
            parts = np.split(actions, self._blocks_per_batch)
            for number, part in zip(self._received, parts, strict=True):
                self._blocks[number].send(part)
        self._waiting.extend(self._received)
        self.flag = _RECV

    def recv(self) -> tuple[Any, Any, Any, Any, list[Any], Any, Any]:
        """The next batch.

        Returns:
            Observations `(agents_per_batch, …)`, rewards float32, terminals and truncations bool
            `(agents_per_batch,)`, infos (a list of dicts), the agents' numbers int64, masks bool.

        Raises:
            APIUsageError: with nothing sent.
        """
        if self.flag != _RECV:
            raise APIUsageError("recv before send: call async_reset or send first")
        count = self._blocks_per_batch
        self._received = self._waiting[:count]
        del self._waiting[:count]
        self.flag = _RESET
        if count == 1:
            number = self._received[0]
            o, r, d, t, infos, m = self._blocks[number].recv()
            ids = self.agent_ids.reshape(len(self._blocks), -1)[number]
        else:
            batches = [self._blocks[number].recv() for number in self._received]
            o, r, d, t, m = (np.concatenate([b[k] for b in batches]) for k in (0, 1, 2, 3, 5))
            infos = list(itertools.chain.from_iterable(b[4] for b in batches))
            ids = self.agent_ids.reshape(len(self._blocks), -1)[self._received].ravel()
        self.observations, self.rewards, self.terminals, self.truncations = o, r, d, t
        self.infos, self.masks = infos, m
        self.flag = _SEND
        return o, r, d, t, infos, ids, m

    def notify(self) -> None:
        """Calls each env's `notify`."""
        for block in self._blocks:
            block.notify()

    def close(self) -> None:
        """Closes the envs."""
        for block in self._blocks:
            block.close()


class Serial(_Backend):
    """Envs stepped one after the other in this process.

    Args:
        env_creators: a function for each env, `creator(*args, buf=…, seed=…, **kwargs)`, or an id.
        env_args, env_kwargs: what each is called with.
        num_envs: how many.
        seed: env i is made with `seed + i`.

    Attributes:
        envs: the envs; of an id the one `NativeEnvs`.
        agents_per_env: how many agents each has.
    """

    def __init__(
        self,
        env_creators: Any,
        env_args: Sequence[Sequence[Any]],
        env_kwargs: Sequence[Mapping[str, Any]],
        num_envs: int,
        seed: int | None = 0,
        **kwargs: Any,
    ) -> None:
        if isinstance(env_creators, str):
            envs = native_of(env_creators, num_envs, env_kwargs[0], seed, 1, same_step=False)
            self.envs: list[Any] = [envs]
            self.agents_per_env = [1] * envs.num_agents
            super().__init__([_NativeBlock(envs)], envs, envs.num_agents, envs.num_agents)
            return
        block = HostedEnvs(env_creators, env_args, env_kwargs, seed, runner="serial")
        self.envs = block.made
        self.agents_per_env = [env.num_agents for env in self.envs]
        agents = sum(self.agents_per_env)
        super().__init__([block], self.envs[0], agents, agents)


class Multiprocessing(_Backend):
    """Envs in worker processes; those of an id in threads of this process.

    Args:
        env_creators, env_args, env_kwargs, num_envs, seed: as of `Serial`.
        num_workers: how many processes or threads; None for as many as there are cores, or fewer
            that share the envs evenly.
        batch_size: how many envs a `recv` waits for; None for all.
        zero_copy: whether `batch_size` must divide `num_envs`. With False a batch may go on from
            the last env to the first.
        overwork: not used: more workers than cores are allowed.
    """

    def __init__(
        self,
        env_creators: Any,
        env_args: Sequence[Sequence[Any]],
        env_kwargs: Sequence[Mapping[str, Any]],
        num_envs: int,
        num_workers: int | None = None,
        batch_size: int | None = None,
        zero_copy: bool = True,
        overwork: bool = False,
        seed: int | None = 0,
        **kwargs: Any,
    ) -> None:
        batch_size = num_envs if batch_size is None else batch_size
        if not 1 <= batch_size <= num_envs:
            raise APIUsageError(f"batch_size is {batch_size}: it must be from 1 to {num_envs}")
        if zero_copy and num_envs % batch_size:
            raise APIUsageError(
                f"batch_size {batch_size} does not divide num_envs {num_envs}: give another, or "
                "zero_copy=False"
            )
        size = math.gcd(num_envs, batch_size)
        places = range(0, num_envs, size)
        self.num_environments = num_envs
        blocks: list[Any]
        if isinstance(env_creators, str):
            natives = [
                native_of(
                    *(env_creators, size, env_kwargs[0], None if seed is None else seed + first),
                    *(num_workers,),
                    same_step=False,
                )
                for first in places
            ]
            driver: Any = natives[0]
            blocks = [_NativeBlock(envs) for envs in natives]
            agents_per_env = driver.num_agents // size
        else:
            driver = env_creators[0](*env_args[0], **env_kwargs[0])
            check_kind(driver)
            workers = _workers(num_envs, num_workers) * size // num_envs
            blocks = [
                HostedEnvs(
                    env_creators[first : first + size],
                    env_args[first : first + size],
                    env_kwargs[first : first + size],
                    None if seed is None else seed + first,
                    runner="process",
                    num_workers=max(workers, 1),
                )
                for first in places
            ]
            agents_per_env = driver.num_agents
        super().__init__(blocks, driver, agents_per_env * num_envs, agents_per_env * batch_size)

    def close(self) -> None:
        """Closes the envs, and the driver env."""
        super().close()
        self.driver_env.close()


def _workers(num_envs: int, wanted: int | None) -> int:
    if wanted is not None:
        return wanted
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return max(n for n in range(1, (cores or 1) + 1) if num_envs % n == 0)


def native_of(
    id: str,
    num_envs: int,
    kwargs: Mapping[str, Any],
    seed: int | None,
    num_threads: int | None,
    *,
    same_step: bool,
) -> NativeEnvs:
    """The envs of an id; its own `num_envs` is how many stand for one."""
    told = dict(kwargs)
    count = num_envs * told.pop("num_envs", 1)
    return NativeEnvs(
        id, count, **{"seed": seed, "num_threads": num_threads, "same_step": same_step, **told}
    )
