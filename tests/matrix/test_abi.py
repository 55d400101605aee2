"""The identity matrix across C interfaces: the built-in envs of `corral.libenv_path()` as a plugin,
as a libenv library under our own loader in both isolations, and under the real gym3.

A plugin carries everything. Libenv leaves out what it has no place for, and only that:
- its one autoreset mode is SAME_STEP;
- rewards are float32; spaces are dicts, whose only leaf is called `obs` or `action`;
- declared infos are narrowed to float32 and int32, and tell nothing at resets: they are not
  compared. What ends an episode, and its last observation, are;
- gym3's host has no seeds or indices after the making: there the seed is an option;
- it has no place for texts: an env that shows one is refused.
"""

from __future__ import annotations

import json
import subprocess
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

import corral
from tests.abi import peers
from tests.abi.venvs import fetched
from tests.matrix.test_matrix import (
    MODES,
    SEED,
    SOURCES,
    STEPS,
    Case,
    Story,
    action_of,
    action_space_of,
    assert_same_story,
    index_of,
    single_story,
    slot_stories,
    vector_stories,
)
from tests.support import FAULTY, digest, quick_cases

WIDTHS = [1, 3, 64]


def shows_a_text(case: Case) -> bool:
    leaves = case.make_vec(1, "next_step").native.observation_leaves
    return any(leaf["kind"] == "text" for leaf in leaves)


TEXTS = [case for case in SOURCES if shows_a_text(case)]
IN_LIBENV = [case for case in SOURCES if case not in TEXTS]


@pytest.fixture(scope="module", autouse=True)
def carried() -> None:
    """The library of built-in envs, loaded as if it were another's."""
    corral.load(corral.libenv_path(), namespace="carried")


@pytest.mark.parametrize("n", WIDTHS)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("indexed", [False, True], ids=["seed", "index"])
@pytest.mark.parametrize("case", quick_cases(SOURCES))
def test_a_plugin_tells_the_same_story_of_every_slot(
    case: Case, indexed: bool, mode: str, n: int
) -> None:
    there = Case(case.name, "carried/" + case.id, case.limit, case.config)
    stories = vector_stories(there.make_vec(n, mode), case, mode, indexed)
    for slot, story in enumerate(stories):
        assert_same_story(story, single_story(case, slot, indexed), f"env {slot}")


@pytest.mark.parametrize("case", quick_cases(SOURCES))
def test_some_slots_of_a_plugin_at_a_time_tell_the_same_story(case: Case) -> None:
    there = Case(case.name, "carried/" + case.id, case.limit, case.config)
    for slot, story in enumerate(slot_stories(there.make_vec(3, "disabled"), case)):
        assert_same_story(story, single_story(case, slot, True), f"env {slot}")


def narrow(case: Case, slot: int, indexed: bool) -> Story:
    """The story of a single env, as far as libenv tells it."""
    env = case.make_single()

    def begin(episode: int) -> Any:
        if indexed:
            return env.reset(options={"index": index_of(slot, episode)})[0]
        return (env.reset(seed=SEED + slot) if episode == 0 else env.reset())[0]

    story, episode = [digest(shown(begin(0)))], 0
    for k in range(STEPS):
        observation, reward, terminated, truncated, _ = env.step(action_of(case, slot, k))
        step = (digest(shown(observation)), float(np.float32(reward)), terminated, truncated)
        story.append(step)
        if terminated or truncated:
            episode += 1
            story.append(digest(shown(begin(episode))))
    return story


def shown(observation: Any) -> Any:
    """An observation as libenv carries it with `cast`: float64 and unbounded int32 (Faulty's) are
    rounded to float32, bool is uint8, labels are int32, and so is int8 (ConnectFour's, from -1),
    counted from 0; the parts of a tuple have numbers for names."""

    def leaf(value: Any) -> Any:
        array = np.asarray(value)
        if array.dtype == np.int8:
            return array.astype(np.int32) + 1
        to = {
            "float64": np.float32,
            "bool": np.uint8,
            "int32": np.float32,
            "int64": np.int32,
        }.get(array.dtype.name)
        return array if to is None else array.astype(to)

    if isinstance(observation, tuple):
        observation = {str(k): part for k, part in enumerate(observation)}
    if isinstance(observation, dict):
        return {name: leaf(value) for name, value in flat(observation).items()}
    return leaf(observation)


