"""Sends, receives, resets and calls in random orders: each env's rows are those of serial."""

from __future__ import annotations

import contextlib
import random
from typing import Any

import numpy as np
import pytest

import corral
from corral.errors import PendingCallError, RecvTimeoutError
from tests.faults.chatty import Chatty
from tests.support import MODES, digest, row

N = 6
HOW: dict[str, dict[str, Any]] = {
    "together": {},
    "batches": {"batch_size": 2},
    "batches of all but one": {"batch_size": N - 1, "num_workers": 2},
    "one by one": {"timeout": 60.0, "num_workers": N},
}


def told(infos: dict[str, Any], at: int) -> dict[str, Any]:
    """What the infos say of one row."""
    names = [name for name in infos if "_" + name in infos]
    return {
        name: told(infos[name], at) if name == "final_info" else row(infos[name], at)
        for name in names
        if infos["_" + name][at]
    }


def rows_of(batch: Any) -> dict[int, Any]:
    observations, rewards, terminated, truncated, infos = batch
    return {
        int(slot): digest(
            (
                row(observations, at),
                rewards[at],
                terminated[at],
                truncated[at],
                told(infos, at),
            )
        )
        for at, slot in enumerate(infos["env_id"])
    }


def played(mode: str, how: dict[str, Any], seed: int, moves: int) -> None:
    luck = random.Random(seed)
    same: dict[str, Any] = {"seed": 5, "autoreset_mode": mode, "max_episode_steps": 12}
    envs = corral.from_gymnasium(
        Chatty, N, context="forkserver", **{"num_workers": 3, **how}, **same
    )
    sound = corral.from_gymnasium(Chatty, N, runner="serial", **same)
    expected: dict[int, Any] = {}
    over = np.zeros(N, bool)

    def check(batch: Any) -> None:
        for slot, got in rows_of(batch).items():
            assert got == expected.pop(slot), (seed, slot)

    def drain() -> None:
        while expected:
            check(envs.recv())

    def reset(all_of_them: bool) -> None:
        drain()
        given: dict[str, Any] = {}
        if luck.random() < 0.3:
            given["seed"] = luck.randrange(100)
        options: dict[str, Any] = {}
        if luck.random() < 0.3:
            options["level"] = luck.randrange(9)
        if not all_of_them:
            mask = np.array([luck.random() < 0.5 for _ in range(N)]) | over
            options["reset_mask"] = mask
            over[mask] = False
        else:
            over[:] = False
        if options:
            given["options"] = options
        got, wanted = envs.reset(**given), sound.reset(**given)
        assert digest(got) == digest(wanted), seed

    def send() -> None:
        free = [slot for slot in range(N) if slot not in expected and not over[slot]]
        whole = len(free) == N and luck.random() < 0.5
        slots = free if whole else luck.sample(free, luck.randint(0, len(free)))
        if not slots:
            return
        push = np.array([[luck.uniform(-1, 1)] * 2 for _ in slots], np.float32)
        actions = {"push": push, "say": tuple(luck.choice("abc") for _ in slots)}
        envs.send(actions, None if whole else slots)
        sound.send(actions, None if whole else slots)
        batch: Any = sound.drain()
        if mode == "disabled":
            over[batch[4]["env_id"]] = batch[2] | batch[3]
        expected.update(rows_of(batch))

    def receive() -> None:
        if not expected:
            return
        if luck.random() < 0.3:
            with contextlib.suppress(RecvTimeoutError):
                check(envs.recv(timeout=0))
        else:
            check(envs.recv())

    def ask() -> None:
        other = "x" * luck.choice([1, 400_000])
        if expected:
            with pytest.raises(PendingCallError):
                envs.call("tell", other)
        else:
            assert envs.call("tell", other) == sound.call("tell", other)

    reset(True)
    for _ in range(moves):
        move = luck.choices([send, receive, ask, lambda: reset(luck.random() < 0.5)], [8, 8, 2, 1])
        move[0]()
    drain()
    assert envs.call("tell", 0) == sound.call("tell", 0)
    envs.close()
    sound.close()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("seed", [1, 2])
def test_in_whatever_order_each_envs_rows_are_serials(mode: str, how: str, seed: int) -> None:
    played(mode, HOW[how], seed, moves=100)
