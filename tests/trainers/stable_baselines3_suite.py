"""`corral.to_sb3` and `corral.sb3_vec_env` beside Stable-Baselines3's own vec envs, and under its
algorithms; run by `test_stable_baselines3.py` in the venv that has them."""

from __future__ import annotations

import csv
import re
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch
from sb3_contrib import MaskablePPO
from stable_baselines3 import DQN, PPO
from stable_baselines3.common.callbacks import EvalCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import (
    DummyVecEnv,
    SubprocVecEnv,
    VecFrameStack,
    VecMonitor,
    VecNormalize,
)

import corral
from corral import errors

pytestmark = pytest.mark.filterwarnings("error", "ignore:.*old-style.*:DeprecationWarning")
# Threads that wait for each other at each small matrix are slow on a busy machine.
torch.set_num_threads(1)
N = 3
PAGE = Path(__file__).resolve().parents[2] / "docs" / "trainers" / "stable-baselines3.md"


def native(id: str = "CartPole-v1", num_envs: int = N, **options: Any) -> Any:
    return corral.make_vec(id, num_envs, autoreset_mode="same_step", **options)


def over(id: str = "CartPole-v1", num_envs: int = N, **options: Any) -> Any:
    return corral.to_sb3(native(id, num_envs, **options))


def one(id: str = "CartPole-v1", **options: Any) -> Callable[[], Any]:
    return lambda: gymnasium.make(f"corral/{id}", **options)


def monitored(id: str = "CartPole-v1", **options: Any) -> Callable[[], Any]:
    return lambda: Monitor(gymnasium.make(f"corral/{id}", **options))


def assert_equal(mine: Any, theirs: Any) -> None:
    """The same to the bit, in the same types."""
    if isinstance(theirs, dict):
        assert mine.keys() == theirs.keys()
        for key in theirs:
            assert_equal(mine[key], theirs[key])
    elif isinstance(theirs, list | tuple):
        assert len(mine) == len(theirs)
        for a, b in zip(mine, theirs, strict=True):
            assert_equal(a, b)
    else:
        assert type(mine) is type(theirs)
        if isinstance(theirs, np.ndarray):
            assert mine.dtype == theirs.dtype
            np.testing.assert_array_equal(mine, theirs)
        else:
            assert mine == theirs


def assert_same_steps(mine: Any, theirs: Any, steps: int = 250) -> int:
    """How many episodes ended."""
    assert_equal(mine.reset(), theirs.reset())
    assert_equal(list(mine.reset_infos), list(theirs.reset_infos))
    mine.action_space.seed(0)
    ended = 0
    for _ in range(steps):
        actions = [mine.action_space.sample() for _ in range(mine.num_envs)]
        got, expected = mine.step(actions), theirs.step(actions)
        assert_equal(got[:3], expected[:3])
        infos = list(got[3])
        for info, right in zip(infos, expected[3], strict=True):
            if "episode" in right:
                ended += 1
                # Clocks differ.
                assert type(info["episode"].pop("t")) is type(right["episode"].pop("t"))
        assert_equal(infos, list(expected[3]))
        assert_equal(list(mine.reset_infos), list(theirs.reset_infos))
    return ended


IDS = {
    "CartPole-v1": 20,
    "Pendulum-v1": N,
    "Taxi-v4": N,
    "ConnectFour-v0": 50,
    "Blackjack-v1": 100,
}


@pytest.mark.parametrize("id", IDS)
def test_a_run_is_dummy_vec_envs_over_monitors(id: str) -> None:
    mine, theirs = over(id), DummyVecEnv([monitored(id)] * N)
    for envs in (mine, theirs):
        envs.seed(7)
    assert assert_same_steps(mine, theirs) >= IDS[id]


