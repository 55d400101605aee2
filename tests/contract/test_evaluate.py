"""Evaluation by index: every index once, in order, the same at any width."""

from __future__ import annotations

import csv
import sys
import zlib
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

import corral
from corral.errors import (
    ArgumentError,
    ArgumentTypeError,
    EnvError,
    InvalidActionError,
    UnsupportedError,
)
from tests.support import FAULTY, MODES, ODD

WIDTHS = [1, 3, 7, 100, None]


def balance(observations: np.ndarray) -> np.ndarray:
    """Falls after some 40 steps. Each row by itself: results cannot depend on the batch."""
    return (observations[:, 2] > 0).astype(np.int64)


def wander(observations: np.ndarray) -> np.ndarray:
    """Some move that the pixels decide: finds some goals, goes in circles elsewhere."""
    return np.array([1 + (zlib.crc32(frame.tobytes(), 1) >> 3) % 4 for frame in observations])


def push(observations: dict[str, Any]) -> dict[str, Any]:
    """Some push that a dict observation decides."""
    level = observations["level"]
    force = np.stack([np.cos(30 * level), level], axis=1).astype(np.float32)
    return {"force": force, "gear": 1 + observations["count"].astype(np.int64) % 3}


PLAYERS: list[tuple[str, Any, dict[str, Any]]] = [
    ("CartPole-v1", balance, {}),
    ("Maze-v0", wander, {"max_episode_steps": 40, "size": 3, "loops": 100}),
    (FAULTY, push, {}),
]


def gymnasiums(index: int, limit: int = 500) -> tuple[float, int]:
    """Return and length of an episode of Gymnasium's own CartPole: index ix is seed ix."""
    env = gymnasium.make("CartPole-v1", max_episode_steps=limit)
    observation, _ = env.reset(seed=index)
    total, length = 0.0, 0
    while True:
        observation, reward, terminated, truncated, _ = env.step(int(balance(observation[None])[0]))
        total, length = total + float(reward), length + 1
        if terminated or truncated:
            return total, length


def alone(id: str, policy: Any, index: int, config: dict[str, Any]) -> tuple[float, int]:
    """The same of any env, by a single env and a plain loop."""
    env = corral.make(id, **config)

    def batched(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: batched(inner) for name, inner in value.items()}
        return np.asarray(value)[None]

    def first(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: first(inner) for name, inner in value.items()}
        return value[0]

    observation, _ = env.reset(options={"index": index})
    total, length = 0.0, 0
    while True:
        action = first(policy(batched(observation)))
        observation, reward, terminated, truncated, _ = env.step(action)
        total, length = total + reward, length + 1
        if terminated or truncated:
            return total, length


def test_cart_poles_episodes_are_those_that_gymnasiums_own_env_plays() -> None:
    indices = [3, 0, 77, 12, 5, 2**40]
    found = corral.evaluate(balance, "CartPole-v1", indices, 4, max_episode_steps=120)
    expected = [gymnasiums(index, 120) for index in indices]
    assert found.indices.tolist() == indices
    assert list(zip(found.returns.tolist(), found.lengths.tolist())) == expected
    assert len(set(expected)) > 1


