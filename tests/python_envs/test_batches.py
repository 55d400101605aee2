"""Batches that step themselves in Python by one call, whoever made them."""

from __future__ import annotations

import contextlib
import gc
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

import corral
from corral import _native, errors
from corral._python_batch import vector_env
from tests.support import assert_same

N = 3


class Words:
    """Every kind of leaf: env k counts up by its action, from k, to 6."""

    observation_space = spaces.Dict(
        [
            ("at", spaces.Box(-99, 99, (2,), np.float32)),
            ("pair", spaces.Tuple([spaces.Discrete(9), spaces.MultiBinary(2)])),
            ("word", spaces.Text(9)),
        ]
    )
    action_space = spaces.Tuple([spaces.Discrete(4, start=1), spaces.Box(-1, 1, (2,), np.float64)])
    num_envs = N
    can_reset = False

    def __init__(self) -> None:
        self.at = np.arange(N)
        self.heard: list[Any] = []
        self.closed = 0
        self.reply: Any = None
        # Reused, as fast envs do.
        self.shown = np.zeros((N, 2), np.float32)

    def seen(self) -> dict[str, Any]:
        self.shown[:] = self.at[:, None]
        bits = np.stack([self.at % 2, self.at > 3], axis=1).astype(np.int8)
        return {"at": self.shown, "pair": (self.at, bits), "word": [f"at {k}" for k in self.at]}

    def reset(self) -> Any:
        return self.seen(), [{"began": int(k)} for k in self.at]

    def step(self, actions: Any) -> Any:
        self.heard.append(actions)
        if self.reply is not None:
            return self.reply() if callable(self.reply) else self.reply
        self.at = self.at + actions[0]
        reward, over = self.at.astype(np.float32), self.at >= 6
        self.at = np.where(over, 0, self.at)
        infos: list[dict[str, Any]] = [{"over": True} if one else {} for one in over]
        return self.seen(), reward, over & (reward > 6), over & (reward == 6), infos

    def close(self) -> None:
        self.closed += 1


def make(batch: Any, **more: Any) -> corral.VectorEnv:
    return vector_env("Words", batch, **{"episode_statistics": False, **more})


def actions(*by: int) -> Any:
    return np.array(by), np.full((N, 2), 0.5)


def test_all_is_passed_on_by_one_call_a_step() -> None:
    batch = Words()
    envs = make(batch)
    assert envs.single_observation_space == Words.observation_space
    first, infos = envs.reset()
    assert infos["began"].tolist() == [0, 1, 2]
    got = [envs.step(actions(1, 2, 4)), envs.step(actions(1, 3, 1))]
    # What was shown earlier is not changed by what is shown later.
    assert_same(first["at"], np.float32([[0, 0], [1, 1], [2, 2]]))
    assert first["word"] == ("at 0", "at 1", "at 2")
    assert_same(got[0][0]["at"], np.float32([[1, 1], [3, 3], [0, 0]]))
    assert_same(got[0][0]["pair"][0], np.array([1, 3, 0]))
    assert_same(got[1][0]["pair"][1], np.int8([[0, 0], [0, 0], [1, 0]]))
    assert got[1][0]["word"] == ("at 2", "at 0", "at 1")
    assert_same(got[0][1], np.array([1.0, 3.0, 6.0]))
    assert_same(got[0][2], np.array([False, False, False]))
    assert_same(got[0][3], np.array([False, False, True]))
    assert got[0][4]["_over"].tolist() == [False, False, True]
    assert_same(got[1][3], np.array([False, True, False]))
    assert len(batch.heard) == 2
    assert_same(batch.heard[0], actions(1, 2, 4))
    assert_same(envs.observe()["at"], got[1][0]["at"])


def test_time_is_theirs_and_statistics_are_ours() -> None:
    envs = make(Words(), episode_statistics=True)
    envs.reset()
    envs.step(actions(1, 1, 1))
    infos = envs.step(actions(1, 1, 3))[4]
    assert infos["_episode"].tolist() == [False, False, True]
    assert infos["episode"]["r"].tolist() == [0.0, 0.0, 9.0]
    assert infos["episode"]["l"].tolist() == [0, 0, 2]


def test_bad_actions_do_not_reach_it() -> None:
    batch = Words()
    envs = make(batch)
    envs.reset()
    for bad in (actions(0, 1, 1), actions(1, 1), np.zeros(N)):
        with pytest.raises(errors.InvalidActionError):
            envs.step(bad)
    assert not batch.heard