@pytest.mark.parametrize("id", ["CartPole-v1", "Pendulum-v1"])
def test_normalised_rewards_leave_the_returns_of_the_episodes(id: str) -> None:
    """Where the vec env counts them itself."""
    mine = over(id, normalize_reward=True, episode_statistics=True)
    theirs = VecNormalize(DummyVecEnv([monitored(id)] * N), norm_obs=False)
    told: list[list[Any]] = [[], []]
    for envs, episodes in zip((mine, theirs), told, strict=True):
        envs.seed(7)
        envs.reset()
        envs.action_space.seed(0)
        for _ in range(200):
            infos = envs.step(np.array([envs.action_space.sample() for _ in range(N)]))[3]
            episodes += [info["episode"] for info in infos if "episode" in info]
    assert len(told[0]) >= N
    assert [(one["r"], one["l"]) for one in told[0]] == [(one["r"], one["l"]) for one in told[1]]


# What the table of the page says, row by row.


class Alarm(BaseException):
    """It took longer than any answer takes."""


@pytest.fixture
def waiting() -> Iterator[Callable[[Callable[[], Any]], Any]]:
    """Calls a function, which has three seconds."""

    def ring(*_: Any) -> None:
        raise Alarm

    def call(function: Callable[[], Any]) -> Any:
        signal.setitimer(signal.ITIMER_REAL, 3)
        try:
            return function()
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)

    before = signal.signal(signal.SIGALRM, ring)
    yield call
    signal.signal(signal.SIGALRM, before)


A = np.zeros(N, np.int64)
OUTSIDE = np.array([0, 7, 0])


class Counts(gymnasium.Env[Any, Any]):
    """Shows how many steps it took; the second of three raises at its first."""

    observation_space = gymnasium.spaces.Box(0, np.inf, (), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, fails: bool) -> None:
        self.fails, self.steps = fails, 0

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        return np.float32(self.steps), {}

    def step(self, action: Any) -> Any:
        if self.fails:
            raise ZeroDivisionError("broken on purpose")
        self.steps += 1
        return np.float32(self.steps), 0.0, False, False, {}


FAILING = [lambda: Counts(False), lambda: Counts(True), lambda: Counts(False)]


def makers() -> list[Callable[[], Any]]:
    return [
        lambda: DummyVecEnv([one()] * N),
        lambda: SubprocVecEnv([one()] * N, start_method="fork"),
        over,
    ]


def failing() -> list[Callable[[], Any]]:
    return [
        lambda: DummyVecEnv(FAILING),
        lambda: SubprocVecEnv(FAILING, start_method="fork"),
        lambda: corral.to_sb3(
            corral.from_gymnasium(FAILING, autoreset_mode="same_step", runner="serial")
        ),
    ]


def again(envs: Any) -> Any:
    envs.step(A)
    return envs.step_wait()


def twice(envs: Any) -> Any:
    envs.step_async(A)
    envs.step_async(1 - A)
    return envs.step_wait()[0]


def set_and_get(envs: Any) -> Any:
    envs.set_attr("level", 3)
    return envs.get_attr("level")


def with_options(envs: Any) -> Any:
    envs.set_options([{}] * (N + 2))
    return envs.reset().shape


def closed(envs: Any) -> Any:
    envs.close()
    return envs.step(A)


def kind_of_envs(envs: Any) -> Any:
    return type(getattr(envs, "envs", None))


# Where one worker of several dies, it depends on how they were started whether that is seen.
DEAD = (EOFError, Alarm)

