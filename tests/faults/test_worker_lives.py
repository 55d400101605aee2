"""Workers' lives: how they are started, what they are told, what is gone with them."""

from __future__ import annotations

import contextlib
import fcntl
import functools
import gc
import os
import pathlib
import random
import signal
import subprocess
import sys
import textwrap
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import corral
from corral.errors import EnvError
from tests.faults.sick import (
    CONTEXTS,
    Sick,
    are_gone_within,
    children_that_run,
    is_gone,
    pids,
    sick,
    zeros,
)
from tests.support import quick

ROOT = pathlib.Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(
    not pathlib.Path("/proc/self/task").exists(), reason="needs Linux's /proc"
)


def run(code: str, *, path: pathlib.Path | None = None) -> subprocess.CompletedProcess[str]:
    """Runs a program, from a file where it is given one."""
    code = "import os, signal, sys\nfrom tests.faults.sick import *\n" + textwrap.dedent(code)
    program = ["-c", code]
    if path is not None:
        path.write_text(f"import sys; sys.path.insert(0, {str(ROOT)!r})\n{code}")
        program = [str(path)]
    command = [sys.executable, "-W", "ignore", *program]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=120, cwd=ROOT, check=False
    )


def made_unless(flag: pathlib.Path) -> Sick:
    if flag.exists():
        raise RuntimeError("no licence")
    return Sick()


@pytest.fixture
def flag(tmp_path: pathlib.Path) -> pathlib.Path:
    """Where it exists, workers of `licensed` cannot be started."""
    return tmp_path / "flag"


def licensed(flag: pathlib.Path, **how: Any) -> corral.VectorEnv:
    """Four envs in two workers, the first of which has died and cannot be started again."""
    make = functools.partial(made_unless, flag)
    how = {"num_workers": 2, "context": "forkserver", "seed": 7, **how}
    envs = corral.from_gymnasium(make, 4, **how)
    envs.reset()
    os.kill(pids(envs)[0], signal.SIGKILL)
    flag.touch()
    return envs


def told(call: Callable[[], Any]) -> EnvError:
    """The report of an exception of an env's own."""
    with pytest.raises(RuntimeError, match="no licence") as raised:
        call()
    error = raised.value.__cause__
    assert isinstance(error, EnvError)
    return error


@pytest.mark.parametrize("mode", ["next_step", "same_step"])
def test_under_restart_a_worker_that_cannot_be_started_is_told_of_and_tried_again(
    mode: str, flag: pathlib.Path
) -> None:
    envs = licensed(flag, on_failure="restart", autoreset_mode=mode)
    errors = []
    if mode == "next_step":
        observations, _, _, truncated, _ = envs.step(zeros(4))
        assert truncated.tolist() == [True, True, False, False]
        assert observations[:, 1].tolist() == [0, 0, 1, 1]
    for _ in range(2):
        errors.append(told(lambda: envs.step(zeros(4))))
    first = 2 if mode == "next_step" else 1
    for k, error in enumerate(errors):
        assert [(f.slot, f.phase, f.cause) for f in error.failures] == [
            (0, "build", "death"),
            (1, "build", "death"),
        ]
        assert "could not be started again" in error.failures[1].message
        # The others' rows are not lost.
        assert error.batch is not None
        assert error.batch[0][:, 1].tolist() == [0, 0, first + k, first + k]
    assert told(envs.reset).batch is not None
    flag.unlink()
    observations, infos = envs.reset()
    assert observations[:, 1].tolist() == [0, 0, 0, 0]
    assert infos["_restarted"].tolist() == [True, True, False, False]
    assert envs.step(zeros(4))[0][:, 1].tolist() == [1, 1, 1, 1]
    envs.close()


def test_under_restart_the_next_step_brings_a_worker_back_that_could_not_be_started(
    flag: pathlib.Path,
) -> None:
    envs = licensed(flag, on_failure="restart")
    envs.step(zeros(4))
    told(lambda: envs.step(zeros(4)))
    flag.unlink()
    assert envs.step(zeros(4))[0][:, 1].tolist() == [0, 0, 3, 3]
    assert envs.step(zeros(4))[0][:, 1].tolist() == [1, 1, 4, 4]
    envs.close()


def test_a_reset_whose_worker_cannot_be_started_resets_the_others(flag: pathlib.Path) -> None:
    envs = licensed(flag)
    with pytest.raises(EnvError):
        envs.step(zeros(4))
    error = told(envs.reset)
    assert [failure.slot for failure in error.failures] == [0, 1]
    assert error.batch is not None
    assert error.batch[0][:, 1].tolist() == [0, 0, 0, 0]
    assert error.batch[0][2:, 0].all()
    flag.unlink()
    envs.reset()
    assert envs.step(zeros(4))[0][:, 1].tolist() == [1, 1, 1, 1]
    envs.close()


