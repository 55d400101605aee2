"""Is an evaluation the same when it is split, interrupted, written down and read again?"""

from __future__ import annotations

import csv
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

import corral
from corral.errors import (
    ArgumentError,
    ArgumentTypeError,
    EnvError,
    LibraryError,
    UnsupportedError,
)
from tests.support import FAULTY

INDICES = [5, 1, 90, 2, 8, 8, 30, 31, 32, 33, 7, 1, 2**62]


def balance(observations: np.ndarray) -> np.ndarray:
    """Each row by itself: results cannot depend on the batch."""
    return (observations[:, 2] > 0).astype(np.int64)


def long(infos: dict[str, Any], episode_return: float) -> bool:
    return episode_return > 40


def columns(found: corral.Evaluation) -> tuple[Any, ...]:
    successes = None if found.successes is None else found.successes.tolist()
    return (
        found.indices.tolist(),
        found.returns.tobytes(),
        found.lengths.tobytes(),
        successes,
        found.id,
        found.config,
        found.max_episode_steps,
        found.version,
        found.shard,
    )


def whole(**more: Any) -> corral.Evaluation:
    return corral.evaluate(
        balance, "CartPole-v1", INDICES, success=long, max_episode_steps=50, **more
    )


@pytest.mark.parametrize("n", [1, 2, 5, 13])
def test_shards_merge_to_the_whole_in_any_order(n: int) -> None:
    parts = [whole(shard=(k, n), num_envs=1 + k % 3) for k in range(n)]
    for k, part in enumerate(parts):
        assert part.indices.tolist() == INDICES[k::n]
        assert part.shard == (k, n)
    merged = corral.Evaluation.merge(parts[::-1])
    assert columns(merged) == columns(whole())
    assert 0 < merged.success_rate < 1


@pytest.mark.parametrize("count", [1, 3])
def test_any_number_of_processes_finds_the_same(count: int) -> None:
    before = set(psutil.Process().children(recursive=True))
    # A lambda is sent too.
    found = corral.evaluate(
        lambda observations: balance(observations),
        "CartPole-v1",
        INDICES,
        2,
        success=lambda infos, episode_return: episode_return > 40,
        num_processes=count,
        max_episode_steps=50,
    )
    assert columns(found) == columns(whole())
    assert set(psutil.Process().children(recursive=True)) <= before


def test_what_is_evaluated_is_told_and_goes_to_json_and_back(tmp_path: Path) -> None:
    found = corral.evaluate(
        lambda observations: np.ones(len(observations), np.int64),
        "Maze-v0",
        [3, 4],
        max_episode_steps=7,
        size=np.int64(3),
        num_threads=1,
        success=lambda infos, episode_return: False,
    )
    assert (found.id, found.config) == ("Maze-v0", {"size": 3})
    assert (found.max_episode_steps, found.version) == (7, corral.__version__)
    found.to_json(tmp_path / "found.json")
    again = corral.Evaluation.from_json(tmp_path / "found.json")
    assert columns(again) == columns(found)
    for name in ("indices", "returns", "lengths", "successes"):
        assert getattr(again, name).dtype == getattr(found, name).dtype
    # Anybody's JSON reads it.
    told = json.loads((tmp_path / "found.json").read_text(), parse_constant=pytest.fail)
    assert told["indices"] == [3, 4]
    assert told["id"] == "Maze-v0"


