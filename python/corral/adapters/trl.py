"""TRL's environment classes over any env; see `corral.to_trl`.

TRL makes one instance for each completion of a batch, calls `reset` with the columns of the
dataset's row, and offers every other public method as a tool. So a class here has no public methods
but `reset`, `get_reward` and its one tool.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces as gym_spaces

from corral import errors, registry
from corral.python_envs import name_of
from corral.single import Env

Describe = Callable[[Any, dict[str, Any]], str]

OVER = "The episode is over."
_COLOURED = re.compile("\x1b\\[[0-9;]+m(.*?)\x1b\\[0m", re.DOTALL)


def rows(indices: Sequence[int], prompt: str, column: str = "index") -> list[dict[str, Any]]:
    """Rows for `datasets.Dataset.from_list`: a user's message and an index each.

    Args:
        indices: the episodes, one a row. All completions of a row play the same one.
        prompt: what the user says. The first observation is appended to it.
        column: the name of the column with the index.
    """
    message = {"role": "user", "content": prompt}
    return [{"prompt": [dict(message)], column: int(index)} for index in indices]


class TrlEnvironment:
    """One env as TRL's trainers drive it; a subclass is made by `corral.to_trl`.

    Attributes:
        env: the env.
        reward: the sum of the episode's rewards.
        steps: how many actions were played.
        terminated, truncated: the last step's.
        observation, info: the env's last.
    """

    _make: Callable[[], gymnasium.Env[Any, Any]]
    _describe: Describe
    _column: str

    def __init__(self) -> None:
        self.env = type(self)._make()
        self.reward = 0.0
        self.steps = 0
        self.terminated = self.truncated = False
        self.observation: Any = None
        self.info: dict[str, Any] = {}

    def reset(self, **row: Any) -> str:
        """Begins the episode of the row's index.

        Args:
            **row: the columns of the dataset's row; all but the index are left alone.

        Returns:
            The first observation, which TRL appends to the user's message.

        Raises:
            ArgumentError: for a row without an index.
        """
        if row.get(self._column) is None:
            raise errors.ArgumentError(
                f"the row has no '{self._column}', which says what episode the completions of a "
                f"group share; its columns are {', '.join(row) or 'none'}: make the dataset of "
                "corral.adapters.trl.rows(indices, prompt)"
            )
        index = int(row[self._column])
        if isinstance(self.env, Env):
            self.observation, self.info = self.env.reset(options={"index": index})
        else:
            self.observation, self.info = self.env.reset(seed=index)
        self.reward, self.steps = 0.0, 0
        self.terminated = self.truncated = False
        return self._text()

    def get_reward(self) -> float:
        """The sum of the episode's rewards, which TRL trains on."""
        return self.reward

    def _text(self) -> str:
        return type(self)._describe(self.observation, self.info)

    def _play(self, action: Any) -> str:
        if self.terminated or self.truncated:
            raise errors.ResetNeededError(f"{OVER} No action can be played.")
        self.observation, reward, terminated, truncated, self.info = self.env.step(action)
        self.terminated, self.truncated = bool(terminated), bool(truncated)
        self.reward += float(reward)
        self.steps += 1
        text = self._text()
        return f"{text}\n{OVER}" if self.terminated or self.truncated else text


def text_of(observation: Any) -> str:
    """An observation in words: a text as it is, numbers rounded to three digits, and of a dict or
    tuple a line for each part."""
    if isinstance(observation, str):
        return observation
    if isinstance(observation, dict):
        return "\n".join(f"{name}: {text_of(value)}" for name, value in observation.items())
    if isinstance(observation, tuple):
        return "\n".join(text_of(value) for value in observation)
    if isinstance(observation, np.ndarray | np.generic | int | float):
        values = np.asarray(observation)
        if values.dtype.kind == "f":
            values = np.round(values.astype(np.float64), 3)
        return str(values.tolist())
    return str(observation)


def environment(
    env: str | Callable[[], gymnasium.Env[Any, Any]],
    describe: Describe | None,
    tool: str,
    about: str,
    actions: Sequence[str] | None,
    column: str,
    options: dict[str, Any],
) -> type[TrlEnvironment]:
    """See `corral.to_trl`."""
    maker = _maker(env, options)
    probe = maker()
    try:
        play, is_drawn = _tool(probe.action_space, tool, about, actions), _is_drawn(probe)
    finally:
        probe.close()
    if not tool.isidentifier() or tool.startswith("_") or hasattr(TrlEnvironment, tool):
        raise errors.ArgumentError(
            f"tool is {tool!r}: it is the name of a method that has no underscore in front, and is "
            "not reset or get_reward"
        )
    name = "".join(letter if letter.isalnum() else "_" for letter in name_of(env))
    made: type[TrlEnvironment] = type(
        name if name.isidentifier() else f"Env_{name}",
        (TrlEnvironment,),
        {
            "__doc__": about,
            "__module__": __name__,
            "_make": staticmethod(maker),
            "_column": column,
            tool: play,
        },
    )
    if describe is None and is_drawn:
        made._text = _drawn  # type: ignore[method-assign]
    made._describe = staticmethod(describe or _described)
    return made


