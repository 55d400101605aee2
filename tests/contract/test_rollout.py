"""Rollouts beside a loop of `step` calls."""

from __future__ import annotations

import os
import re
import signal
from itertools import pairwise
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, Text

import corral
from corral import errors
from tests.support import assert_same, forces, states

MODES = ("next_step", "same_step", "disabled")
STEPS = 60
PAGE = Path(__file__).resolve().parents[2] / "docs" / "rollouts.md"


def made(mode: str, **more: Any) -> corral.VectorEnv:
    return corral.make_vec(
        "CartPole-v1",
        5,
        seed=3,
        autoreset_mode=mode,
        episode_statistics=True,
        max_episode_steps=17,
        **more,
    )


def choose(observations: Any) -> Any:
    """Depends on every number that it sees."""
    return (observations.sum(axis=1) * 1000 % 2).astype(np.int64)


class Loop:
    """What a naive loop keeps."""

    def __init__(self, envs: corral.VectorEnv, steps: int, policy: Any = choose) -> None:
        mode = envs.metadata["autoreset_mode"].value
        seen, infos = envs.reset()
        begun = np.zeros(envs.num_envs, bool)
        self.observations, self.infos = [seen], [infos]
        self.actions: list[Any] = []
        self.rewards, self.ends, self.cuts, self.valid = [], [], [], []
        self.nexts: list[Any] = []
        self.finals: list[tuple[int, int, Any]] = []
        self.episodes: list[tuple[int, int, float, int]] = []
        for step in range(steps):
            actions = policy(seen)
            seen, rewards, ends, cuts, infos = envs.step(actions)
            over = ends | cuts
            led_to = seen.copy()
            for env in np.flatnonzero(over) if isinstance(seen, np.ndarray) else []:
                if mode == "SameStep":
                    led_to[env] = infos["final_obs"][env]
                self.finals.append((step, int(env), led_to[env]))
                told = infos["episode"]
                self.episodes.append((step, int(env), told["r"][env], told["l"][env]))
            self.valid.append(~begun)
            begun = over if mode == "NextStep" else begun
            if mode == "Disabled" and over.any():
                seen, infos = envs.reset(options={"reset_mask": over})
            self.actions.append(actions)
            self.rewards.append(rewards)
            self.ends.append(ends)
            self.cuts.append(cuts)
            self.nexts.append(led_to)
            self.observations.append(seen)
            self.infos.append(infos)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("mode", MODES)
def test_a_rollout_is_what_a_loop_of_steps_sees(mode: str, threads: int) -> None:
    loop = Loop(made(mode), STEPS)
    envs = made(mode, num_threads=threads)
    envs.reset()
    rollout = envs.rollout(choose, STEPS)
    assert_same(rollout.observations, np.stack(loop.observations))
    assert_same(rollout.actions, np.stack(loop.actions))
    assert_same(rollout.rewards, np.stack(loop.rewards))
    assert_same(rollout.terminations, np.stack(loop.ends))
    assert_same(rollout.truncations, np.stack(loop.cuts))
    assert_same(rollout.valid, np.stack(loop.valid))
    assert_same(rollout.next_observations(), np.stack(loop.nexts))
    steps, slots, last = zip(*loop.finals)
    assert len(steps) > 10
    assert set(rollout.truncations[rollout.finals.steps, rollout.finals.envs]) == {True, False}
    assert rollout.finals.steps.tolist() == list(steps)
    assert rollout.finals.envs.tolist() == list(slots)
    assert_same(rollout.finals.observations, np.stack(last))
    assert rollout.episodes is not None
    told = zip(*(column.tolist() for column in rollout.episodes[:4]))
    assert list(told) == loop.episodes


