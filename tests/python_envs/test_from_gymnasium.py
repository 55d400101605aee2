"""What `from_gymnasium` promises beyond Gymnasium's own classes."""

from __future__ import annotations

import functools
import pathlib
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

import corral
from corral import errors
from tests.python_envs.drawn import Broken, Buffered, Drawn, Old
from tests.python_envs.support import assert_same, fns, play
from tests.support import MODES

RUNNERS: dict[str, dict[str, Any]] = {
    "serial": {"runner": "serial"},
    "thread": {"runner": "thread", "num_threads": 2},
    "process": {"runner": "process", "num_workers": 2, "context": "forkserver"},
}


@pytest.fixture(params=RUNNERS)
def runner(request: pytest.FixtureRequest) -> dict[str, Any]:
    return RUNNERS[request.param]


def single_run(seed: int, actions: list[Any], env: Any = None) -> list[Any]:
    """What a lone env gives: (observation, reward) of each step."""
    env = env or Drawn(length=99)
    told = [(env.reset(seed=seed)[0], 0.0)]
    told += [env.step(action)[:2] for action in actions]
    return told


def reset_and_step(envs: Any, steps: int) -> None:
    envs.reset(seed=0)
    for _ in range(steps):
        envs.step(envs.action_space.sample())


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("space", ["box", "nested"])
@pytest.mark.parametrize("how", ["thread", "process"])
def test_every_runner_gives_the_same_bytes(how: str, mode: str, space: str) -> None:
    def run(**runner: Any) -> list[Any]:
        envs = corral.from_gymnasium(
            fns((3, 4, 5, 6), space=space, infos="numpy"), autoreset_mode=mode, **runner
        )
        told = play(envs, 14, mask=mode == "disabled")
        envs.close()
        return told

    assert_same(run(**RUNNERS[how]), run(**RUNNERS["serial"]))


def test_index_ix_is_the_episode_of_seed_ix(runner: dict[str, Any]) -> None:
    envs = corral.from_gymnasium(functools.partial(Drawn, length=99), 3, **runner)
    envs.reset(seed=50)
    observations, _ = envs.reset(options={"index": [7, 9, 7]})
    for _ in range(3):
        rewards = envs.step(np.ones(3, np.int64))[1]
    for row, seed in enumerate([7, 9, 7]):
        expected = single_run(seed, [np.int64(1)] * 3)
        assert (observations[row] == expected[0][0]).all()
        assert rewards[row] == expected[-1][1]
    envs.close()


def test_an_indexed_episode_does_not_disturb_the_envs_own_generator(runner: dict[str, Any]) -> None:
    def own_after(indices: list[int | None]) -> list[Any]:
        envs = corral.from_gymnasium(functools.partial(Drawn, length=99), 1, **runner)
        told = [envs.reset(seed=3)[0], envs.step(np.ones(1, np.int64))[0]]
        for index in indices:
            envs.reset(options={"index": index})
            envs.step(np.ones(1, np.int64))
        told += [envs.reset()[0], envs.step(np.ones(1, np.int64))[0]]
        seed = envs.get_attr("np_random_seed")
        envs.close()
        return [*told, seed]

    plain = own_after([])
    assert_same(own_after([8]), plain)
    assert_same(own_after([8, 2]), plain)


def test_a_seed_at_the_construction_makes_runs_the_same(runner: dict[str, Any]) -> None:
    def run(seed: int) -> list[Any]:
        envs = corral.from_gymnasium(functools.partial(Drawn, length=2), 3, seed=seed, **runner)
        envs.action_space.seed(0)
        told = [envs.reset(), *(envs.step(envs.action_space.sample()) for _ in range(5))]
        envs.close()
        return told

    first = run(5)
    assert_same(run(5), first)
    assert not (run(6)[0][0] == first[0][0]).all()
    assert len(np.unique(first[0][0], axis=0)) == 3


