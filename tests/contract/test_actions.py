"""Actions: checked whole before anything moves; floats are rounded to the space's dtype."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import gymnasium
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import corral
from corral.errors import InvalidActionError
from tests.support import FAULTY, ODD, assert_same, forces, same_id, states, zeros

INTEGERS = ["bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
FLOATS = ["float16", "float32", "float64"]


def started(id: str, num_envs: int = 3, **more: Any) -> corral.VectorEnv:
    envs = corral.make_vec(id, num_envs, **more)
    envs.reset(seed=0)
    envs.step(zeros(envs))
    return envs


def refused(envs: corral.VectorEnv, actions: Any) -> str:
    """The message of the refusal; fails unless nothing has moved."""
    before = states(envs)
    with pytest.raises(InvalidActionError) as raised:
        envs.step(actions)
    assert isinstance(raised.value, gymnasium.error.InvalidAction)
    assert isinstance(raised.value, ValueError)
    assert states(envs) == before
    return str(raised.value)


def force(value: Any) -> dict[str, Any]:
    return {**forces(3), "force": value}


def gear(value: Any) -> dict[str, Any]:
    return {**forces(3), "gear": value}


class Tensor:
    """What torch and others have: no array, but one on request."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return self.array if dtype is None else self.array.astype(dtype)


REFUSED_LABELS = [
    ([0, 1, 2], ["CartPole-v1", "env 2", "2 is outside 0 to 1"]),
    ([0, -1, 5], ["env 1", "-1 is outside 0 to 1"]),
    (np.array([0, 0, 2**63], dtype=np.uint64), ["env 2", str(2**63)]),
    ([0, 0, 2**63], ["int64"]),
    ([0, 0, 2**70], ["dtype object"]),
    (np.array([0, 200, 0], dtype=np.uint8), ["env 1", "200 is outside 0 to 1"]),
    (np.array([0, -1, 0], dtype=np.int8), ["env 1", "-1"]),
    (np.array([0.0, 1.0, 0.0]), ["dtype float64", "int64"]),
    (np.array([0, 1, 0], dtype=np.float32), ["dtype float32", "int64"]),
    ([0.0, 1.0, 0.0], ["float64", "int64"]),
    ([0, 1, float("nan")], ["float64", "int64"]),
    (np.zeros(3, dtype=np.complex128), ["complex128"]),
    (np.zeros(3, dtype=object), ["dtype object"]),
    (np.zeros(3, dtype="datetime64[s]"), ["datetime64"]),
    (np.array(["0", "1", "0"]), ["<U1"]),
    (["0", "1", "0"], ["<U1"]),
    ("010", ["<U3"]),
    (None, ["dtype object"]),
    (object(), ["dtype object"]),
    ({"a": 1}, ["dtype object"]),
    ([0, None, 1], ["dtype object"]),
    ([0, 1], ["shape [2] where [3] belongs"]),
    ([0, 1, 0, 1], ["shape [4] where [3] belongs"]),
    ([], ["shape [0] where [3] belongs"]),
    (0, ["shape [] where [3] belongs"]),
    (np.int64(0), ["shape [] where [3] belongs"]),
    ([[0], [1], [0]], ["shape [3, 1] where [3] belongs"]),
    (np.zeros((1, 3), dtype=np.int64), ["shape [1, 3] where [3] belongs"]),
    (np.zeros((3, 0), dtype=np.int64), ["shape [3, 0] where [3] belongs"]),
    ([[0], [1, 0], [0]], ["no array"]),
    (np.zeros(3, dtype=[("a", np.int64)]), ["dtype"]),
    (Tensor(np.array([0, 1, 7])), ["env 2", "7 is outside 0 to 1"]),
]


@pytest.mark.parametrize("mode", ["next_step", "same_step", "disabled"])
@pytest.mark.parametrize(
    ("actions", "parts"), REFUSED_LABELS, ids=[same_id(case[0]) for case in REFUSED_LABELS]
)
def test_what_is_no_action_of_cart_pole_is_refused_and_nothing_moves(
    actions: Any, parts: list[str], mode: str
) -> None:
    message = refused(started("CartPole-v1", autoreset_mode=mode), actions)
    for part in parts:
        assert part in message, message


