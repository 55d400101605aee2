"""Action masks of envs in Rust: told in every row, taken by samples and policies, held to."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest

import corral
from corral import errors, spaces
from tests.support import MODES

CHOOSER = "testing/Chooser-v0"
N = 4
RUNNERS: dict[str, dict[str, Any]] = {
    "serial": {"num_threads": 1},
    "threads": {"num_threads": 2},
    "batches": {"batch_size": 2},
    "restart": {"on_failure": "restart"},
    "layers": {"normalize_reward": True, "frame_stack": 2},
}
each_runner = pytest.mark.parametrize("how", RUNNERS.values(), ids=RUNNERS)
each_mode = pytest.mark.parametrize("mode", MODES)


def forbidding(*forbidden: int) -> list[list[int]]:
    return [[int(choice != one) for choice in range(3)] for one in forbidden]


def sent(envs: corral.VectorEnv, actions: Any) -> Any:
    envs.send(actions)
    batch = envs.drain()
    assert batch is not None
    return batch


def masked_reset(envs: corral.VectorEnv, **how: Any) -> dict[str, Any]:
    envs.send_reset(**how)
    batch = envs.drain()
    assert batch is not None
    return batch[4]


@each_runner
@each_mode
def test_every_row_that_shows_an_observation_tells_its_mask(how: Any, mode: str) -> None:
    envs = corral.make_vec(CHOOSER, N, autoreset_mode=mode, **how)
    infos = masked_reset(envs, options={"index": 0})
    assert infos["action_mask"].dtype == np.int8
    assert infos["action_mask"].tolist() == forbidding(0, 1, 2, 0)
    assert infos["_action_mask"].all()
    for step, action in enumerate((1, 2, 1, 2)):
        # Slot 1 plays what is forbidden at first: its episode ends there.
        _, _, terminated, _, infos = sent(envs, np.array([action, 1, action, action]))
        assert infos["_action_mask"].all()
        if step < 3 or mode != "same_step":
            assert infos["action_mask"][0].tolist() == forbidding(action)[0]
        if mode == "disabled":
            break
    if mode == "same_step":
        # The last step's own mask is that of the episode that it ended.
        assert terminated[0]
        assert infos["final_info"]["action_mask"][0].tolist() == forbidding(2)[0]
    if "batch_size" not in how:
        mask = np.array([True, False, False, False])
        kept = envs.reset(options={"reset_mask": mask, "index": 2})[1]["action_mask"]
        assert kept[0].tolist() == forbidding(2)[0]
        if mode != "disabled":
            assert kept[1:].tolist() == infos["action_mask"][1:].tolist()


@each_mode
def test_gymnasiums_samples_take_the_masks(mode: str) -> None:
    envs = corral.make_vec(CHOOSER, N, autoreset_mode=mode, check_actions="masked")
    envs.action_space.seed(0)
    envs.single_action_space.seed(0)
    assert isinstance(envs.action_space, gymnasium.spaces.MultiDiscrete)
    _, infos = envs.reset(seed=0)
    total = 0.0
    for _ in range(50):
        alone = [envs.single_action_space.sample(mask) for mask in infos["action_mask"]]
        assert all(mask[choice] for mask, choice in zip(infos["action_mask"], alone, strict=True))
        actions = envs.action_space.sample(mask=tuple(infos["action_mask"]))
        _, rewards, terminated, _, infos = envs.step(actions)
        total += rewards.min()
        if mode == "disabled" and terminated.any():
            infos = envs.reset(options={"reset_mask": terminated})[1]
    assert total >= 0.0


@each_runner
def test_a_masked_choice_is_refused_and_nothing_moves(how: dict[str, Any]) -> None:
    envs = corral.make_vec(CHOOSER, N, check_actions="masked", **how)
    masked_reset(envs, options={"index": 0})
    with pytest.raises(
        errors.InvalidActionError, match=r"env 1: action 1 is masked; allowed: \[0, 2\]"
    ):
        envs.send(np.array([1, 1, 1, 1]))
    with pytest.raises(errors.InvalidActionError, match="env 2: action 2 is masked"):
        envs.send(np.array([2]), [2])
    assert envs.native.in_flight() == 0
    infos = sent(envs, np.array([1, 0, 0, 1]))[4]
    assert infos["action_mask"].tolist() == forbidding(1, 0, 0, 1)
    # Labels that are of no choice at all are refused as ever.
    with pytest.raises(errors.InvalidActionError, match="3"):
        envs.send(np.array([0, 1, 1, 3]))


def test_an_action_that_is_ignored_is_not_held_to_the_mask() -> None:
    envs = corral.make_vec(CHOOSER, 2, check_actions="masked")
    envs.reset(options={"index": 0})
    for step in range(4):
        infos = envs.step([1 + step % 2, 2 - 2 * (step % 2)])[4]
    assert infos["action_mask"].tolist() == forbidding(2, 0)
    # Both episodes are over: this step plays no action.
    envs.observe()
    envs.step([2, 0])


def test_the_mask_is_part_of_a_state() -> None:
    envs, other = (corral.make_vec(CHOOSER, 2, check_actions="masked") for _ in range(2))
    envs.reset(options={"index": 0})
    other.load_state(envs.save_state())
    with pytest.raises(errors.InvalidActionError, match=r"env 0: action 0 is masked"):
        other.step([0, 0])
    envs.step([1, 2])
    other.load_state(envs.save_state(0), 1)
    with pytest.raises(errors.InvalidActionError, match=r"env 1: action 1 is masked"):
        other.step([1, 1])
    other.step([1, 2])


@pytest.mark.parametrize("id", ["CartPole-v1", "testing/Caller-v0"])
def test_envs_that_tell_no_masks_cannot_be_held_to_them(id: str) -> None:
    with pytest.raises(errors.UnsupportedError, match="tells of no action masks"):
        corral.make_vec(id, 2, check_actions="masked")
    with pytest.raises(errors.ArgumentError, match="'space' or 'masked', not 'both'"):
        corral.make_vec(id, 2, check_actions="both")


@pytest.mark.parametrize("num_envs", [1, 3, 7])
def test_policies_that_evaluate_get_the_masks_of_their_rows(num_envs: int) -> None:
    rng = np.random.default_rng(0)

    def policy(observations: Any, infos: dict[str, Any]) -> Any:
        assert infos["action_mask"].shape == (len(observations), 3)
        assert infos["action_mask"].tolist() == forbidding(*observations.tolist())
        return np.array([rng.choice(np.flatnonzero(mask)) for mask in infos["action_mask"]])

    made = corral.make_vec(CHOOSER, num_envs, autoreset_mode="disabled", check_actions="masked")
    for env in (CHOOSER, made):
        result = corral.evaluate(
            policy, env, range(20), **({"num_envs": num_envs} if env is CHOOSER else {})
        )
        assert result.returns.tolist() == [4.0] * 20
        assert result.lengths.tolist() == [4] * 20


def test_infos_that_only_some_rows_have_are_told_of_those() -> None:
    """Python envs' infos come and go."""

    class Odd(gymnasium.Env[Any, Any]):
        observation_space = gymnasium.spaces.Box(-1, 99, (1,), np.float32)
        action_space = gymnasium.spaces.Discrete(2)

        def reset(self, *, seed: Any = None, options: Any = None) -> Any:
            super().reset(seed=seed)
            self.seed, self.steps = seed, 0
            return np.array([0], np.float32), {"began": self.seed, "text": "first"}

        def step(self, action: Any) -> Any:
            self.steps += 1
            over = self.steps > (self.seed or 0) % 3
            told = {"steps": self.steps} if self.steps % 2 else {}
            return np.array([self.steps], np.float32), 1.0, over, False, told

    def policy(observations: Any, infos: dict[str, Any], index: Any) -> Any:
        for row, (steps,) in enumerate(observations):
            if steps == 0:
                assert infos["_began"][row]
                assert infos["began"][row] == index[row]
                assert infos["text"][row] == "first"
            else:
                assert "_began" not in infos or not infos["_began"][row]
                told = bool(steps % 2)
                assert ("_steps" in infos and bool(infos["_steps"][row])) == told
                if told:
                    assert infos["steps"][row] == steps
        return np.zeros(len(observations), np.int64)

    envs = corral.from_gymnasium(Odd, 3, runner="serial", autoreset_mode="disabled")
    result = corral.evaluate(policy, envs, range(9))
    assert result.lengths.tolist() == [1, 2, 3] * 3


