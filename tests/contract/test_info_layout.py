"""`info_layout="gymnasium-0.29"`: what Gymnasium 0.29 itself put into the infos."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import corral
from corral import errors
from tests.abi import venvs
from tests.abi.libenv import load
from tests.contract.layout_029 import Chatty, N, account

OLD: dict[str, Any] = {"info_layout": "gymnasium-0.29", "episode_statistics": True}
STEPS = 120


def oracle(env: str, **options: Any) -> Any:
    module = "tests.contract.layout_029"
    return venvs.ask("gymnasium029", module, {"env": env, "steps": STEPS, "options": options})


def chatty(**options: Any) -> corral.VectorEnv:
    makers = [lambda k=k: Chatty(k) for k in range(N)]
    return corral.from_gymnasium(makers, **OLD, **options)


def ended(shown: list[Any]) -> int:
    return sum("final_info" in infos for infos in shown)


@pytest.mark.parametrize("id", ["CartPole-v1", "MountainCar-v0"])
@pytest.mark.parametrize("how", [{}, {"num_threads": 2}, {"timeout": 60}])
def test_built_in_envs_tell_what_gymnasiums_told(id: str, how: dict[str, Any]) -> None:
    shown = account(corral.make_vec(id, N, **OLD, **how, max_episode_steps=None), STEPS)
    expected = oracle(id)
    assert json.loads(json.dumps(shown)) == expected
    assert id == "MountainCar-v0" or ended(expected) > 5


def test_numbers_of_built_in_envs_have_the_types_of_pythons_numbers() -> None:
    """FrozenLake tells a probability, which is an int at resets in Gymnasium 0.29."""
    envs = corral.make_vec("FrozenLake-v1", N, is_slippery=False, **OLD)
    shown = json.loads(json.dumps(account(envs, STEPS)))
    expected = oracle("FrozenLake-v1", is_slippery=False)
    assert ended(expected) > 5
    for ours, theirs in zip(shown, expected, strict=True):
        for infos in (ours, theirs):
            infos["prob"][0] = "any"
            for info in infos.get("final_info", ["objects", []])[1]:
                if isinstance(info, dict):
                    assert info["prob"][0] in ("float", "float64")
                    info["prob"][0] = "any"
        assert ours == theirs


@pytest.mark.parametrize("runner", ["serial", "process"])
def test_python_envs_tell_what_gymnasiums_told(runner: str) -> None:
    expected = oracle("chatty")
    assert ended(expected) > 20
    with chatty(runner=runner) as envs:
        assert json.loads(json.dumps(account(envs, STEPS))) == expected


def test_declared_arrays_are_an_object_for_each_env() -> None:
    envs = corral.make_vec("Maze-v0", 2, info_layout="gymnasium-0.29", max_episode_steps=3)
    single = corral.make("Maze-v0", max_episode_steps=3)
    _, infos = envs.reset(seed=4)
    _, info = single.reset(seed=4)
    for name, value in info.items():
        np.testing.assert_array_equal(infos[name][0], value)
        assert infos[f"_{name}"].tolist() == [True, True]
    assert infos["position"].dtype == object
    assert infos["distance"].dtype == np.int64
    for _ in range(3):
        *_, infos = envs.step(np.zeros(2, np.int64))
        *_, info = single.step(0)
    assert repr(infos["final_info"][0]) == repr(info)
    assert infos["position"].dtype == object


def test_it_implies_same_step_and_goes_with_no_other_mode() -> None:
    envs = corral.make_vec("CartPole-v1", 2, info_layout="gymnasium-0.29")
    assert envs.metadata["autoreset_mode"].value == "SameStep"
    for mode in ("next_step", "disabled"):
        with pytest.raises(errors.ArgumentError, match=f"\"same_step\".*not with '{mode}'"):
            corral.make_vec("CartPole-v1", 2, info_layout="gymnasium-0.29", autoreset_mode=mode)
    with pytest.raises(errors.ArgumentError, match=r"or 'gymnasium-0\.29', not '0\.29'"):
        corral.make_vec("CartPole-v1", 2, info_layout="0.29")


def test_a_server_is_asked_for_the_mode_that_it_implies() -> None:
    with corral.serve("CartPole-v1", ("127.0.0.1", 0)) as server:
        shown = account(corral.connect(server.address, N, **OLD), STEPS)
    assert shown == account(corral.make_vec("CartPole-v1", N, **OLD), STEPS)
    assert ended(shown) > 5


def test_recv_and_stacks_of_frames_have_it_too() -> None:
    usual = {"frame_stack": 2, "seed": 0, "episode_statistics": True}
    stacked = corral.make_vec("CartPole-v1", 3, autoreset_mode="same_step", **usual)
    old = corral.make_vec("CartPole-v1", 3, info_layout="gymnasium-0.29", **usual)
    lazy = corral.make_vec(
        "CartPole-v1", 3, info_layout="gymnasium-0.29", lazy_frames=True, **usual
    )
    for envs in (stacked, old, lazy):
        envs.reset()
    count = 0
    for _ in range(60):
        actions = np.zeros(3, np.int64)
        *_, expected = stacked.step(actions)
        old.send(actions)
        *_, sent = old.recv()
        *_, drawn = lazy.step(actions)
        for infos in (sent, drawn):
            assert ("final_observation" in infos) == ("final_obs" in expected)
            if "final_obs" in expected:
                count += 1
                mask = expected["_final_obs"]
                np.testing.assert_array_equal(infos["_final_observation"], mask)
                for row in np.flatnonzero(mask):
                    np.testing.assert_array_equal(
                        infos["final_observation"][row], expected["final_obs"][row]
                    )
                    assert infos["final_info"][row]["episode"]["r"] == expected["episode"]["r"][row]
    assert count > 5


@pytest.mark.parametrize(
    "refuse",
    [
        lambda envs, _: corral.to_gym3(envs),
        lambda envs, _: corral.to_sb3(envs),
        lambda envs, folder: corral.record(envs, folder),
    ],
    ids=["to_gym3", "to_sb3", "record"],
)
def test_what_reads_infos_in_the_usual_layout_refuses_it(
    refuse: Callable[..., Any], tmp_path: Any
) -> None:
    envs = corral.make_vec(
        "CartPole-v1", 2, info_layout="gymnasium-0.29", render_mode="rgb_array", final_frames=[0]
    )
    with pytest.raises(errors.UnsupportedError, match="info_layout"):
        refuse(envs, tmp_path)


def test_envs_without_final_observations_refuse_it() -> None:
    load(autoreset_mode="same_step").close()
    with pytest.raises(errors.UnsupportedError, match="shows no final observations"):
        load(info_layout="gymnasium-0.29")