def test_of_two_workers_that_died_the_one_that_can_be_started_is(flag: pathlib.Path) -> None:
    makes = [functools.partial(made_unless, flag), Sick]
    envs = corral.from_gymnasium(makes, num_workers=2, context="forkserver")
    envs.reset()
    for pid in pids(envs):
        os.kill(pid, signal.SIGKILL)
    flag.touch()
    with pytest.raises(EnvError):
        envs.step(zeros(2))
    error = told(envs.reset)
    assert [failure.slot for failure in error.failures] == [0]
    flag.unlink()
    envs.reset(options={"reset_mask": np.array([True, False])})
    assert envs.step(zeros(2))[0][:, 1].tolist() == [1, 1]
    envs.close()


class Owner:
    """One whose method makes the envs that it holds."""

    def __init__(self, make: Callable[[list[Callable[[], Any]]], corral.VectorEnv]) -> None:
        self.envs = make([self.make] * 2)

    def make(self) -> Sick:
        return Sick()


RUNNERS: dict[str, dict[str, Any]] = {
    "serial": {"runner": "serial"},
    "thread": {"runner": "thread"},
    **{context: {"context": context, "num_workers": 2} for context in CONTEXTS},
}


@pytest.mark.parametrize("context", quick(CONTEXTS))
def test_workers_whose_owner_holds_the_vec_env_can_be_started_again(context: str) -> None:
    owner = Owner(functools.partial(corral.from_gymnasium, num_workers=2, context=context))
    owner.envs.reset()
    os.kill(pids(owner.envs)[0], signal.SIGKILL)
    with pytest.raises(EnvError):
        owner.envs.step(zeros(2))
    owner.envs.reset()
    owner.envs.step(zeros(2))
    owner.envs.close()


@pytest.mark.parametrize("runner", quick(RUNNERS))
def test_who_makes_its_envs_is_collected_with_the_vec_env_that_it_holds(runner: str) -> None:
    owner = Owner(functools.partial(corral.from_gymnasium, **RUNNERS[runner]))
    owner.envs.reset()
    workers = set(pids(owner.envs)) - {os.getpid()}
    there = weakref.ref(owner)
    del owner
    gc.collect()
    assert there() is None
    assert are_gone_within(list(workers), 10)


@pytest.mark.parametrize("runner", ["serial", "thread"])
def test_an_env_that_fails_here_is_made_again_by_the_same_function(runner: str) -> None:
    envs = sick(2, {1: ("step", "value error")}, runner=runner, num_workers=None)
    envs.reset()
    for _ in range(2):
        with pytest.raises(ValueError, match="bad luck"):
            envs.step(zeros(2))
        envs.reset()


class Drawing(Sick):
    """One that draws from the generators that all of a process share, as old envs do."""

    def draw(self) -> Any:
        return np.random.random(), random.random()


@pytest.mark.parametrize("context", quick(CONTEXTS))
def test_no_two_workers_share_the_numbers_of_their_global_generators(context: str) -> None:
    drawn = []
    for _ in range(2):
        envs = corral.from_gymnasium(Drawing, 3, num_workers=3, context=context)
        drawn += envs.call("draw")
        os.kill(pids(envs)[0], signal.SIGKILL)
        with pytest.raises(EnvError):
            envs.call("draw")
        envs.reset()
        drawn += envs.call("draw")[:1]
        envs.close()
    assert len({numpys for numpys, _ in drawn}) == len(drawn)
    assert len({pythons for _, pythons in drawn}) == len(drawn)


def test_numbers_of_forked_workers_follow_from_a_seed_that_the_parent_gave() -> None:
    code = """
        import numpy as np, corral
        from tests.faults.test_worker_lives import Drawing
        np.random.seed(3)
        envs = corral.from_gymnasium(Drawing, 2, num_workers=2, context="fork")
        print([numpys for numpys, _ in envs.call("draw")])
        envs.close()
    """
    said = {run(code).stdout for _ in range(2)}
    assert len(said) == 1
    assert said.pop().startswith("[0.")


def test_where_sigchld_is_ignored_the_end_of_one_vec_env_is_not_that_of_others() -> None:
    ended = run(
        """
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        for context in CONTEXTS:
            train = sick(2, {}, context=context); train.reset()
            test = sick(2, {}, context=context); test.reset()
            # A worker that dies: nobody waits for it, and it is noticed.
            os.kill(pids(test)[0], signal.SIGKILL)
            try:
                test.step(zeros(2))
            except corral.errors.EnvError as error:
                print([failure.slot for failure in error.failures])
            test.close()
            time.sleep(0.2)
            train.step(zeros(2)); train.close()
        """
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "[0]\n" * 3, "")


