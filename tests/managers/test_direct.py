"""Steps that the native half plays without the object that hosts an env, and those that it hands to
that object: each gives what the env gave. `corral._native`'s functions for this, by themselves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import pytest
from gymnasium import spaces

from corral import _native
from corral.managers import BaseEnvTimestep, parcel
from corral.managers.fleet import Fleet
from corral.managers.hosted_env import HostedEnv
from corral.managers.members import HostedMembers
from tests.managers.envs import Timestep
from tests.managers.managers import each, every_manager, launched, managed
from tests.support import assert_same

ONE = np.ones(1, np.float32)
# What is changed in a timestep that is written as it is. Twice in a row, and each after the first.
FORMS: dict[str, Callable[[Any], Any]] = {
    "as most": lambda plain: plain,
    "a reward of 64 bits": lambda plain: plain._replace(reward=np.full(1, 0.1)),
    "a number": lambda plain: plain._replace(reward=0.25),
    "two rewards": lambda plain: plain._replace(reward=np.ones(2, np.float32)),
    "an info": lambda plain: plain._replace(info={"at": 3}),
    "NumPy's bool": lambda plain: plain._replace(done=np.bool_(False)),
    "a list": list,
    "a plain tuple": tuple,
    "64 bits": lambda plain: plain._replace(obs=plain.obs.astype(np.float64)),
    "every second": lambda plain: plain._replace(obs=np.repeat(plain.obs, 2)[::2]),
    "numbers in a list": lambda plain: plain._replace(obs=plain.obs.tolist()),
}


class Changing:
    """Steps through `FORMS`; then its timestep is abnormal, then its step raises an exception."""

    observation_space = spaces.Box(-99, 99, (3,), np.float32)
    action_space = spaces.Box(-9, 9, (2,), np.float64)
    reward_space = spaces.Box(-9, 9, (1,), np.float32)

    def __init__(self, number: int) -> None:
        self.number, self.at, self.seeds = number, 0, 0

    def seed(self, seed: int, dynamic_seed: bool = True) -> None:
        self.seeds += 1

    def reset(self) -> Any:
        self.at = 0
        return np.array([self.number, 0, self.seeds], np.float32)

    def step(self, action: Any) -> Any:
        assert type(action) is np.ndarray
        assert action.dtype == np.float64
        assert action.shape == (2,)
        shown = np.array([self.number, self.at + 1, action.sum()], np.float32)
        plain = Timestep(shown, (self.at + 1) * ONE, False, {})
        form = list(FORMS.values())[self.at // 2 : self.at // 2 + 1]
        self.at += 1
        if form:
            return form[0](plain)
        if self.at == 2 * len(FORMS) + 1:
            return plain._replace(info={"abnormal": True}, obs=None, reward=None)
        raise KeyError(f"step {self.at}")


def steps(of: int) -> list[dict[int, Any]]:
    return [{k: np.array([k, step / 2]) for k in range(2)} for step in range(of)]


@every_manager
def test_every_form_of_a_timestep_is_what_the_env_gave(kind: str) -> None:
    by_hand = [Changing(k) for k in range(2)]
    for env in by_hand:
        env.reset()
    with launched(kind, each(Changing, 2)) as manager:
        for actions in steps(2 * len(FORMS)):
            timesteps = manager.step(actions)
            for k, env in enumerate(by_hand):
                obs, reward, done, info = env.step(actions[k])
                assert_same(timesteps[k].obs, np.array(obs, np.float32))
                assert_same(timesteps[k].reward, reward)
                assert type(timesteps[k].done) is bool
                assert timesteps[k][2:] == (done, info)
                assert_same(manager.ready_obs[k], timesteps[k].obs)
        # A timestep that cannot be shown comes after those that the native half has shown.
        abnormal = BaseEnvTimestep(None, None, False, {"abnormal": True})
        assert manager.step({0: np.zeros(2)})[0] == abnormal
        assert sorted(manager.ready_obs) == [1]


@pytest.mark.parametrize("kind", ["base", "packed"])
@pytest.mark.parametrize("retry_type", ["reset", "renew"])
def test_an_env_that_raises_goes_on_or_is_made_again(kind: str, retry_type: str) -> None:
    class Raising(Changing):
        def step(self, action: Any) -> Any:
            if self.at == 1:
                raise KeyError("told to")
            return super().step(action)

    with launched(kind, each(Raising, 2), retry_type=retry_type) as manager:
        manager.seed(5)
        manager.reset()
        action = np.zeros(2)
        manager.step({0: action, 1: action})
        with pytest.raises(KeyError, match="told to"):
            manager.step({0: action})
        manager.seed(6)
        manager.reset({0: None})
        # The same instance was seeded twice, a new one once.
        seeds = {"reset": 2, "renew": 1}[retry_type]
        assert_same(manager.ready_obs[0], np.array([0, 0, seeds], np.float32))


def test_steps_as_most_are_do_not_pass_through_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    called = []
    finish = HostedEnv.finish
    monkeypatch.setattr(HostedEnv, "finish", lambda *args: called.append(1) or finish(*args))
    with launched("base", each(Changing, 2)) as manager:
        for count, actions in zip((0, 0, 0, 0, 2), steps(5), strict=True):
            manager.step(actions)
            assert len(called) == count


class Keeps:
    """Keeps what it is given, and gives its own reward."""

    kept: list[Any]
    observation_space = spaces.Box(-99, 99, (3,), np.float32)
    action_space = spaces.Discrete(2)
    rewards = (np.full(1, 0.25, np.float32), np.full(1, 0.5), 0.75)

    def __init__(self, number: int) -> None:
        self.number = number

    def reset(self) -> Any:
        return np.full(3, self.number, np.float32)

    def step(self, action: Any) -> Any:
        self.kept.append(action)
        shown = np.full(3, 10 + self.number, np.float32)
        return Timestep(shown, self.rewards[self.number], self.number == 1, {})


@pytest.fixture
def pickled(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many actions each step pickled, where it pickled any. Envs start with nothing kept."""
    counts: list[int] = []
    pack = parcel.packed_actions

    def counted(actions: Any, size: int) -> Any:
        counts.append(len(actions))
        return pack(actions, size)

    monkeypatch.setattr(parcel, "packed_actions", counted)
    monkeypatch.setattr(Keeps, "kept", [], raising=False)
    return counts


