"""Calls by name and events of envs in Rust: the same whoever steps the slots."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import corral
from corral import errors

CALLER = "testing/Caller-v0"
RUNNERS: dict[str, dict[str, Any]] = {
    "serial": {"num_threads": 1},
    "threads": {"num_threads": 2},
    "batches": {"batch_size": 2},
    "timeout": {"timeout": 30},
    "restart": {"on_failure": "restart"},
}
each_runner = pytest.mark.parametrize("how", RUNNERS.values(), ids=RUNNERS)


def make(n: int = 3, **how: Any) -> corral.VectorEnv:
    envs = corral.make_vec(CALLER, n, **how)
    envs.send_reset()
    envs.drain()
    return envs


def played(envs: corral.VectorEnv, words: list[str]) -> Any:
    envs.send(words)
    return envs.drain()


@each_runner
def test_properties_are_got_set_and_listed(how: dict[str, Any]) -> None:
    envs = make(**how)
    assert envs.list_attr() == ({"gravity": True, "motto": True, "height": False},) * 3
    envs.set_attr("gravity", [0.5, np.float32(2), 3])
    assert envs.get_attr("gravity") == (0.5, 2.0, 3.0)
    assert all(type(value) is float for value in envs.call("gravity"))
    envs.set_attr("motto", "\N{GREEK SMALL LETTER LAMDA}\N{SNOWMAN}")
    assert envs.get_attr("motto") == ("\N{GREEK SMALL LETTER LAMDA}\N{SNOWMAN}",) * 3
    assert played(envs, ["aaaa"] * 3)[0].tolist() == [6.5, 5.0, 4.0]
    with pytest.raises(errors.UnsupportedError, match="'height' can be read, not set"):
        envs.set_attr("height", 1.0)
    with pytest.raises(errors.ArgumentTypeError, match='argument 0: "low" is no float'):
        envs.set_attr("gravity", "low")
    with pytest.raises(errors.UnknownNameError, match=r"no property 'fly' \(it has gravity, motto"):
        envs.get_attr("fly")


@each_runner
def test_methods_take_arguments_and_give_values_of_every_kind(how: dict[str, Any]) -> None:
    envs = make(**how)
    assert envs.call("kick", 1.5) == (4.5,) * 3
    array = np.arange(6, dtype=np.int16).reshape(2, 3)
    args, kwargs = envs.call("repeat", 1, "two", None, array, [True, 2.5], deep={"a": array})[1]
    assert args[:3] == [1, "two", None]
    np.testing.assert_array_equal(args[3], array)
    assert args[3].dtype == np.int16
    assert args[4] == [True, 2.5]
    np.testing.assert_array_equal(kwargs["deep"]["a"], array)
    for unknown in (lambda: envs.call("fly"), lambda: envs.call("walk")):
        with pytest.raises(AttributeError, match="there is nothing called"):
            unknown()
    for fault in ("fail", "panic"):
        with pytest.raises(errors.EnvError, match=f"a call that {fault}s") as raised:
            envs.call(fault)
        assert [(f.slot, f.phase) for f in raised.value.failures][:1] == [(0, "call")]
    assert played(envs, ["a"] * 3)[0].tolist() == [4.5] * 3


def test_an_env_without_calls_says_so() -> None:
    envs = corral.make_vec("CartPole-v1", 2)
    for ask in (
        lambda: envs.call("gravity"), lambda: envs.get_attr("gravity"),
        lambda: envs.set_attr("gravity", 1.0), envs.list_attr,
    ):  # fmt: skip
        with pytest.raises(errors.UnsupportedError, match="cannot call anything by name"):
            ask()


@each_runner
def test_events_are_in_the_infos_of_their_rows(how: dict[str, Any]) -> None:
    envs = corral.make_vec(CALLER, 3, **how)
    envs.send_reset()
    batch = envs.drain()
    assert batch is not None
    assert batch[4]["events"].tolist() == [[["began", [1]]]] * 3
    infos = played(envs, ["ab", "", "c"])[4]
    assert infos["_events"].tolist() == [True, False, True]
    assert infos["events"][0] == [["said", ["ab", 4.0]]]
    assert infos["events"][1] is None
    assert "events" not in played(envs, ["", "", ""])[4]
    assert played(envs, ["", "", ""])[4]["events"].tolist() == [None, [["landed", []]], None]
    rows = played(envs, ["", "", "a"])[4]["events"].tolist()
    assert rows == [None, [["began", [2]]], [["said", ["a", 1.0]]]]


def test_the_last_events_of_an_episode_are_in_its_final_info() -> None:
    envs = corral.make_vec(CALLER, 1, autoreset_mode="same_step")
    assert envs.reset()[1]["events"].tolist() == [[["began", [1]]]]
    envs.step(("",))
    envs.step(("",))
    infos = envs.step(("",))[4]
    assert infos["events"].tolist() == [[["began", [2]]]]
    assert infos["final_info"]["events"].tolist() == [[["landed", []]]]


@each_runner
def test_words_are_actions(how: dict[str, Any]) -> None:
    envs = make(**how)
    envs.action_space.seed(0)
    for _ in range(20):
        heights = played(envs, list(envs.action_space.sample()))[0]
        assert heights.shape == (3,)
    for wrong in (["a", "b"], ["a", "b", 3], ["a", "b", "far too long"], "abc", None):
        with pytest.raises((errors.InvalidActionError, errors.ArgumentTypeError)):
            envs.send(wrong)
    assert envs.native.in_flight() == 0


@pytest.mark.parametrize("runner", ["serial", "thread", "process"])
def test_attributes_of_python_envs_are_named_got_and_set(runner: str) -> None:
    how = {"context": "forkserver", "num_workers": 2} if runner == "process" else {}
    envs = corral.from_gymnasium("CartPole-v1", 3, runner=runner, **how)
    for names in envs.list_attr():
        assert names["unwrapped"] is True
        assert not any(name.startswith("_") for name in names)
    envs.set_attr("mark", [1, "two", 3.0])
    assert envs.get_attr("mark") == envs.call("mark") == (1, "two", 3.0)
    with pytest.raises(AttributeError):
        envs.get_attr("corral:set_attr")
    envs.close()


def test_one_env_alone_takes_words_and_tells_events_too() -> None:
    env = corral.make(CALLER)
    _, info = env.reset()
    assert info["events"] == [["began", [1]]]
    observation, reward, terminated, truncated, info = env.step("abc")
    assert (float(observation), reward, terminated, truncated) == (5.0, 1.0, False, False)
    assert info["events"] == [["said", ["abc", 5.0]]]
