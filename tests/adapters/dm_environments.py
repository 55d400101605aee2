"""dm_env environments for the tests, which know nothing of corral."""

from __future__ import annotations

from typing import Any, NamedTuple

import dm_env
import numpy as np
from dm_env import specs


class Catch(dm_env.Environment):  # type: ignore[misc]
    """A ball falls through a board of six rows and four columns; a paddle catches it."""

    def __init__(self, seed: int | None = None) -> None:
        self._rng = np.random.RandomState(seed)
        self._is_over = True
        self.seed = seed
        self.volume = 1
        self.closed = 0

    def reset(self) -> Any:
        self._ball, self._row, self._paddle = int(self._rng.randint(4)), 0, 2
        self._is_over = False
        return dm_env.restart(self._board())

    def step(self, action: Any) -> Any:
        if self._is_over:
            return self.reset()
        assert type(action) is np.int32, type(action)
        self._paddle = int(np.clip(self._paddle + action - 1, 0, 3))
        self._row += 1
        if self._row < 5:
            return dm_env.transition(0.0, self._board())
        self._is_over = True
        return dm_env.termination(1.0 if self._ball == self._paddle else -1.0, self._board())

    def _board(self) -> Any:
        board = np.zeros((6, 4), np.float32)
        board[self._row, self._ball] = board[5, self._paddle] = 1.0
        return board

    def observation_spec(self) -> Any:
        return specs.BoundedArray((6, 4), np.float32, 0, 1, "board")

    def action_spec(self) -> Any:
        return specs.DiscreteArray(3, np.int32, "action")

    def shout(self, word: str) -> str:
        return word.upper() * self.volume

    def close(self) -> None:
        self.closed += 1


class Script(dm_env.Environment):  # type: ignore[misc]
    """Gives the time steps of a list, of which the first is a reset's; each is a step type, a
    reward and a discount. The observation is `seen`, or else how many have been given."""

    def __init__(
        self,
        *steps: tuple[int, Any, Any],
        spec: Any = None,
        reward: Any = None,
        discount: Any = None,
        seen: Any = None,
    ) -> None:
        self._steps, self._given, self._seen = steps, 0, seen
        self._spec = spec if spec is not None else specs.Array((), np.int64)
        self._reward, self._discount = reward, discount

    def reset(self) -> Any:
        self._given = 0
        return self.step(None)

    def step(self, action: Any) -> Any:
        step_type, reward, discount = self._steps[self._given]
        self._given += 1
        seen = np.asarray(self._given, np.int64) if self._seen is None else self._seen
        return dm_env.TimeStep(dm_env.StepType(step_type), reward, discount, seen)

    def observation_spec(self) -> Any:
        return self._spec

    def action_spec(self) -> Any:
        return specs.DiscreteArray(2)

    def reward_spec(self) -> Any:
        return super().reward_spec() if self._reward is None else self._reward

    def discount_spec(self) -> Any:
        return super().discount_spec() if self._discount is None else self._discount


class Pair(NamedTuple):
    """Two specs, or two actions."""

    left: Any
    right: Any


class Kinds(dm_env.Environment):  # type: ignore[misc]
    """Has every kind of spec, and checks that its actions are what its spec says; each of the
    four steps of an episode is seen by another."""

    def __init__(self) -> None:
        self._step = 0
        self.actions: list[Any] = []

    def reset(self) -> Any:
        self._step = 0
        return dm_env.restart(self._seen())

    def step(self, action: Any) -> Any:
        assert list(action) == ["move", "turn", "words", "parts", "pair"]
        for name in ("move", "turn"):
            self.action_spec()[name].validate(action[name])
        assert type(action["words"]) is str
        assert type(action["parts"]) is list
        for spec, part in zip(self.action_spec()["parts"], action["parts"]):
            spec.validate(part)
        assert type(action["pair"]) is Pair
        assert action["pair"].left.dtype == np.uint8
        self.actions.append(action)
        self._step += 1
        if self._step < 4:
            return dm_env.transition(0.5, self._seen(), discount=0.9)
        self._step = 0
        return dm_env.truncation(2, self._seen(), discount=0.25)

    def _seen(self) -> Any:
        k = self._step
        return {
            "free": np.full((2, 2), k / 4, np.float64),
            "flag": np.asarray(k % 2 == 0),
            "level": np.asarray(k - 2, np.int16),
            "pixels": np.full((2, 3, 3), 60 * k, np.uint8),
            "said": np.asarray(f"step {k}", dtype=object),
            "list": [np.asarray(k, np.int32), {"inner": np.full(2, k, np.float32)}],
            "names": np.array([f"a{k}", "b"], dtype=object),
            "bytes": np.asarray(b"b" * k, dtype=object),
        }

    def observation_spec(self) -> Any:
        return {
            "free": specs.Array((2, 2), np.float64),
            "flag": specs.Array((), bool),
            "level": specs.BoundedArray((), np.int16, -2, 5),
            "pixels": specs.BoundedArray((2, 3, 3), np.uint8, 0, 255),
            "said": specs.StringArray(()),
            "list": [specs.DiscreteArray(9), {"inner": specs.BoundedArray((2,), np.float32, 0, 9)}],
            "names": specs.StringArray((2,)),
            "bytes": specs.StringArray((), bytes),
        }

    def discount_spec(self) -> Any:
        return specs.BoundedArray((), np.float32, 0, 1)

    def action_spec(self) -> Any:
        return {
            "move": specs.BoundedArray((), np.int32, -1, 1),
            "turn": specs.BoundedArray((2,), np.int32, [0, -3], [4, 3]),
            "words": specs.StringArray(()),
            "parts": [specs.BoundedArray((2,), np.float32, -1, 1), specs.DiscreteArray(3, np.int8)],
            "pair": Pair(specs.DiscreteArray(256, np.uint8), specs.Array((), bool)),
        }
