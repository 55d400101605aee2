"""The programs in `examples/` run, briefly."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.abi import peers, venvs

EXAMPLES = Path(__file__).parents[2] / "examples"
RUN = ("ppo", "tree_search")
IN_TORCH = ("masked_ppo", "sb3")
IN_RAY = ("ray_ppo",)


def test_every_example_is_run_or_named_here() -> None:
    # Procgen's fetches a library; tests/abi plays that one.
    assert {file.stem for file in EXAMPLES.glob("*.py")} == {*RUN, *IN_TORCH, *IN_RAY, "procgen"}


@pytest.mark.parametrize("name", [*RUN, *IN_TORCH, *IN_RAY])
def test_an_example_has_its_measured_result_beside_its_command(name: str) -> None:
    told = (EXAMPLES / f"{name}.py").read_text().split('"""')[1]
    assert f"    python examples/{name}.py [--quick]" in told
    assert re.search(r"\n    .* mean return of -?\d", told.split("Measured")[1])


@pytest.mark.parametrize("name", RUN)
def test_an_example_runs(name: str) -> None:
    done = subprocess.run(
        [sys.executable, EXAMPLES / f"{name}.py", "--quick"],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert "a mean return of" in done.stdout


@pytest.mark.thorough
@pytest.mark.parametrize("name", IN_TORCH)
def test_an_example_in_pytorch_runs(name: str) -> None:
    done = venvs.run(venvs.fetched(peers.torch), EXAMPLES / f"{name}.py", "--quick")
    assert done.returncode == 0, done.stderr
    assert "a mean return of" in done.stdout


@pytest.mark.parametrize("name", IN_TORCH)
def test_an_example_without_pytorch_says_what_to_install(name: str) -> None:
    program = "import runpy, sys; sys.modules['torch'] = None; runpy.run_path(sys.argv[1])"
    done = subprocess.run(
        [sys.executable, "-c", program, EXAMPLES / f"{name}.py"], capture_output=True, text=True
    )
    assert done.returncode == 1
    assert "pip install" in done.stderr


@pytest.mark.xdist_group("ray")
@pytest.mark.parametrize("name", IN_RAY)
def test_an_example_runs_in_ray(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # More threads of OpenBLAS wait for each other spinning, where other tests run beside.
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "1")
    done = venvs.run(venvs.fetched(peers.venv_python, "ray"), EXAMPLES / f"{name}.py", "--quick")
    assert done.returncode == 0, done.stderr
    assert "a mean return of" in done.stdout
