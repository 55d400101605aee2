"""Prints docs/faults.md: what goes wrong, and what the user sees. Run by `make docs`."""

# ruff: noqa: E501

from __future__ import annotations

import contextlib
import functools
import os
import re
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np

import corral

HEAD = """# Faults, and what you see

Each of these is made to happen by [faults.py](faults.py), which writes this page; the tests in `tests/faults` and
`crates/envs/tests` say what becomes of the other envs. Env 1 of 3 is the one that misbehaves.

| fault | exception | message |
|---|---|---|"""

FAULTY = "testing/Faulty-v0"

# With it, a panic's error has a backtrace in its notes.
os.environ.pop("RUST_BACKTRACE", None)


def push(n: int = 3, gear: int = 1) -> dict[str, Any]:
    return {"force": np.zeros((n, 2), np.float32), "gear": np.full(n, gear)}


def made(fault: str = "none", **options: Any) -> corral.VectorEnv:
    options = {"of_seed": 1, "at_step": 1, "in_episode": 0, "fault": fault, **options}
    return corral.make_vec(FAULTY, 3, seed=0, **options)


def begun(fault: str = "none", **options: Any) -> corral.VectorEnv:
    envs = made(fault, **options)
    envs.reset()
    return envs


def played(envs: corral.VectorEnv, steps: int = 3) -> corral.VectorEnv:
    for _ in range(steps):
        envs.step(push())
    return envs


def after_failure(**options: Any) -> corral.VectorEnv:
    envs = begun("panic_in_step", **options)
    with contextlib.suppress(corral.errors.EnvError):
        played(envs)
    return envs


def sent(**options: Any) -> corral.VectorEnv:
    envs = begun(**options)
    envs.send(push())
    return envs


def closed() -> corral.VectorEnv:
    envs = begun()
    envs.close()
    return envs


def in_a_child() -> None:
    """Raises in the parent what a forked child sees."""
    envs = begun(num_threads=2)
    read, write = os.pipe()
    if os.fork() == 0:
        try:
            envs.step(push())
        except corral.errors.ForkedError as error:
            os.write(write, str(error).encode())
        os._exit(0)
    os.wait()
    raise corral.errors.ForkedError(os.read(read, 1000).decode())


def elsewhere(
    call: Callable[[corral.VectorEnv], Any], ours: Callable[[corral.VectorEnv], Any]
) -> None:
    """`ours`, while `call` is under way in another thread."""
    envs = begun("sleep_in_step", sleep=0.5, of_seed=-1, at_step=0, batch_size=3, timeout=60)
    raised: list[BaseException] = []

    def work() -> None:
        try:
            call(envs)
        except corral.errors.CorralError as error:
            raised.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    time.sleep(0.1)
    try:
        ours(envs)
    finally:
        thread.join()
    if raised:
        raise raised[0]


def recorded() -> None:
    with tempfile.TemporaryDirectory() as folder:
        played(begun("error_in_step", record=folder))