@pytest.mark.parametrize("mode", MODES)
def test_rollouts_go_on_where_the_last_one_ended(mode: str) -> None:
    loop = Loop(made(mode), STEPS)
    envs = made(mode)
    envs.reset()
    parts = [envs.rollout(choose, 20) for _ in range(3)]
    assert_same(np.concatenate([part.rewards for part in parts]), np.stack(loop.rewards))
    for earlier, later in pairwise(parts):
        assert_same(later.observations[0], earlier.observations[-1])
    assert_same(
        np.concatenate([part.observations[1:] for part in parts]), np.stack(loop.observations[1:])
    )


def test_arrays_are_the_callers_and_memory_that_nobody_holds_is_used_again() -> None:
    envs = made("same_step")
    envs.reset()
    kept = envs.rollout(choose, 20)
    before = kept.observations.copy()
    address = envs.rollout(choose, 20).rewards.ctypes.data
    assert address != kept.rewards.ctypes.data
    assert envs.rollout(choose, 20).rewards.ctypes.data == address
    assert_same(kept.observations, before)
    del envs
    assert_same(kept.observations, before)


def test_out_is_filled_anew() -> None:
    loop = Loop(made("next_step"), 40)
    envs = made("next_step")
    envs.reset()
    first = envs.rollout(choose, 20)
    second = envs.rollout(choose, 20, out=first)
    assert np.shares_memory(first.observations, second.observations)
    assert_same(second.observations, np.stack(loop.observations[20:]))
    steps = [step - 20 for step, _, _ in loop.finals if step >= 20]
    assert second.finals.steps.tolist() == steps
    with pytest.raises(errors.ArgumentError, match="made with other steps"):
        envs.rollout(choose, 21, out=first)
    other = made("next_step")
    other.reset()
    with pytest.raises(errors.ArgumentError, match="of other envs"):
        other.rollout(choose, 20, out=first)
    with pytest.raises(errors.ArgumentTypeError, match="of these envs, not"):
        envs.rollout(choose, 20, out=np.zeros(3))  # type: ignore[arg-type]


@pytest.mark.parametrize("num_envs", [3072, 3080, 3096])
def test_rollouts_larger_than_the_caches_are_what_steps_give(num_envs: int) -> None:
    """Whole blocks of envs; and a rest that steps by itself, and one that is a block."""
    loop, envs = (
        corral.make_vec("CartPole-v1", num_envs, seed=1, max_episode_steps=30) for _ in range(2)
    )
    seen, _ = loop.reset()
    envs.reset()
    steps = 100
    rollout = envs.rollout(choose, steps)
    for array in (rollout.observations, rollout.actions, rollout.rewards):
        array.fill(7)
    rollout.terminations.fill(True)
    rollout.truncations.fill(True)
    for _ in range(steps):
        seen = loop.step(choose(seen))[0]
    rollout = envs.rollout(choose, steps, out=rollout)
    for step in range(steps):
        actions = choose(seen)
        assert_same(rollout.observations[step], seen)
        assert_same(rollout.actions[step], actions)
        seen, rewards, ends, cuts, _ = loop.step(actions)
        assert_same(rollout.rewards[step], rewards)
        assert_same(rollout.terminations[step], ends)
        assert_same(rollout.truncations[step], cuts)
    assert rollout.truncations.any()


@pytest.mark.parametrize("shift", [-1, 0, 2])
def test_a_policy_may_return_part_of_the_array_that_keeps_its_actions(shift: int) -> None:
    envs = corral.make_vec("CartPole-v1", 5, seed=1)
    envs.reset()
    rollout = envs.rollout(choose, 8)
    rng = np.random.default_rng(0)
    flat = rollout.actions.reshape(-1)
    assert np.shares_memory(flat, rollout.actions)
    returned = []

    def policy(_: Any) -> Any:
        first = min(max(5 * len(returned) + shift, 0), flat.size - 5)
        given = flat[first : first + 5]
        given[:] = rng.integers(0, 2, 5)
        returned.append(given.copy())
        return given

    played = corral.make_vec("CartPole-v1", 5, seed=1)
    seen, _ = played.reset()
    for _ in range(8):
        seen = played.step(choose(seen))[0]
    rollout = envs.rollout(policy, 8, out=rollout)
    for step, actions in enumerate(returned):
        if shift == 0:
            assert_same(rollout.actions[step], actions)
        assert_same(rollout.observations[step + 1], played.step(actions)[0])


