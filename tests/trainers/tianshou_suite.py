"""corral.to_tianshou beside Tianshou's own vec env and under its collectors: run by Tianshou's own
Python."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
from tianshou.data import Collector, VectorReplayBuffer
from tianshou.env import BaseVectorEnv, DummyVectorEnv

import corral
from corral import errors

NUM_ENVS = 6


def ours(id: str, **options: Any) -> Any:
    return corral.to_tianshou(
        corral.make_vec(id, NUM_ENVS, autoreset_mode="disabled", seed=3, **options)
    )


def theirs(id: str, **options: Any) -> Any:
    """Tianshou's own, over single envs that play the same."""
    return DummyVectorEnv([lambda: corral.make(id, **options)] * NUM_ENVS)


def is_same(found: Any, expected: Any) -> bool:
    """Whether two values are equal, down to dtypes; a NumPy number is as good as Python's."""
    if isinstance(expected, dict):
        return found.keys() == expected.keys() and all(
            is_same(found[key], expected[key]) for key in expected
        )
    if isinstance(expected, np.ndarray):
        if found.shape != expected.shape or found.dtype != expected.dtype:
            return False
        if expected.dtype == object:
            return all(map(is_same, found, expected))
    return bool(np.all(found == expected))


def assert_same(found: Any, expected: Any) -> None:
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        assert is_same(np.asarray(one), np.asarray(other)), (one, other)


@pytest.mark.parametrize(
    "id", ["CartPole-v1", "Pendulum-v1", "Taxi-v4", "MiniGrid-Fetch-5x5-N2-v0", "2048-v0"]
)
def test_it_plays_what_tianshous_vec_env_plays(id: str) -> None:
    pair = ours(id, max_episode_steps=11), theirs(id, max_episode_steps=11)
    assert all(isinstance(envs, BaseVectorEnv) and len(envs) == NUM_ENVS for envs in pair)
    for envs in pair:
        envs.seed(5)
    assert_same(*(envs.reset() for envs in pair))
    rng = np.random.default_rng(0)
    space = pair[0].action_space[0]
    space.seed(1)
    begun = 0
    ready = np.arange(NUM_ENVS)
    for step in range(60):
        ids = rng.permutation(ready)[: rng.integers(1, NUM_ENVS + 1)] if step % 3 else ready
        actions = np.stack([space.sample() for _ in ids])
        results = [envs.step(actions, ids) for envs in pair]
        assert_same(*results)
        over = ids[results[0][2] | results[0][3]]
        if over.size:
            assert_same(*(envs.reset(over) for envs in pair))
            begun += over.size
    assert begun


def test_a_number_stands_for_one_env() -> None:
    pair = ours("CartPole-v1"), theirs("CartPole-v1")
    for envs in pair:
        envs.seed([7, 8, 9, 10, 11, 12])
    assert_same(*(envs.reset(2) for envs in pair))
    assert_same(*(envs.step(np.array([1]), 2) for envs in pair))
    assert pair[0].step([0], 2)[4][0] == {"env_id": 2}


def test_options_and_seeds_reach_the_envs() -> None:
    envs = ours("CartPole-v1")
    by_index, _ = envs.reset([4, 1], options={"index": [40, 10]})
    single = corral.make("CartPole-v1")
    for row, index in enumerate([40, 10]):
        assert np.array_equal(by_index[row], single.reset(options={"index": index})[0])
    assert np.array_equal(
        envs.reset(seed=5)[0], corral.make_vec("CartPole-v1", NUM_ENVS, seed=5).reset()[0]
    )
    assert envs.seed(9) == [[9], [10], [11], [12], [13], [14]]
    assert envs.seed() == [None] * NUM_ENVS


def test_spaces_and_attributes_are_those_of_each_env() -> None:
    envs, others = ours("Pendulum-v1"), theirs("Pendulum-v1")
    assert envs.observation_space == others.observation_space
    assert envs.action_space == others.action_space
    for one in (envs, others):
        one.seed(4)
    drawn, expected = ([space.sample() for space in one.action_space] for one in (envs, others))
    assert np.array_equal(drawn, expected)
    assert len({id(space) for space in envs.action_space}) == NUM_ENVS
    assert [spec.id for spec in envs.spec] == [spec.id for spec in others.spec]
    assert len(envs.get_env_attr("metadata", [0, 3])) == 2
    with pytest.raises(AttributeError):
        envs.get_env_attr("no_such_thing")


