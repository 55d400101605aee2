"""What begins an episode: seeds, indices, masks, options, and the env's own stream."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import gymnasium
import numpy as np
import pytest

import corral
from corral.errors import (
    ArgumentError,
    ArgumentTypeError,
    OptionValueError,
    ResetNeededError,
    UnknownOptionError,
    UnsupportedError,
)
from tests.support import FAULTY, MODES, assert_same, same_id, states, zeros

FAR = 2**63 - 1


def gymnasiums(seed: int, episodes: int = 1) -> np.ndarray:
    """The first observation of an episode of Gymnasium's own CartPole."""
    env = gymnasium.make("CartPole-v1")
    observation = env.reset(seed=seed)[0]
    for _ in range(episodes - 1):
        observation = env.reset()[0]
    return observation


SEEDS = [
    (3, [3, 4, 5]),
    (0, [0, 1, 2]),
    (np.int64(3), [3, 4, 5]),
    (np.uint8(3), [3, 4, 5]),
    (np.array(3), [3, 4, 5]),
    (FAR - 2, [FAR - 2, FAR - 1, FAR]),
    ([9, 3, 9], [9, 3, 9]),
    ((9, 3, 4), [9, 3, 4]),
    (np.array([9, 3, 4], dtype=np.uint16), [9, 3, 4]),
    ([np.int32(9), 3, FAR], [9, 3, FAR]),
    (range(5, 8), [5, 6, 7]),
]


@pytest.mark.parametrize("what", ["seed", "index"])
@pytest.mark.parametrize(("given", "expected"), SEEDS, ids=lambda value: repr(value)[:30])
def test_seeds_and_indices_come_as_an_int_or_one_per_env(
    what: str, given: Any, expected: list[int]
) -> None:
    envs = corral.make_vec("CartPole-v1", 3)
    arguments = {"seed": given} if what == "seed" else {"options": {"index": given}}
    observations, _ = envs.reset(**arguments)
    # CartPole's index ix plays what seed ix plays, and that is Gymnasium's episode.
    for slot, seed in enumerate(expected):
        assert_same(observations[slot], gymnasiums(seed), f"env {slot}")


WRONG = [
    (-1, ArgumentError, "-1 is not within 0 to"),
    (np.int64(-7), ArgumentError, "-7"),
    (2**63, ArgumentError, "9223372036854775808"),
    (2**200, ArgumentError, str(2**200)),
    (FAR, ArgumentError, "too large"),
    (FAR - 1, ArgumentError, "too large"),
    ([1, 2], ArgumentError, "2 {what} values for 3 envs"),
    ([1, 2, 3, 4], ArgumentError, "4 {what} values for 3 envs"),
    ([], ArgumentError, "0 {what} values"),
    ([1, -2, 3], ArgumentError, "-2"),
    ([1, 2, 2**63], ArgumentError, str(2**63)),
    (True, ArgumentTypeError, "not bool"),
    (np.True_, ArgumentTypeError, "not bool"),
    ([True, False, True], ArgumentTypeError, "{what} is an int"),
    (1.0, ArgumentTypeError, "not float"),
    (np.float64(1), ArgumentTypeError, "{what} is an int"),
    (float("nan"), ArgumentTypeError, "not float"),
    ([1.0, 2.0, 3.0], ArgumentTypeError, "{what} is an int"),
    (np.zeros(3), ArgumentTypeError, "{what} is an int"),
    (np.zeros((3, 1), dtype=np.int64), ArgumentTypeError, "{what} is an int"),
    ("7", ArgumentTypeError, "not str"),
    ("123", ArgumentTypeError, "not str"),
    (["1", "2", "3"], ArgumentTypeError, "{what} is an int"),
    (object(), ArgumentTypeError, "not object"),
]


@pytest.mark.parametrize("what", ["seed", "index"])
@pytest.mark.parametrize(
    ("given", "error", "message"), WRONG, ids=[same_id(wrong[0]) for wrong in WRONG]
)
def test_a_seed_or_index_that_makes_no_sense_is_refused_and_nothing_moves(
    what: str, given: Any, error: type[Exception], message: str
) -> None:
    envs = corral.make_vec("CartPole-v1", 3)
    envs.reset(seed=0)
    envs.step(zeros(envs))
    before = states(envs)
    arguments = {"seed": given} if what == "seed" else {"options": {"index": given}}
    with pytest.raises(error) as raised:
        envs.reset(**arguments)
    assert message.format(what=what) in str(raised.value)
    assert states(envs) == before


def test_seeds_without_end_are_refused_after_a_few() -> None:
    taken = 0

    def endless() -> Iterator[int]:
        nonlocal taken
        while taken < 10_000:
            taken += 1
            yield taken

    envs = corral.make_vec("CartPole-v1", 3)
    with pytest.raises(ArgumentError):
        envs.reset(seed=endless())
    assert taken < 100


