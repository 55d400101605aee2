"""Plays an env beside Gymnasium's own, from the same seeds with the same actions.

Also a program, so that NumPy's CPU features can be chosen before NumPy is imported:
`python -m tests.parity.beside CASE SEEDS EPISODES [many]` prints one JSON object.
"""

from __future__ import annotations

import json
import math
import sys
from typing import Any

import numpy as np

import corral
from tests.parity.cases import CASES, OPTIONS, Parity, by_table

AVX512 = "AVX512F AVX512CD AVX512_SKX AVX512_CLX AVX512_CNL AVX512_ICL AVX512_SPR X86_V4"


def numpy_is_libm(samples: int = 20_000) -> bool:
    """Whether NumPy's float64 sin and cos are libm's, on angles near 0 and far from it."""
    angles = np.concatenate(
        [np.random.default_rng(0).uniform(-most, most, samples) for most in (0.5, 40)]
    )
    return all(np.sin(a) == math.sin(a) and np.cos(a) == math.cos(a) for a in angles)


def plain(value: Any) -> Any:
    """An observation or an info: arrays with axes with their dtype and bytes, numbers by value."""
    if isinstance(value, dict):
        return {name: plain(inner) for name, inner in value.items()}
    if isinstance(value, tuple | list):
        return tuple(map(plain, value))
    if isinstance(value, np.ndarray) and value.ndim > 0:
        return (value.dtype.str, value.shape, value.tobytes())
    return np.asarray(value).item()


def has_state_of(ours: Any, theirs: Any) -> bool:
    """Whether our saved bytes hold Gymnasium's float64 state, where it has one.

    Observations are float32: the state shows differences in the last bit long before they do.
    """
    state = getattr(theirs.unwrapped, "state", None)
    if state is None:
        return True
    return np.asarray(state, dtype=np.float64).tobytes() in ours.native.save(0)


class Many:
    """Envs enough for a kernel, as one: all play the same, and show the same."""

    def __init__(self, case: Parity, num_envs: int = 80) -> None:
        options = {**case.options, **case.ours}
        self.envs = corral.make_vec(
            case.id, num_envs, autoreset_mode="disabled", num_threads=1, **options
        )
        self.native = self.envs.native

    def reset(self, *, seed: int | None, options: Any) -> tuple[Any, Any]:
        seeds = None if seed is None else [seed] * self.envs.num_envs
        observation, infos = self.envs.reset(seed=seeds, options=options)
        return self._one(observation), infos

    def step(self, action: Any) -> tuple[Any, ...]:
        actions = np.stack([action] * self.envs.num_envs)
        *arrays, infos = self.envs.step(actions)
        return (*map(self._one, arrays), infos)

    def _one(self, rows: Any) -> Any:
        assert rows.tobytes() == rows[:1].tobytes() * len(rows)
        return rows[0]


class Beside:
    """Both envs of a case, ours by a kernel if `many`."""

    def __init__(self, case: Parity, many: bool) -> None:
        self.case = case
        self.ours, self.theirs = Many(case) if many else case.make_ours(), case.make_theirs()
        self.rule = case.rule or by_table(self.theirs)
        self.told = {"steps": 0, "terminated": 0, "truncated": 0}

    def play(self, seed: int, episodes: int) -> str | None:
        """Where some episodes of one seed differ first, or None."""
        rng = np.random.default_rng([seed, 1])
        self.theirs.action_space.seed(seed)
        for episode in range(episodes):
            # Every eighth episode is played by chance alone.
            found = self._episode(seed if episode == 0 else None, rng, (seed + episode) % 8 != 0)
            if found is not None:
                return f"seed {seed}, episode {episode}, {found}"
        return None

    def _episode(self, seed: int | None, rng: np.random.Generator, by_rule: bool) -> str | None:
        case = self.case
        expected, expected_info = self.theirs.reset(seed=seed, options=dict(case.start) or None)
        got, info = self.ours.reset(seed=seed, options=dict(case.start) or None)
        found = self._compare("reset", (got, info), (expected, expected_info))
        for step in range(case.steps):
            if found is not None:
                return found
            action = self.rule(expected, rng) if by_rule else self.theirs.action_space.sample()
            expected, expected_reward, *flags, expected_info = self.theirs.step(action)
            got, reward, *our_flags, info = self.ours.step(action)
            where = f"step {step}"
            found = self._compare(
                where, (got, our_flags, info), (expected, flags, expected_info)
            ) or self._compare_reward(where, reward, float(expected_reward))
            self.told["steps"] += 1
            if any(flags):
                self.told["terminated"] += bool(flags[0])
                self.told["truncated"] += bool(flags[1])
                break
        return found

    def _compare(self, where: str, got: Any, expected: Any) -> str | None:
        if plain(tuple(got)) != plain(tuple(expected)):
            return f"{where}: {got} where {expected} belongs"
        if not has_state_of(self.ours, self.theirs):
            state = self.theirs.unwrapped.state  # type: ignore[attr-defined]
            return f"{where}: the state is not {state!r}"
        return None

    def _compare_reward(self, where: str, got: float, expected: float) -> str | None:
        if abs(got - expected) > self.case.rtol * abs(expected):
            return f"{where}: reward {got!r} where {expected!r} belongs"
        return None


def compare(case: Parity, seeds: int, episodes: int, many: bool = False) -> dict[str, Any]:
    """The first difference, or None, and how much was compared."""
    both = Beside(case, many)
    found = (both.play(seed, episodes) for seed in range(seeds))
    return {"difference": next((text for text in found if text is not None), None), **both.told}


if __name__ == "__main__":
    asked = next(case for case in [*CASES, *OPTIONS] if str(case) == sys.argv[1])
    many = "many" in sys.argv[4:]
    result = {"libm": numpy_is_libm(), **compare(asked, int(sys.argv[2]), int(sys.argv[3]), many)}
    print(json.dumps(result))