def test_returns_go_to_json_and_back_to_the_last_bit(tmp_path: Path) -> None:
    values = [0.1 + 0.2, -0.0, np.nan, np.inf, -np.inf, 5e-324, 1.7976931348623157e308]
    ones = np.ones(len(values), np.int64)
    found = corral.Evaluation(np.arange(len(values)), np.array(values), ones, shard=(1, 3))
    found.to_json(tmp_path / "found.json")
    json.loads((tmp_path / "found.json").read_text(), parse_constant=pytest.fail)
    again = corral.Evaluation.from_json(tmp_path / "found.json")
    assert again.returns.tobytes() == np.array(values).tobytes()
    assert again.successes is None
    assert again.shard == (1, 3)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("", "no file of Evaluation.to_json"),
        ("[1, 2]", "format"),
        ("{", "no file"),
        ({"format": "else"}, "format"),
        ({"format_version": 99}, "99"),
        ({"indices": [0]}, "not as many"),
        ({"returns": [1, "many"]}, "many"),
        ({"lengths": [1, 1.5]}, "1.5"),
        ({"successes": [1, 0]}, "successes"),
        ({"indices": [True, 1]}, "True"),
        ({"indices": 7}, "indices"),
        ({"id": 7}, "id"),
        ({"shard": [1]}, "shard"),
        ({"indices": [2**70, 1]}, "no file"),
        ({"version": None}, "version"),
    ],
)
def test_a_file_that_is_none_of_these_is_refused(change: Any, message: str, tmp_path: Path) -> None:
    path = tmp_path / "found.json"
    corral.Evaluation(np.arange(2), np.ones(2), np.ones(2, np.int64)).to_json(path)
    if isinstance(change, dict):
        change = json.dumps({**json.loads(path.read_text()), **change})
    path.write_text(change)
    with pytest.raises(ArgumentError, match=message) as raised:
        corral.Evaluation.from_json(path)
    assert str(path) in str(raised.value)
    path.write_text("{" + '"a": ' * 3)
    with pytest.raises(ArgumentError):
        corral.Evaluation.from_json(path)


def test_successes_go_to_csv_and_to_the_table(tmp_path: Path) -> None:
    found = whole()
    found.to_csv(tmp_path / "found.csv")
    with open(tmp_path / "found.csv", newline="") as file:
        header, *rows = csv.reader(file)
    assert header == ["index", "return", "length", "success"]
    assert [row[3] == "1" for row in rows] == found.successes.tolist()  # type: ignore[union-attr]
    lines = found.table(2).splitlines()
    assert lines[0].split() == ["index", "return", "length", "success"]
    assert lines[1].split()[-1] in ("yes", "no")
    assert lines[-1].endswith(f"success rate {found.success_rate:.4g}")


def parts_of(n: int, **changes: Any) -> list[corral.Evaluation]:
    def part(k: int) -> corral.Evaluation:
        indices = np.arange(7)[k::n]
        ones = np.ones(len(indices))
        fields = {"id": "A", "shard": (k, n)}
        return corral.Evaluation(indices, ones, ones.astype(np.int64), **fields)  # type: ignore[arg-type]

    return [part(k) for k in range(n)]


def test_shards_that_make_no_whole_are_refused() -> None:
    a, b, c = parts_of(3)
    with pytest.raises(ArgumentError, match="of 3, there is no 1"):
        corral.Evaluation.merge([a, c])
    with pytest.raises(ArgumentError, match="there is no 1 and there are several of 2"):
        corral.Evaluation.merge([a, c, c])
    with pytest.raises(ArgumentError, match="not shards of one evaluation"):
        corral.Evaluation.merge([a, parts_of(2)[1]])
    with pytest.raises(ArgumentError, match="no shard"):
        corral.Evaluation.merge([a, b, corral.Evaluation(c.indices, c.returns, c.lengths, id="A")])
    short = corral.Evaluation(a.indices[:1], a.returns[:1], a.lengths[:1], id="A", shard=(0, 3))
    with pytest.raises(ArgumentError, match="shard"):
        corral.Evaluation.merge([short, b, c])
    with pytest.raises(ArgumentError, match="nothing to merge"):
        corral.Evaluation.merge([])
    with pytest.raises(ArgumentTypeError, match="merge takes evaluations"):
        corral.Evaluation.merge([a, 3])  # type: ignore[list-item]
    other = corral.Evaluation(b.indices, b.returns, b.lengths, id="B", shard=(1, 3))
    with pytest.raises(ArgumentError, match="the id of number 0 is 'A', that of number 1 is 'B'"):
        corral.Evaluation.merge([a, other, c])


