"""`check_env`: does an environment keep its contract?

For your own envs: one call that plays it in several ways and compares bytes.

    >>> import corral
    >>> print(corral.testing.check_env("CartPole-v1"))  # doctest: +ELLIPSIS
    CartPole-v1 keeps its contract
      ok    spaces ...

Above 400 lines because each check stands beside the advice that it gives.
"""

from __future__ import annotations

import functools
import reprlib
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from gymnasium import spaces as gym_spaces

from corral import errors, stream_state
from corral.differences import difference, of_episodes, of_steps
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
        advice: what to do about it; empty where nothing is to be done.
    """

    name: str
    passed: bool | None
    detail: str
    advice: str = ""

    def __str__(self) -> str:
        word = {True: "ok", False: "FAIL", None: "skip"}[self.passed]
        told = f"  {word:<5} {self.name}: {' '.join(self.detail.split())}"
        return f"{told}\n        to do: {self.advice}" if self.advice else told


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
    """A check that failed, with what was seen, and what to do."""

    def __init__(self, seen: str, advice: str) -> None:
        super().__init__(seen)
        self.advice = advice


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

    Asks whether observations, rewards and infos are in their spaces; the same seed and actions give
    the same bytes; another seed gives others; an index decides its whole episode, whatever the seed
    and whatever came before, and leaves the env's own stream untouched, as does `build`; a masked
    reset leaves the others alone; the three autoreset modes tell the same story; a saved state
    continues exactly; drawing changes nothing; `step` takes what the action mask allows. What fails
    is told by leaf, env, step (the first is step 0), element and both values, with what to do.

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
    verdict = Verdict(_Player(env, steps, config, seed_matters).make().native.id)
    for _, ask in questions(env, steps, config, seed_matters):
        verdict.checks.append(ask())
    if raise_on_failure and not verdict.passed:
        raise errors.ConformanceError(str(verdict))
    return verdict


def questions(
    env: str | Callable[..., VectorEnv], steps: int, config: dict[str, Any], seed_matters: bool
) -> Iterator[tuple[str, Callable[[], Check]]]:
    """The names of the checks of `check_env`, each with what finds its answer."""
    player = _Player(env, steps, config, seed_matters)
    for name, check in _checks(seed_matters, player.make().native.can("action_mask")):
        yield name, functools.partial(_answer, name, check, player)


def _answer(name: str, check: Callable[[_Player], str], player: _Player) -> Check:
    try:
        return Check(name, True, check(player))
    except _Broken as broken:
        return Check(name, False, str(broken), broken.advice)
    except _NotClaimed as reason:
        return Check(name, None, str(reason))
    except errors.CorralError as error:
        return Check(name, False, f"{type(error).__name__}: {error}", _ADVICE_OF_ERRORS)


_ADVICE_OF_ERRORS = "mend what the error tells of: this check cannot go on beyond it"


class _Player:
    """Makes the env and plays it."""

    def __init__(
        self,
        env: str | Callable[..., VectorEnv],
        steps: int,
        config: dict[str, Any],
        seed_matters: bool,
    ) -> None:
        self._make = functools.partial(make_vec, env) if isinstance(env, str) else env
        self.steps, self.config = steps, config
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


def _checks(seed_matters: bool, has_mask: bool) -> list[tuple[str, Callable[[_Player], str]]]:
    seeded = [("seed matters", _seed_matters)] if seed_matters else []
    masked = [("action mask", _action_mask)] if has_mask else []
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
        *masked,
    ]


# The end of what `debug` says of a value outside its space.
_OUTSIDE = ": mend the env, or its space"
_MEND_SPACE = (
    "clip or mend the value in `step` or `reset`, or declare the space that the env has: see its "
    "leaves' bounds"
)


def _spaces(player: _Player) -> str:
    envs = player.make(mode="next_step", **{"debug": True, **player.config})
    what = "the reset"
    try:
        observations, _ = envs.reset(seed=0)
        _require_inside(envs, observations, what)
        for k, actions in enumerate(player.actions(envs, 0)):
            what = f"step {k}"
            observations = envs.step(actions)[0]
            _require_inside(envs, observations, what)
    except errors.EnvError as error:
        seen = _of_failure(error, 0)
        if not seen.endswith(_OUTSIDE):
            raise
        raise _Broken(seen.removesuffix(_OUTSIDE), _MEND_SPACE) from None
    return f"observations, rewards and infos of {player.steps} steps are in their spaces"


def _of_failure(error: errors.EnvError, seed: int) -> str:
    """Where an env failed, and why."""
    if not error.failures:
        return str(error)
    failure = error.failures[0]
    where = f"step {failure.step}" if failure.phase == "step" else f"the {failure.phase}"
    action = f", action {failure.action}" if failure.action else ""
    return (
        f"{where} of episode {failure.episode} after reset(seed={seed}), env {failure.slot}"
        f"{action}: {failure.message}"
    )


def _require_inside(envs: VectorEnv, observations: Any, what: str) -> None:
    """For what only Gymnasium's spaces know, the letters of a text for instance."""
    if not envs.observation_space.contains(observations):
        row, space = _row(observations, 0), envs.single_observation_space
        leaf, value, inner = _stray(row, space, ())
        raise _Broken(
            f"{what}, env 0: observation{f' leaf {leaf!r}' if leaf else ''} is {value}, which "
            f"{inner} does not contain",
            _MEND_SPACE,
        )


