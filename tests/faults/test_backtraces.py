"""With `RUST_BACKTRACE` set, the error of a panic has the calls that led to it in its notes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from tests.abi.venvs import ROOT

# Panics in every way that an env is run, and prints what was raised: by way, its notes, and the
# backtraces of its failures.
PROGRAM = """
import json
import gymnasium
import numpy as np
import corral

FAULTY = "testing/Faulty-v0"

class Hosted(gymnasium.Env):
    def __init__(self):
        self.env = corral.make(FAULTY, fault="panic_in_step")
        self.observation_space = gymnasium.spaces.Discrete(2)
        self.action_space = gymnasium.spaces.Discrete(2)
    def reset(self, *, seed=None, options=None):
        self.env.reset(seed=seed)
        return 0, {}
    def step(self, action):
        self.env.step({"force": np.zeros(2), "gear": 1})
        return 0, 0.0, False, False, {}

def play(envs):
    envs.reset(seed=0)
    for _ in range(4):
        envs.step({"force": np.zeros((2, 2)), "gear": [1, 1]})

def in_background():
    envs = corral.make_vec(FAULTY, 2, fault="panic_in_step", batch_size=2)
    envs.reset(seed=0)
    for _ in range(4):
        envs.send({"force": np.zeros((2, 2)), "gear": [1, 1]})
        envs.recv()

def in_workers():
    envs = corral.from_gymnasium(Hosted, 2, runner="process")
    envs.reset(seed=0)
    for _ in range(4):
        envs.step([0, 0])

def of_a_server():
    with corral.serve(FAULTY, ("127.0.0.1", 0)) as server:
        play(corral.connect(server.address, 2, {"fault": "panic_in_step"}))

def rendered():
    envs = corral.make_vec(FAULTY, 2, fault="panic_in_render", render_mode="rgb_array")
    envs.reset(seed=0)
    envs.render()

def plugin(**how):
    corral.load(corral.libenv_path(), namespace="lib")
    play(corral.make_vec(f"lib/{FAULTY}", 2, fault="panic_in_step", **how))

def built(id):
    corral.load(corral.libenv_path(), namespace="lib")
    corral.make_vec(id, 2, fault="panic_in_build")

WAYS = {
    "serial": lambda: play(corral.make_vec(FAULTY, 2, fault="panic_in_step", num_threads=1)),
    "threads": lambda: play(corral.make_vec(FAULTY, 2, fault="panic_in_step", num_threads=2)),
    "background": in_background,
    "single": lambda: play(Hosted()),
    "workers": in_workers,
    "server": of_a_server,
    "build": lambda: built(FAULTY),
    "render": rendered,
    "plugin": plugin,
    "plugin's threads": lambda: plugin(num_threads=2),
    "plugin's build": lambda: built(f"lib/{FAULTY}"),
}
if __name__ == "__main__":
    told = {}
    for way, run in WAYS.items():
        try:
            run()
        except corral.errors.EnvError as error:
            calls = [failure.backtrace for failure in error.failures]
            told[way] = [getattr(error, "__notes__", []), calls, str(error)]
    print(json.dumps(told))
"""
NAMES = (
    *("serial", "threads", "background", "single", "workers", "server", "build", "render"),
    *("plugin", "plugin's threads", "plugin's build"),
)


def _told(backtrace: str | None) -> dict[str, Any]:
    env = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    env.pop("RUST_BACKTRACE", None)
    if backtrace is not None:
        env["RUST_BACKTRACE"] = backtrace
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return told


@pytest.fixture(scope="module")
def asked() -> dict[str, Any]:
    return _told("1")


@pytest.fixture(scope="module")
def unasked() -> dict[str, Any]:
    return _told(None)


@pytest.mark.xdist_group("backtraces")
@pytest.mark.parametrize("way", NAMES)
def test_a_panic_carries_its_backtrace_where_it_is_asked_for(
    asked: dict[str, Any], unasked: dict[str, Any], way: str
) -> None:
    notes, calls, text = asked[way]
    said = "\n".join(notes) if sys.version_info >= (3, 11) else text
    # The function that panics, whose name is in the library's symbols.
    assert "stack backtrace:" in said
    assert "faulty.rs:" in said.partition("stack backtrace:")[2], said
    assert sum("faulty.rs:" in (one or "") for one in calls) == len(calls)
    if sys.version_info >= (3, 11):
        assert "stack backtrace" not in text
    plain = unasked[way]
    assert "stack backtrace" not in json.dumps(plain)
    assert plain[1] == [None] * len(calls)
    assert len(plain[0]) == len(notes) - max(1, len(calls))


@pytest.mark.thorough
def test_a_backtrace_in_full_has_addresses_and_zero_asks_for_none() -> None:
    notes, *_ = _told("full")["serial"]
    assert any(" 0x" in line for line in notes[0].splitlines())
    assert "stack backtrace" not in json.dumps(_told("0")["serial"])
