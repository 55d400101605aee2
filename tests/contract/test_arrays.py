"""Arrays you keep are yours: never overwritten, never pinned by others, never shared."""

from __future__ import annotations

import copy
import gc
from collections import deque
from typing import Any

import numpy as np
import pytest

import corral
from tests.support import CASES, FAULTY, MODES, Case, arrays, assert_same, digest, sampled

KEEPING = [("CartPole-v1", 16), ("Maze-v0", 4), (FAULTY, 8)]


@pytest.mark.parametrize("mode", ["next_step", "same_step"])
@pytest.mark.parametrize(("id", "num_envs"), KEEPING)
def test_every_array_of_a_thousand_steps_stays_as_it_came(
    id: str, num_envs: int, mode: str
) -> None:
    envs = corral.make_vec(id, num_envs, autoreset_mode=mode, seed=0)
    kept: list[Any] = [envs.reset()]
    copies = [digest(kept[0])]
    for _, actions in zip(range(1000), sampled(envs, 0)):
        kept.append(envs.step(actions))
        copies.append(digest(kept[-1]))
    for k, (batch, expected) in enumerate(zip(kept, copies)):
        assert digest(batch) == expected, f"what step {k} gave has changed"


def play(envs: corral.VectorEnv, steps: int, keep: Any) -> int:
    """Blocks allocated in `steps` steps of which `keep` keeps something."""
    before = envs.native.allocations
    for _, actions in zip(range(steps), sampled(envs, 0)):
        keep(envs.step(actions))
    return envs.native.allocations - before


@pytest.mark.parametrize("mode", MODES[:2])
@pytest.mark.parametrize(("id", "num_envs"), KEEPING)
class TestAllocations:
    def warm(self, id: str, num_envs: int, mode: str, keep: Any) -> corral.VectorEnv:
        # In same_step every step ends episodes, so that every batch has final observations.
        limit = 1 if mode == "same_step" else None
        envs = corral.make_vec(id, num_envs, autoreset_mode=mode, max_episode_steps=limit, seed=0)
        envs.reset()
        play(envs, 30, keep)
        return envs

    def test_keeping_nothing_allocates_nothing(self, id: str, num_envs: int, mode: str) -> None:
        envs = self.warm(id, num_envs, mode, lambda batch: None)
        assert play(envs, 1200, lambda batch: None) == 0

    def test_keeping_the_last_few_batches_allocates_nothing(
        self, id: str, num_envs: int, mode: str
    ) -> None:
        last: deque[Any] = deque(maxlen=5)
        envs = self.warm(id, num_envs, mode, last.append)
        assert play(envs, 600, last.append) == 0

    def test_keeping_only_rewards_pins_rewards_alone(
        self, id: str, num_envs: int, mode: str
    ) -> None:
        rewards: list[Any] = []

        def keep(batch: Any) -> None:
            rewards.append(batch[1])

        envs = self.warm(id, num_envs, mode, keep)
        assert play(envs, 500, keep) == 500

    def test_what_is_let_go_is_used_again(self, id: str, num_envs: int, mode: str) -> None:
        kept: list[Any] = []
        envs = self.warm(id, num_envs, mode, kept.append)
        # So few that the pool does not yet call what comes back surplus.
        assert play(envs, 40, kept.append) >= 4 * 40
        kept.clear()
        gc.collect()
        assert play(envs, 40, kept.append) == 0


def batch_arrays(result: Any) -> list[np.ndarray]:
    """The arrays with a row per env that lie in the vec env's own memory."""
    *main, infos = result
    declared = [infos[key] for key in infos if isinstance(infos[key], np.ndarray)]
    return [array for array in arrays([*main, *declared]) if array.dtype != object]


@pytest.mark.parametrize("num_envs", [1, 3, 17])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_arrays_are_writable_contiguous_aligned_and_as_the_space_says(
    case: Case, num_envs: int
) -> None:
    envs = case.make_vec(num_envs, "next_step")
    results: list[Any] = [envs.reset(seed=0)]
    results += [envs.step(actions) for _, actions in zip(range(8), sampled(envs, 0))]
    for result in results:
        assert envs.observation_space.contains(result[0])
        assert_leaves(envs.observation_space, result[0])
        for array in batch_arrays(result):
            assert array.flags.writeable
            assert array.flags.c_contiguous
            assert array.flags.aligned
            assert array.shape[0] == num_envs
            if array.base is not None:
                assert array.ctypes.data % 64 == 0
    for _, rewards, terminations, truncations, _ in results[1:]:
        assert (rewards.dtype, rewards.shape) == (np.float64, (num_envs,))
        for flags in (terminations, truncations):
            assert (flags.dtype, flags.shape) == (np.bool_, (num_envs,))
        for array in (rewards, terminations, truncations):
            assert array.ctypes.data % 64 == 0


