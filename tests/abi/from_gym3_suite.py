"""`corral.from_gym3`: gym3's envs as a `corral.VectorEnv`, beside the same envs played without
Corral; and Corral's own envs, made gym3's by `corral.to_gym3` and taken back. `test_gym3.py` runs
this file where gym3 is installed."""

from __future__ import annotations

import copy
from typing import Any

import gym3
import gymnasium
import numpy as np
import pytest
from gym3 import types_np
from gym3.testing import AssertSpacesWrapper, FixedSequenceEnv, IdentityEnv, TimingEnv
from gym3.types import DictType, Discrete, Real, TensorType
from gymnasium import spaces

import corral
from corral import errors
from corral.adapters.gym3 import Batch
from corral.adapters.gym3_types import space_of
from tests.abi.gym3_cases import N, as_gym3, every_case, make
from tests.support import assert_same, sampled


def test_types_become_spaces() -> None:
    table: list[tuple[Any, Any]] = [
        (TensorType(Real(), (2, 3)), spaces.Box(-np.inf, np.inf, (2, 3), np.float32)),
        (TensorType(Real("float64"), ()), spaces.Box(-np.inf, np.inf, (), np.float64)),
        (TensorType(Discrete(3), ()), spaces.Discrete(3)),
        (TensorType(Discrete(3, "uint8"), ()), spaces.Discrete(3, dtype=np.uint8)),
        (TensorType(Discrete(256, "uint8"), (2,)), spaces.Box(0, 255, (2,), np.uint8)),
        (TensorType(Discrete(257, "uint8"), (2,)), spaces.Box(0, 255, (2,), np.uint8)),
        (TensorType(Discrete(3, "int32"), (2,)), spaces.MultiDiscrete([3, 3], dtype=np.int32)),
        (TensorType(Discrete(2**63), (1,)), spaces.Box(0, 2**63 - 1, (1,), np.int64)),
        (
            DictType(b=DictType(c=TensorType(Real(), ())), a=TensorType(Discrete(2), ())),
            spaces.Dict(
                [
                    ("b", spaces.Dict({"c": spaces.Box(-np.inf, np.inf, (), np.float32)})),
                    ("a", spaces.Discrete(2)),
                ]
            ),
        ),
    ]
    for type_, space in table:
        assert space_of(type_, "ob_space") == space, type_
        assert space_of(type_, "ob_space").dtype == space.dtype
    with pytest.raises(errors.SpaceError, match=r"ob_space\['a'\] is 3"):
        space_of(DictType(a=3), "ob_space")


@every_case
def test_there_and_back_again_every_byte_is_the_same(case: str) -> None:
    theirs = make(case, episode_statistics=True)
    mine = corral.from_gym3(corral.to_gym3(make(case, episode_statistics=True)))
    assert mine.num_envs == N
    assert mine.metadata["autoreset_mode"] == theirs.metadata["autoreset_mode"]
    observations, _ = theirs.reset()
    assert_same(mine.reset()[0], as_gym3(case, observations, "observation"))
    ends = np.zeros(2, int)
    for actions, _ in zip(sampled(theirs, 1), range(80)):
        got = mine.step(as_gym3(case, actions, "action"))
        right = theirs.step(actions)
        assert_same(got[0], as_gym3(case, right[0], "observation"))
        assert_same(got[1], right[1].astype(np.float32).astype(np.float64))
        assert_same(got[2], right[2])
        assert_same(got[3], right[3])
        ends += (int(right[2].sum()), int(right[3].sum()))
        assert ("final_obs" in got[4]) == ("final_obs" in right[4])
        if "final_obs" in right[4]:
            assert_same(got[4]["_final_obs"], right[4]["_final_obs"])
            assert_same(got[4]["episode"]["r"], right[4]["episode"]["r"])
            if case != "Faulty":
                assert_same(got[4]["final_obs"], right[4]["final_obs"])
        for key in ("left", "distance"):
            if key in right[4]:
                assert_same(got[4][key], right[4][key].astype(np.int64))
        assert not {"terminated", "truncated"} & got[4].keys()
    assert ends.sum() > 8
    assert case != "CartPole of 15 steps" or ends.all()


