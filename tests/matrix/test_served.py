"""Are envs in a server of corral's the same, byte for byte, as envs in this process?

By the extension, which carries all that plain netenv has no word for: seeds, indices, masks, every
autoreset mode, final observations, infos, states, calls, failures. What is compared is what a user
sees of two vec envs that were made with the same arguments, one here and one through a socket.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

import corral
from corral import errors
from tests.support import FAULTY, MODES, ODD, digest, sampled

IDS = [*corral.envs(), FAULTY, ODD, "testing/Nested-v0", "testing/Caller-v0", "testing/Chooser-v0"]
SERVED = ["CartPole-v1", *(id for id in IDS if id != "CartPole-v1")]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    path = tmp_path_factory.mktemp("served") / "socket"
    with corral.serve(SERVED, ["127.0.0.1:0", f"unix:{path}"]) as server:
        yield server


@pytest.fixture(params=["tcp", "unix", "shared"])
def connect(server: Any, request: pytest.FixtureRequest) -> Callable[..., Any]:
    """Connects by each way."""
    address = server.addresses[0 if request.param == "tcp" else 1]

    def connect(id: str, num_envs: int, config: Any = None, **more: Any) -> Any:
        shared = request.param == "shared"
        return corral.connect(address, num_envs, config, id=id, use_shared_memory=shared, **more)

    return connect


def over_tcp(server: Any, id: str, num_envs: int, config: Any = None, **more: Any) -> Any:
    return corral.connect(server.addresses[0], num_envs, config, id=id, **more)


def story(envs: Any, steps: int = 60, **reset: Any) -> list[Any]:
    """All that one sees of some steps."""
    seen = [digest(envs.reset(**reset))]
    ended = np.zeros(envs.num_envs, np.bool_)
    actions = sampled(envs, 0)
    for _ in range(steps):
        if envs.metadata["autoreset_mode"] is gymnasium.vector.AutoresetMode.DISABLED and any(
            ended
        ):
            seen.append(digest(envs.reset(options={"reset_mask": ended})))
        step = envs.step(next(actions))
        ended = step[2] | step[3]
        seen.append(digest(step))
    return seen


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("id", IDS)
def test_every_env_shows_the_same_in_every_autoreset_mode(server: Any, id: str, mode: str) -> None:
    if id == ODD and mode != "same_step":
        pytest.skip("it resets itself in the same step")
    options: dict[str, Any] = {"autoreset_mode": mode}
    if id != ODD:
        options |= {"seed": 7, "max_episode_steps": 9, "episode_statistics": False}
    here = corral.make_vec(id, 3, **options)
    there = over_tcp(server, id, 3, **options)
    assert there.single_observation_space == here.single_observation_space
    assert there.single_action_space == here.single_action_space
    assert there.metadata["autoreset_mode"] is here.metadata["autoreset_mode"]
    assert there.max_episode_steps == here.max_episode_steps
    assert there.native.id == here.native.id
    assert story(there, 25) == story(here, 25)
    there.close()
    here.close()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "id", ["CartPole-v1", "Maze-v0", "testing/Nested-v0", "testing/Chooser-v0"]
)
def test_every_way_shows_the_same(connect: Any, id: str, mode: str) -> None:
    """Twenty mazes show more than 64 KiB."""
    options: dict[str, Any] = {"autoreset_mode": mode, "max_episode_steps": 8}
    here, there = corral.make_vec(id, 20, **options), connect(id, 20, **options)
    for reset in ({"seed": 3}, {}, {"seed": [5, None] * 10}, {"options": {"index": 4}}):
        assert story(there, 20, **reset) == story(here, 20, **reset)
    there.close()


def test_statistics_and_a_time_limit_are_the_servers(server: Any) -> None:
    options: dict[str, Any] = {"seed": 1, "episode_statistics": True, "max_episode_steps": 5}
    there = over_tcp(server, "CartPole-v1", 4, autoreset_mode="same_step", **options)
    there.reset()
    seen = []
    for _ in range(12):
        *_, truncated, infos = there.step(np.zeros(4, np.int64))
        if "episode" in infos:
            seen.append(infos["episode"]["l"][truncated].tolist())
            assert "final_obs" in infos
    assert seen == [[5] * 4, [5] * 4]
    assert there.max_episode_steps == 5
    there.close()


def test_masks_keep_and_some_envs_step_alone(connect: Any) -> None:
    def play(envs: Any) -> list[Any]:
        seen = [envs.reset(seed=2), envs.step(np.arange(6) % 2)]
        seen.append(envs.reset(options={"reset_mask": np.arange(6) < 2}))
        seen.append(envs.reset(seed=[9] * 6, options={"reset_mask": np.arange(6) > 4}))
        envs.send(np.array([1, 0]), [4, 1])
        envs.send(np.array([0]), [0])
        seen += [envs.recv(min_rows=1, max_rows=1), envs.recv()]
        envs.send_reset([5, 2], options={"index": [70, 80]})
        envs.send(np.array([1, 1]), [3, 0])
        seen.append(envs.drain())
        return [digest(one) for one in seen]

    options: dict[str, Any] = {"autoreset_mode": "next_step"}
    there = connect("CartPole-v1", 6, **options)
    assert play(there) == play(corral.make_vec("CartPole-v1", 6, **options))
    there.close()


@pytest.mark.parametrize("mode", MODES)
def test_evaluation_by_indices_is_the_same(server: Any, mode: str) -> None:
    def policy(observations: Any) -> Any:
        return (observations[:, 2] > 0).astype(np.int64)

    here = corral.make_vec("CartPole-v1", 5, autoreset_mode=mode, max_episode_steps=40)
    there = over_tcp(server, "CartPole-v1", 5, autoreset_mode=mode, max_episode_steps=40)
    indices = [3, 17, 4, 4, 99, 1000, 2, 8]
    expected = corral.evaluate(policy, here, indices)
    told = corral.evaluate(policy, there, indices)
    assert digest([told.returns, told.lengths]) == digest([expected.returns, expected.lengths])
    there.close()


def test_states_go_from_here_to_there_and_back(server: Any) -> None:
    options: dict[str, Any] = {"autoreset_mode": "same_step", "seed": 5}
    here = corral.make_vec("CartPole-v1", 3, **options)
    there = over_tcp(server, "CartPole-v1", 3, **options)
    for envs in (here, there):
        envs.reset(seed=1)
        envs.step(np.array([0, 1, 1]))
    assert there.save_state() == here.save_state()
    assert there.save_state(1) == here.save_state(1)
    state, one = here.save_state(), here.save_state(1)
    there.reset(seed=50)
    there.load_state(state)
    assert digest(there.step(np.ones(3, np.int64))) == digest(here.step(np.ones(3, np.int64)))
    for envs in (here, there):
        envs.load_state(one, 2)
    assert story(there, 30, options={"reset_mask": np.array([True, False, False])}) == story(
        here, 30, options={"reset_mask": np.array([True, False, False])}
    )
    with pytest.raises(errors.StateError):
        there.load_state(state[:-1])
    with pytest.raises(errors.StateError):
        there.load_state(corral_state_of("Acrobot-v1"))
    assert digest(there.step(np.ones(3, np.int64))) == digest(here.step(np.ones(3, np.int64)))
    there.close()


def corral_state_of(id: str) -> bytes:
    envs = corral.make_vec(id, 3)
    envs.reset()
    return envs.save_state()


def test_options_of_a_reset_stay_in_force_and_bad_ones_change_nothing(server: Any) -> None:
    def play(envs: Any) -> list[Any]:
        seen = [envs.reset(seed=1, options={"low": -0.2, "high": -0.1})]
        with pytest.raises(errors.CorralError) as told:
            envs.reset(options={"no_such": 1})
        seen += [str(told.value), envs.reset(), envs.step(np.zeros(3, np.int64))]
        return [digest(one) for one in seen]

    there = over_tcp(server, "CartPole-v1", 3, autoreset_mode="next_step")
    assert play(there) == play(corral.make_vec("CartPole-v1", 3))
    there.close()


def test_frames_and_calls_and_properties(server: Any) -> None:
    here = corral.make_vec("CartPole-v1", 2, render_mode="rgb_array")
    there = over_tcp(server, "CartPole-v1", 2, render_mode="rgb_array", autoreset_mode="next_step")
    for envs in (here, there):
        envs.reset(seed=4)
    assert digest(there.render()) == digest(here.render())
    there.close()
    here, there = (
        corral.make_vec("testing/Caller-v0", 2),
        over_tcp(server, "testing/Caller-v0", 2, autoreset_mode="next_step"),
    )
    names = here.native.call("", (), {}, kind="list")
    assert there.native.call("", (), {}, kind="list") == names
    for envs in (here, there):
        envs.reset(seed=4)
    for name, writable in names[0].items():
        assert digest(there.get_attr(name)) == digest(here.get_attr(name))
        if not writable:
            with pytest.raises(errors.UnsupportedError, match="can be read, not set"):
                there.set_attr(name, 1)
    with pytest.raises(errors.UnknownNameError):
        there.call("no_such")
    there.close()


@pytest.mark.parametrize("fault", ["panic_in_step", "error_in_step"])
def test_an_env_that_fails_is_named_and_the_connection_goes_on(server: Any, fault: str) -> None:
    config: dict[str, Any] = {"fault": fault, "of_seed": 11}

    def play(envs: Any) -> list[Any]:
        seen = [envs.reset(seed=10)]
        envs.action_space.seed(1)
        for _ in range(2):
            seen.append(envs.step(envs.action_space.sample()))
        with pytest.raises(errors.EnvError) as told:
            envs.step(envs.action_space.sample())
        [failure] = told.value.failures
        seen += [str(failure), failure.slot, told.value.batch]
        with pytest.raises(errors.ResetNeededError):
            envs.step(envs.action_space.sample())
        seen += [envs.reset(options={"reset_mask": np.array([False, True, False])})]
        seen += [envs.step(envs.action_space.sample())]
        return [digest(one) for one in seen]

    here = corral.make_vec(FAULTY, 3, **config)
    there = over_tcp(server, FAULTY, 3, config, autoreset_mode="next_step")
    assert play(there) == play(here)
    there.close()


@pytest.mark.parametrize("policy", ["restart", "mask"])
def test_a_policy_deals_with_failures_of_served_envs_as_of_others(server: Any, policy: str) -> None:
    config: dict[str, Any] = {"fault": "panic_in_step", "of_seed": 11}
    options: dict[str, Any] = {"autoreset_mode": "next_step", "on_failure": policy, "seed": 10}
    here = corral.make_vec(FAULTY, 3, **config, **options)
    there = over_tcp(server, FAULTY, 3, config, **options)
    assert story(there, 12) == story(here, 12)
    there.close()


def test_layers_of_the_client_lie_over_served_envs(server: Any) -> None:
    options: dict[str, Any] = {
        "autoreset_mode": "same_step",
        "seed": 3,
        "frame_stack": 3,
        "normalize_observation": True,
        "normalize_reward": True,
    }
    there = over_tcp(server, "CartPole-v1", 4, **options)
    assert story(there) == story(corral.make_vec("CartPole-v1", 4, **options))
    there.close()


def test_layers_of_the_server_travel_with_their_statistics() -> None:
    options: dict[str, Any] = {
        "seed": 3,
        "normalize_observation": True,
        "autoreset_mode": "same_step",
    }

    def make(num_envs: int) -> Any:
        return corral.make_vec("CartPole-v1", num_envs, **options)

    here = make(2)
    with corral.serve(make, "127.0.0.1:0") as server:
        there = corral.connect(server.address, 2)
        for envs in (here, there):
            envs.reset()
            envs.step(np.array([0, 1]))
        state = here.save_state()
        assert there.save_state() == state
        there.step(np.array([1, 1]))
        there.load_state(state)
        assert digest(there.step(np.array([1, 0]))) == digest(here.step(np.array([1, 0])))
        there.close()


def test_what_a_client_may_choose_and_what_not(server: Any) -> None:
    with pytest.raises(
        errors.UnknownEnvError, match="no envs called 'Nothing-v0', but CartPole-v1"
    ):
        over_tcp(server, "Nothing-v0", 2)
    with pytest.raises(errors.UnknownOptionError, match="no_such"):
        over_tcp(server, "CartPole-v1", 2, {"no_such": 1})
    with pytest.raises(errors.UnsupportedError, match="record"):
        over_tcp(server, "CartPole-v1", 2, {"record": "/tmp/x"})
    with pytest.raises(errors.UnsupportedError, match="takes no num_threads"):
        over_tcp(server, "CartPole-v1", 2, num_threads=3)
    envs = corral.connect(server.address, 2)
    assert (envs.native.id, envs.native.autoreset_mode) == ("CartPole-v1", "same_step")
    envs.close()


def test_envs_of_a_function_have_their_own_mode_and_seeds() -> None:
    def make(num_envs: int) -> Any:
        return corral.make_vec("CartPole-v1", num_envs, seed=3, autoreset_mode="disabled")

    here = make(3)
    with corral.serve({"mine": make, "Maze-v0": "Maze-v0"}, "127.0.0.1:0") as server:
        there = corral.connect(server.address, 3, id="mine")
        assert there.native.autoreset_mode == "disabled"
        assert story(there) == story(here)
        there.close()
        with pytest.raises(errors.UnsupportedError, match="made in 'disabled'"):
            corral.connect(server.address, 3, autoreset_mode="next_step")
        with pytest.raises(errors.UnsupportedError, match="give seeds to reset"):
            corral.connect(server.address, 3, seed=1)
        with pytest.raises(errors.UnsupportedError, match="max_episode_steps"):
            corral.connect(server.address, 3, max_episode_steps=4)
        corral.connect(server.address, 3, id="Maze-v0", seed=1).close()


class Talking(gymnasium.Env[Any, Any]):
    """An env of Python's, whose infos and calls are objects, and one of them no plain value."""

    observation_space = spaces.Dict(
        {"text": spaces.Text(20), "many": spaces.Sequence(spaces.Box(-1, 1, (2,), np.float32))}
    )
    action_space = spaces.Text(5, min_length=0)

    def __init__(self) -> None:
        self.word = ""

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.word = ""
        return self.shown(), {
            "options": options or {},
            "raw": b"ab",
            "deep": {"a": [1, (2.5, "x")]},
        }

    def step(self, action: Any) -> Any:
        if action == "boom":
            raise RuntimeError("boom it went")
        self.word += action
        infos = {"object": object()} if action == "bad" else {"n": np.float32(1.5)}
        return self.shown(), float(len(self.word)), False, len(self.word) > 8, infos

    def shown(self) -> Any:
        length = len(self.word)
        drawn = self.np_random.random((length % 3, 2)).astype(np.float32)
        return {"text": self.word, "many": tuple(drawn)}

    def said(self, times: int = 1, *, end: str = "") -> Any:
        return self.word * times + end

    def itself(self) -> Any:
        return self


