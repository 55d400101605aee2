"""Policies played: scores and films."""

from __future__ import annotations

import csv
from contextlib import closing
from pathlib import Path

import gymnasium
import numpy as np
import pytest

import corral
from corral.cli.policies import Random
from tests.cli.support import Command

TAXI = next(id for id in gymnasium.registry if id.startswith("Taxi-v"))
POLICY = """
import numpy as np

def policy(observations):
    return (observations[:, 2] + observations[:, 3] > 0).astype(int)

def right(observations, infos):
    return np.ones(len(observations), int)

def broken(observations):
    return 1 / 0

wrong = 5
"""


@pytest.fixture
def policy(tmp_path: Path) -> str:
    (tmp_path / "policy.py").write_text(POLICY)
    return "policy.py"


def gymnasiums_return(seed: int) -> float:
    env = gymnasium.make("CartPole-v1")
    observation, _ = env.reset(seed=seed)
    total, over = 0.0, False
    while not over:
        action = int(observation[2] + observation[3] > 0)
        observation, reward, terminated, truncated, _ = env.step(action)
        total, over = total + float(reward), terminated or truncated
    return total


@pytest.mark.parametrize("id", ["CartPole-v1", "gymnasium:CartPole-v1"])
def test_a_policys_returns_are_gymnasiums(command: Command, policy: str, tmp_path: Path, id: str):
    told = command.json(
        "eval", id, "--policy", policy, "--indices", "3:8:2", "--num-envs", 2, "--csv", "out.csv"
    )
    expected = [gymnasiums_return(seed) for seed in (3, 5, 7)]
    assert told["indices"] == [3, 5, 7]
    assert told["returns"] == expected
    assert told["mean"] == pytest.approx(np.mean(expected))
    rows = list(csv.DictReader((tmp_path / "out.csv").open()))
    assert [float(row["return"]) for row in rows] == expected


@pytest.mark.parametrize("id", ["Taxi-v4", f"gymnasium:{TAXI}"])
def test_random_actions_are_the_same_at_any_width_and_keep_to_masks(command: Command, id: str):
    def returns(*more: object) -> list[float]:
        told = command.json("eval", id, "--indices", "0:6", *more)
        found: list[float] = told["returns"]
        return found

    assert returns("--num-envs", 1) == returns("--num-envs", 6)
    assert returns() != returns("--policy-seed", 1)
    # A pick-up or drop-off that the mask forbids costs 10; any other step at most 1.
    assert min(returns()) >= -200
    assert "random actions, seed 0" in command("eval", id, "--indices", "0:1").stderr


def test_each_index_has_random_actions_of_its_own():
    with closing(corral.make_vec("CartPole-v1", 2)) as envs:
        policy = Random(envs, 0)
        indices = np.array([4, 9])
        rows = [
            policy(None, began=np.full(2, step == 0), index=indices, infos={}) for step in range(40)
        ]
    first, second = np.transpose(rows).tolist()
    assert first != second
    assert set(first) == set(second) == {0, 1}


def test_options_reach_the_env(command: Command, corridor: str, tmp_path: Path):
    (tmp_path / "policy.py").write_text(POLICY)
    chosen = ("--policy", "policy.py:right", "--indices", "0:4")
    far = command.json("eval", corridor, *chosen, "--option", "length=12")["lengths"]
    near = command.json("eval", corridor, *chosen, "--option", "length=5")["lengths"]
    assert [a - b for a, b in zip(far, near)] == [7] * 4


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["Nope-v1"], "unknown env 'Nope-v1'"),
        (["gymnasium:Nope-v1"], "has registered no 'Nope-v1'"),
        (["no_module:Nope-v1"], "module 'no_module' cannot be imported"),
        (["CartPole-v1", "--indices", "1-3"], "are no indices: write FIRST:END[:STEP]"),
        (["CartPole-v1", "--indices", ":end:"], "':end:' are no indices"),
        (["CartPole-v1", "--indices", "3:3"], "names no index"),
        (["CartPole-v1", "--indices", "1,2,1"], "index 1 is named twice"),
        (["CartPole-v1", "--option", "size=3"], "unknown option 'size'"),
        (["CartPole-v1", "--option", "fast=maybe"], "fast is a bool, not 'maybe'"),
        (["CartPole-v1", "--option", "seed=1"], "'seed' is of vec envs"),
        (["CartPole-v1", "--option", "fast"], "'fast' is not NAME=VALUE"),
        (["CartPole-v1", "--num-envs", "0"], "--num-envs"),
        (["CartPole-v1", "--nonsense"], "No such option"),
        ([], "Missing argument"),
        (["CartPole-v1", "--policy", "none.py"], "there is no policy file none.py"),
        (["CartPole-v1", "--policy", "policy.py:none"], "no function 'none': it has policy, right"),
        (["CartPole-v1", "--policy", "policy.py:wrong"], "no function 'wrong'"),
        (["CartPole-v1", "--policy", "policy.py:broken"], "ZeroDivisionError"),
        (["Pendulum-v1", "--policy", "policy.py:right"], "action"),
    ],
)
def test_what_the_user_did_wrong_is_one_line(
    command: Command, policy: str, arguments: list[str], why: str
):
    assert why in command.refusal("eval", *arguments)


def test_a_film_has_the_envs_pictures(command: Command, corridor: str, tmp_path: Path):
    image = pytest.importorskip("PIL.Image")
    (tmp_path / "policy.py").write_text(POLICY)
    told = command.json(
        "render", corridor, "-o", "a.gif", "--policy", "policy.py:right", "--seed", 1
    )
    at = int(np.random.default_rng(1).integers(0, 3))
    assert (told["steps"], told["return"], told["ended"]) == (9 - at, at - 9, True)
    film = image.open(tmp_path / "a.gif")
    assert (film.n_frames, film.info["duration"], film.size) == (10 - at, 100, (80, 8))
    for k in range(film.n_frames):
        film.seek(k)
        row = np.asarray(film.convert("RGB"))[3, :, 0]
        left = 4 * (at + k)
        assert np.flatnonzero(row == 255).tolist() == [left, left + 1, left + 2, left + 3]
    assert command.out("render", corridor, "-o", "b.gif", "--steps", 3).startswith(
        "b.gif: 4 pictures, 3 steps"
    )


def test_a_film_in_mp4_is_as_long_and_as_large(command: Command, policy: str, tmp_path: Path):
    imageio = pytest.importorskip("imageio.v3")
    pytest.importorskip("imageio_ffmpeg")
    command.out("render", "CartPole-v1", "-o", "a.mp4", "--policy", policy, "--steps", 12)
    assert imageio.imread(tmp_path / "a.mp4").shape == (13, 400, 600, 3)
    assert imageio.immeta(tmp_path / "a.mp4")["fps"] == 50
    broken = command.refusal("render", "CartPole-v1", "-o", "b.mp4", "--policy", f"{policy}:broken")
    assert "ZeroDivisionError" in broken
    assert not (tmp_path / "b.mp4").exists()


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["CartPole-v1"], "Missing option '--out'"),
        (["CartPole-v1", "-o", "a.png"], "neither .gif nor .mp4"),
        (["CartPole-v1", "-o", "a.gif", "--seed", "1", "--index", "1"], "not both"),
        (["corral/Nope-v0", "-o", "a.gif"], "unknown env"),
    ],
)
def test_a_film_that_cannot_be_is_told_in_one_line(
    command: Command, arguments: list[str], why: str
):
    assert why in command.refusal("render", *arguments)
