"""Faults that a second hunt found."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

import corral
from corral import errors, managers


class Counted(gymnasium.Env[Any, Any]):
    """An episode of four steps."""

    observation_space = spaces.Box(-np.inf, np.inf, (1,), np.float64)
    action_space = spaces.Discrete(2)

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.steps = 0
        return np.zeros(1), {}

    def step(self, action: Any) -> Any:
        self.steps += 1
        return np.array([self.steps], float), 1.0, self.steps == 4, False, {}


@pytest.mark.parametrize("seed", [[[1], [2]], [{}, {}], [[], None]], ids=str)
def test_seeds_that_are_no_numbers_are_refused(seed: Any) -> None:
    envs = corral.make_vec("CartPole-v1", 2)
    for call in (envs.reset, envs.send_reset):
        with pytest.raises(errors.ArgumentTypeError, match="seed"):
            call(seed=seed)


@pytest.mark.parametrize("env_id", [{5, 3}, {3: 0, 5: 1}], ids=["set", "dict"])
def test_envs_without_order_are_not_sent(env_id: Any) -> None:
    envs = corral.make_vec("CartPole-v1", 8, batch_size=2)
    envs.send_reset()
    envs.drain()
    with pytest.raises(errors.ArgumentTypeError, match="env_id"):
        envs.send([0, 1], env_id)


class Telling(Counted):
    """A reset tells an int where a step tells a float, and a dict where it tells a text."""

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        shown, _ = super().reset(seed=seed)
        self.steps = int(seed or 0) % 3
        return shown, {"number": 5, "vector": np.zeros(2, np.int8), "kind": {"inner": 1}}

    def step(self, action: Any) -> Any:
        shown, *ends, _ = super().step(action)
        told = {"number": self.steps + 0.5, "vector": np.full(2, 0.25), "kind": "text"}
        return shown, *ends, told


@pytest.mark.parametrize("runner", ["serial", "process"])
def test_a_policy_is_told_infos_as_they_are(runner: str) -> None:
    mixed = 0

    def policy(observations: Any, infos: Any, began: Any) -> Any:
        nonlocal mixed
        mixed += 0 < began.sum() < len(began)
        for row, is_first in enumerate(began):
            number = 5 if is_first else observations[row][0] + 0.5
            kind = infos["kind"]
            seen = kind["inner"][row] if isinstance(kind, dict) else kind[row]
            assert infos["number"][row] == number
            assert infos["vector"][row].tolist() == ([0, 0] if is_first else [0.25, 0.25])
            assert seen in ([1, {"inner": 1}] if is_first else ["text"])
        return np.zeros(len(observations), int)

    envs = corral.from_gymnasium(Telling, 4, runner=runner, autoreset_mode="disabled")
    corral.evaluate(policy, envs, range(12))
    envs.close()
    assert mixed


def test_a_state_without_lazy_frames_is_told_apart() -> None:
    plain = corral.make_vec("CartPole-v1", 2, frame_stack=2)
    lazy = corral.make_vec("CartPole-v1", 2, frame_stack=2, lazy_frames=True)
    plain.reset()
    with pytest.raises(errors.StateError) as raised:
        lazy.load_state(plain.save_state())
    assert "lazy_frames" in str(raised.value)
    assert "pickle" not in str(raised.value)


def test_lazy_frames_keep_what_a_masked_reset_leaves_out() -> None:
    eager, lazy = (
        corral.make_vec(
            "CartPole-v1", 3, seed=1, normalize_observation=True, frame_stack=2, lazy_frames=is_lazy
        )
        for is_lazy in (False, True)
    )
    eager.reset()
    lazy.reset()
    for step in range(20):
        np.testing.assert_array_equal(eager.step([0, 1, 0])[0], lazy.step([0, 1, 0])[0])
        options = {"reset_mask": np.arange(3) == step % 3}
        expected, got = eager.reset(options=options)[0], lazy.reset(options=options)[0]
        np.testing.assert_array_equal(expected, got)
        np.testing.assert_array_equal(eager.observe(), lazy.observe())


@pytest.mark.parametrize("runner", ["serial", "process"])
def test_a_class_is_no_env(runner: str) -> None:
    with pytest.raises(errors.ArgumentTypeError, match="the class Counted"):
        corral.from_gymnasium(lambda: Counted, 1, runner=runner)


@pytest.mark.parametrize("space", [None, 5, "Box", spaces.Box], ids=str)
@pytest.mark.parametrize("name", ["observation_space", "action_space"])
def test_what_is_no_space_is_refused(name: str, space: Any) -> None:
    made = type("Spaceless", (Counted,), {name: space})
    with pytest.raises(errors.SpaceError, match=name):
        corral.from_gymnasium(made, 1, runner="serial")


@pytest.mark.parametrize("value", [1, "x", None], ids=str)
def test_statistics_are_updated_or_not(value: Any) -> None:
    envs = corral.make_vec("CartPole-v1", 2, normalize_reward=True)
    assert envs.reward_normalization is not None
    with pytest.raises(errors.ArgumentTypeError, match="update"):
        envs.reward_normalization.update = value


@pytest.mark.parametrize("name", [5, None, "\ud800"], ids=repr)
def test_a_name_is_a_text(name: Any) -> None:
    envs = corral.make_vec("testing/Caller-v0", 2)
    for call in (envs.call, envs.get_attr, lambda name: envs.set_attr(name, 1)):
        with pytest.raises(errors.ArgumentTypeError, match="name"):
            call(name)


def test_half_a_character_is_no_action() -> None:
    envs = corral.make_vec("testing/Caller-v0", 2)
    envs.reset()
    with pytest.raises(errors.InvalidActionError, match="character"):
        envs.step(["\ud800", "a"])


@pytest.mark.timeout(30)
def test_a_fifo_is_no_library_to_copy(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(errors.LibraryError, match="FIFO"):
        corral.load_env_c_api(tmp_path / "fifo", isolation="copy")


def test_paths_that_no_file_has_are_refused() -> None:
    for call in (corral.load, corral.load_libenv, corral.load_env_c_api, corral.replay):
        with pytest.raises(errors.ArgumentError, match="no file is called"):
            call("\ud800")


def test_the_port_of_metrics_is_one() -> None:
    command = [sys.executable, "-m", "corral", "serve", "CartPole-v1", "--addr", "127.0.0.1:0"]
    done = subprocess.run([*command, "--metrics", "99999"], capture_output=True, text=True)
    assert done.returncode == 2
    assert "99999" in done.stderr
    assert "Traceback" not in done.stderr


class Resting(Counted):
    def step(self, action: Any) -> Any:
        entered.set()
        go_on.wait(20)
        return super().step(action)


entered, go_on = threading.Event(), threading.Event()


def test_one_thread_at_a_time_calls_a_manager() -> None:
    manager = managers.BaseEnvManager([Resting], {})
    manager.launch()
    thread = threading.Thread(target=manager.step, args=({0: 0},))
    thread.start()
    entered.wait(20)
    for call in (lambda: manager.step({0: 0}), manager.reset, lambda: manager.ready_obs):
        with pytest.raises(errors.PendingCallError, match="another call"):
            call()
    go_on.set()
    thread.join()
    manager.step({0: 0})
    manager.close()


@pytest.mark.parametrize("made", [None, 5], ids=str)
def test_what_is_no_env_is_not_managed(made: Any) -> None:
    with pytest.raises(errors.ArgumentTypeError, match=r"env_fn\[0\]"):
        managers.BaseEnvManager([lambda: made], {})


@pytest.mark.parametrize("shape", [(2**62,), (2**40, 2**40)], ids=str)
def test_a_buffer_that_no_memory_holds_is_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(errors.ArgumentError, match="shape"):
        managers.ShmBuffer(np.float32, shape)


HEAVY = """
import resource
import gymnasium, numpy as np
import corral
from gymnasium import spaces