class Simulator(Sick):
    """One around another process."""

    def __init__(self, *ailment: Any) -> None:
        self.started = subprocess.Popen(["sleep", "60"])
        super().__init__(*ailment)

    def act(self) -> int:
        return self.started.pid

    def pid(self) -> int:
        return os.getpid()


@contextlib.contextmanager
def ended_at_last(numbers: list[int]) -> Iterator[None]:
    try:
        yield
    finally:
        for pid in numbers:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize("context", quick(CONTEXTS))
@pytest.mark.parametrize("how", ["kill -9", "sleep in C", "_exit"])
def test_what_a_worker_that_is_killed_had_started_is_gone_with_it(how: str, context: str) -> None:
    make = functools.partial(Simulator, "step", how)
    timeout = 3.0 if how == "sleep in C" else None
    envs = corral.from_gymnasium(make, 2, num_workers=2, context=context, timeout=timeout)
    envs.reset()
    simulators = list(envs.call("act"))
    with ended_at_last(simulators):
        with pytest.raises(EnvError):
            envs.step(zeros(2))
        assert are_gone_within(simulators, 10)
    envs.close()


@pytest.mark.parametrize("context", quick(CONTEXTS))
def test_what_workers_had_started_is_gone_with_a_parent_that_is_killed(context: str) -> None:
    code = f"""
        from tests.faults.test_worker_lives import Simulator
        envs = corral.from_gymnasium(Simulator, 2, num_workers=2, context={context!r})
        envs.reset()
        os.write(1, (" ".join(map(str, [*envs.call("act"), *envs.call("pid")])) + "\\n").encode())
        os.kill(os.getpid(), signal.SIGKILL)
    """
    numbers = [int(number) for number in run(code).stdout.split()]
    assert len(numbers) == 4
    with ended_at_last(numbers):
        assert are_gone_within(numbers, 10)


def test_what_a_worker_that_is_closed_had_started_is_its_own_affair() -> None:
    envs = corral.from_gymnasium(Simulator, 1, num_workers=1, context="forkserver")
    envs.reset()
    simulators = list(envs.call("act"))
    envs.close()
    with ended_at_last(simulators):
        assert not is_gone(simulators[0])


class Becoming(Sick):
    """One whose process becomes another program."""

    def step(self, action: Any) -> Any:
        os.execv("/bin/sleep", ["sleep", "60"])


@pytest.mark.parametrize("context", quick(CONTEXTS))
def test_a_worker_that_becomes_another_program_is_told_of_and_ended(context: str) -> None:
    envs = corral.from_gymnasium(Becoming, 1, num_workers=1, context=context)
    envs.reset()
    worker = pids(envs)[0]
    with pytest.raises(EnvError, match=r"hung up .* \(exec\), and was ended"):
        envs.step(zeros(1))
    assert is_gone(worker)
    envs.close()


def passed_on() -> set[int]:
    """This process's open files that programs that it starts have too."""
    kept = set()
    for fd in map(int, os.listdir("/proc/self/fd")):
        with contextlib.suppress(OSError):
            if not fcntl.fcntl(fd, fcntl.F_GETFD) & fcntl.FD_CLOEXEC:
                kept.add(fd)
    return kept


class Open(Sick):
    def passed_on(self) -> set[int]:
        return passed_on()


@pytest.mark.parametrize("context", CONTEXTS)
def test_programs_that_a_worker_starts_have_none_of_its_files(context: str) -> None:
    envs = corral.from_gymnasium(Open, 2, num_workers=2, context=context)
    for files in envs.call("passed_on"):
        assert files <= passed_on() | {0, 1, 2}
    envs.close()


@pytest.mark.parametrize("context", CONTEXTS)
def test_entries_of_the_import_path_may_be_paths_many_and_long(
    context: str, tmp_path: pathlib.Path
) -> None:
    ended = run(
        f"""
        import pathlib
        sys.path.append(pathlib.Path({str(tmp_path)!r}))
        sys.path += [f"/nowhere/{{'x' * 200}}/{{k}}" for k in range(2000)]
        sys.path += ["/caf\\udce9"]
        envs = sick(2, {{}}, context={context!r})
        envs.reset(); envs.step(zeros(2)); envs.close()
        print("right")
        """
    )
    assert ended.stdout == "right\n", ended.stderr[-2000:]


class Cutting(Sick):
    def step(self, action: Any) -> Any:
        for fd in range(3, 60):
            with contextlib.suppress(OSError):
                os.ftruncate(fd, 0)
        return super().step(action)


