"""Do slots refill as episodes end, whatever steps the envs; and is success told alike by all?

The reference is a list: each next index goes to the slot that is free first.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from typing import Any

import gymnasium
import numpy as np
import pytest

import corral
from corral.errors import ArgumentError, ArgumentTypeError, UnsupportedError

INDICES = [5, 0, 3, 9, 11, 2, 5, 40, 41, 42, 43]


class Scored(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Tells at the end whether the episode was long, and of how many steps it was."""

    def reset(self, **arguments: Any) -> Any:
        self.steps = 0
        return self.env.reset(**arguments)

    def step(self, action: Any) -> Any:
        self.steps += 1
        observation, reward, terminated, truncated, info = self.env.step(action)
        if terminated or truncated:
            info = {**info, "score": {"is_success": self.steps > 40}, "is_success": self.steps > 40}
        else:
            info = {**info, "is_success": True}
        return observation, reward, terminated, truncated, info


def scored() -> gymnasium.Env[Any, Any]:
    return Scored(gymnasium.make("CartPole-v1"))


def python(runner: str, mode: str) -> Callable[[int], corral.VectorEnv]:
    more = {"num_workers": 2} if runner == "process" else {}
    return lambda n: corral.from_gymnasium(scored, n, runner=runner, autoreset_mode=mode, **more)


def plugin(n: int) -> corral.VectorEnv:
    corral.load(corral.libenv_path(), namespace="refill")
    return corral.make_vec("refill/CartPole-v1", n)


def libenv(isolation: str) -> Callable[[int], corral.VectorEnv]:
    return lambda n: corral.load_libenv(
        corral.libenv_path(), n, {"env_id": "CartPole-v1"}, isolation=isolation, num_workers=1
    )


def env_c_api(isolation: str) -> Callable[[int], corral.VectorEnv]:
    return lambda n: corral.load_env_c_api(
        corral.libenv_path(),
        num_envs=n,
        settings={"env_id": "CartPole-v1"},
        isolation=isolation,
    )


SERVERS: list[corral.netenv.Server] = []


@pytest.fixture(autouse=True)
def servers_end() -> Iterator[None]:
    yield
    while SERVERS:
        SERVERS.pop().close()


def netenv(mode: str) -> Callable[[int], corral.VectorEnv]:
    def make(n: int) -> corral.VectorEnv:
        SERVERS.append(corral.serve("CartPole-v1", addr="127.0.0.1:0"))
        return corral.connect(SERVERS[-1].address, n, autoreset_mode=mode)

    return make


SOURCES: dict[str, Callable[[int], corral.VectorEnv]] = {
    "built-in": lambda n: corral.make_vec("CartPole-v1", n),
    "built-in, each by itself": lambda n: corral.make_vec("CartPole-v1", n, batch_size=1),
    "built-in with a timeout": lambda n: corral.make_vec("CartPole-v1", n, timeout=60),
    "plugin": plugin,
    "Python, serial": python("serial", "next_step"),
    "Python, threads": python("thread", "disabled"),
    "Python, processes": python("process", "same_step"),
    "libenv, which steps together": libenv("thread"),
    "libenv in a process, which steps together": libenv("process"),
    "EnvCApi": env_c_api("thread"),
    "EnvCApi in processes": env_c_api("process"),
    "netenv": netenv("next_step"),
    "netenv, same_step": netenv("same_step"),
}


def lengths_of(indices: list[int]) -> list[int]:
    """Of Gymnasium's own episodes: index ix is seed ix."""
    env, found = gymnasium.make("CartPole-v1"), []
    for index in indices:
        observation, _ = env.reset(seed=index)
        steps, over = 0, False
        while not over:
            observation, _, terminated, truncated, _ = env.step(int(observation[2] > 0))
            steps, over = steps + 1, terminated or truncated
        found.append(steps)
    return found


def rounds(lengths: list[int], width: int) -> int:
    """How many steps of the batch it takes."""
    free = [0] * width
    for length in lengths:
        heapq.heapreplace(free, free[0] + length)
    return max(free)


@pytest.mark.parametrize("width", [1, 3])
@pytest.mark.parametrize("source", SOURCES)
def test_a_slot_gets_its_next_index_as_soon_as_its_episode_ends(source: str, width: int) -> None:
    envs = SOURCES[source](width)
    steps = 0

    def policy(observations: Any) -> Any:
        nonlocal steps
        steps += 1
        is_dict = isinstance(observations, dict)
        seen = observations["obs"] if is_dict else observations
        dtype = envs.single_action_space["action"].dtype if is_dict else np.int64  # type: ignore[index]
        push = (seen[:, 2] > 0).astype(dtype)
        return {"action": push} if is_dict else push

    found = corral.evaluate(policy, envs, INDICES, success=lambda infos, total: total > 40)
    envs.close()
    lengths = lengths_of(INDICES)
    assert found.lengths.tolist() == lengths
    assert steps == rounds(lengths, width)
    assert width == 1 or steps < sum(lengths)
    assert found.successes is not None
    assert found.successes.tolist() == [length > 40 for length in lengths]


