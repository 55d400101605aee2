"""A failure leaves a file, and the file plays it again: in Python and from the command line."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

import corral
from corral import errors
from corral.errors import EnvError, SlotFailure
from tests.support import FAULTY, MODES, ODD, assert_same, forces, row, run_python, sampled

SLOTS = 4
SICK = 2
SEED = 40

STEP_FAULTS = ["panic_in_step", "error_in_step", "incomplete_observation", "wrong_dtype"]
RESET_FAULTS = ["panic_in_reset", "error_in_reset"]


def sick(record: Path, fault: str, mode: str = "next_step", **more: Any) -> corral.VectorEnv:
    arguments: dict[str, Any] = {"fault": fault, "of_seed": SEED + SICK, "seed": SEED, **more}
    return corral.make_vec(FAULTY, SLOTS, autoreset_mode=mode, record=record, **arguments)


def play_until_failure(
    envs: corral.VectorEnv, reset: Any = None, most: int = 5000
) -> tuple[EnvError, list[list[Any]]]:
    """The error, and what each slot showed in its last episode: (observation, reward, flags)."""
    shown: list[list[Any]] = [[] for _ in range(envs.num_envs)]
    mode = envs.native.autoreset_mode

    def begin(slots: Any, observations: Any) -> None:
        for slot in slots:
            shown[slot] = [row(observations, slot)]

    try:
        everyone = range(envs.num_envs)
        begin(everyone, (envs.reset() if reset is None else reset())[0])
        over = np.zeros(envs.num_envs, dtype=np.bool_)
        for actions in sampled(envs, 3):
            if mode == "disabled" and over.any():
                begin(np.flatnonzero(over), envs.reset(options={"reset_mask": over})[0])
            observations, rewards, terminations, truncations, _ = envs.step(actions)
            fresh = over if mode == "next_step" else np.zeros_like(over)
            over = terminations | truncations
            if mode == "same_step":
                fresh = over
            for slot in everyone:
                if not fresh[slot]:
                    flags = bool(terminations[slot]), bool(truncations[slot])
                    shown[slot].append((row(observations, slot), float(rewards[slot]), *flags))
            begin(np.flatnonzero(fresh), observations)
            most -= 1
            assert most > 0, "nothing failed"
    except EnvError as error:
        return error, shown
    raise AssertionError("unreachable")


def replay_file(failure: SlotFailure) -> str:
    assert failure.replay is not None, failure.text
    return failure.replay


def check(error: EnvError, shown: list[list[Any]]) -> corral.Replay:
    """Replays the only failure; its rows are those that were seen."""
    (failure,) = error.failures
    again = corral.replay(replay_file(failure))
    steps = list(again)
    assert again.reproduced, again.verdict()
    assert again.error is not None
    assert again.error.failures[0].message == failure.message
    live = shown[failure.slot]
    assert len(steps) == len(live)
    assert [step.step for step in steps] == list(range(len(live)))
    assert_same(steps[0].observation, live[0], "the first observation")
    for step, expected in zip(steps[1:], live[1:]):
        got = (step.observation, step.reward, step.terminated, step.truncated)
        assert_same(got, expected, f"step {step.step}")
    return again


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("fault", STEP_FAULTS + RESET_FAULTS)
@pytest.mark.parametrize("how", ["own", "seed", "index", "options"])
def test_the_file_of_a_failure_plays_the_same_episode_to_the_same_failure(
    tmp_path: Path, how: str, fault: str, mode: str
) -> None:
    envs = sick(tmp_path, fault, mode, at_step=2, in_episode=2)
    resets: dict[str, Any] = {
        "own": {},
        "seed": {"seed": SEED},
        "index": {"options": {"index": 7}},
        "options": {"options": {"bias": 0.25}},
    }
    error, shown = play_until_failure(envs, lambda: envs.reset(**resets[how]))
    again = check(error, shown)
    (failure,) = error.failures
    assert os.fspath(tmp_path) in replay_file(failure)
    assert f"corral replay {failure.replay}" in str(error)
    assert again.recorded.slot == SICK
    assert again.recorded.message == failure.message
    assert again.num_steps == len(shown[SICK]) - 1
    if fault in STEP_FAULTS:
        assert again.last_action["gear"] in (1, 2, 3)
        assert np.float32(again.last_action["force"][1]) != 0


@pytest.mark.parametrize("mode", MODES)
def test_after_hundreds_of_episodes_too(tmp_path: Path, mode: str) -> None:
    envs = sick(tmp_path, "panic_in_reset", mode, in_episode=500)
    error, shown = play_until_failure(envs)
    assert error.failures[0].episode == 500
    again = check(error, shown)
    assert again.first_step == 0
    assert again.lead_in > 0


def test_it_can_be_played_twice(tmp_path: Path) -> None:
    error, _ = play_until_failure(sick(tmp_path, "panic_in_step"))
    again = corral.replay(replay_file(error.failures[0]))
    assert again.reproduced is None
    assert again.verdict() == "not played yet"
    first = [step.observation for step in again]
    assert again.reproduced
    assert_same([step.observation for step in again], first)
    assert again.reproduced


def test_slots_that_fail_at_once_leave_a_file_each(tmp_path: Path) -> None:
    envs = sick(tmp_path, "error_in_step", of_seed=-1, at_step=1)
    error, _ = play_until_failure(envs)
    files = [replay_file(failure) for failure in error.failures]
    assert len(set(files)) == SLOTS == len(list(tmp_path.iterdir()))
    for file in files:
        again = corral.replay(file)
        assert len(list(again)) == 2
        assert again.reproduced
    # Again, and nothing is written over.
    play_until_failure(envs, lambda: envs.reset(seed=SEED))
    assert len(list(tmp_path.iterdir())) == 2 * SLOTS


def test_slots_stepped_apart_are_replayed(tmp_path: Path) -> None:
    envs = sick(tmp_path, "panic_in_step", at_step=2)
    envs.reset()
    envs.native.step_slots([3, SICK], forces(2, 0.5))
    envs.native.step_slots([0], forces(1, 0.25))
    envs.native.step_slots([SICK, 1], forces(2, [[0.1, 0.2]]))
    with pytest.raises(EnvError) as raised:
        envs.native.step_slots([1, SICK], forces(2, [[0.3, 0.4]]))
    again = corral.replay(replay_file(raised.value.failures[0]))
    taken = [step.action["force"] for step in again if step.action is not None]
    assert again.reproduced
    assert_same(
        np.array([*taken, again.last_action["force"]], dtype=np.float32),
        np.array([[0.5, 0.5], [0.1, 0.2], [0.3, 0.4]], dtype=np.float32),
    )


def test_evaluation_and_gymnasium_record_too(tmp_path: Path) -> None:
    def policy(observations: Any) -> Any:
        return forces(len(observations["level"]))

    faults: dict[str, Any] = {"fault": "panic_in_step", "at_step": 9}
    with pytest.raises(EnvError) as raised:
        corral.evaluate(policy, FAULTY, range(300), 8, record=tmp_path / "eval", **faults)
    for failure in raised.value.failures:
        again = corral.replay(replay_file(failure))
        assert again.begin == {"index": failure.index}
        assert len(list(again)) == 10
        assert again.reproduced
    envs: Any = gymnasium.make_vec("corral/CartPole-v1", num_envs=2, record=tmp_path / "gym")
    envs.reset(seed=1)
    envs.step(np.array([0, 1]))
    assert (tmp_path / "gym").is_dir()


def test_ragged_and_text_actions_are_replayed(tmp_path: Path) -> None:
    envs = corral.make_vec(ODD, 1, autoreset_mode="same_step", record=tmp_path)
    envs.reset()
    words = ["", "ü", "\n\"'", "fail"]
    seen = [row(envs.step({"move": np.array([1]), "word": [word]})[0], 0) for word in words[:-1]]
    with pytest.raises(EnvError) as raised:
        envs.step({"move": np.array([1]), "word": words[-1:]})
    again = corral.replay(replay_file(raised.value.failures[0]))
    steps = list(again)
    assert again.reproduced
    assert [step.action["word"] for step in steps[1:]] == words[:-1]
    for step, observation in zip(steps[1:], seen):
        assert_same(step.observation["says"], observation["says"])
        assert_same(np.asarray(step.observation["items"]), np.asarray(observation["items"]))


def test_a_file_with_a_gap_says_why_it_cannot_be_replayed(file: Path, tmp_path: Path) -> None:
    gap = "an action holds an object that cannot be written to a file"
    with pytest.raises(errors.StateError, match=f"cannot be replayed: {gap}"):
        corral.replay(changed(file, tmp_path / "gap.json", gap=gap))


def test_a_picture_that_fails_is_replayed(tmp_path: Path) -> None:
    envs = sick(tmp_path, "panic_in_render", render_mode="rgb_array")
    envs.reset()
    envs.step(forces(SLOTS))
    with pytest.raises(EnvError) as raised:
        envs.render()
    again = corral.replay(replay_file(raised.value.failures[0]))
    assert len(list(again)) == 2
    assert again.reproduced


def test_frames_are_what_the_env_draws(tmp_path: Path) -> None:
    error, shown = play_until_failure(sick(tmp_path, "panic_in_step", at_step=4))
    steps = list(corral.replay(replay_file(error.failures[0]), frames=True))
    frames = [step.frame for step in steps if step.frame is not None]
    assert [int(frame[0, 0, 0]) for frame in frames] == list(range(len(shown[SICK])))


def test_a_directory_that_is_gone_hides_neither_the_failure_nor_the_batch(tmp_path: Path) -> None:
    record = tmp_path / "deep" / "records"
    envs = sick(record, "panic_in_step")
    assert record.is_dir()
    record.rmdir()
    record.write_text("in the way")
    error, _ = play_until_failure(envs)
    (failure,) = error.failures
    assert failure.replay is None
    assert failure.message.startswith("a fault on demand")
    assert "no replay: it could not be written to" in failure.text
    assert str(record) in str(error)
    assert error.batch is not None
    with pytest.raises(errors.ArgumentError, match="cannot record into"):
        sick(record, "none")


def test_recording_changes_nothing_else(tmp_path: Path) -> None:
    plain = corral.make_vec(FAULTY, SLOTS, seed=SEED, max_episode_steps=6)
    recorded = corral.make_vec(FAULTY, SLOTS, seed=SEED, max_episode_steps=6, record=tmp_path)
    assert_same(recorded.reset(), plain.reset())
    for _, actions in zip(range(50), sampled(plain, 1)):
        assert_same(recorded.step(actions), plain.step(actions))
    assert not list(tmp_path.iterdir())


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recording with earlier episodes in it."""
    record = tmp_path_factory.mktemp("a 'quoted' name")
    error, _ = play_until_failure(sick(record, "panic_in_step", at_step=9))
    return Path(replay_file(error.failures[0]))


