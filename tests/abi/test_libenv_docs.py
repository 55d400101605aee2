"""What docs/libenv.md shows works as it is printed, in the real gym3 too."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import corral
from tests.abi import peers
from tests.abi.venvs import ROOT, fetched, run

PAGE = (ROOT / "docs" / "libenv.md").read_text()
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", PAGE, re.DOTALL)


def _block(language: str, text: str) -> str:
    (found,) = [code for kind, code in BLOCKS if kind == language and text in code]
    return str(found)


def test_every_block_is_run_by_a_test() -> None:
    """`test_readme.py` runs the first, and this file the others."""
    assert [kind for kind, _ in BLOCKS] == ["python", "sh", "python"]


def _command(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "corral", *arguments], capture_output=True, text=True
    )


def test_the_command_checks_the_one_env_that_it_names() -> None:
    program, *arguments = shlex.split(_block("sh", "corral check"))
    assert program == "corral"
    library = corral.libenv_path()
    done = _command(*(library if "library.so" in one else one for one in arguments), "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    told = json.loads(done.stdout)
    (env,) = told["envs"]
    assert env["env"].endswith("/CartPole-v1")
    assert env["passed"]
    assert set(told["spaces"]) == {env["env"]}
    done = _command("check", library, "-o", "env_id=CartPol-v1")
    assert done.returncode == 2
    assert "Did you mean 'CartPole-v1'?" in done.stderr


def _gym3(code: str, tmp_path: Path) -> subprocess.CompletedProcess[str]:
    """Runs a program where gym3 is installed."""
    program = tmp_path / "program.py"
    program.write_text(code)
    return run(fetched(peers.venv_python, "gym3"), program)


def _example(tmp_path: Path, id: str = "CartPole-v1", **options: Any) -> str:
    """The page's program, with our library in the place of the reader's."""
    code = _block("python", "CEnv")
    (tmp_path / "libmy_env.so").symlink_to(corral.libenv_path())
    assert '"Walk-v0", "seed": 7' in code
    for old, new in [
        ('"target/release"', json.dumps(str(tmp_path))),
        ('"Walk-v0"', json.dumps(id)),
        ('"seed": 7', f'"seed": 7, **{options!r}'),
    ]:
        assert old in code
        code = code.replace(old, new)
    return code


def test_gym3_makes_and_plays_the_env_of_the_example(tmp_path: Path) -> None:
    after = """
import numpy as np
reward, observation, first = env.observe()
env.act({"action": np.zeros(64, np.int32)})
print(env.num, sorted(observation), first.all(), env.observe()[0].sum())
"""
    done = _gym3(_example(tmp_path) + after, tmp_path)
    assert done.stdout == "64 ['obs'] True 64.0\n", done.stderr


@pytest.mark.parametrize(
    ("options", "said"),
    [({"no_such": 1}, "unknown option 'no_such'"), ({"num_threads": -1}, "num_threads")],
)
def test_a_wrong_option_under_gym3_is_an_error_at_construction(
    tmp_path: Path, options: dict[str, Any], said: str
) -> None:
    done = _gym3(_example(tmp_path, **options) + "\nprint(env.ob_space)\n", tmp_path)
    assert done.returncode == 1
    assert done.stdout == ""
    assert said in done.stderr.partition("Traceback")[0]
    assert "_get_space" in done.stderr


def test_an_info_that_loses_precision_is_named_and_with_cast_it_is_not(
    capfd: pytest.CaptureFixture[str],
) -> None:
    def said(id: str, **options: Any) -> str:
        corral.load_libenv(corral.libenv_path(), 2, {"env_id": id, **options}).close()
        return capfd.readouterr().err

    told = said("FrozenLake-v1")
    assert "FrozenLake-v1: info 'prob' (float64) is rounded to float32" in told
    assert "info 'level' (int64) is limited to int32" in said("Maze-v0")
    assert said("FrozenLake-v1", cast=True) == ""
    assert said("CartPole-v1") == ""