def test_extras_of_the_policy_are_kept_by_name() -> None:
    envs = made("next_step")
    envs.reset()

    def policy(observations: Any) -> Any:
        return choose(observations), observations[:, 0], observations[:, :2].astype(np.float64)

    rollout = envs.rollout(policy, 12, extras=["first", "two"])
    assert_same(rollout.extras["first"], rollout.observations[:-1, :, 0])
    assert_same(rollout.extras["two"], rollout.observations[:-1, :, :2].astype(np.float64))
    with pytest.raises(errors.ArgumentError, match="returns a tuple of 2"):
        envs.rollout(policy, 12, extras=["first"])
    lengths = iter([5, 4])
    before = states(envs)
    with pytest.raises(errors.ArgumentError, match=r"'value' has shape \(4,\) at step 1") as raised:
        envs.rollout(lambda o: (choose(o), np.zeros(next(lengths))), 12, extras=["value"])
    part = raised.value.rollout  # type: ignore[attr-defined]
    assert part.steps == 1
    assert part.extras["value"].tolist() == [[0.0] * 5]
    assert states(envs) != before
    with pytest.raises(
        errors.ArgumentError, match=r"has shape \(4,\) at step 0, where \(5,\) belongs"
    ):
        envs.rollout(lambda o: (choose(o), np.zeros(4)), 12, extras=["value"])
    with pytest.raises(errors.ArgumentError, match=r"has shape \(\) at step 0"):
        envs.rollout(lambda o: (choose(o), 0.5), 12, extras=["value"])


class Told(gymnasium.Env[Any, Any]):
    """Nested observations with text, infos that come and go."""

    def __init__(self) -> None:
        self.observation_space = Dict({"at": Box(-9, 9, (2,), np.float32), "word": Text(8)})
        self.action_space = Dict({"go": Discrete(3), "push": Box(-1, 1, (2,), np.float32)})

    def _seen(self) -> Any:
        return {"at": np.array([self.age, -self.age], np.float32), "word": "abcdefgh"[: self.age]}

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.age = 1
        return self._seen(), {"age": self.age}

    def pid(self) -> int:
        return os.getpid()

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.age += 1
        infos = (
            {"age": self.age, "odd": {"ly": self.age % 2}} if self.age % 2 else {"age": self.age}
        )
        return self._seen(), float(action["go"]), self.age > 4, False, infos


@pytest.mark.parametrize("runner", ["serial", "process"])
@pytest.mark.parametrize("mode", MODES)
def test_nested_spaces_text_and_undeclared_infos(mode: str, runner: str) -> None:
    envs = corral.from_gymnasium(Told, 3, autoreset_mode=mode, runner=runner)
    rng = np.random.default_rng(0)
    seen = []

    def policy(observations: Any, infos: Any) -> Any:
        seen.append((observations, infos))
        return {
            "go": rng.integers(0, 3, 3),
            "push": rng.uniform(-1, 1, (3, 2)).astype(np.float32),
        }

    envs.reset()
    rollout = envs.rollout(policy, 9, infos=["age", "odd"])
    assert rollout.observations["at"].shape == (10, 3, 2)
    assert rollout.observations["word"].shape == (10, 3)
    ages = rollout.observations["at"][:, :, 0].astype(int)
    words = rollout.observations["word"]
    assert all(words[t, i] == "abcdefgh"[: ages[t, i]] for t in range(10) for i in range(3))
    assert ages[:5, 0].tolist() == {"next_step": [1, 2, 3, 4, 5]}.get(mode, [1, 2, 3, 4, 1])
    for step, (observations, infos) in enumerate(seen):
        assert observations["word"] == tuple(words[step])
        if infos:
            assert_same(infos["age"], rollout.infos["age"][step])
    told = rollout.infos["_age"][1:]
    assert_same(rollout.infos["age"][1:][told], ages[1:][told])
    assert told.all()
    odd = rollout.infos["odd"]["ly"][rollout.infos["_odd"]]
    assert odd.size
    assert (odd == 1).all()
    assert rollout.finals.observations["word"].tolist() == ["abcde"] * len(rollout.finals.steps)
    assert rollout.finals.infos["age"].tolist() == [5] * len(rollout.finals.steps)
    assert len(rollout.finals.steps)
    assert (rollout.next_observations()["at"][..., 0] > 1)[rollout.valid].all()
    valid = rollout.valid
    assert_same(rollout.rewards[valid], rollout.actions["go"][valid].astype(np.float64))
    assert rollout.actions["push"].dtype == np.float32
    envs.close()