def test_options_reach_just_the_resets_that_have_them(runner: dict[str, Any]) -> None:
    envs = corral.from_gymnasium(functools.partial(Drawn, length=1), 2, **runner)
    envs.reset(seed=1, options={"level": 2})
    envs.step(np.zeros(2, np.int64))
    envs.step(np.zeros(2, np.int64))
    envs.reset(options={"reset_mask": np.array([False, True]), "level": (3,)})
    envs.reset(options={"index": 4, "level": None})
    envs.reset()
    first, second = envs.call("history")
    assert first == [(1, {"level": 2}), (None, None), (4, {"level": None}), (None, None)]
    masked = (None, {"level": (3,)})
    assert second == [(2, {"level": 2}), (None, None), masked, (5, {"level": None}), (None, None)]
    envs.close()


def test_old_envs_of_four_values_play_too(runner: dict[str, Any]) -> None:
    envs = corral.from_gymnasium([Old, functools.partial(Old, cut=False)], **runner)
    observations, infos = envs.reset(seed=6)
    for row in range(2):
        expected = np.random.default_rng(6 + row).uniform(-1, 1, 2).astype(np.float32)
        assert (observations[row] == expected).all()
    assert infos == {}
    for _ in range(3):
        _, rewards, terminations, truncations, infos = envs.step(np.zeros(2, np.int64))
    assert rewards.tolist() == [1, 1]
    assert terminations.tolist() == [False, True]
    assert truncations.tolist() == [True, False]
    assert infos["TimeLimit.truncated"].tolist() == [True, False]
    envs.close()


Wrong = Callable[..., Any]
OBSERVATIONS: dict[str, tuple[Any, list[str]]] = {
    "shape": (np.zeros(3, np.float32), ["shape (3,)", "(4,)"]),
    "dtype": (np.zeros(4, complex), ["dtype complex128", "float32"]),
    "nan": (np.full(4, np.nan, np.float32), ["NaN", "check_nan=False"]),
    "none": (None, ["NoneType", "(4,)"]),
}


@pytest.mark.parametrize("what", OBSERVATIONS)
@pytest.mark.parametrize("where", ["reset", "step"])
def test_a_wrong_observation_is_named(runner: dict[str, Any], where: str, what: str) -> None:
    bad, words = OBSERVATIONS[what]
    broken = functools.partial(Broken, where, lambda _, *rest: (bad, *rest), length=9)
    envs = corral.from_gymnasium([functools.partial(Drawn, length=9), broken], **runner)
    with pytest.raises(errors.EnvError) as raised:
        reset_and_step(envs, 3)
    for word in ["env 1", "seed 1", *words]:
        assert word in str(raised.value)
    failure = raised.value.failures[0]
    assert (failure.slot, failure.phase) == (1, where)
    assert raised.value.batch[0].shape == (2, 4)
    envs.close()


def test_a_wrong_leaf_is_named(runner: dict[str, Any]) -> None:
    def spoil(observation: Any, *rest: Any) -> Any:
        return {**observation, "outer": {**observation["outer"], "x": np.zeros(5)}}, *rest

    def lack(observation: Any, *rest: Any) -> Any:
        return {"outer": observation["outer"], "word": "a"}, *rest

    for change, words in [(spoil, ["'outer.x'", "(5,)", "(2,)"]), (lack, ["key mark"])]:
        broken = functools.partial(Broken, "step", change, space="nested")
        envs = corral.from_gymnasium(broken, 2, **runner)
        with pytest.raises(errors.EnvError) as raised:
            reset_and_step(envs, 2)
        assert all(word in str(raised.value) for word in words), str(raised.value)
        envs.close()


STEPS: dict[str, tuple[Wrong, type[Exception], str]] = {
    "three values": (lambda *all: all[:3], errors.EnvError, "tuple of 3"),
    "a list": (lambda *all: list(all), errors.EnvError, "tuple of 5"),
    "reward nan": (lambda o, r, *rest: (o, np.nan, *rest), errors.EnvError, "reward is NaN"),
    "reward none": (
        lambda o, r, *rest: (o, None, *rest),
        errors.EnvError,
        "reward is None, a NoneType",
    ),
    "info": (lambda o, r, t, u, i: (o, r, t, u, [1]), TypeError, "the info is a list"),
}


