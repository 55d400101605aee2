"""The identity matrix, the runners' half: whoever steps the slots, the same bytes slot by slot.

Every built-in env × 3 autoreset modes × 17 runners: `SOURCES` × `MODES` × `RUNNERS`, each held to
the serial runner (`num_threads=1`). One script is played on all: a seeded reset of all, a masked
one, one with a seed for some, one with indices for some, and steps between, with episode
statistics. What is compared is each slot's story (observations, rewards, flags, infos by their
masks, `final_obs`, `final_info`), and, for runners that step all slots at once, every result whole,
masks included. Only `infos["episode"]["t"]`, which is a time, is left out.

Threads take part only where the work is worth waking them: Faulty sleeps in every step, and there
are many Mazes. `test_threads_do_take_part` sees that they do.
"""

from __future__ import annotations

import functools
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import corral
from tests.matrix.test_matrix import CONFIGS, action_of, arrays_of, info_of, stack
from tests.support import FAULTY, MODES, PLAYED, Case, assert_same, digest, quick_cases, row

SEED = 700
# Steps of each part of the script, and slots, of envs that are slow to step; and of the others.
STEPS = {"Maze-v0": (6, 3, 3, 5), FAULTY: (14, 9, 9, 14)}
SLOTS = {"Maze-v0": 48}
USUAL_STEPS, USUAL_SLOTS = (30, 25, 25, 25), 7
LIMITS = {"Maze-v0": 4}
SOURCES = [
    *(Case(id, id, LIMITS.get(id, 20), CONFIGS.get(id, {})) for id in PLAYED),
    Case(FAULTY, FAULTY, 8, {"fault": "sleep_in_every_step", "sleep": 0.0002}),
]
SERIAL: dict[str, Any] = {"num_threads": 1}
RUNNERS: dict[str, dict[str, Any]] = {
    "2 threads": {"num_threads": 2},
    "3 threads": {"num_threads": 3},
    "8 threads": {"num_threads": 8},
    "as many threads as it likes": {},
    "bound threads": {"num_threads": 2, "thread_affinity_offset": 0},
    "a batch size of all": {"num_threads": 2, "batch_size": 0},
    "a timeout": {"timeout": 30},
    "a timeout, 3 threads": {"timeout": 30.5, "num_threads": 3},
    "restart, serial": {"num_threads": 1, "on_failure": "restart"},
    "restart, 3 threads": {"num_threads": 3, "on_failure": "restart"},
    "mask, 2 threads": {"num_threads": 2, "on_failure": "mask"},
    "mask, a timeout": {"timeout": 30, "on_failure": "mask"},
    "batches of 1": {"batch_size": 1, "num_threads": 1},
    "batches of 3": {"batch_size": 3, "num_threads": 2},
    "batches of all but 1": {"batch_size": -1, "num_threads": 3},
    "batches of 2, restart": {"batch_size": 2, "num_threads": 2, "on_failure": "restart"},
    "batches of 4, mask, a timeout": {"batch_size": 4, "timeout": 30, "on_failure": "mask"},
}


def make(case: Case, mode: str, runner: dict[str, Any]) -> corral.VectorEnv:
    n = SLOTS.get(case.id, USUAL_SLOTS)
    if (size := runner.get("batch_size")) is not None and size <= 0:
        # Counted back from all.
        runner = {**runner, "batch_size": n + size}
    return case.make_vec(n, mode, seed=SEED, episode_statistics=True, **runner)


def timeless(infos: Any) -> Any:
    """Infos without the time that episodes took."""
    if not isinstance(infos, dict):
        return infos
    return {
        key: {name: part for name, part in value.items() if name != "t"}
        if key == "episode"
        else timeless(value)
        for key, value in infos.items()
    }


def row_info(infos: dict[str, Any], at: int) -> dict[str, Any]:
    """A row's own info; the statistics within `episode` have no masks of their own."""
    rest = {key: value for key, value in infos.items() if key != "episode"}
    found = info_of(
        {key: value for key, value in rest.items() if key not in ("env_id", "row_kind")}, at
    )
    if "episode" in infos and infos["_episode"][at]:
        found["episode"] = {name: infos["episode"][name][at] for name in ("r", "l")}
    return found


