"""The bench measures, records and draws; how fast anything is, it does not say here."""

from __future__ import annotations

import contextlib
import csv
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("typer", reason="the command's extras are not installed")
pytest.importorskip("rich", reason="the command's extras are not installed")
pytest.importorskip("matplotlib", reason="plots need matplotlib")

from corral.bench import (
    Bench,
    Contender,
    Loop,
    Program,
    Skip,
    cpus,
    files,
    record,
    run,
    units,
)

ROOT = Path(__file__).parents[2]

DEFINITIONS = """
import os, subprocess, sys, time
from contextlib import contextmanager
from corral.bench import Bench, Contender, Limit, Loop, needs

@contextmanager
def sleeper(seconds):
    yield Loop(lambda _: time.sleep(seconds), [None], 10)

@contextmanager
def missing():
    needs("no_such_module")
    yield

@contextmanager
def broken():
    raise RuntimeError("it is broken")
    yield

@contextmanager
def with_worker():
    print("not an answer")
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    yield Loop(lambda _: time.sleep(0.002), [None], 10)

BENCHES = [
    Bench("one", "sleeping", "10 envs", Contender("ours", lambda: sleeper(0.001)), [
        Contender("slower", lambda: sleeper(0.004), "numpy", wanted=1.5),
        Contender("apart", with_worker, wanted=100, apart=True),
        Contender("missing", missing, wanted=2),
        Contender("broken", broken, wanted=2),
        Contender("broken apart", broken, apart=True),
        Limit("a limit", 1.0),
    ]),
    Bench("two", "nobody", "1 env", Contender("ours", missing), [Limit("a limit", 1.0)]),
]
"""


def corral(*arguments: object, where: Path = ROOT) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "corral", *map(str, arguments)],
        capture_output=True,
        text=True,
        cwd=where,
        env={**os.environ, "COLUMNS": "160"},
    )


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "definitions").mkdir()
    (tmp_path / "definitions" / "some.py").write_text(DEFINITIONS)
    return tmp_path


def lines_of(folder: Path) -> list[dict[str, str]]:
    return list(csv.DictReader((folder / "figures.csv").open()))