@pytest.mark.parametrize("num_envs", WIDTHS)
@pytest.mark.parametrize(("id", "policy", "config"), PLAYERS)
def test_the_result_is_the_same_at_any_width_and_in_the_order_of_the_indices(
    id: str, policy: Any, config: dict[str, Any], num_envs: int | None
) -> None:
    indices = [5, 1, 90, 2, 8, 8, 30, 31, 32, 33, 7, 1, 2**62]
    found = corral.evaluate(policy, id, indices, num_envs, **config)
    expected = [alone(id, policy, index, config) for index in indices]
    assert found.indices.tolist() == indices
    assert (found.indices.dtype, found.returns.dtype, found.lengths.dtype) == (
        np.int64,
        np.float64,
        np.int64,
    )
    assert list(zip(found.returns.tolist(), found.lengths.tolist())) == expected
    assert len(set(expected)) > 1


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("num_envs", [1, 4, 20])
@pytest.mark.parametrize(("id", "policy", "config"), PLAYERS)
def test_an_own_vector_env_gives_the_same_in_every_autoreset_mode(
    id: str, policy: Any, config: dict[str, Any], num_envs: int, mode: str
) -> None:
    indices = range(40, 51)
    envs = corral.make_vec(id, num_envs, autoreset_mode=mode, seed=3, **config)
    # Whatever it did before does not matter.
    envs.reset()
    expected = corral.evaluate(policy, id, indices, **config)
    for _ in range(2):
        found = corral.evaluate(policy, envs, indices)
        assert found.returns.tolist() == expected.returns.tolist()
        assert found.lengths.tolist() == expected.lengths.tolist()
    # It is left open, and goes on.
    assert not envs.closed
    envs.reset()
    envs.step(policy(envs.reset()[0]))


@pytest.mark.parametrize("num_envs", [1, 3, 8])
@pytest.mark.parametrize("mode", MODES)
def test_a_policy_is_told_which_rows_begin_and_which_index_each_plays(
    mode: str, num_envs: int
) -> None:
    """Faulty counts its steps: what `began` and `index` say is checked against that."""
    indices = [4, 9, 2, 4, 11, 13, 40, 41, 42]
    singles = corral.make_vec(FAULTY, 1, autoreset_mode="disabled")
    starts = {ix: singles.reset(options={"index": ix})[0]["level"][0] for ix in indices}
    envs = corral.make_vec(FAULTY, num_envs, autoreset_mode=mode, seed=0)
    begun: list[int] = []
    rows = 0

    def policy(observations: Any, *, began: np.ndarray, index: np.ndarray) -> Any:
        nonlocal rows
        n = len(observations["count"])
        rows += n
        assert (began.dtype, began.shape) == (np.bool_, (n,))
        assert (index.dtype, index.shape) == (np.int64, (n,))
        assert 1 <= n <= num_envs
        np.testing.assert_array_equal(began, observations["count"] == 0)
        for level, ix in zip(observations["level"][began], index[began].tolist()):
            assert level == starts[ix]
            begun.append(ix)
        return push(observations)

    found = corral.evaluate(policy, envs, indices)
    assert sorted(begun) == sorted(indices)
    # Only envs that hold an index get actions.
    assert rows == found.lengths.sum()
    assert found.returns[0] == found.returns[3]


def test_a_policy_that_remembers_by_began_plays_as_one_at_width_one() -> None:
    class Alternating:
        """Pushes left and right in turn in each episode, starting left."""

        def __init__(self) -> None:
            self.turns: dict[int, int] = {}

        def __call__(self, observations: np.ndarray, began: Any, index: Any) -> np.ndarray:
            for ix in index[began].tolist():
                self.turns[ix] = 0
            actions = np.array([self.turns[ix] % 2 for ix in index.tolist()])
            for ix in index.tolist():
                self.turns[ix] += 1
            return actions

    one, many = (
        corral.evaluate(Alternating(), "CartPole-v1", range(20), width) for width in (1, 6)
    )
    assert one.lengths.tolist() == many.lengths.tolist()


def test_extra_arguments_come_only_to_policies_that_name_them() -> None:
    seen: list[set[str]] = []

    def everything(observations: np.ndarray, **more: Any) -> np.ndarray:
        seen.append(set(more))
        return balance(observations)

    def one(observations: np.ndarray, index: Any = None) -> np.ndarray:
        seen.append({"index"} if index is not None else set())
        return balance(observations)

    def none(observations: np.ndarray, greedy: bool = True) -> np.ndarray:
        assert greedy is True
        return balance(observations)

    for policy in (everything, one, none):
        corral.evaluate(policy, "CartPole-v1", [0], max_episode_steps=1)
    assert seen == [{"began", "index", "infos"}, {"index"}]