def test_a_worker_cannot_cut_the_memory_that_it_shares() -> None:
    ended = run(
        """
        from tests.faults.test_worker_lives import Cutting
        envs = corral.from_gymnasium(Cutting, 2, context="forkserver")
        envs.reset()
        for k in range(1, 4):
            assert envs.step(zeros(2))[0][:, 1].tolist() == [k, k]
        envs.close()
        print("right")
        """
    )
    assert (ended.returncode, ended.stdout) == (0, "right\n"), ended.stderr[-2000:]


@pytest.mark.parametrize("end", ["pass", "os._exit(0)", "envs.close()"])
def test_a_program_that_ends_leaves_no_noise(end: str) -> None:
    ended = run(
        f"""
        sick(2, {{}}, context="fork").reset()
        envs = sick(4, {{}}, num_workers=4); envs.reset(); envs.step(zeros(4))
        {end}
        """
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")


@pytest.mark.parametrize("how", ["spawn", "forkserver"])
def test_the_main_scripts_classes_do_in_a_process_that_multiprocessing_started(
    how: str, tmp_path: pathlib.Path
) -> None:
    ended = run(
        f"""
        import multiprocessing
        import gymnasium, numpy as np
        class Mine(Sick):
            def __init__(self):
                super().__init__()
                self.held = Held()
            def act(self):
                return self.held
        class Held:
            pass
        gymnasium.register("Text-v0", entry_point=f"{{__name__}}:Mine")
        def play(say):
            whats = [(Mine, context) for context in CONTEXTS]
            whats += [(lambda: Mine(), "forkserver"), ("Text-v0", "forkserver")]
            for what, context in whats:
                envs = corral.from_gymnasium(what, 1, context=context)
                envs.reset(); envs.step(zeros(1))
                say(isinstance(envs.get_attr("held")[0], Held))
                envs.close()
        if __name__ == "__main__":
            context = multiprocessing.get_context({how!r})
            said = context.SimpleQueue()
            child = context.Process(target=play, args=(said.put,))
            child.start()
            print(*[said.get() for _ in range(5)])
            child.join()
        """,
        path=tmp_path / "program.py",
    )
    assert ended.stdout == " ".join(["True"] * 5) + "\n", ended.stderr[-3000:]


@pytest.mark.parametrize("moment", ["idle", "at work"])
def test_a_fork_server_that_is_killed_takes_its_workers_along_and_another_one_does(
    moment: str,
) -> None:
    ended = run(
        f"""
        from corral import _launch
        envs = sick(4, {{0: ("step", "sleep in C", 1)}}); envs.reset(); envs.step(zeros(4))
        workers = pids(envs)
        server = _launch.fork_server._process
        if {moment!r} == "at work":
            envs.send(zeros(4))
        server.kill()
        assert are_gone_within(workers, 10)
        try:
            envs.recv() if {moment!r} == "at work" else envs.step(zeros(4))
        except corral.errors.EnvError as error:
            print("is gone" in str(error))
        # Another vec env, and the same one.
        other = sick(2, {{}}); other.reset(); other.close()
        envs.reset(); envs.step(zeros(4)); envs.close()
        assert server.returncode == -9
        """
    )
    assert (ended.returncode, ended.stdout) == (0, "True\n"), ended.stderr[-2000:]


def test_a_fork_can_use_a_fork_server_though_another_thread_was_using_its_parents() -> None:
    ended = run(
        """
        from corral import _launch
        envs = sick(2, {}); envs.reset()
        # As if another thread were in it.
        _launch.fork_server._lock.acquire()
        pid = os.fork()
        if pid == 0:
            mine = sick(2, {}); mine.reset(); mine.close()
            os._exit(0)
        _launch.fork_server._lock.release()
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
        envs.step(zeros(2)); envs.close()
        """
    )
    assert (ended.returncode, ended.stdout) == (0, "0\n"), ended.stderr[-2000:]


def test_a_state_is_loaded_though_a_worker_has_died() -> None:
    library = corral.libenv_path()
    if not os.path.exists(library):
        pytest.skip("needs the library of our envs")
    options = {"env_id": "CartPole-v1"}
    how: dict[str, Any] = {"num_envs": 4, "isolation": "process", "num_workers": 2, "seed": 3}
    others = children_that_run("_worker")
    envs = corral.load_libenv(library, options=options, **how)
    action = {"action": np.zeros(4, np.int32)}
    envs.reset()
    envs.step(action)
    state = envs.save_state()
    expected = envs.step(action)
    for noticed in (False, True):
        worker = min(children_that_run("_worker") - others)
        os.kill(worker, signal.SIGKILL)
        assert are_gone_within([worker], 10)
        if noticed:
            with pytest.raises(EnvError):
                envs.step(action)
        envs.load_state(state)
        got = envs.step(action)
        for ours, theirs in zip(got[:4], expected[:4], strict=True):
            np.testing.assert_equal(ours, theirs)
    assert len(children_that_run("_worker") - others) == 2
    envs.close()