def _described(observation: Any, info: dict[str, Any]) -> str:
    return text_of(observation)


def _drawn(self: TrlEnvironment) -> str:
    """The picture in letters; colours, which a model does not see, become brackets."""
    return _COLOURED.sub(r"[\1]", str(self.env.render()).strip("\n"))


def _is_drawn(env: gymnasium.Env[Any, Any]) -> bool:
    return env.render_mode == "ansi"


def _maker(env: Any, options: dict[str, Any]) -> Callable[[], gymnasium.Env[Any, Any]]:
    if isinstance(env, str):
        return lambda: registry.make(env, **options)
    if not callable(env):
        raise errors.ArgumentTypeError(
            f"env is an id or a function that makes a Gymnasium env, not {env!r}"
        )
    if options:
        raise errors.ArgumentError(
            f"{', '.join(options)}: options of an id, but what makes the env is a function"
        )
    maker: Callable[[], gymnasium.Env[Any, Any]] = env
    return maker


def _tool(space: Any, tool: str, about: str, actions: Sequence[str] | None) -> Any:
    """The method that plays an action: TRL makes the tool of its signature and docstring."""
    kind, told, convert = _argument(space, actions)

    def play(self: TrlEnvironment, action: Any) -> str:
        return self._play(convert(action))

    play.__name__, play.__qualname__ = tool, f"TrlEnvironment.{tool}"
    play.__doc__ = (
        f"{about}\n\nArgs:\n    action: {told}\n\nReturns:\n    What the environment shows then.\n"
    )
    play.__annotations__ = {"action": kind, "return": str}
    own, given = inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD
    play.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [
            inspect.Parameter("self", own),
            inspect.Parameter("action", given, annotation=kind),
        ],
        return_annotation=str,
    )
    return play


def _argument(space: Any, actions: Sequence[str] | None) -> tuple[Any, str, Callable[[Any], Any]]:
    """The type of a tool's argument, what is said of it, and how it becomes an action."""
    if actions is not None:
        return _named(space, list(actions))
    if isinstance(space, gym_spaces.Text):
        return str, f"A text of at most {space.max_length} characters.", _checked_text(space)
    if isinstance(space, gym_spaces.Discrete):
        first, last = int(space.start), int(space.start + space.n - 1)
        return int, f"A whole number from {first} to {last}.", _label(first, last)
    if isinstance(space, gym_spaces.MultiDiscrete) and space.nvec.ndim == 1:
        highest = ", ".join(str(int(n) - 1) for n in space.nvec)
        told = f"{len(space.nvec)} whole numbers from 0, of which the highest are {highest}."
        return list[int], told, _numbers(space)
    if isinstance(space, gym_spaces.Box) and len(space.shape) == 1:
        low, high = text_of(space.low), text_of(space.high)
        told = f"{space.shape[0]} numbers. The lowest are {low}, and the highest {high}."
        return list[float], told, _numbers(space)
    raise errors.UnsupportedError(
        f"no tool can be made of the actions {space}: a Text, a Discrete, a MultiDiscrete or a Box "
        "of one axis can; turn them into one by a wrapper"
    )


def _named(space: Any, names: list[str]) -> tuple[Any, str, Callable[[Any], Any]]:
    if not isinstance(space, gym_spaces.Discrete) or len(names) != int(space.n):
        raise errors.ArgumentError(
            f"actions names {len(names)} actions, one for each label of a Discrete, but the env's "
            f"are {space}"
        )
    if len(set(names)) != len(names):
        raise errors.ArgumentError(f"actions names an action twice: {names}")
    places = {name: int(space.start) + place for place, name in enumerate(names)}

    def convert(given: Any) -> int:
        if given not in places:
            raise errors.InvalidActionError(f"action is one of {', '.join(names)}, not {given!r}")
        return places[given]

    listed = ", ".join(f'"{name}"' for name in names)
    return str, f"What to do. (choices: [{listed}])", convert


def _label(first: int, last: int) -> Callable[[Any], Any]:
    def convert(given: Any) -> int:
        is_whole = isinstance(given, int | float) and not isinstance(given, bool)
        if not is_whole or given != int(given) or not first <= given <= last:
            raise errors.InvalidActionError(
                f"action is a whole number from {first} to {last}, not {given!r}"
            )
        return int(given)

    return convert


def _numbers(space: Any) -> Callable[[Any], Any]:
    def convert(given: Any) -> Any:
        try:
            array = np.asarray(given, np.float64)
            values = array.astype(space.dtype)
        except (TypeError, ValueError):
            raise errors.InvalidActionError(f"action is a list of numbers, not {given!r}") from None
        is_whole = values.dtype.kind == "f" or bool((values == array).all())
        if values.shape != space.shape or not is_whole or not space.contains(values):
            raise errors.InvalidActionError(f"action is one of {space}, not {given!r}")
        return values

    return convert


def _checked_text(space: gym_spaces.Text) -> Callable[[Any], Any]:
    def convert(given: Any) -> str:
        if not isinstance(given, str) or not space.contains(given):
            raise errors.InvalidActionError(
                f"action is a text of {space.min_length} to {space.max_length} of the characters "
                f"{space.characters!r}, not {given!r}"
            )
        return given

    return convert
