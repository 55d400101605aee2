"""LeRobot's env factories over any env; see `make_env`.

An EnvHub repository's `env.py` defines `make_env(n_envs, use_async_envs)`. LeRobot's rollout reads
the observation's keys `pixels`, `agent_pos` and others, the calls `_max_episode_steps`,
`task_description`, `task` and `render`, and `is_success` of infos. `LeRobotVectorEnv` answers these
over a `corral.VectorEnv`. LeRobot itself is not imported.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium import spaces as gym_spaces
from gymnasium.vector import VectorEnv as GymnasiumVectorEnv

from corral import errors, python_envs, registry, spaces
from corral.python_envs import name_of
from corral.vector import VectorEnv

Success = Callable[..., Any]
_NEW_ROLLOUT = "lerobot_new_rollout"
_STATE = "agent_pos"
_PIXELS = "pixels"


def make_env(
    env: Any,
    *,
    task: str | Sequence[str] = "",
    success: str | Success | None = None,
    pixels: bool = False,
    **options: Any,
) -> Callable[..., dict[str, dict[int, GymnasiumVectorEnv[Any, Any, Any]]]]:
    """A factory as LeRobot calls it, over any env: `make_env = make_env("…")` is an EnvHub's
    `env.py`.

    Args:
        env: a corral id, a function that makes a Gymnasium env, or a dict of these: by suite, a
            list with one for each task.
        task: what the robot is told to do; with a dict of suites a list, one for each task of all
            suites. A text in the env's observation comes before it.
        success: when an episode that ended is one that succeeded: "terminated", or a function of
            `rewards, terminated, truncated, infos` that gives a bool for each env. None: what the
            env's infos tell as `is_success`, if they do.
        pixels: whether `render` gives the observation's `pixels`.
        **options: of `corral.make_vec` for an id, of `corral.from_gymnasium` for a function.

    Returns:
        `make_env(n_envs=1, use_async_envs=False, cfg=None)`, which gives the vec envs by suite and
        task number, reset in the step that ends an episode, as LeRobot's own are. With
        `use_async_envs` functions' envs are hosted in worker processes; envs of an id run in
        threads in any case. `cfg` is not used.

    Raises:
        ArgumentError, ArgumentTypeError: name what is wrong.
    """
    suites = _suites(env)
    if success is not None and success != "terminated" and not callable(success):
        raise errors.ArgumentError(f'success is "terminated", a function or None, not {success!r}')
    count = sum(map(len, suites.values()))
    told = [task] * count if isinstance(task, str) else list(task)
    if len(told) != count:
        raise errors.ArgumentError(f"task has {len(told)} texts for {count} tasks")

    def factory(
        n_envs: int = 1, use_async_envs: bool = False, cfg: Any = None
    ) -> dict[str, dict[int, GymnasiumVectorEnv[Any, Any, Any]]]:
        remaining = iter(told)
        return {
            suite: {
                number: LeRobotVectorEnv(
                    _vec(one, n_envs, use_async_envs, pixels, options),
                    next(remaining),
                    success,
                    _frame_shape(one, options) if pixels else None,
                )
                for number, one in enumerate(envs)
            }
            for suite, envs in suites.items()
        }

    return factory


def _suites(env: Any) -> dict[str, list[Any]]:
    if not isinstance(env, Mapping):
        return {name_of(_checked(env)): [env]}
    suites = {str(suite): list(envs) for suite, envs in env.items()}
    if not suites or not all(suites.values()):
        raise errors.ArgumentError("there are no envs: give each suite at least one task")
    for envs in suites.values():
        for one in envs:
            _checked(one)
    return suites


def _checked(env: Any) -> Any:
    if not isinstance(env, str) and not callable(env):
        raise errors.ArgumentTypeError(
            f"env is a corral id or a function that makes a Gymnasium env, not {env!r}"
        )
    return env


def _vec(
    env: Any, num_envs: int, in_workers: bool, pixels: bool, options: Mapping[str, Any]
) -> VectorEnv:
    options = {"autoreset_mode": "same_step", **options}
    if isinstance(env, str):
        if pixels:
            options.setdefault("render_mode", "rgb_array")
        return registry.make_vec(env, num_envs, **options)
    options.setdefault("runner", "process" if in_workers and num_envs > 1 else "serial")
    return python_envs.from_gymnasium(env, num_envs, **options)


def _frame_shape(env: Any, options: Mapping[str, Any]) -> tuple[int, ...]:
    """The shape of a picture, drawn by an env of its own: there is none before a reset."""
    with _vec(env, 1, False, True, options) as envs:
        envs.reset()
        drawn = envs.render()
    return np.asarray(drawn[0] if drawn else ()).shape


class LeRobotVectorEnv(GymnasiumVectorEnv[Any, Any, Any]):
    """A `corral.VectorEnv` as LeRobot's rollout reads it; closing it closes that.

    Observations are a dict. A Box of uint8 images `(height, width, channels)` is `pixels`; any
    other Box, a Discrete, a MultiDiscrete or a MultiBinary is `agent_pos`, float32. Of a Dict each
    key stays, but for texts, and for `image`, which is `pixels`; labels are float32. A Discrete
    action is one number `(num_envs, 1)`, which is rounded.

    Attributes:
        envs: the vec env underneath.
    """

    def __init__(
        self,
        envs: VectorEnv,
        task: str,
        success: str | Success | None,
        frame_shape: tuple[int, ...] | None,
    ) -> None:
        self.envs = envs
        self.task = task
        self.num_envs = envs.num_envs
        self.metadata = {"render_fps": 30, **envs.metadata}
        self.spec, self.render_mode = envs.spec, envs.render_mode
        self.autoreset_mode = envs.autoreset_mode
        self._success = success
        self._shows_pixels = frame_shape is not None
        self._texts: list[str] = [task] * envs.num_envs
        self._limit = _limit(envs)
        one = envs.single_observation_space
        self._fields = _fields(one)
        self._is_label = isinstance(envs.single_action_space, gym_spaces.Discrete)
        self.single_action_space = (
            _shown(envs.single_action_space) if self._is_label else envs.single_action_space
        )
        shown = {key: _shown(space) for key, _, space in self._fields}
        if frame_shape is not None:
            shown[_PIXELS] = gym_spaces.Box(0, 255, frame_shape, np.uint8)
        self.single_observation_space = gym_spaces.Dict(shown)
        self.action_space = spaces.batched(self.single_action_space, self.num_envs)
        self.observation_space = spaces.batched(self.single_observation_space, self.num_envs)

    def reset(
        self, *, seed: Any = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """As `VectorEnv.reset`; LeRobot's own option does nothing."""
        own = {name: value for name, value in (options or {}).items() if name != _NEW_ROLLOUT}
        observations, infos = self.envs.reset(seed=seed, options=own or None)
        return self._named(observations), infos

    def step(self, actions: Any) -> tuple[dict[str, Any], Any, Any, Any, dict[str, Any]]:
        """As `VectorEnv.step`, with `is_success` bool `(num_envs,)` of episodes that ended in
        `infos["final_info"]`."""
        if self._is_label:
            actions = np.rint(np.asarray(actions).reshape(self.num_envs)).astype(np.int64)
        observations, rewards, terminated, truncated, infos = self.envs.step(actions)
        ended = terminated | truncated
        if ended.any():
            final = infos.setdefault("final_info", {})
            if self._success == "terminated":
                final["is_success"] = terminated
            elif callable(self._success):
                succeeded = self._success(rewards, terminated, truncated, infos)
                final["is_success"] = np.asarray(succeeded, np.bool_) & ended
            # LeRobot takes an absent value for success.
            final.setdefault("is_success", np.zeros(self.num_envs, np.bool_))
            final["_is_success"] = ended
        return self._named(observations), rewards, terminated, truncated, infos

    def call(self, name: str, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """What LeRobot asks of each env; any other name is the env's own, as of
        `VectorEnv.call`."""
        if name == "_max_episode_steps":
            return (self._limit,) * self.num_envs
        if name in ("task_description", "task"):
            return tuple(self._texts)
        if name == "render":
            return tuple(self._frames())
        return self.envs.call(name, *args, **kwargs)

    def get_attr(self, name: str) -> tuple[Any, ...]:
        """As `call`, of attributes."""
        if name in ("_max_episode_steps", "task_description", "task"):
            return self.call(name)
        return self.envs.get_attr(name)

    def render(self) -> tuple[Any, ...] | None:
        """As `VectorEnv.render`."""
        return self.envs.render()

    def close_extras(self, **kwargs: Any) -> None:
        """Closes the envs."""
        self.envs.close()

    def _frames(self) -> npt.NDArray[Any]:
        drawn = self.envs.render()
        if drawn is None:
            raise errors.UnsupportedError(
                'these envs draw no pictures: make them with render_mode="rgb_array"'
            )
        return np.stack([np.asarray(frame) for frame in drawn])

    def _named(self, observations: Any) -> dict[str, Any]:
        named: dict[str, Any] = {}
        for key, path, space in self._fields:
            value = observations if path is None else observations[path]
            named[key] = _array(value, space)
        for path in _texts_of(self.envs.single_observation_space):
            texts = observations if path is None else observations[path]
            self._texts = [str(text) for text in texts]
            break
        if self._shows_pixels:
            named[_PIXELS] = self._frames()
        return named


def _limit(envs: VectorEnv) -> int:
    limit = envs.max_episode_steps
    if limit is None and envs.spec is not None:
        limit = envs.spec.max_episode_steps
    if limit is None:
        raise errors.ArgumentError(
            "LeRobot plays at most so many steps as an episode has, and these envs have no limit: "
            "give max_episode_steps"
        )
    return int(limit)


def _is_image(space: Any) -> bool:
    return (
        isinstance(space, gym_spaces.Box)
        and space.dtype == np.uint8
        and len(space.shape) == 3
        and space.shape[2] < min(space.shape[:2])
    )


_ARRAYS = (
    gym_spaces.Box,
    gym_spaces.Discrete,
    gym_spaces.MultiDiscrete,
    gym_spaces.MultiBinary,
)


def _fields(space: Any) -> list[tuple[str, str | None, Any]]:
    """What is shown: its key, its key in the env's observation, and its space."""
    if isinstance(space, _ARRAYS):
        return [(_PIXELS if _is_image(space) else _STATE, None, space)]
    if isinstance(space, gym_spaces.Text):
        return []
    if not isinstance(space, gym_spaces.Dict):
        raise errors.UnsupportedError(
            f"LeRobot takes observations by name, and these are {space}: make them a Dict or a Box "
            "by a wrapper"
        )
    has_pixels = _PIXELS in space.spaces
    return [
        (_PIXELS if key == "image" and _is_image(one) and not has_pixels else key, key, one)
        for key, one in space.items()
        if not isinstance(one, gym_spaces.Text)
    ]


def _texts_of(space: Any) -> list[str | None]:
    """Where the texts of an observation are."""
    if isinstance(space, gym_spaces.Text):
        return [None]
    if isinstance(space, gym_spaces.Dict):
        return [key for key, one in space.items() if isinstance(one, gym_spaces.Text)]
    return []


def _shown(space: gymnasium.Space[Any]) -> gymnasium.Space[Any]:
    if isinstance(space, gym_spaces.Discrete):
        first = float(int(space.start))
        return gym_spaces.Box(first, first + float(int(space.n)) - 1, (1,), np.float32)
    if isinstance(space, gym_spaces.MultiDiscrete | gym_spaces.MultiBinary):
        return gym_spaces.Box(-np.inf, np.inf, space.shape, np.float32)
    return space


def _array(value: Any, space: Any) -> Any:
    if isinstance(space, gym_spaces.Discrete):
        return np.asarray(value, np.float32)[:, None]
    if isinstance(space, gym_spaces.MultiDiscrete | gym_spaces.MultiBinary):
        return np.asarray(value, np.float32)
    return value
