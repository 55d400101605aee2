"""Python envs for the tests, importable by worker processes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces


class Colour(spaces.Space[str]):
    """A space that Gymnasium does not know."""

    NAMES = ("red", "green", "blue")

    def __init__(self) -> None:
        super().__init__(shape=None, dtype=None)

    def sample(self, mask: Any | None = None, probability: Any | None = None) -> str:
        return self.NAMES[int(self.np_random.integers(3))]

    def contains(self, x: Any) -> bool:
        return x in self.NAMES

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Colour)

    __hash__ = None  # type: ignore[assignment]


def box(shape: tuple[int, ...] = (4,), dtype: type = np.float32) -> spaces.Box:
    return spaces.Box(-10, 10, shape, dtype)


# In a text they keep their order; in the set that is the default, in old Gymnasiums, they do not.
LETTERS = "abcdefghijü"

SPACES: dict[str, Callable[[], spaces.Space[Any]]] = {
    "box": box,
    "box of float64": lambda: box((2, 3), np.float64),
    "scalar box": lambda: box(()),
    "image": lambda: spaces.Box(0, 255, (5, 4, 3), np.uint8),
    "discrete": lambda: spaces.Discrete(5),
    "discrete with a start": lambda: spaces.Discrete(5, start=-2),
    "multi-discrete": lambda: spaces.MultiDiscrete([3, 5, 2]),
    "multi-discrete in two axes": lambda: spaces.MultiDiscrete([[3, 5], [2, 4]]),
    "multi-binary": lambda: spaces.MultiBinary(6),
    "text": lambda: spaces.Text(8, min_length=1, charset=LETTERS),
    "other text": lambda: spaces.Text(8, min_length=1, charset="abc"),
    "longer sequence": lambda: spaces.Sequence(spaces.Discrete(5)),
    "dict": lambda: spaces.Dict({"b": box(), "a": spaces.Discrete(3)}),
    "tuple": lambda: spaces.Tuple((box(), spaces.Discrete(3))),
    "nested": lambda: spaces.Dict(
        {
            "outer": spaces.Dict(
                {"x": box((2,)), "pair": spaces.Tuple((spaces.Discrete(3), box()))}
            ),
            "mark": spaces.MultiBinary(3),
            "word": spaces.Text(4, min_length=1, charset=LETTERS),
        }
    ),
    "sequence": lambda: spaces.Sequence(spaces.Discrete(4)),
    "graph": lambda: spaces.Graph(box((2,)), spaces.Discrete(3)),
    "custom": Colour,
}


def weight(action: Any) -> float:
    """A number that every part of an action has its share in."""
    if isinstance(action, str):
        return float(sum(map(ord, action)))
    if isinstance(action, dict):
        return sum((weight(action[key]) * (k + 2) for k, key in enumerate(sorted(action))), 0.0)
    if isinstance(action, tuple):
        return sum((weight(one) * (k + 2) for k, one in enumerate(action)), 0.0)
    array = np.asarray(action, np.float64).ravel()
    return float(array @ np.arange(1, array.size + 1))


class Drawn(gymnasium.Env[Any, Any]):
    """Observations drawn from a space; the episode ends when it is its time.

    Rewards depend on the action and on everything before it. Infos are those of `tell`.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 7}  # noqa: RUF012

    def __init__(
        self,
        space: str = "box",
        length: int = 4,
        action: str = "discrete",
        infos: str | None = None,
        render_mode: str | None = None,
    ) -> None:
        self.observation_space = SPACES[space]()
        self.action_space = SPACES[action]()
        self.length = length
        self.render_mode = render_mode
        self.tell = getattr(self, f"_{infos}") if infos else lambda: {}
        self.time = 0
        self.resets = 0
        self.level = 0
        self.seen: list[Any] = []

    def _observe(self) -> Any:
        self.observation_space.seed(int(self.np_random.integers(2**31)))
        return self.observation_space.sample()

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        super().reset(seed=seed)
        self.time = 0
        self.resets += 1
        self.seen.append((seed, options))
        return self._observe(), self.tell()

    def step(self, action: Any) -> Any:
        self.time += 1
        assert self.action_space.contains(action), action
        reward = weight(action) + float(self.np_random.random())
        over = self.time >= self.length
        even = self.length % 2 == 0
        return self._observe(), reward, over and even, over and not even, self.tell()

    def render(self) -> Any:
        return np.full((3, 2, 3), self.time, np.uint8)

    def double(self, number: float, *, plus: float = 0) -> float:
        return 2 * number + plus

    def history(self) -> list[Any]:
        return self.seen

    def _python(self) -> dict[str, Any]:
        return {"int": self.time, "float": self.time / 2, "bool": self.time > 1, "none": None}

    def _numpy(self) -> dict[str, Any]:
        time = self.time
        return {
            "float32": np.float32(time / 3),
            "float64": np.float64(time / 3),
            "int16": np.int16(time),
            "int64": np.int64(time),
            "uint8": np.uint8(time),
            "bool_": np.bool_(time > 1),
            "complex": np.complex128(time),
        }

    def _arrays(self) -> dict[str, Any]:
        time = self.time
        return {
            "floats": np.arange(3, dtype=np.float32) + time,
            "grid": np.full((2, 2), time, np.uint8),
            "turned": np.arange(6, dtype=np.int32).reshape(2, 3).T + time,
            "words": np.array(["abc", "de"]),
            "empty": np.zeros((0, 2)),
        }

    def _objects(self) -> dict[str, Any]:
        return {
            "word": "ü" * self.time,
            "list": [self.time, {"a": 1}],
            "pair": (1, "two"),
            "set": {self.time},
            "huge": "x" * 2000,
        }

    def _nested(self) -> dict[str, Any]:
        inner = {"x": self.time, "array": np.ones(2) * self.time, "empty": {}}
        return {"outer": {"inner": inner, "word": "yes"}, "nothing": {}}

    def _sparse(self) -> dict[str, Any]:
        told: dict[str, Any] = {f"only {self.length}": 1.5, "always": self.time}
        if self.time % 2:
            told |= {"odd": np.float32(self.time), "deep": {f"at {self.time}": "yes"}}
        return told

    def _changing(self) -> dict[str, Any]:
        return {
            "scalar": 1.5 if self.length % 2 else 2,
            "small": np.float32(1.5) if self.time else 1.0,
        }


