"""Faults that a hunt found, where Python code meets what nobody expects of it."""

from __future__ import annotations

import gc
import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

import corral
from corral import _launch, _native, errors, testing
from tests.support import FAULTY


class Counted(gymnasium.Env[Any, Any]):
    """Its observation is its seed's mark and how many steps it took."""

    observation_space = spaces.Box(-np.inf, np.inf, (2,), np.float64)
    action_space = spaces.Discrete(4)

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.steps = 0
        return np.array([1.0, 0.0]), {}

    def step(self, action: Any) -> Any:
        self.steps += 1
        if action == 3:
            raise ValueError("three")
        return np.array([1.0, self.steps]), 1.0, self.steps == 9, False, {}


class OddNotesError(Exception):
    """Its notes are no list."""

    def __init__(self) -> None:
        super().__init__("odd")
        self.__notes__ = 5  # type: ignore[assignment]


class Odd(Counted):
    def step(self, action: Any) -> Any:
        raise OddNotesError


def served(num_envs: int = 2, **how: Any) -> corral.VectorEnv:
    return corral.from_gymnasium(Counted, num_envs, context="forkserver", num_workers=1, **how)


def during_launches(monkeypatch: pytest.MonkeyPatch, what: Callable[[], object]) -> None:
    """Does that once, in the thread that launches, while it waits for the fork server."""
    todo, hear = [what], _launch.ForkServer._hear

    def interrupted(server: _launch.ForkServer) -> Any:
        if todo:
            todo.pop()()
        return hear(server)

    monkeypatch.setattr(_launch.ForkServer, "_hear", interrupted)


def test_garbage_that_holds_envs_is_collected_while_others_are_launched(
    monkeypatch: pytest.MonkeyPatch, ends_in_time: None
) -> None:
    first = served()
    first.reset()
    cycle: list[Any] = [first]
    cycle.append(cycle)
    gc.disable()
    try:
        del first, cycle
        during_launches(monkeypatch, gc.collect)
        envs = served()
    finally:
        gc.enable()
    assert envs.reset()[0].shape == (2, 2)
    envs.close()


def test_a_signal_handler_makes_envs_while_others_are_launched(
    monkeypatch: pytest.MonkeyPatch, ends_in_time: None
) -> None:
    served().close()
    seen = []

    def handler(*_: Any) -> None:
        inner = served(1)
        seen.append(inner.reset()[0].shape)
        inner.close()

    before = signal.signal(signal.SIGUSR1, handler)
    try:
        during_launches(monkeypatch, lambda: signal.raise_signal(signal.SIGUSR1))
        envs = served()
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert seen == [(1, 2)]
    assert envs.reset()[0].shape == (2, 2)
    envs.close()


def test_a_fork_while_envs_are_launched_makes_its_own(
    monkeypatch: pytest.MonkeyPatch, ends_in_time: None
) -> None:
    codes = []

    def fork() -> None:
        pid = os.fork()
        if pid == 0:
            try:
                made = served(1)
                made.reset()
                made.close()
            except BaseException:
                os._exit(1)
            os._exit(0)
        codes.append(os.waitpid(pid, 0)[1])

    during_launches(monkeypatch, fork)
    envs = served()
    assert codes == [0]
    envs.close()


