"""Pools in Ray's actors beside one vec env in this process."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import ray

import corral
import corral.ray
from corral import errors
from corral.ray.evaluating import parts_of

STEPS = 16
PAGE = Path(__file__).resolve().parents[2] / "docs" / "ray.md"
MODES = ("next_step", "same_step", "disabled")


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[None]:
    # Ray's processes have niceness 15 otherwise, and next to no CPU beside other tests.
    os.environ["RAY_worker_niceness"] = "0"  # noqa: SIM112 - Ray spells it so
    ray.init(num_cpus=8, include_dashboard=False, log_to_driver=False, configure_logging=False)
    yield
    ray.shutdown()


def make_policy(weights: Any) -> Callable[[Any], Any]:
    """Acts by each row alone, and by the weights."""
    return lambda seen: ((seen @ weights) * 1000 % 2).astype(np.int64)


def weights(number: int) -> Any:
    return np.arange(1, 5, dtype=np.float64) + number


def in_one(fragments: int, **options: Any) -> list[corral.Rollout]:
    """What one vec env plays, with the weights that each fragment of pools has."""
    envs = corral.make_vec("CartPole-v1", 6, seed=7, **options)
    envs.reset()
    policies = [make_policy(weights(max(0, number - 1))) for number in range(fragments)]
    return [envs.rollout(policy, STEPS) for policy in policies]


def assert_joined(parts: list[corral.ray.Part], whole: corral.Rollout) -> None:
    rollouts = [part.rollout for part in parts]
    for name in ("observations", "actions", "rewards", "terminations", "truncations", "row_kinds"):
        joined = np.concatenate([getattr(rollout, name) for rollout in rollouts], axis=1)
        np.testing.assert_array_equal(joined, getattr(whole, name), err_msg=name)


@pytest.mark.parametrize("actors", [1, 2, 4])
def test_pools_play_the_same_bytes_for_any_number_of_actors(actors: int) -> None:
    whole = in_one(3)
    with corral.ray.pools("CartPole-v1", 6, actors, seed=7) as pools:
        for number in range(3):
            parts = pools.collect(weights(number), make_policy, STEPS)
            assert [part.age for part in parts] == [min(number, 1)] * actors
            assert [env for part in parts for env in part.envs] == list(range(6))
            assert not any(part.began_anew for part in parts)
            assert_joined(parts, whole[number])
    joined = corral.Rollout.joined([part.rollout for part in parts])
    assert joined.num_envs == 6
    np.testing.assert_array_equal(joined.next_observations(), whole[2].next_observations())


@pytest.mark.parametrize("mode", MODES)
def test_episodes_and_finals_arrive(mode: str) -> None:
    options = {"autoreset_mode": mode, "episode_statistics": True, "max_episode_steps": 5}
    whole = in_one(1, **options)[0]
    with corral.ray.pools("CartPole-v1", 6, 2, seed=7, **options) as pools:
        parts = pools.collect(weights(0), make_policy, STEPS, ahead=False)
    joined = corral.Rollout.joined([part.rollout for part in parts])
    assert len(joined.finals.steps) > 6
    for ours, theirs in ((joined.finals, whole.finals), (joined.episodes, whole.episodes)):
        assert ours is not None
        assert theirs is not None
        for name in ("steps", "envs"):
            np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name))
    np.testing.assert_array_equal(joined.finals.observations, whole.finals.observations)
    assert joined.episodes is not None
    assert whole.episodes is not None
    np.testing.assert_array_equal(joined.episodes.returns, whole.episodes.returns)


def test_without_ahead_every_fragment_is_of_the_weights_given() -> None:
    with corral.ray.pools("CartPole-v1", 6, 2, seed=7) as pools:
        for number in range(2):
            parts = pools.collect(weights(number), make_policy, STEPS, ahead=False)
            assert [part.age for part in parts] == [0, 0]
            assert all(member.under_way is None for member in pools._members)


def noisy(weights: Any, envs: range) -> Callable[[Any], Any]:
    rng = np.random.default_rng([weights, envs.start])
    return lambda seen: rng.integers(0, 2, len(seen))


def test_a_policy_may_draw_numbers_of_its_actors_own() -> None:
    def drawn() -> Any:
        with corral.ray.pools("CartPole-v1", 6, 2, seed=7) as pools:
            parts = pools.collect(3, noisy, STEPS, ahead=False)
            return corral.Rollout.joined([part.rollout for part in parts]).actions

    first = drawn()
    assert (first[:, :3] != first[:, 3:]).any()
    np.testing.assert_array_equal(first, drawn())


def test_arrays_arrive_without_a_copy() -> None:
    with corral.ray.pools("CartPole-v1", 2048, 2, seed=7) as pools:
        part = pools.collect(weights(0), make_policy, STEPS)[0]
    assert not part.rollout.observations.flags.writeable
    assert not part.rollout.observations.flags.owndata
    assert not part.rollout.rewards.flags.writeable


def pids(pools: corral.ray.Pools) -> list[int]:
    def pid(actor: Any) -> int:
        return os.getpid()

    return [ray.get(member.actor.__ray_call__.remote(pid)) for member in pools._members]


def test_an_actor_that_dies_is_replaced_and_its_rows_are_marked() -> None:
    whole = in_one(2)
    with corral.ray.pools("CartPole-v1", 6, 2, seed=7) as pools:
        assert_joined(pools.collect(weights(0), make_policy, STEPS, ahead=False), whole[0])
        os.kill(pids(pools)[1], 9)
        parts = pools.collect(weights(0), make_policy, STEPS, ahead=False)
        assert [part.began_anew for part in parts] == [False, True]
        assert pools.restarts == 1
        np.testing.assert_array_equal(parts[0].rollout.observations, whole[1].observations[:, :3])
        first = parts[1].rollout.observations[0]
        assert (np.abs(first) <= 0.05).all()
        assert not (first == whole[0].observations[0, 3:]).any()
        parts = pools.collect(weights(0), make_policy, STEPS, ahead=False)
        assert not any(part.began_anew for part in parts)


def test_with_resume_a_death_changes_nothing() -> None:
    whole = in_one(4)
    with corral.ray.pools("CartPole-v1", 6, 2, seed=7, resume=True) as pools:
        for number in range(4):
            if number == 2:
                os.kill(pids(pools)[0], 9)
            parts = pools.collect(weights(number), make_policy, STEPS)
            assert not any(part.began_anew for part in parts)
            assert_joined(parts, whole[number])
        assert pools.restarts == 1


def dies(weights: Any) -> Callable[[Any], Any]:
    return lambda seen: os._exit(3)


def test_an_actor_that_dies_again_and_again_is_an_error() -> None:
    pools = corral.ray.pools("CartPole-v1", 2, 1, max_restarts=1)
    with pytest.raises(errors.EnvError, match=r"envs 0 to 1 died 2 times in a row"):
        pools.collect(None, dies, STEPS)
    pools.close()


def test_k_of_n_arrive_and_the_others_follow(tmp_path: Path) -> None:
    may_go_on = tmp_path / "go on"

    def sleeper(weights: Any) -> Callable[[Any], Any]:
        def act(seen: Any) -> Any:
            # The actor of two envs waits until the other one's fragment is here.
            while len(seen) == 2 and not may_go_on.exists():
                time.sleep(0.01)
            return np.zeros(len(seen), np.int64)

        return act

    with corral.ray.pools("CartPole-v1", 5, 2, seed=7) as pools:
        assert [len(member.envs) for member in pools._members] == [2, 3]
        first = pools.collect(None, sleeper, 4, wait=1)
        assert [len(part.envs) for part in first] == [3]
        may_go_on.touch()
        seen = [len(part.envs) for _ in range(3) for part in pools.collect(None, sleeper, 4)]
        assert sorted(seen) == [2, 2, 2, 3, 3, 3]
        with pytest.raises(errors.ArgumentError, match="wait"):
            pools.collect(None, sleeper, 4, wait=3)


def fails(weights: Any) -> Callable[[Any], Any]:
    def act(seen: Any) -> Any:
        if len(seen) == 2:
            raise ZeroDivisionError("by design")
        return np.zeros(len(seen), np.int64)

    return act


def test_a_policys_error_is_raised_and_what_has_arrived_is_kept() -> None:
    with corral.ray.pools("CartPole-v1", 5, 2, seed=7) as pools:
        with pytest.raises(ZeroDivisionError, match="by design"):
            pools.collect(None, fails, 4)
        parts = pools.collect(weights(0), make_policy, 4)
        assert [len(part.envs) for part in parts] == [2, 3]


def test_libraries_that_were_loaded_by_a_path_are_loaded_in_the_actors(tmp_path: Path) -> None:
    path = tmp_path / "libmore.so"
    path.write_bytes(Path(corral.libenv_path()).read_bytes())
    corral.load(path, namespace="more")
    with corral.ray.pools("more/CartPole-v1", 4, 2, seed=1) as pools:
        assert sum(len(part.envs) for part in pools.collect(weights(0), make_policy, 4)) == 4


def gymnasiums(num_envs: int) -> corral.VectorEnv:
    return corral.from_gymnasium("CartPole-v1", num_envs, runner="serial")


@pytest.mark.parametrize("actors", [1, 3])
def test_a_function_makes_the_envs_of_actors(actors: int) -> None:
    whole = in_one(1)[0]
    with corral.ray.pools(gymnasiums, 6, actors, seed=7) as pools:
        assert_joined(pools.collect(weights(0), make_policy, STEPS), whole)
    with (
        corral.ray.pools(gymnasiums, 6, actors, seed=7, resume=True) as pools,
        pytest.raises(errors.UnsupportedError, match="state"),
    ):
        pools.collect(weights(0), make_policy, STEPS)


def test_a_function_makes_the_envs_of_an_evaluation() -> None:
    alone = corral.evaluate(left, gymnasiums(4), range(20))
    for width in (None, 3):
        ours = corral.ray.evaluate(left, gymnasiums, range(20), 2, width)
        np.testing.assert_array_equal(ours.indices, alone.indices)
        np.testing.assert_array_equal(ours.returns, alone.returns)


def test_wrong_arguments_are_errors_here() -> None:
    with pytest.raises(errors.UnknownEnvError):
        corral.ray.pools("CartPole-v9", 4)
    with pytest.raises(errors.UnknownOptionError):
        corral.ray.pools("CartPole-v1", 4, 2, colour="red")
    with pytest.raises(errors.ArgumentError, match="4 actors for 3 envs"):
        corral.ray.pools("CartPole-v1", 3, 4)
    with pytest.raises(errors.ArgumentTypeError, match="which travel to other processes"):
        corral.ray.pools(corral.make_vec("CartPole-v1", 2))  # type: ignore[arg-type]
    with pytest.raises(errors.ArgumentError, match="num_envs is missing"):
        corral.ray.pools(gymnasiums)
    for evaluate in (corral.ray.pools, partial(corral.ray.evaluate, left)):
        with pytest.raises(errors.ArgumentError, match="options go with an id"):
            evaluate(gymnasiums, num_envs=2, colour="red")
    with pytest.raises(errors.ArgumentTypeError, match="of 1 envs when it is given 1"):
        corral.ray.pools(lambda n: gymnasiums(2), 2, 2).collect(weights(0), make_policy, 4)
    pools = corral.ray.pools("CartPole-v1", 2, 1)
    pools.close()
    pools.close()
    with pytest.raises(errors.ClosedError):
        pools.collect(None, make_policy, 4)


def left(seen: Any) -> Any:
    return (seen[:, 2] > 0).astype(np.int64)


@pytest.mark.parametrize("actors", [1, 3])
def test_an_evaluation_is_the_same_for_any_number_of_actors(actors: int) -> None:
    alone = corral.evaluate(left, "CartPole-v1", range(50))
    ours = corral.ray.evaluate(left, "CartPole-v1", range(50), actors, num_envs=4)
    np.testing.assert_array_equal(ours.indices, alone.indices)
    np.testing.assert_array_equal(ours.returns, alone.returns)
    np.testing.assert_array_equal(ours.lengths, alone.lengths)
    assert ours.config == alone.config


def test_few_indices_are_divided_into_few_parts() -> None:
    assert parts_of(100_000, 2, 32) == 8, "four for each actor"
    assert parts_of(10_000, 2, 64) == 4, "of 2,500 episodes, 39 for each env"
    assert parts_of(100, 2, 32) == 2, "each actor has one"
    assert parts_of(3, 5, 32) == 3, "none is empty"


def test_an_evaluation_is_the_same_after_a_death(tmp_path: Path) -> None:
    flag = tmp_path / "died"

    def once(seen: Any) -> Any:
        try:
            flag.touch(exist_ok=False)
        except FileExistsError:
            return left(seen)
        os._exit(1)

    alone = corral.evaluate(left, "CartPole-v1", range(30))
    ours = corral.ray.evaluate(once, corral.spec("CartPole-v1"), range(30), 2)
    assert flag.exists()
    np.testing.assert_array_equal(ours.returns, alone.returns)


def test_the_program_of_the_page_prints_what_it_says() -> None:
    text = PAGE.read_text()
    program = re.findall(r"```python\n(.*?)```", text, re.DOTALL)[0]
    # It starts a cluster of its own.
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout == re.findall(r"```text\n(.*?)```", text, re.DOTALL)[0]