def test_our_own_definitions_are_measured_recorded_and_drawn(tmp_path: Path) -> None:
    done = corral("bench", "cartpole-64-auto", "--quick", "--out", tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "CartPole, automatic threads, 64 envs" in done.stdout
    (line,) = lines_of(tmp_path)
    assert list(line) == record.COLUMNS
    assert (line["bench"], line["theirs"], line["wanted"]) == (
        "cartpole-64-auto",
        "corral, 1 thread",
        "0.9",
    )
    ratio = float(line["ours_rate"]) / float(line["theirs_rate"])
    assert float(line["ratio"]) == pytest.approx(ratio, rel=0.9)
    assert all(line[name] for name in ("cores", "cpu", "system", "python", "numpy", "corral"))
    assert (tmp_path / "figures.png").read_bytes().startswith(b"\x89PNG")


def test_every_definition_loads_and_says_whom_it_is_measured_against() -> None:
    listed = corral("bench", "--list", "--benches", ROOT / "benches")
    assert listed.returncode == 0, listed.stderr
    for name in ("cartpole-4096", "cartpole-1-native", "maze-1024", "slow-env", "python-64"):
        assert name in listed.stdout


def test_a_group_chooses_its_benches_and_no_others() -> None:
    listed = corral("bench", "envs", "--list", "--json", "--benches", ROOT / "benches")
    names = [one["name"] for one in json.loads(listed.stdout)]
    assert {name.partition("-")[0] for name in names} == {
        "gymnasium",
        "minigrid",
        "minatar",
        "games",
    }
    assert len(names) > 20


def test_ratios_misses_and_what_is_broken_are_told(root: Path) -> None:
    done = corral("bench", "--quick", "--benches", root, "--out", root)
    assert done.returncode == 0, done.stdout + done.stderr
    by_name = {line["theirs"]: line for line in lines_of(root)}
    assert float(by_name["slower"]["ratio"]) > 1
    assert by_name["slower"]["theirs_version"]
    assert by_name["slower"]["ok"] == "yes"
    assert float(by_name["apart"]["ratio"]) > 0
    assert by_name["apart"]["ok"] == "no"
    assert by_name["a limit"]["ok"] == "yes"
    assert by_name["missing"]["note"] == "no_such_module is not installed: make bench-peers"
    assert by_name["broken"]["note"] == "it failed: RuntimeError: it is broken"
    assert by_name["broken apart"]["note"] == "RuntimeError: it is broken"
    assert by_name["missing"]["ratio"] == by_name["missing"]["ok"] == ""
    assert by_name[""]["bench"] == "two"
    assert "peers not installed: make bench-peers" in done.stdout


def test_later_figures_are_added_and_the_latest_are_drawn(root: Path) -> None:
    for _ in range(2):
        corral("bench", "one", "--quick", "--benches", root, "--out", root)
    lines = lines_of(root)
    assert len(lines) == 12
    assert record.latest(root / "figures.csv") == lines[6:]


def test_what_cannot_be_found_is_one_line_and_exit_code_2(root: Path, tmp_path: Path) -> None:
    nowhere = tmp_path / "nowhere"
    nowhere.mkdir()
    for arguments, said in [
        (("bench", "nine", "--benches", root), "no bench is called nine; there are: one, two"),
        (("bench", "--benches", nowhere), f"no definitions in {nowhere}"),
    ]:
        done = corral(*arguments, where=nowhere)
        assert done.returncode == 2
        assert said in done.stderr
        assert len(done.stderr.splitlines()) == 1


def test_a_bench_may_be_called_after_the_env_that_it_measures(root: Path) -> None:
    some = root / "definitions" / "some.py"
    some.write_text(DEFINITIONS.replace('"one"', '"gymnasium-Taxi-v4"'))
    listed = corral("bench", "gymnasium-Taxi-v4", "--list", "--benches", root)
    assert listed.returncode == 0, listed.stderr
    assert "gymnasium-Taxi-v4" in listed.stdout
    assert "two" not in listed.stdout
    strange = corral("bench", "gymnasium-Taxi-v5", "--benches", root)
    assert (strange.returncode, "unknown env 'gymnasium-Taxi-v5'" in strange.stderr) == (2, True)
    # An env's own id is the env, whatever benches are called.
    some.write_text(DEFINITIONS.replace('"one"', '"Taxi-v4"'))
    listed = corral("bench", "Taxi-v4", "--list", "--benches", root)
    assert "1,024 envs" in listed.stdout


def test_two_benches_of_one_name_and_a_file_without_any_are_errors(root: Path) -> None:
    (root / "definitions" / "again.py").write_text(DEFINITIONS)
    done = corral("bench", "--benches", root)
    assert (done.returncode, "two benches are called 'one'" in done.stderr) == (2, True)
    (root / "definitions" / "again.py").write_text("")
    done = corral("bench", "--benches", root)
    assert (done.returncode, "has no list BENCHES" in done.stderr) == (2, True)


def test_what_spins_apart_stands_still_between_its_turns(root: Path) -> None:
    spinner = root / "spinner.py"
    spinner.write_text(
        "import sys, threading\n"
        "def spin():\n"
        "    while True: pass\n"
        "threading.Thread(target=spin, daemon=True).start()\n"
        "print('ready', flush=True)\n"
        "for line in sys.stdin: print(7, 1.0, flush=True)\n"
    )
    with Program([sys.executable, spinner]) as program:
        assert program.play(0.01) == 7
        deadline = time.monotonic() + 10
        while state_and_ticks(program._process.pid)[0] != "T":
            assert time.monotonic() < deadline, "it was not stopped"
        stopped = state_and_ticks(program._process.pid)
        time.sleep(0.2)
        assert state_and_ticks(program._process.pid) == stopped
        assert program.play(0.01) == 7
    assert not Path(f"/proc/{program._process.pid}").exists()


def state_and_ticks(pid: int) -> tuple[str, int]:
    """Whether it runs, and for how long it has had a core."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return fields[0], int(fields[11]) + int(fields[12])


def test_a_loop_counts_its_steps() -> None:
    calls: list[int] = []
    before = time.perf_counter()
    rate = Loop(calls.append, [1, 2, 3], 10).play(0.01)
    took = time.perf_counter() - before
    assert len(calls) * 10 / took <= rate
    assert calls[:6] == [1, 2, 3, 1, 2, 3]
    told: list[int] = []
    counted = Loop(lambda rows: told.append(rows) or rows, [4, 6], steps=None)
    before = time.perf_counter()
    rate = counted.play(0.01)
    assert sum(told) / (time.perf_counter() - before) <= rate
    assert sum(told) >= 0.01 * rate


def test_everybody_begins_a_window_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    turns: list[str] = []

    class Told:
        def __init__(self, name: str) -> None:
            self.name = name

        def play(self, seconds: float) -> float:
            turns.append(self.name)
            return {"a": 6.0, "b": 2.0, "c": 3.0}[self.name]

        def __enter__(self) -> Told:
            return self

        def __exit__(self, *_: object) -> None:
            pass

    a, b, c = (Contender(name, lambda name=name: Told(name), wanted=2.5) for name in "abc")
    figures = run.play(Bench("n", "w", "s", a, [b, c]), Path(), run.Pace(windows=3))
    assert "".join(turns) == "abc" + "abc" + "bca" + "cab"
    assert [figure.ratio.median for figure in figures if figure.ratio] == [3, 2]
    assert [figure.ok for figure in figures] == [True, False]


def test_figures_read_well() -> None:
    assert units.rate(10_400_000) == "10.4 M/s"
    assert units.rate(417_300) == "417 k/s"
    assert units.rate(1 / 2.452e-6, per_call=True) == "2.45 µs"
    assert units.rate(1 / 719e-9, per_call=True) == "719 ns"
    assert units.ratio(0.357) == "0.36×"


def test_a_program_that_does_not_get_ready_is_skipped_with_its_last_words() -> None:
    with pytest.raises(Skip, match="no such luck"):
        Program([sys.executable, "-c", "import sys; sys.exit('no such luck')"])


def test_names_are_looked_for_in_the_folders_above(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT / "tests")
    assert files.find_root(None) == ROOT / "benches"


COUNTS_CPUS = """
import os, sys
print("ready", flush=True)
for line in sys.stdin:
    print(len(os.sched_getaffinity(0)), 1, flush=True)
"""


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="no choice of CPUs here")
def test_contenders_of_one_thread_take_turns_on_one_cpu_after_the_other() -> None:
    usual = os.sched_getaffinity(0)
    here: list[set[int]] = []
    ours = Loop(lambda _: here.append(os.sched_getaffinity(0)), [0])
    with Program([sys.executable, "-c", COUNTS_CPUS]) as program:
        for one_cpu, count in [(True, 1), (False, len(usual))]:
            here.clear()
            bench = Bench(
                "name",
                "what",
                "size",
                Contender("ours", lambda: contextlib.nullcontext(ours)),
                [Contender("theirs", lambda: contextlib.nullcontext(program))],
                one_cpu=one_cpu,
            )
            (figure,) = run.play(bench, Path(), run.Pace(windows=2, seconds=0.01, warm_up=0.001))
            assert figure.theirs is not None
            assert figure.theirs.median == count
            assert min(map(len, here)) == count
            assert set().union(*here) == usual
    assert os.sched_getaffinity(0) == usual
    with cpus.one(len(usual)):
        assert os.sched_getaffinity(0) == {min(usual)}
