"""The page for those who come from other libraries: our calls run, and theirs are theirs."""

from __future__ import annotations

import ast
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.abi import peers, venvs

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "coming-from.md").read_text()
BENCH = ROOT / ".venv-bench" / "bin" / "python"

# What the page's calls are about. The names of the page are made here, in whichever Python runs it.
PRELUDE = """
import tempfile
import gymnasium
import numpy as np
import corral

def make_env():
    return gymnasium.make("CartPole-v1", render_mode="rgb_array")

def made(num_envs=8, **options):
    envs = corral.make_vec("CartPole-v1", num_envs, seed=0, **options)
    envs.reset()
    return envs

env_fns = [make_env] * 2
envs = made(render_mode="rgb_array")
drawing_envs = made(render_mode="rgb_array")
same_step_envs = made(autoreset_mode="same_step")
actions, env_id, mask = np.zeros(8, np.int64), np.arange(8), np.ones(8, bool)
infos = made(autoreset_mode="same_step", max_episode_steps=1).step(actions)[4]
folder = tempfile.mkdtemp()
"""
# What some calls need besides, and where they run. A call that begins so waits for these lines.
BEFORE = {
    "envs.recv()": "envs.async_reset()",
    "python_envs.": 'python_envs = corral.from_gymnasium(make_env, 2, runner="serial")\n'
    "python_envs.reset()",
    "manager.": "import corral.managers\n"
    'manager = corral.managers.BaseEnvManager(["CartPole-v1"] * 2)',
    "manager.ready_obs": "manager.launch()",
    "manager.step": "manager.launch()",
    "corral.managers": "import corral.managers",
    "corral.compat.envpool": "import corral.compat.envpool",
    "corral.compat.pufferlib": "import corral.compat.pufferlib.vector",
    "corral.from_gym3": "gym3_env = corral.to_gym3(same_step_envs)",
}


def rows() -> Iterator[tuple[str, list[str]]]:
    """(section, cells) of every row of every table."""
    section = "first"
    for line in PAGE.splitlines():
        if line.startswith("## "):
            section = line[3:]
        elif line.startswith("| ") and not line.endswith(" to know |"):
            # A bar within code is none of the table's.
            whole = re.sub(r"`[^`]*`", lambda code: code[0].replace("|", "\0"), line)
            yield section, [cell.strip().replace("\0", "|") for cell in whole.split("|")[1:-1]]


def code(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def ours() -> list[str]:
    """The calls under Corral's name, each once."""
    found = (span for section, cells in rows() for span in code(cells[1]))
    return list(dict.fromkeys(found))


def program(span: str) -> str:
    """What shows that a call is what the page says: options are given to `make_vec`."""
    try:
        is_options = isinstance(ast.parse(span).body[0], ast.Assign)
    except SyntaxError:
        is_options = True
    call = f'corral.make_vec("CartPole-v1", 8, {span})' if is_options else span
    before = [lines for begins, lines in BEFORE.items() if span.startswith(begins)]
    return "\n".join([PRELUDE, *before, call])


ELSEWHERE = {"gym3": r"_gym3\(", "torch": r"to_sb3\("}
"""Calls that need a library which has a venv of its own, by that."""


def place(span: str) -> str | None:
    return next((venv for venv, calls in ELSEWHERE.items() if re.search(calls, span)), None)


def test_the_page_has_our_calls() -> None:
    assert len(ours()) > 50
    assert {place(span) for span in ours()} == {None, "gym3", "torch"}
    assert {section for section, _ in rows()} == {
        *("first", "Gymnasium", "EnvPool", "PufferLib", "gym3", "DI-engine")
    }


@pytest.mark.parametrize("span", [span for span in ours() if place(span) is None])
def test_each_of_our_calls_runs(span: str) -> None:
    exec(program(span), {"__name__": "program"})


def run(python: Path, lines: str, folder: Path) -> str:
    """What a program prints; PufferLib writes into the folder where it runs."""
    done = subprocess.run(
        [python, "-c", lines],
        capture_output=True,
        text=True,
        timeout=250,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT / "python")},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.thorough
@pytest.mark.parametrize("span", [span for span in ours() if place(span) is not None])
def test_each_of_our_calls_runs_beside_the_library_that_it_needs(span: str, tmp_path: Path) -> None:
    python = (
        venvs.fetched(peers.venv_python, "gym3")
        if place(span) == "gym3"
        else venvs.fetched(peers.torch)
    )
    run(python, program(span), tmp_path)


def theirs(section: str) -> list[str]:
    """The dotted names that a section's calls begin with, in the column at the left."""
    library = {"DI-engine": "ding"}.get(section, section.lower())
    spans = [span for where, cells in rows() if where == section for span in code(cells[0])]
    names = (re.findall(rf"\b{library}(?:\.\w+)+", span) for span in spans)
    return sorted({name for found in names for name in found})


RESOLVE = """
import importlib
for name in {names!r}:
    module, rest = name, []
    while True:
        try:
            thing = importlib.import_module(module)
            break
        except ModuleNotFoundError:
            module, _, last = module.rpartition(".")
            rest.insert(0, last)
    for part in rest:
        thing = getattr(thing, part)
    print(name)
"""


def check_theirs(section: str, python: Path, least: int, folder: Path) -> None:
    names = theirs(section)
    assert len(names) >= least
    assert run(python, RESOLVE.format(names=names), folder).split() == names


def test_what_is_called_gymnasiums_is_there() -> None:
    names: dict[str, Any] = {}
    exec("import gymnasium.utils.env_checker, gymnasium.wrappers.vector", names)
    found = theirs("Gymnasium")
    assert len(found) > 12
    for name in found:
        eval(name, names)


@pytest.mark.thorough
def test_what_is_called_gym3s_is_there(tmp_path: Path) -> None:
    check_theirs("gym3", venvs.fetched(peers.venv_python, "gym3"), 5, tmp_path)


@pytest.mark.thorough
@pytest.mark.skipif(not BENCH.exists(), reason="`make bench-peers` has not installed the peers")
@pytest.mark.parametrize(("section", "least"), [("EnvPool", 4), ("PufferLib", 4)])
def test_what_is_called_a_peers_is_there(section: str, least: int, tmp_path: Path) -> None:
    check_theirs(section, BENCH, least, tmp_path)


@pytest.mark.thorough
@pytest.mark.skipif(not BENCH.exists(), reason="`make bench-peers` has not installed the peers")
def test_what_is_called_di_engines_is_there(tmp_path: Path) -> None:
    """Its package imports torch, so its managers' own files are asked, by what benches load."""
    names = {name.rpartition(".")[2] for name in theirs("DI-engine")} - {"env_manager"}
    assert len(names) >= 3
    lines = f"""
import sys, importlib
sys.path.insert(0, {str(ROOT / "benches")!r})
import di_engine_without_torch as bench
base = importlib.import_module("ding.envs.env_manager.base_env_manager")
for name in {sorted(names)!r}:
    assert hasattr(base, name) or hasattr(bench._MANAGERS, name), name
for name in ("launch", "ready_obs", "step", "seed", "enable_save_replay"):
    assert hasattr(base.BaseEnvManager, name), name
"""
    run(BENCH, lines, tmp_path)
