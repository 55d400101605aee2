"""What `test_pufferlib.py` runs where PufferLib 3 is installed: the same programs by it and by
`corral.compat.pufferlib`, compared step by step.

PufferLib overwrites its arrays, so each batch is compared before the next step.
"""

from __future__ import annotations

import copy
import os
import tempfile
from functools import partial
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

import corral
import corral.compat.pufferlib as ours

_here = os.getcwd()
with tempfile.TemporaryDirectory() as _folder:
    # Its import leaves a link in the working directory.
    os.chdir(_folder)
    import pufferlib as theirs
    import pufferlib.emulation
    import pufferlib.vector
    from pufferlib.ocean.cartpole.cartpole import Cartpole

    os.chdir(_here)

THREE = {"num_workers": 3, "overwork": True}
"""A worker for each of three envs: with fewer, PufferLib gives two envs one seed."""
BACKENDS = [
    ("Serial", {}),
    ("Multiprocessing", THREE),
    ("Multiprocessing", {**THREE, "batch_size": 1}),
    ("Multiprocessing", {**THREE, "batch_size": 2, "zero_copy": False}),
]

MIXED = spaces.Dict(
    {
        "image": spaces.Box(0, 255, (3, 5), np.uint8),
        "speed": spaces.Box(-9, 9, (2,), np.float32),
        "far": spaces.Box(-9, 9, (), np.float64),
        "label": spaces.Discrete(7),
        "labels": spaces.MultiDiscrete([3, 4]),
        "bits": spaces.MultiBinary(3),
        "pair": spaces.Tuple([spaces.Discrete(2), spaces.Box(0, 1, (2,), np.float16)]),
        "word": spaces.Text(6),
    }
)
OBSERVATIONS = {
    "a box": spaces.Box(-1, 1, (2, 3), np.float32),
    "mixed": MIXED,
    "floats": spaces.Dict(
        {"b": spaces.Box(-1, 1, (3,), np.float32), "a": spaces.Box(-1, 1, (2, 2), np.float32)}
    ),
    "doubles": spaces.Tuple([spaces.Box(-1, 1, (3,), np.float64)] * 2),
    "bools": spaces.Tuple([spaces.Box(0, 1, (3,), np.bool_), spaces.Box(0, 1, (), np.bool_)]),
    "two labels": spaces.Dict({"a": spaces.Discrete(3), "b": spaces.Discrete(2)}),
    "signed": spaces.Tuple([spaces.Box(-5, 5, (3,), np.int16), spaces.Box(0, 5, (), np.int16)]),
}
ACTIONS = {
    "one": spaces.Discrete(3),
    "several": spaces.MultiDiscrete([2, 5, 3]),
    "a box": spaces.Box(-1, 1, (3,), np.float32),
    "a dict": spaces.Dict({"turn": spaces.Discrete(4), "jump": spaces.Discrete(2)}),
    "nested": spaces.Tuple(
        [spaces.Discrete(2), spaces.Dict({"x": spaces.Discrete(3), "y": spaces.Discrete(5)})]
    ),
}


def plain(action: Any) -> Any:
    """Without dtypes: PufferLib's workers make labels int32, its Serial and ours do not."""
    if isinstance(action, dict):
        return {name: plain(one) for name, one in action.items()}
    if isinstance(action, tuple):
        return tuple(plain(one) for one in action)
    return np.asarray(action).tolist()


class Rolling(gymnasium.Env[Any, Any]):
    """Shows samples of a space, and tells of the actions that it gets."""

    def __init__(self, observations: str, actions: str) -> None:
        self.observation_space = copy.deepcopy(OBSERVATIONS[observations])
        self.action_space = ACTIONS[actions]

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        if seed is not None:
            self.observation_space.seed(seed)
        self.age = 0
        return self.observation_space.sample(), {"began": seed is not None}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.age += 1
        chance = self.np_random.random()
        info = {"action": plain(action), "nested": {"age": self.age}} if self.age % 2 else {}
        reward = float(self.np_random.normal())
        return self.observation_space.sample(), reward, chance < 0.1, 0.1 < chance < 0.2, info


def rolling(library: Any, observations: str, actions: str, buf: Any = None, seed: int = 0) -> Any:
    creator = partial(Rolling, observations, actions)
    return library.emulation.GymnasiumPufferEnv(env_creator=creator, buf=buf, seed=seed)