@pytest.mark.parametrize("isolation", ["thread", "process"])
def test_last_infos_are_those_of_the_episode_that_ended_where_the_next_one_has_begun(
    isolation: str,
) -> None:
    """A libenv library begins the next episode in the same step."""
    told: dict[str, list[Any]] = {"here": [], "there": []}

    def play(where: str, envs: corral.VectorEnv, act: Callable[[Any], Any]) -> None:
        def success(infos: dict[str, Any], episode_return: float) -> bool:
            told[where].append((int(infos["level"]), int(infos["distance"]), episode_return))
            return True

        corral.evaluate(act, envs, range(6), success=success)
        envs.close()

    options = {"env_id": "Maze-v0", "max_episode_steps": 20}
    there = corral.load_libenv(corral.libenv_path(), 3, options, isolation=isolation, num_workers=1)
    play("there", there, lambda seen: {"action": np.ones(len(next(iter(seen.values()))), np.int32)})
    here = corral.make_vec("Maze-v0", 3, max_episode_steps=20)
    play("here", here, lambda seen: np.ones(len(seen), np.int64))
    assert sorted(told["there"]) == sorted(told["here"])
    assert len({distance for _, distance, _ in told["here"]}) > 2


def test_an_original_netenv_server_plays_no_indices_and_says_so() -> None:
    with corral.serve("CartPole-v1", addr="127.0.0.1:0") as server:
        envs = corral.connect(server.address, 2, plain=True)
        with pytest.raises(UnsupportedError, match="cannot play the episode of an index"):
            corral.evaluate(lambda seen: np.zeros(len(seen), np.int64), envs, [1])
        envs.close()


def balance(observations: np.ndarray) -> np.ndarray:
    return (observations[:, 2] > 0).astype(np.int64)


@pytest.mark.parametrize("key", ["is_success", "score.is_success"])
@pytest.mark.parametrize("source", ["Python, serial", "Python, threads", "Python, processes"])
def test_success_is_what_the_last_infos_say(source: str, key: str) -> None:
    envs = SOURCES[source](3)
    found = corral.evaluate(balance, envs, INDICES, success=key)
    envs.close()
    expected = [length > 40 for length in lengths_of(INDICES)]
    assert found.successes is not None
    assert found.successes.tolist() == expected
    assert found.successes.dtype == np.bool_
    assert found.success_rate == sum(expected) / len(expected)
    assert 0 < found.success_rate < 1


def test_a_function_of_the_infos_sees_them_as_of_one_env() -> None:
    envs = SOURCES["Python, serial"](3)
    seen: list[tuple[dict[str, Any], float]] = []

    def success(infos: dict[str, Any], episode_return: float) -> Any:
        seen.append((infos, episode_return))
        return infos["score"]["is_success"]

    found = corral.evaluate(balance, envs, INDICES, success=success)
    for infos, total in seen:
        expected = total > 40
        assert infos == {"score": {"is_success": expected}, "is_success": expected}
    assert sorted(total for _, total in seen) == sorted(found.returns.tolist())
    assert found.successes is not None
    assert found.successes.tolist() == [length > 40 for length in lengths_of(INDICES)]


def test_an_env_of_corral_tells_of_success_by_its_own_infos() -> None:
    """FrozenLake's `prob` of the last step is 1 where the ice does not slip."""
    found = corral.evaluate(
        lambda seen: np.full(len(seen), 1),
        "FrozenLake-v1",
        range(4),
        is_slippery=False,
        max_episode_steps=5,
        success="prob",
    )
    assert found.success_rate == 1.0


def test_nobody_asks_and_nobody_is_told() -> None:
    assert corral.evaluate(balance, "CartPole-v1", [1]).successes is None


@pytest.mark.parametrize(
    ("success", "error", "message"),
    [
        (
            "is_sucess",
            ArgumentError,
            "no 'is_sucess' at the end of .* index 5: they have .*is_succ",
        ),
        ("score.other", ArgumentError, "score.is_success"),
        ("score", ArgumentTypeError, "success is a bool"),
        (lambda infos, total: None, ArgumentTypeError, "the function success gave None"),
        (lambda infos, total: np.array([1, 0]), ArgumentTypeError, "function success gave"),
        (3, ArgumentTypeError, "success is the key of an info, or a function"),
    ],
)
def test_a_success_that_nobody_can_tell_is_refused(
    success: Any, error: type[Exception], message: str
) -> None:
    envs = SOURCES["Python, serial"](1)
    with pytest.raises(error, match=message):
        corral.evaluate(balance, envs, [5], success=success)


def test_the_infos_of_an_env_that_has_none_are_told_as_nothing() -> None:
    with pytest.raises(ArgumentError, match="they have nothing"):
        corral.evaluate(balance, "CartPole-v1", [5], success="is_success")