@pytest.mark.parametrize("what", STEPS)
def test_a_step_that_returns_something_else_is_named(runner: dict[str, Any], what: str) -> None:
    change, kind, words = STEPS[what]
    envs = corral.from_gymnasium(functools.partial(Broken, "step", change, at=1), 2, **runner)
    envs.reset(seed=0)
    with pytest.raises(kind, match=words):
        envs.step(np.zeros(2, np.int64))
    envs.close()


def test_nan_passes_where_it_is_not_looked_for(runner: dict[str, Any]) -> None:
    def spoil(_: Any, __: Any, *rest: Any) -> Any:
        return np.full(4, np.nan, np.float32), np.nan, *rest

    broken = functools.partial(Broken, "step", spoil, at=1)
    envs = corral.from_gymnasium(broken, 2, check_nan=False, **runner)
    envs.reset(seed=0)
    observations, rewards, *_ = envs.step(np.zeros(2, np.int64))
    assert np.isnan(observations).all()
    assert np.isnan(rewards).all()
    envs.close()


def test_an_env_that_fills_one_array_again_and_again_spoils_nothing(runner: dict[str, Any]) -> None:
    envs = corral.from_gymnasium(
        functools.partial(Buffered, length=2), 2, autoreset_mode="same_step", **runner
    )
    first, _ = envs.reset(seed=0)
    second, *_, told = envs.step(np.zeros(2, np.int64))
    third, *_, infos = envs.step(np.zeros(2, np.int64))
    assert [first[0, 0], second[0, 0], third[0, 0]] == [0, 1, 0]
    assert infos["final_obs"][0].tolist() == [2] * 4
    assert told["told"].tolist() == [[1, 1]] * 2
    assert infos["final_info"]["told"].tolist() == [[2, 2]] * 2
    envs.close()


def test_send_and_recv_give_each_env_what_step_would(runner: dict[str, Any]) -> None:
    if runner["runner"] == "serial":
        pytest.skip("a single thread has them all at once")
    envs = corral.from_gymnasium(functools.partial(Drawn, length=99), 6, batch_size=2, **runner)
    envs.async_reset(seed=10)
    rewards: dict[int, list[float]] = {env: [] for env in range(6)}
    while min(map(len, rewards.values())) < 4:
        _, given, _, _, infos = envs.recv()
        assert len(given) == 2
        for env, reward in zip(infos["env_id"], given, strict=True):
            rewards[int(env)].append(float(reward))
        envs.send(np.full(2, 2), infos["env_id"])
    for env, given in rewards.items():
        expected = [reward for _, reward in single_run(10 + env, [np.int64(2)] * (len(given) - 1))]
        assert given == expected
    envs.drain()
    envs.close()


def test_an_env_that_fails_is_made_anew_where_asked(runner: dict[str, Any]) -> None:
    broken = functools.partial(Broken, "step", ValueError("lost"), length=9)
    makers = [functools.partial(Drawn, length=9), broken]
    envs = corral.from_gymnasium(makers, on_failure="restart", **runner)
    envs.reset(seed=0)
    envs.step(np.zeros(2, np.int64))
    _, rewards, terminations, truncations, infos = envs.step(np.zeros(2, np.int64))
    assert rewards[0] > 0
    assert terminations.tolist() == [False, False]
    assert truncations.tolist() == [False, True]
    envs.step(np.zeros(2, np.int64))
    assert envs.get_attr("time")[1] in (0, 1)
    assert infos
    envs.close()


def test_an_env_that_fails_is_masked_where_asked(runner: dict[str, Any]) -> None:
    broken = functools.partial(Broken, "step", ValueError("lost"), length=9)
    makers = [functools.partial(Drawn, length=9), broken]
    envs = corral.from_gymnasium(makers, on_failure="mask", **runner)
    envs.reset(seed=0)
    told = [envs.step(np.ones(2, np.int64)) for _ in range(4)]
    assert all(step[1][0] > 0 for step in told)
    assert told[3][1][1] == 0
    envs.close()