def test_envs_of_python_are_served_and_nothing_is_pickled(tmp_path: Path) -> None:
    def make(num_envs: int) -> Any:
        return corral.from_gymnasium([Talking] * num_envs, autoreset_mode="next_step")

    with corral.serve(make, f"unix:{tmp_path / 'socket'}") as server:
        there = corral.connect(server.address, 2)
        observations, infos = there.reset(seed=1, options={"a": [1, "b"]})
        assert list(observations["text"]) == ["", ""]
        assert infos["options"]["a"][0] == [1, "b"]
        assert np.asarray(infos["raw"][0]).tolist() == [97, 98]
        assert infos["deep"]["a"][1] == [1, [2.5, "x"]]
        observations, rewards, *_, infos = there.step(("ab", "c"))
        assert list(observations["text"]) == ["ab", "c"]
        assert rewards.tolist() == [2, 1]
        assert [len(many) for many in observations["many"]] == [2, 1]
        assert infos["n"][0] == np.float32(1.5)
        assert there.call("said", 2, end="!") == ("abab!", "cc!")
        with pytest.raises(errors.CorralError, match="plain values"):
            there.call("itself")
        with pytest.raises(errors.UnknownNameError, match="begins with '_'"):
            there.call("__class__")
        with pytest.raises(errors.EnvError, match=r"env 1 failed in step: .*boom it went"):
            there.step(("a", "boom"))
        there.reset(options={"reset_mask": np.array([False, True])})
        with pytest.raises(errors.EnvError, match=r"env 0 .*info 'object'.*plain values"):
            there.step(("bad", "c"))
        with pytest.raises(errors.UnsupportedError, match="cannot save"):
            there.save_state()
        there.close()
