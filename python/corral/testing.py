"""`check_env`: does an environment keep its contract?

For your own envs: one call that plays it in several ways and compares bytes.

    >>> import corral
    >>> print(corral.testing.check_env("CartPole-v1"))  # doctest: +ELLIPSIS
    CartPole-v1 keeps its contract
      ok    spaces ...
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from corral import errors
from corral.draws import Draws
from corral.registry import make_vec
from corral.settings import whole
from corral.spaces import batch_actions
from corral.vector import VectorEnv

_EPISODE_LIMIT = 60


@dataclass(frozen=True)
class Check:
    """One question and its answer.

    Attributes:
        name: what was asked.
        passed: the answer; None where the env does not claim to do it.
        detail: what was seen.
    """

    name: str
    passed: bool | None
    detail: str

    def __str__(self) -> str:
        word = {True: "ok", False: "FAIL", None: "skip"}[self.passed]
        return f"  {word:<5} {self.name}: {' '.join(self.detail.split())}"


@dataclass
class Verdict:
    """What `check_env` found.

    Attributes:
        env: the env's id.
        checks: every question asked, in order.
    """

    env: str
    checks: list[Check] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        """Whether nothing failed."""
        return all(check.passed is not False for check in self.checks)

    def __str__(self) -> str:
        head = "keeps its contract" if self.passed else "BREAKS ITS CONTRACT"
        return "\n".join([f"{self.env} {head}", *map(str, self.checks)])


class _Broken(Exception):
    """A check that failed, with what was seen."""


class _NotClaimed(Exception):
    """A check of something that the env does not claim to do."""


def check_env(
    env: str | Callable[..., VectorEnv],
    *,
    steps: int = 200,
    seed_matters: bool = True,
    raise_on_failure: bool = True,
    **config: Any,
) -> Verdict:
    """Plays an env in several ways and compares.

    Asks whether observations are in their space; the same seed and actions give the same bytes;
    another seed gives others; an index decides its whole episode, whatever came before, and leaves
    the env's own stream untouched; a masked reset leaves the others alone; the three autoreset
    modes tell the same story; a saved state continues exactly; drawing changes nothing.

    Args:
        env: an id, or what makes the envs: called as `make_vec` is, but without the id.
        steps: how many steps each trajectory takes.
        seed_matters: False for an env without any randomness, all of whose episodes begin alike.
        raise_on_failure: whether to raise where the env breaks its contract.
        **config: the env's options.

    Raises:
        ArgumentError, ArgumentTypeError: for `steps` that are no int of at least 1, an `env` that
            makes no `corral.VectorEnv`, and options that the checks themselves choose.
        ConformanceError: with the verdict as its text.
    """
    steps = whole("steps", steps, sys.maxsize)
    if not (isinstance(env, str) or callable(env)):
        raise errors.ArgumentTypeError(f"env is an id or what makes the envs, not {env!r}")
    for name in ("num_envs", "autoreset_mode"):
        if name in config:
            raise errors.ArgumentError(f"check_env chooses {name} itself: leave it out")
    make = functools.partial(make_vec, env) if isinstance(env, str) else env
    player = _Player(make, steps, config, seed_matters)
    verdict = Verdict(player.make().native.id)
    for name, check in _checks(seed_matters):
        try:
            verdict.checks.append(Check(name, True, check(player)))
        except _Broken as broken:
            verdict.checks.append(Check(name, False, str(broken)))
        except _NotClaimed as reason:
            verdict.checks.append(Check(name, None, str(reason)))
        except errors.CorralError as error:
            verdict.checks.append(Check(name, False, f"{type(error).__name__}: {error}"))
    if raise_on_failure and not verdict.passed:
        raise errors.ConformanceError(str(verdict))
    return verdict


class _Player:
    """Makes the env and plays it."""

    def __init__(
        self,
        make: Callable[..., VectorEnv],
        steps: int,
        config: dict[str, Any],
        seed_matters: bool,
    ) -> None:
        self._make, self.steps, self.config = make, steps, config
        self.seed_matters = seed_matters

    def make(self, num_envs: int = 1, mode: str = "disabled", **more: Any) -> VectorEnv:
        # Short episodes, so that a trajectory sees several.
        limit = {"max_episode_steps": _EPISODE_LIMIT}
        made = self._make(num_envs, autoreset_mode=mode, **{**limit, **self.config, **more})
        if not isinstance(made, VectorEnv):
            kind = type(made).__name__
            raise errors.ArgumentTypeError(f"env makes a {kind}, where a corral.VectorEnv is due")
        return made

    def actions(self, envs: VectorEnv, seed: int, count: int | None = None) -> Iterator[Any]:
        """Batches of actions for `envs`, each for where they are then."""
        draw = Draws(envs, seed)
        for _ in range(self.steps if count is None else count):
            yield draw()

    def episode(self, envs: VectorEnv, actions_seed: int = 0, **reset: Any) -> list[Any]:
        """One episode of a single env: what the reset and every step gave."""
        story: list[Any] = [envs.reset(**reset)]
        for actions in self.actions(envs, actions_seed):
            story.append(envs.step(actions))
            if story[-1][2][0] or story[-1][3][0]:
                break
        return story

    def index(self, envs: VectorEnv, index: int) -> list[Any]:
        return self.episode(envs, options={"index": index})


def _checks(seed_matters: bool) -> list[tuple[str, Callable[[_Player], str]]]:
    seeded = [("seed matters", _seed_matters)] if seed_matters else []
    return [
        ("spaces", _spaces),
        ("determinism", _determinism),
        *seeded,
        ("index decides its episode", _index_decides),
        ("index leaves the own stream", _index_leaves_stream),
        ("masked reset", _masked_reset),
        ("autoreset modes", _autoreset_modes),
        ("save and load", _save_load),
        ("render", _render),
    ]


def _spaces(player: _Player) -> str:
    envs = player.make(mode="next_step")
    observations, _ = envs.reset(seed=0)
    _require_inside(envs, observations, "the reset's observation")
    for k, actions in enumerate(player.actions(envs, 0)):
        observations, rewards, _, _, _ = envs.step(actions)
        _require_inside(envs, observations, f"step {k}'s observation")
        if not np.isfinite(rewards).all():
            raise _Broken(f"step {k}'s reward is {rewards[0]}")
    return f"{player.steps} observations are in the observation space, rewards are finite"


def _require_inside(envs: VectorEnv, observations: Any, what: str) -> None:
    if not envs.observation_space.contains(observations):
        row, space = _row(observations, 0), envs.single_observation_space
        raise _Broken(f"{what} is not in the observation space: {row!r} is outside {space}")


def _determinism(player: _Player) -> str:
    first, again = (player.episode(player.make(), seed=7) for _ in range(2))
    _require_same(first, again, "twice seed 7 with the same actions")
    return "seed 7 twice gives the same bytes"


def _seed_matters(player: _Player) -> str:
    stories = [player.episode(player.make(), seed=seed) for seed in range(6)]
    if all(_difference(stories[0], other) is None for other in stories[1:]):
        raise _Broken("seeds 0 to 5 all give the same episode: the seed is ignored")
    envs = player.make()
    own = [player.episode(envs, seed=0), *(player.episode(envs) for _ in range(5))]
    if all(_difference(own[0], other) is None for other in own[1:]):
        raise _Broken("six episodes of one seed are all the same: the stream does not go on")
    return "seeds 0 to 5 differ, and so do the episodes of one seed"


def _require_indices(player: _Player) -> None:
    if not player.make().native.can("index"):
        raise _NotClaimed("the env plays no indices")


def _index_decides(player: _Player) -> str:
    _require_indices(player)
    fresh = [player.index(player.make(seed=1), index) for index in range(4)]
    used = player.make(seed=2)
    player.episode(used)
    player.index(used, 9)
    for index in (3, 1, 0, 2):
        what = f"index {index} in a fresh env and in one that has played others"
        _require_same(fresh[index], player.index(used, index), what)
    if player.seed_matters and all(_difference(fresh[0], other) is None for other in fresh[1:]):
        raise _Broken("indices 0 to 3 all give the same episode")
    seeded = player.episode(player.make(), seed=3)
    kin = "the episode of seed 3" if _difference(fresh[3], seeded) is None else "a level"
    return f"the same bytes whatever came before; index 3 is {kin}"


def _index_leaves_stream(player: _Player) -> str:
    _require_indices(player)
    plain, mixed = player.make(seed=5), player.make(seed=5)
    own = [player.episode(plain) for _ in range(3)]
    _require_same(own[0], player.episode(mixed), "the first own episode")
    player.index(mixed, 11)
    _require_same(own[1], player.episode(mixed), "the own episode after an indexed one")
    player.index(mixed, 12)
    player.index(mixed, 13)
    _require_same(own[2], player.episode(mixed), "the own episode after two indexed ones")
    return "own, own and own, indexed, own agree"


def _masked_reset(player: _Player) -> str:
    envs, alone = player.make(3, "next_step"), player.make(3, "next_step")
    envs.reset(seed=20)
    alone.reset(seed=20)
    for actions, same in zip(player.actions(envs, 1, 2), player.actions(alone, 1, 2), strict=True):
        before = envs.step(actions)[0]
        alone.step(same)
    kept, _ = envs.reset(options={"reset_mask": np.array([False, True, False])})
    for slot in (0, 2):
        _require_same(
            _row(before, slot), _row(kept, slot), f"env {slot}, which the mask leaves out,"
        )
    for actions, same in zip(
        player.actions(envs, 2, 20), player.actions(alone, 2, 20), strict=True
    ):
        ours, theirs = envs.step(actions), alone.step(same)
        for slot in (0, 2):
            what = f"env {slot} after a masked reset of env 1"
            _require_same(_row(ours[:4], slot), _row(theirs[:4], slot), what)
    return "the others keep their observation and go on as they were"


def _autoreset_modes(player: _Player) -> str:
    stories = {mode: _story(player, mode) for mode in ("next_step", "same_step", "disabled")}
    for mode in ("same_step", "disabled"):
        _require_same(stories["next_step"], stories[mode], f"next_step and {mode}")
    ends = sum(1 for kind, *_ in stories["disabled"] if kind == "reset") - 1
    return f"the three tell the same story ({ends} resets)"


def _story(player: _Player, mode: str) -> list[Any]:
    """Resets and steps of one env in order, told the same way in each mode."""
    envs = player.make(1, mode)
    observations, _ = envs.reset(seed=31)
    story: list[Any] = [("reset", _row(observations, 0))]
    ended = False
    draw = Draws(envs, 3)
    actions = None
    for _ in range(player.steps):
        if ended and mode == "next_step":
            observations, rewards, terminations, truncations, _ = envs.step(actions)
            if rewards[0] != 0 or terminations[0] or truncations[0]:
                raise _Broken("next_step: the resetting step has a reward or ends the episode")
            story.append(("reset", _row(observations, 0)))
        elif ended and mode == "disabled":
            mask = np.array([True])
            story.append(("reset", _row(envs.reset(options={"reset_mask": mask})[0], 0)))
        actions = draw()
        observations, rewards, terminations, truncations, infos = envs.step(actions)
        ended = bool(terminations[0] or truncations[0])
        last = _row(observations, 0)
        if ended and mode == "same_step":
            last = infos["final_obs"][0]
        story.append(("step", last, rewards[0], terminations[0], truncations[0]))
        if ended and mode == "same_step":
            story.append(("reset", _row(observations, 0)))
    return story[:-1] if story[-1][0] == "reset" else story


def _save_load(player: _Player) -> str:
    envs = player.make(1, "next_step")
    if not envs.native.can("save"):
        raise _NotClaimed("the env cannot save its state")
    envs.reset(seed=40)
    for actions in player.actions(envs, 4, 25):
        envs.step(actions)
    state = envs.native.save(0)
    other = player.make(2, "next_step")
    other.reset(seed=41)
    for slot in range(2):
        other.native.load(state, slot)
    for k, actions in enumerate(player.actions(envs, 5)):
        twice = batch_actions(envs.single_action_space, [_row(actions, 0)] * 2)
        ours, theirs = envs.step(actions), other.step(twice)
        for slot in range(2):
            _require_same(_row(ours[:4], 0), _row(theirs[:4], slot), f"step {k} after the load")
    return f"another env continues exactly for {player.steps} steps ({len(state)} bytes)"


def _render(player: _Player) -> str:
    envs, alone = player.make(1, "next_step"), player.make(1, "next_step")
    if not envs.native.can("render"):
        raise _NotClaimed("the env draws no pictures")
    envs.reset(seed=50)
    alone.reset(seed=50)
    shape: tuple[int, ...] = ()
    for actions in player.actions(envs, 6, 20):
        frame = envs.native.render()[0]
        if frame.dtype != np.uint8 or frame.ndim != 3 or frame.shape[2] != 3:
            raise _Broken(f"a frame is {frame.dtype} {frame.shape}, not uint8 (height, width, 3)")
        shape = frame.shape
        _require_same(envs.step(actions)[:4], alone.step(actions)[:4], "with and without drawing")
    return f"uint8 {shape}, and drawing changes nothing"


def _row(batch: Any, row: int) -> Any:
    """One env's part of anything batched."""
    if isinstance(batch, dict):
        return {name: _row(inner, row) for name, inner in batch.items()}
    if isinstance(batch, tuple) and batch and isinstance(batch[0], np.ndarray | dict | tuple):
        return tuple(_row(inner, row) for inner in batch)
    return batch[row]