def changed(file: Path, to: Path, **values: Any) -> Path:
    content = json.loads(file.read_text())
    content.update(values)
    to.write_text(json.dumps(content))
    return to


def command(*arguments: Any, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "corral", *map(str, arguments)],
        capture_output=True,
        text=True,
        input=stdin,
        timeout=120,
        env={**os.environ, "COLUMNS": "200", "TERM": "dumb", "NO_COLOR": "1"},
    )


def test_the_command_tells_what_happened_and_ends_in_0(file: Path) -> None:
    done = command("replay", file)
    assert (done.returncode, done.stderr) == (0, "")
    for part in (
        FAULTY,
        'fault="panic_in_step"',
        f"of seed {SEED + SICK}, after",
        "9, and one that failed",
        '{"force": [',
        "env 2, episode",
        f"by corral {corral.__version__}",
        "panic in step: a fault on demand",
        "failed again, as recorded",
    ):
        assert part in done.stdout, (part, done.stdout)
    quiet = command("replay", file, "--quiet")
    assert (quiet.returncode, quiet.stdout, quiet.stderr) == (0, "", "")


def test_the_shell_takes_the_command_that_the_error_names(file: Path) -> None:
    words = f'"{sys.executable}" -m ' + repr_of_command(file)
    done = subprocess.run(words, shell=True, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done


def repr_of_command(file: Path) -> str:
    """What the message of another failure in that directory says after the colon."""
    error, _ = play_until_failure(sick(file.parent, "panic_in_step", at_step=9))
    (line,) = [line for line in str(error).splitlines() if "corral replay" in line]
    return line.split("again: ")[1]


@pytest.mark.parametrize(
    ("what", "values"),
    [
        ("did not fail", {"config": {"fault": "none"}}),
        ("did not fail", {"calls": [{"reset": "own"}, {"step": {"force": [0, 0], "gear": 1}}]}),
        ("failed in another way than recorded: testing/Faulty-v0", {"failure": "other"}),
    ],
)
def test_what_does_not_fail_as_it_did_ends_in_1(
    file: Path, tmp_path: Path, what: str, values: dict[str, Any]
) -> None:
    if "failure" in values:
        failure = json.loads(file.read_text())["failure"]
        values = {"failure": {**failure, "message": "something else"}}
    done = command("replay", changed(file, tmp_path / "other.json", **values))
    assert (done.returncode, done.stderr) == (1, "")
    assert what in done.stdout


def bad_files(file: Path, tmp_path: Path) -> dict[str, tuple[Path, str]]:
    text = file.read_text()
    cut, prose = tmp_path / "cut.json", tmp_path / "prose.json"
    cut.write_text(text[: len(text) // 2])
    prose.write_text("once upon a time")
    later = changed(file, tmp_path / "later.json", format="corral replay 9", corral="7.1.0")
    state = changed(file, tmp_path / "state.json", start={"state": "00"}, corral="0.0.1")
    return {
        "missing": (tmp_path / "none.json", "none.json cannot be read"),
        "directory": (tmp_path, "cannot be read"),
        "cut": (cut, "cut.json is not all there"),
        "prose": (prose, "prose.json is no recording of corral's"),
        "later": (later, "replay it with corral 7.1.0"),
        "state": (state, "a state that corral 0.0.1 saved"),
        "env": (changed(file, tmp_path / "env.json", env="Cartpole-v7"), "unknown env"),
        "option": (changed(file, tmp_path / "option.json", config={"size": 3}), "unknown option"),
        "action": (
            changed(file, tmp_path / "action.json", calls=[{"reset": "own"}, {"step": 1}]),
            "1 is no action here",
        ),
    }


@pytest.mark.parametrize(
    "which",
    ["missing", "directory", "cut", "prose", "later", "state", "env", "option", "action"],
)
def test_what_cannot_be_played_ends_in_2_with_the_reason(
    file: Path, tmp_path: Path, which: str
) -> None:
    path, reason = bad_files(file, tmp_path)[which]
    done = command("replay", path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("corral: ")
    assert reason in done.stderr
    with pytest.raises(errors.CorralError, match=reason.replace("(", r"\(")):
        list(corral.replay(path))


def test_frames_are_written_as_pictures_or_as_a_film(file: Path, tmp_path: Path) -> None:
    done = command("replay", file, "--frames", tmp_path / "deep" / "pictures")
    assert done.returncode == 0, done.stderr
    names = sorted(path.name for path in (tmp_path / "deep" / "pictures").iterdir())
    assert names == [f"step{step:05}.png" for step in range(10)]
    assert f"10 in {tmp_path}" in done.stdout
    import imageio.v3

    pictures = [imageio.v3.imread(tmp_path / "deep" / "pictures" / name) for name in names]
    assert [int(picture[0, 0, 0]) for picture in pictures] == list(range(10))
    done = command("replay", file, "--frames", tmp_path / "film.gif")
    assert done.returncode == 0, done.stderr
    assert len(imageio.v3.imread(tmp_path / "film.gif", index=None)) == 10


def test_an_env_that_draws_nothing_and_a_missing_writer_are_told(
    file: Path, tmp_path: Path
) -> None:
    envs = corral.make_vec(ODD, 1, autoreset_mode="same_step", record=tmp_path)
    envs.reset()
    with pytest.raises(EnvError) as raised:
        envs.step({"move": np.array([1]), "word": ["fail"]})
    odd = replay_file(raised.value.failures[0])
    done = command("replay", odd, "--frames", tmp_path / "frames")
    assert (done.returncode, done.stdout) == (2, "")
    assert "draws no pictures: replay it without frames" in done.stderr
    done = run_python(
        "import sys; sys.modules['imageio'] = None\n"
        f"sys.argv = ['corral', 'replay', {str(file)!r}, '--frames', {str(tmp_path / 'x')!r}]\n"
        "from corral.cli import main; main()"
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert "pip install imageio pillow" in done.stderr


def test_without_typer_the_command_says_what_it_needs() -> None:
    for missing in ("typer", "rich"):
        done = run_python(
            f"import sys; sys.modules[{missing!r}] = None\nfrom corral.cli import main; main()"
        )
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr == "the command needs typer and rich: pip install typer rich\n"


def test_a_debugger_gets_its_turn_just_before_the_failing_step(file: Path) -> None:
    done = command("replay", file, "--break", stdin="p 6 * 7\np again.error\nc\n")
    assert done.returncode == 0
    assert f"before the failing step of {FAULTY}, in process " in done.stderr
    assert "(Pdb) 42\n(Pdb) None\n" in done.stdout
    assert "failed again, as recorded" in done.stdout
    done = command("replay", file, "--trap")
    assert done.returncode == -signal.SIGTRAP


def test_before_failure_is_called_once_with_all_earlier_steps_played(file: Path) -> None:
    seen: list[int] = []
    calls: list[int] = []
    for step in corral.replay(file, before_failure=lambda: calls.append(len(seen))):
        seen.append(step.step)
    assert calls == [10]


def test_the_list_has_every_env_its_limit_and_its_options() -> None:
    done = command("list")
    assert (done.returncode, done.stderr) == (0, "")
    # Libraries that other tests have loaded are theirs alone.
    own = {id: entry for id, entry in corral.envs().items() if "/" not in id}
    assert "CartPole-v1" in own
    for id, entry in own.items():
        (line,) = [line for line in done.stdout.splitlines() if line.startswith(id)]
        limit = entry["max_episode_steps"]
        assert limit is None or str(limit) in line
        for name, value in entry["options"].items():
            assert f"{name} ({json.dumps(value)})" in done.stdout


def test_help_names_the_commands() -> None:
    done = command("--help")
    assert done.returncode == 0
    assert "replay" in done.stdout
    assert "list" in done.stdout


@pytest.mark.parametrize("mode", ["next_step", "same_step"])
@pytest.mark.parametrize("threads", [1, 2])
def test_failures_that_a_policy_deals_with_leave_files_too(
    tmp_path: Path, threads: int, mode: str
) -> None:
    envs = corral.make_vec(
        FAULTY,
        SLOTS,
        seed=SEED,
        autoreset_mode=mode,
        record=tmp_path,
        fault="panic_in_step",
        at_step=9,
        on_failure="restart",
        num_threads=threads,
    )
    envs.reset()
    for _, actions in zip(range(400), sampled(envs, 5)):
        envs.step(actions)
    files = list(tmp_path.iterdir())
    assert len(files) > 5
    for file in files:
        again = corral.replay(file)
        assert len(list(again)) == 10
        assert again.reproduced, again.verdict()


@pytest.mark.parametrize("mode", ["next_step", "same_step"])
def test_envs_that_run_by_themselves_in_the_background_are_replayed(
    tmp_path: Path, mode: str
) -> None:
    envs: Any = corral.make_vec(
        FAULTY,
        SLOTS,
        seed=SEED,
        autoreset_mode=mode,
        record=tmp_path,
        fault="panic_in_reset",
        in_episode=600,
        batch_size=2,
        num_threads=2,
    )
    envs.async_reset()
    with pytest.raises(EnvError) as raised:
        drive(envs)
    for failure in raised.value.failures:
        assert failure.episode == 600
        again = corral.replay(replay_file(failure))
        list(again)
        assert again.reproduced, again.verdict()


def drive(envs: Any) -> None:
    for k in range(30_000):
        slots = envs.recv()[-1]["env_id"]
        envs.send(forces(len(slots), 0.1 * (k % 9), 1 + k % 3), slots)


def test_silence_is_replayed_without_a_time_limit_and_that_is_said(tmp_path: Path) -> None:
    envs = sick(tmp_path, "sleep_in_step", at_step=3, sleep=0.8, timeout=0.2)
    error, _ = play_until_failure(envs)
    (failure,) = error.failures
    assert failure.cause == "silence"
    again = corral.replay(replay_file(failure))
    # The step that was too slow then is a step like any other now.
    assert [step.step for step in again][-1] == failure.step + 1
    assert again.reproduced is False
    assert "s: a replay sets no time limit" in again.verdict()
    done = command("replay", replay_file(failure))
    assert done.returncode == 1
    assert "which may not come back: attach a debugger, or press Ctrl-C" in done.stderr
