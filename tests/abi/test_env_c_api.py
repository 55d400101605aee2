"""The built-in envs under a host of EnvCApi in C: each of the 31 calls, in order and out of it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

import corral
from corral.checking import faces_of
from tests.abi.test_headers import INCLUDE, build

HOST = Path(__file__).parent / "c" / "env_c_api_host.c"
LIBRARY = Path(corral.__file__).parent / "lib" / "libcorral_envs.so"
SANITIZERS = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-g"]
ENVS = {
    "CartPole-v1": ["max_episode_steps=40"],
    "Maze-v0": ["max_episode_steps=20", "episode_id_is_index=1"],
    "testing/Faulty-v0": [],
    "testing/Dotted-v0": [],
    "testing/Nested-v0": [],
    "testing/Caller-v0": ["gravity=1.5"],
    "testing/Chooser-v0": [],
}


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Path:
    flags = ["-D_GNU_SOURCE", "-Wno-pedantic", *SANITIZERS]
    return build("C", HOST.read_text(), tmp_path_factory.mktemp("host"), *flags, "-ldl")


@pytest.mark.parametrize("id", ENVS)
def test_a_host_in_c_makes_every_call_and_reads_no_byte_too_many(host: Path, id: str) -> None:
    settings = [f"env_id={id}", *ENVS[id]]
    ran = subprocess.run(
        [host, LIBRARY, "corral_connect", *settings],
        capture_output=True,
        text=True,
        timeout=120,
        # Threads that the library leaves behind are no leaks.
        env={**os.environ, "ASAN_OPTIONS": "detect_leaks=0"},
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.count("episode ") == 3


def test_the_header_is_the_one_that_the_library_is_made_for() -> None:
    assert "DEEPMIND_ENV_C_API_VERSION_MINOR 4" in (INCLUDE / "env_c_api.h").read_text()


def test_the_host_of_the_page_balances_the_pole(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "env_c_api.md").read_text()
    code = page.split("```c\n")[1].split("```")[0]
    program = build("C", code, tmp_path, "-D_GNU_SOURCE", "-Wno-pedantic", "-ldl")
    ran = subprocess.run([program, LIBRARY], capture_output=True, text=True, timeout=60, check=True)
    words = ran.stdout.split()
    assert words[0] == "return"
    assert float(words[1].rstrip(",")) > 20


def test_the_library_shows_its_interfaces() -> None:
    assert faces_of(LIBRARY) == ["corral", "libenv", "env_c_api"]
