"""`corral.load_env_c_api` over an environment in C that uses every corner of the interface, and
that fails in every way: `c/corners_env.c`."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import corral
from corral import errors
from corral.checking import check_library
from tests.abi.test_headers import ENV_C_API_FUNCTIONS, INCLUDE

SOURCE = Path(__file__).parent / "c" / "corners_env.c"
ISOLATIONS = ("thread", "copy", "process")
Compile = Callable[..., Path]


@pytest.fixture(scope="session")
def compile_corners(tmp_path_factory: pytest.TempPathFactory) -> Compile:
    """Compiles the environment with these definitions, once."""
    folder = tmp_path_factory.mktemp("corners")

    def compile(*flags: str) -> Path:
        library = folder / f"corners{''.join(flags).replace('=', '')}.so"
        if not library.exists():
            command = ["gcc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
            defined = [f"-D{flag}" for flag in flags]
            files = ["-I", INCLUDE, SOURCE, "-o", library]
            subprocess.run([*command, *defined, *files], check=True)
        return library

    return compile


@pytest.fixture(scope="session")
def corners(compile_corners: Compile) -> Path:
    return compile_corners()


def load(path: Path, num_envs: int = 1, **more: Any) -> corral.VectorEnv:
    more.setdefault("isolation", "thread")
    if more["isolation"] == "process":
        more.setdefault("num_workers", 1)
    return corral.load_env_c_api(path, num_envs, **more)


def action(n: int, move: int = 0, jump: int = 0, force: float = 0.0, say: str = "") -> Any:
    return {
        "MOVE": np.full(n, move),
        "JUMP": np.full(n, jump),
        "FORCE": np.full(n, force),
        "SAY": (say,) * n,
    }


def events(infos: dict[str, Any], env: int) -> list[Any]:
    told = infos.get("events")
    return [] if told is None or told[env] is None else told[env]


@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_every_corner_arrives_as_the_library_shows_it(corners: Path, isolation: str) -> None:
    envs = load(corners, 2, isolation=isolation, settings={"length": 3})
    assert envs.metadata["environment_name"] == "corners"
    assert envs.metadata["fps"] == 30
    single = envs.single_action_space
    assert (single["MOVE"].start, single["MOVE"].n, single["JUMP"].n) == (-1, 3, 2)
    assert (single["FORCE"].low, single["FORCE"].high) == (-2, 2)
    observations, infos = envs.reset(seed=40)
    assert observations["STATE"].tolist() == [[0, 40, 0], [0, 41, 0]]
    assert observations["CHANGING"][1].shape == (0, 2)
    assert events(infos, 1) == [["began", [np.array([0.0])]]]
    ended = None
    for step in range(1, 4):
        played = envs.step(action(2, move=-1, jump=1, force=0.25, say="süß"))
        observations, rewards, terminated, truncated, infos = played
        assert rewards.tolist() == [9.25, 9.25]
        assert observations["STATE"][:, 2].tolist() == [step, step]
        pixels = np.arange(18, dtype=np.uint8).reshape(2, 3, 3) + step
        np.testing.assert_array_equal(observations["pixels.rgb"][0], pixels)
        changing = observations["CHANGING"][0]
        assert changing.dtype == np.float64
        assert changing.tolist() == [[step, step + 0.1], [step + 0.2, step + 0.3]][: step % 3]
        assert observations["ROWS"][0].shape == (step % 4, 2)
        says = observations["SAYS"][0].encode(errors="surrogateescape")
        assert says == (b"\xff\xfestep" if step == 2 else b"step %d" % step)
        told = [["said", ["süß"]], *([["third", []]] if step == 3 else [])]
        assert events(infos, 0) == told
        ended = (terminated.tolist(), truncated.tolist())
    # Episode 0 ends terminated, episode 1 interrupted.
    assert ended == ([True, True], [False, False])
    assert envs.step(action(2))[0]["STATE"][:, 0].tolist() == [1, 1]
    for _ in range(3):
        observations, _, terminated, truncated, _ = envs.step(action(2))
    assert (terminated.tolist(), truncated.tolist()) == ([False, False], [True, True])
    envs.close()


@pytest.mark.parametrize("mode", ["next_step", "same_step", "disabled"])
def test_all_autoreset_modes_and_send_and_recv_work(corners: Path, mode: str) -> None:
    envs = load(corners, 4, autoreset_mode=mode, batch_size=2, settings={"length": 2})
    envs.reset(seed=1)
    envs.send(action(4))
    seen = set()
    for _ in range(2):
        _, _, _, _, infos = envs.recv()
        seen.update(infos["env_id"].tolist())
    assert seen == {0, 1, 2, 3}
    envs.close()
    envs = load(corners, 2, autoreset_mode=mode, settings={"length": 2})
    envs.reset(seed=1)
    envs.step(action(2))
    observations, _, terminated, _, infos = envs.step(action(2))
    assert terminated.all()
    if mode == "same_step":
        assert [final["STATE"][2] for final in infos["final_obs"]] == [2, 2]
        assert observations["STATE"][:, 2].tolist() == [0, 0]
    else:
        assert observations["STATE"][:, 2].tolist() == [2, 2]
    if mode == "disabled":
        with pytest.raises(errors.ResetNeededError):
            envs.step(action(2))
    envs.close()


def test_seeds_and_indices_are_told_to_start_by_the_written_rule(corners: Path) -> None:
    def seed_of(seed: int, episode: int) -> int:
        return int(np.random.SeedSequence([seed, episode]).generate_state(1)[0]) >> 1

    envs = load(corners, 2, settings={"length": 1})
    large = 2**31
    state = envs.reset(seed=[7, large])[0]["STATE"]
    assert state[:, :2].tolist() == [[0, 7], [0, seed_of(large, 0)]]
    for episode in range(1, 4):
        envs.step(action(2))
        state = envs.step(action(2))[0]["STATE"]
        expected = [[episode, seed_of(7, episode)], [episode, seed_of(large, episode)]]
        assert state[:, :2].tolist() == expected
    # An index leaves the stream where it was.
    state = envs.reset(options={"index": [12, 9]})[0]["STATE"]
    assert state[:, :2].tolist() == [[12, 12], [9, 9]]
    envs.step(action(2))
    assert envs.step(action(2))[0]["STATE"][0].tolist() == [4, seed_of(7, 4), 0]
    with pytest.raises(errors.EnvError, match="index 2147483648 is too large"):
        envs.reset(options={"index": [2**31, 0]})
    envs.close()


@pytest.mark.parametrize("isolation", ["thread", "process"])
def test_properties_are_a_mapping_before_the_first_reset_too(corners: Path, isolation: str) -> None:
    envs = load(corners, 3, isolation=isolation)
    properties = envs.properties(1)
    assert dict(properties) == {"speed": "1.5", "level.name": "corners", "level.seed": "0"}
    assert list(properties.list()) == ["level", "speed", "secret"]
    assert properties.attributes("speed") == corral.Attributes(True, True, False)
    assert properties.attributes("secret") == corral.Attributes(False, True, False)
    assert properties.list("level") == {
        "level.name": corral.Attributes(True, False, False),
        "level.seed": corral.Attributes(True, False, False),
    }
    assert set(properties.list(recursive=True)) == {
        "level",
        "level.name",
        "level.seed",
        "speed",
        "secret",
    }
    properties["speed"] = 2.5
    assert properties["speed"] == "2.5"
    assert envs.properties(0)["speed"] == "1.5"
    properties["secret"] = "whatever"
    envs.reset(seed=30)
    assert properties["level.seed"] == "31"
    with pytest.raises(KeyError, match="'nope'"):
        properties["nope"]
    with pytest.raises(KeyError, match="'nope'"):
        properties["nope"] = 1
    with pytest.raises(KeyError, match="'nope'"):
        properties.list("nope")
    with pytest.raises(PermissionError, match="'secret' cannot be read"):
        properties["secret"]
    with pytest.raises(PermissionError, match=r"'level\.name' cannot be written"):
        properties["level.name"] = "x"
    with pytest.raises(PermissionError, match="'speed' cannot be listed"):
        properties.list("speed")
    with pytest.raises(PermissionError):
        del properties["speed"]
    with pytest.raises(ValueError, match="'speed' does not take 'fast'"):
        properties["speed"] = "fast"
    with pytest.raises(ValueError, match="NUL"):
        properties["speed"] = "1\x002"
    with pytest.raises(ValueError, match="there is no env 3"):
        envs.properties(3)
    envs.close()


def test_properties_of_an_env_in_rust_are_a_mapping_too() -> None:
    envs = corral.make_vec("testing/Caller-v0", 2)
    names = set(envs.list_attr()[0])
    properties = envs.properties(0)
    assert set(properties) == names
    assert all(properties[name] == envs.get_attr(name)[0] for name in names)
    with pytest.raises(KeyError):
        properties["nope"]
    envs.close()
    plain = corral.make_vec("CartPole-v1", 1)
    with pytest.raises(errors.UnsupportedError):
        plain.properties(0)["nope"]
    plain.close()


def test_observations_of_changing_shape_are_padded_on_request(corners: Path) -> None:
    envs = load(corners, 2, max_shape={"CHANGING": (3, 4), "ROWS": [4, 2]})
    assert envs.single_observation_space["CHANGING"].shape == (3, 4)
    observations, _ = envs.reset(seed=1)
    assert observations["CHANGING_shape"].tolist() == [[0, 2], [0, 2]]
    observations = envs.step(action(2))[0]
    observations = envs.step(action(2))[0]
    expected = np.zeros((3, 4))
    expected[:2, :2] = [[2.0, 2.1], [2.2, 2.3]]
    np.testing.assert_array_equal(observations["CHANGING"][1], expected)
    assert observations["CHANGING_shape"][1].tolist() == [2, 2]
    assert observations["ROWS"][0].tolist() == [[20, 21], [22, 23], [0, 0], [0, 0]]
    envs.close()
    narrow = load(corners, 1, max_shape={"CHANGING": (1, 4)})
    narrow.reset(seed=1)
    narrow.step(action(1))
    with pytest.raises(errors.EnvError, match=r"\[2, 2\], which is not within max_shape \[1, 4\]"):
        narrow.step(action(1))
    narrow.close()
    with pytest.raises(errors.ArgumentError, match="there is no observation 'NOPE'"):
        load(corners, 1, max_shape={"NOPE": (1,)})


@pytest.mark.parametrize("single_steps", [False, True])
def test_an_action_is_applied_for_several_steps_and_ends_with_the_episode(
    corners: Path, single_steps: bool
) -> None:
    settings = {"length": 5, "single_steps": single_steps}
    envs = load(corners, 2, steps_per_action=3, settings=settings)
    envs.reset(seed=5)
    observations, rewards, terminated, _, _ = envs.step(action(2, move=1))
    assert observations["STATE"].tolist() == [[0, 5, 3], [0, 6, 3]]
    assert rewards.tolist() == [3, 3]
    observations, rewards, terminated, _, _ = envs.step(action(2, move=1))
    assert (observations["STATE"][0, 2], rewards[0], terminated[0]) == (5, 2, True)
    envs.close()


@pytest.mark.parametrize("mode", ["next_step", "same_step"])
def test_a_strict_library_is_not_looked_at_after_the_end(corners: Path, mode: str) -> None:
    envs = load(
        corners,
        2,
        isolation="process",
        final_obs="strict",
        autoreset_mode=mode,
        settings={"length": 2, "strict": True},
        max_shape={"ROWS": (4, 2)},
    )
    envs.reset(seed=1)
    before, _, _, _, infos = envs.step(action(2))
    assert not infos.get("_observation_repeated", np.zeros(2)).any()
    observations, _, terminated, _, infos = envs.step(action(2))
    assert terminated.all()
    if mode == "same_step":
        observations = {
            name: [final[name] for final in infos["final_obs"]] for name in observations
        }
        infos = infos["final_info"]
    assert infos["observation_repeated"].tolist() == [True, True]
    for name in before:
        for ours, theirs in zip(observations[name], before[name]):
            np.testing.assert_array_equal(ours, theirs)
    envs.close()


def test_a_strict_env_that_is_kept_after_its_end_repeats_its_observation_too(
    corners: Path,
) -> None:
    envs = load(
        corners,
        2,
        isolation="process",
        final_obs="strict",
        autoreset_mode="disabled",
        settings_per_env=[{"length": 2, "strict": True}, {"length": 9, "strict": True}],
    )
    envs.reset(seed=1)
    envs.step(action(2))
    ended = envs.step(action(2))[0]
    kept = envs.reset(seed=8, options={"reset_mask": np.array([False, True])})[0]
    assert kept["STATE"].tolist() == [ended["STATE"][0].tolist(), [0, 9, 0]]
    assert kept["STATE"][0].tolist() == [0, 1, 1]
    envs.close()


def test_a_library_that_forbids_looks_after_the_end_ends_its_worker_where_it_is_read(
    corners: Path,
) -> None:
    settings = {"length": 1, "strict": True}
    envs = load(corners, 1, isolation="process", settings=settings)
    envs.reset(seed=1)
    with pytest.raises(errors.EnvError, match="looked at after the end"):
        envs.step(action(1))
    envs.close()


def test_integers_and_scalars_of_version_2_arrive(compile_corners: Compile) -> None:
    envs = load(compile_corners("VERSION_2"), 2, settings={"length": 2})
    assert "fps" not in envs.metadata
    observations, _ = envs.reset(seed=3)
    observations = envs.step(action(2))[0]
    assert observations["INTS"].dtype == np.int32
    assert observations["INTS"].tolist() == [[-1, 2**31 - 1]] * 2
    assert observations["LONG"].dtype == np.int64
    assert observations["LONG"].tolist() == [5_000_000_001] * 2
    assert observations["DYNAMIC"][0].tolist() == [[1, 1.1]]
    assert observations["STATE"].tolist() == [[0, 3, 1], [0, 4, 1]]
    envs.close()


@pytest.mark.parametrize("isolation", ["copy", "process"])
def test_a_library_that_bears_one_context_is_had_in_batches(
    compile_corners: Compile, isolation: str
) -> None:
    path = compile_corners("ONE_CONTEXT")
    with pytest.raises(errors.LibraryError, match='isolation="copy"'):
        load(path, 2)
    # Contexts of the failed attempt are released.
    more = {"num_workers": 3} if isolation == "process" else {}
    envs = load(path, 3, isolation=isolation, **more)
    assert envs.reset(seed=5)[0]["STATE"][:, 1].tolist() == [5, 6, 7]
    envs.close()


def test_params_lead_the_arguments_of_connect(compile_corners: Compile) -> None:
    path = compile_corners("WITH_PARAMS")
    envs = load(path, 1, params="/run/files")
    assert envs.reset(seed=2)[0]["STATE"][0, 1] == 2
    envs.close()
    with pytest.raises(errors.LibraryError, match=r"corners_connect failed \(with 3\)"):
        load(path, 1, params="/elsewhere")


def test_a_library_without_actions_is_not_handed_empty_lists(corners: Path) -> None:
    envs = load(corners, 2, isolation="process", settings={"actions": "none"})
    assert len(envs.single_action_space) == 0
    envs.reset(seed=1)
    assert envs.step({})[0]["STATE"][0, 2] == 1
    envs.close()


def test_settings_may_differ_by_env(corners: Path) -> None:
    each = [{"length": 1}, {"length": 3}]
    for isolation, more in (("thread", {}), ("process", {"num_workers": 2})):
        for per_env in (each, lambda env: each[env]):
            envs = load(corners, 2, isolation=isolation, settings_per_env=per_env, **more)
            envs.reset(seed=1)
            assert envs.step(action(2))[2].tolist() == [True, False]
            envs.close()
    with pytest.raises(errors.SpaceError, match="env 1 are others than those of env 0"):
        load(corners, 2, settings_per_env=[{}, {"actions": "none"}])
    with pytest.raises(errors.ArgumentError, match="has 1 dicts for 2 envs"):
        load(corners, 2, settings_per_env=[{}])


def test_an_action_outside_of_its_bounds_never_reaches_the_library(corners: Path) -> None:
    envs = load(corners, 1, isolation="process")
    envs.reset(seed=1)
    # The library aborts at what is outside.
    assert envs.step(action(1, force=1e9))[1].tolist() == [2]
    with pytest.raises(errors.InvalidActionError):
        envs.step(action(1, move=2))
    with pytest.raises(errors.EnvError, match="has a NUL in it"):
        envs.step(action(1, say="a\0b"))
    envs.close()
    envs = load(corners, 1, isolation="process", action_bounds="unchecked")
    envs.reset(seed=1)
    with pytest.raises(errors.EnvError, match="discrete action 0 is 2, and the library takes -1"):
        envs.step(action(1, move=2))
    envs.reset(seed=1)
    with pytest.raises(errors.EnvError, match="continuous action 0 is NaN"):
        envs.step(action(1, force=float("nan")))
    envs.close()


@pytest.mark.parametrize(
    ("flags", "more", "words"),
    [
        (["NO_CONNECT"], {}, "no function whose name ends with _connect"),
        (["NO_CONNECT"], {"connect": "corners_connect"}, "has no function 'corners_connect'"),
        (["TWO_CONNECTS"], {}, "connect= one of .*corners_connect"),
        (["FAILING_CONNECT"], {}, r"corners_connect failed \(with 42\)"),
        (["VERSION_2", "FUNCTIONS=30"], {}, "it filled in 30 functions"),
        (["FUNCTIONS=5"], {}, "it filled in 5 functions"),
        (["FUNCTIONS=35"], {}, "it filled in 35 functions"),
    ],
)
def test_what_is_no_such_library_says_what_was_found(
    compile_corners: Compile, flags: list[str], more: dict[str, Any], words: str
) -> None:
    with pytest.raises(errors.LibraryError, match=words):
        load(compile_corners(*flags), 1, **more)


def test_one_of_two_entrances_can_be_named(compile_corners: Compile) -> None:
    envs = load(compile_corners("TWO_CONNECTS"), 1, connect="other_connect")
    envs.reset(seed=1)
    envs.close()


def test_a_file_that_is_not_there_or_no_library_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(errors.LibraryError, match="cannot be read"):
        load(tmp_path / "none.so")
    (tmp_path / "text.so").write_text("text")
    for isolation in ISOLATIONS:
        with pytest.raises(errors.LibraryError, match=r"text\.so"):
            load(tmp_path / "text.so", isolation=isolation)


FAULTS_AT_MAKING = [
    ("setting", errors.OptionValueError, "setting 'fault' cannot be 'setting': the setting f"),
    ("setting_silent", errors.OptionValueError, "'setting_silent' and gave no reason"),
    ("init", errors.EnvError, r"init failed \(with 1\): the init fails on demand"),
    ("init_silent", errors.EnvError, r"init failed \(with 1\) and gave no reason"),
    ("crossed_bounds", errors.SpaceError, "discrete action 'MOVE' is from -1 to -2"),
    ("nan_bounds", errors.SpaceError, "continuous action 'FORCE' is from -2 to NaN"),
    ("same_names", errors.SpaceError, "two of its actions are called 'MOVE'"),
    ("null_name", errors.SpaceError, r"discrete action 0 has no name \(NULL\)"),
    ("name_not_utf8", errors.SpaceError, "the name of observation 0 is not UTF-8"),
    ("negative_count", errors.SpaceError, "its number of observations is -3"),
    ("negative_spec", errors.SpaceError, "observation 'STATE': an axis of -3"),
    ("huge_spec", errors.SpaceError, "too large"),
    ("unknown_type", errors.SpaceError, "observation 'STATE': its type is 9"),
]
# Three kinds of error that cross from a worker; the others take the same path.
CROSSING = [fault for fault in FAULTS_AT_MAKING if fault[0] in ("setting", "init", "huge_spec")]


@pytest.mark.parametrize(
    ("isolation", "fault", "error", "words"),
    [("thread", *fault) for fault in FAULTS_AT_MAKING]
    + [("process", *fault) for fault in CROSSING],
)
def test_what_fails_or_lies_at_the_making_is_an_error_of_its_kind(
    corners: Path, isolation: str, fault: str, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        load(corners, 1, isolation=isolation, settings={"fault": fault})


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("start", r"start\(0, 1\) failed \(with 7\): the start fails on demand"),
        ("start_silent", r"start\(0, 1\) failed \(with 7\) and gave no reason"),
        ("null_string", "observation 3: its shape is .*, and its elements are NULL"),
        ("null_payload", "observation 0: .* its elements are NULL"),
        ("negative_shape", "observation 0: an axis of -1 elements"),
        ("huge_shape", "observation 0: .* too large for any memory"),
        ("other_shape", r"observation 'STATE': its shape is \[2\], and its spec says \[3\]"),
        ("other_type", "observation 'STATE': it is of Bytes, and its spec says Doubles"),
        ("event_id", "event 0 is of type 0, and there are 0 types"),
    ],
)
def test_what_fails_or_lies_at_a_reset_is_that_envs_failure(
    corners: Path, fault: str, words: str
) -> None:
    envs = load(corners, 2, settings_per_env=[{"fault": fault}, {}])
    with pytest.raises(errors.EnvError, match=words) as raised:
        envs.reset(seed=1)
    assert [failure.slot for failure in raised.value.failures] == [0]
    envs.close()


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("advance", "advance failed: the advance fails on demand"),
        ("advance_silent", "advance failed and gave no reason"),
        ("status", "advance returned 17, which is no status"),
    ],
)
def test_an_error_in_a_step_is_that_envs_failure_and_its_reset_goes_on(
    corners: Path, fault: str, words: str
) -> None:
    envs = load(corners, 2, settings_per_env=[{"fault": fault}, {}])
    envs.reset(seed=1)
    if fault != "status":
        # It fails in the second step.
        envs.step(action(2))
    with pytest.raises(errors.EnvError, match=words) as raised:
        envs.step(action(2))
    assert [failure.slot for failure in raised.value.failures] == [0]
    envs.reset(options={"reset_mask": np.array([True, False])})
    if fault != "status":
        observations = envs.step(action(2))[0]
        assert observations["STATE"][:, 2].tolist() == [1, 3]
    envs.close()


@pytest.mark.parametrize("isolation", ["thread", "process"])
def test_a_start_that_says_eagain_is_tried_again(corners: Path, isolation: str) -> None:
    envs = load(corners, 2, isolation=isolation, settings={"eagain": 10, "length": 1})
    assert envs.reset(seed=4)[0]["STATE"].tolist() == [[0, 4, 0], [0, 5, 0]]
    envs.step(action(2))
    assert envs.step(action(2))[0]["STATE"][:, 0].tolist() == [1, 1]
    envs.close()


def test_a_start_that_says_eagain_for_ever_fails_within_the_limit(corners: Path) -> None:
    envs = load(corners, 1, settings={"eagain": -1}, eagain_limit=0.2)
    with pytest.raises(errors.EnvError, match=r"said EAGAIN \d+ times in 0\.\d s \(eagain_limit\)"):
        envs.reset(seed=4)
    envs.close()


@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_ctrl_c_ends_the_wait_for_a_start(corners: Path, isolation: str) -> None:
    envs = load(corners, 2, isolation=isolation, settings={"eagain": -1}, eagain_limit=600)
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        envs.reset(seed=4)
    timer.join()
    envs.close()


# `act` alone is never called: it is deprecated.
CALLS = [call for call in ENV_C_API_FUNCTIONS if call != "act"]
# What a context is asked before it can be used.
AT_MAKING = {
    "setting",
    "init",
    "environment_name",
    "fps",
    "observation_count",
    "observation_name",
    "observation_spec",
    *(call for call in CALLS if call.startswith("action_")),
}


def use(envs: corral.VectorEnv) -> None:
    """Makes every call that a context in use is asked."""
    envs.properties(0)["speed"] = "2"
    dict(envs.properties(0))
    envs.reset(seed=1)
    envs.step(action(1))


@pytest.mark.parametrize("call", CALLS)
def test_an_abort_or_a_crash_in_any_call_is_an_error(corners: Path, call: str) -> None:
    how = "abort" if CALLS.index(call) % 2 else "segv"
    settings = {"fault": f"{how}:{call}"}
    ending = "SIGABRT" if how == "abort" else "SIGSEGV"
    if call in AT_MAKING:
        with pytest.raises(errors.CorralError, match=ending):
            load(corners, 1, isolation="process", settings=settings)
        return
    more = {"steps_per_action": 2} if call == "error_message" else {}
    if call == "error_message":
        # A step that fails has a message.
        settings["single_steps"] = "true"
    envs = load(corners, 1, isolation="process", settings=settings, **more)
    if call == "release_context":
        # Nobody waits for what a worker does with a context at its end.
        envs.reset(seed=1)
        envs.close()
        return
    with pytest.raises(errors.CorralError, match=ending):
        use(envs)
    envs.close()


def test_a_worker_that_died_is_restarted_where_that_is_asked_for(corners: Path) -> None:
    each = [{"fault": "abort:act_text"}, {}]
    envs = load(
        corners,
        2,
        isolation="process",
        num_workers=2,
        settings_per_env=each,
        on_failure="restart",
        autoreset_mode="same_step",
    )
    envs.reset(seed=1)
    _, _, _, truncated, infos = envs.step(action(2))
    assert truncated.tolist() == [True, False]
    assert infos["_failed"].tolist() == [True, False]
    envs.close()


def test_many_loads_and_closes_leave_nothing(corners: Path) -> None:
    def cycle(isolation: str) -> None:
        envs = load(corners, 3, isolation=isolation)
        envs.reset(seed=1)
        envs.step(action(3))
        envs.close()

    def resident() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

    for isolation in ("thread", "copy"):
        for _ in range(20):
            cycle(isolation)
        before = (resident(), len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task")))
        for _ in range(200):
            cycle(isolation)
        assert len(os.listdir("/proc/self/fd")) <= before[1]
        assert len(os.listdir("/proc/self/task")) <= before[2]
        # A context of the library has 64 KiB.
        assert resident() - before[0] < 2_000_000, isolation


def test_copies_are_removed_when_the_process_ends(corners: Path, tmp_path: Path) -> None:
    program = (
        "import corral, sys\n"
        "envs = corral.load_env_c_api(sys.argv[1], 2, isolation='copy')\n"
        "envs.reset(seed=1)\n"
        "import os, tempfile\n"
        "print(len(os.listdir(tempfile.gettempdir())))\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program, corners],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert ran.stdout.split() == ["2"]
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"isolation": "fork"}, errors.ArgumentError, "isolation is one of process, copy, thread"),
        ({"final_obs": "none"}, errors.ArgumentError, "final_obs is one of read, strict"),
        ({"steps_per_action": 0}, errors.ArgumentError, "steps_per_action is 0"),
        ({"eagain_limit": -1}, errors.ArgumentError, "eagain_limit is -1"),
        ({"eagain_limit": None}, errors.ArgumentError, "eagain_limit is None: .* above 0 .at most"),
        ({"connect": 3}, errors.ArgumentTypeError, "connect is a str"),
        ({"params": 3}, errors.ArgumentTypeError, "params is a file's path"),
        ({"settings": [1]}, errors.ArgumentTypeError, "settings are a dict"),
        ({"settings": {"a": [1]}}, errors.OptionValueError, r"'a' cannot be \[1\]"),
        ({"settings": {"a\0": "b"}}, errors.OptionValueError, "NUL"),
        ({"settings": {"nope": 1}}, errors.OptionValueError, "there is no setting nope"),
        ({"settings_per_env": 3}, errors.ArgumentTypeError, "settings_per_env is a list"),
        ({"max_shape": {"ROWS": 3}}, errors.ArgumentTypeError, "is no shape by name"),
        ({"max_shape": {"ROWS": [-1]}}, errors.ArgumentError, "at least 0"),
        ({"num_workers": 2}, errors.ArgumentError, 'num_workers is for isolation="process"'),
        ({"render_mode": "rgb_array"}, errors.UnsupportedError, "draws no pictures"),
        ({"nope": 1}, errors.UnknownOptionError, "unknown option 'nope'"),
        ({"isolation": "process", "num_workers": 2}, errors.ArgumentError, "at most 1"),
        ({"isolation": "process", "num_threads": 2}, errors.ArgumentError, "give num_workers"),
    ],
)
def test_bad_arguments_are_errors_that_name_them(
    corners: Path, arguments: dict[str, Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        load(corners, 1, **arguments)


def test_corral_check_plays_a_library(corners: Path) -> None:
    checked = check_library(corners, options={"length": 4}, steps=20)
    assert checked.passed
    assert checked.faces == ["env_c_api"]
    assert checked.spaces["env_c_api"]["observation"]["SAYS"] == "text"
    assert "play the same" in str(checked.verdicts[0])
