"""`corral.to_dm_env`: Gymnasium's and Corral's envs, and Corral's vec envs, as dm_env environments.

dm_env's own tests, a mixin, run on single envs. Time steps of vec envs are compared with those of
the same envs one by one, and these with Gymnasium's own. Tests that call `corral.from_dm_env`, too,
are in `test_from_dm_env.py`.
"""

from __future__ import annotations

import unittest
from collections.abc import Callable
from typing import Any

import dm_env
import gymnasium
import numpy as np
import pytest
import tree
from dm_env import specs, test_utils
from gymnasium import spaces

import corral
from corral import errors
from corral.adapters.dm_env_specs import of_space
from corral.spaces import Opaque
from tests.adapters.dm_env_support import FIRST, LAST, MID, Mixed, rows
from tests.support import FAULTY, ODD, assert_same, forces


class Conforms(test_utils.EnvironmentTestMixin):
    """dm_env's own tests, with enough actions for several episodes."""

    make: Callable[[], Any]

    def make_object_under_test(self) -> Any:
        return corral.to_dm_env(type(self).make())

    def make_action_sequence(self) -> Any:
        return (self.make_action() for _ in range(40))

    def test_episodes_end_within_the_longer_sequence(self: Any) -> None:
        self.environment.reset()
        last = [self.environment.step(action).last() for action in self.make_action_sequence()]
        assert sum(last) > 1


class TestCartPole(Conforms, unittest.TestCase):
    make = staticmethod(lambda: corral.make("CartPole-v1", seed=0))


class TestMaze(Conforms, unittest.TestCase):
    make = staticmethod(lambda: corral.make("Maze-v0", seed=0, max_episode_steps=9))


class TestNestedDictsInRust(Conforms, unittest.TestCase):
    make = staticmethod(lambda: corral.make(FAULTY, seed=0, max_episode_steps=12))


class TestTuplesInRust(Conforms, unittest.TestCase):
    make = staticmethod(lambda: corral.make("testing/Nested-v0", max_episode_steps=12))


class TestWordsAsActions(Conforms, unittest.TestCase):
    make = staticmethod(lambda: corral.make("testing/Caller-v0", max_episode_steps=12))


class TestEveryKindOfSpace(Conforms, unittest.TestCase):
    make = staticmethod(Mixed)


class TestGymnasiumsOwn(Conforms, unittest.TestCase):
    make = staticmethod(lambda: gymnasium.make("CartPole-v1"))


def no_objects(seen: Any) -> Any:
    """Without the arrays of shape () that hold an object."""
    is_held = lambda leaf: isinstance(leaf, np.ndarray) and leaf.dtype == object  # noqa: E731
    return tree.map_structure(lambda leaf: leaf.item() if is_held(leaf) else leaf, seen)


SINGLE: dict[str, tuple[Callable[[int], Any], Callable[[], Any]]] = {
    "CartPole": (
        lambda seed: corral.make("CartPole-v1", seed=seed, max_episode_steps=12),
        lambda: corral.make_vec("CartPole-v1", 3, seed=5, max_episode_steps=12),
    ),
    "Maze": (
        lambda seed: corral.make("Maze-v0", seed=seed, max_episode_steps=9, size=3),
        lambda: corral.make_vec("Maze-v0", 3, seed=5, max_episode_steps=9, size=3),
    ),
    "Faulty": (
        lambda seed: corral.make(FAULTY, seed=seed, max_episode_steps=9),
        lambda: corral.make_vec(FAULTY, 3, seed=5, max_episode_steps=9),
    ),
    "Mixed": (lambda seed: Mixed(), lambda: corral.from_gymnasium(Mixed, 3, runner="serial")),
}