def test_masks_come_with_the_observations_that_they_are_of() -> None:
    envs = corral.make_vec("ConnectFour-v0", 4, seed=0, check_actions="masked")
    rng = np.random.default_rng(1)

    def policy(observations: Any, infos: Any) -> Any:
        return np.array([rng.choice(np.flatnonzero(mask)) for mask in infos["action_mask"]])

    envs.reset()
    rollout = envs.rollout(policy, 50, infos=["action_mask"])
    masks = rollout.infos["action_mask"][:-1]
    chosen = np.take_along_axis(masks, rollout.actions[..., None], axis=2)[..., 0]
    assert chosen[rollout.valid].all()
    assert rollout.infos["_action_mask"].all()
    assert not masks.all()


def test_frame_stacks_and_normalised_rewards_are_kept_as_step_shows_them() -> None:
    def envs() -> corral.VectorEnv:
        return corral.make_vec(
            "CartPole-v1",
            4,
            seed=0,
            autoreset_mode="same_step",
            frame_stack=3,
            normalize_observation=True,
            normalize_reward=True,
        )

    def policy(observations: Any) -> Any:
        return (observations[:, -1].sum(axis=1) > 0).astype(np.int64)

    stepped = envs()
    seen, _ = stepped.reset()
    observations, rewards, lasts = [seen], [], []
    for _ in range(40):
        seen, reward, _, _, infos = stepped.step(policy(seen))
        observations.append(seen)
        rewards.append(reward)
        if "final_obs" in infos:
            lasts += [last for last in infos["final_obs"] if last is not None]
    rolled = envs()
    rolled.reset()
    rollout = rolled.rollout(policy, 40)
    assert_same(rollout.observations, np.stack(observations))
    assert_same(rollout.rewards, np.stack(rewards))
    assert lasts
    assert_same(rollout.finals.observations, np.stack(lasts))


def test_errors_of_policies_and_actions_carry_what_was_played() -> None:
    envs = made("next_step")
    envs.reset()
    calls = iter(range(100))

    def policy(observations: Any) -> Any:
        if next(calls) == 7:
            raise RuntimeError("no more")
        return choose(observations)

    with pytest.raises(RuntimeError, match="no more") as raised:
        envs.rollout(policy, 20)
    assert raised.value.rollout.steps == 7  # type: ignore[attr-defined]
    assert raised.value.rollout.observations.shape == (8, 5, 4)  # type: ignore[attr-defined]
    with pytest.raises(errors.InvalidActionError) as refused:
        envs.rollout(lambda o: np.full(5, 9), 20)
    assert refused.value.rollout.steps == 0  # type: ignore[attr-defined]
    assert envs.rollout(choose, 20).steps == 20