@pytest.mark.parametrize("what", ["seed", "index"])
def test_none_in_a_list_continues_that_envs_own_stream(what: str) -> None:
    envs = corral.make_vec("CartPole-v1", 3, seed=20)
    envs.reset()
    values = [7, None, None]
    arguments = {"seed": values} if what == "seed" else {"options": {"index": values}}
    observations, _ = envs.reset(**arguments)
    assert_same(observations[0], gymnasiums(7))
    assert_same(observations[1], gymnasiums(21, episodes=2))
    assert_same(observations[2], gymnasiums(22, episodes=2))


def test_a_seed_and_an_index_for_one_env_is_an_error_but_not_for_two() -> None:
    envs = corral.make_vec("CartPole-v1", 2)
    envs.reset(seed=0)
    before = states(envs)
    with pytest.raises(ArgumentError, match="env 0 is given a seed and an index"):
        envs.reset(seed=1, options={"index": 2})
    with pytest.raises(ArgumentError, match="env 1 is given a seed and an index"):
        envs.reset(seed=[None, 1], options={"index": [3, 2]})
    assert states(envs) == before
    observations, _ = envs.reset(seed=[None, 1], options={"index": [3, None]})
    assert_same(observations[0], gymnasiums(3))
    assert_same(observations[1], gymnasiums(1))


def test_a_seed_of_an_env_that_the_mask_leaves_out_is_not_used() -> None:
    envs = corral.make_vec("CartPole-v1", 2)
    first, _ = envs.reset(seed=0)
    observations, _ = envs.reset(
        seed=5, options={"reset_mask": np.array([False, True]), "index": [1, None]}
    )
    assert_same(observations[0], first[0])
    assert_same(observations[1], gymnasiums(6))


MASKS = [
    ([True, False, False], ArgumentTypeError, "list"),
    ((True, False, False), ArgumentTypeError, "tuple"),
    (True, ArgumentTypeError, "bool"),
    (np.array([True, False]), ArgumentError, "[2] where [3] belongs"),
    (np.array([True] * 4), ArgumentError, "[4] where [3] belongs"),
    (np.array([[True, False, False]]), ArgumentError, "[1, 3] where [3] belongs"),
    (np.array(True), ArgumentError, "[] where [3] belongs"),
    (np.array([1, 0, 0]), ArgumentTypeError, "int64 where bool"),
    (np.array([1, 0, 0], dtype=np.uint8), ArgumentTypeError, "uint8 where bool"),
    (np.array([1.0, 0.0, 0.0]), ArgumentTypeError, "float64 where bool"),
    (np.array([True, False, False], dtype=object), ArgumentTypeError, "object where bool"),
    (np.zeros(3, dtype=np.bool_), ArgumentError, "all False"),
]


@pytest.mark.parametrize(
    ("mask", "error", "message"), MASKS, ids=[repr(wrong[0])[:40] for wrong in MASKS]
)
def test_a_mask_of_another_type_shape_or_dtype_or_without_a_true_is_refused(
    mask: Any, error: type[Exception], message: str
) -> None:
    envs = corral.make_vec("CartPole-v1", 3)
    envs.reset(seed=0)
    before = states(envs)
    with pytest.raises(error) as raised:
        envs.reset(options={"reset_mask": mask})
    assert "reset_mask" in str(raised.value)
    assert message in str(raised.value)
    assert states(envs) == before
    # Gymnasium's own vec env refuses it with the same kind of error.
    theirs = gymnasium.make_vec("CartPole-v1", 3, vectorization_mode="sync")
    theirs.reset(seed=0)
    kind = TypeError if issubclass(error, TypeError) else ValueError
    # Before 1.3 it asserts.
    with pytest.raises((kind, AssertionError)):
        theirs.reset(options={"reset_mask": mask})


def test_a_mask_may_be_any_view_of_bools() -> None:
    envs = corral.make_vec("CartPole-v1", 3)
    first, _ = envs.reset(seed=0)
    strided = np.array([True, True, False, False, True, False])[::2]
    assert not strided.flags.c_contiguous
    frozen = strided.copy()
    frozen.flags.writeable = False
    for mask in (strided, frozen):
        observations, _ = envs.reset(seed=8, options={"reset_mask": mask})
        assert_same(observations[0], gymnasiums(8))
        assert_same(observations[1], first[1])
        assert_same(observations[2], gymnasiums(10))


def test_a_first_reset_with_a_mask_needs_all_envs() -> None:
    envs = corral.make_vec("CartPole-v1", 2, seed=4)
    with pytest.raises(ResetNeededError, match="env 1 has no observation to keep"):
        envs.reset(options={"reset_mask": np.array([True, False])})
    observations, _ = envs.reset(options={"reset_mask": np.array([True, True])})
    assert_same(observations[1], gymnasiums(5))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("id", ["CartPole-v1", "Maze-v0", FAULTY])
def test_a_step_before_the_first_reset_is_an_error(id: str, mode: str) -> None:
    envs = corral.make_vec(id, 2, autoreset_mode=mode)
    with pytest.raises(ResetNeededError, match="env 0 has not begun: call reset before step"):
        envs.step(zeros(envs))
    with pytest.raises(gymnasium.error.ResetNeeded):
        corral.make(id).step(0 if id != FAULTY else {"force": [0.0, 0.0], "gear": 1})


