"""Envs that raise, print, show nonsense or meddle with their worker's process."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

import corral
from corral import errors
from tests.faults.sick import CONTEXTS, Sick, is_gone, pids, sick, zeros
from tests.support import quick

ROOT = Path(__file__).parents[2]
RUNNERS: dict[str, dict[str, Any]] = {
    "serial": {"runner": "serial"},
    **{context: {"context": context, "num_workers": 2} for context in CONTEXTS},
}

# What is raised, as what it arrives, and what of its text does.
RAISED = {
    "value error": ("ValueError", "bad luck"),
    "own error": ("OwnError", "code 7"),
    "with a lock": ("OwnError", "code 3"),
    "local": ("Local", "made here"),
}


def chain(error: BaseException | None) -> list[BaseException]:
    found = []
    while error is not None:
        found.append(error)
        error = error.__cause__
    return found


@pytest.mark.parametrize("context", quick(CONTEXTS))
@pytest.mark.parametrize("what", RAISED)
@pytest.mark.parametrize("where", ["init", "reset", "step", "close", "render", "call"])
def test_what_an_env_raises_arrives_as_what_it_is(where: str, what: str, context: str) -> None:
    kind, text = RAISED[what]

    def play() -> None:
        envs = sick(4, {3: (where, what)}, context=context)
        envs.reset()
        envs.step(np.ones(4, np.int64))
        envs.render()
        pids(envs)
        envs.close()

    with pytest.raises(Exception, match=text) as raised:
        play()
    error = raised.value
    assert type(error).__name__ == kind
    if what == "own error":
        assert (error.code, error.hint) == (7, "look")  # type: ignore[attr-defined]
    told = "".join(map(str, chain(error)))
    assert "Traceback (most recent call last)" in told
    assert "tests/faults/sick.py" in told
    if where in ("reset", "step"):
        note = "".join(getattr(error, "__notes__", [str(error.__cause__)]))
        assert f"Sick: env 3 failed in {where}" in note
        assert "seed 10" in note
        assert ("action 1" in note) == (where == "step")
        caused = error.__cause__
        assert isinstance(caused, errors.EnvError)
        assert caused.batch is not None
        assert caused.batch[0][:3].all() or where == "reset"


@pytest.mark.parametrize("runner", quick(r for r in RUNNERS if r != "serial"))
def test_an_exception_that_cannot_be_pickled_arrives_with_its_text_and_traceback(
    runner: str,
) -> None:
    envs = sick(4, {3: ("step", "unreadable")}, **RUNNERS[runner])
    envs.reset()
    with pytest.raises(Exception, match="closed book") as raised:
        envs.step(zeros(4))
    assert "env 3" in "".join(map(str, chain(raised.value)))
    assert "tests/faults/sick.py" in "".join(map(str, chain(raised.value)))
    envs.close()


@pytest.mark.parametrize("runner", quick(RUNNERS))
@pytest.mark.parametrize("where", ["init", "reset", "step", "render", "call"])
def test_an_env_that_calls_sys_exit_ends_itself_and_not_the_program(
    where: str, runner: str
) -> None:
    def play() -> None:
        envs = sick(4, {3: (where, "sys.exit")}, **{"num_workers": None, **RUNNERS[runner]})
        envs.reset()
        envs.step(zeros(4))
        envs.render()
        pids(envs)

    with pytest.raises(errors.EnvError, match="SystemExit: 5"):
        play()


class Odd(gymnasium.Env[Any, Any]):
    """Shows, tells and takes what it is told to."""

    observation_space = gymnasium.spaces.Box(-9, 9, (2,), np.float32)
    action_space = gymnasium.spaces.Discrete(4)

    def __init__(self, observation: Any = None, reward: Any = 0.0, info: Any = None) -> None:
        good = np.zeros(2, np.float32)
        self.result = (good if observation is None else observation, reward, False, False)
        self.info = {} if info is None else info

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        return np.zeros(2, np.float32), {}

    def step(self, action: Any) -> Any:
        info = self.info() if callable(self.info) else self.info
        return *self.result, info


MISFITS = {
    "shape": ({"observation": np.zeros(3, np.float32)}, r"shape \(3,\) where \(2,\) belongs"),
    "dtype": ({"observation": np.zeros(2, "U3")}, "array of <U3 where an array of float32"),
    "NaN": ({"observation": np.array([0, np.nan], np.float32)}, "observation.*NaN"),
    "NaN reward": ({"reward": np.nan}, "the reward is NaN"),
    "info": ({"info": [1]}, "the info is a list, where a dict belongs"),
}


@pytest.mark.parametrize("runner", quick(RUNNERS))
@pytest.mark.parametrize("misfit", MISFITS)
def test_what_does_not_fit_is_named_where_it_is_made(misfit: str, runner: str) -> None:
    what, words = MISFITS[misfit]
    envs = corral.from_gymnasium([Odd, lambda: Odd(**what)], seed=0, **RUNNERS[runner])
    envs.reset()
    with pytest.raises(Exception, match=words) as raised:
        envs.step(zeros(2))
    told = "".join(map(str, chain(raised.value)))
    assert "env 1 failed in step" in told
    assert "seed 1" in told
    envs.close()


def test_an_info_that_cannot_be_pickled_is_the_failure_of_its_env() -> None:
    factories = [Odd, lambda: Odd(info=lambda: {"key": threading.Lock()})]
    envs = corral.from_gymnasium(factories, context="forkserver")
    envs.reset()
    with pytest.raises(errors.EnvError, match=r"info 'key'.*cannot.*pickle") as raised:
        envs.step(zeros(2))
    assert [failure.slot for failure in raised.value.failures] == [1]
    envs.close()


def test_an_option_or_argument_that_cannot_be_pickled_moves_nothing() -> None:
    envs = sick(2, {})
    expected = envs.reset()[0]
    with pytest.raises(errors.ArgumentError, match=r"option cannot go to another process.*pickle"):
        envs.reset(options={"key": threading.Lock()})
    with pytest.raises(errors.ArgumentTypeError, match=r"cannot go to another process.*pickle"):
        envs.call("nap", threading.Lock())
    assert (envs.observe() == expected).all()
    envs.close()


class Taker(Odd):
    """Takes anything for an action."""

    action_space = gymnasium.spaces.Sequence(gymnasium.spaces.Discrete(3))


def test_an_action_that_cannot_be_pickled_moves_nothing() -> None:
    envs = corral.from_gymnasium(Taker, 2, num_workers=2, context="forkserver")
    envs.reset()
    with pytest.raises(errors.InvalidActionError, match="env 1 cannot go to another process"):
        envs.step(((1,), threading.Lock()))
    envs.step(((1,), (2, 2)))
    envs.close()


def test_a_factory_that_cannot_be_pickled_is_told_of_with_what_to_do() -> None:
    lock = threading.Lock()

    def make() -> Any:
        with lock:
            return Sick()

    for context in ("spawn", "forkserver"):
        with pytest.raises(errors.UnsupportedError) as raised:
            corral.from_gymnasium([Sick, make], context=context)
        text = str(raised.value)
        assert "make" in text
        assert "cannot be sent to a worker process" in text
        assert "inside the function" in text
        assert 'context="fork"' in text
    corral.from_gymnasium([Sick, make], context="fork").close()


@pytest.mark.parametrize("context", quick(CONTEXTS))
@pytest.mark.parametrize("closed", [(), (1,), (0, 1, 2)], ids=["open", "no stdout", "none"])
def test_an_env_that_prints_megabytes_hinders_nothing(
    closed: tuple[int, ...], context: str
) -> None:
    code = textwrap.dedent(
        f"""
        import os, sys
        from tests.faults.sick import sick, zeros
        for fd in {closed!r}:
            os.close(fd)
        envs = sick(4, {{0: ("step", "print much")}}, context={context!r})
        envs.reset()
        for _ in range(3):
            envs.step(zeros(4))
        envs.close()
        os._exit(0)
        """
    )
    ended = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], capture_output=True, timeout=60, cwd=ROOT
    )
    assert ended.returncode == 0, ended.stderr[-800:]
    assert (len(ended.stdout) > 6_000_000) == (1 not in closed)
    assert (len(ended.stderr) > 6_000_000) == (2 not in closed)


@pytest.mark.parametrize("context", quick(CONTEXTS))
@pytest.mark.parametrize("what", ["close 0 1 2", "chdir", "fork", "popen", "thread"])
def test_an_env_that_meddles_with_its_process_is_stepped_and_ended(what: str, context: str) -> None:
    here = os.getcwd()
    envs = sick(4, {0: ("step", what)}, context=context)
    envs.reset()
    for _ in range(3):
        envs.step(zeros(4))
    workers = pids(envs)
    envs.close()
    assert all(map(is_gone, workers))
    assert os.getcwd() == here


@pytest.mark.parametrize("what", ["fork", "popen"])
@pytest.mark.parametrize("context", quick(CONTEXTS))
def test_a_worker_whose_env_has_children_is_missed_when_it_dies(context: str, what: str) -> None:
    """They hold its end of the socket, and its standard error."""
    envs = sick(4, {0: ("step", what)}, context=context)
    envs.reset()
    envs.step(zeros(4))
    os.kill(pids(envs)[0], 9)
    with pytest.raises(errors.EnvError, match="was killed by signal 9") as raised:
        envs.step(zeros(4))
    assert [failure.slot for failure in raised.value.failures] == [0, 1]
    envs.close()