good = forces(3)
nan = np.zeros((3, 2), dtype=np.float32)
nan[1, 1] = np.nan
REFUSED_DICTS = [
    (force(nan), ["env 1", "leaf 'force'", "element 1", "NaN is not finite"]),
    (force(np.full((3, 2), np.inf, dtype=np.float32)), ["env 0", "leaf 'force'", "inf"]),
    (force([[0.0, 0.0], [0.0, 0.0], [float("-inf"), 0.0]]), ["env 2", "element 0", "-inf"]),
    (force([[0.0, 1e300]] * 3), ["env 0", "leaf 'force'", "element 1", "1e300", "float32"]),
    (force(np.full((3, 2), 1e39)), ["env 0", "leaf 'force'", "1e39 does not fit float32"]),
    (force(np.full((3, 2), np.nan)), ["env 0", "leaf 'force'", "NaN is not finite"]),
    (force(np.array([[0, 2**24 + 1]] * 3)), ["element 1", "16777217 does not fit float32"]),
    (force(np.zeros((3, 2), dtype=np.longdouble)), ["force", "float128", "float32"]),
    (force(np.zeros((3, 2), dtype=object)), ["force", "object"]),
    (force(np.zeros((3, 3), dtype=np.float32)), ["'force'", "[3, 3] where [3, 2] belongs"]),
    (force(np.zeros((2, 2), dtype=np.float32)), ["'force'", "[2, 2] where [3, 2] belongs"]),
    (force(np.zeros(6, dtype=np.float32)), ["'force'", "[6] where [3, 2] belongs"]),
    (force(np.zeros((3, 2, 1), dtype=np.float32)), ["[3, 2, 1] where [3, 2] belongs"]),
    (force(0.0), ["'force'", "[] where [3, 2] belongs"]),
    (gear([1, 2, 0]), ["env 2", "leaf 'gear'", "0 is outside 1 to 3"]),
    (gear([1, 4, 0]), ["env 1", "leaf 'gear'", "4 is outside 1 to 3"]),
    (gear(np.array([1.0, 2.0, 3.0])), ["leaf 'gear'", "float64", "int64"]),
    ({"force": good["force"]}, ["lack 'gear'", "force, gear"]),
    ({"gear": good["gear"]}, ["lack 'force'", "force, gear"]),
    ({}, ["lack 'force'"]),
    ({**good, "brake": 1}, ["'brake'", "none of force, gear"]),
    ({**good, 3: 1}, ["hold", "3", "none of force, gear"]),
    (good["force"], ["ndarray where a dict of force, gear belongs"]),
    ([good, good, good], ["list where a dict of force, gear belongs"]),
    (None, ["NoneType where a dict of force, gear belongs"]),
]


@pytest.mark.parametrize(
    ("actions", "parts"), REFUSED_DICTS, ids=[str(k) for k in range(len(REFUSED_DICTS))]
)
def test_what_is_no_action_of_a_dict_space_is_refused_with_its_leaf_and_nothing_moves(
    actions: Any, parts: list[str]
) -> None:
    message = refused(started(FAULTY), actions)
    for part in parts:
        assert part in message, message


def test_the_key_of_a_stranger_is_named_as_the_user_wrote_it() -> None:
    message = refused(started(FAULTY), {**good, "brake": 1})
    assert "hold 'brake'," in message


def test_one_bad_row_among_many_moves_none() -> None:
    for bad in (0, 31, 63):
        envs = started("CartPole-v1", 64)
        actions = np.zeros(64, dtype=np.int64)
        actions[bad] = 2
        assert f"env {bad}:" in refused(envs, actions)


ACCEPTED_LABELS = [
    [1, 0, 1],
    (1, 0, 1),
    [True, False, True],
    [np.int64(1), np.int8(0), 1],
    [np.array(1), np.array(0), np.array(1)],
    *(np.array([1, 0, 1]).astype(dtype) for dtype in INTEGERS),
    np.array([1, 9, 0, 9, 1, 9])[::2],
    np.array([1, 0, 1])[::-1],
    np.array([[1], [0], [1]])[:, 0],
    np.asfortranarray(np.array([[1, 0, 1], [0, 0, 0]]))[0],
    np.frombuffer(b"?" + np.array([1, 0, 1]).tobytes(), dtype=np.uint8)[1:].view(np.int64),
    np.array([1, 0, 1]).view(np.ma.MaskedArray),
    Tensor(np.array([1, 0, 1])),
    Tensor(np.array([1, 0, 1], dtype=np.int32)),
    range(1, -1, -1),
]