def test_a_failure_of_an_env_is_raised_with_the_step_in_which_it_failed() -> None:
    envs = corral.make_vec(
        "testing/Faulty-v0", 3, fault="panic_in_step", at_step=4, of_seed=1, seed=0
    )
    envs.reset()
    with pytest.raises(errors.EnvError) as raised:
        envs.rollout(lambda o: forces(3), 10)
    rollout = raised.value.rollout  # type: ignore[attr-defined]
    assert rollout.row_kinds[-1].tolist() == [0, corral.RowKind.FAILED, 0]
    assert rollout.valid.sum() == 3 * rollout.steps - 1


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("policy", ["restart", "mask"])
def test_failures_that_are_borne_are_rows_that_are_no_steps(policy: str, mode: str) -> None:
    how = {"fault": "panic_in_step", "at_step": 4, "of_seed": 1, "on_failure": policy}

    def made() -> corral.VectorEnv:
        return corral.make_vec("testing/Faulty-v0", 3, seed=0, autoreset_mode=mode, **how)

    loop = Loop(made(), 9, lambda seen: forces(3))
    envs = made()
    envs.reset()
    rollout = envs.rollout(lambda seen: forces(3), 9)
    for name, column in rollout.observations["body"].items():
        assert_same(column, np.stack([seen["body"][name] for seen in loop.observations]))
    assert_same(rollout.rewards, np.stack(loop.rewards))
    assert_same(rollout.truncations, np.stack(loop.cuts))
    assert rollout.truncations[4].tolist() == [False, True, False]
    assert not rollout.valid[4, 1]
    assert rollout.valid[:, [0, 2]].all()
    assert not (rollout.finals.envs == 1).any()


def test_a_worker_that_is_killed_is_an_error_with_what_was_played() -> None:
    envs = corral.from_gymnasium(Told, 4, num_workers=2, autoreset_mode="same_step")
    envs.reset()
    pids = envs.call("pid")
    calls = iter(range(100))

    def policy(observations: Any) -> Any:
        if next(calls) == 3:
            os.kill(pids[3], signal.SIGKILL)
        return {"go": np.zeros(4, np.int64), "push": np.zeros((4, 2), np.float32)}

    with pytest.raises(errors.EnvError) as raised:
        envs.rollout(policy, 10)
    rollout = raised.value.rollout  # type: ignore[attr-defined]
    assert rollout.steps == 4
    assert rollout.valid[:3].all()
    assert rollout.valid[3].tolist() == [True, True, False, False]
    envs.close()


@pytest.mark.parametrize("mode", MODES)
def test_rollouts_are_joined_although_no_episode_ended_in_some(mode: str) -> None:
    def rolled(num_envs: int, steps: int) -> corral.Rollout:
        envs = corral.from_gymnasium(Told, num_envs, autoreset_mode=mode, runner="serial")
        envs.reset()
        go = {"go": np.zeros(num_envs, np.int64), "push": np.zeros((num_envs, 2), np.float32)}
        for _ in range(3 - steps % 3):
            envs.step(go)
        return envs.rollout(lambda seen: go, 1, infos=["age", "odd"])

    quiet, ends = rolled(2, 2), rolled(3, 0)
    assert not len(quiet.finals.steps)
    joined = corral.Rollout.joined([quiet, ends])
    assert joined.finals.envs.tolist() == [2, 3, 4]
    assert joined.finals.infos["age"].tolist() == [5, 5, 5]
    assert joined.finals.infos["odd"]["ly"].tolist() == [1, 1, 1]
    assert joined.finals.observations["word"].tolist() == ["abcde"] * 3
    assert joined.infos["_age"][1].all()
    assert joined.infos["odd"]["ly"].shape == (2, 5)
    assert_same(joined.next_observations()["at"][:, :2], quiet.next_observations()["at"])
    assert_same(joined.next_observations()["at"][:, 2:], ends.next_observations()["at"])


def test_infos_are_joined_where_no_episode_ended_in_the_first() -> None:
    def rolled(seed: int, steps: int) -> corral.Rollout:
        envs = corral.make_vec("ConnectFour-v0", 2, seed=seed, autoreset_mode="same_step")
        envs.reset()
        return envs.rollout(lambda seen: np.full(2, 3), steps, infos=["action_mask"])

    short = rolled(0, 1)
    assert short.finals.infos["action_mask"].shape == (0, 7)
    assert short.finals.infos["_action_mask"].shape == (0,)