def assert_leaves(space: Any, value: Any) -> None:
    if isinstance(value, dict):
        for name, inner in value.items():
            assert_leaves(space[name], inner)
    else:
        assert (value.dtype, value.shape) == (space.dtype, space.shape)
        assert value.ctypes.data % 64 == 0


def test_no_two_arrays_of_a_batch_or_of_two_share_memory() -> None:
    envs = corral.make_vec(FAULTY, 4, autoreset_mode="same_step", seed=0)
    envs.reset()
    for _, actions in zip(range(20), sampled(envs, 0)):
        both = [envs.step(actions), envs.step(actions)]
        found = [array for array in arrays(both) if array.size]
        for k, one in enumerate(found):
            for other in found[k + 1 :]:
                assert one is not other
                assert not np.shares_memory(one, other)


BOARDS = Case("Boards of bools", "MinAtar-Breakout-v1", 9)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("case", [*CASES[1:4], BOARDS], ids=str)
def test_changing_a_returned_array_changes_no_later_result(case: Case, mode: str) -> None:
    ours, untouched = case.make_vec(4, mode), case.make_vec(4, mode)

    def scribble(result: Any) -> None:
        for array in arrays(result):
            if array.dtype == object:
                array.fill(None)
            else:
                # No valid bool has these bytes.
                array.reshape(-1).view(np.uint8).fill(7)

    def both(call: Any, what: str) -> Any:
        got, expected = call(ours), call(untouched)
        assert_same(got, expected, what)
        scribble(got)
        return expected

    both(lambda envs: envs.reset(seed=1), "reset")
    one = np.array([True, False, False, False])
    for k, actions in zip(range(60), sampled(untouched, 3)):
        given = copy.deepcopy(actions)
        result = both(lambda envs, a=given: envs.step(a), f"step {k}")
        # The actions given are the caller's too.
        assert_same(given, actions)
        ended = result[2] | result[3]
        if mode == "disabled" and ended.any():
            both(lambda envs, m=ended: envs.reset(options={"reset_mask": m.copy()}), "reset")
        if k % 7 == 0:
            # The rows that are kept come from the env, not from what was handed out.
            both(lambda envs: envs.reset(options={"reset_mask": one.copy()}), "masked reset")


def test_changing_actions_after_the_step_changes_nothing() -> None:
    ours, untouched = (corral.make_vec("CartPole-v1", 4, seed=0) for _ in range(2))
    ours.reset()
    untouched.reset()
    actions = np.zeros(4, dtype=np.int64)
    for k in range(10):
        actions[:] = k % 2
        got = ours.step(actions)
        actions[:] = 99
        assert_same(got, untouched.step([k % 2] * 4))


@pytest.mark.parametrize("end", ["close", "drop"])
@pytest.mark.parametrize("id", ["CartPole-v1", "Maze-v0", FAULTY])
def test_views_keep_their_memory_after_the_env_is_gone(id: str, end: str) -> None:
    envs = corral.make_vec(id, 6, seed=0)
    results = [envs.reset(), *(envs.step(a) for _, a in zip(range(20), sampled(envs, 0)))]
    # Slices and transposes: what holds the memory is the array below.
    views = [array[1:5].T for array in arrays(results)]
    expected = [digest(view) for view in views]
    if end == "close":
        envs.close()
    del envs, results
    gc.collect()
    # Others now take, fill and free memory of the same sizes.
    for seed in range(3):
        others = corral.make_vec(id, 6, seed=seed)
        others.reset()
        for _, actions in zip(range(30), sampled(others, seed)):
            for array in arrays(others.step(actions)):
                array.fill(None if array.dtype == object else 1)
        del others
        gc.collect()
    assert [digest(view) for view in views] == expected


def test_single_envs_give_arrays_to_keep_too() -> None:
    env = corral.make("Maze-v0", seed=0)
    kept = [env.reset()[0]]
    copies = [kept[0].tobytes()]
    for k in range(200):
        observation, *_ = env.step(1 + k % 4)
        assert observation.flags.writeable
        assert observation.ctypes.data % 64 == 0
        kept.append(observation)
        copies.append(observation.tobytes())
    assert [array.tobytes() for array in kept] == copies
