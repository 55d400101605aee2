"""The interpreter's end while Python envs are in a step: the exit code is the program's own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

PRELUDE = """
import os, signal, sys, threading, time
import gymnasium, numpy as np
import corral

class Slow(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-1, 1, (3,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)
    nap = 0.02
    def reset(self, *, seed=None, options=None):
        return np.zeros(3, np.float32), {}
    def step(self, action):
        time.sleep(self.nap)
        return np.zeros(3, np.float32), 1.0, False, False, {}

def slow(nap, n=8, **how):
    return corral.from_gymnasium(lambda: type("S", (Slow,), {"nap": nap})(), n, **how)
"""

# Each ends with envs in a step, in threads that nobody waits for.
ENDS = {
    "in flight": """
        envs = slow(0.02, runner="thread", num_threads=3, batch_size=2)
        envs.reset(); envs.send(np.zeros(8, int)); envs.recv()
        """,
    "in flight for long": """
        envs = slow(0.3, runner="thread", num_threads=3, batch_size=2)
        envs.reset(); envs.send(np.zeros(8, int))
        """,
    "in flight for ever": """
        envs = slow(3600, runner="thread", num_threads=3, batch_size=2)
        envs.reset(); envs.send(np.zeros(8, int))
        """,
    # It comes back to Python while that ends, however long this takes.
    "in small naps for ever": """
        class Naps(Slow):
            def step(self, action):
                while True:
                    time.sleep(0.0005)
        envs = corral.from_gymnasium(Naps, 4, runner="thread", num_threads=3, batch_size=2)
        envs.reset(); envs.send(np.zeros(4, int))
        class Late:
            def __del__(self):
                time.sleep(0.1)
        sys.late = Late()
        """,
    "left behind": """
        envs = slow(3600, n=3, runner="thread", timeout=2)
        envs.reset()
        try:
            envs.step(np.zeros(3, int))
        except corral.errors.EnvTimeoutError:
            pass
        """,
    "daemon thread": """
        envs = slow(0.01, runner="serial")
        envs.reset()
        def play():
            while True:
                envs.step(np.zeros(8, int))
        threading.Thread(target=play, daemon=True).start()
        time.sleep(0.1)
        """,
    "daemon thread of threads": """
        envs = slow(0.01, runner="thread", num_threads=2)
        envs.reset()
        def play():
            while True:
                envs.step(np.zeros(8, int))
        threading.Thread(target=play, daemon=True).start()
        time.sleep(0.1)
        """,
    "daemon thread, native envs": """
        envs = corral.make_vec("CartPole-v1", 4)
        envs.reset()
        def play():
            while True:
                envs.step(np.zeros(4, int))
        threading.Thread(target=play, daemon=True).start()
        time.sleep(0.1)
        """,
    # So few that a call keeps the GIL; its actions are made by Python code.
    "daemon thread, few native envs": """
        envs = corral.make_vec("CartPole-v1", 2, num_threads=1)
        envs.reset()
        class Actions:
            def __array__(self, dtype=None, copy=None):
                return np.zeros(sum(1 for _ in range(300)) // 150, int)
        def play():
            while True:
                envs.step(Actions())
        threading.Thread(target=play, daemon=True).start()
        class Late:
            def __del__(self):
                time.sleep(0.1)
        sys.late = Late()
        time.sleep(0.1)
        """,
    "daemon thread that builds": """
        class Builds(Slow):
            def __init__(self):
                time.sleep(0.01)
        def play():
            while True:
                corral.from_gymnasium(Builds, 4, runner="serial")
        threading.Thread(target=play, daemon=True).start()
        time.sleep(0.1)
        """,
    "daemon thread of workers": """
        envs = slow(0.01, runner="process", context="fork", num_workers=1)
        envs.reset()
        def play():
            while True:
                envs.step(np.zeros(8, int))
        threading.Thread(target=play, daemon=True).start()
        time.sleep(0.1)
        """,
    "a fork of one in flight": """
        envs = slow(0.3, runner="thread", num_threads=3, batch_size=2)
        envs.reset(); envs.send(np.zeros(8, int))
        pid = os.fork()
        if pid:
            assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) in (0, 3)
        """,
}


def run(code: str, prelude: str = PRELUDE) -> subprocess.CompletedProcess[str]:
    """The program, once it has ended. One that hangs says where, and so do its children."""
    program = subprocess.Popen(
        [
            sys.executable,
            "-W",
            "ignore",
            "-X",
            "faulthandler",
            "-c",
            prelude + textwrap.dedent(code),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    try:
        out, err = program.communicate(timeout=60)
    except subprocess.TimeoutExpired:
        children = Path(f"/proc/{program.pid}/task/{program.pid}/children").read_text().split()
        for pid in (*map(int, children), program.pid):
            os.kill(pid, signal.SIGABRT)
        out, err = program.communicate(timeout=20)
        pytest.fail(f"it hangs, with children {children}:\n{out}\n{err}")
    return subprocess.CompletedProcess(program.args, program.returncode, out, err)


@pytest.mark.parametrize("code", [0, 3])
@pytest.mark.parametrize("end", ENDS)
def test_a_program_ends_with_its_own_code_and_in_silence(end: str, code: int) -> None:
    ended = run(textwrap.dedent(ENDS[end]) + (f"sys.exit({code})" if code else ""))
    assert (ended.returncode, ended.stdout, ended.stderr) == (code, "", "")


def test_what_runs_at_the_end_waits_for_no_env_that_another_thread_plays() -> None:
    ended = run(
        """
        import atexit
        def last():
            try:
                envs.drain()
            except Exception as error:
                print(type(error).__name__, "Python is ending" in str(error))
        atexit.register(last)
        """
        + PRELUDE.replace("\n", "\n        ")
        + """
        envs = slow(3.0, n=2, runner="thread", num_threads=2, batch_size=1)
        envs.reset(); envs.send(np.zeros(2, int))
        time.sleep(0.2)
        """,
        prelude="",
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "EnvError True\n", "")


@pytest.mark.parametrize("call", ["envs.step(np.zeros(4, int))", "envs.reset()"])
def test_after_ctrl_c_in_this_thread_no_further_env_is_begun(call: str) -> None:
    ended = run(
        f"""
        begun = []
        class Counts(Slow):
            def reset(self, **how):
                if begun is not None:
                    begun.append(self); os.kill(os.getpid(), signal.SIGINT); time.sleep(0.01)
                return super().reset(**how)
            def step(self, action):
                begun.append(self); os.kill(os.getpid(), signal.SIGINT)
                return super().step(action)
        envs = corral.from_gymnasium(Counts, 4, runner="serial")
        first, begun = begun, None
        envs.reset()
        begun = []
        try:
            {call}
        except KeyboardInterrupt as error:
            print(len(begun), {{failure.cause for failure in error.__cause__.failures}})
        begun = None
        print(envs.reset()[0].shape)
        """
    )
    assert (ended.returncode, ended.stdout) == (0, "1 {'interrupt'}\n(4, 3)\n"), ended.stderr


@pytest.mark.parametrize("how", ['runner="thread", num_threads=3', 'runner="serial"'])
def test_after_ctrl_c_a_program_ends_as_python_does(how: str) -> None:
    ended = run(
        f"""
        envs = slow(0.05, {how})
        envs.reset()
        threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        while True:
            envs.step(np.zeros(8, int))
        """
    )
    assert ended.returncode == -signal.SIGINT
    assert "KeyboardInterrupt" in ended.stderr
    assert "FATAL" not in ended.stderr


def test_envs_of_the_main_thread_go_on_in_what_runs_at_the_end() -> None:
    """What was registered before corral runs after corral knows of the end."""
    ended = run(
        """
        import atexit
        def last():
            print(envs.step([0, 1])[1].tolist())
            envs.close()
            print("closed")
        atexit.register(last)
        import corral
        envs = corral.from_gymnasium("CartPole-v1", 2, runner="serial")
        envs.reset()
        """,
        prelude="",
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "[1.0, 1.0]\nclosed\n", "")