INFOS = ("python", "numpy", "arrays", "objects", "nested", "sparse", "changing")


class Broken(Drawn):
    """Fails as told: {"where": …} with what is to be raised or returned."""

    def __init__(self, where: str, what: Any, at: int = 2, **how: Any) -> None:
        super().__init__(**how)
        self.where, self.what, self.at = where, what, at
        if where == "init":
            raise what

    def _fail(self, where: str, good: Any) -> Any:
        if self.where != where or self.time < self.at:
            return good
        if isinstance(self.what, BaseException):
            raise self.what
        return self.what(*good) if callable(self.what) else self.what

    def reset(self, **how: Any) -> Any:
        good = super().reset(**how)
        self.time = self.at if self.where == "reset" else 0
        return self._fail("reset", good)

    def step(self, action: Any) -> Any:
        return self._fail("step", super().step(action))


class Trouble(Exception):
    """An error of an env's own, that takes what no other does."""

    def __init__(self, what: str = "trouble", *, code: int = 7) -> None:
        super().__init__(what)
        self.code = code


class Buffered(Drawn):
    """Writes every observation into one array, and every info into another."""

    def __init__(self, **how: Any) -> None:
        super().__init__(**how)
        self.buffer = np.zeros(4, np.float32)
        self.told = np.zeros(2)

    def _observe(self) -> Any:
        self.buffer[:] = self.time
        self.told[:] = self.time
        self.np_random.random()
        return self.buffer

    def step(self, action: Any) -> Any:
        return *super().step(action)[:4], {"told": self.told}


class Old:
    """As old gym's: `seed` beside `reset`, tuples of four, and no Gymnasium at all."""

    observation_space = spaces.Box(-1, 1, (2,), np.float32)
    action_space = spaces.Discrete(2)

    def __init__(self, length: int = 3, cut: bool = True) -> None:
        self.length, self.cut = length, cut
        self.random = np.random.default_rng()
        self.closed = False

    def seed(self, seed: int | None = None) -> list[int | None]:
        self.random = np.random.default_rng(seed)
        return [seed]

    def reset(self) -> Any:
        self.time = 0
        return self.random.uniform(-1, 1, 2).astype(np.float32)

    def step(self, action: Any) -> Any:
        self.time += 1
        over = self.time >= self.length
        info = {"TimeLimit.truncated": self.cut} if over else {}
        return self.random.uniform(-1, 1, 2).astype(np.float32), 1.0, over, info

    def close(self) -> None:
        self.closed = True


class Opened(Drawn):
    """Keeps count of what was closed."""

    closed: list[int] = []  # noqa: RUF012

    def close(self) -> None:
        self.closed.append(1)
