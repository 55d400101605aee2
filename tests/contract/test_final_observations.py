"""`infos["final_obs"]` in "same_step": Gymnasium's object array, made when it is first read."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import corral


def last_step(id: str, num_envs: int = 4, **options: Any) -> tuple[dict[str, Any], Any]:
    """The infos of the first step in which some episodes end and others go on; and the mask."""
    envs = corral.make_vec(id, num_envs, seed=0, autoreset_mode="same_step", **options)
    envs.reset()
    envs.action_space.seed(0)
    # Episodes of one length would end together.
    envs.step(envs.action_space.sample())
    envs.reset(options={"reset_mask": np.arange(num_envs) == 1})
    for _ in range(500):
        infos = envs.step(envs.action_space.sample())[4]
        mask = infos.get("_final_obs", np.zeros(num_envs, np.bool_))
        if mask.any() and not mask.all():
            return infos, mask
    raise AssertionError(f"no step of {id} ends some episodes and leaves others")


def assert_equal(one: Any, other: Any) -> None:
    if isinstance(one, dict):
        assert list(one) == list(other)
        for key in one:
            assert_equal(one[key], other[key])
    elif isinstance(one, tuple | list):
        assert len(one) == len(other)
        for a, b in zip(one, other, strict=True):
            assert_equal(a, b)
    else:
        np.testing.assert_array_equal(one, other)
        assert np.asarray(one).dtype == np.asarray(other).dtype


def row_of(stacked: Any, row: int) -> Any:
    if isinstance(stacked, dict):
        return {key: row_of(value, row) for key, value in stacked.items()}
    if isinstance(stacked, tuple):
        return tuple(row_of(value, row) for value in stacked)
    return stacked[row]


def test_it_is_gymnasiums_object_array() -> None:
    infos, mask = last_step("CartPole-v1")
    finals = infos["final_obs"]
    assert isinstance(finals, corral.FinalObservations)
    assert (len(finals), finals.dtype, finals.shape, finals.ndim) == (4, object, (4,), 1)
    assert [last is not None for last in finals] == mask.tolist()
    array = np.asarray(finals)
    assert type(array) is np.ndarray
    assert array.dtype == object
    row = int(mask.argmax())
    assert finals[row].shape == (4,)
    assert finals[row].dtype == np.float32
    assert finals[mask][0] is finals[row]
    assert finals[row - 4] is finals[row]
    with pytest.raises(IndexError):
        finals[4]
    with pytest.raises(AttributeError, match="no_such_thing"):
        _ = finals.no_such_thing


def test_an_element_is_the_same_object_each_time_and_may_be_replaced() -> None:
    infos, mask = last_step("CartPole-v1")
    finals, row = infos["final_obs"], int(mask.argmax())
    assert finals[row] is finals[row]
    finals[row][0] = 77.0
    assert finals[row][0] == 77.0
    finals[row] = "another"
    assert np.asarray(finals)[row] == "another"


@pytest.mark.parametrize("id", ["CartPole-v1", "Catch-v0", "testing/Nested-v0", "Blackjack-v1"])
def test_rows_and_stacked_are_the_same_observations(id: str) -> None:
    infos, mask = last_step(id, max_episode_steps=20)
    finals = infos["final_obs"]
    assert finals.rows.dtype == np.int64
    assert finals.rows.tolist() == np.flatnonzero(mask).tolist()
    for at, row in enumerate(finals.rows):
        assert_equal(row_of(finals.stacked, at), finals[row])


def test_it_is_pickled_and_copied_as_the_array() -> None:
    finals = last_step("CartPole-v1")[0]["final_obs"]
    for again in (pickle.loads(pickle.dumps(finals)), copy.copy(finals), copy.deepcopy(finals)):
        assert type(again) is np.ndarray
        assert_equal(list(again), list(finals))
    assert type(finals.__array__(copy=True)) is np.ndarray
    assert finals.__array__(copy=True) is not finals.__array__()


def test_what_is_kept_of_many_steps_is_what_ended() -> None:
    """The batches' own memory comes back, whether or not anyone reads the observations."""
    envs = corral.make_vec("CartPole-v1", 64, seed=0, autoreset_mode="same_step")
    envs.reset()
    envs.action_space.seed(0)
    kept = []
    for step in range(300):
        infos = envs.step(envs.action_space.sample())[4]
        if step == 50:
            before = envs.native.allocations
        kept.append(infos.get("final_obs"))
    # Masks are the batches' own, and are not kept here.
    assert envs.native.allocations == before
    assert sum(len(finals.rows) for finals in kept if finals is not None) > 500
