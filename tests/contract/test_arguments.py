"""Is every argument at its edges an error of ours that names it and shows it, at once?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

import corral
from corral import errors, testing

HUGE = (10**9, 10**12, 2**63, 10**30)
NO_COUNTS = (0, -1, *HUGE)
NO_INTS = (
    "2",
    2.0,
    float("nan"),
    True,
    np.bool_(True),
    np.float64(2),
    np.ones(2, np.int64),
    [2],
    b"2",
)


class Still(gymnasium.Env[Any, Any]):
    observation_space = spaces.Box(-1, 1, (3,), np.float32)
    action_space = spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        return np.zeros(3, np.float32), {}


def make_vec(**how: Any) -> Any:
    return corral.make_vec("CartPole-v1", **{"num_envs": 2, **how})


def serial(**how: Any) -> Any:
    return corral.from_gymnasium(Still, **{"num_envs": 2, "runner": "serial", **how})


def process(**how: Any) -> Any:
    return corral.from_gymnasium(Still, **{"num_envs": 2, "context": "forkserver", **how})


MAKERS = {"make_vec": make_vec, "serial": serial, "process": process}
# What each maker counts by.
COUNTS = {
    "make_vec": ("num_envs", "batch_size", "frame_stack", "num_threads"),
    "serial": ("num_envs", "batch_size", "frame_stack"),
    "process": ("num_envs", "batch_size", "frame_stack"),
}
each_count = pytest.mark.parametrize(
    ("maker", "name"), [(maker, name) for maker, names in COUNTS.items() for name in names]
)


@each_count
@pytest.mark.parametrize("value", NO_COUNTS)
def test_a_count_out_of_range_is_an_error_that_shows_it(maker: str, name: str, value: int) -> None:
    with pytest.raises(errors.ArgumentError, match=rf"{name} (is )?{value}\b"):
        MAKERS[maker](**{name: value})


@each_count
@pytest.mark.parametrize("value", NO_INTS, ids=repr)
def test_what_is_no_int_is_no_count(maker: str, name: str, value: Any) -> None:
    with pytest.raises(errors.ArgumentTypeError, match=f"{name} is an int, not ") as told:
        MAKERS[maker](**{name: value})
    assert repr(value) in str(told.value)


@pytest.mark.parametrize("value", NO_COUNTS[:2])
def test_workers_are_at_least_one(value: int) -> None:
    with pytest.raises(errors.ArgumentError, match=f"num_workers is {value}"):
        process(num_workers=value)


@pytest.mark.parametrize("value", NO_INTS, ids=repr)
def test_what_is_no_int_is_no_number_of_workers(value: Any) -> None:
    with pytest.raises(errors.ArgumentTypeError, match="num_workers is an int, not "):
        process(num_workers=value)


def test_more_workers_than_envs_are_as_many_as_envs() -> None:
    envs = process(num_workers=1000)
    assert envs.num_envs == 2
    envs.close()


@each_count
def test_ints_of_numpys_are_ints(maker: str, name: str) -> None:
    if (maker, name) == ("serial", "batch_size"):
        pytest.skip("a serial vec env has no batches of fewer envs")
    for value in (np.int64(2), np.uint8(2), np.array(2)):
        envs = MAKERS[maker](**{name: value})
        assert envs.num_envs == 2
        envs.close()


@pytest.mark.parametrize("value", [*HUGE, 0, -1])
@pytest.mark.parametrize("maker", ["make_vec", "serial"])
def test_lazy_frames_are_bounded_as_well(maker: str, value: int) -> None:
    with pytest.raises(errors.ArgumentError, match=f"frame_stack is {value}"):
        MAKERS[maker](frame_stack=value, lazy_frames=True)


def test_frames_that_fit_no_memory_are_an_error() -> None:
    for lazy in (False, True):
        with pytest.raises(
            errors.ArgumentError, match="frame_stack is 65536: so many frames fit no"
        ):
            make_vec(num_envs=2**20, frame_stack=2**16, lazy_frames=lazy)


SECONDS = (0, -1, 0.0, float("nan"), float("inf"), 1e300, 10**30, np.float32("nan"))


@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize("value", SECONDS, ids=repr)
def test_a_timeout_out_of_range_is_an_error_that_shows_it(maker: str, value: Any) -> None:
    with pytest.raises(errors.ArgumentError, match="timeout is ") as told:
        MAKERS[maker](timeout=value)
    assert repr(value) in str(told.value)


@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize("value", ["1", True, [1], b"1"], ids=repr)
def test_what_is_no_number_is_no_timeout(maker: str, value: Any) -> None:
    with pytest.raises(errors.ArgumentTypeError, match="timeout is a number") as told:
        MAKERS[maker](timeout=value)
    assert repr(value) in str(told.value)


@pytest.mark.parametrize("value", [np.float32(3), np.float64(3), np.int64(3), 3])
def test_numbers_of_numpys_are_times(value: Any) -> None:
    envs = make_vec(timeout=value)
    assert envs.reset()[0].shape == (2, 4)
    envs.close()


FLAGS = ("episode_statistics", "lazy_frames", "normalize_observation", "normalize_reward")


@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize("name", FLAGS)
@pytest.mark.parametrize("value", [1, 0, "yes", None, np.ones(2, np.bool_)], ids=repr)
def test_a_flag_is_a_bool(maker: str, name: str, value: Any) -> None:
    with pytest.raises(errors.ArgumentTypeError, match=f"{name} is a bool, not "):
        MAKERS[maker](frame_stack=2, **{name: value})


TEXTS = ("action_bounds", "on_failure", "autoreset_mode")


@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("value", [3, None, b"env", ["env"], np.array(["env", "env"])], ids=repr)
def test_a_choice_is_a_string(maker: str, name: str, value: Any) -> None:
    with pytest.raises((errors.ArgumentTypeError, errors.ArgumentError), match=name) as told:
        MAKERS[maker](**{name: value})
    assert repr(value) in str(told.value)


@pytest.mark.parametrize("name", ["runner", "context", "check_nan", "num_envs"])
@pytest.mark.parametrize("value", [b"serial", ["serial"], 2.5], ids=repr)
def test_what_from_gymnasium_takes_is_checked(name: str, value: Any) -> None:
    with pytest.raises(errors.ArgumentTypeError, match=f"{name} is a") as told:
        process(**{name: value})
    assert repr(value) in str(told.value)


@pytest.mark.parametrize("env", [None, 3, (one for one in [Still]), iter([Still]), b"CartPole-v1"])
def test_what_makes_no_env_is_an_error(env: Any) -> None:
    with pytest.raises(errors.ArgumentTypeError, match="env is "):
        corral.from_gymnasium(env)


@pytest.mark.parametrize("id", [None, 3, b"CartPole-v1", ["CartPole-v1"]])
def test_an_id_is_a_string(id: Any) -> None:
    for make in (corral.make_vec, corral.make):
        with pytest.raises(errors.ArgumentTypeError, match="id is a str, not ") as told:
            make(id)
        assert repr(id) in str(told.value)


@pytest.mark.parametrize("mode", [3, b"rgb_array", "human", np.array(["rgb_array"] * 2)], ids=repr)
def test_a_render_mode_is_one_of_those_that_there_are(mode: Any) -> None:
    for make in (corral.make_vec, corral.make):
        what = "render_mode is None, 'rgb_array' or 'ansi', not "
        with pytest.raises(errors.ArgumentError, match=what):
            make("CartPole-v1", render_mode=mode)


@pytest.mark.parametrize("value", [b"x", 3, ["x"]], ids=repr)
def test_a_record_goes_to_a_path(value: Any, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(errors.ArgumentTypeError, match="record is a path") as told:
        make_vec(record=value)
    assert repr(value) in str(told.value)
    make_vec(record="x").close()
    make_vec(record=tmp_path / "y").close()


@pytest.mark.parametrize("value", [-1, 2**63, 10**30, "1", 1.0, True, float("nan")], ids=repr)
@pytest.mark.parametrize("maker", MAKERS)
def test_a_seed_is_an_int_that_is_not_negative(maker: str, value: Any) -> None:
    with pytest.raises((errors.ArgumentError, errors.ArgumentTypeError), match="seed"):
        MAKERS[maker](seed=value)


@pytest.mark.parametrize(
    "value", [float("nan"), -0.1, 1.1, float("inf"), "1", True, None], ids=repr
)
def test_a_discount_is_within_0_and_1(value: Any) -> None:
    with pytest.raises((errors.ArgumentError, errors.ArgumentTypeError), match="reward_gamma"):
        make_vec(normalize_reward=True, reward_gamma=value)


@pytest.mark.parametrize("name", ["max_restarts", "max_episode_steps", "thread_affinity_offset"])
@pytest.mark.parametrize("value", [-2, 2**64, "1", 1.5, float("nan"), True], ids=repr)
def test_other_numbers_are_checked_too(name: str, value: Any) -> None:
    with pytest.raises((errors.ArgumentError, errors.ArgumentTypeError), match=name):
        make_vec(**{name: value})


class Evil:
    """Changes a dict that it is in when it is looked at."""

    def __init__(self, within: dict[str, Any]) -> None:
        self.within = within

    def __getattr__(self, name: str) -> Any:
        self.within[name] = 1
        raise AttributeError(name)


def test_a_dict_that_changes_while_it_is_read_is_no_panic() -> None:
    given: dict[str, Any] = {"a": 1}
    given.update(b=Evil(given), c=2)
    with pytest.raises(errors.OptionValueError, match="size"):
        corral.make_vec("Maze-v0", 2, size=given)


def test_options_of_a_reset_are_a_dict_under_lazy_frames_too() -> None:
    for how in ({}, {"frame_stack": 2, "lazy_frames": True}):
        envs = make_vec(**how)
        with pytest.raises(errors.ArgumentTypeError, match="options is a dict, not int"):
            envs.reset(options=5)
        envs.close()


@pytest.mark.parametrize("value", [None, 3, b"x"])
@pytest.mark.parametrize("opens", [corral.load, corral.replay])
def test_a_file_is_a_path(opens: Any, value: Any) -> None:
    with pytest.raises(errors.ArgumentTypeError, match="path is a path"):
        opens(value)


@pytest.mark.parametrize("env", [None, 3, lambda *given, **how: None])
def test_what_is_checked_makes_vec_envs(env: Any) -> None:
    with pytest.raises(errors.ArgumentTypeError, match=r"env (is|makes)"):
        testing.check_env(env)


@pytest.mark.parametrize("name", ["num_envs", "autoreset_mode"])
def test_a_check_chooses_for_itself_how_many_envs_there_are_and_how_they_reset(name: str) -> None:
    with pytest.raises(errors.ArgumentError, match=f"chooses {name} itself"):
        testing.check_env("CartPole-v1", **{name: 3})


def test_an_evaluation_chooses_for_itself_how_envs_reset() -> None:
    with pytest.raises(errors.ArgumentError, match="chooses autoreset_mode itself"):
        corral.evaluate(np.zeros_like, "CartPole-v1", autoreset_mode="same_step")


def test_half_a_character_is_no_id() -> None:
    with pytest.raises(errors.ArgumentError, match="half of a character"):
        corral.make_vec("CartPole\udc80", 2)