@pytest.mark.parametrize("k", range(len(ACCEPTED_LABELS)))
def test_labels_may_come_in_any_integer_dtype_layout_and_container(k: int) -> None:
    actions = ACCEPTED_LABELS[k]
    n = len(actions) if not isinstance(actions, Tensor) else len(actions.array)
    envs, expected = started("CartPole-v1", n), started("CartPole-v1", n)
    plain = np.array([1, 0, 1][:n], dtype=np.int64)
    assert_same(envs.step(actions), expected.step(plain))


def test_a_frozen_array_is_taken_and_left_alone() -> None:
    envs = started("CartPole-v1")
    actions = np.array([1, 0, 1])
    actions.flags.writeable = False
    envs.step(actions)
    assert actions.tolist() == [1, 0, 1]


@pytest.mark.parametrize("dtype", [">i8", ">i4", ">u2"])
def test_another_byte_order_is_refused_by_name_and_never_misread(dtype: str) -> None:
    envs, expected = started("CartPole-v1"), started("CartPole-v1")
    actions = np.array([1, 0, 1], dtype=dtype)
    assert dtype in refused(envs, actions)
    assert_same(envs.step(actions.astype(np.int64)), expected.step([1, 0, 1]))


values = np.array([[0.5, -0.25], [0.0, 1.0], [-1.0, 0.125]])
ACCEPTED_FORCES = [
    values.tolist(),
    [tuple(row) for row in values.tolist()],
    values.astype(np.float32),
    values.astype(np.float16),
    values.astype(np.float64),
    np.asfortranarray(values.astype(np.float64)),
    np.asfortranarray(values.astype(np.float32)),
    np.repeat(values.astype(np.float32), 2, axis=0)[::2],
    values.astype(np.float32).T.copy().T,
    values.astype(np.float32).view(np.matrix),
    Tensor(values.astype(np.float32)),
    Tensor(values.astype(np.float16)),
    Tensor(values.astype(np.float64)),
    list(values.astype(np.float32)),
]


@pytest.mark.parametrize("k", range(len(ACCEPTED_FORCES)))
def test_quantities_may_come_in_any_float_dtype_layout_and_container(k: int) -> None:
    envs, expected = started(FAULTY), started(FAULTY)
    plain = force(values.astype(np.float32))
    for _ in range(2):
        assert_same(envs.step(force(ACCEPTED_FORCES[k])), expected.step(plain))


def test_a_python_list_of_whole_numbers_is_a_list_of_numbers() -> None:
    """A list has no dtype: 0 and 0.0 in it are the same, as in `[[0, 0.5]]`."""
    envs, expected = started(FAULTY), started(FAULTY)
    plain = force(np.array([[0, 1]] * 3, dtype=np.float32))
    assert_same(envs.step(force([[0, 1.0]] * 3)), expected.step(plain))
    assert_same(envs.step(force([[0, 1]] * 3)), expected.step(plain))


def test_a_tensor_is_held_to_its_dtype_as_an_array_is() -> None:
    message = refused(started(FAULTY), gear(Tensor(np.ones(3))))
    assert "float64" in message


@pytest.mark.parametrize("dtype", [*INTEGERS, *FLOATS])
def test_numbers_of_any_dtype_pass_for_float32(dtype: str) -> None:
    envs, expected = started(FAULTY), started(FAULTY)
    actions = force(np.ones((3, 2), dtype=dtype))
    assert_same(envs.step(actions), expected.step(forces(3, 1.0)))


@settings(max_examples=60)
@given(
    actions=arrays.arrays(
        np.float64, (3, 2), elements=st.floats(-2, 2, allow_subnormal=True).map(lambda x: x / 3)
    )
)
def test_float64s_become_the_float32s_that_numpy_rounds_them_to(actions: np.ndarray) -> None:
    envs = started(FAULTY, action_bounds="error")
    rounded = actions.astype(np.float32)
    envs.step(force(actions))
    # The next step is every env's third: it tells the force that it was given.
    energy = envs.step(force(actions))[4]["energy"]
    np.testing.assert_array_equal(energy, rounded[:, 1].astype(np.float64))


def test_bounds_are_those_of_the_rounded_value() -> None:
    beyond = np.nextafter(1.0, 2.0)
    assert np.float32(beyond) == 1
    envs = started(FAULTY, action_bounds="error")
    envs.step(force(np.full((3, 2), beyond)))
    assert "1.0000001192092896 is outside" in refused(envs, force(np.full((3, 2), 1.0000001)))


