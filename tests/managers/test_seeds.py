"""Which seed reaches which env, and when."""

from __future__ import annotations

import functools
from typing import Any

import gymnasium
import numpy as np
import pytest

from corral import errors
from tests.managers.envs import Counter, Engine
from tests.managers.managers import each, every_manager, launched, managed
from tests.support import assert_same


def seeds_shown(manager: Any) -> list[float]:
    return [obs[1] for _, obs in sorted(manager.ready_obs.items())]


@every_manager
@pytest.mark.parametrize(
    ("seed", "expected"),
    [
        (5, [5, 6, 7]),
        (np.int64(5), [5, 6, 7]),
        ([3, 1, 2], [3, 1, 2]),
        ({1: 8}, [-1, 8, -1]),
    ],
    ids=str,
)
def test_a_seed_is_an_int_a_list_or_a_dict(kind: str, seed: Any, expected: list[int]) -> None:
    with managed(kind, each(Counter, 3)) as manager:
        manager.seed(seed)
        manager.launch()
        assert seeds_shown(manager) == expected


@every_manager
def test_a_seed_counts_for_one_reset(kind: str) -> None:
    with launched(kind, each(Counter, 2)) as manager:
        manager.seed(4)
        assert seeds_shown(manager) == [-1, -1]
        manager.reset({1: None})
        assert seeds_shown(manager) == [-1, 5]
        manager.reset()
        assert seeds_shown(manager) == [4, -1]


@every_manager
@pytest.mark.parametrize(
    ("dynamic", "expected"), [(None, (6,)), (True, (6, True)), (False, (6, False))]
)
def test_an_env_of_di_engine_is_told_dynamic_seed_if_somebody_said_it(
    kind: str, dynamic: bool | None, expected: tuple[Any, ...]
) -> None:
    with managed(kind, each(Engine, 2, 1)) as manager:
        manager.seed(5, dynamic)
        manager.launch()
        for _ in range(3):
            assert manager.ready_obs[1]["told"] == (expected,)
            manager.step({0: 0, 1: 0})
        manager.seed({1: 9})
        manager.reset()
        assert manager.ready_obs[1]["told"] == (expected, (9,))
        assert manager.ready_obs[0]["told"] == ((5, *expected[1:]),)


@every_manager
@pytest.mark.parametrize("dynamic", [None, True, False])
def test_gymnasiums_envs_repeat_their_seed_without_dynamic_seed(
    kind: str, dynamic: bool | None
) -> None:
    make = functools.partial(gymnasium.make, "CartPole-v1", max_episode_steps=1)
    reference = make()
    first = reference.reset(seed=3)[0]
    second = reference.reset(seed=3 if dynamic is False else None)[0]
    with managed(kind, [make] * 2) as manager:
        manager.seed(2, dynamic_seed=dynamic)
        manager.launch()
        assert_same(manager.ready_obs[1], first)
        manager.step({0: 0, 1: 0})
        assert_same(manager.ready_obs[1], second)


@every_manager
def test_the_same_seed_gives_the_same_run(kind: str) -> None:
    make = functools.partial(gymnasium.make, "CartPole-v1")
    runs = []
    for _ in range(2):
        with managed(kind, [make] * 2) as manager:
            manager.seed([11, 12])
            manager.launch()
            run = [manager.ready_obs]
            for step in range(40):
                run.append({k: t.obs for k, t in manager.step({0: step % 2, 1: 0}).items()})
                run.append(manager.ready_obs)
        runs.append(run)
    assert_same(runs[0], runs[1])


@pytest.mark.parametrize(
    ("seed", "words"),
    [
        ([1, 2], "seed has 2 elements for 3 envs"),
        (-1, "seed is -1: it must be at least 0"),
        ([0, -5, 0], "the seed of env 1 is -5"),
        ({3: 1}, "there is no env 3: the envs are 0 to 2"),
        ({"0": 1}, "an env id is an int, not '0'"),
        ("7", "seed is an int, a list of one per env or a dict by env, not '7'"),
        (1.5, "not 1.5"),
        (True, "seed is an int, not True"),
    ],
    ids=str,
)
def test_a_seed_that_makes_no_sense_is_named(seed: Any, words: str) -> None:
    with (
        managed("base", each(Counter, 3)) as manager,
        pytest.raises((errors.ArgumentError, errors.ArgumentTypeError), match=words),
    ):
        manager.seed(seed)


@every_manager
def test_an_env_that_takes_no_seed_says_so(kind: str) -> None:
    class Seedless(Engine):
        seed = None  # type: ignore[assignment]

    with managed(kind, each(Seedless, 2)) as manager:
        manager.seed(0)
        with pytest.raises(errors.UnsupportedError, match="env 0 takes no seed"):
            manager.launch()
