"""procgen, a real libenv library, beside the host that it was written for."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import corral
from corral import errors
from tests.abi import peers
from tests.abi.venvs import fetched
from tests.support import assert_same

NUM_ENVS, STEPS = 64, 500

# One process has what gym3 recorded.
pytestmark = pytest.mark.xdist_group("procgen")


def digest(array: Any) -> Any:
    """As `gym3_host.py` has it."""
    content = hashlib.blake2b(np.ascontiguousarray(array).tobytes(), digest_size=16).digest()
    return np.frombuffer(content, np.uint8)


@pytest.fixture(scope="module")
def library() -> Path:
    return fetched(peers.procgen)


@pytest.fixture(scope="module")
def actions() -> Any:
    drawn = np.random.default_rng(3).integers(0, 15, (STEPS, NUM_ENVS)).astype(np.int32)
    # Which begins a new episode.
    drawn[100, 5] = -1
    return drawn


@pytest.fixture(scope="module")
def recorded(library: Path, actions: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What gym3's host saw."""
    folder = tmp_path_factory.mktemp("gym3")
    np.save(folder / "actions.npy", actions)
    job = {
        "library": str(library),
        "num_envs": NUM_ENVS,
        "options": peers.procgen_options(library),
        "actions": str(folder / "actions.npy"),
        "out": str(folder / "seen.npz"),
    }
    (folder / "job.json").write_text(json.dumps(job))
    python = fetched(peers.venv_python, "gym3")
    host = Path(__file__).with_name("gym3_host.py")
    done = subprocess.run(
        [python, host, "record", folder / "job.json"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return np.load(folder / "seen.npz")


@pytest.mark.timeout(600)
@pytest.mark.parametrize("isolation", ["thread", "process"])
def test_procgen_shows_the_same_bytes_as_under_gym3(
    isolation: str, library: Path, actions: Any, recorded: Any
) -> None:
    envs = corral.load_libenv(
        library,
        NUM_ENVS,
        peers.procgen_options(library),
        isolation=isolation,
        check_actions=False,
    )
    observations, infos = envs.reset()
    names = {"prev_level_seed", "prev_level_complete", "level_seed"}
    assert {name.removeprefix("info ") for name in recorded if name.startswith("info ")} == names
    rewards, ended = np.zeros(NUM_ENVS), None
    for step in range(STEPS + 1):
        assert_same(digest(observations["rgb"]), recorded["ob rgb"][step], f"rgb at step {step}")
        assert_same(rewards.astype(np.float32), recorded["reward"][step], f"step {step}")
        if ended is not None:
            assert_same(ended, recorded["first"][step], f"first at step {step}")
        for name in names:
            assert_same(infos[name], recorded[f"info {name}"][step], f"{name} at step {step}")
        if step < STEPS:
            observations, rewards, ended, truncated, infos = envs.step({"action": actions[step]})
            assert not truncated.any()
    # The run has seen what it is about.
    assert recorded["first"][1:].sum() > 20
    assert recorded["first"][101, 5]
    assert recorded["reward"].any()
    envs.close()


def test_a_wrong_option_that_ends_procgens_process_is_an_error(library: Path) -> None:
    options = peers.procgen_options(library, no_such_option=1)
    with pytest.raises(errors.EnvError, match="exited with code 1") as raised:
        corral.load_libenv(library, 2, options)
    assert "unused option" in str(raised.value)
    assert str(library) in str(raised.value)


def test_a_wrong_name_that_aborts_procgen_is_an_error(library: Path) -> None:
    """It throws a C++ exception."""
    options = peers.procgen_options(library, env_name="coinrum")
    with pytest.raises(errors.EnvError, match="SIGABRT") as raised:
        corral.load_libenv(library, 2, options)
    told = str(raised.value)
    assert "env_name='coinrum'" in told
    # What procgen's C++ said.
    assert "terminate called after throwing an instance of 'std::out_of_range'" in told
    assert "what():  " in told


def test_procgens_states_are_saved_and_loaded(library: Path, actions: Any) -> None:
    envs = corral.load_libenv(library, 4, peers.procgen_options(library))
    envs.reset()
    for step in range(20):
        envs.step({"action": actions[step, :4] % 15})
    state = envs.save_state()
    later = [envs.step({"action": actions[step, :4] % 15}) for step in range(20, 60)]
    envs.load_state(state)
    again = [envs.step({"action": actions[step, :4] % 15}) for step in range(20, 60)]
    assert_same([step[:4] for step in again], [step[:4] for step in later])
    envs.close()


def test_the_example_plays_and_draws_64_coinruns(library: Path, tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image", reason="the example draws with pillow")
    cache = tmp_path / "corral" / "procgen-0.10.7" / "procgen"
    cache.parent.mkdir(parents=True)
    # Fetched once for all tests.
    cache.symlink_to(library.parents[2])
    example = Path(__file__).parents[2] / "examples" / "procgen.py"
    ran = subprocess.run(
        [sys.executable, example, tmp_path / "picture.png"],
        env={**os.environ, "XDG_CACHE_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert ran.returncode == 0, ran.stderr
    assert "steps a second" in ran.stdout
    with image.open(tmp_path / "picture.png") as picture:
        assert picture.size == (512, 512)
        assert len(set(picture.convert("RGB").getdata())) > 1000