def test_evaluations_that_are_no_shards_are_put_one_behind_the_other() -> None:
    first = corral.evaluate(balance, "CartPole-v1", [7, 3])
    second = corral.evaluate(balance, "CartPole-v1", [5])
    merged = corral.Evaluation.merge([first, second])
    assert columns(merged) == columns(corral.evaluate(balance, "CartPole-v1", [7, 3, 5]))


@pytest.mark.parametrize(
    ("shard", "error", "message"),
    [
        ((2, 2), ArgumentError, "at most 1"),
        ((-1, 2), ArgumentError, "at least 0"),
        ((0, 0), ArgumentError, "at least 1"),
        ((0.5, 2), ArgumentTypeError, "shard"),
        (3, ArgumentTypeError, r"a pair \(k, n\)"),
        ((1, 2, 3), ArgumentTypeError, "pair"),
        ((13, 20), ArgumentError, "has no index: there are 13"),
    ],
)
def test_shards_that_make_no_sense_are_refused(
    shard: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        whole(shard=shard)


def test_processes_that_make_no_sense_are_refused() -> None:
    for count in (0, -1, 1.5, "2", True):
        with pytest.raises((ArgumentError, ArgumentTypeError), match="num_processes"):
            whole(num_processes=count)
    with pytest.raises((ArgumentError, ArgumentTypeError), match="num_envs"):
        whole(num_processes=2, num_envs=0)
    with pytest.raises(ArgumentError, match="num_processes goes with an id"):
        corral.evaluate(balance, corral.make_vec("CartPole-v1", 2), [1], num_processes=2)
    lock = __import__("threading").Lock()

    def locked(observations: np.ndarray) -> np.ndarray:
        with lock:
            return balance(observations)

    with pytest.raises(UnsupportedError, match="the policy cannot be sent"):
        corral.evaluate(locked, "CartPole-v1", [1], num_processes=2)
    with pytest.raises(UnsupportedError, match="the success cannot be sent"):
        corral.evaluate(
            balance, "CartPole-v1", [1], num_processes=2, success=lambda i, r: lock.locked()
        )


class Broken(Exception):
    pass


def test_what_is_raised_in_a_process_is_raised_here() -> None:
    def raising(observations: np.ndarray) -> np.ndarray:
        raise Broken("by the policy")

    before = set(psutil.Process().children(recursive=True))
    with pytest.raises(Exception, match="by the policy") as raised:
        corral.evaluate(raising, "CartPole-v1", range(9), num_processes=2)
    assert type(raised.value).__name__ == "Broken"
    with pytest.raises(EnvError, match="index 7"):
        corral.evaluate(
            lambda seen: {
                "force": np.zeros((len(seen["count"]), 2), np.float32),
                "gear": np.ones(len(seen["count"]), np.int64),
            },
            FAULTY,
            [7],
            num_processes=1,
            fault="panic_in_step",
            at_step=1,
        )
    with pytest.raises(EnvError, match="ended with exit code 3"):
        corral.evaluate(lambda seen: os._exit(3), "CartPole-v1", range(9), num_processes=2)
    assert set(psutil.Process().children(recursive=True)) <= before


CLOSED = """
import sys
import numpy as np, corral
found = corral.evaluate(
    lambda seen: np.zeros(len(seen), np.int64), "CartPole-v1", range(4), num_processes=2)
with open(sys.argv[1], "w") as file:
    file.write(str(len(found.lengths)))
"""


@pytest.mark.parametrize("closed", ["0<&-", "2>&-", "0<&- 1>&- 2>&-"])
def test_processes_play_for_a_parent_without_standard_files(closed: str, tmp_path: Path) -> None:
    command = ["sh", "-c", f'exec "$@" {closed}', "sh", sys.executable, "-c", CLOSED]
    subprocess.run([*command, tmp_path / "found"], check=True, timeout=90)
    assert (tmp_path / "found").read_text() == "4"


def test_processes_know_the_libraries_that_were_loaded_here() -> None:
    corral.load(corral.libenv_path(), namespace="split")
    found = corral.evaluate(balance, "split/CartPole-v1", range(6), num_processes=2)
    here = corral.evaluate(balance, "CartPole-v1", range(6))
    assert found.returns.tolist() == here.returns.tolist()
    assert found.id == "split/CartPole-v1"


def test_only_who_needs_a_library_whose_file_is_gone_is_told(tmp_path: Path) -> None:
    file = shutil.copy(corral.libenv_path(), tmp_path / "gone.so")
    corral.load(file, namespace="gone_since")
    os.unlink(file)
    found = corral.evaluate(balance, "CartPole-v1", range(4), num_processes=2)
    assert found.indices.tolist() == [0, 1, 2, 3]
    with pytest.raises(LibraryError, match=r"gone\.so"):
        corral.evaluate(balance, "gone_since/CartPole-v1", range(4), num_processes=2)


def test_running_statistics_are_not_split(tmp_path: Path) -> None:
    more: list[dict[str, Any]] = [
        {"shard": (0, 2)},
        {"num_processes": 2},
        {"progress_file": tmp_path / "progress"},
    ]
    for one in more:
        with pytest.raises(UnsupportedError, match="running statistics"):
            corral.evaluate(balance, "CartPole-v1", [1, 2], normalize_observation=True, **one)
    envs = corral.make_vec("CartPole-v1", 2, normalize_observation=True)
    assert envs.observation_normalization is not None
    envs.observation_normalization.update = False
    assert len(corral.evaluate(balance, envs, [1, 2], shard=(0, 2)).indices) == 1


class Counting:
    """Plays as `balance`, and notes which indices it began."""

    def __init__(self, most: int = sys.maxsize) -> None:
        self.begun: list[int] = []
        self.most = most

    def __call__(self, observations: np.ndarray, began: Any, index: Any) -> np.ndarray:
        self.begun += index[began].tolist()
        if len(self.begun) > self.most:
            raise Broken
        return balance(observations)


@pytest.mark.parametrize("num_envs", [1, 3])
def test_an_interrupted_evaluation_goes_on_where_it_was(num_envs: int, tmp_path: Path) -> None:
    path = tmp_path / "progress"

    def go_on(policy: Any) -> corral.Evaluation:
        return corral.evaluate(
            policy,
            "CartPole-v1",
            INDICES,
            num_envs,
            success=long,
            max_episode_steps=50,
            progress_file=path,
        )

    with pytest.raises(Broken):
        go_on(Counting(most=7))
    kept = len(path.read_text().splitlines()) - 1
    assert 7 - num_envs < kept <= 7
    second = Counting()
    assert columns(go_on(second)) == columns(whole())
    assert len(second.begun) == len(INDICES) - kept
    third = Counting()
    assert columns(go_on(third)) == columns(whole())
    assert third.begun == []
    # However it is split, and whoever plays.
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:5]))
    found = whole(num_processes=2, num_envs=4, num_threads=2, progress_file=path)
    assert columns(found) == columns(whole())
    assert len(path.read_text().splitlines()) == 1 + len(INDICES)


