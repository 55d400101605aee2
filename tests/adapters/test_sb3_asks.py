"""What `corral.to_sb3` is asked as SB3's own vec envs are: by index, by name, with lists."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

import corral
from corral import errors
from tests.support import FAULTY, forces

N = 3


class Told(gymnasium.Env[Any, Any]):
    """Tells the action that it was given."""

    observation_space = spaces.Discrete(2)
    mark = 0

    def __init__(self, space: Any) -> None:
        self.action_space = space

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        return 0, {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        assert self.action_space.contains(action)
        return 0, 0.0, False, False, {"took": [action]}


def over(space: Any, runner: str = "serial") -> Any:
    return corral.to_sb3(
        corral.from_gymnasium(lambda: Told(space), N, autoreset_mode="same_step", runner=runner)
    )


def native(id: str = "CartPole-v1", **config: Any) -> Any:
    return corral.to_sb3(corral.make_vec(id, N, autoreset_mode="same_step", **config))


SPACES = {
    "discrete": spaces.Discrete(3),
    "box": spaces.Box(-1, 1, (2,), np.float32),
    "multi-discrete": spaces.MultiDiscrete([3, 2]),
    "dict": spaces.Dict({"x": spaces.Box(-1, 1, (2,), np.float32), "n": spaces.Discrete(3)}),
    "tuple": spaces.Tuple((spaces.Discrete(3), spaces.Box(-1, 1, (2,), np.float32))),
}


@pytest.mark.parametrize("name", SPACES)
@pytest.mark.parametrize("kind", [list, tuple])
def test_a_list_of_one_action_per_env_is_taken(sb3: Any, name: str, kind: Any) -> None:
    space = SPACES[name]
    mine, theirs = over(space), sb3.DummyVecEnv([lambda: Told(space)] * N)
    actions = kind(space.sample() for _ in range(N))
    for envs in (mine, theirs):
        envs.reset()
    got, right = (envs.step(actions)[3] for envs in (mine, theirs))
    for one, other in zip(got, right, strict=True):
        assert str(one["took"]) == str(other["took"])


def test_a_list_of_something_else_is_an_error_that_shows_it(sb3: Any) -> None:
    envs = over(SPACES["dict"])
    envs.reset()
    for actions in ([{"x": np.zeros(2, np.float32)}] * N, [3] * N):
        with pytest.raises(errors.InvalidActionError, match=r"one action of Dict.* per env"):
            envs.step(actions)
    with pytest.raises(errors.InvalidActionError):
        envs.step([SPACES["dict"].sample()] * (N + 1))


def test_floats_of_another_width_are_taken_as_dummy_vec_env_takes_them(sb3: Any) -> None:
    envs = over(SPACES["box"])
    envs.reset()
    took = envs.step(np.full((N, 2), 0.5))[3][0]["took"]
    assert took[0].dtype == np.float32


@pytest.mark.parametrize("runner", ["serial", "thread"])
def test_negative_indices_count_from_the_last(sb3: Any, runner: str) -> None:
    space = SPACES["discrete"]
    mine, theirs = over(space, runner), sb3.DummyVecEnv([lambda: Told(space)] * N)
    for envs in (mine, theirs):
        envs.set_attr("mark", 5, indices=-1)
        envs.set_attr("mark", 6, indices=[-3, 1])
    for indices in (None, -1, [-1, 0, -2], range(-2, 0), np.array([2, -2])):
        assert mine.get_attr("mark", indices) == theirs.get_attr("mark", indices)
    assert mine.env_is_wrapped(gymnasium.Wrapper, indices=-1) == [False]
    for index in (N, -N - 1, [0, 10**20]):
        with pytest.raises(errors.ArgumentError, match="there is no env"):
            mine.get_attr("mark", index)


def test_native_envs_answer_what_they_know(sb3: Any) -> None:
    envs = native()
    inner = envs.envs
    assert envs.get_attr("render_mode") == [None] * N
    assert envs.get_attr("spec", [-1]) == [inner.spec]
    assert inner.spec is not None
    assert envs.get_attr("action_space") == [inner.single_action_space] * N
    assert envs.get_attr("observation_space", 0) == [inner.single_observation_space]
    assert envs.get_attr("metadata") == [inner.metadata] * N
    assert envs.get_attr("max_episode_steps") == [500] * N
    assert envs.has_attr("action_masks")
    assert not envs.has_attr("gravity")
    for ask in (envs.get_attr, envs.env_method):
        with pytest.raises(AttributeError, match="gravity"):
            ask("gravity")
    drawn = native(render_mode="rgb_array")
    drawn.reset()
    assert [frame.ndim for frame in drawn.env_method("render", indices=[-1, 0])] == [3, 3]


def test_native_envs_that_tell_no_mask_take_every_action(sb3: Any) -> None:
    envs = native()
    assert [mask.tolist() for mask in envs.env_method("action_masks")] == [[True, True]] * N
    assert len(envs.env_method("action_masks", indices=[-1])) == 1
    # A dict of a Box and a Discrete has no mask either.
    with pytest.raises(AttributeError, match="action_masks"):
        native(FAULTY).env_method("action_masks")


def test_a_dict_of_batches_is_taken_as_ever(sb3: Any) -> None:
    envs = native(FAULTY)
    envs.reset()
    _, rewards, dones, _ = envs.step(forces(N))
    assert rewards.shape == dones.shape == (N,)