def _stray(value: Any, space: Any, keys: tuple[str, ...]) -> tuple[str, str, str]:
    """The name, the value and the space of the first leaf that is not in its space."""
    parts: list[tuple[Any, Any, str]] = []
    if isinstance(space, gym_spaces.Dict) and isinstance(value, dict):
        parts = [(value.get(key), inner, str(key)) for key, inner in space.spaces.items()]
    elif isinstance(space, gym_spaces.Tuple) and isinstance(value, tuple):
        parts = [(x, inner, str(k)) for k, (x, inner) in enumerate(zip(value, space.spaces))]
    for part, inner, key in parts:
        if not inner.contains(part):
            return _stray(part, inner, (*keys, key))
    return ".".join(keys), reprlib.repr(value), reprlib.repr(space)


def _require_same(told: str | None, what: str, advice: str) -> None:
    if told is not None:
        raise _Broken(f"{what}: {told}", advice)


_MEND_CHANCE = (
    "take every random number from the env's own stream, and nothing from the time, other "
    "generators, addresses or what other instances share"
)


def _determinism(player: _Player) -> str:
    first, again = (player.episode(player.make(), seed=7) for _ in range(2))
    _require_same(of_episodes(first, again), "two envs, seed 7, the same actions", _MEND_CHANCE)
    built = player.episode(player.make(seed=7))
    _require_same(
        of_episodes(first, built),
        "reset(seed=7), and an env built with seed 7, the same actions",
        "let `reseed` do what `build` does with a seed, or leave `reseed` out",
    )
    return "seed 7 twice gives the same bytes"


def _seed_matters(player: _Player) -> str:
    stories = [player.episode(player.make(), seed=seed) for seed in range(6)]
    if all(of_episodes(stories[0], other) is None for other in stories[1:]):
        raise _Broken(
            "seeds 0 to 5 all give the same episode: the seed is ignored",
            "make the random stream of `build`'s seed and draw from it; for an env that has no "
            "chance in it, say seed_matters=False (--no-randomness)",
        )
    envs = player.make()
    own = [player.episode(envs, seed=0), *(player.episode(envs) for _ in range(5))]
    if all(of_episodes(own[0], other) is None for other in own[1:]):
        raise _Broken(
            "six episodes of one seed are all the same: the stream does not go on",
            "keep the stream from episode to episode: `reset` must not make it anew",
        )
    return "seeds 0 to 5 differ, and so do the episodes of one seed"


def _require_indices(player: _Player) -> None:
    if not player.make().native.can("index"):
        raise _NotClaimed("the env plays no indices")


