"""Envs of ours, by id: in threads, and in workers where `num_workers` asks for them."""

from __future__ import annotations

import functools
import threading
from typing import Any

import numpy as np
import psutil
import pytest

import corral
from corral import errors
from corral.managers import AsyncSubprocessEnvManager
from tests.managers.by_hand import played_by_hand
from tests.managers.managers import every_manager, launched, managed
from tests.support import FAULTY, assert_same


@every_manager
@pytest.mark.parametrize("workers", [None, 2])
def test_an_id_plays_what_gymnasiums_env_plays(kind: str, workers: int | None) -> None:
    own = {} if kind in ("base", "packed") else {"num_workers": workers}
    if kind == "packed":
        own = {"num_workers": 1 if workers is None else workers}
    before = len(psutil.Process().children())
    with managed(kind, ["CartPole-v1"] * 3, **own) as manager:
        manager.seed(4)
        manager.launch()
        started = len(psutil.Process().children()) - before
        assert started == (own.get("num_workers") or 0)
        shown: dict[int, list[Any]] = {k: [obs] for k, obs in manager.ready_obs.items()}
        actions = np.random.default_rng(1).integers(0, 2, (50, 3))
        for row in actions:
            for k, timestep in manager.step(dict(enumerate(row))).items():
                shown[k].append((timestep.obs, timestep.reward, timestep.done))
                if timestep.done:
                    shown[k].append(manager.ready_obs[k])
    for k in range(3):
        assert_same(shown[k], played_by_hand(4 + k, actions[:, k].tolist()))


def test_an_id_runs_in_threads_of_this_process() -> None:
    before = len(psutil.Process().children())
    with launched("async", [FAULTY] * 4) as manager:
        assert len(psutil.Process().children()) == before
        assert psutil.Process().num_threads() > threading.active_count()
        action = {"force": np.zeros(2, np.float32), "gear": 1}
        assert sorted(manager.step(dict.fromkeys(range(4), action))) == [0, 1, 2, 3]


@every_manager
def test_our_envs_take_seeds_options_and_indices_at_a_reset(kind: str) -> None:
    with managed(kind, ["Maze-v0"] * 3) as manager:
        manager.launch({0: {"seed": 5}, 1: {"options": {"index": 5}}, 2: None})
        reference = corral.make("Maze-v0")
        assert_same(manager.ready_obs[0], reference.reset(seed=5)[0])
        assert_same(manager.ready_obs[1], reference.reset(options={"index": 5})[0])
        if kind != "packed":
            with pytest.raises(
                errors.ArgumentError, match=r"env 2 has 'level'.*'seed' and 'options'"
            ):
                manager.reset({2: {"level": 1}})
            assert sorted(manager.ready_obs) == [0, 1]
            manager.reset({2: None})
        assert sorted(manager.ready_obs) == [0, 1, 2]


def test_what_an_episode_was_reset_with_holds_for_the_next() -> None:
    with managed("sync", ["CartPole-v1"] * 2) as manager:
        manager.launch({0: {"seed": 5}, 1: None})
        first = manager.ready_obs[0]
        while not manager.step({0: 1})[0].done:
            pass
        assert_same(manager.ready_obs[0], first)


def test_a_dynamic_seed_of_false_repeats_the_episode() -> None:
    with managed("sync", ["CartPole-v1"] * 2) as manager:
        manager.seed(5, dynamic_seed=False)
        manager.launch()
        first = manager.ready_obs[1]
        while not manager.step({1: 1})[1].done:
            pass
        assert_same(manager.ready_obs[1], first)


def test_a_failure_in_our_env_is_raised_and_reset_recovers() -> None:
    action = {"force": np.zeros(2, np.float32), "gear": 1}
    fns = [functools.partial(corral.make, FAULTY, fault="panic_in_step", of_seed=1)] * 2
    with managed("sync", fns) as manager:
        manager.seed(0)
        manager.launch()

        def play() -> None:
            for _ in range(50):
                manager.step(dict.fromkeys(manager.ready_obs, action))

        with pytest.raises(errors.EnvError, match="env 1"):
            play()
        manager.reset({1: None})
        assert sorted(manager.ready_obs) == [0, 1]


def test_a_slow_env_of_ours_holds_up_no_other() -> None:
    manager = AsyncSubprocessEnvManager([FAULTY] * 2)
    manager.launch()
    action = {"force": np.zeros(2, np.float32), "gear": 1}
    for _ in range(5):
        assert manager.step(dict.fromkeys(manager.ready_obs, action))
    manager.close()


def test_attributes_of_our_envs_are_gymnasiums() -> None:
    with launched("sync", ["CartPole-v1"] * 2) as manager:
        assert manager.max_episode_steps == [500, 500]
        assert manager.render_mode == [None, None]
        with pytest.raises(AttributeError, match="nothing_of_the_kind"):
            _ = manager.nothing_of_the_kind
        with pytest.raises(RuntimeError, match="save_state"):
            _ = manager.save_state