def interrupted() -> None:
    raise KeyboardInterrupt


def shows(**parts: Any) -> tuple[Any, ...]:
    """What a step gives, with these parts of the observation."""
    return ({**Words().seen(), **parts}, np.zeros(N), np.zeros(N, bool), np.zeros(N, bool), None)


@pytest.mark.parametrize(
    ("reply", "kind", "why"),
    [
        (lambda: 1 / 0, ZeroDivisionError, "division by zero"),
        (interrupted, KeyboardInterrupt, None),
        (lambda: exec("import sys; sys.exit(3)"), errors.EnvError, "SystemExit"),
        ("nothing", errors.EnvError, "step must return a tuple of 5"),
        (
            shows(at=np.zeros((N, 3))),
            errors.EnvError,
            r"'at', have shape \(3, 3\) where \(3, 2\)",
        ),
        (shows(at=np.zeros((N, 2), complex)), errors.EnvError, "dtype complex128 where float32"),
        (shows(pair=(np.zeros(N, int),)), errors.EnvError, "no tuple of 2, but a tuple"),
        (shows(word=["a"]), errors.EnvError, "leaf 'word', have 1 rows for 3 envs"),
        (({}, *shows()[1:]), errors.EnvError, "a dict without the key at"),
        ((shows()[0], np.zeros((N, 1)), *shows()[2:]), errors.EnvError, "rewards have shape"),
        (
            (shows()[0], np.full(N, "a"), *shows()[2:]),
            errors.EnvError,
            "are no array of float64",
        ),
        ((*shows()[:3], np.zeros(1, bool), None), errors.EnvError, "truncations have shape"),
        ((*shows()[:4], {"a": 1}), errors.EnvError, "no list of 3 dicts, but a dict"),
        ((*shows()[:4], [{}, {}, 3]), TypeError, "info is a int"),
    ],
)
def test_what_goes_wrong_is_the_failure_of_all_and_of_nobody_else(
    reply: Any, kind: Any, why: str | None
) -> None:
    batch = Words()
    envs = make(batch)
    envs.reset()
    batch.reply = reply
    with pytest.raises(kind, match=why) as raised:
        envs.step(actions(1, 1, 1))
    error: Any = raised.value
    failed = error if isinstance(error, errors.EnvError) else error.__cause__
    assert [failure.slot for failure in failed.failures] == [0, 1, 2]
    batch.reply = None
    with pytest.raises(errors.ResetNeededError, match="cannot reset it"):
        envs.step(actions(1, 1, 1))
    with pytest.raises(errors.UnsupportedError, match="second time"):
        envs.reset()
    envs.close()
    assert batch.closed == 1


def test_one_that_can_reset_goes_on_after_a_failure() -> None:
    batch = Words()
    batch.can_reset = True
    envs = make(batch)
    envs.reset()
    batch.reply = lambda: 1 / 0
    with pytest.raises(ZeroDivisionError):
        envs.step(actions(1, 1, 1))
    batch.reply = None
    batch.at = np.arange(N)[::-1]
    assert envs.reset()[0]["at"][:, 0].tolist() == [2, 1, 0]
    assert envs.reset()[1]["began"].tolist() == [2, 1, 0]
    envs.step(actions(1, 1, 1))


def test_a_failing_reset_is_raised_too() -> None:
    class Failing(Words):
        def reset(self) -> Any:
            raise LookupError("no level")

    with pytest.raises(LookupError, match="no level"):
        make(Failing()).reset()


@pytest.mark.parametrize(
    ("reply", "kind", "why"),
    [
        (lambda: 1 / 0, ZeroDivisionError, "division by zero"),
        (lambda: "nothing", errors.EnvError, "reset must return a tuple of 2"),
        (
            lambda: ({**Words().seen(), "at": np.zeros((1, 2))}, None),
            errors.EnvError,
            r"'at', have shape \(1, 2\)",
        ),
    ],
)
def test_a_reset_that_fails_is_tried_once_a_call_and_told_of_all(
    reply: Any, kind: Any, why: str
) -> None:
    class Failing(Words):
        can_reset = True
        calls = 0

        def reset(self) -> Any:
            self.calls += 1
            # The second call of the same reset would find another fault, or none.
            return reply() if self.calls in (1, 3) else super().reset()

    batch = Failing()
    envs = make(batch)
    for calls in (1, 3):
        with pytest.raises(kind, match=why) as raised:
            envs.reset()
        assert batch.calls == calls
        error: Any = raised.value
        failed = error if isinstance(error, errors.EnvError) else error.__cause__
        assert [failure.slot for failure in failed.failures] == [0, 1, 2]
        assert envs.reset()[1]["began"].tolist() == [0, 1, 2]
        assert batch.calls == calls + 1
    envs.step(actions(1, 1, 1))