def cart_pole(library: Any, buf: Any = None, seed: int = 0) -> Any:
    env = library.EpisodeStats(gymnasium.make("CartPole-v1"))
    return library.emulation.GymnasiumPufferEnv(env=env, buf=buf, seed=seed)


def team(library: Any) -> Any:
    """A class of envs with three agents each."""

    class Team(library.PufferEnv):  # type: ignore[misc]
        def __init__(self, num_agents: int = 3, buf: Any = None, seed: int = 0) -> None:
            self.single_observation_space = spaces.Box(-99, 99, (2,), np.float32)
            self.single_action_space = spaces.MultiDiscrete([3, 4])
            self.num_agents = num_agents
            super().__init__(buf)
            self.random = np.random.default_rng(seed)

        def reset(self, seed: int | None = None) -> Any:
            if seed is not None:
                self.random = np.random.default_rng(seed)
            self.observations[:] = self.random.normal(size=self.observations.shape)
            self.rewards[:], self.terminals[:], self.truncations[:] = 0, False, False
            self.masks[:] = True
            return self.observations, [{"began": 1}]

        def step(self, actions: Any) -> Any:
            self.observations[:] = actions
            self.rewards[:] = self.random.normal(size=self.num_agents)
            self.terminals[:] = self.random.random(self.num_agents) < 0.2
            self.truncations[:] = self.random.random(self.num_agents) < 0.1
            self.masks[:] = self.random.random(self.num_agents) < 0.9
            infos = [{"sum": float(self.rewards.sum())}, {}] if self.terminals.any() else []
            return self.observations, self.rewards, self.terminals, self.truncations, infos

        def close(self) -> None:
            pass

    return Team


def assert_equal(one: Any, other: Any) -> None:
    """What `recv` gives, in values, dtypes, shapes and types."""
    assert len(one) == len(other)
    for mine, wanted in zip(one, other, strict=True):
        if isinstance(wanted, np.ndarray):
            assert (mine.dtype, mine.shape) == (wanted.dtype, wanted.shape)
            np.testing.assert_array_equal(mine, wanted)
        else:
            assert mine == wanted
            assert type(mine) is type(wanted)


def assert_alike(mine: Any, wanted: Any) -> None:
    """Two vec envs, played with the same actions."""
    for name in (
        *("num_agents", "agents_per_batch", "num_envs", "emulated", "single_observation_space"),
        *("single_action_space", "observation_space", "action_space"),
    ):
        if hasattr(wanted, name):
            assert getattr(mine, name) == getattr(wanted, name), name
    assert mine.driver_env.single_action_space == wanted.driver_env.single_action_space
    wanted.action_space.seed(3)
    episodes = 0
    # PufferLib's workers spin while they wait, and a busy machine steps them slowly.
    steps = 120 if isinstance(wanted, theirs.vector.Serial) else 12
    for seed in (7, 8):
        mine.async_reset(seed)
        wanted.async_reset(seed)
        for _ in range(steps):
            received = wanted.recv()
            assert_equal(mine.recv(), received)
            episodes += int(received[2].sum() + received[3].sum())
            actions = wanted.action_space.sample()
            if actions.dtype == np.int64:
                # PufferLib reads actions of emulated spaces as int32, whatever they are.
                actions = actions.astype(np.int32)
            wanted.send(actions)
            mine.send(actions)
    assert episodes > 1 or steps < 100
    mine.close()
    wanted.close()


def both(creator: Any, backend: str, how: dict[str, Any]) -> list[Any]:
    """Three envs by us and by PufferLib; `creator` takes the library first."""
    return [
        library.vector.make(
            partial(creator, library),
            backend=getattr(library.vector, backend),
            num_envs=3,
            **how,
        )
        for library in (ours, theirs)
    ]


@pytest.mark.parametrize(("backend", "how"), BACKENDS)
@pytest.mark.parametrize("is_native", [False, True])
def test_cart_pole(backend: str, how: dict[str, Any], is_native: bool) -> None:
    mine, wanted = both(cart_pole, backend, how)
    if is_native:
        mine.close()
        mine = ours.vector.make("CartPole-v1", backend=backend, num_envs=3, **how)
    assert_alike(mine, wanted)