def _index_decides(player: _Player) -> str:
    _require_indices(player)
    fresh = [player.index(player.make(seed=1), index) for index in range(4)]
    for index in range(4):
        other = player.index(player.make(seed=2), index)
        _require_same(
            of_episodes(fresh[index], other),
            f"index {index} in a fresh env of seed 1 and in one of seed 2, the same actions",
            "an indexed episode follows from config, index and actions alone: draw nothing from "
            "the stream in `build`, and keep nothing of it; draw in `reset_with_index`, after "
            "`streams.begin_index(ix)`",
        )
    used = player.make(seed=2)
    player.episode(used)
    player.index(used, 9)
    for index in (3, 1, 0, 2):
        _require_same(
            of_episodes(fresh[index], player.index(used, index)),
            f"index {index} in a fresh env and in one that has played others, the same actions",
            "set every field in `reset_with_index`: something is left of the episodes before",
        )
    if player.seed_matters and all(of_episodes(fresh[0], other) is None for other in fresh[1:]):
        raise _Broken(
            "indices 0 to 3 all give the same episode: the index is ignored",
            "begin the stream of the index (`streams.begin_index(ix)`), or its level",
        )
    seeded = player.episode(player.make(), seed=3)
    kin = "the episode of seed 3" if of_episodes(fresh[3], seeded) is None else "a level"
    return f"the same bytes whatever came before; index 3 is {kin}"


def _index_leaves_stream(player: _Player) -> str:
    _require_indices(player)
    plain, mixed = player.make(seed=5), player.make(seed=5)
    own = [player.episode(plain) for _ in range(3)]
    advice = (
        "let `reset_with_index` draw from a stream of its own (`streams.begin_index(ix)`) and "
        "`reset` from the env's (`streams.begin_own()`)"
    )

    def require(k: int, what: str) -> None:
        told = of_episodes(own[k], player.episode(mixed))
        _require_same(told, f"{what}, without an indexed episode before it and with", advice)

    require(0, "the first own episode")
    player.index(mixed, 11)
    require(1, "the second own episode")
    player.index(mixed, 12)
    player.index(mixed, 13)
    require(2, "the third own episode")
    fresh = player.make(seed=5).native
    drawn = stream_state.drawn(fresh.save(0), 5) if fresh.can("save") else 0
    if drawn:
        raise _Broken(
            "an env built with seed 5 has drawn from its stream before its first reset: the "
            f"stream has moved {drawn} steps",
            "draw in `reset`, after `streams.begin_own()`, and nothing in `build`: seed s and "
            "index s begin with different numbers else",
        )
    return "own, own and own, indexed, own agree"


_MEND_SLOTS = "keep all state in the env itself: no statics, nothing that instances share"


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
            difference(_row(before, slot), _row(kept, slot), "observation"),
            f"env {slot}, before and after a reset whose mask leaves it out",
            "let `reset(Some([0]))` give the current observation and change nothing",
        )
    for k, (actions, same) in enumerate(
        zip(player.actions(envs, 2, 20), player.actions(alone, 2, 20), strict=True)
    ):
        ours, theirs = envs.step(actions), alone.step(same)
        for slot in (0, 2):
            what = (
                f"step {k} after a masked reset of env 1, env {slot}, with that reset and without"
            )
            told = of_steps(_row(ours[:4], slot), _row(theirs[:4], slot))
            _require_same(told, what, _MEND_SLOTS)
    return "the others keep their observation and go on as they were"


def _autoreset_modes(player: _Player) -> str:
    stories = {mode: _story(player, mode) for mode in ("next_step", "same_step", "disabled")}
    for mode in ("same_step", "disabled"):
        for k, (one, other) in enumerate(zip(stories["next_step"], stories[mode], strict=False)):
            what = f"row {k} of seed 31, env 0, as next_step and {mode} show it"
            told = f"a {one[0]} and a {other[0]}" if one[0] != other[0] else None
            told = told or of_steps(one[1:], other[1:])
            _require_same(told, what, f"{_MEND_CHANCE}; and let `step` do no reset of its own")
        if len(stories["next_step"]) != len(stories[mode]):
            lengths = f"{len(stories['next_step'])} rows and {len(stories[mode])}"
            raise _Broken(f"next_step and {mode} show {lengths}", _MEND_CHANCE)
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
                raise _Broken(
                    "next_step: the resetting step has a reward or ends the episode",
                    "let `step` never follow an episode's end by another episode of its own",
                )
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
            _require_same(
                of_steps(_row(ours[:4], 0), _row(theirs[:4], slot)),
                f"step {k} after a state of 25 steps (seed 40) was saved and loaded, in the env "
                f"that was saved and in env {slot}, which loaded it",
                "save everything that later steps depend on, the random streams included: derive "
                "Serialize and Deserialize for the whole env, without `#[serde(skip)]`",
            )
    return f"another env continues exactly for {player.steps} steps ({len(state)} bytes)"


