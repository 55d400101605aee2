"""What there is, and what it is."""

from __future__ import annotations

import errno
import inspect
import io
import shutil
import subprocess
import sys
from pathlib import Path

import gymnasium
import numpy as np
import pytest

import corral
from corral.cli.docstrings import meanings
from tests.abi.test_plugin import build
from tests.cli.support import ROOT, Command
from tests.cli.terminal import Terminal


def built_in() -> list[str]:
    """The ids of ours: those of libraries that other tests have loaded are theirs."""
    return [id for id in corral.envs() if "/" not in id]


def test_in_a_pipe_each_env_is_one_line_of_fields(command: Command):
    lines = command.out("list", "--namespace", "corral").splitlines()
    fields = [line.split("\t") for line in lines]
    assert [id for id, *_ in fields] == built_in()
    assert {len(one) for one in fields} == {5}
    limits = {id: limit for id, limit, *_ in fields}
    for id in ("CartPole-v1", "CliffWalking-v1", "Acrobot-v1"):
        limit = gymnasium.registry[id].max_episode_steps
        assert limits[id] == ("" if limit is None else str(limit))
    assert "is_slippery (true)" in dict((one[0], one[4]) for one in fields)["FrozenLake-v1"]


@pytest.mark.parametrize("columns", [24, 120])
def test_a_terminal_breaks_no_id(tmp_path: Path, columns: int):
    with Terminal("list", cwd=tmp_path, columns=columns) as terminal:
        assert terminal.finish() == 0
    for id in built_in():
        assert id in terminal.screen.decode(), id


def test_filters_narrow_the_list(command: Command, corridor: str):
    def ids(*arguments: object) -> list[str]:
        return [entry["id"] for entry in command.json("list", *arguments)]

    assert ids("LAKE", "8x8") == ["FrozenLake8x8-v1"]
    assert ids("no such env") == []
    assert ids("--namespace", "none") == []
    theirs = ids("--source", "gymnasium")
    assert "gymnasium:CartPole-v1" in theirs
    assert "tabular/CliffWalking-v0" in theirs
    assert not any(id.startswith(("corral/", "testing/")) for id in theirs)
    assert {"LunarLander-v3", "Maze-v0"} <= set(ids("--source", "all"))
    assert ids("--source", "gymnasium", "--load", "corridor", "corridor") == ["Corridor-v0"]
    assert ids("--source", "gymnasium", "--namespace", "tabular") == [
        id for id in gymnasium.registry if id.startswith("tabular/")
    ]


def test_a_reader_that_goes_away_is_no_error(tmp_path: Path):
    line = f"{sys.executable} -m corral list --source all --json | true"
    done = subprocess.run(["sh", "-c", line], capture_output=True, text=True, cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_an_output_that_closes_ends_a_command_quietly(
    command: Command, monkeypatch: pytest.MonkeyPatch
):
    class Closed(io.StringIO):
        def write(self, text: str) -> int:
            raise BrokenPipeError(errno.EPIPE, "Broken pipe")

    monkeypatch.setattr(sys, "stdout", Closed())
    with pytest.raises(SystemExit) as ended:
        command("bench", "CartPole-v1", "--list", "--json")
    assert ended.value.code == 1


def test_docstrings_tell_of_arguments_in_more_than_one_way():
    text = """A thing.

    size: no argument, for it stands outside.

    Args:
        length (int): how long
            it is.
        wide: how wide

    Returns:
        height: what it gives.

    * `speed=1`: how fast
    it goes

    - `turn` - where it turns
    <a id="x"></a>`stop=None`: when it stops

    | Parameter | Type     | Description |
    |-----------|----------|-------------|
    | `colour`  | **bool** | if it has   |
    """
    assert meanings(inspect.cleandoc(text)) == {
        "length": "how long it is.",
        "wide": "how wide",
        "speed": "how fast it goes",
        "turn": "where it turns",
        "stop": "when it stops",
        "colour": "if it has",
    }


def test_info_of_an_env_that_gymnasium_has_says_what_that_says(command: Command):
    for id in ("CartPole-v1", "MountainCar-v0", "Pendulum-v1"):
        theirs = gymnasium.make(id)
        told = command.json("info", id)
        assert told["observation"]["space"] == " ".join(str(theirs.observation_space).split())
        assert told["action"]["space"] == str(theirs.action_space)
        assert told["max_episode_steps"] == theirs.spec.max_episode_steps
        assert told["reward_threshold"] == theirs.spec.reward_threshold
        assert told["index"] == "index i plays the episode of seed i"
        assert told["source"] == "corral"
    assert [option.pop("meaning") for option in told["options"]] == [
        "The acceleration of gravity in m/s²."
    ]
    assert told["options"] == [{"name": "g", "type": "float", "default": 10.0}]
    # The worst that its formula gives.
    worst = -(np.pi**2 + 0.1 * 8**2 + 0.001 * 2**2)
    assert worst <= told["reward"]["least"] < told["reward"]["most"] <= 0


def test_info_tells_the_rules_of_built_in_envs(command: Command):
    said = " ".join(command.out("info", "MiniGrid-DoorKey-5x5-v0").split())
    for text in (
        "0 turn left, 1 turn right, 2 walk",
        "The mission is fulfilled or cannot be any more",
        "Truncated: After `max_steps` steps",
        'view (text, "partial", "full", "rgb", "rgb_partial"; default "partial"): What the image',
        "docs/envs/MiniGrid-DoorKey.md",
    ):
        assert text in said, text
    told = command.json("info", "corral/MiniGrid-DoorKey-5x5-v0")["texts"]
    assert (ROOT / told["page"]).is_file()
    assert (ROOT / told["source"]).is_file()
    assert "Apache-2.0" in told["licence"]
    assert command.json("info", "gymnasium:CartPole-v1")["texts"] is None
    assert command.json("info", "testing/Faulty-v0")["texts"] is None


def test_info_says_where_an_index_is_a_level(command: Command):
    assert "a level" in command.json("info", "Maze-v0")["index"]
    assert "size (int, 3 to 12; default 7): Cells per side" in command.out("info", "Maze-v0")


def test_info_of_a_python_env_is_what_its_class_says(command: Command, corridor: str):
    told = command.json("info", corridor)
    assert told["about"] == "Walk to the right."
    assert told["options"] == [
        {"name": "length", "type": "int", "default": 9, "meaning": "where it ends."}
    ]
    assert told["observation"]["leaves"][0]["shape"] == [1]
    assert told["max_episode_steps"] == 50
    assert (told["render_modes"], told["render_fps"]) == (["rgb_array"], 10)
    assert (told["reward"]["least"], told["reward"]["most"]) == (-1, -1)
    lake = command.json("info", "gymnasium:FrozenLake-v1")
    assert "is_slippery" in {option["name"] for option in lake["options"]}


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler here")
def test_a_librarys_env_is_told_of_and_played_as_any_other(command: Command, tmp_path: Path):
    library = build(ROOT / "tests" / "abi" / "c" / "counter.c", tmp_path / "counter.so")
    id = "counting/Counter-v0"
    assert [one["id"] for one in command.json("list", "--load", library, "--namespace", "counting")]
    told = command.json("info", id, "--load", library)
    assert told["source"] == "library"
    assert told["action"]["space"].startswith("Discrete")
    assert command.json("eval", id, "--load", library, "--indices", "0:3")["episodes"] == 3
    assert command.json("bench", id, "--load", library, "--quick", "--num-envs", 4)[0]["ours"] > 0
    assert command.json("check", id, "--load", library, "--steps", 20)["passed"]