def test_python_envs_have_their_attributes() -> None:
    batch = corral.from_gymnasium(
        lambda: gymnasium.make("CartPole-v1"), NUM_ENVS, autoreset_mode="disabled", runner="serial"
    )
    envs = corral.to_tianshou(batch)
    envs.set_env_attr("length", 0.25, [1, 2])
    assert envs.get_env_attr("length") == [0.5, 0.25, 0.25, 0.5, 0.5, 0.5]
    envs.close()


def test_frames_are_the_envs() -> None:
    envs = ours("CartPole-v1", render_mode="rgb_array")
    envs.reset()
    frames = envs.render()
    assert len(frames) == NUM_ENVS
    assert frames[0].dtype == np.uint8


def policy() -> Any:
    """A network for CartPole that always answers the same."""
    import torch
    from tianshou.algorithm.modelfree.dqn import DiscreteQLearningPolicy
    from tianshou.utils.net.common import Net

    torch.set_num_threads(1)
    torch.manual_seed(2)
    env = corral.make("CartPole-v1")
    return DiscreteQLearningPolicy(
        model=Net(state_shape=(4,), action_shape=2, hidden_sizes=(8,)),
        action_space=env.action_space,
        observation_space=env.observation_space,
    )


@pytest.mark.parametrize("asked", [{"n_step": 300}, {"n_episode": 3}, {"n_episode": 20}])
def test_a_collector_collects_the_same(asked: dict[str, int]) -> None:
    """By steps, by fewer episodes than envs, and by more: the collector steps some envs alone."""
    found = []
    for envs in (ours("CartPole-v1"), theirs("CartPole-v1")):
        envs.seed(5)
        collector = Collector(policy(), envs, VectorReplayBuffer(1000, NUM_ENVS))
        collector.reset()
        stats = collector.collect(**asked)
        kept = collector.buffer.sample(0)[0]
        found.append((stats.returns, stats.lens, kept.obs, kept.act, kept.rew, kept.terminated))
    for one, other in zip(*found, strict=True):
        assert np.array_equal(one, other)
    assert len(found[0][0])


def test_what_tianshou_cannot_take_says_so() -> None:
    with pytest.raises(errors.UnsupportedError, match='autoreset_mode="disabled"'):
        corral.to_tianshou(corral.make_vec("CartPole-v1", 2))
    with pytest.raises(errors.UnsupportedError, match="batch_size of 1"):
        corral.to_tianshou(
            corral.make_vec("CartPole-v1", 2, autoreset_mode="disabled", batch_size=1)
        )
    with pytest.raises(errors.UnsupportedError, match="tuples"):
        ours("Blackjack-v1")
    with pytest.raises(errors.ArgumentTypeError, match=r"corral\.VectorEnv"):
        corral.to_tianshou("CartPole-v1")


def test_bad_calls_move_nothing() -> None:
    envs, twin = ours("CartPole-v1"), ours("CartPole-v1")
    for one in (envs, twin):
        one.reset()
    for call, kind in (
        (lambda: envs.step(None), errors.ArgumentTypeError),
        (lambda: envs.step(np.zeros(2, int), [0, 0]), errors.ArgumentError),
        (lambda: envs.step(np.zeros(1, int), [NUM_ENVS]), errors.ArgumentError),
        (lambda: envs.step(np.full(NUM_ENVS, 2)), errors.InvalidActionError),
        (lambda: envs.step(np.zeros(3, int)), errors.InvalidActionError),
        (lambda: envs.reset([NUM_ENVS]), errors.ArgumentError),
        (lambda: envs.reset(seed=-1), errors.ArgumentError),
    ):
        with pytest.raises(kind):
            call()
    pushes = np.arange(NUM_ENVS) % 2
    assert_same(envs.step(pushes), twin.step(pushes))


def test_an_episode_that_has_ended_is_reset_first() -> None:
    envs = ours("CartPole-v1", max_episode_steps=1)
    envs.reset()
    assert envs.step(np.zeros(NUM_ENVS, int))[3].all()
    with pytest.raises(errors.ResetNeededError):
        envs.step(np.zeros(NUM_ENVS, int))


def test_it_closes_the_envs_once() -> None:
    envs = ours("CartPole-v1")
    envs.reset()
    envs.close()
    envs.close()
    assert envs.envs.closed
    with pytest.raises(AssertionError, match="cannot be called after close"):
        envs.reset()