@pytest.fixture
def ends_in_time() -> Any:
    """A hang ends this process: no exception would end a wait for a lock."""
    import faulthandler

    faulthandler.dump_traceback_later(60, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()


def test_evaluate_refuses_lazy_frames() -> None:
    def policy(observations: Any) -> Any:
        return np.zeros(len(observations), int)

    lazy: dict[str, Any] = {"frame_stack": 3, "lazy_frames": True}
    with pytest.raises(errors.UnsupportedError, match="lazy_frames"):
        corral.evaluate(policy, "CartPole-v1", range(2), **lazy)
    envs = corral.make_vec("CartPole-v1", 2, autoreset_mode="disabled", **lazy)
    with pytest.raises(errors.UnsupportedError, match="lazy_frames"):
        corral.evaluate(policy, envs, range(2))


@pytest.mark.parametrize(
    "key",
    [
        ([0, 1], [1, 2]),
        ([0, 1], slice(None), [0, 2]),
        np.ones((4, 3), bool),
        np.arange(12).reshape(4, 3) % 2 == 0,
        (),
        (np.array([True, False, True, True]), 0),
        (np.array([0, 1]), -1),
        ([[0, 1], [2, 3]], slice(1, None)),
        (slice(None), [0, 2]),
        (2, np.array([True, False, True])),
        True,
        [],
        None,
        ...,
        (..., 0),
        np.int64(2),
        [True, False, True, False],
    ],
    ids=str,
)
def test_lazy_frames_are_indexed_as_numpy_does(key: Any) -> None:
    envs = corral.make_vec("CartPole-v1", 4, seed=1, frame_stack=3, lazy_frames=True)
    envs.reset()
    frames = envs.step(np.zeros(4, int))[0]
    np.testing.assert_array_equal(frames[key], np.asarray(frames)[key], strict=True)


@pytest.mark.parametrize("on_failure", ["restart", "mask"])
@pytest.mark.parametrize("mode", ["next_step", "same_step"])
def test_lazy_frames_show_zeros_of_an_env_that_failed(mode: str, on_failure: str) -> None:
    eager, lazy = (
        corral.from_gymnasium(
            Counted,
            2,
            runner="serial",
            on_failure=on_failure,
            autoreset_mode=mode,
            frame_stack=3,
            lazy_frames=is_lazy,
        )
        for is_lazy in (False, True)
    )
    eager.reset(seed=2)
    lazy.reset(seed=2)
    for step in range(6):
        actions = np.array([3 if step == 2 else 0, 0])
        expected, got = eager.step(actions), lazy.step(actions)
        np.testing.assert_array_equal(np.asarray(got[0]), expected[0])
        assert ("final_obs" in got[4]) == ("final_obs" in expected[4])
        if "final_obs" in got[4]:
            np.testing.assert_array_equal(got[4]["final_obs"][0], expected[4]["final_obs"][0])


@pytest.mark.parametrize("count", [10**400, float("inf"), float("nan")], ids=["huge", "inf", "nan"])
def test_a_normalization_of_no_finite_count_is_refused(count: Any) -> None:
    envs = corral.make_vec("CartPole-v1", 2, normalize_observation=True)
    statistics = envs.observation_normalization
    assert statistics is not None
    state = statistics.state()
    with pytest.raises(errors.StateError):
        statistics.load({"": {**state[""], "count": count}})
    assert statistics.state() == state


def test_an_exception_whose_notes_are_no_list_is_raised_as_it_is() -> None:
    envs = corral.from_gymnasium(Odd, 1, runner="serial")
    envs.reset()
    with pytest.raises(OddNotesError) as raised:
        envs.step([0])
    assert isinstance(raised.value.__cause__, errors.EnvError)


def test_workers_start_though_the_working_directory_was_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    envs = served()
    assert envs.reset()[0].shape == (2, 2)
    envs.close()


@pytest.mark.parametrize("seed", [{5: 1, 6: 2}, {5, 6}], ids=["dict", "set"])
def test_seeds_without_order_are_refused(seed: Any) -> None:
    envs = corral.make_vec("CartPole-v1", 2)
    with pytest.raises(errors.ArgumentTypeError, match="seed"):
        envs.reset(seed=seed)
    with pytest.raises(errors.ArgumentTypeError, match="seed"):
        envs.async_reset(seed=seed)
    with pytest.raises(errors.ArgumentTypeError, match="index"):
        envs.reset(options={"index": seed})


def test_masked_arrays_are_refused() -> None:
    envs = corral.make_vec("CartPole-v1", 2)
    envs.reset()
    masked = np.ma.MaskedArray([0, 1], [True, False])
    for call in (envs.step, envs.send):
        with pytest.raises(errors.ArgumentTypeError, match="masked array"):
            call(masked)
    with pytest.raises(errors.ArgumentTypeError, match="masked array"):
        envs.reset(options={"reset_mask": masked.astype(bool)})
    single = corral.make("CartPole-v1")
    single.reset()
    with pytest.raises(errors.ArgumentTypeError, match="masked array"):
        single.step(masked[:1])


@pytest.mark.parametrize("runner", ["serial", "process"])
def test_masked_arrays_are_refused_in_a_dict_and_where_anything_may_be_given(runner: str) -> None:
    class Several(Counted):
        action_space = spaces.Dict(
            {"label": spaces.Discrete(2), "word": spaces.Sequence(spaces.Discrete(2))}
        )

    envs = corral.from_gymnasium(Several, 2, runner=runner)
    envs.reset()
    masked = np.ma.MaskedArray([0, 1], [True, False])
    for bad in ({"label": masked}, {"word": masked}):
        with pytest.raises(errors.ArgumentTypeError, match="masked array"):
            envs.step({"label": np.zeros(2, int), "word": [(), ()], **bad})
    envs.close()


@pytest.mark.parametrize("steps", [0, -1])
def test_a_check_takes_at_least_one_step(steps: int) -> None:
    with pytest.raises(errors.ArgumentError, match="steps"):
        testing.check_env("CartPole-v1", steps=steps)


LAZY_PARTS: dict[str, dict[str, Any]] = {
    "ages too high": {"ages": np.array([9, 9, 9])},
    "ages below zero": {"ages": np.array([-5, 0, 0])},
    "ages of text": {"ages": np.array(["a", "b", "c"])},
    "fractions of ends": {"over": np.array([0.5, 0, 0])},
    "frames of text": {"frames": np.full((3, 3, 4), "x")},
    "complex frames": {"frames": np.zeros((3, 3, 4), complex)},
    "one number for frames": {"frames": np.array(1.0)},
    "nothing of the envs": {"below": np.zeros(0, np.uint8)},
}


@pytest.mark.parametrize("parts", LAZY_PARTS.values(), ids=LAZY_PARTS)
def test_a_lazy_state_made_by_hand_is_refused(parts: dict[str, Any]) -> None:
    envs = corral.make_vec("CartPole-v1", 3, seed=1, frame_stack=3, lazy_frames=True)
    envs.reset()
    envs.step(np.zeros(3, int))
    state, shown = envs.save_state(), np.asarray(envs.observe())
    with np.load(io.BytesIO(state)) as saved:
        all_parts = {**saved, **parts}
    file = io.BytesIO()
    np.savez(file, **all_parts)
    with pytest.raises(errors.StateError):
        envs.load_state(file.getvalue())
    np.testing.assert_array_equal(np.asarray(envs.observe()), shown)


def test_a_lazy_state_of_envs_that_began_without_frames_shows_none() -> None:
    def made() -> corral.VectorEnv:
        return corral.make_vec("CartPole-v1", 3, frame_stack=3, lazy_frames=True)

    envs, fresh = made(), made()
    envs.reset()
    with np.load(io.BytesIO(envs.save_state())) as saved:
        parts = {**saved, "frames": np.array([])}
    file = io.BytesIO()
    np.savez(file, **parts)
    fresh.load_state(file.getvalue())
    with pytest.raises(errors.StateError, match="reset the envs"):
        fresh.observe()


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("recordings")
    fault: dict[str, Any] = {"fault": "error_in_step", "of_seed": 3, "at_step": 2}
    envs = corral.make_vec(FAULTY, 1, seed=3, record=folder, **fault)
    envs.reset()
    actions = {"force": np.zeros((1, 2), np.float32), "gear": np.ones(1, int)}
    for _ in range(2):
        envs.step(actions)
    with pytest.raises(errors.EnvError):
        envs.step(actions)
    return next(folder.iterdir())


@pytest.mark.parametrize("config", [True, -1, "x", [1]])
def test_a_recording_without_options_by_name_is_refused(
    recording: Path, tmp_path: Path, config: Any
) -> None:
    refused(recording, tmp_path, "config", config)


def test_a_recording_without_calls_is_refused(recording: Path, tmp_path: Path) -> None:
    refused(recording, tmp_path, "calls", [])


def test_a_recording_whose_failure_has_no_text_is_refused(recording: Path, tmp_path: Path) -> None:
    failure = json.loads(recording.read_text())["failure"]
    refused(recording, tmp_path, "failure", {**failure, "text": ""})


def refused(recording: Path, folder: Path, name: str, value: Any) -> None:
    file = folder / "changed.json"
    file.write_text(json.dumps({**json.loads(recording.read_text()), name: value}))
    with pytest.raises(errors.StateError):
        repr(corral.replay(file))


def test_a_table_of_fewer_episodes_than_none_is_refused() -> None:
    told = corral.evaluate(lambda seen: np.zeros(len(seen), int), "CartPole-v1", range(3))
    assert "3 more" in told.table(0)
    with pytest.raises(errors.ArgumentError, match="most"):
        told.table(-1)


@pytest.mark.parametrize(
    "call",
    [
        lambda: corral.make_vec("CartPole-v1", 1, action_bounds=None),  # type: ignore[arg-type]
        lambda: corral.make_vec("CartPole-v1", 1, on_failure=None),  # type: ignore[arg-type]
        lambda: corral.make_vec("CartPole-v1", 1, episode_statistics="no"),  # type: ignore[arg-type]
        lambda: corral.make_vec("CartPole-v1", 1, record=3),  # type: ignore[arg-type]
        lambda: corral.load_libenv(None),  # type: ignore[arg-type]
        lambda: corral.to_gym3(3),  # type: ignore[arg-type]
        lambda: corral.to_sb3(3),  # type: ignore[arg-type]
        lambda: corral.evaluate(3, "CartPole-v1"),  # type: ignore[arg-type]
    ],
    ids=["bounds", "on_failure", "statistics", "record", "libenv", "gym3", "sb3", "policy"],
)
def test_arguments_of_another_type_are_refused(call: Callable[[], object]) -> None:
    with pytest.raises(errors.ArgumentTypeError):
        call()


def command(*arguments: str | bytes | Path, **how: Any) -> subprocess.CompletedProcess[str]:
    """The command; its standard input is at its end."""
    given = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, **how}
    return subprocess.run(
        [sys.executable, "-m", "corral", *arguments],
        stderr=subprocess.PIPE,
        text=True,
        timeout=120,
        **given,
    )


