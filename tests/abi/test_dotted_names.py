"""A dot in a name of libenv's is a letter: such names are keys like any others, both ways.

The library is `c/faulty_libenv.c` with DOTTED; what corral exports is `testing/Dotted-v0`.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import corral
from corral import errors
from tests.abi import peers
from tests.abi.libenv import compiled, load
from tests.abi.venvs import fetched
from tests.support import assert_same

HOST = Path(__file__).with_name("gym3_host.py")
LIBRARY = Path(corral.__file__).parent / "lib" / "libcorral_envs.so"

isolations = pytest.mark.parametrize("isolation", ["thread", "process"])


def actions(num_envs: int, move: int = 1) -> dict[str, Any]:
    return {"a.b": np.full(num_envs, move, np.int32), "a": np.zeros((num_envs, 2), np.float32)}


@isolations
def test_names_of_a_loaded_library_are_keys_as_they_are(isolation: str) -> None:
    envs = load("DOTTED", "OURS", isolation=isolation, episode_statistics=True)
    assert list(envs.single_observation_space.keys()) == ["a", "a.b", "a.", "."]
    assert list(envs.single_action_space.keys()) == ["a.b", "a"]
    observations, infos = envs.reset()
    assert list(observations) == ["a", "a.b", "a.", "."]
    assert observations["a"].tolist() == [5, 5]
    assert observations["a.b"].shape == (2, 2, 3)
    assert_same(infos["x."], np.zeros((2, 2), np.float32))
    envs.step(actions(2))
    observations, _, terminated, _, infos = envs.step(actions(2))
    assert terminated.tolist() == [True, False]
    assert observations["a"].tolist() == [5, 7]
    final = infos["final_obs"][0]
    assert list(final) == ["a", "a.b", "a.", "."]
    assert final["a"] == 7
    # The library's own info stands beside what corral tells of episodes.
    assert infos["total.r"].tolist() == [2, 2]
    assert infos["_total.r"].all()
    assert infos["episode"]["r"].tolist() == [2.0, 0.0]
    assert infos["final_info"]["total.r"].tolist() == [2, 0]
    with pytest.raises(errors.InvalidActionError, match=r"leaf 'a\.b': 9 is outside 0 to 2"):
        envs.step(actions(2, move=9))
    envs.close()


@isolations
def test_frames_of_leaves_with_dots_are_stacked(isolation: str) -> None:
    envs = load("DOTTED", isolation=isolation, frame_stack=2, normalize_observation=True)
    observations, _ = envs.reset()
    assert observations["a"].tolist() == [[5, 5], [5, 5]]
    assert envs.step(actions(2))[0]["a"].tolist() == [[5, 6], [5, 6]]
    assert list(envs.single_observation_space.keys()) == ["a", "a.b", "a.", "."]
    envs.close()


def test_an_env_here_has_names_with_dots_beside_levels() -> None:
    envs = corral.make_vec("testing/Dotted-v0", 2)
    observations, infos = envs.reset()
    assert list(envs.single_observation_space.keys()) == ["a", "a.b", "a.", "in"]
    assert list(observations["in"]) == ["side"]
    assert infos["x."].tolist() == [0, 0]
    taken = {"a.b": np.array([1, 2]), "a": np.array([0.5, -0.5], np.float32)}
    observations, rewards, *_, infos = envs.step(taken)
    assert rewards.tolist() == [10.5, 19.5]
    assert observations["a.b"].tolist() == [[10, 10], [10, 10]]
    assert observations["in"]["side"].tolist() == [1000, 1000]
    assert infos["x."].tolist() == [1, 1]
    envs.close()


def told_by_gym3(tmp_path: Path, library: Path, options: dict[str, Any]) -> dict[str, Any]:
    """What gym3's own host finds and, after a step with these actions, sees."""
    python = fetched(peers.venv_python, "gym3")
    job = tmp_path / "job.json"
    told = {"library": str(library), "num_envs": 2, "options": options}
    job.write_text(json.dumps({**told, "actions": {"a.b": [1, 2], "a": 0.5}}))
    done = subprocess.run([python, HOST, "names", job], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_gym3_finds_what_corral_finds_in_a_library_with_dots(tmp_path: Path) -> None:
    found = told_by_gym3(tmp_path, compiled("DOTTED"), {})
    assert set(found["observation"]) == {"a", "a.b", "a.", "."}
    assert found["observation"]["a"] == [6, 6]
    assert set(found["info"]) == {"total.r", "x."}
    assert found["reward"] == [1.5, 12.5]


@pytest.mark.skipif(not LIBRARY.exists(), reason="the library of built-in envs was not built")
def test_gym3_finds_the_names_of_an_exported_env_and_so_does_corral(tmp_path: Path) -> None:
    found = told_by_gym3(tmp_path, LIBRARY, {"env_id": "testing/Dotted-v0"})
    names = ["a", "a.b", "a.", "in.side"]
    assert set(found["observation"]) == set(names)
    assert found["observation"]["a.b"] == [[10, 10], [10, 10]]
    assert found["observation"]["in.side"] == [1000, 1000]
    assert found["info"]["x."] == [1, 1]
    assert {f"final_{name}" for name in names} < set(found["info"])
    assert found["reward"] == [10.5, 20.5]
    # Loaded again, all dots are letters: libenv says no more.
    envs = corral.load_libenv(LIBRARY, 2, {"env_id": "testing/Dotted-v0"})
    assert list(envs.single_observation_space.keys()) == names
    envs.reset()
    for _ in range(5):
        observations, *_, infos = envs.step(
            {"a.b": np.array([1, 2], np.int32), "a": np.full(2, 0.5, np.float32)}
        )
    assert observations["in.side"].tolist() == [0, 0]
    assert infos["final_obs"][0]["in.side"] == 5000
    assert infos["final_info"]["x."].tolist() == [5, 5]
    envs.close()