# By row: what is asked; and of DummyVecEnv, SubprocVecEnv and to_sb3 the error, or the answer.
ROWS: dict[str, list[tuple[Callable[[Any], Any], Any, Any, Any]]] = {
    "a step before the first reset": [
        (lambda e: e.step(A), gymnasium.error.ResetNeeded, EOFError, gymnasium.error.ResetNeeded)
    ],
    "fewer actions than envs": [
        (lambda e: e.step(A[:2]), IndexError, ValueError, errors.InvalidActionError),
        (lambda e: e.step([0, 1]), IndexError, ValueError, ValueError),
    ],
    "more actions than envs": [
        (lambda e: e.step(np.zeros(N + 2, int))[1].tolist(), [1.0] * N, ValueError, ValueError)
    ],
    "an action outside the space": [
        (lambda e: e.step(OUTSIDE), errors.InvalidActionError, DEAD, ValueError)
    ],
    "`step_wait` without `step_async`": [
        (lambda e: e.step_wait(), AttributeError, Alarm, errors.NothingPendingError),
        (lambda e: again(e)[1].tolist(), [1.0] * N, Alarm, gymnasium.error.NoAsyncCallError),
    ],
    "`step_async` twice": [
        (lambda e: twice(e).shape, (N, 4), (N, 4), gymnasium.error.AlreadyPendingCallError)
    ],
    "an attribute that there is not": [
        (lambda e: e.get_attr("gravity"), AttributeError, EOFError, AttributeError),
        (lambda e: e.env_method("gravity"), AttributeError, EOFError, AttributeError),
        (lambda e: e.has_attr("gravity"), False, False, False),
    ],
    "`set_attr` of a new name on envs in Rust": [(set_and_get, [3] * N, [3] * N, AttributeError)],
    '`env_method("reset")` of envs in Rust': [
        (lambda e: len(e.env_method("reset")), N, N, AttributeError)
    ],
    "`set_options` with a longer list": [(with_options, (N, 4), (N, 4), errors.ArgumentError)],
    "`step` after `close`": [(closed, errors.ClosedError, OSError, errors.ClosedError)],
    "`env_is_wrapped(Monitor)` of envs without one": [
        (lambda e: e.env_is_wrapped(Monitor), [False] * N, [False] * N, [True] * N)
    ],
    "`env_is_wrapped` with a wrapper of `gymnasium.make`": [
        (lambda e: e.env_is_wrapped(gymnasium.wrappers.TimeLimit, -1), [True], [True], [False])
    ],
    "`envs`": [(kind_of_envs, list, type(None), corral.VectorEnv)],
    "dtype of rewards": [(lambda e: e.step(A)[1].dtype.name, "float32", "float64", "float32")],
    "type of the infos": [
        (lambda e: isinstance(e.step(A)[3], list), True, False, True),
        (lambda e: isinstance(e.step(A)[3], tuple), False, True, False),
    ],
    "an env that raises": [
        (lambda e: e.step(A), ZeroDivisionError, DEAD, ZeroDivisionError),
    ],
}
CASES = [
    pytest.param(row, which, case, id=f"{row}-{who}-{number}")
    for row, cases in ROWS.items()
    for number, case in enumerate(cases)
    for which, who in enumerate(("DummyVecEnv", "SubprocVecEnv", "to_sb3"))
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("row", "which", "case"), CASES)
def test_each_row_of_the_page_is_true(
    row: str, which: int, case: tuple[Any, ...], waiting: Any
) -> None:
    ask, expected = case[0], case[1 + which]
    envs = (failing() if row == "an env that raises" else makers())[which]()
    try:
        if "before the first reset" not in row:
            envs.reset()
        is_error = isinstance(expected, type) and issubclass(expected, BaseException)
        if is_error or expected is DEAD:
            with pytest.raises(expected):
                waiting(lambda: ask(envs))
        else:
            assert waiting(lambda: ask(envs)) == expected
    finally:
        for process in getattr(envs, "processes", ()):
            process.kill()
            process.join()


def test_the_page_has_these_rows() -> None:
    table = PAGE.read_text().partition("| asked |")[2].partition("\n\n")[0]
    assert re.findall(r"^\| (.+?) \|", table, re.MULTILINE) == list(ROWS)


@pytest.mark.parametrize("actions", [A[:2], [0, 1], np.zeros(N + 2, int), OUTSIDE], ids=repr)
def test_bad_actions_move_nothing(actions: Any) -> None:
    envs = over(seed=0)
    before = envs.reset()
    with pytest.raises(ValueError, match="bad action"):
        envs.step(actions)
    np.testing.assert_array_equal(envs.envs.observe(), before)