def _require_same(a: Any, b: Any, what: str) -> None:
    difference = _difference(a, b)
    if difference is not None:
        raise _Broken(f"{what}: not the same{difference}")


def _difference(a: Any, b: Any, at: str = "") -> str | None:
    """Where two nested results differ, or None; NaNs are equal."""
    if isinstance(a, dict) and isinstance(b, dict):
        if a.keys() != b.keys():
            return f" at {at or 'the top'}: {sorted(a)} and {sorted(b)}"
        pairs = [(a[name], b[name], f"{at}.{name}") for name in a]
    elif isinstance(a, tuple | list) and isinstance(b, tuple | list):
        if len(a) != len(b):
            return f" in length{f' at {at}' if at else ''}: {len(a)} and {len(b)}"
        pairs = [(x, y, f"{at}[{k}]") for k, (x, y) in enumerate(zip(a, b, strict=True))]
    else:
        x, y = np.asarray(a), np.asarray(b)
        same = x.shape == y.shape and x.dtype == y.dtype
        floats = x.dtype.kind == "f"
        if same and np.array_equal(x, y, equal_nan=floats):
            return None
        return f"{f' at {at}' if at else ''}: {a!r} and {b!r}"
    return next((d for d in (_difference(*pair) for pair in pairs) if d is not None), None)