KILLED = """
import os, signal, sys
import numpy as np, corral
calls = 0
def balance(observations):
    global calls
    calls += 1
    if calls == 70:
        os.kill(os.getpid(), signal.SIGKILL)
    return (observations[:, 2] > 0).astype(np.int64)
corral.evaluate(balance, "CartPole-v1", range(20), 2, progress_file=sys.argv[1])
"""


def test_a_killed_process_leaves_what_it_had_found(tmp_path: Path) -> None:
    path = tmp_path / "progress"
    ran = subprocess.run([sys.executable, "-c", KILLED, path], timeout=90)
    assert ran.returncode == -signal.SIGKILL
    kept = len(path.read_text().splitlines()) - 1
    assert 0 < kept < 6
    policy = Counting()
    found = corral.evaluate(policy, "CartPole-v1", range(20), progress_file=path)
    assert columns(found) == columns(corral.evaluate(balance, "CartPole-v1", range(20)))
    assert len(policy.begun) == 20 - kept


ORPHANS = """
import os, sys, time
import numpy as np, corral
def slow(observations):
    time.sleep(0.02)
    with open(f"{sys.path[-1]}/{os.getpid()}", "w"):
        pass
    return np.zeros(len(observations), np.int64)
if __name__ == "__main__":
    sys.path.append(sys.argv[1])
    corral.evaluate(slow, "CartPole-v1", range(9999), 1, num_processes=2)
"""