@pytest.mark.parametrize("id", ["CartPole-v1", "Maze-v0", FAULTY])
def test_the_seed_of_make_vec_is_the_seed_of_the_first_reset(id: str) -> None:
    built, seeded = corral.make_vec(id, 3, seed=12), corral.make_vec(id, 3)
    assert_same(built.reset(), seeded.reset(seed=12))
    for _ in range(3):
        assert_same(built.reset(), seeded.reset(), "and the own streams go on alike")
    single = corral.make(id, seed=12)
    other = corral.make(id)
    assert_same(single.reset(), other.reset(seed=12))
    assert_same(single.reset(), other.reset())


def test_own_streams_go_on_over_resets_and_autoresets_as_gymnasiums_do() -> None:
    envs = corral.make_vec("CartPole-v1", 2, max_episode_steps=2)
    assert_same(envs.reset(seed=6)[0][1], gymnasiums(7))
    assert_same(envs.reset()[0][1], gymnasiums(7, episodes=2))
    for _ in range(3):
        observations = envs.step([0, 0])[0]
    assert_same(observations[1], gymnasiums(7, episodes=3))
    # An indexed episode does not disturb it.
    envs.reset(options={"index": 99})
    assert_same(envs.reset()[0][1], gymnasiums(7, episodes=4))
    # And a seed begins it anew.
    assert_same(envs.reset(seed=6)[0][1], gymnasiums(7))


def test_without_seeds_envs_differ() -> None:
    starts = [corral.make_vec("CartPole-v1", 4).reset()[0] for _ in range(3)]
    assert len({tuple(row) for row in np.concatenate(starts)}) == 12


def test_the_seed_matters() -> None:
    for id in ("CartPole-v1", "Maze-v0"):
        observations, _ = corral.make_vec(id, 20).reset(seed=0)
        assert len({row.tobytes() for row in observations}) == 20


def test_mazes_index_is_its_level() -> None:
    envs = corral.make_vec("Maze-v0", 3)
    assert envs.reset(options={"index": [5, 900, FAR]})[1]["level"].tolist() == [5, 900, FAR]
    assert envs.reset(options={"index": 40})[1]["level"].tolist() == [40, 41, 42]


@pytest.mark.parametrize("options", [[1], "index", 5, [("index", 3)]])
def test_options_that_are_no_dict_are_refused(options: Any) -> None:
    envs = corral.make_vec("CartPole-v1", 2)
    with pytest.raises(ArgumentTypeError, match="options is a dict"):
        envs.reset(options=options)
    with pytest.raises(ArgumentTypeError, match="option names are strings"):
        envs.reset(options={5: 1})


def test_options_reach_the_envs_hold_until_changed_and_are_left_as_they_were() -> None:
    envs = corral.make_vec("CartPole-v1", 3)
    options = {"low": 0.2, "high": np.float64(0.2), "reset_mask": np.array([True, False, True])}
    envs.reset(seed=0)
    before = dict(options)
    observations, _ = envs.reset(options=options)
    assert options == before
    assert (observations[[0, 2]] == np.float32(0.2)).all()
    assert (np.abs(observations[1]) < 0.05).all()
    assert (envs.reset()[0][0] == np.float32(0.2)).all()
    observations, _ = envs.reset(options={"low": 0})
    assert (observations[0] < 0.2).all()


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        (
            {"lwo": 0.1},
            UnknownOptionError,
            "unknown reset option 'lwo'; valid: low (now -0.05), high (now 0.05)",
        ),
        ({"low": "deep"}, OptionValueError, "reset option 'low' is \"deep\", not a finite number"),
        ({"low": float("nan")}, OptionValueError, "not a finite number"),
        ({"low": 0.3, "high": 0.2}, OptionValueError, "low 0.3 is above high 0.2"),
        ({"low": 0.3}, OptionValueError, "low 0.3 is above high 0.05"),
    ],
)
@pytest.mark.parametrize("masked", [False, True])
def test_options_that_the_env_refuses_say_why_and_nothing_moves(
    options: dict[str, Any], error: type[Exception], message: str, masked: bool
) -> None:
    envs = corral.make_vec("CartPole-v1", 2)
    envs.reset(seed=0)
    envs.step([0, 1])
    before = states(envs)
    mask = {"reset_mask": np.array([False, True])} if masked else {}
    with pytest.raises(error) as raised:
        envs.reset(seed=7, options={**options, **mask})
    assert message in str(raised.value)
    assert states(envs) == before
    # Nor are they held against it later.
    observations, _ = envs.reset(seed=0)
    assert_same(observations[0], gymnasiums(0))


def test_an_env_without_reset_options_says_so() -> None:
    envs = corral.make_vec("Maze-v0", 2)
    before, _ = envs.reset(seed=0)
    with pytest.raises(UnsupportedError, match="Maze-v0 cannot take options at a reset"):
        envs.reset(options={"size": 5})
    assert_same(envs.reset(seed=0, options={})[0], before)
