"""`SlotEnv`: one env of a vec env, seen by itself.

Gymnasium's vector envs hold single envs, and programs ask each of them by `call` and `get_attr` for
what every env has: its `spec`, its spaces, a picture. The envs of a native vec env are no Python
objects. A `SlotEnv` stands for one of them, and answers as the env of `corral.make` would.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

import gymnasium

from corral import errors

if TYPE_CHECKING:
    from corral.vector import VectorEnv


class SlotEnv(gymnasium.Env[Any, Any]):
    """One env of a vec env: `envs.get_attr("unwrapped")[i]`, for instance.

    It shows what the env is and what it looks like. Only the vec env steps, resets and closes it.
    Every other attribute is a property of the env (see `VectorEnv.properties`), to get or to set.

    Attributes:
        number: the env's number in the vec env.
        max_episode_steps: the time limit in force, or None.
    """

    def __init__(self, envs: VectorEnv, number: int) -> None:
        self._envs, self.number = envs, number
        self.spec = envs.spec
        self.observation_space = envs.single_observation_space
        self.action_space = envs.single_action_space
        self.render_mode = envs.render_mode
        self.max_episode_steps = envs.max_episode_steps
        metadata = dict(envs.metadata)
        # This key is of vector envs alone.
        metadata.pop("autoreset_mode", None)
        self.metadata = metadata

    def render(self) -> Any:
        """A picture or text of this env, as `VectorEnv.render` gives one of each."""
        drawn = self._envs.render([self.number])
        return None if drawn is None else drawn[0]

    def save_state(self) -> bytes:
        """All that the rest of the run of this env depends on; see `VectorEnv.save_state`."""
        return self._envs.save_state(self.number)

    def load_state(self, state: bytes) -> None:
        """Takes up what `save_state` gave; see `VectorEnv.load_state`."""
        self._envs.load_state(state, self.number)

    def step(self, action: Any) -> NoReturn:
        """Refused: the vec env steps its envs."""
        self._refuse("step", "step the vec env, or send to this env's number and recv")

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> NoReturn:
        """Refused: the vec env resets its envs."""
        self._refuse("reset", 'reset the vec env with the option "reset_mask"')

    def close(self) -> NoReturn:
        """Refused: the vec env closes its envs."""
        self._refuse("close", "close the vec env")

    @property  # type: ignore[misc]
    def np_random(self) -> NoReturn:  # type: ignore[override]
        """Refused: the env's random stream is not one of NumPy's objects."""
        raise errors.UnknownNameError(
            f"{self} has no np_random: its random stream is not an object of NumPy. "
            "reset(seed=…) of the vec env seeds it"
        )

    def __getattr__(self, name: str) -> Any:
        """A property of the env."""
        if name.startswith("_"):
            raise AttributeError(f"SlotEnv has no attribute '{name}'")
        try:
            return self._envs.native.call(name, (), {}, [self.number], "get")[0]
        except errors.UnsupportedError as error:
            raise errors.UnknownNameError(str(error)) from error

    def __setattr__(self, name: str, value: Any) -> None:
        """Sets a property of the env."""
        if name.startswith("_") or name in _NAMES or name == "number":
            super().__setattr__(name, value)
            return
        try:
            self._envs.native.call(name, (value,), {}, [self.number], "set")
        except errors.UnsupportedError as error:
            raise errors.UnknownNameError(str(error)) from error

    def _refuse(self, name: str, instead: str) -> NoReturn:
        raise errors.UnsupportedError(f"{self} takes no {name} of its own: {instead}")

    def __reduce__(self) -> NoReturn:
        raise errors.UnsupportedError(f"{self} is a part of its vec env, and cannot leave it")

    def __str__(self) -> str:
        return f"<env {self.number} of corral.VectorEnv({self._envs.native.id})>"

    __repr__ = __str__


# What a `SlotEnv` answers itself; any other name is the env's own.
_NAMES = frozenset(
    (
        *("spec", "observation_space", "action_space", "metadata", "render_mode"),
        *("max_episode_steps", "unwrapped", "render", "save_state", "load_state"),
        *("step", "reset", "close", "np_random"),
        *("has_wrapper_attr", "get_wrapper_attr", "set_wrapper_attr"),
    )
)


def is_known(envs: VectorEnv, name: Any) -> bool:
    """Whether `answers` has an answer: Python envs answer for themselves."""
    return envs.native.about is None and isinstance(name, str) and name in _NAMES


def answers(
    envs: VectorEnv, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Any, ...]:
    """For each env what the `SlotEnv` gives by a name that `is_known`: its attribute, or the
    result of its method."""
    if name == "render":
        # All pictures by one call: the envs draw them side by side.
        return envs.render() or (None,) * envs.num_envs
    found = [getattr(SlotEnv(envs, number), name) for number in range(envs.num_envs)]
    if name == "unwrapped" or not callable(found[0]):
        return tuple(found)
    return tuple(one(*args, **kwargs) for one in found)