def test_frames_of_images_are_stacked(runner: dict[str, Any]) -> None:
    image = functools.partial(Drawn, "image", length=9)
    envs = corral.from_gymnasium(image, 2, frame_stack=3, **runner)
    assert envs.single_observation_space == spaces.Box(0, 255, (3, 5, 4, 3), np.uint8)
    first, _ = envs.reset(seed=0)
    second, *_ = envs.step(np.zeros(2, np.int64))
    expected = single_run(0, [0], Drawn("image", length=9))
    assert (first[0] == expected[0][0]).all()
    assert (second[0, :2] == expected[0][0]).all()
    assert (second[0, 2] == expected[1][0]).all()
    envs.close()


def test_an_id_is_made_with_its_arguments(runner: dict[str, Any]) -> None:
    envs = corral.from_gymnasium("Pendulum-v1", 2, g=1.5, **runner)
    assert envs.get_attr("g") == (1.5, 1.5)
    observations, _ = envs.reset(seed=3)
    expected, _ = gymnasium.make("Pendulum-v1").reset(seed=3)
    assert (observations[0] == expected).all()
    envs.close()


def test_chosen_envs_are_rendered(runner: dict[str, Any]) -> None:
    envs = corral.from_gymnasium(fns(render_mode="rgb_array"), **runner)
    envs.reset(seed=0)
    envs.step(np.zeros(3, np.int64))
    assert len(envs.render()) == 3
    (frame,) = envs.render([1])
    assert (frame == 1).all()
    envs.close()


def test_a_time_limit_truncates_and_statistics_are_kept(runner: dict[str, Any]) -> None:
    envs = corral.from_gymnasium(
        functools.partial(Drawn, length=9),
        2,
        max_episode_steps=3,
        episode_statistics=True,
        **runner,
    )
    envs.reset(seed=0)
    rewards = np.zeros(2)
    for _ in range(3):
        _, reward, terminations, truncations, infos = envs.step(np.ones(2, np.int64))
        rewards += reward
    assert not terminations.any()
    assert truncations.all()
    assert infos["episode"]["l"].tolist() == [3, 3]
    np.testing.assert_allclose(infos["episode"]["r"], rewards, rtol=1e-6)
    envs.close()


def test_any_number_of_calls_may_come_between_two_steps(runner: dict[str, Any]) -> None:
    envs = corral.from_gymnasium(functools.partial(Drawn, length=9), 2, **runner)
    envs.reset(seed=0)
    for n in range(50):
        envs.set_attr("level", n)
        assert envs.get_attr("level") == (n, n)
    assert envs.step(np.zeros(2, np.int64))[1].all()
    envs.close()


def test_a_dict_in_another_order_than_its_space_arrives(runner: dict[str, Any]) -> None:
    def turn(observation: Any, *rest: Any) -> Any:
        return dict(reversed(observation.items())), *rest

    envs = corral.from_gymnasium(
        functools.partial(Broken, "step", turn, at=1, space="dict", length=9), 2, **runner
    )
    envs.reset(seed=0)
    observations, *_ = envs.step(np.zeros(2, np.int64))
    expected = single_run(0, [0], Drawn("dict", length=9))[1][0]
    assert list(observations) == list(envs.single_observation_space)
    assert (observations["b"][0] == expected["b"]).all()
    envs.close()


def test_an_id_that_only_this_program_registers_is_known_in_workers(
    tmp_path: pathlib.Path,
) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import corral, gymnasium\n"
        "from gymnasium.envs.classic_control import CartPoleEnv\n"
        "class Mine(CartPoleEnv):\n"
        "    pass\n"
        "gymnasium.register('Class-v0', entry_point=Mine, max_episode_steps=7)\n"
        "gymnasium.register('Text-v0', entry_point='__main__:Mine', max_episode_steps=7)\n"
        "for id in ('Class-v0', 'Text-v0'):\n"
        "    envs = corral.from_gymnasium(id, 2, num_workers=1)\n"
        "    print(envs.reset(seed=0)[0].shape, envs.spec.id)\n"
        "    envs.close()\n"
    )
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, check=False)
    assert done.stdout == "(2, 4) Class-v0\n(2, 4) Text-v0\n", done.stderr
