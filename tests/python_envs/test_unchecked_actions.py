"""`action_bounds="unchecked"`: a label that is none of the space's reaches the env as it is."""

from collections.abc import Callable
from contextlib import closing

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Discrete

import corral
from corral import errors


class Echo(gymnasium.Env[np.int64, np.int64]):
    """Shows the last action's kind and value, and refuses -7."""

    observation_space = Discrete(100, start=-50)

    def __init__(self, action_space: Discrete) -> None:
        self.action_space = action_space

    def reset(self, *, seed: int | None = None, options: object = None) -> tuple[np.int64, dict]:
        return np.int64(0), {}

    def step(self, action: np.int64) -> tuple[np.int64, float, bool, bool, dict]:
        assert type(action) is np.int64
        if action == -7:
            raise KeyError("no such label")
        return action, 0.0, False, False, {}


def echo(start: int, labels: int) -> Callable[[], Echo]:
    return lambda: Echo(Discrete(labels, start=start))


@pytest.mark.parametrize("runner", ["serial", "thread", "process"])
@pytest.mark.parametrize("start", [0, 3, -2])
def test_a_label_outside_its_space_reaches_the_env_as_it_is(runner: str, start: int) -> None:
    envs = corral.from_gymnasium(
        echo(start, 4), num_envs=3, runner=runner, action_bounds="unchecked"
    )
    with closing(envs):
        envs.reset()
        for actions in ([start, start + 4, -30], [49, start - 1, start + 3]):
            assert envs.step(np.array(actions))[0].tolist() == actions


def test_labels_at_the_ends_of_int64_reach_the_env() -> None:
    seen: list[int] = []

    class Notes(Echo):
        def step(self, action: np.int64) -> tuple[np.int64, float, bool, bool, dict]:
            seen.append(int(action))
            return np.int64(0), 0.0, False, False, {}

    ends = [-(2**63), 2**63 - 1]
    make = lambda: Notes(Discrete(4, start=2))  # noqa: E731
    with closing(
        corral.from_gymnasium(make, num_envs=2, runner="serial", action_bounds="unchecked")
    ) as envs:
        envs.reset()
        envs.step(np.array(ends))
    assert seen == ends


def test_what_the_env_raises_of_such_a_label_is_raised() -> None:
    with closing(
        corral.from_gymnasium(echo(0, 2), num_envs=2, runner="serial", action_bounds="unchecked")
    ) as envs:
        envs.reset()
        with pytest.raises(KeyError, match="no such label") as caught:
            envs.step(np.array([1, -7]))
        assert isinstance(caught.value.__cause__, errors.EnvError)


def test_a_built_in_env_takes_any_label_or_fails_alone() -> None:
    with closing(
        corral.make_vec("CartPole-v1", 3, action_bounds="unchecked", on_failure="mask")
    ) as envs:
        envs.reset(seed=0)
        for label in (-1, 2, 2**40):
            observations = envs.step(np.array([0, label, 1]))[0]
            assert np.isfinite(observations).all()
