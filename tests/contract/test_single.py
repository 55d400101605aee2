"""`corral.make` gives a real `gymnasium.Env`, the same as one slot of a vec env."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest

import corral
from corral.errors import (
    ArgumentError,
    ArgumentTypeError,
    EnvError,
    ResetNeededError,
    UnsupportedError,
)
from tests.support import CASES, FAULTY, Case, assert_same, digest, row, sampled


def plain(info: Any) -> None:
    """Infos hold Python's numbers and texts, arrays of an own shape, and dicts of these."""
    for key, value in info.items():
        assert isinstance(key, str)
        if isinstance(value, dict):
            plain(value)
        elif isinstance(value, np.ndarray):
            assert value.ndim > 0, key
        else:
            assert type(value) in (int, float, bool, str), key


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_step_gives_the_types_that_gymnasium_asks_for(case: Case) -> None:
    env = case.make_single()
    assert isinstance(env, gymnasium.Env)
    observation, info = env.reset(seed=0)
    assert env.observation_space.contains(observation)
    plain(info)
    for _, action in zip(range(5), sampled(env, 0)):
        observation, reward, terminated, truncated, info = env.step(action)
        assert env.observation_space.contains(observation)
        assert type(reward) is float
        assert type(terminated) is bool
        assert type(truncated) is bool
        assert type(info) is dict
        plain(info)
        for array in leaves(observation):
            assert isinstance(array, np.ndarray)
            assert array.flags.writeable
            assert array.flags.c_contiguous
        if terminated or truncated:
            env.reset()


def leaves(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [leaf for inner in value.values() for leaf in leaves(inner)]
    return [value]


def info_of(infos: dict[str, Any], slot: int) -> dict[str, Any]:
    """One env's info out of a vec env's, by the masks."""
    info: dict[str, Any] = {}
    for key, value in infos.items():
        if key.startswith("_") or not infos[f"_{key}"][slot]:
            continue
        if isinstance(value, dict):
            info[key] = info_of(value, slot)
        elif value.dtype == object or value.ndim > 1:
            info[key] = value[slot]
        else:
            info[key] = value[slot].item()
    return info


@pytest.mark.parametrize("slot", [0, 2])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_single_env_plays_what_a_slot_of_a_vec_env_plays(case: Case, slot: int) -> None:
    env, envs = case.make_single(), case.make_vec(3, "disabled")
    assert env.observation_space == envs.single_observation_space
    assert env.action_space == envs.single_action_space
    got, (observations, infos) = env.reset(seed=30 + slot), envs.reset(seed=30)
    assert_same(got, (as_arrays(row(observations, slot)), info_of(infos, slot)), "reset")
    ended_ever = 0
    for k, actions in zip(range(120), sampled(envs, 4)):
        observation, reward, terminated, truncated, info = env.step(row(actions, slot))
        observations, rewards, terminations, truncations, infos = envs.step(actions)
        what = f"step {k}"
        assert_same(observation, as_arrays(row(observations, slot)), what)
        assert (reward, terminated, truncated) == (
            rewards[slot],
            terminations[slot],
            truncations[slot],
        )
        assert_same(info, info_of(infos, slot), what)
        ended = terminations | truncations
        if ended.any():
            observations, infos = envs.reset(options={"reset_mask": ended})
        if ended[slot]:
            ended_ever += 1
            got = env.reset()
            assert_same(got, (as_arrays(row(observations, slot)), info_of(infos, slot)), what)
    assert ended_ever > 0


def as_arrays(observation: Any) -> Any:
    """Leaves without axes are arrays in single envs, scalars in rows of a batch."""
    if isinstance(observation, dict):
        return {name: as_arrays(inner) for name, inner in observation.items()}
    return np.asarray(observation)


def test_cart_pole_is_gymnasiums_own() -> None:
    ours, theirs = corral.make("CartPole-v1"), gymnasium.make("CartPole-v1")
    for seed in (0, 7):
        assert_same(ours.reset(seed=seed)[0], theirs.reset(seed=seed)[0])
        for action in [0, 1, 1, 0, 1, 0, 0, 1]:
            got, expected = ours.step(action), theirs.step(action)
            assert_same(got[0], expected[0])
            assert got[1:4] == expected[1:4]


@pytest.mark.parametrize("id", ["CartPole-v1", "Maze-v0"])
def test_a_finished_episode_refuses_steps_until_it_is_reset(id: str) -> None:
    env = corral.make(id, max_episode_steps=3)
    env.reset(seed=0)
    assert [env.step(0)[3] for _ in range(3)] == [False, False, True]
    before = env.native.save(0)
    for _ in range(2):
        with pytest.raises(ResetNeededError, match="has ended its episode: reset it"):
            env.step(0)
    assert env.native.save(0) == before
    env.reset()
    env.step(0)


@pytest.mark.parametrize(("limit", "expected"), [(None, 256), (5, 5), (1, 1), (-1, None)])
def test_the_time_limit_is_the_envs_own_or_the_one_asked_for(
    limit: int | None, expected: int | None
) -> None:
    env = corral.make("Maze-v0", max_episode_steps=limit)
    assert env.max_episode_steps == expected
    env.reset(seed=1)
    flags = [env.step(0)[2:4] for _ in range(expected or 600)]
    assert flags[:-1] == [(False, False)] * (len(flags) - 1)
    assert flags[-1] == (False, expected is not None)


def test_an_index_decides_the_episode_and_leaves_the_own_stream() -> None:
    env, other = corral.make("CartPole-v1", seed=1), corral.make("CartPole-v1", seed=2)
    first = digest(env.reset())
    options = {"index": 9}
    assert digest(env.reset(options=options)) == digest(other.reset(options=options))
    assert options == {"index": 9}
    assert digest(env.reset(options={"index": 9})) == digest(
        corral.make("CartPole-v1").reset(seed=9)
    )
    again = corral.make("CartPole-v1", seed=1)
    assert digest(again.reset()) == first
    assert digest(again.reset()) == digest(env.reset())


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"seed": -1}, ArgumentError),
        ({"seed": 2**63}, ArgumentError),
        ({"seed": 1.0}, ArgumentTypeError),
        ({"seed": True}, ArgumentTypeError),
        ({"seed": "1"}, ArgumentTypeError),
        ({"seed": [1]}, ArgumentTypeError),
        ({"seed": np.array([1])}, ArgumentTypeError),
        ({"options": {"index": -1}}, ArgumentError),
        ({"options": {"index": 1.0}}, ArgumentTypeError),
        ({"options": {"index": [1, 2]}}, ArgumentError),
        ({"options": [1]}, ArgumentTypeError),
        ({"seed": 1, "options": {"index": 1}}, ArgumentError),
        ({"options": {"reset_mask": np.array([True])}}, UnsupportedError),
    ],
)
def test_a_reset_that_makes_no_sense_is_refused_and_nothing_moves(
    arguments: dict[str, Any], error: type[Exception]
) -> None:
    env = corral.make("CartPole-v1")
    env.reset(seed=0)
    before = env.native.save(0)
    generator = env.np_random
    with pytest.raises(error):
        env.reset(**arguments)
    assert env.native.save(0) == before
    assert env.np_random is generator


