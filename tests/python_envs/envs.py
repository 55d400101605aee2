"""The envs of these tests, where worker processes can import them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ClassVar

import gymnasium
import numpy as np
from gymnasium import spaces


class Custom(spaces.Space[Any]):
    """A space that nobody knows: of pairs of a word and a number."""

    def sample(self, mask: Any | None = None, probability: Any | None = None) -> Any:
        return ("word", int(self.np_random.integers(100)))

    def contains(self, x: Any) -> bool:
        return isinstance(x, tuple) and len(x) == 2

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Custom)

    __hash__ = None  # type: ignore[assignment]


def _box(*shape: int, dtype: Any = np.float32, low: float = -1, high: float = 1) -> spaces.Box:
    return spaces.Box(low, high, shape, dtype)


def _text(most: int) -> spaces.Text:
    # Of one character: before 1.4 Gymnasium draws from a set, in each process's own order.
    return spaces.Text(most, charset="a")


OBSERVATIONS: dict[str, Callable[[], spaces.Space[Any]]] = {
    "box": lambda: _box(3),
    "box of float64": lambda: _box(2, 2, dtype=np.float64),
    "box of float16": lambda: _box(2, dtype=np.float16),
    "box of no axes": lambda: _box(),
    "box without elements": lambda: _box(0, 3),
    "image": lambda: _box(5, 4, 3, dtype=np.uint8, low=0, high=255),
    "box of bools": lambda: _box(3, dtype=np.bool_, low=0, high=1),
    "unbounded box": lambda: _box(2, low=-np.inf, high=np.inf),
    "discrete": lambda: spaces.Discrete(4, start=-2),
    "multi-discrete": lambda: spaces.MultiDiscrete([3, 5, 2]),
    "multi-discrete of two axes": lambda: spaces.MultiDiscrete([[3, 5], [2, 4]]),
    "multi-binary": lambda: spaces.MultiBinary(4),
    "multi-binary of two axes": lambda: spaces.MultiBinary((2, 3)),
    "dict": lambda: spaces.Dict(
        {"b": _box(2), "a": spaces.Discrete(3), "in": spaces.Dict({"x": _box(1), "y": _box(2)})}
    ),
    "dict with dots": lambda: spaces.Dict({"a.b": _box(2), "a": _box(1), "": _box(3)}),
    "tuple": lambda: spaces.Tuple((spaces.Discrete(3), _box(2))),
    "nested": lambda: spaces.Dict(
        {"t": spaces.Tuple((spaces.Tuple((_box(1), spaces.MultiBinary(2))), _text(4)))}
    ),
    "text": lambda: _text(5),
    "sequence": lambda: spaces.Sequence(_box(2)),
    "stacked sequence": lambda: spaces.Sequence(_box(2), stack=True),
    "graph": lambda: spaces.Graph(_box(2), spaces.Discrete(3)),
    "one of two": lambda: spaces.OneOf((_box(2), spaces.Discrete(3))),
    "custom": Custom,
}

# What Gymnasium's shared memory cannot hold; text in it is never seen to change.
UNSHARED = {
    "box of float16",
    "text",
    "nested",
    "box without elements",
    "sequence",
    "stacked sequence",
    "graph",
    "one of two",
    "custom",
}

ACTIONS: dict[str, Callable[[], spaces.Space[Any]]] = {
    "discrete": lambda: spaces.Discrete(3),
    "discrete from 5": lambda: spaces.Discrete(3, start=5),
    "box": lambda: _box(2),
    "box of no axes": lambda: _box(dtype=np.float64),
    "box of ints": lambda: _box(2, dtype=np.int16, low=-9, high=9),
    "multi-discrete": lambda: spaces.MultiDiscrete([3, 2]),
    "multi-binary": lambda: spaces.MultiBinary(3),
    "dict": lambda: spaces.Dict({"b": _box(2), "a": spaces.Discrete(3)}),
    "tuple": lambda: spaces.Tuple((spaces.Discrete(3), spaces.Tuple((_box(2),)))),
    "text": lambda: _text(5),
}


def _no_infos(number: int, t: int) -> dict[str, Any]:
    return {}


def _numbers(number: int, t: int) -> dict[str, Any]:
    return {
        "int": number * 10 + t,
        "float": t / 2,
        "bool": t % 2 == 0,
        "float32": np.float32(t),
        "float64": np.float64(number),
        "int8": np.int8(t),
        "numpy bool": np.bool_(t % 2),
    }


def _arrays(number: int, t: int) -> dict[str, Any]:
    return {
        "floats": np.full((2, 3), t, np.float32),
        "bools": np.array([t % 2 == 0, True]),
        "empty": np.zeros((0,)),
        "no axes": np.array(t),
        "texts": np.array(["a", "bc"]),
        "objects": np.array([None, t], dtype=object),
    }


def _objects(number: int, t: int) -> dict[str, Any]:
    return {
        "text": f"env {number} at {t}",
        "none": None,
        "list": [number, t],
        "tuple": (number, t),
        "class": complex(number, t),
        "set": {t},
    }


def _nested(number: int, t: int) -> dict[str, Any]:
    return {
        "outer": {"inner": {"x": t, "y": 0.5}, "z": np.arange(2), "empty": {}},
        "empty": {},
        "a.b": {"c.d": t},
    }


def _sometimes(number: int, t: int) -> dict[str, Any]:
    if (number + t) % 3 == 0:
        return {}
    key = "odd" if number % 2 else "even"
    return {key: t, "shared": float(number), "deep": {key: t}}


INFOS: dict[str, Callable[[int, int], dict[str, Any]]] = {
    "none": _no_infos,
    "numbers": _numbers,
    "arrays": _arrays,
    "objects": _objects,
    "nested": _nested,
    "sometimes": _sometimes,
}


class Probe(gymnasium.Env[Any, Any]):
    """Shows samples of its space, and in its infos what it was given.

    Env `number` ends every `2 + number % 3` steps: terminated where it is even, truncated where it
    is odd, both where it is a multiple of 3.
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["rgb_array", "ansi"], "render_fps": 12}

    def __init__(
        self,
        number: int = 0,
        observation: str = "box",
        action: str = "discrete",
        infos: str = "none",
        render_mode: str | None = None,
    ) -> None:
        # Older Gymnasiums write into it.
        self.metadata = dict(Probe.metadata)  # type: ignore[misc]
        self.observation_space = OBSERVATIONS[observation]()
        self.action_space = ACTIONS[action]()
        self.render_mode = render_mode
        self.number = number
        self.infos = infos
        self.t = 0
        self.closed = False
        self.gravity = 9.81

    def _observe(self) -> Any:
        self.observation_space.seed(int(self.np_random.integers(2**31)))
        return self.observation_space.sample()

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.t = 0
        given = {"seed": -1 if seed is None else seed, "options": (options or None,)}
        return self._observe(), {**given, **INFOS[self.infos](self.number, -1)}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.t += 1
        over = self.t >= 2 + self.number % 3
        reward = float(self.np_random.normal())
        told = {"given": told_of(action), **INFOS[self.infos](self.number, self.t)}
        terminated = over and (self.number % 2 == 0 or self.number % 3 == 0)
        truncated = over and (self.number % 2 == 1 or self.number % 3 == 0)
        return self._observe(), reward, terminated, truncated, told

    def render(self) -> Any:
        if self.render_mode == "ansi":
            return f"env {self.number} at {self.t}"
        return np.full((2, 3, 3), self.number, np.uint8)

    def multiply(self, x: float, by: float = 1) -> float:
        return self.number * x * by

    def draw(self) -> float:
        """Disturbs the env's own generator."""
        return float(self.np_random.random())

    def fail(self) -> None:
        raise KeyError("no such thing")

    def close(self) -> None:
        self.closed = True