@pytest.mark.parametrize("name", SINGLE)
def test_each_row_of_the_batched_form_is_the_single_envs_time_step(name: str) -> None:
    make, make_vec = SINGLE[name]
    singles = [corral.to_dm_env(make(5 + env)) for env in range(3)]
    batched = corral.to_dm_env(make_vec())
    assert isinstance(batched, dm_env.Environment)
    assert batched.observation_spec() == singles[0].observation_spec()
    assert batched.action_spec() == singles[0].action_spec()
    space = batched.envs.single_action_space
    space.seed(3)
    told = set()
    for _ in range(40):
        actions = [space.sample() for _ in singles]
        given = tree.map_structure(lambda *leaves: np.asarray(leaves), *actions)
        together = batched.step(given)
        assert together.step_type.dtype == np.int32
        assert together.reward.dtype == together.discount.dtype == np.float64
        for row, (single, action) in enumerate(zip(singles, actions)):
            ours, theirs = rows(together, row), single.step(action)
            told.add((theirs.step_type, theirs.discount))
            assert ours[:3] == theirs[:3]
            got, expected = no_objects(ours.observation), no_objects(theirs.observation)
            if name == "Mixed":
                many = [one.pop("many") for one in (got, expected)]
                np.testing.assert_array_equal(*many)
                assert got.pop("any") == expected.pop("any")
            assert tree.map_structure(np.array_equal, got, expected)
            assert all(tree.flatten(tree.map_structure(np.array_equal, got, expected)))
    assert {kind for kind, _ in told} == {FIRST, MID, LAST}
    assert (LAST, 1.0) in told
    batched.close()


def test_a_single_env_is_what_gymnasiums_own_loop_gives() -> None:
    env = corral.to_dm_env(corral.make("CartPole-v1", seed=11))
    reference = gymnasium.make("CartPole-v1")
    seen, _ = reference.reset(seed=11)
    is_over, episodes = True, 0
    rng = np.random.default_rng(0)
    for _ in range(300):
        action = int(rng.integers(2))
        got = env.step(action)
        if is_over:
            if episodes:
                seen, _ = reference.reset()
            expected = (dm_env.StepType.FIRST, None, None)
            is_over, episodes = False, episodes + 1
        else:
            seen, reward, terminated, truncated, _ = reference.step(action)
            is_over = terminated or truncated
            kind = dm_env.StepType.LAST if is_over else dm_env.StepType.MID
            expected = (kind, reward, 0.0 if terminated else 1.0)
        assert got[:3] == expected
        assert_same(got.observation, seen)
    assert episodes > 5


def test_an_end_that_is_both_is_terminated_and_one_that_is_cut_short_has_discount_1() -> None:
    class Ends(gymnasium.Env[Any, Any]):
        observation_space = action_space = spaces.Discrete(3)

        def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
            return 0, {}

        def step(self, action: Any) -> Any:
            return 0, 1.0, action != 2, action != 1, {}

    for action, discount in ((0, 0.0), (1, 0.0), (2, 1.0)):
        env = corral.to_dm_env(Ends())
        env.reset()
        assert env.step(action)[:3] == (LAST, 1.0, discount)
        envs = corral.to_dm_env(corral.from_gymnasium(Ends, 1, runner="serial"))
        envs.reset()
        timestep = envs.step(np.array([action]))
        assert [one.tolist() for one in timestep[:3]] == [[LAST], [1.0], [discount]]


def test_a_step_before_the_reset_and_after_last_ignores_its_action() -> None:
    env = corral.to_dm_env(corral.make("CartPole-v1", seed=0, max_episode_steps=1))
    envs = corral.to_dm_env(corral.make_vec("CartPole-v1", 2, seed=0, max_episode_steps=1))
    for _ in range(2):
        assert env.step("nonsense").first()
        assert env.step(1).last()
        assert envs.step(np.array([7, 7])).first().all()
        assert envs.step(np.array([0, 1])).last().all()
        with pytest.raises(errors.InvalidActionError):
            envs.step(np.array([7, 7, 7]))


def test_a_bad_action_moves_nothing_and_the_episode_goes_on() -> None:
    env = corral.to_dm_env(corral.make("CartPole-v1", seed=0))
    envs = corral.to_dm_env(corral.make_vec("CartPole-v1", 2, seed=0))
    env.reset()
    first = envs.reset().observation
    for one, bad in ((env, 2), (envs, np.array([0, 2]))):
        with pytest.raises(errors.InvalidActionError):
            one.step(bad)
    assert_same(envs.envs.observe(), first)
    assert env.step(1).mid()
    assert envs.step(np.array([1, 1])).mid().all()