def _render(player: _Player) -> str:
    envs, alone = player.make(1, "next_step"), player.make(1, "next_step")
    if not envs.native.can("render"):
        raise _NotClaimed("the env draws no pictures")
    envs.reset(seed=50)
    alone.reset(seed=50)
    shape: tuple[int, ...] = ()
    for k, actions in enumerate(player.actions(envs, 6, 20)):
        frame = envs.native.render()[0]
        if frame.dtype != np.uint8 or frame.ndim != 3 or frame.shape[2] != 3:
            raise _Broken(
                f"step {k}, env 0: a frame is {frame.dtype} {frame.shape}, not uint8 "
                "(height, width, 3)",
                "give `render` such frames",
            )
        shape = frame.shape
        _require_same(
            of_steps(envs.step(actions)[:4], alone.step(actions)[:4]),
            f"step {k} after seed 50, env 0, with a frame drawn before each step and without",
            "let `render` change nothing, and draw no random number",
        )
    return f"uint8 {shape}, and drawing changes nothing"


def _action_mask(player: _Player) -> str:
    envs = player.make(1, "next_step")
    envs.reset(seed=60)
    draw, over = Draws(envs, 7), False
    for k in range(player.steps):
        mask = np.asarray(envs.native.observe()[1]["action_mask"])[0]
        # What awaits its autoreset plays no action.
        barred = None if over else _barred(envs, mask)
        if barred is not None:
            raise _Broken(
                f"step {k} after seed 60, env 0: the mask allows no choice{barred}, and the "
                "episode goes on",
                "end an episode in which nothing can be played, or allow a choice in `action_mask`",
            )
        try:
            _, _, terminations, truncations, _ = envs.step(draw())
        except errors.EnvError as error:
            if error.failures and error.failures[0].phase == "step":
                raise _Broken(
                    f"{_of_failure(error, 60)} (the mask allows this action: {_short(mask)})",
                    "set the choices that `step` refuses to false in `action_mask`, or let `step` "
                    "take them",
                ) from None
            raise
        over = bool(terminations[0] or truncations[0])
    return f"{player.steps} steps of random actions that it allows were taken"


def _short(mask: Any) -> str:
    shown = ", ".join(str(int(choice)) for choice in mask[:16])
    return f"[{shown}{', …' if len(mask) > 16 else ''}]"


def _barred(envs: VectorEnv, mask: Any) -> str | None:
    """The element of the action, in words, for which a mask allows no choice."""
    first = 0
    for leaf in envs.native.action_leaves:
        if leaf["kind"] != "fixed" or not leaf["discrete"]:
            continue
        shape = tuple(leaf["shape"])
        elements = list(np.ndindex(shape))
        low, high = (np.broadcast_to(leaf[side], len(elements)) for side in ("low", "high"))
        for k, at in enumerate(elements):
            end = first + int(high[k]) - int(low[k]) + 1
            if not mask[first:end].any():
                name = f" of leaf '{leaf['name']}'" if leaf["name"] else ""
                return f"{name}{f' at {list(at)}' if at else ''}"
            first = end
    return None


def _row(batch: Any, row: int) -> Any:
    """One env's part of anything batched."""
    if isinstance(batch, dict):
        return {name: _row(inner, row) for name, inner in batch.items()}
    if isinstance(batch, tuple) and batch and isinstance(batch[0], np.ndarray | dict | tuple):
        return tuple(_row(inner, row) for inner in batch)
    return batch[row]