def test_observations_that_a_policy_keeps_are_not_changed_afterwards() -> None:
    kept: list[np.ndarray] = []
    copies: list[bytes] = []

    def keeping(observations: np.ndarray) -> np.ndarray:
        kept.append(observations)
        copies.append(observations.tobytes())
        return balance(observations)

    corral.evaluate(keeping, "CartPole-v1", range(30), 7)
    assert [array.tobytes() for array in kept] == copies


def test_a_time_limit_ends_episodes_and_minus_one_lifts_it() -> None:
    def stay(observations: np.ndarray) -> np.ndarray:
        return np.zeros(len(observations), dtype=np.int64)

    for limit, length in [(1, 1), (9, 9), (None, 256), (300, 300)]:
        found = corral.evaluate(stay, "Maze-v0", [1, 2], max_episode_steps=limit)
        assert found.lengths.tolist() == [length, length]
        assert found.returns.tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    ("indices", "error", "message"),
    [
        ([], ArgumentError, "no indices"),
        (iter(()), ArgumentError, "no indices"),
        ([3, -1], ArgumentError, "index -1"),
        ([2**63], ArgumentError, str(2**63)),
        ([1.5], ArgumentTypeError, "1.5"),
        (np.array([1.0, 2.0]), ArgumentTypeError, "indices are ints"),
        (["1"], ArgumentTypeError, "'1'"),
        ("12", ArgumentTypeError, "'12'"),
        ([None], ArgumentTypeError, "None"),
        ([True], ArgumentTypeError, "True"),
        (5, ArgumentTypeError, "5"),
    ],
)
def test_indices_that_make_no_sense_are_refused(
    indices: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error) as raised:
        corral.evaluate(balance, "CartPole-v1", indices)
    assert message in str(raised.value)


@pytest.mark.parametrize(
    "indices", [range(3), (0, 1, 2), np.arange(3, dtype=np.uint8), iter([0, 1, 2])]
)
def test_indices_may_be_any_iterable_of_ints(indices: Any) -> None:
    found = corral.evaluate(balance, "CartPole-v1", indices, max_episode_steps=5)
    assert found.indices.tolist() == [0, 1, 2]


@pytest.mark.parametrize("num_envs", [0, -1, 1.5, "3", True])
def test_a_width_that_makes_no_sense_is_refused(num_envs: Any) -> None:
    with pytest.raises((ArgumentError, ArgumentTypeError), match="num_envs"):
        corral.evaluate(balance, "CartPole-v1", range(50), num_envs)


def test_what_is_no_env_is_refused() -> None:
    with pytest.raises(ArgumentTypeError, match=r"an id or a corral.VectorEnv, not Env"):
        corral.evaluate(balance, corral.make("CartPole-v1"))  # type: ignore[arg-type]
    envs = corral.make_vec("CartPole-v1", 2)
    with pytest.raises(ArgumentError, match="go with an id"):
        corral.evaluate(balance, envs, [1], 2)
    with pytest.raises(ArgumentError, match="go with an id"):
        corral.evaluate(balance, envs, [1], sutton_barto_reward=True)


def test_an_env_that_plays_no_indices_says_so() -> None:
    def policy(observations: Any) -> Any:
        n = len(observations["count"])
        return {"move": np.zeros(n, dtype=np.int64), "word": [""] * n}

    envs = corral.make_vec(ODD, 2, autoreset_mode="same_step")
    with pytest.raises(UnsupportedError, match="cannot play the episode of an index"):
        corral.evaluate(policy, envs, [1])
    with pytest.raises(UnsupportedError):
        corral.evaluate(policy, ODD, [1])


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[corral.VectorEnv]:
    """The vec envs that `evaluate` makes for ids."""
    found: list[corral.VectorEnv] = []

    def spy(*args: Any, **kwargs: Any) -> corral.VectorEnv:
        found.append(corral.make_vec(*args, **kwargs))
        return found[-1]

    monkeypatch.setattr(sys.modules["corral.evaluation.evaluate"], "make_vec", spy)
    return found


class Broken(Exception):
    pass


def raising(observations: np.ndarray) -> np.ndarray:
    raise Broken


