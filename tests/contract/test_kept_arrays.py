"""Kept arrays of Python envs: no fork shares them, no env changes them, nothing else is kept."""

from __future__ import annotations

import gc
import multiprocessing
import os
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

import corral

LINUX = pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="needs Linux's /proc")

FORMS = {
    "box": spaces.Box(-9, 9, (2,), np.float32),
    "dict": spaces.Dict({"a": spaces.Box(-9, 9, (1,)), "b": spaces.Discrete(5)}),
    "sequence": spaces.Sequence(spaces.Box(-9, 9, (1,))),
    "stacked sequence": spaces.Sequence(spaces.Box(-9, 9, (1,)), stack=True),
    "graph": spaces.Graph(spaces.Box(-9, 9, (1,)), None),
    "one of": spaces.OneOf([spaces.Box(-9, 9, (1,)), spaces.Discrete(3)]),
    "text": spaces.Text(9, charset="0123456789"),
}
LOOSE = ["sequence", "stacked sequence", "graph", "one of"]


class Changing(gymnasium.Env[Any, Any]):
    """Shows one and the same object, of `form`, which it changes in place."""

    def __init__(self, form: str, length: int = 100) -> None:
        self.observation_space = FORMS[form]
        self.action_space = spaces.Discrete(2)
        self.form, self.length = form, length
        self.at = np.zeros((2 if form == "box" else 1,), np.float32)
        self.nodes = np.zeros((1, 1), np.float32)
        self.shown: Any = {
            "box": self.at,
            "dict": {"a": self.at, "b": 1},
            "sequence": (self.at,),
            "stacked sequence": self.nodes,
            "graph": spaces.GraphInstance(self.nodes, None, None),
            "one of": (np.int64(0), self.at),
            "text": None,
        }[form]

    def show(self) -> Any:
        self.nodes[:] = self.at[0]
        return str(int(self.at[0])) if self.form == "text" else self.shown

    def reset(self, *, seed: Any = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        self.at[:] = 0
        return self.show(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.at += 1
        return self.show(), 0.0, bool(self.at[0] >= self.length), False, {}


def number(form: str, observation: Any) -> float:
    """What the first env of a batch shows."""
    if form == "box":
        return float(observation[0][0])
    if form == "dict":
        return float(observation["a"][0][0])
    return number_of(form, observation[0])


def number_of(form: str, shown: Any) -> float:
    if form == "text":
        return float(shown)
    array = {"sequence": lambda: shown[0], "one of": lambda: shown[1]}.get(form, lambda: shown)()
    if form == "graph":
        array = shown.nodes
    return float(np.ravel(array)[0])


def arrays_in(shown: Any) -> list[np.ndarray]:
    if isinstance(shown, np.ndarray):
        return [shown]
    if isinstance(shown, dict):
        shown = shown.values()
    elif not isinstance(shown, tuple):
        return []
    return [array for part in shown for array in arrays_in(part)]


HOW: dict[str, dict[str, Any]] = {
    "serial": {"runner": "serial"},
    "thread": {"runner": "thread", "num_threads": 2},
    "background": {"runner": "thread", "num_threads": 2, "timeout": 60},
    "process": {"runner": "process", "context": "forkserver", "num_workers": 1},
}


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("form", FORMS)
def test_what_an_env_changes_later_was_copied_and_what_a_user_changes_is_not_the_envs(
    form: str, how: str
) -> None:
    def envs_of() -> Any:
        return corral.from_gymnasium([lambda: Changing(form)] * 2, **HOW[how])

    envs = envs_of()
    kept = [envs.reset()[0], *[envs.step(np.zeros(2, int))[0] for _ in range(3)]]
    assert [number(form, observation) for observation in kept] == [0, 1, 2, 3]
    again = envs.observe()
    for array in arrays_in(kept[-1]):
        array[...] = 7
    assert number(form, again) == 3
    assert number(form, envs.observe()) == 3
    assert number(form, envs.step(np.zeros(2, int))[0]) == 4
    envs.close()


@pytest.mark.parametrize("form", LOOSE)
@pytest.mark.parametrize("how", ["serial", "thread", "process"])
def test_final_observations_stay_as_they_were(form: str, how: str) -> None:
    envs = corral.from_gymnasium(
        [lambda: Changing(form, 2)] * 2, autoreset_mode="same_step", **HOW[how]
    )
    envs.reset()
    envs.step(np.zeros(2, int))
    first, *_, infos = envs.step(np.zeros(2, int))
    envs.step(np.zeros(2, int))
    assert number(form, first) == 0
    assert number_of(form, infos["final_obs"][0]) == 2
    envs.close()


def in_a_fork(work: Any) -> Any:
    """What `work` gives in a forked child, once the child is allowed to go on."""
    go, let = os.pipe()
    back, tell = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(let)
            os.read(go, 1)
            os.write(tell, repr(work()).encode())
        finally:
            os._exit(0)

    # So that nothing can be read once the child is gone.
    os.close(tell)

    def result() -> str:
        os.write(let, b"x")
        said = os.read(back, 1000).decode()
        os.waitpid(pid, 0)
        for end in (go, let, back):
            os.close(end)
        return said

    return result


@LINUX
@pytest.mark.parametrize("mode", ["next_step", "same_step"])
@pytest.mark.parametrize("how", ["serial", "process"])
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fork_and_its_parent_do_not_see_each_others_writes(how: str, mode: str) -> None:
    envs = corral.from_gymnasium([lambda: Changing("box")] * 4, autoreset_mode=mode, **HOW[how])
    envs.reset()
    batch = envs.step(np.zeros(4, int))[:4]
    before = [array.copy() for array in batch]

    def scribble() -> None:
        for array in batch:
            array[...] = -1

    in_a_fork(scribble)()
    for array, was in zip(batch, before):
        np.testing.assert_array_equal(array, was)
    seen = in_a_fork(lambda: [float(np.ravel(array)[0]) for array in batch])
    expected = repr([float(np.ravel(array)[0]) for array in batch])
    # The parent drops its arrays and uses their memory again.
    batch = ()
    gc.collect()
    for _ in range(6):
        envs.step(np.zeros(4, int))
    assert seen() == expected
    envs.close()


@LINUX
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_what_forked_workers_read_stays_while_the_parent_goes_on() -> None:
    """As PyTorch's DataLoader does it: a forked process reads the rollout that was kept."""
    envs = corral.from_gymnasium([lambda: Changing("box")] * 4, **HOW["process"])
    envs.reset()
    kept = [envs.step(np.zeros(4, int))[0] for _ in range(4)]
    context = multiprocessing.get_context("fork")
    told, go = context.Queue(), context.Event()

    def read() -> None:
        first = [float(batch.sum()) for batch in kept]
        go.wait()
        told.put((first, [float(batch.sum()) for batch in kept]))

    reader = context.Process(target=read)
    reader.start()
    kept = []
    for _ in range(8):
        kept.append(envs.step(np.zeros(4, int))[0])
    go.set()
    first, then = told.get(timeout=60)
    reader.join()
    assert first == then == [8.0, 16.0, 24.0, 32.0]
    envs.close()


@LINUX
def test_kept_rewards_keep_no_shared_memory() -> None:
    def mapped() -> int:
        """Bytes of shared memory of ours that this process has mapped."""
        total = 0
        for line in Path("/proc/self/maps").read_text().splitlines():
            if "memfd:corral" in line:
                start, end = line.split()[0].split("-")
                total += int(end, 16) - int(start, 16)
        return total

    gc.collect()
    before, rewards = mapped(), []
    for _ in range(2):
        envs = corral.from_gymnasium([lambda: Changing("box")] * 4, **HOW["process"])
        envs.reset()
        assert mapped() > before
        for _ in range(5):
            rewards.append(envs.step(np.zeros(4, int))[1])
        envs.close()
        del envs
        gc.collect()
    assert mapped() == before
    assert [reward.nbytes for reward in rewards] == [32] * 10


def test_a_text_that_an_env_shows_again_is_the_same_str() -> None:
    envs = corral.make_vec("MiniGrid-Fetch-5x5-N2-v0", 4, seed=0)
    first = envs.reset()[0]["mission"]
    for _ in range(3):
        again = envs.step(np.zeros(4, dtype=np.int64))[0]["mission"]
        assert all(text is shown for text, shown in zip(again, first))
    other = envs.reset()[0]["mission"]
    assert other != first
    assert first == corral.make_vec("MiniGrid-Fetch-5x5-N2-v0", 4, seed=0).reset()[0]["mission"]
