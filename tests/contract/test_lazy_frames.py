"""Lazy frames: what `frame_stack` shows, with each frame kept once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import corral
from corral import StackedFrames, errors

K = 4
SLOTS = 5
MODES = ["next_step", "same_step", "disabled"]


def pair(mode: str, **options: Any) -> tuple[corral.VectorEnv, corral.VectorEnv]:
    """Envs with lazy frames, and with stacked ones."""
    made = [
        corral.make_vec(
            "CartPole-v1",
            SLOTS,
            seed=3,
            autoreset_mode=mode,
            max_episode_steps=17,
            frame_stack=K,
            lazy_frames=lazy,
            **options,
        )
        for lazy in (True, False)
    ]
    return made[0], made[1]


def assert_same(lazy: Any, stacked: Any, where: str = "") -> None:
    assert isinstance(lazy, StackedFrames)
    assert lazy.shape == stacked.shape
    assert lazy.dtype == stacked.dtype
    assert np.array_equal(np.asarray(lazy), stacked), where


def play(
    lazy: corral.VectorEnv, stacked: corral.VectorEnv, steps: int, seed: int = 0
) -> list[StackedFrames]:
    rng = np.random.default_rng(seed)
    kept: list[StackedFrames] = []
    over = np.zeros(SLOTS, dtype=bool)
    for step in range(steps):
        mask = over if over.any() else None
        if step % 23 == 11:
            mask = rng.random(SLOTS) < 0.5
            mask[0] = True
            mask |= over
        if mask is not None:
            options = {"reset_mask": mask}
            assert_same(lazy.reset(options=options)[0], stacked.reset(options=options)[0], "reset")
        actions = rng.integers(0, 2, SLOTS)
        ours, theirs = lazy.step(actions), stacked.step(actions)
        assert_same(ours[0], theirs[0], f"step {step}")
        for k in (1, 2, 3):
            assert np.array_equal(ours[k], theirs[k])
        assert ours[4].keys() == theirs[4].keys()
        for row, (mine, other) in enumerate(
            zip(ours[4].get("final_obs", []), theirs[4].get("final_obs", []), strict=True)
        ):
            assert (mine is None) == (other is None)
            assert mine is None or np.array_equal(mine, other), f"final_obs of {row}, step {step}"
        over = (ours[2] | ours[3]) & (lazy.native.autoreset_mode == "disabled")
        kept.append(ours[0])
    return kept


@pytest.mark.parametrize("mode", MODES)
def test_lazy_frames_show_what_stacked_ones_do(mode: str) -> None:
    lazy, stacked = pair(mode)
    assert lazy.observation_space == stacked.observation_space
    assert lazy.single_observation_space == stacked.single_observation_space
    assert_same(lazy.reset(seed=7)[0], stacked.reset(seed=7)[0])
    (*_, last) = play(lazy, stacked, 200)
    assert np.asarray(last) in lazy.observation_space
    assert_same(lazy.observe(), stacked.observe())


def test_a_rollout_keeps_each_frame_once() -> None:
    lazy, stacked = pair("next_step")
    lazy.reset()
    stacked.reset()
    kept = [lazy.step(np.zeros(SLOTS, dtype=np.int64))[0] for _ in range(50)]
    frames = {id(batch) for stack in kept for batch in stack.batches}
    # Those of the steps, and the reset's.
    assert len(frames) == 50 + 1
    before = [np.asarray(stack) for stack in kept]
    for _ in range(20):
        lazy.step(np.ones(SLOTS, dtype=np.int64))
    for stack, was in zip(kept, before, strict=True):
        assert np.array_equal(np.asarray(stack), was)


def test_rows_are_taken_as_numpy_takes_them() -> None:
    lazy, stacked = pair("same_step")
    lazy.reset()
    stacked.reset()
    (*_, frames) = play(lazy, stacked, 30)
    whole = np.asarray(frames)
    mask = np.array([True, False, True, True, False])
    for key in [
        2,
        -1,
        slice(1, 4),
        [3, 0],
        np.array([[0, 1], [2, 2]]),
        mask,
        (1, 2),
        (slice(2), -1),
    ]:
        got = frames[key]
        assert np.array_equal(got, whole[key]), key
        assert got.shape == whole[key].shape
    assert len(frames) == SLOTS
    assert np.asarray(frames, dtype=np.float64).dtype == np.float64
    with pytest.raises(ValueError, match="without a copy"):
        frames.__array__(copy=False)
    with pytest.raises(IndexError):
        frames[SLOTS]


@pytest.mark.parametrize("mode", MODES)
def test_the_frames_are_part_of_the_state(mode: str) -> None:
    lazy, stacked = pair(mode)
    lazy.reset()
    stacked.reset()
    play(lazy, stacked, 40)
    state, other = lazy.save_state(), pair(mode)[0]
    other.load_state(state)
    assert_same(other.observe(), np.asarray(lazy.observe()))
    if mode != "disabled":
        play(other, stacked, 40, seed=5)
    branch, same = lazy.save_state(1), stacked.save_state(1)
    lazy.load_state(state)
    lazy.load_state(branch, 3)
    assert np.array_equal(lazy.observe()[3], lazy.observe()[1])
    assert same
    for damaged in (b"", state[:-9], b"x" * 100, stacked.save_state()):
        with pytest.raises(errors.StateError):
            lazy.load_state(damaged)


def test_what_lazy_frames_cannot_do_is_an_error() -> None:
    with pytest.raises(errors.ArgumentError, match="give frame_stack too"):
        corral.make_vec("CartPole-v1", 2, lazy_frames=True)
    with pytest.raises(errors.ArgumentError, match="at least 1"):
        corral.make_vec("CartPole-v1", 2, lazy_frames=True, frame_stack=0)
    with pytest.raises(errors.ArgumentTypeError, match="lazy_frames is a bool"):
        corral.make_vec("CartPole-v1", 2, lazy_frames=1, frame_stack=2)  # type: ignore[arg-type]
    with pytest.raises(errors.UnsupportedError, match="one Box"):
        corral.make_vec("testing/Faulty-v0", 2, lazy_frames=True, frame_stack=2)
    with pytest.raises(errors.UnsupportedError, match="send and recv"):
        corral.make_vec("CartPole-v1", 2, lazy_frames=True, frame_stack=2, batch_size=1)
    envs = pair("next_step")[0]
    for call in (envs.async_reset, lambda: envs.send(np.zeros(SLOTS, dtype=np.int64))):
        with pytest.raises(errors.UnsupportedError, match="send and recv"):
            call()