def test_processes_end_with_the_one_that_started_them(tmp_path: Path) -> None:
    parent = subprocess.Popen([sys.executable, "-c", ORPHANS, tmp_path])
    try:
        for _ in range(900):
            if len(list(tmp_path.iterdir())) == 2 or parent.poll() is not None:
                break
            time.sleep(0.1)
    finally:
        parent.kill()
        parent.wait()
    pids = [int(path.name) for path in tmp_path.iterdir()]
    assert len(pids) == 2
    for _ in range(600):
        if not any(map(psutil.pid_exists, pids)):
            return
        time.sleep(0.1)
    pytest.fail("they go on")


def test_a_torn_last_line_is_dropped_wherever_it_tears(tmp_path: Path) -> None:
    path = tmp_path / "progress"
    expected = columns(corral.evaluate(balance, "CartPole-v1", [3, 4], progress_file=path))
    data = path.read_bytes()
    for end in range(len(data)):
        path.write_bytes(data[:end])
        policy = Counting()
        found = corral.evaluate(policy, "CartPole-v1", [3, 4], progress_file=path)
        assert columns(found) == expected
        assert len(policy.begun) == 2 - max(0, data[:end].count(b"\n") - 1)
        assert sorted(path.read_bytes().splitlines()) == sorted(data.splitlines())


@pytest.mark.parametrize(
    ("what", "changes"),
    [
        ("id", {"env": "Acrobot-v1"}),
        ("config", {"sutton_barto_reward": True}),
        ("max_episode_steps", {"max_episode_steps": 9}),
        ("indices", {"indices": [3, 5]}),
        ("episodes", {"indices": [3, 4, 5]}),
        ("success", {"success": long}),
        ("shard", {"shard": (0, 2)}),
    ],
)
def test_the_progress_of_another_evaluation_is_refused(
    what: str, changes: dict[str, Any], tmp_path: Path
) -> None:
    path = tmp_path / "progress"
    given: dict[str, Any] = {"env": "CartPole-v1", "indices": [3, 4], "max_episode_steps": 8}
    if what == "config":
        given["sutton_barto_reward"] = False
    corral.evaluate(balance, **given, progress_file=path)
    before = path.read_bytes()
    with pytest.raises(ArgumentError, match=f"another evaluation: its {what} ") as raised:
        corral.evaluate(
            lambda seen: np.zeros(len(seen), np.int64), **{**given, **changes}, progress_file=path
        )
    assert str(path) in str(raised.value)
    assert path.read_bytes() == before


def test_the_progress_of_another_env_of_the_same_library_is_refused(tmp_path: Path) -> None:
    def policy(seen: Any) -> Any:
        return {"action": np.zeros(len(seen["obs"]), np.int64)}

    def made(env_id: str) -> corral.VectorEnv:
        settings = {"env_id": env_id}
        return corral.load_env_c_api(
            corral.libenv_path(), num_envs=1, settings=settings, isolation="thread"
        )

    corral.evaluate(policy, made("CartPole-v1"), [1], progress_file=tmp_path / "progress")
    with pytest.raises(ArgumentError, match="its spaces are others"):
        corral.evaluate(policy, made("Acrobot-v1"), [1], progress_file=tmp_path / "progress")


