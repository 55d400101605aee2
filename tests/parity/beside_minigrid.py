"""Plays MiniGrid's levels beside the package's own, from the same seeds with the same actions.

A program, for the Python of a venv that has the package: `python -m tests.parity.beside_minigrid
REQUEST` takes a JSON object and prints one. With `"ids"` it tells which levels the package has.
"""

from __future__ import annotations

import json
import sys
import warnings
from typing import Any

import gymnasium
import minigrid
import numpy as np
from minigrid.wrappers import FullyObsWrapper, RGBImgObsWrapper, RGBImgPartialObsWrapper

import corral

VIEWS = {"full": FullyObsWrapper, "rgb": RGBImgObsWrapper, "rgb_partial": RGBImgPartialObsWrapper}
DOOR, PORTABLE = 4, (5, 6, 7)


class Beside:
    """One level, ours and theirs."""

    def __init__(self, id: str, options: dict[str, Any], view: str) -> None:
        self.ours = corral.make(id, render_mode="rgb_array", view=view, **options)
        made = gymnasium.make(id, render_mode="rgb_array", **options)
        self.core = made.unwrapped
        self.drops = "PutNear" in id
        self.theirs = VIEWS[view](self.core) if view in VIEWS else self.core
        # What ends: how many episodes fulfilled their mission, failed or were cut.
        self.told = {"steps": 0, "episodes": 0, "won": 0, "lost": 0, "cut": 0, "impossible": 0}

    def play(self, seed: int, episodes: int, steps: int, drawn_every: int) -> str | None:
        """Where some episodes of one seed differ first, or None."""
        rng = np.random.default_rng([seed, 7])
        for episode in range(episodes):
            where = f"seed {seed}, episode {episode}"
            start = seed if episode == 0 else None
            try:
                expected, _ = self.theirs.reset(seed=start)
            except RecursionError:
                # The package found no room for what the level needs.
                self.told["impossible"] += 1
                return None if self._refuses(start) else f"{where}: a level that cannot be"
            got, _ = self.ours.reset(seed=start)
            found = different(got, expected)
            for step in range(steps):
                if found is None and drawn_every and step % drawn_every == 0:
                    found = different_pictures(self.ours.render(), self.core.render())
                if found is not None:
                    return f"{where}, step {step}: {found}"
                action = self.action(rng)
                expected, reward, *flags, _ = self.theirs.step(action)
                got, our_reward, *our_flags, _ = self.ours.step(action)
                self.told["steps"] += 1
                found = different(got, expected)
                if our_reward != float(reward) or our_flags != flags:
                    found = f"{our_reward}, {our_flags} where {reward}, {flags} belong"
                if any(flags):
                    break
            if found is not None:
                return f"{where}, the last step: {found}"
            if any(flags):
                end = "cut" if not flags[0] else "won" if reward > 0 else "lost"
                self.told[end] += 1
            self.told["episodes"] += 1
        return None

    def _refuses(self, seed: int | None) -> bool:
        try:
            self.ours.reset(seed=seed)
        except corral.errors.EnvError:
            return True
        return False

    def action(self, rng: np.random.Generator) -> int:
        """Mostly what makes something happen, by what is before the agent."""
        number = self.core.action_space.n
        front = self.core.grid.get(*self.core.front_pos)
        kind = front.encode()[0] if front is not None else 1
        if number == 7 and rng.random() < 0.7:
            if kind == DOOR and not front.is_open:
                return 5
            if kind in PORTABLE:
                return int(rng.choice([3, 5])) if self.core.carrying is None else 5
        if self.drops and self.core.carrying is not None and rng.random() < 0.4:
            return 4
        if rng.random() < 0.85:
            return int(rng.choice([0, 1, 2, 2, 2]))
        return int(rng.integers(number))


def different(got: Any, expected: Any) -> str | None:
    """How two observations differ, or None."""
    image, other = got["image"], expected["image"]
    if image.dtype != other.dtype or image.shape != other.shape:
        return f"an image of {image.shape} where one of {other.shape} belongs"
    if not np.array_equal(image, other):
        return f"the image, in {np.argwhere(image != other)[0]}"
    for name in ("direction", "mission"):
        if got[name] != expected[name]:
            return f"{name} {got[name]!r} where {expected[name]!r} belongs"
    return None


def different_pictures(got: Any, expected: Any) -> str | None:
    if got.shape == expected.shape and np.array_equal(got, expected):
        return None
    return "the rendered frame"


def spaces_differ(both: Beside) -> str | None:
    """How what both say of themselves differs, or None."""
    ours, theirs = both.ours, both.theirs
    for name in ("image", "direction"):
        if ours.observation_space[name] != theirs.observation_space[name]:
            return f"{name}: {ours.observation_space[name]}"
    if ours.action_space != theirs.action_space:
        return f"actions: {ours.action_space}"
    mission = theirs.observation_space["mission"].sample()
    if mission not in ours.observation_space["mission"]:
        return f"{mission!r} is no mission of {ours.observation_space['mission']}"
    limits = ours.max_episode_steps, theirs.spec.max_episode_steps
    if limits != (None, None):
        return f"time limits {limits}"
    if ours.metadata["render_fps"] != theirs.metadata["render_fps"]:
        return f"{ours.metadata['render_fps']} frames a second"
    return None


def compare(request: dict[str, Any]) -> dict[str, Any]:
    """The first difference, or None, and how much was compared."""
    both = Beside(request["id"], request.get("options", {}), request.get("view", "partial"))
    found = spaces_differ(both)
    for seed in request["seeds"]:
        if found is None:
            found = both.play(
                seed,
                request.get("episodes", 1),
                request.get("steps", 10**6),
                request.get("drawn_every", 0),
            )
    return {"id": request["id"], "difference": found, **both.told}


def levels() -> list[str]:
    """Those that are drawn by rules, and not by a solver."""
    return [id for id in gymnasium.registry if id.startswith("MiniGrid-") and "WFC" not in id]


if __name__ == "__main__":
    warnings.simplefilter("ignore", DeprecationWarning)
    asked = json.loads(sys.argv[1])
    if "ids" in asked:
        print(json.dumps({"ids": levels(), "version": minigrid.__version__}))
    else:
        print(json.dumps([compare(request) for request in asked["compare"]]))
