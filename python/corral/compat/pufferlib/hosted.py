"""Envs of PufferLib's kinds, in Python, as slots of a `VectorEnv`.

A slot is an env with all its agents. Its observation is a dict of the env's buffers, so that
rewards and flags of several agents fit, and the env's own resets stay its own: the slot's episode
never ends.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces as gym_spaces

from corral import errors, python_envs
from corral.compat.pufferlib.base import APIUsageError
from corral.compat.pufferlib.emulation import GymnasiumPufferEnv
from corral.compat.pufferlib.spaces import joint_space
from corral.settings import VecOptions
from corral.vector import VectorEnv

SHOWN = ("observations", "rewards", "terminals", "truncations", "masks")
_NEEDED = ("num_agents", "single_observation_space", "single_action_space", "emulated", *SHOWN)

Batch = tuple[Any, Any, Any, Any, list[Any], Any]
"""Observations, rewards, terminals, truncations, infos, masks."""


class HostedPufferEnv(gymnasium.Env[Any, Any]):
    """A `PufferEnv`, or an env of the emulation, as a Gymnasium env of one slot.

    Attributes:
        puffer: the env.
    """

    def __init__(self, creator: Any, args: Sequence[Any], kwargs: Any, seed: int | None) -> None:
        self.puffer = creator(*args, buf=None, seed=seed, **kwargs)
        check_kind(self.puffer)
        count = int(self.puffer.num_agents)
        one = self.puffer.single_observation_space
        flag, amount = np.bool_, np.finfo(np.float32).max
        self.observation_space = gym_spaces.Dict(
            {
                "observations": joint_space(one, count),
                "rewards": gym_spaces.Box(-amount, amount, (count,), np.float32),
                **{name: gym_spaces.Box(0, 1, (count,), flag) for name in SHOWN[2:]},
            }
        )
        action_space = self.puffer.single_action_space
        # The emulation's only agent takes a label as it is, which is cheaper than an array of it;
        # and its buffers stay what they are.
        is_emulation = isinstance(self.puffer, GymnasiumPufferEnv)
        is_label = is_emulation and isinstance(action_space, gym_spaces.Discrete)
        self.action_space = action_space if is_label else joint_space(action_space, count)
        self._buffers = self._shown() if is_emulation else None
        self.render_mode = getattr(self.puffer, "render_mode", None)

    def reset(
        self, *, seed: int | None = None, options: Any = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Begins anew."""
        infos = (self.puffer.reset() if seed is None else self.puffer.reset(seed=seed))[1]
        return self._shown(), {"told": Told(infos if isinstance(infos, list) else [infos])}

    def step(self, action: Any) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        """Plays one action of each agent, or begins an episode where the last one is over."""
        puffer = self.puffer
        infos = puffer.reset()[1] if puffer.done else puffer.step(action)[4]
        shown = self._buffers or self._shown()
        if not infos:
            return shown, 0.0, False, False, {}
        told = Told(infos if isinstance(infos, list) else [infos])
        return shown, 0.0, False, False, {"told": told}

    def _shown(self) -> dict[str, Any]:
        puffer = self.puffer
        return {
            "observations": puffer.observations,
            "rewards": puffer.rewards,
            "terminals": puffer.terminals,
            "truncations": puffer.truncations,
            "masks": puffer.masks,
        }

    def notify(self) -> None:
        """The env's own."""
        self.puffer.notify()

    def render(self) -> Any:
        """What the env draws."""
        return self.puffer.render()

    def close(self) -> None:
        """Closes the env."""
        self.puffer.close()


class Told:
    """Infos, which the batch's infos carry unopened.

    Attributes:
        infos: the dicts.
    """

    def __init__(self, infos: list[Any]) -> None:
        self.infos = infos


def check_kind(env: Any) -> None:
    """Errors for what is no env of PufferLib's kinds."""
    missing = [name for name in _NEEDED if not hasattr(env, name)]
    if missing:
        raise APIUsageError(
            f"env_creator gives a {type(env).__name__}, which has no {missing[0]}: it gives a "
            "PufferEnv, or wraps a Gymnasium env in emulation.GymnasiumPufferEnv(env, buf=buf)"
        )


class HostedEnvs:
    """Envs of creators, some slots of one vec env, each with `num_agents` agents.

    Attributes:
        made: the envs that live in this process; empty where workers have them.
    """

    def __init__(
        self,
        creators: Sequence[Callable[..., Any]],
        args: Sequence[Sequence[Any]],
        kwargs: Sequence[Mapping[str, Any]],
        first_seed: int | None,
        **how: Any,
    ) -> None:
        is_here = how.get("runner") == "serial"
        self.num_envs = len(creators)
        self.made: list[Any] = [None] * len(creators) if is_here else []
        made = self.made
        factories = []
        for number, creator in enumerate(creators):
            seed = None if first_seed is None else first_seed + number
            factory = _Factory(creator, args[number], kwargs[number], seed)
            factories.append(_noted(made, number, factory) if is_here else factory)
        name = python_envs.name_of(creators[0])
        options = VecOptions(autoreset_mode="disabled")
        try:
            self.envs: VectorEnv = python_envs.hosted(name, factories, options, how)
        except errors.SpaceError as error:
            raise APIUsageError(str(error)) from error
        joint: Any = self.envs.single_action_space
        self._actions = (len(creators), *joint.shape)
        self._is_here = is_here
        self._landed: Batch | None = None

    def reset(self, seed: int | None) -> None:
        """Begins new episodes, env i with `seed + i`; `recv` gives the result."""
        self._landed = None
        if self._is_here:
            self._landed = self._batch(*self.envs.reset(seed=seed))
            return
        # Steps that nobody waits for, and their errors, are of episodes that end here.
        with contextlib.suppress(Exception):
            self.envs.drain()
        self.envs.send_reset(seed=seed)

    def send(self, actions: Any) -> None:
        """Steps envs in this process, or has workers step them."""
        actions = np.asarray(actions).reshape(self._actions)
        if self._is_here:
            observations, _, _, _, infos = self.envs.step(actions)
            self._landed = self._batch(observations, infos)
        else:
            self.envs.send(actions)

    def recv(self) -> Batch:
        """What the last reset or send led to."""
        if self._landed is None:
            observations, _, _, _, infos = self.envs.recv()
            return self._batch(observations, infos)
        batch, self._landed = self._landed, None
        return batch

    def _batch(self, shown: dict[str, Any], infos: dict[str, Any]) -> Batch:
        told = []
        if "told" in infos:
            for one in infos["told"][infos["_told"]]:
                told.extend(one.infos)
        o, r, d, t, m = (_joined(shown[name]) for name in SHOWN)
        return o, r, d, t, told, m

    def notify(self) -> None:
        """Calls each env's `notify`."""
        self.envs.call("notify")

    def close(self) -> None:
        """Closes the envs."""
        self.envs.close()


class _Factory:
    """Makes a hosted env, in any process."""

    def __init__(self, *arguments: Any) -> None:
        self.arguments = arguments

    def __call__(self) -> HostedPufferEnv:
        return HostedPufferEnv(*self.arguments)


def _noted(made: list[Any], number: int, factory: _Factory) -> Callable[[], HostedPufferEnv]:
    def make() -> HostedPufferEnv:
        env = factory()
        made[number] = env.puffer
        return env

    return make


def _joined(array: Any) -> Any:
    """Envs and their agents as one axis."""
    return array.reshape(-1, *array.shape[2:])