class Sick(gymnasium.Env[Any, Any]):
    """A Python env that misbehaves in its second step."""

    observation_space = gymnasium.spaces.Box(-1, 1, (2,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, fault: Callable[[], Any] | None = None) -> None:
        self.fault, self.steps = fault, 0

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        return np.zeros(2, np.float32), {}

    def step(self, action: Any) -> Any:
        self.steps += 1
        given = self.fault() if self.fault is not None and self.steps == 2 else None
        good = np.zeros(2, np.float32)
        return good if given is None else given, 0.0, False, False, {}


def in_worker(fault: Callable[[], Any], **options: Any) -> None:
    """Steps three Python envs in three workers, until the second does this."""
    factories = [Sick, functools.partial(Sick, fault), Sick]
    envs = corral.from_gymnasium(factories, seed=0, num_workers=3, context="forkserver", **options)
    envs.reset()
    for _ in range(3):
        envs.step(np.zeros(3, np.int64))


def raised() -> None:
    raise ValueError("bad luck")


def unpicklable() -> None:
    lock = threading.Lock()
    corral.from_gymnasium(lambda: Sick(lock.acquire), 3, context="forkserver")


FAULTS: list[tuple[str, Callable[[], Any]]] = [
    ("panic in build", lambda: made("panic_in_build")),
    ("error in build", lambda: made("error_in_build")),
    ("panic in reset", lambda: begun("panic_in_reset")),
    ("error in reset", lambda: begun("error_in_reset")),
    ("panic in step", lambda: played(begun("panic_in_step"))),
    ("error in step", lambda: played(begun("error_in_step"))),
    ("an observation cut short", lambda: played(begun("incomplete_observation"))),
    ("an observation of another dtype", lambda: played(begun("wrong_dtype"))),
    ("panic in render", lambda: begun("panic_in_render", render_mode="rgb_array").render()),
    ("panic in close", lambda: begun("panic_in_close").close()),
    ("a step that never ends, `timeout=0.2`", lambda: played(begun("sleep_in_step", timeout=0.2))),
    ("a reset that never ends, `timeout=0.2`", lambda: begun("sleep_in_reset", timeout=0.2)),
    (
        "`on_failure=\"restart\"`, and it fails every time",
        lambda: played(begun("error_in_step", at_step=0, of_seed=-1, on_failure="restart", max_restarts=1), 9),
    ),
    ("the same, recorded (`record=…`)", recorded),
    ("a step after a failure", lambda: after_failure().step(push())),
    (
        "a masked reset that leaves the failed env out",
        lambda: after_failure().reset(options={"reset_mask": np.array([True, False, False])}),
    ),
    ("an evaluation in which an env fails", lambda: corral.evaluate(lambda o: push(len(o["count"])), begun("error_in_step", of_seed=-1))),
    ("a step before the first reset", lambda: made().step(push())),
    ("an action out of bounds", lambda: begun().step(push(gear=9))),
    ("an env sent twice", lambda: sent().send(push(1), [1])),
    ("a save while envs are in flight", lambda: sent().save_state()),
    ("a recv with nothing in flight", lambda: begun().recv()),
    (
        "a recv that takes longer than `recv(timeout=…)`",
        lambda: sent(fault="sleep_in_every_step", sleep=0.3, batch_size=2, num_threads=1).recv(timeout=0.01),
    ),
    ("a step with `batch_size` below `num_envs`", lambda: begun(batch_size=2).step(push())),
    ("a call while another thread's waits", lambda: elsewhere(lambda e: e.step(push()), lambda e: e.reset())),
    ("`close` while another thread waits (there)", lambda: elsewhere(lambda e: e.step(push()), lambda e: e.close())),
    ("a call after close", lambda: closed().step(push())),
    ("a call in a forked child", in_a_child),
    ("a state cut short", lambda: begun().load_state(begun().save_state()[:-5])),
    ("another env's state", lambda: begun().load_state(corral.make_vec("CartPole-v1", 3).save_state())),
    ("another config's state", lambda: begun().load_state(begun(at_step=7).save_state())),
    ("a state of another number of envs", lambda: begun().load_state(corral.make_vec(FAULTY, 2).save_state())),
    ("a Python env in a worker raises (`from_gymnasium`)", lambda: in_worker(raised)),
    ("its worker is killed", lambda: in_worker(lambda: os.kill(os.getpid(), 9))),
    ("its worker ends by itself", lambda: in_worker(lambda: os._exit(3))),
    ("it calls `sys.exit`", lambda: in_worker(lambda: sys.exit(5))),
    ("it sleeps for ever, `timeout=0.2`", lambda: in_worker(lambda: time.sleep(3600), timeout=0.2)),
    ("it shows another shape", lambda: in_worker(lambda: np.zeros(3, np.float32))),
    ("it shows another dtype", lambda: in_worker(lambda: np.zeros(2, "U3"))),
    ("it shows a NaN", lambda: in_worker(lambda: np.full(2, np.nan, np.float32))),
    ("a factory that cannot go to a worker", unpicklable),
]  # fmt: skip


def told(error: Exception) -> str:
    """What is read of it, the same every time."""
    notes = "\n".join(getattr(error, "__notes__", ()))
    return re.sub(r" at 0x[0-9a-f]+", "", f"{error}\n{notes}".strip())


def page() -> str:
    """The whole page."""
    lines = [HEAD]
    for fault, happen in FAULTS:
        try:
            happen()
        except Exception as error:
            text = re.sub(r"replay \S*/", "replay …/", told(error)).replace("|", "\\|")
            message = "<br>".join(f"`{line.strip()}`" for line in text.splitlines())
            lines.append(f"| {fault} | `{type(error).__name__}` | {message} |")
        else:
            raise AssertionError(f"{fault}: nothing was raised")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(page(), end="")