@pytest.mark.parametrize("seed", [np.int64(5), np.uint8(5), np.array(5)])
def test_numpys_ints_are_seeds_as_in_vec_envs(seed: Any) -> None:
    env = corral.make("CartPole-v1")
    assert digest(env.reset(seed=seed)) == digest(corral.make("CartPole-v1").reset(seed=5))
    assert env.np_random_seed == 5


def test_a_failure_is_an_error_with_its_place_and_the_next_reset_rebuilds() -> None:
    env = corral.make(FAULTY, fault="panic_in_step", at_step=1, seed=3, of_seed=3)
    env.reset()
    action = {"force": [0.5, 0.0], "gear": 2}
    env.step(action)
    with pytest.raises(EnvError) as raised:
        env.step(action)
    (failure,) = raised.value.failures
    assert (failure.slot, failure.seed, failure.step, failure.cause) == (0, 3, 1, "panic")
    assert failure.action == "{force: [0.5, 0.0], gear: 2}"
    with pytest.raises(ResetNeededError):
        env.step(action)
    env.reset()
    env.step(action)
    env.step(action)


def test_it_works_under_gymnasiums_wrappers() -> None:
    env = gymnasium.wrappers.RecordEpisodeStatistics(
        gymnasium.make("corral/Maze-v0", max_episode_steps=4)
    )
    env.reset(seed=0)
    for _ in range(4):
        *_, info = env.step(0)
    assert info["episode"]["l"] == 4
    assert str(env.unwrapped) == "<corral.Env<Maze-v0>>"


@pytest.mark.parametrize("make", [corral.make, corral.make_vec])
@pytest.mark.parametrize(("given", "limit"), [(None, 500), (50, 50), (-1, None)])
def test_the_spec_has_the_time_limit_in_force(make: Any, given: Any, limit: Any) -> None:
    env = make("CartPole-v1", **({} if given is None else {"max_episode_steps": given}))
    assert env.spec.max_episode_steps == env.max_episode_steps == limit
    assert gymnasium.spec("corral/CartPole-v1").max_episode_steps == 500
