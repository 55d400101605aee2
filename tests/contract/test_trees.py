"""Spaces as trees: tuples, structs and names with any character, in Rust and in Python."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

import corral
from corral import errors

NESTED = "testing/Nested-v0"
WAY = "left, right? (n\N{LATIN SMALL LETTER E WITH ACUTE})"
RUNNERS: dict[str, dict[str, Any]] = {
    "serial": {"num_threads": 1},
    "threads": {"num_threads": 2},
    "batches": {"batch_size": 2},
    "restart": {"on_failure": "restart"},
}
each_runner = pytest.mark.parametrize("how", RUNNERS.values(), ids=RUNNERS)


def actions(n: int, way: int = 1) -> Any:
    push = np.linspace(-1, 1, 2 * n, dtype=np.float32).reshape(n, 2)
    return {WAY: np.full(n, way)}, push


def assert_in(space: spaces.Space[Any], value: Any) -> None:
    assert value in space, (space, value)


def test_a_tuple_struct_is_a_tuple_space_and_a_name_is_any_text() -> None:
    envs = corral.make_vec(NESTED, 3)
    whole = spaces.Box(-32768, 32767, (), np.int16)
    pair = spaces.Tuple([whole, spaces.Box(-np.inf, np.inf, (2,), np.float32)])
    least, most = np.iinfo(np.int64).min, np.iinfo(np.int64).max
    choice = spaces.Box(least, most, (), np.int64)
    last = spaces.Dict([("a.b", choice), ("both", pair), ("nothing", spaces.Dict({}))])
    fraction = spaces.Box(0.0, 1.0, (), np.float32)
    assert envs.single_observation_space == spaces.Tuple([fraction, last])
    taken = spaces.Dict({WAY: spaces.Discrete(3, start=-1)})
    push = spaces.Box(-1.0, 1.0, (2,), np.float32)
    assert envs.single_action_space == spaces.Tuple([taken, push])
    envs.close()


@each_runner
def test_batches_are_nested_as_their_space(how: dict[str, Any]) -> None:
    envs = corral.make_vec(NESTED, 3, **how)
    envs.send_reset()
    observations, *_, infos = envs.drain()
    if "batch_size" not in how:
        assert_in(envs.observation_space, observations)
    envs.send(actions(3))
    (fraction, last), rewards, *_, infos = envs.drain()
    assert fraction.tolist() == np.full(3, 0.01, np.float32).tolist()
    assert last["a.b"].tolist() == [1, 1, 1]
    assert last["both"][0].tolist() == [1, 1, 1]
    assert np.array_equal(last["both"][1], actions(3)[1])
    assert last["nothing"] == {}
    assert np.allclose(rewards, 1 + actions(3)[1][:, 0])
    assert [part.tolist() for part in infos["pair"]] == [[1, 1, 1], [0.5, 0.5, 0.5]]
    assert infos["_pair"].tolist() == [True] * 3
    assert [part.tolist() for part in infos["in"]["one"]] == [[1, 1, 1]]
    envs.close()


def test_final_observations_and_infos_are_nested_too() -> None:
    envs = corral.make_vec(NESTED, 2, autoreset_mode="same_step")
    envs.reset()
    for _ in range(7):
        _, _, terminated, _, infos = envs.step(actions(2, way=-1))
    assert terminated.all()
    assert_in(envs.single_observation_space, infos["final_obs"][0])
    assert infos["final_obs"][1][1]["a.b"] == -1
    assert [part.tolist() for part in infos["final_info"]["pair"]] == [[7, 7], [3.5, 3.5]]
    assert [part.tolist() for part in infos["pair"]] == [[0, 0], [0, 0]]
    envs.close()


def test_one_env_shows_what_a_row_of_many_does() -> None:
    env, envs = corral.make(NESTED), corral.make_vec(NESTED, 1)
    observation, info = env.reset(options={"index": 4})
    assert_in(env.observation_space, observation)
    assert info["pair"] == (4, 2.0)
    assert info["in"] == {"one": (4,)}
    envs.reset(options={"index": 4})
    many, *_ = envs.step(actions(1))
    one, *_ = env.step(({WAY: 1}, actions(1)[1][0]))
    assert one[0] == many[0][0]
    assert np.array_equal(one[1]["both"][1], many[1]["both"][1][0])
    env.close()
    envs.close()


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ([{WAY: np.ones(2, int)}], "actions are not the tuple of 2"),
        ({"0": 1, "1": 2}, "actions are not the tuple of 2"),
        ((np.ones(2, int), np.zeros((2, 2))), f"action '0' is a ndarray where a dict of {WAY}"),
        (({"way": np.ones(2, int)}, np.zeros((2, 2))), f"actions lack '{WAY}'"),
        (({WAY: np.full(2, 2)}, np.zeros((2, 2))), f"env 0, leaf '0.{WAY}': 2 is outside -1 to 1"),
        (({WAY: np.ones(2)}, np.zeros((2, 2))), f"bad action, leaf '0.{WAY}': dtype float64"),
        (({WAY: np.ones(2, int)}, np.full((2, 2), 1e39)), "env 0, leaf '1', element 0: 1e39"),
    ],
)
def test_an_action_that_is_nested_otherwise_is_refused_by_its_place(given: Any, why: str) -> None:
    envs = corral.make_vec(NESTED, 2)
    envs.reset()
    with pytest.raises(errors.InvalidActionError) as told:
        envs.step(given)
    assert why in str(told.value)
    envs.step(actions(2))
    envs.close()


def test_sampled_actions_and_layers_keep_the_tree() -> None:
    envs = corral.make_vec(NESTED, 2, frame_stack=2, normalize_observation=True)
    envs.action_space.seed(0)
    observations, _ = envs.reset()
    assert_in(envs.observation_space, observations)
    for _ in range(9):
        observations, *_ = envs.step(envs.action_space.sample())
    assert_in(envs.observation_space, observations)
    assert observations[1]["both"][1].shape == (2, 2, 2)
    assert envs.observation_normalization is not None
    assert "1.both.1" in envs.observation_normalization.mean
    envs.close()


def test_a_tuple_of_a_python_env_keeps_its_tree_under_layers() -> None:
    class Pairs(gymnasium.Env[Any, Any]):
        observation_space = spaces.Tuple(
            [
                spaces.Box(0, 9, (2,), np.float32),
                spaces.Dict({"a.b": spaces.Box(0, 9, (), np.float32)}),
            ]
        )
        action_space = spaces.Discrete(2)

        def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
            return (np.ones(2, np.float32), {"a.b": np.float32(2)}), {}

        def step(self, action: Any) -> Any:
            return *self.reset()[:1], 0.0, False, False, {}

    for runner in ("serial", "thread"):
        envs = corral.from_gymnasium([Pairs] * 2, runner=runner, frame_stack=3)
        observations, _ = envs.reset()
        assert_in(envs.observation_space, observations)
        assert observations[0].shape == (2, 3, 2)
        assert observations[1]["a.b"].tolist() == [[2, 2, 2]] * 2
        envs.close()


def test_names_that_differ_by_where_a_dot_separates_stand_side_by_side() -> None:
    box = spaces.Box(0, 9, (), np.float32)

    class Dots(gymnasium.Env[Any, Any]):
        observation_space = spaces.Dict({"a.b": box, "a": spaces.Dict({"b": box}), "": box})
        action_space = spaces.Dict(
            {"a.b": spaces.Discrete(2), "a": spaces.Dict({"b": spaces.Discrete(2)})}
        )

        def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
            return self._seen(0, 0), {}

        def step(self, action: Any) -> Any:
            return self._seen(action["a.b"], action["a"]["b"]), 0.0, False, False, {}

        def _seen(self, one: Any, other: Any) -> Any:
            return {"a.b": np.float32(one), "a": {"b": np.float32(other)}, "": np.float32(3)}

    envs = corral.from_gymnasium([Dots] * 2, runner="serial")
    envs.reset()
    observations, *_ = envs.step({"a.b": np.array([1, 1]), "a": {"b": np.array([0, 1])}})
    assert observations["a.b"].tolist() == [1, 1]
    assert observations["a"]["b"].tolist() == [0, 1]
    assert observations[""].tolist() == [3, 3]
    envs.close()
    envs = corral.from_gymnasium([Dots] * 2, runner="serial", normalize_observation=True)
    envs.reset()
    assert envs.observation_normalization is not None
    means = envs.observation_normalization.mean
    assert list(means) == ['"" (leaf 0)', "a.b (leaf 1)", "a.b (leaf 2)"]
    envs.close()


def test_a_tree_crosses_to_a_plugin_and_libenv_writes_it_with_dots() -> None:
    library = corral.libenv_path()
    corral.load(library, namespace="trees")
    here, there = corral.make_vec(NESTED, 2), corral.make_vec("trees/testing/Nested-v0", 2)
    assert here.single_observation_space == there.single_observation_space
    assert here.single_action_space == there.single_action_space
    here.reset(seed=1)
    there.reset(seed=1)
    for _ in range(9):
        one, other = here.step(actions(2)), there.step(actions(2))
        assert str(one) == str(other)
    here.close()
    there.close()
    flat = corral.load_libenv(library, 2, {"env_id": NESTED, "cast": 1})
    assert list(flat.single_action_space.keys()) == [f"0.{WAY}", "1"]
    assert list(flat.single_observation_space.keys()) == ["0", "1.a.b", "1.both.0", "1.both.1"]
    flat.close()


def test_a_text_space_holds_every_character_and_copies_of_it_are_equal() -> None:
    envs = corral.make_vec("testing/Caller-v0", 2)
    space = envs.single_action_space
    assert isinstance(space, spaces.Text)
    assert all(text in space for text in ("", "süß", "\udcff", "日本"))
    assert "x" * 9 not in space
    assert 3 not in space
    assert pickle.loads(pickle.dumps(space)) == copy.deepcopy(space) == space
    assert envs.action_space.contains(("süß", ""))
    assert "abc" * 3 not in space
    envs.close()
