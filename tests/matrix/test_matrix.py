"""The identity matrix, Python's half: source × sink × autoreset mode × width, the same bytes.

Each sink tells what every slot went through as a story of resets and steps; slot i, seeded with
`SEED + i`, takes as its k-th played step the action that (i, k) decides. So a slot's story must not
depend on the sink, the mode, or how many others there are.

What a sink cannot carry is left out of its stories, and only that:
- single envs and Gymnasium's `SyncVectorEnv` over them know infos as Python numbers: the dtype of
  an info without axes is lost, its value is not;
- `SyncVectorEnv` gives all envs the same options: it cannot give each an index;
- the slot calls that `evaluate` makes begin episodes by index only;
- Odd resets itself in the same step and takes neither a second reset nor a seed nor an index: there
  are no single envs of it, no other modes, no evaluation.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import SyncVectorEnv

import corral
from tests.support import (
    FAULTY,
    GYMNASIUM_MODES,
    LIKE_ANOTHER,
    MODES,
    ODD,
    OLD_NUMPY,
    PLAYED,
    Case,
    digest,
    gymnasium_spec,
    row,
)

SEED = 500
STEPS = 30
WIDTHS = [1, 3, 64]
CONFIGS: dict[str, dict[str, Any]] = {"Maze-v0": {"size": 4}}
"""Options under which episodes are short enough to end within a story."""
OLD = gymnasium.__version__ < "1.4" or OLD_NUMPY


def gymnasiums(id: str) -> str | None:
    """The id, where Gymnasium has the same env; `tests/parity` has the details.

    NumPy's sin may not be libm's, which Pendulum's rewards tell. Older versions have other envs.
    """
    if id not in gymnasium.registry or id == "Pendulum-v1":
        return None
    return None if OLD and id != "CartPole-v1" else id


SOURCES = [
    *(Case(id, id, 20, CONFIGS.get(id, {}), reference=gymnasiums(id)) for id in PLAYED),
    Case(FAULTY, FAULTY, 8),
]
"""The built-in envs of the table, and the hidden one whose spaces are nested."""

Story = list[Any]


@functools.cache
def action_space_of(case: Case) -> gymnasium.Space[Any]:
    env = case.make_single()
    env.close()
    return env.action_space


@functools.cache
def action_of(case: Case, slot: int, k: int) -> Any:
    """The k-th action of a slot."""
    return drawn_from(action_space_of(case), np.random.default_rng([slot, k]))


def drawn_from(space: gymnasium.Space[Any], rng: np.random.Generator) -> Any:
    """An element of `space`; of a box without bounds, one from -2 to 2."""
    if isinstance(space, spaces.Dict):
        return {name: drawn_from(inner, rng) for name, inner in space.items()}
    if isinstance(space, spaces.Discrete):
        return space.start + rng.integers(space.n)
    if isinstance(space, spaces.MultiDiscrete):
        return (space.start + rng.integers(space.nvec)).astype(space.dtype)
    if isinstance(space, spaces.MultiBinary):
        return rng.integers(2, size=space.shape).astype(space.dtype)
    assert isinstance(space, spaces.Box), f"draw from {space} here"
    low, high = np.maximum(space.low, -2), np.minimum(space.high, 2)
    return rng.uniform(low, high).astype(space.dtype)


def index_of(slot: int, episode: int) -> int:
    """What a slot's episodes play where indices are given."""
    return 1000 * slot + 7 * episode


def stack(actions: list[Any]) -> Any:
    if isinstance(actions[0], dict):
        return {name: stack([action[name] for action in actions]) for name in actions[0]}
    return np.stack(actions)


def scalars_plain(value: Any) -> Any:
    """Infos with the dtype left out where there are no axes."""
    if isinstance(value, dict):
        return {name: scalars_plain(inner) for name, inner in value.items()}
    if isinstance(value, np.ndarray | np.generic) and value.ndim == 0:
        return value.item()
    return value


def info_of(infos: dict[str, Any], slot: int) -> dict[str, Any]:
    """A slot's own info out of a batch's, by the masks."""
    info: dict[str, Any] = {}
    for key, value in infos.items():
        if key.startswith(("_", "final_")) or not infos[f"_{key}"][slot]:
            continue
        info[key] = info_of(value, slot) if isinstance(value, dict) else value[slot]
    return info