block = np.ones(150 << 20, np.uint8)

class Heavy(gymnasium.Env):
    observation_space = spaces.Discrete(2)
    action_space = spaces.Discrete(2)
    held = block

    def reset(self, **how):
        return 0, {}

    def step(self, action):
        return 0, 0.0, False, False, {}

used = int(open("/proc/self/statm").read().split()[0]) * 4096
resource.setrlimit(resource.RLIMIT_AS, (used + (500 << 20), used + (500 << 20)))
try:
    corral.from_gymnasium(Heavy, 1)
except (corral.errors.CorralError, MemoryError) as error:
    print(type(error).__name__, error)
"""


def test_a_factory_that_memory_has_no_place_for_is_an_error() -> None:
    done = subprocess.run([sys.executable, "-c", HEAVY], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "emory" in done.stdout


class Unseedable:
    """An env of the old gym that has a `seed` which is no method."""

    metadata: dict[str, Any] = {}  # noqa: RUF012
    observation_space = spaces.Box(-1, 1, (2,), np.float32)
    action_space = spaces.Discrete(2)
    seed = None

    def reset(self) -> Any:
        return np.full(2, 0.5, np.float32)

    def step(self, action: Any) -> Any:
        return np.zeros(2, np.float32), 1.0, False, {}


def test_a_seed_that_is_no_method_is_not_called() -> None:
    envs = corral.from_gymnasium(Unseedable, num_envs=2, runner="serial")
    observations, _ = envs.reset(seed=3)
    assert observations.tolist() == [[0.5, 0.5]] * 2
    envs.close()


def test_a_key_with_half_a_character_is_named() -> None:
    class Halved(Counted):
        observation_space = spaces.Dict({"\ud800": spaces.Discrete(2)})  # type: ignore[assignment]

    with pytest.raises(errors.CorralError, match="one half of a character"):
        corral.from_gymnasium(Halved, num_envs=1, runner="serial")