@pytest.mark.parametrize(
    ("at", "line", "message"),
    [
        (0, b"notes of mine\n", "no file of an evaluation's progress"),
        (0, b'{"format": "else"}\n', "no file of an evaluation's progress"),
        (1, b"\x00\x00\n", "line 2 is damaged"),
        (1, b'{"position": 9, "index": 3}\n', "line 2 is damaged"),
        (
            1,
            b'{"position": 0, "index": 4, "return": 1.0, "length": 1, "success": null}\n',
            "index 4",
        ),
        (1, b"[]\n", "line 2 is damaged"),
    ],
)
def test_what_is_no_progress_is_refused_and_left_alone(
    at: int, line: bytes, message: str, tmp_path: Path
) -> None:
    path = tmp_path / "progress"
    corral.evaluate(balance, "CartPole-v1", [3, 4], progress_file=path)
    lines = path.read_bytes().splitlines(keepends=True)
    lines[at] = line
    for content in (b"".join(lines), b"".join(lines[: at + 1])):
        path.write_bytes(content)
        with pytest.raises(ArgumentError, match=message) as raised:
            corral.evaluate(balance, "CartPole-v1", [3, 4], progress_file=path)
        assert str(path) in str(raised.value)
        assert path.read_bytes() == content
    path.write_bytes(b"a single line of mine")
    with pytest.raises(ArgumentError, match="no file of an evaluation's progress"):
        corral.evaluate(balance, "CartPole-v1", [3, 4], progress_file=path)
    assert path.read_bytes() == b"a single line of mine"


def test_a_progress_file_that_cannot_be_one_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ArgumentTypeError, match="progress_file is a path"):
        whole(progress_file=3)
    with pytest.raises(OSError, match=r"directory"):
        whole(progress_file=tmp_path)
    with pytest.raises(OSError, match=r"missing"):
        whole(progress_file=tmp_path / "missing" / "progress")
    with pytest.raises(ArgumentError, match="no ordinary file"):
        whole(progress_file="/dev/full")


def test_two_evaluations_do_not_share_a_progress_file(tmp_path: Path) -> None:
    path = tmp_path / "progress"

    def policy(observations: np.ndarray) -> np.ndarray:
        with pytest.raises(ArgumentError, match="in use by another evaluation"):
            corral.evaluate(balance, "CartPole-v1", [1], progress_file=path)
        return balance(observations)

    corral.evaluate(policy, "CartPole-v1", [1], max_episode_steps=1, progress_file=path)


FULL = """
import resource, sys
import numpy as np, corral
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
def balance(observations):
    return (observations[:, 2] > 0).astype(np.int64)
try:
    corral.evaluate(balance, "CartPole-v1", range(20), progress_file=sys.argv[1])
except corral.errors.ProgressFileError as error:
    assert isinstance(error, OSError) and error.errno == 27
    print(error)
"""


def test_a_full_disk_is_a_clear_error_and_costs_nothing_that_was_written(tmp_path: Path) -> None:
    path = tmp_path / "progress"
    ran = subprocess.run([sys.executable, "-c", FULL, path], capture_output=True, text=True)
    kept = len(path.read_bytes().splitlines()) - 1
    assert f"{path} cannot be written (File too large): it holds {kept} of 20" in ran.stdout
    assert kept > 2
    assert path.read_bytes().endswith(b"\n")
    policy = Counting()
    found = corral.evaluate(policy, "CartPole-v1", range(20), progress_file=path)
    assert columns(found) == columns(corral.evaluate(balance, "CartPole-v1", range(20)))
    assert len(policy.begun) == 20 - kept
