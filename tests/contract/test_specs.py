"""`corral.spec`: a vec env's id and options as a value, which makes it in any process."""

from __future__ import annotations

import contextlib
import copy
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cloudpickle
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

import corral
from corral import errors
from tests.abi.test_plugin import CC, HERE, build

MAZE: dict[str, Any] = {"num_envs": 3, "seed": 7, "autoreset_mode": "same_step", "size": 9}


needs_c = pytest.mark.skipif(CC is None, reason="there is no C compiler here")


def library(folder: Path, namespace: str) -> tuple[Path, str]:
    """A library in C, loaded, and the id of its env."""
    path = build(HERE / "c" / "counter.c", folder / f"{namespace}.so")
    (id,) = corral.load(path, namespace=namespace)
    return path, id


def played(envs: corral.VectorEnv) -> list[str]:
    with contextlib.closing(envs):
        shown = [repr(envs.metadata), repr(envs.reset())]
        envs.action_space.seed(0)
        return [*shown, *(repr(envs.step(envs.action_space.sample())) for _ in range(30))]


def elsewhere(program: str, data: bytes, tmp_path: Path) -> str:
    """What a program prints in a new process, in another folder; it has `data` in a file."""
    file = tmp_path / "data"
    file.write_bytes(data)
    run = [sys.executable, "-c", program, str(file)]
    done = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_spec_makes_what_make_vec_makes() -> None:
    made = corral.spec("Maze-v0", **MAZE)
    assert (made.id, dict(made.options)) == ("Maze-v0", MAZE)
    expected = played(corral.make_vec("Maze-v0", **MAZE))
    assert played(made.make()) == played(made()) == expected
    assert played(made.make(seed=8)) == played(corral.make_vec("Maze-v0", **{**MAZE, "seed": 8}))
    assert played(made({"num_envs": 5})) == played(
        corral.make_vec("Maze-v0", **{**MAZE, "num_envs": 5})
    )
    assert dict(made.options) == MAZE


@pytest.mark.parametrize("travel", [copy.deepcopy, copy.copy, pickle, cloudpickle])
def test_a_spec_is_the_same_after_a_journey(travel: Any) -> None:
    made = corral.spec("Maze-v0", **MAZE)
    carry = travel if callable(travel) else lambda one: pickle.loads(travel.dumps(one))
    there = carry(made)
    assert there == made
    assert hash(there) == hash(made)
    assert played(there()) == played(made())


def test_a_spec_makes_the_same_vec_env_in_another_process(tmp_path: Path) -> None:
    program = (
        "import pickle, sys\n"
        "envs = pickle.load(open(sys.argv[1], 'rb'))()\n"
        "print(envs.reset()[0].tolist())"
    )
    made = corral.spec("CartPole-v1", num_envs=4, seed=3)
    there = elsewhere(program, pickle.dumps(made), tmp_path)
    assert there.strip() == str(made().reset()[0].tolist())


def test_a_spec_is_printed_as_what_makes_it() -> None:
    made = corral.spec("Maze-v0", **MAZE)
    assert repr(made) == (
        "corral.spec('Maze-v0', num_envs=3, seed=7, autoreset_mode='same_step', size=9)"
    )
    assert eval(repr(made)) == made


def test_specs_are_equal_where_their_arguments_are() -> None:
    made = corral.spec("CartPole-v1", num_envs=2, seed=1)
    assert made == corral.spec("CartPole-v1", 2, seed=1)
    assert len({made, corral.spec("CartPole-v1", 2, seed=1)}) == 1
    for other in (
        corral.spec("CartPole-v1", 2, seed=2),
        corral.spec("CartPole-v1", 3, seed=1),
        corral.spec("Maze-v0", 2, seed=1),
        "corral.spec('CartPole-v1', num_envs=2, seed=1)",
    ):
        assert made != other
    lists = [corral.spec("CartPole-v1", 2, final_frames=[k], autoreset_mode="same_step")
             for k in (0, 0, 1)]  # fmt: skip
    assert lists[0] == lists[1] != lists[2]
    assert hash(lists[0]) == hash(lists[1])


def test_a_spec_does_not_change() -> None:
    frames = [0]
    made = corral.spec("CartPole-v1", 2, final_frames=frames, autoreset_mode="same_step")
    frames.append(1)
    assert made.options["final_frames"] == [0]
    with pytest.raises(errors.UnsupportedError, match=r"make\(\*\*overrides\)"):
        made.id = "Maze-v0"
    with pytest.raises(TypeError):
        made.options["seed"] = 1  # type: ignore[index]


@pytest.mark.parametrize(
    ("ask", "kind"),
    [
        (lambda: corral.spec("CartPol-v1"), errors.UnknownEnvError),
        (lambda: corral.spec("CartPole-v1", sise=3), errors.UnknownOptionError),
        (lambda: corral.spec("Maze-v0", size=-3), errors.OptionValueError),
        (lambda: corral.spec("CartPole-v1", 2, batch_size=3), errors.ArgumentError),
        (lambda: corral.spec("CartPole-v1", 2, seed="x"), errors.ArgumentTypeError),
        (lambda: corral.spec("CartPole-v1", 0), errors.ArgumentError),
        (lambda: corral.spec("CartPole-v1")(3), errors.ArgumentTypeError),  # type: ignore[arg-type]
        (lambda: corral.spec("CartPole-v1")({"sise": 3}), errors.UnknownOptionError),
    ],
)
def test_what_is_wrong_is_an_error_at_once(ask: Callable[[], Any], kind: type) -> None:
    with pytest.raises(kind):
        ask()


def test_gymnasiums_enum_travels() -> None:
    made = corral.spec("CartPole-v1", 2, autoreset_mode=AutoresetMode.DISABLED)
    there = pickle.loads(pickle.dumps(made))
    assert there.make().autoreset_mode is AutoresetMode.DISABLED


def test_an_array_among_the_options_is_compared_by_its_values() -> None:
    one, same, other = (
        corral.specs.VecSpec("X-v0", {"levels": np.array([1, k])}) for k in (2, 2, 3)
    )
    assert one == same != other
    assert hash(one) == hash(same)


@needs_c
def test_a_library_that_was_loaded_by_a_path_is_loaded_where_the_spec_arrives(
    tmp_path: Path,
) -> None:
    _, id = library(tmp_path, "travels")
    data = pickle.dumps(corral.spec(id, 2))
    program = (
        "import pickle, sys, corral\n"
        "made = pickle.load(open(sys.argv[1], 'rb'))\n"
        "print(made.id, made().num_envs)"
    )
    assert elsewhere(program, data, tmp_path) == f"{id} 2\n"


@needs_c
def test_a_library_that_is_not_there_is_named(tmp_path: Path) -> None:
    path, id = library(tmp_path, "goes")
    data = pickle.dumps(corral.spec(id, 2))
    path.unlink()
    program = (
        "import pickle, sys, corral\n"
        "try:\n    pickle.load(open(sys.argv[1], 'rb'))\n"
        "except corral.errors.LibraryError as error:\n    print(error)"
    )
    assert f"there is no file {path}" in elsewhere(program, data, tmp_path)