def flat(nested: dict[str, Any]) -> dict[str, Any]:
    """A dict without others in it: libenv's names have dots for them."""
    leaves: dict[str, Any] = {}
    for name, value in nested.items():
        inner = (
            {f"{name}.{k}": v for k, v in flat(value).items()} if isinstance(value, dict) else {}
        )
        leaves.update(inner or {name: value})
    return leaves


def options_of(case: Case) -> dict[str, Any]:
    options: dict[str, Any] = {"env_id": case.id, "max_episode_steps": case.limit or -1}
    if case.id == FAULTY:
        options["cast"] = True
    return {**options, **case.config}


def actions_at(case: Case, n: int, k: Any) -> dict[str, Any]:
    """Libenv's actions: flat, counted from 0, in int32 and float32."""

    def narrow(space: gymnasium.Space[Any], action: Any) -> Any:
        if isinstance(space, spaces.Dict):
            return {name: narrow(space[name], inner) for name, inner in action.items()}
        if isinstance(space, spaces.Discrete):
            return np.int32(action - space.start)
        assert isinstance(space, spaces.Box), f"narrow an action of {space} here"
        return np.float32(action)

    space = action_space_of(case)
    rows = [narrow(space, action_of(case, slot, int(k[slot]))) for slot in range(n)]
    flat_rows = [
        flat(action) if isinstance(action, dict) else {"action": action} for action in rows
    ]
    return {name: np.stack([action[name] for action in flat_rows]) for name in flat_rows[0]}


def only(observation: dict[str, Any]) -> Any:
    """The only leaf of an observation that has one."""
    return observation["obs"] if list(observation) == ["obs"] else flat(observation)


def row(observation: Any, at: int) -> Any:
    if isinstance(observation, dict):
        return {name: row(inner, at) for name, inner in observation.items()}
    return np.asarray(observation[at])


@pytest.mark.parametrize("indexed", [False, True], ids=["seed", "index"])
@pytest.mark.parametrize(
    ("isolation", "workers", "n"),
    [
        *(("thread", 1, 1), ("thread", 1, 6), ("thread", 2, 6), ("process", 2, 6)),
        *(pytest.param("process", 1, n, marks=pytest.mark.thorough) for n in (1, 6)),
    ],
)
@pytest.mark.parametrize("case", quick_cases(IN_LIBENV))
def test_our_library_under_our_loader_tells_the_same_story(
    case: Case, isolation: str, workers: int, indexed: bool, n: int
) -> None:
    envs = corral.load_libenv(
        corral.libenv_path(), n, options_of(case), isolation=isolation, num_workers=workers
    )
    first = [index_of(slot, 0) for slot in range(n)]
    if indexed:
        observations, _ = envs.reset(options={"index": first})
    else:
        observations, _ = envs.reset(seed=SEED)
    stories: list[Story] = [[digest(row(only(observations), i))] for i in range(n)]
    for k in range(STEPS):
        actions = actions_at(case, n, np.full(n, k))
        observations, rewards, terminated, truncated, infos = envs.step(actions)
        for i in range(n):
            last = row(only(observations), i)
            ended = bool(terminated[i] or truncated[i])
            if ended:
                final = flat(infos["final_obs"][i])
                last = only({name: np.asarray(leaf) for name, leaf in final.items()})
            step = (digest(last), float(rewards[i]), bool(terminated[i]), bool(truncated[i]))
            stories[i].append(step)
            if ended:
                stories[i].append(digest(row(only(observations), i)))
    envs.close()
    for slot, story in enumerate(stories):
        expected = narrow(case, slot, indexed)
        if indexed:
            # An autoreset goes on with the slot's own stream, an index's story with the next.
            ends = next(k for k, event in enumerate(expected[1:], 1) if event[2] or event[3])
            story, expected = story[: ends + 1], expected[: ends + 1]
        assert story == expected, f"env {slot}"


@pytest.mark.parametrize("isolation", ["thread", "process"])
@pytest.mark.parametrize("workers", [1, 2])
def test_an_index_at_first_leaves_every_slots_own_stream(isolation: str, workers: int) -> None:
    def play(envs: corral.VectorEnv, dtype: Any) -> list[Any]:
        seen = [envs.reset(options={"index": 100})[0]]
        for _ in range(60):
            ones = np.ones(4, dtype)
            seen.append(envs.step({"action": ones} if isinstance(seen[0], dict) else ones)[0])
        envs.close()
        return [only(one) if isinstance(one, dict) else one for one in seen]

    here = corral.make_vec("CartPole-v1", 4, seed=5, autoreset_mode="same_step")
    there = corral.load_libenv(
        corral.libenv_path(),
        4,
        {"env_id": "CartPole-v1"},
        seed=5,
        isolation=isolation,
        num_workers=workers,
    )
    for k, (ours, theirs) in enumerate(zip(play(here, np.int64), play(there, np.int32))):
        np.testing.assert_array_equal(ours, theirs, err_msg=f"step {k}")