def told_of(action: Any) -> tuple[Any, ...]:
    """What an action is, for comparison: kinds, dtypes and values."""
    if isinstance(action, dict):
        return ("dict", *((key, told_of(inner)) for key, inner in action.items()))
    if isinstance(action, tuple):
        return ("tuple", *map(told_of, action))
    if isinstance(action, np.ndarray | np.generic):
        kind = "array" if isinstance(action, np.ndarray) else "scalar"
        return (kind, action.dtype.name, action.shape, action.tolist())
    return (type(action).__name__, action)


class OwnError(Exception):
    """An exception with arguments of its own."""

    def __init__(self, code: int, why: str) -> None:
        super().__init__(f"{code}: {why}")
        self.code = code


class Failing(Probe):
    """Raises, or misbehaves otherwise, at its third step; env `victim` alone."""

    def __init__(self, number: int = 0, victim: int = 1, how: str = "raise", **more: Any) -> None:
        if how == "init" and number == victim:
            raise OwnError(7, "in init")
        super().__init__(number, **more)
        self.how = how if number == victim else ""

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        if self.how == "reset" and options is not None:
            raise OwnError(7, "in reset")
        return super().reset(seed=seed, options=options)

    def step(self, action: Any) -> Any:
        self.t += 1
        observation, reward = self._observe(), 1.0
        if self.t == 3 and self.how:
            bad = BAD.get(self.how)
            if bad is not None:
                return bad(observation)
            if self.how == "raise":
                raise OwnError(7, "in step")
            if self.how == "interrupt":
                raise KeyboardInterrupt
            if self.how == "exit":
                raise SystemExit(3)
        return observation, reward, False, False, {}

    def close(self) -> None:
        if self.how == "close":
            raise OwnError(7, "in close")
        super().close()


