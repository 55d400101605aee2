"""Plays MinAtar's games beside the package's own, with the same random numbers and actions.

A program, for the Python of a venv that has the package: `python -m tests.parity.beside_minatar
REQUEST` takes a JSON object and prints one. The package draws from two of NumPy's `RandomState`s;
here it draws from one PCG64 of NumPy's, as our envs do.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import gymnasium
import minatar.gym
import numpy as np

import corral

SCOUTS, AHEAD = 24, 12


class Draws:
    """What the package draws from, under the names that it calls."""

    def __init__(self, seed: int) -> None:
        self._generator = np.random.default_rng(seed)

    def rand(self, *size: int) -> Any:
        return self._generator.random(size or None)

    def randint(self, *arguments: Any, **more: Any) -> Any:
        return self._generator.integers(*arguments, **more)


class Beside:
    """One game, ours and theirs."""

    def __init__(self, id: str, options: dict[str, Any]) -> None:
        self.ours = corral.make(id, **options)
        self.theirs = gymnasium.make(id, disable_env_checker=True, **options).unwrapped
        # Copies of ours that run ahead.
        self.scouts = corral.make_vec(id, SCOUTS, num_threads=1, **options)
        self.scouts.reset(seed=0)
        self.up = self.theirs.action_set.index(2) if "Freeway" in id else None
        self.told = {"steps": 0, "episodes": 0, "reward": 0.0}

    def play(self, seed: int, episodes: int, steps: int, is_clever: bool) -> str | None:
        """Where some episodes of one seed differ first, or None."""
        rng = np.random.default_rng([seed, 7])
        draws = Draws(seed)
        game: Any = self.theirs.game
        game.random = game.env.random = draws
        for episode in range(episodes):
            where = f"seed {seed}, episode {episode}"
            # The package lets an episode's first step repeat the last one of the episode before.
            game.last_action = 0
            expected, _ = self.theirs.reset()
            got, _ = self.ours.reset(seed=seed if episode == 0 else None)
            found = different(got, expected)
            for step in range(steps):
                if found is not None:
                    return f"{where}, step {step}: {found}"
                action = self.plan(rng) if is_clever else int(rng.integers(self.actions))
                expected, reward, *flags, _ = self.theirs.step(action)
                got, our_reward, *our_flags, _ = self.ours.step(action)
                self.told["steps"] += 1
                self.told["reward"] += our_reward
                found = different(got, expected)
                if our_reward != float(reward) or our_flags != [bool(flag) for flag in flags]:
                    found = f"{our_reward}, {our_flags} where {reward}, {flags} belong"
                if any(our_flags):
                    self.told["episodes"] += 1
                    break
            if found is not None:
                return f"{where}, the last step: {found}"
        return None

    @property
    def actions(self) -> int:
        return int(self.ours.action_space.n)  # type: ignore[attr-defined]

    def plan(self, rng: np.random.Generator) -> int:
        """The first action of the best of some random plans, which copies of ours try out.

        On the long way over Freeway's road, where no plan reaches the other side: mostly up.
        """
        if self.up is not None and rng.random() < 0.9:
            return self.up
        state = self.ours.save_state()
        for scout in range(SCOUTS):
            self.scouts.load_state(state, scout)
        plans = rng.integers(self.actions, size=(AHEAD, SCOUTS))
        # Some plans go straight on.
        plans[:, : self.actions] = np.arange(self.actions)
        alive = np.ones(SCOUTS)
        gains = np.zeros(SCOUTS)
        for step, actions in enumerate(plans):
            _, rewards, over, _, _ = self.scouts.step(actions)
            gains += alive * rewards * 0.95**step
            alive = alive * ~over
            gains += alive
        return int(plans[0, gains.argmax()])


def different(got: Any, expected: Any) -> str | None:
    """How two observations differ, or None."""
    if got.dtype != expected.dtype or got.shape != expected.shape:
        return f"{got.dtype} {got.shape} where {expected.dtype} {expected.shape} belongs"
    if np.array_equal(got, expected):
        return None
    return f"row, column and channel {np.argwhere(got != expected).tolist()}"


def spaces_differ(both: Beside) -> str | None:
    """How what both say of themselves differs, or None."""
    for name in ("observation_space", "action_space"):
        ours, theirs = getattr(both.ours, name), getattr(both.theirs, name)
        if ours != theirs:
            return f"{name}: {ours} where {theirs} belongs"
    limits = both.ours.max_episode_steps, both.theirs.spec.max_episode_steps
    return None if limits == (None, None) else f"time limits {limits}"


def compare(request: dict[str, Any]) -> dict[str, Any]:
    """The first difference, or None, and how much was compared."""
    both = Beside(request["id"], request.get("options", {}))
    found = spaces_differ(both)
    for seed in request["seeds"]:
        if found is None:
            # Every fourth seed is played by chance alone.
            found = both.play(seed, request["episodes"], request.get("steps", 10**6), seed % 4 != 3)
    return {"id": request["id"], "difference": found, **both.told}


if __name__ == "__main__":
    minatar.gym.register_envs()
    asked = json.loads(sys.argv[1])
    if "ids" in asked:
        print(json.dumps({"ids": [id for id in gymnasium.registry if id.startswith("MinAtar/")]}))
    else:
        print(json.dumps([compare(request) for request in asked["compare"]]))