@pytest.mark.parametrize("observations", OBSERVATIONS)
@pytest.mark.parametrize("actions", ACTIONS)
def test_spaces_of_any_form(observations: str, actions: str) -> None:
    def creator(library: Any, buf: Any = None, seed: int = 0) -> Any:
        return rolling(library, observations, actions, buf, seed)

    assert_alike(*both(creator, "Serial", {}))


def test_spaces_of_any_form_in_workers() -> None:
    def creator(library: Any, buf: Any = None, seed: int = 0) -> Any:
        return rolling(library, "mixed", "nested", buf, seed)

    assert_alike(*both(creator, "Multiprocessing", THREE))


@pytest.mark.parametrize(("backend", "how"), BACKENDS)
def test_agents_of_a_puffer_env(backend: str, how: dict[str, Any]) -> None:
    def creator(library: Any, buf: Any = None, seed: int = 0) -> Any:
        return team(library)(buf=buf, seed=seed)

    assert_alike(*both(creator, backend, how))


def test_a_puffer_env_is_its_own_backend() -> None:
    one, other = (
        library.vector.make(team(library), env_kwargs={"num_agents": 5, "seed": 2})
        for library in (ours, theirs)
    )
    assert_alike(one, other)


def test_one_env_of_the_emulation() -> None:
    for observations in OBSERVATIONS:
        for actions in ACTIONS:
            mine, wanted = (rolling(library, observations, actions) for library in (ours, theirs))
            assert mine.observation_space == wanted.observation_space
            assert mine.action_space == wanted.action_space
            assert mine.emulated == wanted.emulated
            assert (mine.obs_dtype, mine.atn_dtype) == (wanted.obs_dtype, wanted.atn_dtype)
            assert mine.reset(seed=5)[1] == wanted.reset(seed=5)[1]
            wanted.action_space.seed(1)
            for _ in range(40):
                np.testing.assert_array_equal(mine.observations, wanted.observations)
                assert mine.done == wanted.done
                if wanted.done:
                    mine.reset()
                    wanted.reset()
                    continue
                action = np.asarray(wanted.action_space.sample())
                if action.dtype == np.int64:
                    action = action.astype(np.int32)
                assert_equal(mine.step(action), wanted.step(action))


@pytest.mark.parametrize("id", ["MiniGrid-Empty-5x5-v0", "Catch-v0", "Pendulum-v1"])
def test_envs_of_an_id_are_what_the_emulation_makes_of_one(id: str) -> None:
    def creator(buf: Any = None, seed: int = 0) -> Any:
        env = theirs.EpisodeStats(gymnasium.make(f"corral/{id}"))
        return theirs.emulation.GymnasiumPufferEnv(env=env, buf=buf, seed=seed)

    wanted = theirs.vector.make(creator, backend=theirs.vector.Serial, num_envs=4)
    mine = ours.vector.make(id, backend="Serial", num_envs=4)
    assert mine.emulated == wanted.emulated
    assert mine.observation_space == wanted.observation_space
    assert mine.action_space == wanted.action_space
    wanted.action_space.seed(3)
    mine.async_reset(7)
    wanted.async_reset(7)
    for _ in range(120):
        one, other = mine.recv(), wanted.recv()
        assert_equal((*one[:4], *one[5:]), (*other[:4], *other[5:]))
        ended = [
            {name: info[name] for name in ("episode_return", "episode_length")}
            for info in other[4]
            if "episode_return" in info
        ]
        assert [info for info in one[4] if "episode_return" in info] == ended
        actions = wanted.action_space.sample()
        wanted.send(actions)
        mine.send(actions)


def test_envs_in_c_of_pufferlib_run_in_our_backends() -> None:
    """Their random numbers are the process's, so that one env follows the other."""
    mine = ours.vector.make(Cartpole, env_kwargs={"num_envs": 8}, backend="Serial", num_envs=2)
    observations, _ = mine.reset(1)
    assert observations.shape == (16, 4)
    assert mine.num_agents == 16
    ended = 0
    for _ in range(200):
        observations, rewards, terminals, _truncations, infos = mine.step(np.ones(16, np.int64))
        ended += int(terminals.sum())
        assert rewards.dtype == np.float32
        assert len(infos) <= 2
    assert ended > 16
    mine.close()