def reset_of(observation: Any, info: dict[str, Any]) -> Any:
    return ("reset", digest(arrays_of(observation)), digest(scalars_plain(info)))


def step_of(observation: Any, reward: Any, terminated: Any, truncated: Any, info: Any) -> Any:
    seen = digest(arrays_of(observation))
    return (
        "step",
        seen,
        float(reward),
        bool(terminated),
        bool(truncated),
        digest(scalars_plain(info)),
    )


def arrays_of(observation: Any) -> Any:
    """Rows of leaves without axes are scalars in a batch, arrays in a single env."""
    if isinstance(observation, dict):
        return {name: arrays_of(inner) for name, inner in observation.items()}
    if isinstance(observation, tuple):
        return tuple(map(arrays_of, observation))
    return np.asarray(observation)


@functools.cache
def single_story(case: Case, slot: int, indexed: bool) -> Story:
    """By one `corral.Env`: the other sinks are held to it."""
    return told_by(case.make_single(), case, slot, indexed)


def told_by(env: gymnasium.Env, case: Case, slot: int, indexed: bool) -> Story:
    def begin(episode: int) -> Any:
        if indexed:
            return env.reset(options={"index": index_of(slot, episode)})
        return env.reset(seed=SEED + slot) if episode == 0 else env.reset()

    story, episode = [reset_of(*begin(0))], 0
    for k in range(STEPS):
        step = env.step(action_of(case, slot, k))
        story.append(step_of(*step))
        if step[2] or step[3]:
            episode += 1
            story.append(reset_of(*begin(episode)))
    return story


def vector_stories(envs: Any, case: Case, mode: str, indexed: bool) -> list[Story]:
    """By any vec env with Gymnasium's face, until each slot has played its steps."""
    n = envs.num_envs
    episode = np.zeros(n, dtype=np.int64)

    def next_indices() -> list[int]:
        return [index_of(slot, int(episode[slot])) for slot in range(n)]

    options = {"index": next_indices()} if indexed else None
    observations, infos = envs.reset(seed=None if indexed else SEED, options=options)
    stories = [[reset_of(row(observations, i), info_of(infos, i))] for i in range(n)]
    played = np.zeros(n, dtype=np.int64)
    awaits = np.zeros(n, dtype=np.bool_)
    while (played < STEPS).any():
        if indexed and mode != "disabled":
            # What the next autoreset is to play; one that is due has its episode counted already.
            due = awaits if mode == "next_step" else np.zeros(n, dtype=np.bool_)
            for slot in range(n):
                following = int(episode[slot]) + (not due[slot])
                envs.native.set_next_index(slot, index_of(slot, following))
        actions = stack([action_of(case, i, int(played[i])) for i in range(n)])
        observations, rewards, terminations, truncations, infos = envs.step(actions)
        ended = terminations | truncations
        resets = awaits if mode == "next_step" else np.zeros(n, dtype=np.bool_)
        for i in range(n):
            seen = row(observations, i)
            if resets[i]:
                assert rewards[i] == 0
                stories[i].append(reset_of(seen, info_of(infos, i)))
                continue
            played[i] += 1
            flags = rewards[i], terminations[i], truncations[i]
            if mode == "same_step" and ended[i]:
                final = infos["final_obs"][i]
                stories[i].append(step_of(final, *flags, info_of(infos["final_info"], i)))
                stories[i].append(reset_of(seen, info_of(infos, i)))
            else:
                stories[i].append(step_of(seen, *flags, info_of(infos, i)))
        episode += ended
        awaits = ended
        if mode == "disabled" and ended.any():
            options = {"reset_mask": ended}
            if indexed:
                options["index"] = next_indices()
            observations, infos = envs.reset(options=options)
            for i in np.flatnonzero(ended):
                stories[i].append(reset_of(row(observations, i), info_of(infos, i)))
    return stories


