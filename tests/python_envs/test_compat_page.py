"""Is `docs/compat.md` true? What Gymnasium's classes and ours are asked alike, and each row of the
table of differences."""

from __future__ import annotations

import contextlib
import functools
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.error import NoAsyncCallError
from gymnasium.vector import AutoresetMode

from corral import errors
from corral.compat import gymnasium as ours
from tests.python_envs.drawn import Broken, Drawn, Trouble
from tests.python_envs.support import IS_OLD, assert_same, fns
from tests.python_envs.test_gymnasium_classes import Slow

PAGE = Path(__file__).resolve().parents[2] / "docs" / "compat.md"
N = 3
SYNC = (gymnasium.vector.SyncVectorEnv, ours.SyncVectorEnv)
ASYNC = (
    functools.partial(gymnasium.vector.AsyncVectorEnv, context="fork"),
    functools.partial(ours.AsyncVectorEnv, context="fork"),
)
PAIRS = {"sync": SYNC, "async": ASYNC}
Ask = Callable[[Any], Any]


def drawn(envs: Any) -> Any:
    return envs.action_space.sample()


def answer(make: Callable[[], Any], ask: Ask) -> tuple[Any, list[str]]:
    """What it answers or raises, and the warnings."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        envs = None
        try:
            envs = make()
            found = ask(envs)
        except Exception as error:
            found = error
        finally:
            shut(envs)
    return found, [re.sub(r"\x1b\[\d+m", "", str(one.message)) for one in told]


def shut(envs: Any) -> None:
    if envs is not None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            # Gymnasium's workers may be gone.
            with contextlib.suppress(AttributeError, OSError):
                envs.close(**({"terminate": True} if hasattr(envs, "step_async") else {}))


# --- What both answer alike ---


def masked(mask: Any) -> Ask:
    return lambda envs: (envs.reset(), envs.reset(options={"reset_mask": mask}))


def after_close(use: Ask) -> Ask:
    return lambda envs: (envs.close(), use(envs))


def while_stepping(use: Ask) -> Ask:
    return lambda envs: (envs.reset(), envs.step_async(np.zeros(N, np.int64)), use(envs))[2]


BOTH: dict[str, Ask] = {
    "a number as actions": lambda e: (e.reset(), e.step(0)),
    "None as actions": lambda e: (e.reset(), e.step(None)),
    "an array of no axis as actions": lambda e: (e.reset(), e.step(np.array(1))),
    "another number of seeds": lambda e: e.reset(seed=[1, 2]),
    "a text as the seed": lambda e: e.reset(seed="a"),
    "a float as the seed": lambda e: e.reset(seed=1.5),
    "a negative seed": lambda e: e.reset(seed=-1),
    "seeds in a tuple": lambda e: e.reset(seed=(1, None, 3))[0][0],
    "a mask that is a list": masked([True] * N),
    "a mask of another shape": masked(np.ones(2, np.bool_)),
    "a mask of another dtype": masked(np.ones(N, np.int64)),
    "a mask of none": masked(np.zeros(N, np.bool_)),
    "another number of values": lambda e: e.set_attr("level", [1, 2]),
    "a step before the first reset": lambda e: [one.shape for one in e.step([0, 1, 2])[:4]],
    "what the env was told before the first reset": lambda e: (
        e.step(np.zeros(N, np.int64)),
        e.get_attr("resets"),
        e.get_attr("time"),
    )[1:],
    "a reset after a step without one": lambda e: (
        e.step(np.zeros(N, np.int64)),
        e.reset(seed=4)[0],
        e.call("history"),
    )[1:],
    "a list of actions": lambda e: (e.reset(seed=3), e.step([0, 1, 2])[1])[1],
    "text": repr,
    "seeds of the generators": lambda e: (e.reset(seed=3), e.np_random_seed)[1],
}
ONLY_ASYNC: dict[str, Ask] = {
    "step_wait first": lambda e: e.step_wait(),
    "reset_wait first": lambda e: e.reset_wait(),
    "call_wait first": lambda e: e.call_wait(),
    "step_async again": while_stepping(lambda e: e.step_async(np.zeros(N, np.int64))),
    "step while stepping": while_stepping(lambda e: e.step(np.zeros(N, np.int64))),
    "reset while stepping": while_stepping(lambda e: e.reset()),
    "call while stepping": while_stepping(lambda e: e.call("history")),
    "get_attr while stepping": while_stepping(lambda e: e.get_attr("level")),
    "set_attr while stepping": while_stepping(lambda e: e.set_attr("level", 1)),
    "render while stepping": while_stepping(lambda e: e.render()),
    "the wrong wait": while_stepping(lambda e: e.reset_wait()),
    "a close while stepping": while_stepping(lambda e: e.close()),
    "a step after close": after_close(lambda e: e.step(np.zeros(N, np.int64))),
    "a reset after close": after_close(lambda e: e.reset()),
    "a call after close": after_close(lambda e: e.call("history")),
    "set_attr after close": after_close(lambda e: e.set_attr("level", 1)),
    "step_wait after close": after_close(lambda e: e.step_wait()),
}
MADE: dict[str, Callable[[Any], Any]] = {
    "no functions": lambda make: make([]),
    "no function": lambda make: make([3]),
    "a mode that there is not": lambda make: make(fns(), autoreset_mode="x"),
    "an observation mode that there is not": lambda make: make(fns(), observation_mode="x"),
    "what are no spaces": lambda make: make(fns(), observation_mode=(1, 2)),
    "a pair of one": lambda make: make(fns(), observation_mode=(1,)),
}
ONLY_ASYNC_MADE: dict[str, Callable[[Any], Any]] = {
    "no env at one time": lambda make: make(fns(), max_concurrency=0),
    "half an env at one time": lambda make: make(fns(), max_concurrency=1.5),
}
CASES = [
    pytest.param(pair, make, ask, id=f"{name}-{pair}")
    for pair in PAIRS
    for name, make, ask in [
        *((name, lambda cls: cls(fns()), ask) for name, ask in BOTH.items()),
        *((name, make, lambda envs: None) for name, make in MADE.items()),
        *((name, lambda cls: cls(fns()), ask) for name, ask in ONLY_ASYNC.items()),
        *((name, make, lambda envs: None) for name, make in ONLY_ASYNC_MADE.items()),
    ]
    if pair == "async" or name not in {**ONLY_ASYNC, **ONLY_ASYNC_MADE}
]


@pytest.mark.skipif(IS_OLD, reason="Gymnasium 1.4 has other words, and errors for assertions")
@pytest.mark.parametrize(("pair", "make", "ask"), CASES)
def test_both_answer_alike(pair: str, make: Callable[[Any], Any], ask: Ask) -> None:
    (expected, told), (found, ours_told) = (
        answer(functools.partial(make, cls), ask) for cls in PAIRS[pair]
    )
    if not isinstance(expected, Exception):
        assert_same(found, expected)
        assert ours_told == told
        return
    assert isinstance(found, type(expected)), found
    if not isinstance(expected, IndexError):
        # That one is Python's, of a list.
        assert str(found).startswith(str(expected).rstrip(".")), (str(found), str(expected))


class Bounded(gymnasium.Env[Any, Any]):
    """Shows numbers up to a bound of its own."""

    action_space = spaces.Discrete(2)

    def __init__(self, high: float, shape: tuple[int, ...] = (2,)) -> None:
        self.observation_space = spaces.Box(0, high, shape, np.float32)
        self.high = high

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        return np.full(self.observation_space.shape, self.high, np.float32), {}

    def step(self, action: Any) -> Any:
        return self.reset()[0] / 2, 1.0, False, False, {}


WIDE = spaces.Box(0, 9, (2,), np.float32)
OBSERVATION_MODES = {
    "different": "different",
    "spaces of one's own": (spaces.Box(0, 9, (N, 2), np.float32), WIDE),
}


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("mode", OBSERVATION_MODES)
def test_observation_spaces_may_differ_where_that_is_asked_for(pair: str, mode: str) -> None:
    made = [functools.partial(Bounded, high) for high in (1, 2, 3)]
    shown = []
    for cls in PAIRS[pair]:
        envs = cls(made, observation_mode=OBSERVATION_MODES[mode])
        assert envs.observation_mode == OBSERVATION_MODES[mode]
        shown.append(
            [
                *(envs.observation_space, envs.single_observation_space),
                *(envs.reset(seed=1)[0], envs.step(np.zeros(N, np.int64))[0]),
                envs.get_attr("high"),
                envs.get_attr("observation_space"),
            ]
        )
        if pair == "sync":
            assert [env.high for env in envs.envs] == [1, 2, 3]
        envs.close()
    assert_same(shown[1], shown[0])


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("mode", ["same", *OBSERVATION_MODES.values()])
def test_spaces_that_cannot_be_batched_are_a_runtime_error(pair: str, mode: Any) -> None:
    made = [functools.partial(Bounded, 1, (2,)), functools.partial(Bounded, 1, (3,))]
    for cls in PAIRS[pair]:
        with pytest.raises((RuntimeError, ValueError, AssertionError)):
            cls(made, observation_mode=mode)
    with pytest.raises(RuntimeError, match=re.escape("VectorEnv(..., observation_mode=")):
        PAIRS[pair][1](made, observation_mode=mode)


@pytest.mark.parametrize("use", ["reset", "step", "call", "step_wait", "call_wait", "get_attr"])
def test_a_workers_error_is_warned_of(use: str) -> None:
    uses: dict[str, Ask] = {
        "reset": lambda e: e.reset(),
        "step": lambda e: e.step(drawn(e)),
        "call": lambda e: e.call("nothing"),
        "get_attr": lambda e: e.get_attr("nothing"),
        "step_wait": lambda e: (e.step_async(drawn(e)), e.step_wait()),
        "call_wait": lambda e: (e.call_async("nothing"), e.call_wait()),
    }
    where = "reset" if use == "reset" else "step"
    made = [functools.partial(Broken, where, Trouble("odd"), at=0)]
    heard = []
    for cls in ASYNC:
        ask = uses[use] if use == "reset" else lambda e: (e.reset(), uses[use](e))
        if use != "reset":
            made = [functools.partial(Broken, where, Trouble("odd"), at=1)]
        found, told = answer(functools.partial(cls, made), ask)
        assert isinstance(found, Trouble | AttributeError)
        heard.append(told)
    theirs, mine = heard
    assert len(mine) == len(theirs) == 3
    assert theirs[0] == f"{mine[0]} - Shutting it down"
    assert mine[2] == theirs[2]
    for told in (theirs[1], mine[1]):
        assert "Traceback (most recent call last)" in told
        assert "odd" in told or "nothing" in told


# --- The table ---


class Told(gymnasium.Env[Any, Any]):
    """Keeps what it is given."""

    action_space = spaces.Box(-1, 1, (), np.float32)
    observation_space = spaces.Box(-np.inf, np.inf, (), np.float32)

    def __init__(self, shows: float = 0.0) -> None:
        self.shows = shows
        self.options: Any = "none yet"
        self.action: Any = None
        self.steps = self.resets = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.options = options
        self.resets += 1
        return np.float32(0), {}

    def step(self, action: Any) -> Any:
        self.action = action
        self.steps += 1
        return np.float32(self.shows), 0.0, False, False, {"told": self.shows}


TOLD = [Told] * N


class Labels(Told):
    action_space = spaces.Discrete(2)  # type: ignore[assignment]


class Info(Told):
    """The second tells a number that is no int."""

    def __init__(self, told: Any) -> None:
        super().__init__()
        self.told = told

    def reset(self, **how: Any) -> Any:
        return super().reset(**how)[0], {"told": self.told}


def raised(act: Callable[[], Any]) -> type[BaseException] | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            act()
    except Exception as error:
        return type(error)
    return None


def kept(cls: Any) -> Any:
    envs = cls(fns(), copy=False)
    first, _ = envs.reset(seed=0)
    before = first.copy()
    envs.step(np.zeros(N, np.int64))
    same = bool((first == before).all())
    envs.close()
    return same


def asked(made: Any, ask: Ask, **how: Any) -> Callable[[Any], Any]:
    """Of envs that were reset."""

    def run(cls: Any) -> Any:
        envs = cls(made, **how)
        try:
            envs.reset(seed=0)
            return ask(envs)
        finally:
            shut(envs)

    return run


def with_mask(envs: Any) -> Any:
    options = {"reset_mask": np.array([True, False, False])}
    envs.reset(options=options)
    return sorted(options)


def given(options: Any) -> Ask:
    def ask(envs: Any) -> Any:
        error = raised(lambda: envs.reset(options=options))
        return error or envs.get_attr("options")[0]

    return ask


def too_few(envs: Any) -> Any:
    error = raised(lambda: envs.step(np.zeros(2, np.float32)))
    return error, raised(envs.step_wait) if hasattr(envs, "step_wait") else envs.get_attr("steps")


def outside(envs: Any) -> Any:
    return raised(lambda: envs.step(np.array([0, 7, 0]))), envs.get_attr("steps")


def of_dtype(envs: Any) -> Any:
    envs.step(np.full(N, 0.5, np.float64))
    return envs.get_attr("action")[0].dtype


def ended(envs: Any) -> Any:
    envs.step(np.zeros(2, np.int64))
    return raised(lambda: envs.step(np.zeros(2, np.int64))), envs.get_attr("time")


def failed_sync(envs: Any) -> Any:
    error = raised(lambda: envs.step(np.zeros(N, np.int64)))
    times = [envs.envs[k].time for k in (0, 2)]
    broken = envs.envs[1]
    envs.reset()
    return error, times, envs.envs[1] is broken


def failed_async(envs: Any) -> Any:
    error = raised(lambda: envs.step(np.zeros(N, np.int64)))
    return error, raised(envs.reset)


def waited(envs: Any) -> Any:
    envs.step_async(np.zeros(1, np.int64))
    error = raised(lambda: envs.step_wait(timeout=0.02))
    assert issubclass(error or int, TimeoutError | Exception)
    return raised(lambda: envs.step_wait(timeout=30))


def negative(envs: Any) -> Any:
    error = raised(lambda: envs.reset(seed=[1, -1, 2]))
    return error is not None, envs.get_attr("resets")[0]


def closed(envs: Any) -> Any:
    envs.close()
    return raised(lambda: envs.call("history"))


def own_worker(cls: Any) -> Any:
    worker = gymnasium.vector.async_vector_env._async_worker

    def run() -> None:
        cls(fns(), worker=worker).close()

    return raised(run)


def in_shared_memory(cls: Any) -> Any:
    return raised(lambda: cls([functools.partial(Drawn, space="custom")] * 2).close())


BROKEN = [Drawn, functools.partial(Broken, "step", Trouble("odd"), at=1), Drawn]
INTS = [functools.partial(Info, told) for told in (1, 2.5, 3)]
MOVED, KEPT = (1, 1, 0), (0, 0, 0)
# By row: the pairs of classes, what is asked, and Gymnasium's and our answer.
Row = tuple[str, Callable[[Any], Any], Any, Any]
ROWS: dict[str, list[Row]] = {
    "an observation with `copy=False`": [
        ("sync", kept, False, True),
        ("async", kept, False, True),
    ],
    "a `reset_mask` in the caller's options": [
        (pair, asked(fns(), with_mask), [], ["reset_mask"]) for pair in PAIRS
    ],
    "`options={}`": [(pair, asked(TOLD, given({})), {}, None) for pair in PAIRS],
    "options that are no dict": [
        (pair, asked(TOLD, given("all")), "all", errors.ArgumentTypeError) for pair in PAIRS
    ],
    "a NumPy integer as the seed": [
        (pair, asked(TOLD, lambda e: raised(lambda: e.reset(seed=np.int64(3)))), TypeError, None)
        for pair in PAIRS
    ],
    "a negative seed for a later env": [
        ("sync", asked(TOLD, negative), (True, 2), (True, 1)),
    ],
    "too few actions": [
        ("sync", asked(TOLD, too_few), (ValueError, MOVED), (errors.InvalidActionError, KEPT)),
        (
            "async",
            asked(TOLD, lambda e: too_few(e)[0]),
            *(ValueError, errors.InvalidActionError),
        ),
    ],
    "an action outside the space": [
        (
            pair,
            asked([Labels] * N, outside),
            *((None, (1, 1, 1)), (errors.InvalidActionError, KEPT)),
        )
        for pair in PAIRS
    ],
    "actions of another dtype": [
        (pair, asked(TOLD, of_dtype), np.float64, np.float32) for pair in PAIRS
    ],
    "a NaN in an observation": [
        (
            pair,
            asked(
                [functools.partial(Told, np.nan)] * N,
                lambda e: raised(lambda: e.step(np.zeros(N, np.float32))),
            ),
            *(None, errors.EnvError),
        )
        for pair in PAIRS
    ],
    "a step of an env that has ended, autoreset disabled": [
        (
            "sync",
            asked(fns((2, 1)), ended, autoreset_mode=AutoresetMode.DISABLED),
            *((AssertionError, (2, 1)), (errors.ResetNeededError, (1, 1))),
        )
    ],
    "an env that raises in SyncVectorEnv": [
        (
            "sync",
            asked(BROKEN, failed_sync),
            *((Trouble, [1, 0], True), (Trouble, [1, 1], False)),
        )
    ],
    "an env that raises in AsyncVectorEnv": [
        ("async", asked(BROKEN, failed_async), (Trouble, AttributeError), (Trouble, None))
    ],
    "a wait that passes its timeout": [("async", asked([Slow], waited), NoAsyncCallError, None)],
    "an info that does not fit the array of an earlier env's": [
        (pair, asked(INTS, lambda e: e.reset()[1]["told"].tolist()), [1, 2, 3], [1, 2.5, 3])
        for pair in PAIRS
    ],
    "calls of a SyncVectorEnv after `close`": [
        ("sync", asked(fns(), closed), None, errors.ClosedError)
    ],
    "a `worker` of one's own": [("async", own_worker, None, errors.UnsupportedError)],
    "spaces of one's own in shared memory": [("async", in_shared_memory, ValueError, None)],
    "attributes of the machinery (`processes`, `parent_pipes`)": [
        (
            "async",
            asked(
                fns(),
                lambda e: [len(getattr(e, name, ())) for name in ("processes", "parent_pipes")],
            ),
            *([N, N], [0, 0]),
        )
    ],
    "the warning of a worker's error": [
        (
            "async",
            lambda cls: any(
                "Shutting it down" in one
                for one in answer(lambda: cls(fns()), lambda e: (e.reset(), e.call("nothing")))[1]
            ),
            *(True, False),
        )
    ],
}
TABLE = [pytest.param(*row, id=f"{name}-{row[0]}") for name, rows in ROWS.items() for row in rows]


@pytest.mark.skipif(IS_OLD, reason="the page is of Gymnasium 1.4")
@pytest.mark.parametrize(("pair", "ask", "theirs", "mine"), TABLE)
def test_each_row_of_the_table_is_true(
    pair: str, ask: Callable[[Any], Any], theirs: Any, mine: Any
) -> None:
    their_class, my_class = PAIRS[pair]
    assert ask(their_class) == theirs
    assert ask(my_class) == mine


def test_the_table_has_these_rows() -> None:
    table = PAGE.read_text().partition("| asked |")[2]
    assert re.findall(r"^\| (.+?) \|", table, re.MULTILINE) == list(ROWS)
