"""Are envs that are served by plain netenv the same, byte for byte, as envs in this process?

netenv carries float32 rewards and one word for an episode's end; these are compared as such. It
carries no seeds: the server makes envs of one seed.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import corral

MODES = ("same_step", "next_step", "disabled")
IDS = ("CartPole-v1", "Maze-v0", "testing/Nested-v0")


def played(envs: Any, actions: list[Any]) -> list[Any]:
    """What one sees: leaf by leaf, with the rewards and the ends."""
    seen = [[leaf.tobytes() for leaf in _leaves(envs.reset()[0])]]
    for action in actions:
        observations, rewards, terminated, truncated, _ = envs.step(action)
        told = [rewards.astype(np.float32).tobytes(), (terminated | truncated).tobytes()]
        seen.append([leaf.tobytes() for leaf in _leaves(observations)] + told)
    return seen


def _leaves(observations: Any) -> list[Any]:
    return list(observations.values()) if isinstance(observations, dict) else [observations]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("way", ["tcp", "unix", "shared"])
def test_envs_of_any_autoreset_mode_show_the_same_when_they_are_served(
    mode: str, way: str, tmp_path: Any
) -> None:
    make: Any = lambda num_envs: corral.make_vec(  # noqa: E731
        "CartPole-v1", num_envs, seed=3, autoreset_mode=mode
    )
    addr = "127.0.0.1:0" if way == "tcp" else f"unix:{tmp_path / 'socket'}"
    here = corral.make_vec("CartPole-v1", 5, seed=3, autoreset_mode="same_step")
    here.action_space.seed(0)
    actions = [here.action_space.sample() for _ in range(120)]
    with corral.serve(make, addr) as server:
        there = corral.connect(server.address, 5, plain=True, use_shared_memory=way == "shared")
        assert there.single_observation_space == here.single_observation_space
        assert there.single_action_space == here.single_action_space
        expected = played(here, actions)
        assert any(any(np.frombuffer(row[-1], np.bool_)) for row in expected[1:])
        assert played(there, actions) == expected
        assert there.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
        there.close()


@pytest.mark.parametrize("num_envs", [2, 8])
def test_an_image_env_shows_the_same_when_it_is_served(num_envs: int, tmp_path: Any) -> None:
    """Eight envs show more than 64 KiB, which go to shared memory without a copy between."""
    make: Any = lambda num_envs: corral.make_vec("Maze-v0", num_envs, seed=3)  # noqa: E731
    here = corral.make_vec("Maze-v0", num_envs, seed=3, autoreset_mode="same_step")
    here.action_space.seed(0)
    actions = [here.action_space.sample() for _ in range(50)]
    expected = played(here, actions)
    for addr in ("127.0.0.1:0", f"unix:{tmp_path / 'socket'}"):
        with corral.serve(make, addr) as server:
            for shared in {False, addr.startswith("unix")}:
                there = corral.connect(
                    server.address, num_envs, plain=True, use_shared_memory=shared
                )
                assert played(there, actions) == expected
                there.close()


class _Seeded(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Seeds the first reset: netenv carries no seeds."""

    def __init__(self, env: Any, seed: int) -> None:
        super().__init__(env)
        self._seed: int | None = seed

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        seed, self._seed = (self._seed, None) if seed is None else (seed, None)
        return super().reset(seed=seed, options=options)


@pytest.mark.parametrize("mode", [AutoresetMode.SAME_STEP, AutoresetMode.DISABLED])
def test_gymnasiums_vector_envs_are_served(mode: Any) -> None:
    def make(num_envs: int) -> Any:
        each = [lambda k=k: _Seeded(gymnasium.make("CartPole-v1"), 3 + k) for k in range(num_envs)]
        return SyncVectorEnv(each, autoreset_mode=mode)

    here = corral.make_vec("CartPole-v1", 3, seed=3, autoreset_mode="same_step")
    here.action_space.seed(0)
    actions = [here.action_space.sample() for _ in range(80)]
    expected = played(here, actions)
    with corral.serve(make, "127.0.0.1:0") as server:
        for plain in (True, False):
            there = corral.connect(server.address, 3, plain=plain)
            assert played(there, actions) == expected
            assert there.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
            there.close()


def test_a_next_step_vector_env_of_gymnasiums_begins_episodes_in_a_step_of_their_own() -> None:
    """It cannot step some envs alone. The row after an end shows the reset, with reward 0."""

    def make(num_envs: int) -> Any:
        each = [lambda k=k: _Seeded(gymnasium.make("CartPole-v1"), 3 + k) for k in range(num_envs)]
        return SyncVectorEnv(each, autoreset_mode=AutoresetMode.NEXT_STEP)

    here = corral.make_vec("CartPole-v1", 3, seed=3, autoreset_mode="next_step")
    here.action_space.seed(0)
    actions = [here.action_space.sample() for _ in range(80)]
    expected = played(here, actions)
    with corral.serve(make, "127.0.0.1:0") as server:
        for plain in (True, False):
            there = corral.connect(server.address, 3, plain=plain)
            assert there.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP
            assert there.autoreset_mode is AutoresetMode.NEXT_STEP
            assert played(there, actions) == expected
            there.close()


def test_a_discrete_that_does_not_begin_at_0_is_shifted_on_its_way() -> None:
    from gymnasium import spaces

    given: list[Any] = []

    class Venv:
        observation_space = spaces.Discrete(3, start=-5)
        action_space = spaces.Discrete(4, start=10)
        num_envs = 2

        def reset(self) -> Any:
            return np.array([-5, -3])

        def step(self, actions: Any) -> Any:
            given.append(actions.tolist())
            return np.array([-4, -5]), np.zeros(2), np.zeros(2, bool), None

    with corral.serve(lambda num_envs: Venv(), "127.0.0.1:0") as server:
        envs = corral.connect(server.address, 2, plain=True)
        assert envs.single_action_space == spaces.Discrete(4)
        assert envs.reset()[0].tolist() == [0, 2]
        assert envs.step(np.array([0, 3]))[0].tolist() == [1, 0]
        assert given == [[10, 13]]
        envs.close()


def test_bools_travel_as_multi_binary() -> None:
    from gymnasium import spaces

    class Venv:
        observation_space = spaces.Box(0, 1, (3,), np.bool_)
        action_space = spaces.MultiBinary(2)
        num_envs = 2

        def reset(self) -> Any:
            return np.array([[True, False, True], [False, False, True]])

        def step(self, actions: Any) -> Any:
            shown = np.zeros((2, 3), np.bool_)
            shown[:, :2] = actions
            return shown, np.zeros(2), np.zeros(2, bool), None

    with corral.serve(lambda num_envs: Venv(), "127.0.0.1:0") as server:
        envs = corral.connect(server.address, 2, plain=True)
        assert envs.single_observation_space == spaces.MultiBinary(3)
        assert envs.reset()[0].tolist() == [[1, 0, 1], [0, 0, 1]]
        assert envs.step(np.array([[1, 0], [1, 1]], np.int8))[0].tolist() == [[1, 0, 0], [1, 1, 0]]
        envs.close()