def gym3s_own() -> list[Any]:
    image = TensorType(Discrete(256, "uint8"), (3, 2))
    both = DictType(b=TensorType(Discrete(5, "int32"), (2,)), a=DictType(c=TensorType(Real(), ())))
    return [
        FixedSequenceEnv(num=3, episode_len=7),
        TimingEnv(num=2, episode_len=5),
        TimingEnv(ob_space=both, ac_space=both, num=2, episode_len=5),
        IdentityEnv(episode_len=4),
        IdentityEnv(space=image, episode_len=3),
        AssertSpacesWrapper(FixedSequenceEnv(num=2, n_actions=3)),
        gym3.ConcatEnv([IdentityEnv(seed=1, episode_len=3), IdentityEnv(seed=2, episode_len=5)]),
    ]


@pytest.mark.parametrize("k", range(len(gym3s_own())))
def test_gym3s_own_envs_play_as_they_do_by_themselves(k: int) -> None:
    theirs, envs = gym3s_own()[k], corral.from_gym3(gym3s_own()[k])
    assert isinstance(envs, gymnasium.vector.VectorEnv)
    assert_same(envs.reset()[0], copy.deepcopy(theirs.observe()[1]))
    rng = np.random.RandomState(0)
    kept = []
    for _ in range(30):
        actions = types_np.sample(theirs.ac_space, (theirs.num,), rng)
        theirs.act(actions)
        reward, ob, first = copy.deepcopy(theirs.observe())
        got = envs.step(actions)
        assert got[0] in envs.observation_space
        assert_same(got[0], ob)
        assert_same(got[1], np.asarray(reward, np.float64))
        assert_same(got[2], first)
        assert not got[3].any()
        kept.append((got[0], ob))
    for seen, right in kept:
        assert_same(seen, right, "an array that was kept has changed")
    envs.close()


def test_the_right_sequence_is_rewarded_and_statistics_add_it_up() -> None:
    env = FixedSequenceEnv(num=2, episode_len=6)
    sequence = env.sequence
    envs = corral.from_gym3(env, episode_statistics=True)
    envs.reset()
    told = []
    for step in range(12):
        # The reward is for the action that the sequence has at the next place.
        right = sequence[(step + 1) % 6]
        infos = envs.step(np.array([right, right + 1]) % 10)[4]
        if "episode" in infos:
            told.append((infos["episode"]["r"].tolist(), infos["episode"]["l"].tolist()))
    assert told == [([6.0, 0.0], [6, 6])] * 2


class Choosy(FixedSequenceEnv):
    """Fails as it is told to."""

    def act(self, ac: Any) -> None:
        super().act(ac)
        if ac[0] == 9:
            raise ZeroDivisionError("nine is not to be taken")
        if ac[0] == 8:
            raise KeyboardInterrupt

    def observe(self) -> Any:
        reward, ob, first = super().observe()
        wrong = {7: ob[:1], 6: ob + 0.5, 5: np.array(["a", "b"])}
        return reward[: 1 if self.actions[0] == 4 else None], wrong.get(self.actions[0], ob), first

    def get_info(self) -> Any:
        return [{}] if self.actions[0] == 3 else [{"a": 1}, "b" if self.actions[0] == 2 else {}]


@pytest.mark.parametrize(
    ("action", "kind", "why"),
    [
        (9, ZeroDivisionError, "nine is not to be taken"),
        (8, KeyboardInterrupt, None),
        (7, errors.EnvError, r"shape \(1,\) where \(2,\) belongs"),
        (6, errors.EnvError, "dtype float64 where int64 belongs"),
        (5, errors.EnvError, "dtype <U1 where int64 belongs"),
        (4, errors.EnvError, r"rewards have shape \(1,\)"),
        (3, errors.ConformanceError, "list of one dict for each of 2 envs"),
        (2, Exception, "argument|dict"),
    ],
)
def test_what_a_gym3_env_raises_is_raised_here(action: int, kind: Any, why: str | None) -> None:
    envs = corral.from_gym3(Choosy(num=2))
    envs.reset()
    _, _, _, _, infos = envs.step(np.array([0, 1]))
    assert infos["a"].tolist() == [1, 0]
    with pytest.raises(kind, match=why) as raised:
        envs.step(np.array([action, 1]))
    error: Any = raised.value
    failed = error if isinstance(error, errors.EnvError) else error.__cause__
    assert isinstance(failed, errors.EnvError)
    assert [failure.slot for failure in failed.failures] == [0, 1]
    with pytest.raises(errors.ResetNeededError, match="cannot reset it"):
        envs.step(np.array([0, 1]))
    envs.close()
    # Others are none the worse for it.
    others = corral.from_gym3(Choosy(num=2))
    others.reset()
    others.step(np.array([0, 1]))