@pytest.mark.parametrize(
    "settings",
    [{"batch_size": 1}, {"timeout": 1.0}, {"num_envs": 2, "num_threads": 1}],
)
def test_who_would_step_some_without_the_others_is_refused(settings: dict[str, Any]) -> None:
    source = _native.Source.python_batch("Words", Words())
    num_envs = settings.pop("num_envs", N)
    with pytest.raises(errors.UnsupportedError, match=r"by one call|without the others"):
        _native.make(source, num_envs, settings)


def test_it_is_one_chunk_for_any_number_of_threads() -> None:
    batch = Words()
    envs = _native.make(_native.Source.python_batch("Words", batch), N, {"num_threads": 2})
    _, infos = envs.reset()
    # Two chunks would have reset the batch twice, or each a part of it.
    assert infos["began"].tolist() == list(range(N))
    envs.close()


def test_one_batch_is_one_vec_env() -> None:
    source = _native.Source.python_batch("Words", Words())
    envs = _native.make(source, N, {"num_threads": 1})
    with pytest.raises(errors.UnsupportedError, match="is a vec env already"):
        _native.make(source, N, {"num_threads": 1})
    envs.reset()


def test_actions_for_some_alone_are_refused() -> None:
    envs = make(Words())
    envs.reset()

    def step_one() -> None:
        envs.send((np.array([1]), np.zeros((1, 2))), [1])
        envs.recv()

    with pytest.raises((errors.UnsupportedError, errors.EnvError), match=r"all of them|the others"):
        step_one()


@pytest.mark.parametrize("setting", ["time limit", "seed", "mode"])
def test_what_is_the_batchs_own_affair_is_refused(setting: str) -> None:
    source = _native.Source.python_batch("Words", Words())
    settings: dict[str, dict[str, Any]] = {
        "time limit": {"max_episode_steps": 3},
        "mode": {"autoreset_mode": "next_step"},
        "seed": {},
    }
    with pytest.raises(errors.UnsupportedError, match=r"time limit|be seeded|no autoreset mode"):
        _native.make(source, N, {"num_threads": 1, **settings[setting]}).reset(seed=1)


def test_it_is_closed_once_and_by_whoever_drops_it_too() -> None:
    batch = Words()
    envs = make(batch)
    envs.close()
    envs.close()
    del envs
    assert batch.closed == 1
    dropped = Words()
    envs = make(dropped)
    del envs
    assert dropped.closed == 1


def test_a_reset_that_failed_does_not_keep_the_envs() -> None:
    class Failing(Words):
        def reset(self) -> Any:
            raise LookupError("no level")

    batch = Failing()
    # Its traceback has the envs' own frames.
    with contextlib.suppress(LookupError):
        make(batch).reset()
    gc.collect()
    assert batch.closed == 1


def test_what_closing_raises_is_raised() -> None:
    class Failing(Words):
        def close(self) -> None:
            raise LookupError("it is gone")

    with pytest.raises(LookupError, match="it is gone"):
        make(Failing()).close()


def test_an_exception_on_its_way_outlives_the_envs_that_go_with_it() -> None:
    closed = []

    class Closing(gymnasium.Env):  # type: ignore[type-arg]
        observation_space = action_space = spaces.Discrete(2)

        def close(self) -> None:
            closed.append(1)

    def envs() -> Any:
        source = _native.Source.python("Closing", [Closing])
        return _native.make(source, 1, {"num_threads": 1})

    # Nobody holds them when the exception leaves.
    with pytest.raises(errors.ArgumentError, match="seed -1"):
        envs().reset(seed=-1)
    with pytest.raises(AttributeError, match="no_such_thing"):
        _native.Source.python("Closing", [Closing]).no_such_thing  # noqa: B018
    assert closed == [1, 1]