def test_infos_are_kept_beside_the_time_step() -> None:
    env = corral.to_dm_env(Mixed())
    env.reset()
    assert env.info == {"episode": 1}
    env.step({"gear": 1, "bits": np.ones(2, np.int8), "pair": ("a", np.zeros(2, np.float32))})
    assert env.info == {"at": 1}
    envs = corral.to_dm_env(
        corral.make_vec("CartPole-v1", 2, max_episode_steps=1, episode_statistics=True)
    )
    envs.reset()
    envs.step(np.zeros(2, np.int64))
    assert envs.infos["episode"]["l"].tolist() == [1, 1]
    assert "row_kind" not in envs.infos


def test_envs_that_fail_are_told_of_in_step_types() -> None:
    how: dict[str, Any] = {"fault": "error_in_step", "of_seed": 1, "at_step": 1, "seed": 0}
    types = {}
    for policy in ("restart", "mask"):
        env = corral.to_dm_env(corral.make_vec(FAULTY, 2, on_failure=policy, **how))
        steps = [env.step(forces(2)) for _ in range(5)]
        types[policy] = [int(one.step_type[1]) for one in steps]
        assert [int(one.step_type[0]) for one in steps] == [FIRST, MID, MID, MID, MID]
        assert steps[2].discount.tolist() == [1, 1]
        assert steps[2].reward[1] == 0
    assert types == {
        "restart": [FIRST, MID, LAST, FIRST, MID],
        "mask": [FIRST, MID, LAST, FIRST, FIRST],
    }
    env = corral.to_dm_env(corral.make_vec(FAULTY, 2, **how))
    for _ in range(2):
        env.step(forces(2))
    with pytest.raises(errors.EnvError, match="a fault on demand"):
        env.step(forces(2))
    with pytest.raises(errors.ResetNeededError):
        env.step(forces(2))
    assert env.reset().first().all()
    assert env.step(forces(2)).mid().all()


def test_a_single_env_that_failed_waits_for_its_reset() -> None:
    env = corral.to_dm_env(corral.make(FAULTY, fault="error_in_step", of_seed=0, at_step=0, seed=0))
    one = {name: leaf[0] for name, leaf in forces(1).items()}
    env.reset()
    with pytest.raises(errors.EnvError, match="a fault on demand"):
        env.step(one)
    with pytest.raises(errors.ResetNeededError):
        env.step(one)
    assert env.reset().first()


class Shows(gymnasium.Env[Any, Any]):
    """Shows what it is given to show."""

    action_space = spaces.Discrete(2)

    def __init__(self, space: Any, shown: Any) -> None:
        self.observation_space, self.shown = space, shown

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        return self.shown, {}


def test_an_array_is_passed_on_and_what_is_near_its_dtype_is_cast() -> None:
    box = spaces.Box(0, 255, (2,), np.uint8)
    shown = np.array([1, 2], np.uint8)
    assert corral.to_dm_env(Shows(box, shown)).reset().observation is shown
    assert_same(corral.to_dm_env(Shows(box, np.array([1, 2]))).reset().observation, shown)
    near = spaces.Box(-1, 1, (), np.float32)
    assert_same(corral.to_dm_env(Shows(near, 0.1)).reset().observation, np.array(0.1, np.float32))
    text = corral.to_dm_env(Shows(spaces.Text(4), "abc")).reset().observation
    assert text == "abc"
    assert type(text) is str


@pytest.mark.parametrize("wrong", [np.array([1, 256]), np.array([0.5, 1]), "12", None])
def test_what_the_dtype_of_the_space_does_not_hold_is_an_error(wrong: Any) -> None:
    env = corral.to_dm_env(Shows(spaces.Box(0, 255, (2,), np.uint8), wrong))
    with pytest.raises(errors.SpaceError, match=r"observation is .* uint8, which does not hold"):
        env.reset()


def test_bits_are_bools_for_corrals_envs_whose_leaves_of_bool_take_nothing_else() -> None:
    bits = spaces.MultiBinary(3)
    for is_ours, kind in ((True, np.bool_), (False, np.int8)):
        node = of_space(bits, "action", is_batch=False, is_ours=is_ours)
        assert node.to_corral(np.array([0, 1, 1], np.int8)).dtype == kind
    # Corral refuses the rest by name.
    node = of_space(bits, "action", is_batch=False, is_ours=True)
    assert_same(node.to_corral(np.array([0, 2, 1], np.int8)), np.array([0, 2, 1], np.int8))