def test_native_envs_show_what_envs_in_c_show() -> None:
    """In form: dtypes, shapes, infos; the numbers are of another CartPole."""
    mine = ours.vector.make("CartPole-v1", env_kwargs={"num_envs": 64})
    wanted = theirs.vector.make(Cartpole, env_kwargs={"num_envs": 64})
    assert isinstance(mine, ours.PufferEnv)
    assert mine.driver_env is mine
    assert mine.emulated is wanted.emulated is False
    assert mine.done is wanted.done is False
    for envs in (mine, wanted):
        observations, infos = envs.reset(3)
        assert observations.shape == (64, 4)
        assert infos == []
    rng = np.random.default_rng(0)
    for _ in range(100):
        actions = rng.integers(0, 2, 64)
        one, other = mine.step(actions), wanted.step(actions)
        for x, y in zip(one[:4], other[:4], strict=True):
            assert (x.dtype, x.shape) == (y.dtype, y.shape)
        assert len(one[4]) <= 1
        for info in one[4]:
            assert info["n"] == (one[2] | one[3]).sum()
            assert {"n", "episode_length"} <= set(info)
            # A step that ends an episode shows the next one's first observation.
            assert (abs(one[0][one[2]]) <= 0.05).all()
    mine.send(actions)
    wanted.send(actions)
    one, other = mine.recv(), wanted.recv()
    assert len(one) == len(other) == 7
    np.testing.assert_array_equal(one[5], other[5])


WRONG: dict[str, Any] = {
    "no envs": lambda library, make: make(num_envs=0),
    "half an env": lambda library, make: make(num_envs=1.5),
    "an unknown backend": lambda library, make: make(backend="Parallel"),
    "emulation without a backend": lambda library, make: make(backend=library.PufferEnv),
    "workers that do not share evenly": lambda library, make: make(num_envs=3, num_workers=2),
    "a batch of half a worker": lambda library, make: make(
        num_envs=4, num_workers=2, batch_size=1, backend=library.vector.Multiprocessing
    ),
    "batches that do not share evenly": lambda library, make: make(
        num_envs=4, num_workers=4, batch_size=3, overwork=True, backend="Multiprocessing"
    ),
    "an unknown argument": lambda library, make: make(workers=1),
    "recv first": lambda library, make: make().recv(),
    "send first": lambda library, make: make().send(np.zeros(2, np.int64)),
    "an action out of bounds": lambda library, make: _after_reset(make(), np.full(2, 9)),
    "actions of another shape": lambda library, make: _after_reset(make(), np.zeros(3, int)),
    "no puffer env": lambda library, make: library.vector.make(
        lambda buf=None, seed=0: gymnasium.make("CartPole-v1"), backend=library.vector.Serial
    ),
    "a step before a reset": lambda library, make: cart_pole(library).step(0),
}


def _make(library: Any, settings: dict[str, Any], **more: Any) -> Any:
    return library.vector.make(partial(cart_pole, library), **{**settings, **more})


def _after_reset(envs: Any, actions: Any) -> None:
    envs.reset()
    envs.send(actions)


@pytest.mark.parametrize("what", WRONG)
def test_what_is_an_error_there_is_one_here(what: str) -> None:
    for library in (theirs, ours):
        settings = {"backend": library.vector.Serial, "num_envs": 2}
        make = partial(_make, library, settings)
        # Where PufferLib stumbles over what it does not check, it raises something else.
        allowed = (
            (theirs.APIUsageError, AttributeError) if library is theirs else ours.APIUsageError
        )
        with pytest.raises(allowed):
            WRONG[what](library, make)


def test_wrappers() -> None:
    class Image(gymnasium.Env[Any, Any]):
        observation_space = spaces.Box(0, 255, (4, 6), np.uint8)
        action_space = spaces.Box(-1, 1, (2,), np.float32)

        def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
            return np.arange(24, dtype=np.uint8).reshape(4, 6), {}

        def step(self, action: Any) -> Any:
            return self.reset()[0], 1.0, False, False, {"action": action}

    for library in (ours, theirs):
        small = library.ResizeObservation(Image())
        assert small.observation_space == spaces.Box(0, 255, (2, 3), np.uint8)
        np.testing.assert_array_equal(small.reset()[0], [[0, 2, 4], [12, 14, 16]])
        clipped = library.ClipAction(Image())
        assert clipped.action_space == theirs.ClipAction(Image()).action_space
        played = clipped.step(np.array([5, -0.5], np.float32))[4]["action"]
        np.testing.assert_array_equal(played, np.array([1, -0.5], np.float32))


def test_corral_is_the_one_of_this_repository() -> None:
    assert corral.__version__