@pytest.mark.parametrize("dtype", INTEGERS)
def test_an_integer_passes_for_float32_exactly_if_it_equals_one(dtype: str) -> None:
    most = 1 if dtype == "bool" else int(np.iinfo(dtype).max)
    for value in {1, most, *(n for n in (2**24, 2**24 + 1, 2**40) if n <= most)}:
        envs, actions = started(FAULTY), force(np.full((3, 2), value, dtype=dtype))
        if int(np.float32(value)) == value:
            envs.step(actions)
        else:
            assert f"{value} does not fit float32" in refused(envs, actions)


@settings(max_examples=150)
@given(data=st.data())
def test_labels_are_accepted_exactly_if_whole_and_in_range(data: st.DataObject) -> None:
    dtype = data.draw(st.sampled_from([*INTEGERS, *FLOATS]))
    shape = data.draw(st.sampled_from([(3,)] * 8 + [(2,), (4,), (3, 1), ()]))
    if dtype in FLOATS:
        elements: Any = st.sampled_from([0.0, 1.0, 0.5, np.nan])
    elif dtype == "bool":
        elements = st.booleans()
    else:
        low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
        elements = st.one_of(st.integers(0, 1), st.integers(0, 1), st.integers(low, high))
    actions = data.draw(arrays.arrays(dtype, shape, elements=elements))
    whole = dtype not in FLOATS and shape == (3,)
    if whole and all(int(value) in (0, 1) for value in actions):
        envs, expected = started("CartPole-v1"), started("CartPole-v1")
        assert_same(envs.step(actions), expected.step([int(value) for value in actions]))
    else:
        refused(started("CartPole-v1"), actions)


@settings(max_examples=100)
@given(
    actions=arrays.arrays(
        np.float32,
        (3, 2),
        elements=st.one_of(st.floats(-1, 1, width=32), st.floats(width=32, allow_nan=True)),
    ),
    policy=st.sampled_from(["env", "clip", "error"]),
)
def test_quantities_are_accepted_exactly_if_finite_and_as_the_policy_says(
    actions: np.ndarray, policy: str
) -> None:
    envs = started(FAULTY, action_bounds=policy)
    inside = bool(((actions >= -1) & (actions <= 1)).all())
    if not np.isfinite(actions).all() or (policy == "error" and not inside):
        message = refused(envs, force(actions))
        bad = ~np.isfinite(actions)
        if not bad.any():
            bad = (actions < -1) | (actions > 1)
        slot, element = np.argwhere(bad)[0]
        assert f"env {slot}, leaf 'force', element {element}" in message
        return
    envs.step(force(actions))
    # The next step is every env's third: it tells the force that it was given.
    energy = envs.step(force(actions))[4]["energy"]
    given = np.clip(actions, -1, 1) if policy == "clip" else actions
    np.testing.assert_array_equal(energy, given[:, 1].astype(np.float64))


@pytest.mark.parametrize("runner", ["serial", "thread", "process"])
def test_every_runner_clips_and_refuses_beyond_the_bounds(runner: str) -> None:
    class Doubles(gymnasium.Env[np.ndarray, np.ndarray]):
        observation_space = gymnasium.spaces.Box(-9, 9, (2,), np.float32)
        action_space = gymnasium.spaces.Box(-1, 1, (2,), np.float32)

        def reset(self, *, seed: Any = None, options: Any = None) -> tuple[np.ndarray, dict]:
            return np.zeros(2, np.float32), {}

        def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict]:
            return 2 * action, 0.0, False, False, {}

    beyond = np.array([[5, 0.5], [-0.25, -3], [1, -1]], np.float32)
    made = {"num_envs": 3, "runner": runner}
    with closing(corral.from_gymnasium(Doubles, action_bounds="clip", **made)) as envs:
        envs.reset(seed=0)
        np.testing.assert_array_equal(envs.step(beyond)[0], 2 * beyond.clip(-1, 1))
    with closing(corral.from_gymnasium(Doubles, action_bounds="error", **made)) as envs:
        envs.reset(seed=0)
        with pytest.raises(InvalidActionError, match=r"env 0.*5\.0 is outside -1\.0 to 1\.0"):
            envs.step(beyond)
        # Nothing has moved, and the next actions are taken.
        np.testing.assert_array_equal(envs.step(beyond / 5)[0], 2 * (beyond / 5))


def test_labels_outside_their_range_are_refused_whatever_the_policy() -> None:
    for policy in ("env", "clip", "error"):
        message = refused(started(FAULTY, action_bounds=policy), gear([1, 1, 7]))
        assert "7 is outside 1 to 3" in message
    assert "5.0 is outside -1.0 to 1.0" in refused(
        started(FAULTY, action_bounds="error"), forces(3, 5.0)
    )