def slot_stories(envs: corral.VectorEnv, case: Case) -> list[Story]:
    """By the calls that `evaluate` makes, of some slots at a time and in any order."""
    n, native = envs.num_envs, envs.native
    rng = np.random.default_rng(0)
    stories: list[Story] = [[] for _ in range(n)]
    played = np.zeros(n, dtype=np.int64)
    episode = np.zeros(n, dtype=np.int64)

    def begin(slots: list[int]) -> None:
        indices = [index_of(slot, int(episode[slot])) for slot in slots]
        observations, infos = native.reset_slots(slots, indices)
        for at, slot in enumerate(slots):
            stories[slot].append(reset_of(row(observations, at), info_of(infos, at)))

    begin(list(range(n)))
    while (played < STEPS).any():
        slots = rng.permutation(n)[: rng.integers(1, n + 1)].tolist()
        actions = stack([action_of(case, slot, int(played[slot])) for slot in slots])
        observations, rewards, terminations, truncations, infos = native.step_slots(slots, actions)
        ended = []
        for at, slot in enumerate(slots):
            flags = rewards[at], terminations[at], truncations[at]
            seen, info = row(observations, at), info_of(infos, at)
            if "final_obs" in infos and infos["_final_obs"][at]:
                seen, info = infos["final_obs"][at], info_of(infos["final_info"], at)
            stories[slot].append(step_of(seen, *flags, info))
            played[slot] += 1
            if flags[1] or flags[2]:
                ended.append(slot)
                episode[slot] += 1
        if ended:
            begin(ended)
    return stories


def make_by_gymnasium(case: Case, n: int, mode: str) -> Any:
    spec = gymnasium_spec(case.id, case.limit, case.config)
    return gymnasium.make_vec(spec, n, vectorization_mode="vector_entry_point", autoreset_mode=mode)


def make_sync(case: Case, n: int, mode: str) -> Any:
    return SyncVectorEnv([case.make_single] * n, autoreset_mode=GYMNASIUM_MODES[mode])


class Rolled:
    """Steps by rollouts of one step each. With autoreset disabled a rollout resets what has ended,
    so that it tells what "same_step" tells."""

    def __init__(self, envs: corral.VectorEnv) -> None:
        self.envs, self.num_envs, self.reset = envs, envs.num_envs, envs.reset
        declared = {leaf["name"].split(".")[0] for leaf in envs.native.info_leaves}
        # Faulty's note is not declared.
        self.names = [*declared, "note"]

    def step(self, actions: Any) -> Any:
        rollout = self.envs.rollout(lambda seen: actions, 1, infos=self.names)
        infos, finals = row(rollout.infos, 1), rollout.finals
        if len(finals.steps) and self.envs.native.autoreset_mode != "next_step":
            n = self.num_envs
            infos["final_obs"] = np.full(n, None, dtype=object)
            for k, slot in enumerate(finals.envs):
                infos["final_obs"][slot] = row(finals.observations, k)
            infos["final_info"] = spread(finals.infos, finals.envs, n)
        flags = rollout.rewards[0], rollout.terminations[0], rollout.truncations[0]
        return row(rollout.observations, 1), *flags, infos


def spread(packed: Any, rows: Any, n: int) -> Any:
    """Packed infos in rows of a batch of n."""
    if isinstance(packed, dict):
        return {name: spread(inner, rows, n) for name, inner in packed.items()}
    batch = np.zeros((n, *packed.shape[1:]), packed.dtype)
    batch[rows] = packed
    return batch


def roll(case: Case, n: int, mode: str, indexed: bool) -> list[Story]:
    told = "same_step" if mode == "disabled" else mode
    return vector_stories(Rolled(case.make_vec(n, mode)), case, told, indexed)


@dataclass(frozen=True)
class Sink:
    """How stories come out of one sink; `begins`: by seed, by index, or both."""

    name: str
    begins: tuple[str, ...]
    tell: Callable[[Case, int, str, bool], list[Story]]


def by_vector(
    make: Callable[[Case, int, str], Any],
) -> Callable[[Case, int, str, bool], list[Story]]:
    return lambda case, n, mode, indexed: vector_stories(make(case, n, mode), case, mode, indexed)


