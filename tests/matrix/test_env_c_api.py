"""The identity matrix across EnvCApi: the built-in envs of `corral.libenv_path()`, exported and
loaded again in every isolation.

EnvCApi carries observations as doubles, bytes and texts, and vectors of actions element by
element. Cast back, which loses nothing, the bytes are those of the env itself. An env's own
episodes begin from seeds that the loader derives: here, by NumPy.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

import corral
from tests.matrix.test_matrix import (
    SEED,
    SOURCES,
    STEPS,
    Case,
    action_of,
    action_space_of,
    index_of,
)
from tests.support import quick_cases

NUM_ENVS = 3


def flat(value: Any, name: str = "") -> dict[str, Any]:
    """The leaves of dicts and tuples, by their keys with dots between."""
    if isinstance(value, dict | tuple):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        leaves: dict[str, Any] = {}
        for key, inner in items:
            leaves.update(flat(inner, f"{name}.{key}" if name else str(key)))
        return leaves
    return {name: value}


def as_doubles(observation: Any) -> dict[str, Any]:
    """An observation as EnvCApi has it: doubles, bytes of uint8 and bool, no leaf without axes."""

    def leaf(value: Any) -> Any:
        array = np.asarray(value)
        if array.dtype.kind in "SU":
            return str(value)
        to = np.uint8 if array.dtype.name in ("uint8", "bool") else np.float64
        return np.atleast_1d(array.astype(to))

    return {name or "obs": leaf(value) for name, value in flat(observation).items()}


def elements_of(space: Any, action: Any, name: str = "") -> dict[str, Any]:
    """The elements of an action by EnvCApi's names: numbers behind those of a vector."""
    if isinstance(space, spaces.Dict | spaces.Tuple):
        keys = space.keys() if isinstance(space, spaces.Dict) else range(len(space))
        found: dict[str, Any] = {}
        for key in keys:
            inner = f"{name}.{key}" if name else str(key)
            found.update(elements_of(space[key], action[key], inner))
        return found
    array, name = np.asarray(action), name or "action"
    to = np.int64 if array.dtype.kind in "iub" else np.float64
    return {".".join([name, *map(str, at)]): to(array[at]) for at in np.ndindex(array.shape)}


def actions_at(case: Case, n: int, k: int) -> dict[str, Any]:
    space = action_space_of(case)
    rows = [elements_of(space, action_of(case, slot, k)) for slot in range(n)]
    return {name: np.stack([row[name] for row in rows]) for name in rows[0]}


def seed_of(seed: int, episode: int) -> int:
    if episode == 0:
        return seed
    return int(np.random.SeedSequence([seed, episode]).generate_state(1)[0]) >> 1


def story_of(case: Case, slot: int, indexed: bool) -> list[Any]:
    """What an env alone tells from the same seeds or indices, cast."""
    env = case.make_single()

    def begin(episode: int) -> Any:
        if indexed:
            return env.reset(options={"index": index_of(slot, episode)})[0]
        return env.reset(seed=seed_of(SEED + slot, episode))[0]

    episode, story = 0, [as_doubles(begin(0))]
    for k in range(STEPS):
        observation, reward, terminated, truncated, _ = env.step(action_of(case, slot, k))
        story.append((as_doubles(observation), reward, terminated, truncated and not terminated))
        if terminated or truncated:
            episode += 1
            story.append(as_doubles(begin(episode)))
    env.close()
    return story


def assert_same(ours: Any, theirs: Any, what: str) -> None:
    if isinstance(theirs, tuple):
        assert ours[1:] == theirs[1:], what
        ours, theirs = ours[0], theirs[0]
    assert ours.keys() == theirs.keys(), what
    for name, leaf in theirs.items():
        if isinstance(leaf, str):
            assert ours[name] == leaf, f"{what}: {name}"
        else:
            assert ours[name].dtype == leaf.dtype, f"{what}: {name}"
            np.testing.assert_array_equal(ours[name], leaf, err_msg=f"{what}: {name}")


@pytest.mark.parametrize("indexed", [False, True], ids=["seed", "index"])
@pytest.mark.parametrize("isolation", ["thread", "copy", "process"])
@pytest.mark.parametrize("case", quick_cases(SOURCES))
def test_an_env_exported_and_loaded_again_tells_the_same_story(
    case: Case, isolation: str, indexed: bool
) -> None:
    settings = {"env_id": case.id, "max_episode_steps": case.limit or -1, **case.config}
    envs = corral.load_env_c_api(
        corral.libenv_path(),
        NUM_ENVS,
        isolation=isolation,
        settings={**settings, "episode_id_is_index": indexed},
        autoreset_mode="disabled",
        seed=SEED,
        **({"num_workers": 2} if isolation == "process" else {}),
    )
    episodes = np.zeros(NUM_ENVS, int)

    def begin(ended: np.ndarray[Any, Any]) -> Any:
        options: dict[str, Any] = {"reset_mask": ended}
        if indexed:
            # Of envs that go on the index is not looked at.
            options["index"] = [index_of(slot, int(episodes[slot])) for slot in range(NUM_ENVS)]
        return envs.reset(options=options)[0]

    def row(observations: Any, slot: int) -> dict[str, Any]:
        return {name: leaf[slot] for name, leaf in observations.items()}

    observations = begin(np.ones(NUM_ENVS, bool))
    stories: list[list[Any]] = [[row(observations, slot)] for slot in range(NUM_ENVS)]
    for k in range(STEPS):
        observations, rewards, terminated, truncated, _ = envs.step(actions_at(case, NUM_ENVS, k))
        for slot in range(NUM_ENVS):
            flags = (bool(terminated[slot]), bool(truncated[slot]))
            stories[slot].append((row(observations, slot), float(rewards[slot]), *flags))
        ended = terminated | truncated
        if ended.any():
            episodes += ended
            observations = begin(ended)
            for slot in np.flatnonzero(ended):
                stories[slot].append(row(observations, slot))
    envs.close()
    for slot, story in enumerate(stories):
        expected = story_of(case, slot, indexed)
        assert len(story) == len(expected)
        for at, (ours, theirs) in enumerate(zip(story, expected)):
            assert_same(ours, theirs, f"env {slot}, event {at}")