def test_spaces_become_the_specs_that_the_docs_name() -> None:
    infinity, f32 = np.inf, np.float32
    cases: list[tuple[Any, Any]] = [
        (spaces.Box(-infinity, infinity, (2,), f32), specs.Array((2,), f32)),
        (spaces.Box(-1, infinity, (2,), f32), specs.BoundedArray((2,), f32, -1, infinity)),
        (spaces.Box(0, 255, (4, 4, 3), np.uint8), specs.BoundedArray((4, 4, 3), np.uint8, 0, 255)),
        (spaces.Box(0, 1, (3,), np.bool_), specs.Array((3,), bool)),
        (
            spaces.Box(np.array([0, 1]), np.array([5, 6]), dtype=np.int16),
            specs.BoundedArray((2,), np.int16, [0, 1], [5, 6]),
        ),
        (spaces.Discrete(4), specs.DiscreteArray(4, np.int64)),
        (spaces.Discrete(4, start=-1), specs.BoundedArray((), np.int64, -1, 2)),
        (spaces.MultiDiscrete([3, 5]), specs.BoundedArray((2,), np.int64, 0, [2, 4])),
        (spaces.MultiBinary((2, 2)), specs.BoundedArray((2, 2), np.int8, 0, 1)),
        (spaces.Text(3), specs.StringArray(())),
        (Opaque(), specs.Array((), object)),
        (spaces.Tuple([spaces.Discrete(2)]), (specs.DiscreteArray(2, np.int64),)),
        (spaces.Dict({"b": spaces.Discrete(2)}), {"b": specs.DiscreteArray(2, np.int64)}),
    ]
    for space, spec in cases:
        env = Mixed()
        env.observation_space = env.action_space = space
        made = corral.to_dm_env(env)
        for got in (made.observation_spec(), made.action_spec()):
            tree.assert_same_structure(got, spec)
            for ours, theirs in zip(tree.flatten(got), tree.flatten(spec)):
                assert type(ours) is type(theirs)
                assert ours == theirs
    assert corral.to_dm_env(Mixed()).observation_spec()["inner"]["pixels"].name == "pixels"


@pytest.mark.parametrize("how", [{"batch_size": 2}, {"timeout": 60.0}, {"num_threads": 2}])
def test_envs_in_the_background_give_the_rows_in_order(how: dict[str, Any]) -> None:
    env = corral.to_dm_env(corral.make_vec("CartPole-v1", 5, seed=0, **how))
    envs = corral.make_vec("CartPole-v1", 5, seed=0)
    assert_same(env.reset().observation, envs.reset()[0])
    rng = np.random.default_rng(0)
    for _ in range(50):
        actions = rng.integers(0, 2, 5)
        timestep, expected = env.step(actions), envs.step(actions)
        assert_same(timestep.observation, expected[0])
        assert_same(timestep.reward, expected[1])
        assert_same(timestep.last(), expected[2])
    env.close()


def test_lazy_frames_are_refused() -> None:
    with pytest.raises(errors.UnsupportedError, match="without lazy_frames"):
        corral.to_dm_env(corral.make_vec("CartPole-v1", 2, frame_stack=2, lazy_frames=True))
    stacked = corral.to_dm_env(corral.make_vec("CartPole-v1", 2, frame_stack=3))
    assert stacked.observation_spec().shape == (3, 4)
    assert stacked.reset().observation.shape == (2, 3, 4)


@pytest.mark.parametrize("mode", ["same_step", "disabled"])
def test_vector_envs_of_another_autoreset_mode_are_refused(mode: str) -> None:
    with pytest.raises(errors.UnsupportedError, match='autoreset_mode="next_step"'):
        corral.to_dm_env(corral.make_vec("CartPole-v1", 2, autoreset_mode=mode))
    with pytest.raises(errors.UnsupportedError, match='autoreset_mode="next_step"'):
        corral.to_dm_env(corral.make_vec(ODD, 2, autoreset_mode="same_step"))