def test_films_and_rollouts_do_not_go_together(tmp_path: Path) -> None:
    envs = corral.make_vec("CartPole-v1", 2, render_mode="rgb_array")
    filmed = corral.record(envs, tmp_path, slots=(0,))
    with pytest.raises(errors.UnsupportedError, match="which a film takes"):
        filmed.rollout(choose, 3)
    filmed.close()


@pytest.mark.parametrize(
    ("given", "error", "match"),
    [
        ({"steps": 0}, errors.ArgumentError, "steps is 0"),
        ({"steps": 2.5}, errors.ArgumentTypeError, "steps is an int"),
        ({"steps": True}, errors.ArgumentTypeError, "steps is an int"),
        ({"policy": 3}, errors.ArgumentTypeError, "policy is a function"),
        ({"infos": "age"}, errors.ArgumentTypeError, "infos is a list of names"),
        ({"extras": ["a", "a"]}, errors.ArgumentError, "extras names one twice"),
    ],
)
def test_wrong_arguments_are_errors(given: Any, error: Any, match: str) -> None:
    envs = made("next_step")
    envs.reset()
    with pytest.raises(error, match=match):
        envs.rollout(**{"policy": choose, "steps": 3, **given})


def test_what_cannot_be_rolled_out_says_so() -> None:
    envs = made("next_step")
    with pytest.raises(errors.ResetNeededError):
        envs.rollout(choose, 3)
    few = corral.make_vec("CartPole-v1", 4, batch_size=2)
    with pytest.raises(errors.UnsupportedError, match="a rollout takes all 4 envs"):
        few.rollout(choose, 3)
    lazy = corral.make_vec("CartPole-v1", 4, frame_stack=2, lazy_frames=True)
    with pytest.raises(errors.UnsupportedError, match="without lazy_frames"):
        lazy.rollout(choose, 3)
    envs.close()
    with pytest.raises(errors.ClosedError):
        envs.rollout(choose, 3)


def test_the_programs_of_the_page_print_what_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    text = PAGE.read_text()
    first, second = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    names: dict[str, Any] = {}
    exec(first, names)
    assert capsys.readouterr().out == re.findall(r"```text\n(.*?)```", text, re.DOTALL)[0]
    exec(second, names)
    assert capsys.readouterr().out == "(128, 64)\n"


def test_sources_that_reset_themselves_and_show_no_final_observations() -> None:
    envs = corral.make_vec("testing/Odd-v0", 3, autoreset_mode="same_step")
    envs.reset()

    def policy(observations: Any) -> Any:
        assert len(observations["items"]) == 3
        return {"move": [1, 2, 0], "word": ["ab", "c", ""]}

    rollout = envs.rollout(policy, 12, infos=["reached", "last_word"])
    counts = [int(text.split()[-1]) for text in rollout.observations["says"][:, 0]]
    assert counts == [0, 3, 6, 9, 0, 3, 6, 9, 0, 3, 6, 9, 0]
    assert [len(items) for items in rollout.observations["items"][:, 0]] == [c % 5 for c in counts]
    assert rollout.infos["last_word"][1:, 0].tolist() == ["ab"] * 12
    ended = rollout.infos["_reached"][1:, 0]
    assert ended.tolist() == [False, False, False, True] * 3
    assert rollout.finals.observations is None
    with pytest.raises(errors.UnsupportedError, match="do not show their final observations"):
        rollout.next_observations()


def test_libenv_libraries_are_rolled_out() -> None:
    envs = corral.load_libenv(corral.libenv_path(), 4, {"env_id": "CartPole-v1"})
    envs.reset()
    rollout = envs.rollout(lambda seen: {"action": np.ones(4, np.int32)}, 30)
    assert (rollout.actions["action"] == 1).all()
    assert rollout.rewards.sum() == 120
    ends = rollout.terminations
    assert ends.sum() == len(rollout.finals.steps) > 8
    assert rollout.finals.observations is not None
    envs.close()