def test_where_one_env_raises_the_others_of_to_sb3_have_moved() -> None:
    for make, steps in ((failing()[0], [1, 0]), (failing()[2], [1, 1])):
        envs = make()
        envs.reset()
        with pytest.raises(ZeroDivisionError, match="broken on purpose"):
            envs.step(A)
        assert envs.get_attr("steps", [0, 2]) == steps


# What all of them answer alike.


ALIKE: dict[str, Callable[[Any], Any]] = {
    "no such index": lambda e: e.get_attr("spec", N),
    "no such index from the end": lambda e: e.get_attr("spec", -N - 1),
    "one of several": lambda e: e.get_attr("render_mode", [0, N]),
    "no such index of a method": lambda e: e.env_method("render", indices=N),
    "no such index of a wrapper": lambda e: e.env_is_wrapped(Monitor, N),
    "no such index to set": lambda e: e.set_attr("x", 1, N),
    "an index of another type": lambda e: e.get_attr("render_mode", [1.0]),
    "an index that is text": lambda e: e.get_attr("render_mode", "0"),
    "an index of NumPy's": lambda e: e.get_attr("render_mode", np.int64(1)),
    "an index from the end": lambda e: e.get_attr("render_mode", -1),
    "an index that is a bool": lambda e: e.get_attr("render_mode", True),
    "no index": lambda e: e.get_attr("render_mode", []),
    "a set of indices": lambda e: e.get_attr("render_mode", {0, 2}),
    "an attribute": lambda e: e.get_attr("metadata", 1)[0]["render_fps"],
    "the spec": lambda e: e.get_attr("spec")[0].id,
    "the spaces": lambda e: (e.get_attr("action_space"), e.get_attr("observation_space")),
    "has": lambda e: [e.has_attr(name) for name in ("spec", "render", "gravity", "metadata")],
    "a method": lambda e: [frame.shape for frame in e.env_method("render", indices=[0, 2])],
    "a method as an attribute": lambda e: [f().shape for f in e.get_attr("render", [0, 2])],
    "arguments that a method does not take": lambda e: e.env_method("render", 3),
    "a method that is none": lambda e: e.env_method("metadata"),
    "seeds": lambda e: e.seed(4),
    "any seeds": lambda e: np.diff(e.seed()).tolist(),
    "seeded": lambda e: (e.seed(4), e.reset())[1].tolist(),
    "a negative seed": lambda e: (e.seed(-3), e.reset()),
    "a seed of another type": lambda e: (e.seed(1.5), e.reset()),
    "options": lambda e: (e.seed(4), e.set_options({"low": -0.01, "high": 0.0}), e.reset())[2],
    "options of each": lambda e: (
        *(e.seed(4), e.set_options([{"low": -0.1 * k, "high": 0.01} for k in range(1, N + 1)])),
        e.reset().tolist(),
    ),
    "too few options": lambda e: (e.set_options([{}]), e.reset()),
    "options that are none": lambda e: (e.set_options(3), e.reset()),
    "no options": lambda e: (e.seed(4), e.set_options(None), e.reset().tolist()),
    "a picture": lambda e: (e.seed(4), e.reset(), e.render().tolist())[2],
    "a picture of another mode": lambda e: e.render("ansi"),
    "pictures": lambda e: [image.shape for image in e.get_images()],
    "unwrapped": lambda e: e.unwrapped is e,
    "depth": lambda e: [e.getattr_depth_check(name, False) for name in ("num_envs", "x")],
    "depth, hidden": lambda e: e.getattr_depth_check("num_envs", True) is None,
    "through a wrapper": lambda e: VecMonitor(VecNormalize(e)).getattr_recursive("num_envs"),
    "closed twice": lambda e: (e.close(), e.close()),
    "a reset after the end": lambda e: (e.close(), e.reset()),
    "an attribute after the end": lambda e: (e.close(), e.get_attr("render_mode")),
    "render modes": lambda e: (e.render_mode, e.metadata["render_modes"]),
    "dones": lambda e: e.step(A)[2].tolist(),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("ask", ALIKE)
def test_it_answers_as_dummy_vec_env(ask: str) -> None:
    kinds: list[Any] = []
    for envs in (
        over(render_mode="rgb_array", episode_statistics=False),
        DummyVecEnv([monitored(render_mode="rgb_array")] * N),
    ):
        envs.seed(0)
        envs.reset()
        try:
            kinds.append(("answer", ALIKE[ask](envs)))
        except Exception as error:
            kinds.append(("error", type(error)))
    (mine, found), (theirs, expected) = kinds
    assert mine == theirs, kinds
    if mine == "error":
        assert issubclass(found, expected)
    else:
        assert_equal(found, expected)


def test_a_picture_without_a_render_mode_is_a_warning_as_of_sb3() -> None:
    for envs in (over(), DummyVecEnv([one()] * N)):
        envs.reset()
        with pytest.warns(UserWarning, match="^The render mode is None, .* `rgb_array`"):
            assert envs.get_images() == [None] * N
        with pytest.warns(UserWarning, match="no `render_mode` was passed"):
            assert envs.render() is None


# By `make_vec_env`.


def made(vec_env_cls: Any, id: Any = "corral/CartPole-v1", **how: Any) -> Any:
    return make_vec_env(id, n_envs=N, seed=5, vec_env_cls=vec_env_cls, **how)


def both(id: Any = "corral/CartPole-v1", **how: Any) -> tuple[Any, Any]:
    return made(corral.sb3_vec_env, id, **how), made(None, id, **how)


def is_in_rust(envs: Any) -> bool:
    return envs.envs.native.about is None


@pytest.mark.parametrize("id", IDS)
def test_make_vec_env_makes_the_same_in_rust(id: str) -> None:
    mine, theirs = both(f"corral/{id}")
    assert is_in_rust(mine)
    assert mine.render_mode == theirs.render_mode
    spec, right = (envs.get_attr("spec")[0] for envs in (mine, theirs))
    assert (spec.id, spec.kwargs) == (right.id, right.kwargs)
    assert assert_same_steps(mine, theirs) >= IDS[id]


def test_arguments_and_limits_are_the_envs() -> None:
    how = {"env_kwargs": {"columns": 8, "max_episode_steps": 7}}
    mine, theirs = both("corral/Snake-v0", **how)
    assert is_in_rust(mine)
    assert mine.envs.max_episode_steps == 7
    assert assert_same_steps(mine, theirs) > 60


def test_functions_of_corrals_own_envs_are_taken() -> None:
    def make(**options: Any) -> Any:
        return corral.make("CartPole-v1", max_episode_steps=9, **options)

    mine, theirs = both(make)
    assert is_in_rust(mine)
    assert mine.envs.max_episode_steps == 9
    assert assert_same_steps(mine, theirs) > 60


def test_options_of_vec_envs_are_vec_env_kwargs() -> None:
    how = {"num_threads": 1, "frame_stack": 2, "episode_statistics": True}
    envs = made(corral.sb3_vec_env, vec_env_kwargs=how)
    assert envs.reset().shape == (N, 2, 4)
    with pytest.raises(errors.UnsupportedError, match="SB3 seeds envs by"):
        made(corral.sb3_vec_env, vec_env_kwargs={"seed": 3})
    with pytest.raises(errors.UnknownOptionError, match="num_threads"):
        made(corral.sb3_vec_env, vec_env_kwargs={"num_thread": 3})


class Doubled(gymnasium.RewardWrapper[Any, Any]):
    def reward(self, reward: Any) -> Any:
        return 2 * reward


HOSTED: dict[str, tuple[Any, dict[str, Any]]] = {
    "a wrapper_class": ("corral/CartPole-v1", {"wrapper_class": Doubled}),
    "an env of Gymnasium's": ("CartPole-v1", {}),
    "a seed of its own": ("corral/CartPole-v1", {"env_kwargs": {"seed": 3}}),
    "early resets forbidden": (
        "corral/CartPole-v1",
        {"monitor_kwargs": {"allow_early_resets": False}},
    ),
    "two limits": (
        lambda **_: gymnasium.wrappers.TimeLimit(gymnasium.make("corral/CartPole-v1"), 12),
        {},
    ),
}


@pytest.mark.parametrize("runner", ["serial", None])
@pytest.mark.parametrize("name", HOSTED)
def test_what_is_no_plain_env_of_corrals_is_hosted_as_it_is(name: str, runner: str | None) -> None:
    id, how = HOSTED[name]
    theirs = made(None, id, **how)
    mine = made(corral.sb3_vec_env, id, **how, vec_env_kwargs={"runner": runner})
    assert not is_in_rust(mine)
    assert assert_same_steps(mine, theirs, 60) > 5
    mine.close()


def test_envs_with_unlike_arguments_are_hosted_one_by_one() -> None:
    envs = corral.sb3_vec_env([one(), one("CartPole-v1", max_episode_steps=5)], runner=None)
    assert not is_in_rust(envs)
    envs.close()


def test_one_env_for_several_is_an_error_as_of_sb3() -> None:
    env = corral.make("CartPole-v1")
    for make in (DummyVecEnv, corral.sb3_vec_env):
        with pytest.raises(ValueError, match=r"same instance|one env object"):
            make([lambda: env] * 2)


@pytest.mark.parametrize("given", [3, "CartPole-v1", [3], one])
def test_what_are_no_functions_is_an_error(given: Any) -> None:
    with pytest.raises(TypeError):
        corral.sb3_vec_env(given if given is not one else [one()()])


def test_monitors_files_and_keywords_go_on(tmp_path: Path) -> None:
    how: dict[str, Any] = {"monitor_kwargs": {"info_keywords": ("prob",)}}
    written: list[list[list[dict[str, Any]]]] = []
    told: list[Any] = []
    for who, vec_env_cls in (("mine", corral.sb3_vec_env), ("theirs", None)):
        folder = tmp_path / who
        envs = made(vec_env_cls, "corral/Taxi-v4", monitor_dir=str(folder), **how)
        if who == "mine":
            assert is_in_rust(envs)
        envs.reset()
        envs.action_space.seed(0)
        for _ in range(450):
            infos = envs.step([envs.action_space.sample() for _ in range(N)])[3]
            told += [(who, info["episode"]["prob"]) for info in infos if "episode" in info]
        envs.close()
        rows = []
        for number in range(N):
            with open(folder / f"{number}.monitor.csv") as file:
                assert file.readline().startswith('#{"t_start"')
                rows.append([{**row, "t": ""} for row in csv.DictReader(file)])
        written.append(rows)
    assert written[0] == written[1]
    assert [len(rows) for rows in written[0]] == [2] * N
    assert [value for who, value in told if who == "mine"] == [1.0] * 2 * N


# Under SB3's algorithms.


def test_the_logger_has_the_returns_without_a_monitor(capsys: Any) -> None:
    PPO("MlpPolicy", over(num_envs=16), n_steps=32, seed=0, device="cpu", verbose=1).learn(512)
    shown = capsys.readouterr().out
    found = re.search(r"ep_rew_mean *\| *([\d.]+)", shown)
    assert found is not None
    assert 9 < float(found[1]) < 60
    # Each step of CartPole is worth 1.
    assert re.search(rf"ep_len_mean *\| *{re.escape(found[1])} ", shown)


def test_it_is_monitored_for_evaluate_policy_and_callbacks() -> None:
    """Which warn of envs that are not."""
    model = DQN("MlpPolicy", over(), learning_starts=50, seed=0, device="cpu")
    model.learn(300, callback=EvalCallback(over(), eval_freq=50, n_eval_episodes=3, verbose=0))
    by_mine, by_theirs = (
        evaluate_policy(model, envs, 6, return_episode_rewards=True)
        for envs in (over(seed=5), made(None))
    )
    assert len(by_mine[0]) == len(by_theirs[0]) == 6
    assert by_mine[0] == [float(length) for length in by_mine[1]]


def test_statistics_can_be_left_to_vec_monitor() -> None:
    with pytest.warns(UserWarning, match="already wrapped with a `Monitor`"):
        VecMonitor(over())
    envs = VecMonitor(corral.to_sb3(native(), episode_statistics=False))
    envs.reset()
    told = [info for _ in range(30) for info in envs.step(A)[3] if "episode" in info]
    assert len(told) > N
    bare = corral.to_sb3(native(), episode_statistics=False)
    bare.reset()
    ends = [info for _ in range(30) for info in bare.step(A)[3] if "terminal_observation" in info]
    assert ends
    assert all("episode" not in info for info in ends)


@pytest.mark.parametrize("id", ["ConnectFour-v0", "Taxi-v4", "2048-v0"])
def test_masks_are_those_that_dummy_vec_env_asks_for(id: str) -> None:
    """Of a wrapper that keeps them, which is how programs give them to sb3-contrib."""

    class Masks(gymnasium.Wrapper[Any, Any, Any, Any]):
        mask: Any = None

        def reset(self, **how: Any) -> Any:
            observation, info = self.env.reset(**how)
            self.mask = info["action_mask"]
            return observation, info

        def step(self, action: Any) -> Any:
            step = self.env.step(action)
            self.mask = step[4]["action_mask"]
            return step

        def action_masks(self) -> Any:
            return self.mask.astype(bool)

    mine, theirs = over(id), DummyVecEnv([lambda: Masks(monitored(id)())] * N)
    rng = np.random.default_rng(0)
    for envs in (mine, theirs):
        assert envs.has_attr("action_masks") is (envs is theirs)
        envs.seed(3)
        envs.reset()
        assert envs.has_attr("action_masks")
    ended = 0
    for _ in range(150):
        masks = mine.env_method("action_masks")
        assert_equal(masks, theirs.env_method("action_masks"))
        assert_equal([ask() for ask in mine.get_attr("action_masks")], masks)
        actions = np.array([rng.choice(np.flatnonzero(mask)) for mask in masks])
        got, expected = mine.step(actions), theirs.step(actions)
        assert_equal(got[:3], expected[:3])
        ended += int(got[2].sum())
    assert ended or id == "Taxi-v4"


def test_maskable_ppo_learns_to_win() -> None:
    """Against an opponent that plays at random the first player wins half of the time."""
    envs = over("ConnectFour-v0", 32, seed=0, check_actions="masked")
    model = MaskablePPO(
        "MlpPolicy", envs, n_steps=64, batch_size=512, learning_rate=2e-3, seed=0, device="cpu"
    )
    model.learn(2048)
    before = np.mean([one["r"] for one in model.ep_info_buffer])
    model.learn(20_000, reset_num_timesteps=False)
    assert np.mean([one["r"] for one in model.ep_info_buffer]) > before + 0.2


def test_wrappers_of_sb3s_take_it() -> None:
    envs = VecFrameStack(VecNormalize(over()), 3)
    assert envs.reset().shape == (N, 12)
    for _ in range(40):
        observations, _, dones, infos = envs.step(A)
        for info, done in zip(infos, dones, strict=True):
            assert ("terminal_observation" in info) == done
            if done:
                assert info["terminal_observation"].shape == (12,)
    assert observations.shape == (N, 12)


def test_what_sb3_says_of_a_plain_vector_env_is_what_the_page_says() -> None:
    with pytest.raises(ValueError, match="not a Gymnasium environment") as told:
        PPO("MlpPolicy", native())
    page = " ".join(PAGE.read_text().split())
    quoted = re.search(r"raises `(\w+): (.*?)…`", page)
    assert quoted is not None
    assert type(told.value).__name__ == quoted[1]
    assert str(told.value).startswith(quoted[2])