def _nan(observation: Any) -> Any:
    observation[1] = np.nan
    return observation


# What a step of `Failing` over a box of 3 may return that it should not.
BAD: dict[str, Callable[[Any], Any]] = {
    "shape": lambda o: (o[:2], 1.0, False, False, {}),
    "dtype": lambda o: (o.astype(np.complex64), 1.0, False, False, {}),
    "text": lambda o: ("abc", 1.0, False, False, {}),
    "none": lambda o: (None, 1.0, False, False, {}),
    "nan": lambda o: (_nan(o), 1.0, False, False, {}),
    "nan reward": lambda o: (o, float("nan"), False, False, {}),
    "reward": lambda o: (o, "much", False, False, {}),
    "no reward": lambda o: (o, None, False, False, {}),
    "three": lambda o: (o, 1.0, False),
    "no tuple": lambda o: o,
    "info": lambda o: (o, 1.0, False, False, [1]),
}


class OldSpace:
    """A `Box` as old gym has it: alike, and no relation of Gymnasium's."""

    def __init__(self) -> None:
        self.low, self.high = np.full(2, -1, np.float32), np.full(2, 1, np.float32)
        self.shape, self.dtype = (2,), np.dtype(np.float32)


OldSpace.__name__ = OldSpace.__qualname__ = "Box"
OldSpace.__module__ = "gym.spaces.box"


class Old:
    """An env of gym before 0.26: no seed and no infos at reset, four parts to a step."""

    metadata: ClassVar[dict[str, Any]] = {}
    observation_space = OldSpace()
    action_space = spaces.Discrete(2)

    def __init__(self, length: int = 3, limit: int | None = None) -> None:
        self.length, self.limit = length, limit
        self.rng = np.random.default_rng(0)
        self.t = 0

    def seed(self, seed: int | None = None) -> list[int | None]:
        self.rng = np.random.default_rng(seed)
        return [seed]

    def reset(self) -> Any:
        self.t = 0
        return self.rng.random(2).astype(np.float32)

    def step(self, action: Any) -> tuple[Any, float, bool, dict[str, Any]]:
        self.t += 1
        done = self.t == self.length
        info = {"TimeLimit.truncated": True} if done and self.limit else {"t": self.t}
        return self.rng.random(2).astype(np.float32), 1.0, done, info

    def close(self) -> None:
        pass


def makers(count: int, kind: type[Any] = Probe, **kwargs: Any) -> list[Callable[[], Any]]:
    """Functions that make one env each, numbered."""
    return [functools.partial(kind, number, **kwargs) for number in range(count)]