SINKS = [
    Sink("corral.VectorEnv", ("seed", "index"), by_vector(Case.make_vec)),
    Sink("gymnasium.make_vec", ("seed", "index"), by_vector(make_by_gymnasium)),
    Sink("SyncVectorEnv", ("seed",), by_vector(make_sync)),
    Sink("VectorEnv.rollout", ("seed",), roll),
    Sink(
        "slot calls",
        ("index",),
        lambda case, n, mode, _: slot_stories(case.make_vec(n, mode), case),
    ),
]


def cells() -> Iterator[Any]:
    for case in SOURCES:
        for sink in SINKS:
            for begin in sink.begins:
                for mode in MODES:
                    for n in WIDTHS:
                        name = f"{case}-{sink.name}-{begin}-{mode}-{n}"
                        marks = [pytest.mark.thorough] if case.id in LIKE_ANOTHER else []
                        yield pytest.param(case, sink, begin, mode, n, marks=marks, id=name)


def assert_same_story(got: Story, expected: Story, what: str) -> None:
    for k, (ours, theirs) in enumerate(zip(got, expected)):
        assert ours == theirs, f"{what}: event {k}"
    # Where a slot has played its steps, others may still play: it goes on, or ends just before
    # the last reset.
    assert len(got) >= len(expected) - 1, what


@pytest.mark.parametrize(("case", "sink", "begin", "mode", "n"), list(cells()))
def test_every_sink_tells_the_same_story_of_every_slot(
    case: Case, sink: Sink, begin: str, mode: str, n: int
) -> None:
    indexed = begin == "index"
    stories = sink.tell(case, n, mode, indexed)
    assert len(stories) == n
    for slot, story in enumerate(stories):
        expected = single_story(case, slot, indexed)
        assert sum(event[0] == "reset" for event in expected) >= 2
        assert_same_story(story, expected, f"env {slot}")


@pytest.mark.parametrize("indexed", [False, True])
def test_the_story_all_are_held_to_is_gymnasiums_own_where_gymnasium_has_the_env(
    indexed: bool,
) -> None:
    """Gymnasium's own envs, in Python; index ix is the episode of seed ix."""

    class ByIndex(gymnasium.Wrapper):
        def reset(self, *, seed: Any = None, options: Any = None) -> Any:
            return self.env.reset(seed=options["index"] if options else seed)

    for case, slot in itertools.product((c for c in SOURCES if c.reference), range(8)):
        theirs = told_by(ByIndex(case.make_gymnasium()), case, slot, indexed)
        assert_same_story(single_story(case, slot, indexed), theirs, f"{case}, env {slot}")


@pytest.mark.parametrize("case", SOURCES, ids=str)
def test_stories_of_different_slots_differ(case: Case) -> None:
    """So that the matrix compares something."""
    for indexed in (False, True):
        told = {repr(single_story(case, slot, indexed)) for slot in range(16)}
        assert len(told) == 16


WORDS = ["", "a", "bcd", "süß", "efgh"]


def odd_action(slot: int, k: int) -> dict[str, Any]:
    return {"move": (slot + k) % 3, "word": WORDS[(2 * slot + 3 * k) % len(WORDS)]}


def odd_story(slot: int, steps: int) -> Story:
    """Odd's rules, worked out apart from it: count up by move and word, start over at 10."""

    def shown(count: int) -> Any:
        items = np.full(count % 5, count, dtype=np.int32)
        return digest({"items": items, "says": f"slot {slot} at {count}", "count": np.uint8(count)})

    count, story = 0, [shown(0)]
    for k in range(steps):
        action = odd_action(slot, k)
        # A word counts by its bytes.
        count += action["move"] + len(action["word"].encode())
        reached, over = count, count >= 10
        count = 0 if over else count
        info = {"reached": reached} if over else {}
        if action["word"]:
            info["last_word"] = action["word"]
        story.append((shown(count), float(reached), over, False, info))
    return story


def odd_told(batch: Any, at: int) -> Any:
    observations, rewards, terminations, truncations, infos = batch
    info = {
        key: value[at] if value.dtype == object else value[at].item()
        for key, value in infos.items()
        # Something of Rust's that Python cannot open.
        if not key.startswith("_") and key != "thing" and infos[f"_{key}"][at]
    }
    assert infos["_thing"].all()
    seen = digest(row(observations, at))
    return seen, float(rewards[at]), bool(terminations[at]), bool(truncations[at]), info