class Script:
    """Plays the script; `stories` is what each slot went through, `whole` all results."""

    def __init__(self, case: Case, mode: str, runner: dict[str, Any]) -> None:
        self.case, self.mode = case, mode
        self.envs = make(case, mode, runner)
        self.n = self.envs.num_envs
        self.by_parts = self.envs.batch_size < self.n
        self.stories: list[list[Any]] = [[] for _ in range(self.n)]
        self.whole: list[Any] = []
        self.played = np.zeros(self.n, dtype=np.int64)
        self.over = np.zeros(self.n, dtype=np.bool_)

    def play(self) -> Script:
        n, index, seed = self.n, [77 + 3 * i for i in range(self.n)], 4000
        third = np.arange(n) % 3 == 1
        parts = STEPS.get(self.case.id, USUAL_STEPS)
        self.begin()
        self.steps(parts[0])
        self.reset(options={"reset_mask": third})
        self.steps(parts[1])
        self.reset(seed=[seed + i if i % 2 else None for i in range(n)])
        self.steps(parts[2])
        self.reset(options={"index": index, "reset_mask": ~third})
        self.steps(parts[3])
        self.whole.append(digest(arrays_of(self.envs.observe())))
        self.envs.close()
        return self

    def begin(self) -> None:
        if not self.by_parts:
            return self.reset(seed=SEED)
        self.envs.async_reset(seed=SEED)
        while self.envs.native.in_flight():
            observations, rewards, terminated, truncated, infos = self.envs.recv()
            assert not np.any([rewards, terminated, truncated])
            for at, slot in enumerate(infos["env_id"]):
                self.stories[slot].append(
                    ("reset", digest(row(observations, at)), digest(row_info(infos, at)))
                )

    def reset(self, quiet: bool = False, **how: Any) -> None:
        """Quiet: of slots that the mode leaves to the user, each when it gets there."""
        observations, infos = self.envs.reset(**how)
        mask = (how.get("options") or {}).get("reset_mask", np.ones(self.n, dtype=np.bool_))
        self.over &= ~mask
        if not quiet or not self.by_parts:
            self.whole.append(digest((observations, infos)))
        for slot in np.flatnonzero(mask) if quiet else range(self.n):
            seen = digest(row(observations, slot)), digest(row_info(infos, slot))
            self.stories[slot].append(("reset" if mask[slot] else "kept", *seen))

    def steps(self, count: int) -> None:
        goal = self.played + count
        while True:
            due = self.over & (self.played < goal)
            if due.any():
                self.reset(quiet=True, options={"reset_mask": due})
            if (self.played >= goal).all():
                return
            if self.by_parts:
                self.until_over(goal)
            else:
                self.take(self.envs.step(self.actions(range(self.n))), range(self.n))

    def actions(self, slots: Any) -> Any:
        return stack([action_of(self.case, int(i), int(self.played[i])) for i in slots])

    def until_over(self, goal: Any) -> None:
        """Every slot by itself until it has played, or its episode is over and waits."""
        envs, going = self.envs, np.flatnonzero((self.played < goal) & ~self.over)
        while True:
            if len(going):
                envs.send(self.actions(going), going)
            if not (flying := envs.native.in_flight()):
                return
            batch = envs.recv()
            ids = batch[4]["env_id"]
            assert len(ids) == min(flying, envs.batch_size)
            self.take(batch, ids)
            going = ids[(self.played[ids] < goal[ids]) & ~self.over[ids]]

    def take(self, batch: Any, slots: Any) -> None:
        observations, rewards, terminated, truncated, infos = batch
        infos = timeless(infos)
        if not self.by_parts:
            self.whole.append(digest((observations, rewards, terminated, truncated, infos)))
        for at, slot in enumerate(slots):
            flags = digest((rewards[at], terminated[at], truncated[at]))
            finals: Any = None
            if "final_obs" in infos and infos["_final_obs"][at]:
                finals = digest(infos["final_obs"][at]), digest(row_info(infos["final_info"], at))
            seen = digest(row(observations, at)), flags, digest(row_info(infos, at)), finals
            self.stories[slot].append(("step", *seen))
            self.played[slot] += 1
            if self.mode == "disabled":
                self.over[slot] = terminated[at] or truncated[at]


@functools.cache
def reference(case: Case, mode: str) -> Script:
    return Script(case, mode, SERIAL).play()


@pytest.mark.parametrize("runner", RUNNERS)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("case", quick_cases(SOURCES))
def test_every_runner_gives_the_serial_runners_bytes(case: Case, mode: str, runner: str) -> None:
    expected, got = reference(case, mode), Script(case, mode, RUNNERS[runner]).play()
    assert got.by_parts == (runner.startswith("batches"))
    for slot in range(got.n):
        for k, (ours, theirs) in enumerate(zip(got.stories[slot], expected.stories[slot])):
            assert ours == theirs, f"env {slot}, event {k}"
        assert len(got.stories[slot]) == len(expected.stories[slot])
    if not got.by_parts:
        assert len(got.whole) == len(expected.whole)
        for k, (ours, theirs) in enumerate(zip(got.whole, expected.whole)):
            assert ours == theirs, f"result {k}"


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("case", quick_cases(SOURCES))
def test_the_script_has_something_to_compare(case: Case, mode: str) -> None:
    """Slots differ, episodes end, statistics are told, and finals where the mode has them."""
    played = reference(case, mode)
    assert len({repr(story) for story in played.stories}) == played.n
    steps = [event for story in played.stories for event in story if event[0] == "step"]
    assert sum(any(np.frombuffer(flag[2], bool)) for event in steps for flag in event[2][1:]) > 20
    told = [event for event in steps if "episode" in event[3] or event[4] is not None]
    assert len(told) > 20
    assert (mode == "same_step") == any(event[4] is not None for event in steps)


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs Linux's /proc")
@pytest.mark.parametrize("how", [{"num_threads": 3}, {"timeout": 30, "num_threads": 3}])
@pytest.mark.parametrize("case", [case for case in SOURCES if case.id in STEPS], ids=str)
def test_threads_do_take_part(case: Case, how: dict[str, Any]) -> None:
    before = len(os.listdir("/proc/self/task"))
    script = Script(case, "next_step", how)
    script.begin()
    script.steps(2)
    extra = 2 if "timeout" not in how else 3
    assert len(os.listdir("/proc/self/task")) - before == extra
    assert_same(script.whole[0], reference(case, "next_step").whole[0])