@pytest.mark.parametrize("dtype", ["?", "u1", "i2", "i8", "f2", "f4", "f8"])
@pytest.mark.parametrize("shape", [(), (1,), (0,), (2, 3), (2, 1, 3)])
def test_arrays_go_through_leaves_as_they_are(
    dtype: str, shape: tuple[int, ...], pickled: list[int]
) -> None:
    actions = [np.ones(shape, dtype), np.zeros(shape, dtype)]
    with launched("base", each(Keeps, 2)) as manager:
        manager.step(dict(enumerate(actions)))
    assert pickled == []
    for action, read in zip(actions, Keeps.kept, strict=True):
        assert_same(read, action)
        assert read.flags.writeable
        assert read.flags.owndata


@pytest.mark.parametrize(
    "actions",
    [
        [np.ones(2), np.ones(3)],
        [np.ones(2), np.ones(2, np.float32)],
        [np.ones((1, 1, 1, 1))],
        [np.ones(2, ">f8")],
        [np.ones((4, 2))[:, 0]],
        [np.ma.masked_array([1.0], [True])],
        [np.array(["a"])],
        [1, 2.5, None],
    ],
    ids=["shapes", "dtypes", "axes", "byte order", "strides", "masked", "texts", "no arrays"],
)
def test_what_is_no_array_of_one_kind_is_pickled(actions: list[Any], pickled: list[int]) -> None:
    with launched("base", each(Keeps, 3)) as manager:
        manager.step(dict(enumerate(actions)))
    assert pickled == [len(actions)]
    for action, read in zip(actions, Keeps.kept, strict=True):
        assert type(read) is type(action)
        assert np.asarray(read).dtype == np.asarray(action).dtype
        np.testing.assert_array_equal(read, action)


def test_an_array_that_is_larger_than_its_leaf_goes_by_message(pickled: list[int]) -> None:
    with launched("base", each(Keeps, 2)) as manager:
        manager.step({0: np.full(22, 3.0)})
        assert pickled == []
        manager.step({0: np.full(24, 4.0)})
        assert pickled == [1]
    assert_same(Keeps.kept[0], np.full(22, 3.0))
    assert_same(Keeps.kept[1], np.full(24, 4.0))


@pytest.mark.parametrize(
    "start",
    [
        [],
        [2, 8, 1, 0, 1],
        [1, 99, 0, 0],
        [1, 10, 4, 0],
        [1, 10, 1, 0, 13],
        [1, 0, 1, 0, 1, *[0] * 11, 7],
    ],
    ids=["none", "no array", "no dtype", "axes", "too long", "no bool"],
)
def test_a_leaf_of_other_bytes_holds_no_array(start: list[int]) -> None:
    leaf = np.zeros(64, np.uint8)
    leaf[: len(start)] = start
    assert _native.unpack_array(leaf) is None
    assert _native.unpack_array(np.array(start, np.uint8)) is None


