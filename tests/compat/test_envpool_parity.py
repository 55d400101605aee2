"""corral.compat.envpool answers as EnvPool does: both are asked the same, in one process."""

from __future__ import annotations

from typing import Any

import pytest

from tests.abi import venvs

# Infos that EnvPool has for its Atari envs alone, and here all envs have.
OF_ALL_ENVS = ("reward", "terminated")


@pytest.fixture(scope="module")
def account() -> Any:
    return venvs.ask("envpool", "tests.compat.envpool_account", {"is_before_gym_0_26": False})


def without(names: tuple[str, ...], answer: Any) -> Any:
    """An answer without those infos. `""` is a named tuple's name; its fields are no infos."""
    if isinstance(answer, dict):
        kept = [name for name in answer if name not in names or ("" in answer and name != "prob")]
        return {name: without(names, answer[name]) for name in kept}
    if isinstance(answer, list):
        return [without(names, one) for one in answer]
    return answer


CONTROL = ("CartPole-v1", "MountainCar-v0", "Pendulum-v1", "MountainCarContinuous-v0")
LIMITED = ("CartPole-v1", "Pendulum-v1", "MountainCarContinuous-v0")


@pytest.mark.parametrize(
    "question",
    [
        *(f"shapes of {task}" for task in CONTROL),
        *(f"dm: shapes of {task}" for task in CONTROL),
        *(f"ends of {task}" for task in LIMITED),
        *(
            "mixed",
            "cliff",
            "dm: cliff",
            "some",
            "some never reset",
            "in flight",
            "dm: in flight",
            "asked",
        ),
    ],
)
def test_it_answers_as_envpool(account, question):
    theirs, ours = account["theirs"][question], account["ours"][question]
    assert without(OF_ALL_ENVS, ours) == theirs


def test_all_envs_tell_what_envpool_tells_of_atari(account):
    infos = account["ours"]["shapes of CartPole-v1"]["step"][-1]
    theirs = account["theirs"]["shapes of CartPole-v1"]["step"][-1]
    assert {name: infos[name] for name in infos.keys() - theirs.keys()} == {
        "reward": ["float32", [3]],
        "terminated": ["int32", [3]],
    }


@pytest.mark.parametrize("kind", ["shapes of", "dm: shapes of"])
def test_labels_and_the_envs_own_infos(account, kind):
    """Gymnasium's FrozenLake tells `prob`, and EnvPool's does not."""
    theirs, ours = (account[who][f"{kind} FrozenLake-v1"] for who in ("theirs", "ours"))
    told = without((*OF_ALL_ENVS, "prob"), ours)
    if "fields" in told:
        told["fields"].remove("prob")
    assert told == theirs


@pytest.mark.parametrize("task", LIMITED)
def test_a_truncated_episode_has_dm_envs_discount(account, task):
    theirs, ours = (account[who][f"dm: ends of {task}"] for who in ("theirs", "ours"))
    assert theirs.pop("discounts") == [[0, 0] if k % 6 == 4 else [1, 1] for k in range(13)]
    assert ours.pop("discounts") == [[1, 1]] * 13
    assert ours == theirs


def test_an_episode_that_terminates_at_its_limit_is_both(account):
    assert account["theirs"]["a goal at the limit"] == [[False], [True]]
    assert account["ours"]["a goal at the limit"] == [[True], [True]]


@pytest.mark.thorough
def test_it_answers_as_envpool_before_1_0_under_gym_before_0_26():
    request = {"is_before_gym_0_26": True}
    account = venvs.ask("envpool-0.8", "tests.compat.envpool_account", request)
    assert without(OF_ALL_ENVS, account["ours"]) == account["theirs"]