def is_told_in_a_line(done: subprocess.CompletedProcess[str]) -> None:
    assert done.returncode == 2, done
    assert done.stderr.startswith("corral: "), done.stderr
    assert done.stderr.count("\n") == 1, done.stderr


@pytest.mark.parametrize(
    "option",
    ["size=" + "1" * 5000, "a=" + "[" * 100_000, b"a=\xff\xfe", b"\xff\xfe=1", 'a="\\ud800"'],
    ids=["long number", "deep", "no UTF-8", "a name of no UTF-8", "half a character"],
)
def test_check_tells_of_an_option_that_cannot_be_read(option: str | bytes) -> None:
    done = command("check", _native.__file__ or "", "-o", option)
    is_told_in_a_line(done)
    assert done.stderr.startswith("corral: option "), done.stderr


def test_the_command_tells_that_its_output_cannot_be_written(recording: Path) -> None:
    for arguments in (["list"], ["replay", recording], ["--help"]):
        with open("/dev/full", "w") as full:
            is_told_in_a_line(command(*arguments, stdout=full))


def test_the_command_prints_where_only_ascii_can_be() -> None:
    ascii_only = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0", "LC_ALL": "C"}
    for arguments in (["list"], ["bench", "--help"]):
        done = command(*arguments, env=ascii_only)
        assert (done.returncode, done.stderr) == (0, "")


