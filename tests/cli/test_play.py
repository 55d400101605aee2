"""Playing by keyboard, in a terminal."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import numpy as np
import pytest
from gymnasium import spaces

from corral import errors
from tests.cli.support import Command
from tests.cli.terminal import Terminal

pytest.importorskip("termios", reason="there are no terminals of Unix here")

from corral.cli.keys import keys_of
from corral.cli.playing import next_key
from corral.cli.terminal import scaled

READY = "q quit"


def test_keys_are_actions_and_the_picture_follows(command: Command, corridor: str, tmp_path: Path):
    with Terminal("play", corridor, "--seed", 1, "--keys", "d=1,left=0", cwd=tmp_path) as terminal:
        terminal.wait_for(READY)
        # Seed 1 begins at NumPy's first draw of it.
        at = int(np.random.default_rng(1).integers(0, 3))
        white, black = "\x1b[38;2;255;255;255;48;2;255;255;255m", "\x1b[38;2;0;0;0;48;2;0;0;0m"
        for key, place in (("1", at + 1), ("d", at + 2), ("\x1b[D", at + 1), ("x", at + 1)):
            terminal.press(key)
            terminal.wait_for(READY)
            first = terminal.screen.rpartition(b"\x1b[H")[2].decode().partition("\r\n")[0]
            before, _, after = first.partition(white)
            assert before.count("▀") == 4 * place
            assert (black in before) == (place > 0)
            assert after.partition("\x1b[0m")[0] == "▀" * 4
        terminal.press("q")
        assert terminal.finish() == 0
        assert terminal.screen.endswith(f"\x1b[?1049l{corridor}: 3 steps, return -3\r\n".encode())
        assert terminal.is_restored


@pytest.mark.parametrize(
    ("ending", "code"), [("Ctrl-C", 130), ("a signal", 143), ("a hang-up", 129)]
)
def test_the_terminal_is_as_before_whatever_ends_the_game(
    corridor: str, tmp_path: Path, ending: str, code: int
):
    with Terminal("play", corridor, "--fps", 50, cwd=tmp_path) as terminal:
        terminal.wait_for("7 steps")
        assert not terminal.is_restored
        if ending == "Ctrl-C":
            terminal.press("\x03")
        else:
            number = signal.SIGTERM if ending == "a signal" else signal.SIGHUP
            terminal.process.send_signal(number)
        assert terminal.finish() == code
        assert terminal.is_restored
        assert b"Traceback" not in terminal.screen


def test_an_env_that_fails_ends_the_game_in_a_line(corridor: str, tmp_path: Path):
    source = (tmp_path / "corridor.py").read_text()
    (tmp_path / "corridor.py").write_text(source.replace("self.at = max", "assert not action; max"))
    with Terminal("play", corridor, cwd=tmp_path) as terminal:
        terminal.wait_for(READY)
        terminal.press("1")
        assert terminal.finish() == 2
        assert terminal.is_restored
        said = terminal.screen.rpartition(b"\x1b[?1049l")[2].decode()
        assert "env 0 failed in step: AssertionError" in said
        assert "Traceback" not in said


def test_keys_between_two_steps_change_the_action_and_hasten_nothing():
    class Pressed:
        def __init__(self, *keys: str | None) -> None:
            self.keys, self.reads = list(keys), 0

        def read(self, seconds: float | None) -> str | None:
            self.reads += 1
            return self.keys.pop(0) if self.keys else time.sleep(seconds or 0)

    pressed = Pressed("a", "", "b")
    assert next_key(pressed, 5) == "b"
    assert pressed.reads >= 4
    assert next_key(pressed, 100) is None
    assert next_key(Pressed("a", "q", "b"), 5) == "q"
    assert next_key(Pressed("a", "b"), None) == "a"


def test_without_a_terminal_it_says_so(command: Command):
    assert "terminal" in command.refusal("play", "CartPole-v1")


def test_keys_of_a_space():
    assert keys_of("CartPole-v1", spaces.Discrete(2), None) == {
        "0": 0, "1": 1, "left": 0, "right": 1,
    }  # fmt: skip
    assert keys_of("a/B-v0", spaces.Discrete(2, start=5), "x=6") == {"0": 5, "1": 6, "x": 6}
    plane = spaces.Box(-1, 1, (2,), np.float32)
    keys = keys_of("a/B-v0", plane, "left=[-1,0],right=[1, 0]")
    assert {key: action.tolist() for key, action in keys.items()} == {
        "left": [-1, 0], "right": [1, 0],
    }  # fmt: skip
    assert all(plane.contains(action) for action in keys.values())
    both = spaces.Dict(gear=spaces.Discrete(3), force=spaces.Box(-1, 1, (1,), np.float32))
    keys = keys_of("a/B-v0", both, 'a={"gear": 2, "force": [0.5]}')
    assert both.contains(keys["a"])
    pull = spaces.Box(-2, 2, (1,), np.float32)
    keys = keys_of("a/B-v0", pull, None)
    assert [keys[key].item() for key in ("left", "down", "right")] == [-2, 0, 2]


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ("a=2", "no action"),
        ("a=1.5", "no action"),
        ("a", "not KEY=ACTION"),
        ("a=x", "not KEY=ACTION"),
        ("abc=1", "no key"),
        ("q=1", "ends the game"),
    ],
)
def test_keys_that_make_no_sense_are_refused(given: str, why: str):
    with pytest.raises(errors.ArgumentError, match=why):
        keys_of("CartPole-v1", spaces.Discrete(2), given)


def test_actions_without_keys_need_some():
    with pytest.raises(errors.ArgumentError, match="--keys"):
        keys_of("a/B-v0", spaces.Discrete(11), None)


def test_a_picture_is_scaled_by_the_mean_and_keeps_its_proportions():
    picture = np.random.default_rng(0).integers(0, 256, (60, 90, 3), dtype=np.uint8)
    naive = picture.reshape(20, 3, 30, 3, 3).astype(int).mean((1, 3)).astype(np.uint8)
    assert np.array_equal(scaled(picture, 30, 44), naive)
    assert scaled(picture, 80, 44).shape == (44, 66, 3)
    larger = scaled(picture, 200, 200)
    assert larger.shape == (120, 180, 3)
    assert np.array_equal(larger[::2, ::2], picture)