@pytest.mark.parametrize("how", [{}, {"check_actions": "masked"}])
def test_check_env_plays_what_the_masks_allow(how: dict[str, Any]) -> None:
    verdict = corral.testing.check_env(CHOOSER, steps=60, **how)
    assert verdict.passed


def test_choices_are_replaced_by_allowed_ones_leaf_by_leaf() -> None:
    leaves = [
        {"kind": "text"},
        {"kind": "fixed", "discrete": True, "shape": [2], "low": [5], "high": [6]},
        {"kind": "fixed", "discrete": False, "shape": [3], "low": [0.0], "high": [1.0]},
        {"kind": "fixed", "discrete": True, "shape": [], "low": [-1], "high": [1]},
    ]
    masks = np.array([[1, 0, 0, 1, 0, 1, 1], [0, 0, 1, 1, 0, 0, 1]], np.int8)
    rng, seen = np.random.default_rng(0), set()
    for _ in range(64):
        given = [("a", "b"), np.full((2, 2), 5), np.zeros((2, 3)), np.zeros(2, np.int64)]
        spaces.allow(given, leaves, masks, rng)
        _, pairs, reals, ways = given
        assert not reals.any()
        seen.add((*pairs[0].tolist(), int(ways[0])))
        # The first element of the second row is allowed nothing and keeps what it had.
        assert pairs[1, 0] == 5
        assert pairs[1, 1] in (5, 6)
        assert ways[1] == 1
    assert seen == {(5, 6, 0), (5, 6, 1)}