def test_what_gym3_cannot_do_is_refused() -> None:
    envs = corral.from_gym3(FixedSequenceEnv(num=2))
    with pytest.raises(errors.UnsupportedError, match="be seeded"):
        envs.reset(seed=1)
    with pytest.raises(errors.UnsupportedError, match="index"):
        envs.reset(options={"index": 1})
    with pytest.raises(errors.UnsupportedError, match="options"):
        envs.reset(options={"size": 1})
    with pytest.raises(errors.ResetNeededError):
        envs.step(np.zeros(2, np.int64))
    envs.reset()
    with pytest.raises(errors.UnsupportedError, match="be reset a second time"):
        envs.reset()
    with pytest.raises(errors.UnsupportedError, match="reset some envs and leave others"):
        envs.reset(options={"reset_mask": np.array([True, False])})
    with pytest.raises(errors.UnsupportedError):
        envs.save_state()
    with pytest.raises(errors.UnsupportedError):
        envs.call("sequence")
    with pytest.raises(errors.ArgumentTypeError, match="no gym3 env: it has no observe"):
        corral.from_gym3(object())
    envs.step(np.zeros(2, np.int64))


def test_an_env_with_a_reset_can_be_reset() -> None:
    envs = corral.from_gym3(corral.to_gym3(make("CartPole")))
    right = make("CartPole")
    for _ in range(3):
        assert_same(envs.reset()[0], right.reset()[0])
        assert_same(envs.step(np.ones(N, np.int64))[0], right.step(np.ones(N, np.int64))[0])
    with pytest.raises(errors.UnsupportedError, match="reset some envs and leave others"):
        envs.reset(options={"reset_mask": np.arange(N) > 0})


def test_a_first_observation_that_fails_is_not_yet_a_beginning() -> None:
    class Late(FixedSequenceEnv):
        tries = 0

        def observe(self) -> Any:
            self.tries += 1
            if self.tries == 1:
                raise LookupError("no level yet")
            return super().observe()

    batch = Batch(Late(num=2))
    with pytest.raises(LookupError):
        batch.reset()
    # It has no reset to call.
    assert batch.reset()[0].tolist() == FixedSequenceEnv(num=2).observe()[1].tolist()


def test_what_a_gym3_env_first_shows_amiss_is_told_of_all() -> None:
    class Amiss(FixedSequenceEnv):
        def observe(self) -> Any:
            reward, ob, first = super().observe()
            return reward, ob[:1], first

    with pytest.raises(errors.EnvError, match=r"shape \(1,\) where \(2,\) belongs") as raised:
        corral.from_gym3(Amiss(num=2)).reset()
    assert [failure.slot for failure in raised.value.failures] == [0, 1]


def test_actions_come_in_the_dtype_that_the_env_names() -> None:
    came: list[Any] = []

    class Recording(TimingEnv):
        def act(self, ac: Any) -> None:
            came.append(ac["go"].dtype)
            super().act(ac)

    env = Recording(ac_space=DictType(go=TensorType(Discrete(3, "int32"), ())), num=2)
    # Older Gymnasiums' Discrete is always int64.
    Batch(AssertSpacesWrapper(env)).step({"go": np.zeros(2, np.int64)})
    assert came == [np.dtype(np.int32)]


def test_closing_the_vec_env_closes_the_gym3_env_once() -> None:
    closed = []

    class Closing(FixedSequenceEnv):
        def close(self) -> None:
            closed.append(1)

    envs = corral.from_gym3(Closing(num=2))
    envs.reset()
    envs.close()
    envs.close()
    del envs
    assert closed == [1]