def test_rows_that_await_their_autoreset_are_not_checked_and_the_others_are() -> None:
    envs = corral.make_vec(FAULTY, 3)
    envs.reset(seed=0)
    ended = np.zeros(3, dtype=np.bool_)
    while not ended.any():
        *_, terminations, truncations, _ = envs.step(zeros(envs))
        ended = terminations | truncations
    assert not ended.all()
    slot, other = int(np.argmax(ended)), int(np.argmin(ended))
    actions = forces(3)
    actions["force"][slot] = np.nan
    actions["gear"][slot] = 99
    bad = {**actions, "gear": actions["gear"].copy()}
    bad["gear"][other] = 98
    assert f"env {other}, leaf 'gear': 98" in refused(envs, bad)
    # The shape and dtype of the whole array matter all the same.
    refused(envs, {**actions, "gear": actions["gear"].astype(np.float64)})
    assert envs.step(actions)[1][slot] == 0


@pytest.mark.parametrize(
    ("word", "message"),
    [
        (["ab", "longer than 8"], "env 1, leaf 'word': a text of 13 characters where at most 8"),
        (["ab", 3], "env 1, leaf 'word'"),
        (["ab", None], "env 1, leaf 'word'"),
        ([b"ab", "c"], "env 0, leaf 'word'"),
        (["ab"], "leaf 'word'"),
        (["ab", "c", "d"], "leaf 'word'"),
        (3, "word"),
        (None, "word"),
    ],
)
def test_texts_are_checked_too_before_anything_moves(word: Any, message: str) -> None:
    envs = corral.make_vec(ODD, 2, autoreset_mode="same_step")
    envs.reset()
    with pytest.raises(InvalidActionError) as raised:
        envs.step({"move": [1, 1], "word": word})
    assert message in str(raised.value)
    observations = envs.step({"move": [1, 2], "word": ["", "abcdefgh"]})[0]
    assert observations["count"].tolist() == [1, 0]


SINGLE = [
    ("CartPole-v1", 2, "2 is outside 0 to 1"),
    ("CartPole-v1", -1, "-1 is outside 0 to 1"),
    ("CartPole-v1", 1.0, "float64"),
    ("CartPole-v1", np.float32(1), "float32"),
    ("CartPole-v1", [1], "shape"),
    ("CartPole-v1", None, "object"),
    ("CartPole-v1", "1", "<U1"),
    (FAULTY, {"force": [0.0, float("nan")], "gear": 1}, "leaf 'force', element 1: NaN"),
    (FAULTY, {"force": [0.0, 0.0], "gear": 0}, "leaf 'gear': 0 is outside 1 to 3"),
    (FAULTY, {"force": [0.0], "gear": 1}, "leaf 'force'"),
    (FAULTY, {"force": [0.0, 0.0]}, "lack 'gear'"),
]


@pytest.mark.parametrize(("id", "action", "message"), SINGLE)
def test_a_single_env_refuses_what_is_no_action_and_does_not_move(
    id: str, action: Any, message: str
) -> None:
    env = corral.make(id)
    env.reset(seed=0)
    before = env.native.save(0)
    with pytest.raises(InvalidActionError) as raised:
        env.step(action)
    assert message in str(raised.value)
    assert env.native.save(0) == before


@pytest.mark.parametrize("action", [1, True, np.int8(1), np.uint64(1), np.bool_(True), np.array(1)])
def test_a_single_env_takes_a_label_in_any_form(action: Any) -> None:
    env, expected = corral.make("CartPole-v1"), corral.make("CartPole-v1")
    env.reset(seed=0)
    expected.reset(seed=0)
    assert_same(env.step(action), expected.step(1))


def test_what_a_tensor_raises_on_its_way_is_not_hidden() -> None:
    class Interrupted:
        def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
            raise KeyboardInterrupt

    envs = started("CartPole-v1")
    with pytest.raises(KeyboardInterrupt):
        envs.step(Interrupted())
    envs.step([0, 0, 0])


def test_a_tensor_that_steps_the_same_env_on_its_way_does_not_hang() -> None:
    envs = started("CartPole-v1")

    class Nested:
        def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
            envs.step([0, 0, 0])
            return np.zeros(3, dtype=np.int64)

    before = states(envs)
    with pytest.raises(corral.errors.CorralError, match="under way"):
        envs.step(Nested())
    assert states(envs) == before