@pytest.mark.parametrize(("workers", "n"), [(1, 3), (2, 8)])
@pytest.mark.parametrize("isolation", ["thread", "process"])
def test_an_evaluation_of_our_library_plays_every_index_once(
    isolation: str, workers: int, n: int
) -> None:
    def policy(observations: Any) -> Any:
        seen = observations["obs"] if isinstance(observations, dict) else observations
        push = (seen[:, 2] + seen[:, 3] > 0).astype(np.int32)
        return {"action": push} if isinstance(observations, dict) else push

    indices = [5, 0, 3, 9, 11, 2, 5]
    envs = corral.load_libenv(
        corral.libenv_path(),
        n,
        {"env_id": "CartPole-v1"},
        isolation=isolation,
        num_workers=workers,
    )
    there = corral.evaluate(policy, envs, indices)
    envs.close()
    here = corral.evaluate(policy, "CartPole-v1", indices, num_envs=2)
    assert there.returns.tolist() == here.returns.tolist()
    assert there.lengths.tolist() == here.lengths.tolist()


GYM3 = """
import json, sys
import numpy as np
from gym3.libenv import CEnv

job = json.load(sys.stdin)
env = CEnv(lib_dir=job["folder"], num=job["n"], options=job["options"])
told = {}

def tell(name, array):
    told.setdefault(name, []).append(array)

for action in [None, *job["actions"]]:
    if action is not None:
        env.act({name: np.array(leaf, dtype=job["dtypes"][name]) for name, leaf in action.items()})
    reward, ob, first = env.observe()
    tell("reward", reward.copy())
    tell("first", first.copy())
    for name, leaf in ob.items():
        tell("ob." + name, leaf.copy())
    for name in env.get_info()[0]:
        tell("info." + name, np.array([info[name] for info in env.get_info()]))
np.savez(job["out"], **{name: np.stack(arrays) for name, arrays in told.items()})
env.close()
"""


@pytest.mark.parametrize("case", quick_cases(TEXTS))
def test_libenv_refuses_an_env_that_shows_a_text(case: Case) -> None:
    with pytest.raises(corral.errors.EnvError, match="libenv cannot carry observation '"):
        corral.load_libenv(corral.libenv_path(), 2, options_of(case))


@pytest.mark.parametrize("case", quick_cases(IN_LIBENV))
def test_our_library_under_the_real_gym3_tells_the_same_story(case: Case, tmp_path) -> None:
    python = fetched(peers.venv_python, "gym3")
    n = 5
    (tmp_path / "libenv.so").symlink_to(corral.libenv_path())
    actions = [actions_at(case, n, np.full(n, k)) for k in range(STEPS)]
    job = {
        "folder": str(tmp_path),
        "n": n,
        "options": {**options_of(case), "seed": SEED},
        "actions": [{name: leaf.tolist() for name, leaf in action.items()} for action in actions],
        "dtypes": {name: leaf.dtype.name for name, leaf in actions[0].items()},
        "out": str(tmp_path / "told.npz"),
    }
    subprocess.run([python, "-c", GYM3], input=json.dumps(job), text=True, check=True, timeout=120)
    with np.load(tmp_path / "told.npz") as file:
        told = {name: np.asarray(leaf) for name, leaf in file.items()}
    shown = {name.removeprefix("ob."): leaf for name, leaf in told.items() if name[:3] == "ob."}
    finals = {name: told[f"info.final_{name}"] for name in shown if f"info.final_{name}" in told}
    for slot in range(n):
        story: Story = []
        for k in range(STEPS + 1):
            ob = {name: leaf[k, slot] for name, leaf in shown.items()}
            if k > 0:
                first = bool(told["first"][k, slot])
                final = {name: leaf[k, slot] for name, leaf in finals.items()}
                flags = (
                    bool(told["info.terminated"][k, slot]),
                    bool(told["info.truncated"][k, slot]),
                )
                assert first == any(flags)
                last = digest(only(final if first else ob))
                story.append((last, float(told["reward"][k, slot]), *flags))
                if not first:
                    continue
            story.append(digest(only(ob)))
        assert story == narrow(case, slot, False), f"env {slot}"