@every_manager
@pytest.mark.parametrize("copies", [False, True])
def test_timesteps_are_made_of_the_rows(
    kind: str, copies: bool, pickled: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    def none(*_: Any) -> Any:
        raise AssertionError("rows that are as most are were opened in Python")

    monkeypatch.setattr(HostedMembers, "timesteps", none)
    with launched(kind, each(Keeps, 3), copy_on_get=copies) as manager:
        made = manager.step(dict.fromkeys(range(3), np.zeros(1)))
        assert pickled == []
        assert {type(one) for one in made.values()} == {BaseEnvTimestep}
        for k in range(3):
            obs, reward, done, info = made[k]
            assert_same(obs, np.full(3, 10 + k, np.float32))
            # The base manager has no copy_on_get.
            assert obs.flags.owndata is (copies and kind != "base")
            assert_same(reward, Keeps.rewards[k])
            assert (done, info) == (k == 1, {})
        # The env whose episode was over has begun another.
        assert [int(obs[0]) for obs in manager.ready_obs.values()] == [10, 1, 12]


@pytest.mark.parametrize("kind", ["base", "packed"])
def test_an_observation_of_one_number_is_an_array(kind: str) -> None:
    class Counts(Keeps):
        kept: ClassVar[list[Any]] = []
        observation_space = spaces.Box(-99, 99, (), np.float64)

        def reset(self) -> Any:
            return np.array(0.5)

        def step(self, action: Any) -> Any:
            return super().step(action)._replace(obs=np.array(1.5))

    with launched(kind, each(Counts, 2)) as manager:
        assert_same(manager.ready_obs[0], np.array(0.5))
        assert_same(manager.step({0: np.zeros(1)})[0].obs, np.array(1.5))


def test_the_last_padding_of_a_leaf_is_not_looked_at() -> None:
    leaf = np.full(200, 255, np.uint8)
    leaf[:16] = [1, 11, 1, 0, 3, *[0] * 11]
    leaf[16:40] = np.arange(3.0).view(np.uint8)
    assert_same(_native.unpack_array(leaf), np.arange(3.0))


class Shows(Keeps):
    """Shows `[number, its last seed, episode]`; every step ends an episode."""

    kept: ClassVar[list[Any]] = []

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.seeded, self.episode = -1, -1

    def seed(self, seed: int, dynamic_seed: bool = True) -> None:
        self.seeded = seed

    def reset(self) -> Any:
        self.episode += 1
        return np.array([self.number, self.seeded, self.episode], np.float32)

    def step(self, action: Any) -> Any:
        return super().step(action)._replace(done=True)


@pytest.mark.parametrize("kind", ["base", "sync", "packed"])
def test_resets_without_a_seed_and_new_arguments_are_sent_by_the_step_itself(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[list[int]] = []
    send = Fleet._send_resets

    def noted(self: Fleet, env_ids: list[int]) -> None:
        sent.append(env_ids)
        send(self, env_ids)

    def shown(manager: Any) -> list[list[float]]:
        return [obs.tolist() for _, obs in sorted(manager.ready_obs.items())]

    monkeypatch.setattr(Fleet, "_send_resets", noted)
    actions = dict.fromkeys(range(2), np.zeros(1))
    with launched(kind, each(Shows, 2)) as manager:
        assert sent == [[0, 1]]
        manager.step(actions)
        assert shown(manager) == [[0, -1, 1], [1, -1, 1]]
        assert sent == [[0, 1]]
        # A seed is told, by the manager; it counts once.
        manager.seed({1: 7})
        manager.step(actions)
        assert shown(manager) == [[0, -1, 2], [1, 7, 2]]
        assert sent == [[0, 1], [0, 1]]
        manager.step(actions)
        assert shown(manager) == [[0, -1, 3], [1, 7, 3]]
        assert sent == [[0, 1], [0, 1]]


@pytest.mark.parametrize("kind", ["base", "sync", "packed"])
def test_a_last_episode_of_rows_without_infos_is_the_last(kind: str) -> None:
    with launched(kind, each(Shows, 2), episode_num=2) as manager:
        manager.step(dict.fromkeys(manager.ready_obs, np.zeros(1)))
        assert [obs[2] for obs in manager.ready_obs.values()] == [1, 1]
        timesteps = manager.step({0: np.zeros(1)})
        assert timesteps[0].done
        assert sorted(manager.ready_obs) == [1]
        assert not manager.done
        manager.step({1: np.zeros(1)})
        assert manager.done
        assert manager.ready_obs == {}


@pytest.mark.parametrize("kind", ["base", "sync", "packed"])
def test_a_seed_that_is_repeated_reaches_each_reset(kind: str) -> None:
    with managed(kind, each(Shows, 2)) as manager:
        manager.seed(5, dynamic_seed=False)
        manager.launch()
        for episode in range(3):
            assert [obs[1:].tolist() for obs in manager.ready_obs.values()] == [
                [5, episode],
                [6, episode],
            ]
            manager.step(dict.fromkeys(manager.ready_obs, np.zeros(1)))