def test_a_break_without_anybody_at_the_debugger_ends_the_replay(recording: Path) -> None:
    done = command("replay", recording, "--break")
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert done.stderr.endswith("corral: the debugger was left\n")


@pytest.mark.parametrize("exists", [False, True], ids=["new folder", "empty folder"])
def test_a_project_that_cannot_be_written_leaves_nothing(tmp_path: Path, exists: bool) -> None:
    def little_room() -> None:
        import resource

        resource.setrlimit(resource.RLIMIT_FSIZE, (3000, resource.RLIM_INFINITY))

    if exists:
        (tmp_path / "ok_env").mkdir()
    is_told_in_a_line(command("new", "ok_env", cwd=tmp_path, preexec_fn=little_room))
    assert [*tmp_path.rglob("*")] == [tmp_path / "ok_env"] * exists
    assert command("new", "ok_env", cwd=tmp_path).returncode == 0
    assert (tmp_path / "ok_env" / "Cargo.toml").is_file()
    assert [*tmp_path.iterdir()] == [tmp_path / "ok_env"]


def test_an_action_that_is_dropped_may_resize_the_array_that_is_read_next() -> None:
    """In a process of its own: what is read after it was freed may end a process."""
    code = """
import gymnasium, numpy as np, corral
from gymnasium import spaces

class Anything(spaces.Space):
    def sample(self, mask=None, probability=None): return 0
    def contains(self, x): return True

class Sums(gymnasium.Env):
    observation_space = spaces.Discrete(1)
    action_space = spaces.Dict(a=Anything(), b=spaces.Box(-1, 1, (12_000_000,), np.float64))
    def reset(self, *, seed=None, options=None): return 0, {}
    def step(self, action): return 0, float(action["b"].sum()), False, False, {}

class Resizes:
    def __deepcopy__(self, memo): return Resizes()
    def __del__(self):
        if array is not None: array.resize((1, 1), refcheck=False)

array = None
envs = corral.from_gymnasium(Sums, 1, runner="serial")
envs.reset()
envs.step({"a": [Resizes()], "b": np.zeros((1, 12_000_000))})
array = np.ones((1, 12_000_000))
print(envs.step({"a": [1], "b": array})[1], array.shape)
"""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout) == (0, "[12000000.] (1, 1)\n"), done.stderr[-2000:]