def make_odd(how: str, n: int) -> Any:
    if how == "corral.make_vec":
        return corral.make_vec(ODD, n, autoreset_mode="same_step")
    return make_by_gymnasium(Case(ODD, ODD), n, "same_step")


@pytest.mark.parametrize("n", WIDTHS)
@pytest.mark.parametrize("how", ["corral.make_vec", "gymnasium.make_vec"])
def test_a_source_that_resets_itself_tells_its_story_through_every_sink_that_takes_it(
    how: str, n: int
) -> None:
    envs = make_odd(how, n)
    observations, infos = envs.reset()
    assert infos == {}
    stories: list[Story] = [[digest(row(observations, slot))] for slot in range(n)]
    for k in range(STEPS):
        actions = [odd_action(slot, k) for slot in range(n)]
        batch = envs.step({name: [action[name] for action in actions] for name in ("move", "word")})
        for slot in range(n):
            stories[slot].append(odd_told(batch, slot))
    assert stories == [odd_story(slot, STEPS) for slot in range(n)]
    ends = sum(event[2] for story in stories for event in story[1:])
    assert ends >= 5 * n


@pytest.mark.parametrize("n", WIDTHS)
def test_some_slots_at_a_time_tell_the_same_story_of_a_source_that_resets_itself(n: int) -> None:
    envs = make_odd("corral.make_vec", n)
    observations, _ = envs.reset()
    stories: list[Story] = [[digest(row(observations, slot))] for slot in range(n)]
    rng = np.random.default_rng(1)
    for _ in range(STEPS):
        slots = rng.permutation(n)[: rng.integers(1, n + 1)].tolist()
        actions = [odd_action(slot, len(stories[slot]) - 1) for slot in slots]
        batch = envs.native.step_slots(
            slots, {name: [action[name] for action in actions] for name in ("move", "word")}
        )
        for at, slot in enumerate(slots):
            stories[slot].append(odd_told(batch, at))
    for slot in range(n):
        assert stories[slot] == odd_story(slot, len(stories[slot]) - 1)


CANNOT: dict[str, Callable[[], Any]] = {
    "be a single env": lambda: corral.make(ODD),
    "be a single env of gymnasium's": lambda: gymnasium.make(gymnasium_spec(ODD, None, {})),
    "run in next_step": lambda: corral.make_vec(ODD, 1, autoreset_mode="next_step"),
    "run with autoreset disabled": lambda: corral.make_vec(ODD, 1, autoreset_mode="disabled"),
    "be seeded": lambda: make_odd("corral.make_vec", 1).reset(seed=1),
    "play an index": lambda: make_odd("corral.make_vec", 1).reset(options={"index": 1}),
    "be evaluated": lambda: corral.evaluate(lambda o: o, make_odd("corral.make_vec", 1), [1]),
    "begin a slot's episode": lambda: make_odd("corral.make_vec", 1).native.reset_slots([0], [1]),
    "take options": lambda: make_odd("corral.make_vec", 1).reset(options={"a": 1}),
}


@pytest.mark.parametrize("what", CANNOT)
def test_what_a_source_cannot_do_is_a_clear_error_never_an_imitation(what: str) -> None:
    with pytest.raises(corral.errors.UnsupportedError, match=ODD):
        CANNOT[what]()


def test_a_source_that_cannot_be_reset_again_says_so_and_goes_on() -> None:
    envs = make_odd("corral.make_vec", 2)
    envs.reset()
    step = {"move": [1, 2], "word": ["a", ""]}
    first = envs.step(step)[0]["count"]
    for refused in (
        lambda: envs.reset(),
        lambda: envs.reset(options={"reset_mask": np.array([True, False])}),
        lambda: envs.native.save(0),
    ):
        with pytest.raises(corral.errors.UnsupportedError, match=f"{ODD} cannot"):
            refused()
    np.testing.assert_array_equal(envs.step(step)[0]["count"], 2 * first)
