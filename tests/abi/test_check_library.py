"""`corral check` of a library: what becomes of envs that crash, hang or cannot be built."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import corral
from corral import _examiner, errors, plugins
from corral._examiner import Examiner
from corral.checking import check_library
from tests.abi.test_plugin import CC, HERE, build

pytestmark = pytest.mark.skipif(CC is None, reason="there is no C compiler here")

ENVS = ["Sound-v0", "Crashes-v0", "Hangs-v0", "Unbuilt-v0", "Plain-v0"]


@pytest.fixture(scope="module")
def sick(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(HERE / "c" / "sick.c", tmp_path_factory.mktemp("sick") / "sick.so")


def command(*words: Any) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-m", "corral", "check", *map(str, words)]
    return subprocess.run(line, capture_output=True, text=True, timeout=120)


def test_each_env_has_its_verdict_whatever_the_others_do(sick: Path) -> None:
    done = command(sick, "--json", "--steps", 20, "--timeout", 3)
    assert done.returncode == 1, done.stderr
    told = json.loads(done.stdout)
    verdicts = {one["env"].partition("/")[2]: one for one in told["envs"]}
    assert list(verdicts) == ENVS
    assert [name for name, one in verdicts.items() if one["passed"]] == ["Sound-v0", "Plain-v0"]

    def last(name: str) -> dict[str, Any]:
        found: dict[str, Any] = verdicts[name]["checks"][-1]
        assert found["passed"] is False
        return found

    assert last("Crashes-v0")["name"] == last("Hangs-v0")["name"] == "spaces"
    assert "was ended by SIGSEGV (Segmentation fault)" in last("Crashes-v0")["detail"]
    assert "check sick/Crashes-v0 --load" in last("Crashes-v0")["advice"]
    assert "gave no answer in 3 s" in last("Hangs-v0")["detail"]
    assert last("Unbuilt-v0")["name"] == "made"
    assert "the file of its model is missing" in last("Unbuilt-v0")["detail"]
    assert "most (9)" not in told["spaces"]["sick/Plain-v0"]
    assert told["spaces"]["sick/Crashes-v0"]["observation"]["count"] == "int32 () 0 to 1001"


def test_the_time_that_python_takes_to_start_is_not_the_librarys(
    sick: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command_of = _examiner._command

    def slow(path: int, module: str, function: str) -> list[str]:
        *python, program = command_of(path, module, function)
        return [*python, f"import time; time.sleep(4); {program}"]

    monkeypatch.setattr(_examiner, "_command", slow)
    checked = check_library(sick, env="Sound-v0", steps=5, timeout=3)
    assert [verdict.env for verdict in checked.verdicts] == ["sick/Sound-v0"]


def test_options_go_to_the_env_that_is_named(sick: Path) -> None:
    checked = check_library(sick, env="Sound-v0", options={"most": 5}, steps=20)
    (verdict,) = checked.verdicts
    assert verdict.env == "sick/Sound-v0"
    # With one target alone nothing is left to chance.
    failed = [check.name for check in verdict.checks if check.passed is False]
    assert failed == ["seed matters", "index decides its episode"]
    assert check_library(
        sick, env="Sound-v0", options={"most": 5}, steps=20, seed_matters=False
    ).passed
    for env in ("Plain-v0", "sick/Plain-v0"):
        with pytest.raises(errors.UnknownOptionError, match="it has no options"):
            check_library(sick, env=env, options={"most": 5}, steps=20)
    done = command(sick, "--env", "Plain-v0", "-o", "most=5")
    assert (done.returncode, done.stderr) == (2, "corral: it has no options\n")


def test_options_without_an_env_go_to_all_and_who_knows_them_not_says_so(sick: Path) -> None:
    checked = check_library(sick, options={"most": 9}, steps=10, timeout=3)
    found = {verdict.env.partition("/")[2]: verdict for verdict in checked.verdicts}
    assert list(found) == ENVS
    assert found["Sound-v0"].passed
    (made,) = found["Plain-v0"].checks
    assert (made.name, made.detail) == ("made", "UnknownOptionError: it has no options")
    assert "--env" in made.advice


def test_what_cannot_be_asked_for_is_told(sick: Path) -> None:
    with pytest.raises(errors.UnknownEnvError, match="no env 'Other-v0': sick/Sound-v0, sick/Cra"):
        check_library(sick, env="Other-v0")
    with pytest.raises(errors.ArgumentError, match="timeout is 0"):
        check_library(sick, timeout=0)
    with pytest.raises(errors.ArgumentTypeError, match="timeout is a number"):
        check_library(sick, timeout="long")  # type: ignore[arg-type]
    assert command("CartPole-v1", "--env", "CartPole-v1").returncode == 2


def test_the_process_that_asks_loads_nothing(sick: Path) -> None:
    check_library(sick, env="Sound-v0", steps=5)
    assert plugins.namespace_of(sick) is None


def test_a_library_that_ends_its_process_as_it_is_loaded_is_an_error(tmp_path: Path) -> None:
    source = tmp_path / "bad.c"
    source.write_text("#include <stdlib.h>\nconst void *corral_plugin_entry(void) { abort(); }\n")
    library = build(source, tmp_path / "bad.so")
    with pytest.raises(
        errors.LibraryError, match="as it was loaded, its process was ended by SIGABRT"
    ):
        check_library(library)


def test_our_own_library_is_checked_so_too() -> None:
    library = Path(corral.__file__).parent / "lib" / "libcorral_envs.so"
    checked = check_library(library, env="Maze-v0", options={"size": 4}, steps=10)
    assert checked.passed
    assert checked.faces[0] == "corral"
    assert os.fspath(library) == checked.path
    assert [verdict.env.partition("/")[2] for verdict in checked.verdicts] == ["Maze-v0"]


def test_the_end_by_a_signal_without_a_name_is_told_by_its_number() -> None:
    # Python has names for the first and the last of the real-time signals only.
    number = signal.SIGRTMIN + 3
    child = [sys.executable, "-c", f"import os; os.kill(os.getpid(), {number:d})"]
    examiner = Examiner.__new__(Examiner)
    examiner._silent, examiner._process = False, subprocess.Popen(child)
    assert examiner.ended(None) == f"its process was ended by signal {number:d}"