def outside(observations: np.ndarray) -> np.ndarray:
    return np.full(len(observations), 9)


def too_few(observations: np.ndarray) -> np.ndarray:
    return balance(observations)[:-1]


@pytest.mark.parametrize(
    ("policy", "error"),
    [
        (balance, None),
        (raising, Broken),
        (outside, InvalidActionError),
        (too_few, InvalidActionError),
        (lambda observations: None, InvalidActionError),
    ],
)
def test_an_env_made_by_id_is_closed_however_the_policy_ends(
    made: list[corral.VectorEnv], policy: Any, error: type[Exception] | None
) -> None:
    if error is None:
        corral.evaluate(policy, "CartPole-v1", range(5))
    else:
        with pytest.raises(error):
            corral.evaluate(policy, "CartPole-v1", range(5))
    assert [envs.closed for envs in made] == [True]


def test_an_own_env_stays_open_after_a_policys_error() -> None:
    envs = corral.make_vec("CartPole-v1", 3)
    with pytest.raises(Broken):
        corral.evaluate(raising, envs, range(5))
    assert not envs.closed
    assert corral.evaluate(balance, envs, [0]).returns[0] == gymnasiums(0)[0]


def test_an_env_that_fails_names_its_index(made: list[corral.VectorEnv]) -> None:
    with pytest.raises(EnvError) as raised:
        corral.evaluate(push, FAULTY, [7, 8, 9], 2, fault="panic_in_step", at_step=1)
    assert [failure.index for failure in raised.value.failures] == [7, 8]
    assert "index 7" in str(raised.value)
    assert made[0].closed


def test_results_go_to_csv_and_to_a_table(tmp_path: Path) -> None:
    indices = [3, 1, *range(100, 130)]
    found = corral.evaluate(balance, "CartPole-v1", indices)
    found.to_csv(tmp_path / "found.csv")
    with open(tmp_path / "found.csv", newline="") as file:
        header, *rows = csv.reader(file)
    assert header == ["index", "return", "length"]
    assert [int(row[0]) for row in rows] == indices
    assert [float(row[1]) for row in rows] == found.returns.tolist()
    assert [int(row[2]) for row in rows] == found.lengths.tolist()
    lines = str(found).splitlines()
    assert lines[0].split() == ["index", "return", "length"]
    assert lines[1].split()[0] == "3"
    assert "(12 more)" in lines[-2]
    assert "32 episodes" in lines[-1]
    assert f"{np.mean(found.returns):.4g}" in lines[-1]
    assert found.mean == np.mean(found.returns)
    assert found.std == np.std(found.returns)


def test_progress_is_shown_where_asked_for_and_nowhere_else(
    capfd: pytest.CaptureFixture[str],
) -> None:
    corral.evaluate(balance, "CartPole-v1", range(3))
    assert capfd.readouterr() == ("", "")
    corral.evaluate(balance, "CartPole-v1", range(3), progress=True)
    out, err = capfd.readouterr()
    assert out == ""
    assert "evaluating" in err


@pytest.mark.parametrize("num_envs", [1, 7, 64])
def test_observations_in_tuples_are_shown_to_the_policy_as_tuples(num_envs: int) -> None:
    """Index ix of Blackjack is Gymnasium's episode of seed ix."""
    theirs = gymnasium.make("Blackjack-v1")
    returns, lengths = np.zeros(150), np.zeros(150, dtype=np.int64)
    for index in range(150):
        seen, _ = theirs.reset(seed=index)
        over = False
        while not over:
            seen, reward, over, _, _ = theirs.step(int(seen[0] < 16))
            returns[index] += float(reward)
            lengths[index] += 1

    def policy(observations: Any) -> Any:
        total, dealer, ace = observations
        assert total.shape == dealer.shape == ace.shape
        return (total < 16).astype(np.int64)

    result = corral.evaluate(policy, "Blackjack-v1", range(150), num_envs)
    np.testing.assert_array_equal(result.returns, returns)
    np.testing.assert_array_equal(result.lengths, lengths)
