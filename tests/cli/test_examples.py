"""The examples of the help texts and of the page of commands do what they say."""

from __future__ import annotations

import json
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import typer.main

import corral
from corral.errors import EnvError
from tests.cli.support import ROOT, Command
from tests.cli.terminal import Terminal
from tests.support import FAULTY

PAGE = (ROOT / "docs" / "commands.md").read_text()


def helps() -> dict[str, str]:
    """Each command's help text."""
    from corral.cli.app import app

    group = typer.main.get_command(app)
    return {name: command.help or "" for name, command in group.commands.items()}


def examples() -> list[str]:
    found = [re.search(r"Example: (corral .+)", text) for text in helps().values()]
    return [one[1] for one in found if one is not None]


def of_the_page() -> list[str]:
    blocks = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
    return [line for line in "".join(blocks).splitlines() if line.startswith("corral ")]


def lay_files(folder: Path) -> None:
    """What examples are about."""
    for name, source in re.findall(r"```python\n# (\w+\.py)\n(.*?)```", PAGE, re.DOTALL):
        (folder / name).write_text(source)
    envs = corral.make_vec(FAULTY, 1, record=folder / "failures", fault="panic_in_step", at_step=3)
    envs.reset(seed=0)
    for _ in range(3):
        envs.step(envs.action_space.sample())
    with pytest.raises(EnvError) as raised:
        envs.step(envs.action_space.sample())
    Path(str(raised.value.failures[0].replay)).rename(folder / "failure.json")


def test_every_command_has_an_example_that_begins_with_it():
    assert len(helps()) >= 10
    for name, text in helps().items():
        found = re.search(r"Example: (corral .+)", text)
        assert found is not None, name
        assert shlex.split(found[1])[1] == name


def test_examples_work(command: Command, tmp_path: Path):
    pytest.importorskip("imageio_ffmpeg")
    lay_files(tmp_path)
    every = [shlex.join(shlex.split(line, comments=True)) for line in [*examples(), *of_the_page()]]
    assert len(set(every)) >= 20
    for line in dict.fromkeys(every):
        _, *arguments = shlex.split(line)
        if arguments[0] in ("play", "serve"):
            continue
        done = command(*arguments)
        assert done.returncode == 0, line + done.stdout + done.stderr
        assert done.stdout, line
        if "--json" in arguments:
            json.loads(done.stdout)
        for one in arguments:
            if one.endswith((".gif", ".mp4", ".csv")):
                assert (tmp_path / one).stat().st_size > 0, line


def test_examples_of_play_work(tmp_path: Path):
    lines = [line for line in of_the_page() if line.startswith("corral play")]
    assert set(lines) >= {line for line in examples() if line.startswith("corral play")}
    for line in lines:
        with Terminal(*shlex.split(line)[1:], cwd=tmp_path) as terminal:
            terminal.wait_for("q quit")
            terminal.press("1q")
            assert terminal.finish() == 0
            assert terminal.is_restored


def test_the_example_of_serve_works(tmp_path: Path):
    (line,) = [line for line in examples() if line.startswith("corral serve")]
    server = subprocess.Popen(
        [sys.executable, "-m", *shlex.split(line)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert server.stdout is not None
        address = server.stdout.readline().split(" at ")[1].strip()
        envs = corral.connect(address, 2)
        assert envs.reset()[0].shape == (2, 4)
        envs.close()
        server.send_signal(signal.SIGTERM)
        assert server.wait(60) == 0
    finally:
        server.kill()
        server.wait()
        server.stdout.close()


def test_what_has_output_for_programs_says_so():
    from corral.cli.app import app

    group = typer.main.get_command(app)
    with_json = {
        name
        for name, one in group.commands.items()
        if any("--json" in parameter.opts for parameter in one.params)
    }
    assert with_json == {"list", "info", "eval", "bench", "render", "check", "replay"}
