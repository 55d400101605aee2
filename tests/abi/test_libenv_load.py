"""libenv libraries as vec envs: what they show, what they cannot, and what becomes of faulty ones.

The library and its dynamics are in `c/faulty_libenv.c`.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, MultiDiscrete

import corral
from corral import errors
from corral.spaces import discrete
from tests.abi.libenv import actions, compiled, load
from tests.support import assert_same

ISOLATIONS = ("thread", "process")
OURS = ("OURS", "STATES=64")
# "Did not hang": far more than it takes, for the machine may be busy.
LONG = 30.0

isolations = pytest.mark.parametrize("isolation", ISOLATIONS)


def opened(*defines: str, **settings: Any) -> Any:
    """Loaded and reset."""
    envs = load(*defines, **settings)
    envs.reset()
    return envs


def counts(envs: Any, steps: int = 1) -> list[list[int]]:
    return [envs.step(actions(envs.num_envs))[0]["count"].tolist() for _ in range(steps)]


@isolations
def test_spaces_are_dicts_of_the_librarys_leaves(isolation: str) -> None:
    envs = load(isolation=isolation)
    observation = {
        "count": discrete(10, 5, np.int32),
        "grid": Box(0, 255, (2, 3), np.uint8),
        "bits": MultiDiscrete([2, 2], dtype=np.uint8),
        "pos": Box(-np.inf, np.inf, (), np.float32),
    }
    assert envs.single_observation_space == Dict(list(observation.items()))
    assert list(envs.single_observation_space.keys()) == list(observation)
    action = [("move", discrete(3, 0, np.int32)), ("push", Box(-1, 1, (2,), np.float32))]
    assert envs.single_action_space == Dict(action)
    assert envs.metadata["autoreset_mode"].value == "SameStep"
    envs.close()


@isolations
def test_the_trajectory_is_the_one_worked_out_by_hand(isolation: str) -> None:
    envs = load(isolation=isolation)
    observations, infos = envs.reset()
    assert_same(observations["count"], np.array([5, 5], np.int32))
    assert_same(observations["grid"][1], np.array([[100, 101, 102], [103, 104, 105]], np.uint8))
    assert_same(observations["pos"], np.zeros(2, np.float32))
    assert_same(infos["total"], np.zeros(2, np.int32))
    given = actions(2, move=[1, 2], push=[[0.5, 0], [0.25, 1]])
    # count, grid[0, 0], bits[0], pos, terminated; the rewards are the same at each step.
    expected = [
        ([6, 6], [1, 101], [1, 1], [0.5, 0.25], [False, False]),
        ([5, 7], [10, 102], [0, 0], [0.0, 0.5], [True, False]),
        ([6, 5], [11, 110], [1, 0], [0.5, 0.0], [False, True]),
        ([5, 6], [20, 111], [0, 1], [0.0, 0.25], [True, False]),
    ]
    for step, (count, grid, bits, pos, ended) in enumerate(expected, 1):
        observations, rewards, terminated, truncated, infos = envs.step(given)
        assert observations["count"].tolist() == count
        assert observations["grid"][:, 0, 0].tolist() == grid
        assert observations["bits"].tolist() == [[bits[0], 0], [bits[1], 1]]
        assert observations["pos"].tolist() == pos
        assert_same(rewards, np.array([1.0, 13.0]))
        assert_same(terminated, np.array(ended))
        assert_same(truncated, np.zeros(2, bool))
        assert_same(infos["total"], np.full(2, step, np.int32))
        assert_same(infos["pushed"], given["push"])
        assert infos["_total"].all()
        assert "final_obs" not in infos
    envs.close()


@isolations
def test_functions_of_its_own_are_called_by_name(isolation: str) -> None:
    envs = load(
        "STATES=100",
        isolation=isolation,
        functions={"add_to_total": "int (idx, int)"},
    )
    envs.reset()
    envs.step(actions(2))
    assert envs.call("add_to_total", 5) == (6, 6)
    assert envs.call("add_to_total", -1) == (5, 5)
    assert envs.step(actions(2))[4]["total"].tolist() == [6, 6]
    first, second = envs.call("get_state")
    assert first.dtype == np.uint8
    assert len(first) == 100
    envs.call("set_state", second.tobytes())
    assert_same(envs.call("get_state")[0], second)
    with pytest.raises(errors.UnsupportedError, match=r"declare it in functions= .*add_to_total"):
        envs.call("fly")
    with pytest.raises(errors.ArgumentError, match="takes 1 arguments, not 0"):
        envs.call("add_to_total")
    with pytest.raises(errors.ArgumentError, match="an int of 32 bits"):
        envs.call("add_to_total", 2**40)
    envs.close()


@isolations
def test_functions_that_are_not_there_or_ill_declared_are_refused(isolation: str) -> None:
    with pytest.raises(errors.LibraryError, match="has no function 'fly'"):
        load(isolation=isolation, functions={"fly": "void ()"})
    with pytest.raises(errors.ArgumentError, match="declare it as 'int"):
        load(isolation=isolation, functions={"add_to_total": "float (idx)"})


@isolations
@pytest.mark.parametrize(
    ("functions", "kind", "words"),
    [
        ([("add_to_total", "int (idx, int)")], errors.ArgumentTypeError, "functions are a dict"),
        ([], errors.ArgumentTypeError, "functions are a dict"),
        ("add_to_total", errors.ArgumentTypeError, "functions are a dict"),
        ({b"add_to_total": "void ()"}, errors.ArgumentTypeError, "names and declarations"),
        ({"add_to_total": None}, errors.ArgumentTypeError, "names and declarations"),
        ({"libenv_close": "void ()"}, errors.ArgumentError, "'libenv_close' is libenv's own"),
        ({"corral_libenv_reset": "void (idx)"}, errors.ArgumentError, "is libenv's own"),
        ({"libenv_anything": "void ()"}, errors.ArgumentError, "is libenv's own"),
        ({"": "void ()"}, errors.ArgumentError, "no name of a C function"),
        ({"a\0b": "void ()"}, errors.ArgumentError, "no name of a C function"),
        ({"\ud800": "void ()"}, errors.ArgumentError, "no name of a C function"),
        ({"add_to_total": "\ud800"}, errors.ArgumentError, "it has no UTF-8"),
    ],
)
def test_functions_that_are_none_of_the_librarys_own_are_refused(
    isolation: str, functions: Any, kind: type[Exception], words: str
) -> None:
    with pytest.raises(kind, match=words):
        load("OURS", isolation=isolation, functions=functions)


@isolations
def test_a_path_may_be_of_any_type_that_python_opens(isolation: str) -> None:
    library = compiled()
    for path in (library, str(library), os.fsencode(library)):
        envs = corral.load_libenv(path, 2, isolation=isolation)
        assert envs.native.id == str(library)
        envs.close()


@isolations
@pytest.mark.parametrize(
    ("counts", "words"),
    [
        ({"num_envs": 2**24 + 1}, "num_envs is 16777217: it must be at most 16777216"),
        ({"num_envs": 2**70}, "num_envs is 1180591620717411303424: it must be at most"),
        ({"num_workers": 2**70}, "num_workers is 1180591620717411303424: it must be at most"),
    ],
)
def test_more_than_can_be_counted_is_refused_by_the_name_that_was_given(
    isolation: str, counts: dict[str, int], words: str
) -> None:
    with pytest.raises(errors.ArgumentError, match=words):
        load(isolation=isolation, **counts)


def test_more_instances_than_there_are_threads_are_refused_as_instances() -> None:
    with pytest.raises(errors.ArgumentError, match="num_workers is 2000: it must be at most 1024"):
        load(isolation="thread", num_envs=2000, num_workers=2000)


@isolations
def test_arrays_are_the_callers_to_keep(isolation: str) -> None:
    envs = load(isolation=isolation)
    kept = [envs.reset()[0]["count"]]
    for _ in range(3):
        kept.append(envs.step(actions(2))[0]["count"])
    assert [one.tolist() for one in kept] == [[5, 5], [6, 6], [5, 7], [6, 5]]
    assert all(one.flags.writeable for one in kept)
    envs.close()


@isolations
def test_a_second_reset_makes_the_envs_anew(isolation: str) -> None:
    envs = load(isolation=isolation, options={"episode": 3})
    first = envs.reset()
    for _ in range(3):
        envs.step(actions(2))
    assert_same(envs.observe()["count"], np.array([6, 5], np.int32))
    assert_same(envs.reset(), first)
    assert_same(envs.reset(), first)
    envs.close()


@isolations
@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda envs: envs.reset(seed=1), "cannot be seeded"),
        (lambda envs: envs.reset(options={"index": 1}), "cannot play the episode of an index"),
        (
            lambda envs: envs.reset(options={"reset_mask": np.array([True, False])}),
            "cannot reset some envs and leave others",
        ),
        (lambda envs: envs.reset(options={"level": 1}), "cannot take options at a reset"),
        (lambda envs: envs.save_state(), "cannot save its state"),
        (
            lambda envs: envs.send(actions(1), [0]),
            "cannot step or reset some envs without the others",
        ),
    ],
)
def test_what_a_foreign_library_cannot_do_is_refused_and_changes_nothing(
    isolation: str, call: Callable[[Any], Any], words: str
) -> None:
    envs = opened(isolation=isolation)
    with pytest.raises(errors.UnsupportedError, match=words) as raised:
        call(envs)
    assert "libenv.so" in str(raised.value)
    assert counts(envs) == [[6, 6]]
    envs.close()


@isolations
@pytest.mark.parametrize("mode", ["next_step", "disabled"])
def test_other_autoreset_modes_are_refused(isolation: str, mode: str) -> None:
    with pytest.raises(errors.UnsupportedError, match="no autoreset mode but same_step"):
        load(isolation=isolation, autoreset_mode=mode)


@isolations
def test_a_seed_for_a_foreign_library_is_refused(isolation: str) -> None:
    with pytest.raises(errors.UnsupportedError, match="cannot be seeded"):
        load(isolation=isolation, seed=1)


@pytest.mark.parametrize("setting", [{"timeout": 1.0}, {"batch_size": 1}])
def test_in_this_process_envs_cannot_run_apart(setting: dict[str, Any]) -> None:
    with pytest.raises(errors.UnsupportedError, match='isolation="process"'):
        load(isolation="thread", **setting)


@isolations
def test_actions_are_checked_unless_told_otherwise(isolation: str) -> None:
    checked = opened(isolation=isolation)
    with pytest.raises(errors.InvalidActionError, match="leaf 'move': -1 is outside 0 to 2"):
        checked.step(actions(2, move=[0, -1]))
    with pytest.raises(errors.InvalidActionError, match="not finite"):
        checked.step(actions(2, push=np.nan))
    assert counts(checked) == [[6, 6]]
    checked.close()
    unchecked = opened(isolation=isolation, check_actions=False)
    observations, rewards, ended, _, _ = unchecked.step(
        {**actions(2), "move": np.array([-1, 7], np.int64)}
    )
    assert observations["count"].tolist() == [5, 6]
    assert rewards.tolist() == [-1, 17]
    assert ended.tolist() == [True, False]
    assert np.isnan(unchecked.step(actions(2, push=np.nan))[1]).all()
    with pytest.raises(errors.InvalidActionError, match="does not fit int32"):
        unchecked.step({**actions(2), "move": np.array([0, 2**40])})
    unchecked.close()


def dumped(tmp_path: Path, monkeypatch: Any, options: Any, isolation: str) -> list[list[str]]:
    """The options as the library got them: name, dtype, count, bytes."""
    file = tmp_path / "dump"
    monkeypatch.setenv("FAULTY_LIBENV_DUMP", str(file))
    load(isolation=isolation, options=options).close()
    return [line.split(" ") for line in file.read_text().splitlines()]


@isolations
def test_options_are_typed_as_gym3_types_them_in_order(
    isolation: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = {
        "text": "é!",
        "raw": b"\x00\xff",
        "yes": True,
        "int": -2,
        "float": 0.5,
        "least": -(2**31),
        "bytes": np.array([1, 2], np.uint8),
        "ints": np.array([[1, 2]], np.int32).T,
        "floats": np.array([1.5], np.float32),
        "one": np.uint8(7),
        "none": "",
        "x" * 126: np.bool_(False),
        "numpy int": np.int64(3),
        "numpy float": np.float64(0.5),
    }
    # u8 is 1, i32 is 2, f32 is 3.
    options.pop("numpy int"), options.pop("numpy float")
    assert dumped(tmp_path, monkeypatch, options, isolation) == [
        ["text", "1", "3", "c3a921"],
        ["raw", "1", "2", "00ff"],
        ["yes", "1", "1", "01"],
        ["int", "2", "1", "feffffff"],
        ["float", "3", "1", "0000003f"],
        ["least", "2", "1", "00000080"],
        ["bytes", "1", "2", "0102"],
        ["ints", "2", "2", "0100000002000000"],
        ["floats", "3", "1", "0000c03f"],
        ["one", "1", "1", "07"],
        ["none", "1", "0", ""],
        ["x" * 126, "1", "1", "00"],
    ]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"level": 2**31}, "option 'level' cannot be 2147483648"),
        ({"gravity": 1e300}, "option 'gravity' cannot be 1e"),
        ({"levels": [1, 2]}, "option 'levels' cannot be .*libenv takes bytes, str, bool"),
        ({"levels": np.array([1, 2])}, "NumPy's uint8, int32 and float32"),
        ({"x" * 127: 1}, "from 1 to 126 bytes"),
        ({"é" * 64: 1}, "from 1 to 126 bytes"),
        ({"": 1}, "from 1 to 126 bytes"),
        ({"\ud800": 1}, r"an option's name cannot be '\\ud800': it has no UTF-8"),
        ({"text": "\ud800"}, r"option 'text' cannot be '\\ud800': it has no UTF-8"),
    ],
)
def test_an_option_that_libenv_has_no_type_for_is_named(
    options: dict[str, Any], words: str
) -> None:
    with pytest.raises(errors.OptionValueError, match=words):
        load(options=options)


@isolations
@pytest.mark.parametrize("num_workers", [1, 2, 3])
def test_envs_are_divided_among_instances_each_with_options_of_its_own(
    isolation: str, num_workers: int
) -> None:
    envs = load(
        isolation=isolation,
        num_envs=5,
        num_workers=num_workers,
        options=lambda instance: {"episode": instance},
    )
    ranges = [range(5 * k // num_workers, 5 * (k + 1) // num_workers) for k in range(num_workers)]
    # An env's number within its instance, and the instance.
    place = [(e, k) for k, slots in enumerate(ranges) for e in range(len(slots))]
    grid = envs.reset()[0]["grid"][:, 0, 0]
    assert grid.tolist() == [(100 * e + 10 * k) % 256 for e, k in place]
    for t in range(1, 12):
        observations, _, ended, _, infos = envs.step(actions(5))
        assert observations["count"].tolist() == [5 + t % (e + 2) for e, _ in place]
        assert ended.tolist() == [t % (e + 2) == 0 for e, _ in place]
        assert infos["total"].tolist() == [t] * 5
    envs.close()


def test_more_instances_than_envs_are_refused() -> None:
    with pytest.raises(errors.ArgumentError, match="num_workers is 3"):
        load(num_workers=3)


def test_instances_in_processes_are_served_as_they_are_done() -> None:
    envs = load(isolation="process", num_envs=4, num_workers=2, batch_size=2, timeout=LONG)
    envs.async_reset()
    totals = np.zeros(4, np.int64)
    for _ in range(20):
        *_, infos = envs.recv()
        ids = infos["env_id"]
        assert ids.tolist() in ([0, 1], [2, 3])
        assert_same(infos["total"].astype(np.int64), totals[ids])
        totals[ids] += 1
        envs.send(actions(2), ids)
    envs.drain()
    with pytest.raises(errors.UnsupportedError, match="cannot step or reset some envs"):
        envs.send(actions(2), [1, 2])
    envs.close()
    with pytest.raises(errors.UnsupportedError, match="batch_size is 3"):
        load(isolation="process", num_envs=4, num_workers=2, batch_size=3)


@isolations
def test_layers_and_statistics_work_on_it(isolation: str) -> None:
    envs = load(isolation=isolation, episode_statistics=True, frame_stack=2)
    assert envs.reset()[0]["count"].tolist() == [[5, 5], [5, 5]]
    envs.step(actions(2))
    observations, *_, infos = envs.step(actions(2))
    assert observations["count"].tolist() == [[5, 5], [6, 7]]
    assert infos["_episode"].tolist() == [True, False]
    assert infos["episode"]["r"][0] == 2.0
    assert infos["episode"]["l"][0] == 2
    envs.close()


# What a library of ours can do beyond.


@isolations
def test_a_library_of_ours_tells_terminated_from_truncated_and_shows_finals(isolation: str) -> None:
    envs = opened(*OURS, isolation=isolation)
    given = actions(2, push=[[0.5, 0], [0.25, 0]])
    envs.step(given)
    observations, _, terminated, truncated, infos = envs.step(given)
    assert observations["count"].tolist() == [5, 7]
    assert (terminated.tolist(), truncated.tolist()) == ([True, False], [False, False])
    final = infos["final_obs"][0]
    assert infos["_final_obs"].tolist() == [True, False]
    assert infos["final_obs"][1] is None
    assert_same(final["count"], np.int32(7))
    assert_same(final["grid"], np.array([[2, 3, 4], [5, 6, 7]], np.uint8))
    assert_same(final["pos"], np.float32(1.0))
    *_, terminated, truncated, infos = envs.step(given)
    assert (terminated.tolist(), truncated.tolist()) == ([False, False], [False, True])
    assert_same(infos["final_obs"][1]["pos"], np.float32(0.75))
    assert infos["final_info"]["total"].tolist() == [0, 3]
    shown = {"total", "pushed", "final_obs", "final_info"}
    assert {name.lstrip("_") for name in infos} == shown
    envs.close()


@isolations
def test_a_library_of_ours_begins_by_env_seed_and_index(isolation: str) -> None:
    envs = load(*OURS, isolation=isolation, num_envs=3, seed=4)

    def grid(observations: Any) -> list[int]:
        # At t = 0: ten times the episode's number, and a hundred times the env's.
        return [(int(g) - 100 * e) % 256 for e, g in enumerate(observations["grid"][:, 0, 0])]

    assert grid(envs.reset()[0]) == [40, 50, 60]
    assert grid(envs.reset()[0]) == [50, 60, 70]
    assert grid(envs.reset(seed=[1, 2, 3])[0]) == [10, 20, 30]
    assert grid(envs.reset(options={"index": [0, 1, 5]})[0]) == [0, 10, 50]
    envs.step(actions(3))
    mask = np.array([True, False, True])
    observations, _ = envs.reset(options={"reset_mask": mask})
    assert observations["count"].tolist() == [5, 6, 5]
    # The others go on where they were: env 1 ends its episode of 3 steps after two more.
    assert envs.step(actions(3))[0]["count"].tolist() == [6, 7, 6]
    assert envs.step(actions(3))[3].tolist() == [False, True, False]
    envs.close()


@isolations
def test_a_seed_that_no_option_holds_is_told_by_env(isolation: str) -> None:
    envs = load(*OURS, isolation=isolation, num_envs=2, seed=1 << 31)
    observations, _ = envs.reset()
    assert observations["grid"][:, 0, 0].tolist() == [0, (100 + 10 * ((1 << 31) + 1)) % 256]
    envs.close()
    with pytest.raises(errors.OptionValueError, match="seed is given twice"):
        load(*OURS, isolation=isolation, seed=1, options={"seed": 2})


@isolations
@pytest.mark.parametrize("on_failure", ["restart", "mask"])
def test_an_env_whose_reset_fails_says_that_the_others_wait_for_it(
    isolation: str, on_failure: str
) -> None:
    # There is no level 13.
    envs = load(*OURS, isolation=isolation, num_envs=3, on_failure=on_failure, max_restarts=2)
    infos = envs.reset(options={"index": 12})[1]
    assert infos["_failed"].tolist() == [False, True, False]
    assert infos["failed"][1].message == "there is no level 13"
    with pytest.raises(errors.ResetNeededError, match=r"env 1 failed earlier, .*: reset it"):
        envs.step(actions(3))
    envs.reset(options={"index": [1, 2, 3], "reset_mask": np.array([False, True, False])})
    envs.step(actions(3))
    envs.close()


@isolations
def test_an_index_may_be_told_beforehand(isolation: str) -> None:
    envs = opened(*OURS, isolation=isolation)
    envs.native.set_next_index(0, 7)
    envs.step(actions(2))
    observations, _, ended, _, infos = envs.step(actions(2))
    assert ended.tolist() == [True, False]
    assert observations["grid"][0, 0, 0] == 70
    assert infos["final_obs"][0]["grid"][0, 0] == 2
    envs.close()


@isolations
@pytest.mark.parametrize("size", [64, 3 << 20])
def test_states_are_saved_and_loaded_however_large(isolation: str, size: int) -> None:
    envs = opened("OURS", f"STATES={size}", isolation=isolation)
    counts(envs, 1)
    state = envs.save_state()
    after = counts(envs, 6)
    envs.load_state(state)
    assert envs.observe()["count"].tolist() == [6, 6]
    assert counts(envs, 6) == after
    other = load("OURS", f"STATES={size}", isolation=isolation)
    other.load_state(state)
    assert counts(other, 6) == after
    envs.close(), other.close()


@isolations
def test_what_a_library_of_ours_says_of_a_reset_is_the_slots_failure(isolation: str) -> None:
    envs = opened(*OURS, isolation=isolation)
    with pytest.raises(errors.EnvError, match="env 1 failed in reset: there is no level") as raised:
        envs.reset(options={"index": [5, 13]})
    assert [failure.slot for failure in raised.value.failures] == [1]
    with pytest.raises(errors.ResetNeededError):
        counts(envs)
    observations, _ = envs.reset(options={"reset_mask": np.array([False, True])})
    assert observations["grid"][0, 0, 0] == 50
    assert counts(envs) == [[6, 6]]
    envs.close()


@isolations
def test_what_a_library_of_ours_says_of_a_step_is_the_failure_of_all(isolation: str) -> None:
    envs = opened(*OURS, "FAULT=FAILS_IN_ACT", isolation=isolation)
    counts(envs)
    with pytest.raises(errors.EnvError, match="libenv_act failed: the floor gave way") as raised:
        counts(envs)
    assert [(f.slot, f.phase, f.cause) for f in raised.value.failures] == [
        (0, "step", "instance"),
        (1, "step", "instance"),
    ]
    with pytest.raises(errors.ResetNeededError):
        counts(envs)
    _, infos = envs.reset()
    assert infos["restarted"].tolist() == [True, True]
    assert counts(envs) == [[6, 6]]
    envs.close()


@isolations
def test_failing_instances_are_restarted_if_asked_for(isolation: str) -> None:
    envs = opened("FAULT=COUNT_TOO_HIGH", isolation=isolation, on_failure="restart")
    assert counts(envs) == [[6, 6]]
    observations, _, _, truncated, infos = envs.step(actions(2))
    assert observations["count"].tolist() == [5, 5]
    assert truncated.tolist() == [True, True]
    assert infos["_failed"].tolist() == [True, True]
    assert counts(envs) == [[6, 6]]
    envs.close()


def test_isolation_is_chosen_by_who_exported_it() -> None:
    ours, foreign = load("OURS"), load()
    assert (len(_pids_of(ours)), len(_pids_of(foreign))) == (0, 1)
    ours.close(), foreign.close()


# Faults in what a library says of itself.

LAYOUT = [
    ("WRONG_VERSION", errors.LibraryError, "libenv version 3, and only version 1"),
    ("NULL_MAKE", errors.EnvError, "libenv_make gave no instance (NULL)"),
    ("NEGATIVE_COUNT", errors.SpaceError, "observation space: -1 leaves"),
    ("HUGE_COUNT", errors.SpaceError, "observation space: 1073741824 leaves"),
    ("CHANGING_COUNT", errors.SpaceError, "its number of leaves changes: 4, then 3"),
    ("MORE_THAN_COUNTED", errors.SpaceError, "wrote more than the 4 leaves that it announced"),
    ("UNWRITTEN_LEAF", errors.SpaceError, "leaf 3: its name does not end within 128 bytes"),
    ("NO_ACTIONS", errors.SpaceError, "its action space has no leaves"),
    ("ENDLESS_NAME", errors.SpaceError, "leaf 1: its name does not end within 128 bytes"),
    ("EMPTY_NAME", errors.SpaceError, "leaf 1: it has no name"),
    ("SAME_NAMES", errors.SpaceError, "leaf 'count': its name clashes with 'count'"),
    ("NAME_NO_UTF8", errors.SpaceError, "leaf 1: its name is no UTF-8"),
    ("BAD_DTYPE", errors.SpaceError, "leaf 'grid': dtype 9 is none of"),
    ("BAD_SCALAR_TYPE", errors.SpaceError, "leaf 'grid': scalar type 0 is neither"),
    ("REAL_UINT8", errors.SpaceError, "leaf 'grid': it is real and of uint8"),
    ("DISCRETE_FLOAT", errors.SpaceError, "leaf 'pos': it is discrete and of float32"),
    ("MANY_AXES", errors.SpaceError, "leaf 'grid': 17 axes"),
    ("NEGATIVE_AXES", errors.SpaceError, "leaf 'grid': -1 axes"),
    ("NEGATIVE_EXTENT", errors.SpaceError, "leaf 'grid': shape [2, -3] has a negative extent"),
    ("HUGE_SHAPE", errors.SpaceError, "leaf 'grid': shape ["),
    ("CROSSED_BOUNDS", errors.SpaceError, "leaf 'count': low 15 is not below high 14"),
    ("CROSSED_REAL_BOUNDS", errors.SpaceError, "leaf 'pos': low 1.0 is not below high -1.0"),
]


@isolations
@pytest.mark.parametrize(("fault", "kind", "words"), LAYOUT, ids=[f for f, *_ in LAYOUT])
def test_what_makes_no_sense_is_an_error_that_says_where(
    fault: str, kind: type[Exception], words: str, isolation: str
) -> None:
    library = compiled(f"FAULT={fault}")
    with pytest.raises(kind, match=re.escape(words)) as raised:
        corral.load_libenv(library, 2, isolation=isolation)
    assert str(library) in str(raised.value)


SYMBOLS = ("version", "make", "get_tensortypes", "set_buffers", "observe", "act", "close")


@isolations
@pytest.mark.parametrize("symbol", SYMBOLS)
def test_a_missing_function_is_named(symbol: str, isolation: str) -> None:
    with pytest.raises(errors.LibraryError, match=f"has no function libenv_{symbol}:"):
        load(f"WITHOUT_libenv_{symbol}", isolation=isolation)


@isolations
def test_what_is_no_library_is_refused(tmp_path: Path, isolation: str) -> None:
    with pytest.raises(errors.LibraryError, match="cannot be read"):
        corral.load_libenv(tmp_path / "none.so", isolation=isolation)
    text = tmp_path / "text.so"
    text.write_text("not an ELF file")
    with pytest.raises(errors.LibraryError, match="no shared library"):
        corral.load_libenv(text, isolation=isolation)


@isolations
def test_a_library_of_ours_says_why_it_makes_nothing(isolation: str) -> None:
    with pytest.raises(errors.EnvError, match=r"NULL.*it says: there is no room"):
        load("OURS", "FAULT=NULL_MAKE", isolation=isolation)
    with pytest.raises(errors.EnvError, match="libenv_make failed: no such level"):
        load("OURS", "FAULT=FAILS_IN_MAKE", isolation=isolation)


# Faults in what it shows.


@isolations
@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("BAD_FIRST", "env 1 of it: first is 7"),
        ("COUNT_TOO_HIGH", "env 1 of it: observation 'count' has 15, and it is from 5 to 14"),
        ("COUNT_TOO_LOW", "env 1 of it: observation 'count' has 4, and it is from 5 to 14"),
        ("BITS_TOO_HIGH", "env 1 of it: observation 'bits' has 2, and it is from 0 to 1"),
    ],
)
def test_what_lies_outside_its_bounds_is_a_failure_of_the_instance(
    fault: str, words: str, isolation: str
) -> None:
    envs = opened(f"FAULT={fault}", isolation=isolation)
    assert counts(envs) == [[6, 6]]
    with pytest.raises(errors.EnvError, match=words) as raised:
        counts(envs)
    assert [failure.slot for failure in raised.value.failures] == [0, 1]
    assert fault in str(raised.value)
    with pytest.raises(errors.ResetNeededError):
        counts(envs)
    assert envs.reset()[0]["count"].tolist() == [5, 5]
    assert counts(envs) == [[6, 6]]
    envs.close()


@isolations
def test_a_reset_that_cannot_make_the_envs_anew_is_told_of_all_and_may_be_tried_again(
    isolation: str,
) -> None:
    envs = opened("FAULT=SECOND_MAKE_FAILS", isolation=isolation)
    with pytest.raises(errors.EnvError, match="gave no instance") as raised:
        envs.reset()
    assert [failure.slot for failure in raised.value.failures] == [0, 1]
    assert envs.reset()[0]["count"].tolist() == [5, 5]
    envs.close()


@isolations
def test_other_spaces_at_a_second_make_are_refused(isolation: str) -> None:
    envs = opened("FAULT=OTHER_SPACES_AT_SECOND_MAKE", isolation=isolation)
    with pytest.raises(errors.EnvError, match="its observation space is another"):
        envs.reset()
    envs.close()


# Faults that end a process: the worker's.

ENDS = {
    "EXIT": "exited with code 1",
    "ABORT": "was killed by signal 6 (SIGABRT)",
    "CRASH": "was killed by signal 11 (SIGSEGV)",
}


@pytest.mark.parametrize("how", ENDS)
def test_a_library_that_ends_its_process_in_make_is_an_error_with_its_last_words(how: str) -> None:
    library = compiled(f"FAULT={how}_IN_MAKE")
    with pytest.raises(errors.EnvError) as raised:
        corral.load_libenv(library, 2)
    for words in (str(library), ENDS[how], "last words: make fails now"):
        assert words in str(raised.value)


@pytest.mark.parametrize("where", ["act", "observe"])
@pytest.mark.parametrize("how", ENDS)
def test_a_library_that_ends_its_process_at_work_costs_its_own_envs(how: str, where: str) -> None:
    fault = f"FAULT={how}_IN_{where.upper()}"
    envs = opened(fault, num_envs=4, num_workers=2)
    assert counts(envs) == [[6, 6, 6, 6]]
    with pytest.raises(errors.EnvError) as raised:
        counts(envs)
    assert {failure.cause for failure in raised.value.failures} == {"death"}
    for words in (str(compiled(fault)), ENDS[how], f"last words: {where} fails now"):
        assert words in str(raised.value)
    _, infos = envs.reset()
    assert infos["restarted"].all()
    assert counts(envs) == [[6, 6, 6, 6]]
    envs.close()


def test_a_make_without_end_is_ended() -> None:
    library = compiled("FAULT=ENDLESS_MAKE")
    told = ""
    # On a busy machine a worker needs longer to come as far as its last words.
    for seconds in (2, 10, 40):
        with pytest.raises(errors.EnvError, match=rf"within {seconds}s \(make_timeout\)") as raised:
            corral.load_libenv(library, 2, make_timeout=float(seconds))
        told = str(raised.value)
        assert str(library) in told
        if "last words" in told:
            break
    assert "last words: make fails now" in told


def test_an_act_without_end_is_ended_after_the_timeout() -> None:
    envs = opened("FAULT=ENDLESS_ACT", num_envs=4, num_workers=2, timeout=1.0)
    counts(envs)
    with pytest.raises(errors.EnvError) as raised:
        counts(envs)
    assert "gave no answer within 1s (timeout)" in str(raised.value)
    assert envs.reset()[0]["count"].tolist() == [5, 5, 5, 5]
    envs.close()


def test_a_worker_that_is_killed_costs_its_instance_and_a_reset_brings_it_back() -> None:
    envs = opened(num_envs=4, num_workers=2)
    counts(envs)
    (_, victim) = sorted(_pids_of(envs))
    os.kill(victim, signal.SIGKILL)
    with pytest.raises(errors.EnvError, match="signal 9") as raised:
        counts(envs)
    lost = [failure.slot for failure in raised.value.failures]
    assert lost in ([0, 1], [2, 3])
    batch = raised.value.batch
    assert batch is not None
    assert batch[0]["count"][[slot for slot in range(4) if slot not in lost]].tolist() == [5, 7]
    with pytest.raises(errors.ResetNeededError):
        counts(envs)
    envs.reset()
    assert counts(envs) == [[6, 6, 6, 6]]
    envs.close()


def test_a_worker_that_is_killed_is_restarted_if_asked_for() -> None:
    envs = opened(num_envs=4, num_workers=2, on_failure="restart")
    counts(envs)
    os.kill(sorted(_pids_of(envs))[0], signal.SIGKILL)
    observations, _, _, truncated, infos = envs.step(actions(4))
    failed = infos["_failed"]
    assert sorted([failed[:2].all(), failed[2:].all()]) == [False, True]
    assert_same(truncated, failed)
    assert observations["count"][~failed].tolist() == [5, 7]
    assert observations["count"][failed].tolist() == [5, 5]
    expected = [[6, 6, 6, 5], [5, 7, 5, 6]] if failed[0] else [[6, 5, 6, 6], [5, 6, 5, 7]]
    assert counts(envs, 2) == expected
    envs.close()


def _pids_of(envs: Any) -> list[int]:
    """The worker processes: children of this one that hold the library."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            parent = int(process.joinpath("stat").read_text().rpartition(")")[2].split()[1])
            if parent == os.getpid() and envs.native.id in process.joinpath("maps").read_text():
                found.append(int(process.name))
        except (OSError, ValueError):
            continue
    return found


def test_in_this_process_a_crash_is_the_programs_own() -> None:
    """By nature: which is why unknown libraries are loaded in a worker."""
    library = compiled("FAULT=EXIT_IN_MAKE")
    code = f"import corral; corral.load_libenv({str(library)!r}, 2, isolation='thread')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 1
    assert "last words" in done.stderr


def test_dropped_envs_leave_no_process_behind() -> None:
    envs = opened(num_envs=4, num_workers=2)
    pids = _pids_of(envs)
    assert len(pids) == 2
    del envs
    assert not [pid for pid in pids if Path(f"/proc/{pid}").exists()]
