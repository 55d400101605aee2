"""The three autoreset modes, held to Gymnasium's own `SyncVectorEnv` step by step."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import corral
from tests.support import (
    CASES,
    FAULTY,
    GYMNASIUM_MODES,
    MODES,
    Case,
    assert_same,
    forces,
    row,
    sampled,
    zeros,
)

# Gymnasium makes int64 and float64 of the Python numbers that single envs give; a vec env keeps
# the dtype that the env declared.
DECLARED = {"left": np.int32, "pair": np.int16, "energy": np.float64, "note": object}
DECLARED |= {"distance": np.int32, "position": np.int32, "level": np.int64}


def random_reset(rng: np.random.Generator, num_envs: int) -> dict[str, Any]:
    """Arguments of a reset: seeds of every kind, sometimes a mask."""
    seeds = [int(rng.integers(1000)) if rng.random() < 0.5 else None for _ in range(num_envs)]
    seed = [None, int(rng.integers(1000)), seeds][rng.integers(3)]
    if rng.random() < 0.3:
        return {"seed": seed}
    mask = rng.random(num_envs) < 0.5
    mask[rng.integers(num_envs)] = True
    return {"seed": seed, "options": {"reset_mask": mask}}


def fresh(arguments: dict[str, Any]) -> dict[str, Any]:
    """A copy for Gymnasium's vec env, which takes the mask out of the caller's options."""
    if "options" not in arguments:
        return arguments
    return {**arguments, "options": dict(arguments["options"])}


def check_declared(infos: dict[str, Any]) -> None:
    for key, value in infos.items():
        if isinstance(value, dict):
            check_declared(value)
        elif key.startswith("_"):
            assert value.dtype == np.bool_, key
        elif key != "final_obs":
            assert value.dtype == DECLARED[key], key


@pytest.mark.parametrize("num_envs", [1, 5])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_every_step_and_reset_gives_what_gymnasiums_own_vector_env_gives(
    case: Case, mode: str, num_envs: int
) -> None:
    ours, theirs = case.make_vec(num_envs, mode), case.make_sync(num_envs, mode)
    rng = np.random.default_rng(num_envs)
    assert_same(ours.reset(seed=11), theirs.reset(seed=11), "the first reset", numbers=True)
    terminated = truncated = both = resets = 0
    ended = np.zeros(num_envs, dtype=np.bool_)
    for step, actions in zip(range(250), sampled(ours, 5)):
        if mode == "disabled" and ended.any():
            arguments: dict[str, Any] | None = {"options": {"reset_mask": ended}}
        elif rng.random() < 0.05:
            arguments = random_reset(rng, num_envs)
        else:
            arguments = None
        if arguments is not None:
            got = ours.reset(**fresh(arguments))
            expected = theirs.reset(**fresh(arguments))
            assert_same(got, expected, f"reset({arguments}) before step {step}", numbers=True)
            check_declared(got[1])
            resets += 1
            if "options" not in arguments:
                ended[:] = False
            else:
                ended = ended & ~arguments["options"]["reset_mask"]
            if mode == "disabled" and ended.any():
                mask = {"options": {"reset_mask": ended}}
                got, expected = ours.reset(**fresh(mask)), theirs.reset(**fresh(mask))
                assert_same(got, expected, f"reset of the ended at {step}", numbers=True)
        got, expected = ours.step(actions), theirs.step(actions)
        assert_same(got[:4], expected[:4], f"step {step}")
        assert_same(got[4], expected[4], f"infos of step {step}", numbers=True)
        check_declared(got[4])
        ended = got[2] | got[3]
        terminated += int((got[2] & ~got[3]).sum())
        truncated += int((got[3] & ~got[2]).sum())
        both += int((got[2] & got[3]).sum())
    # The comparison saw what it is about.
    assert resets >= 3
    assert terminated + both >= 2
    assert truncated >= 1 or case.name == "Gymnasium's CartPole"
    theirs.close()


def test_an_env_that_ends_in_a_terminal_state_on_the_limits_step_is_both() -> None:
    """Pushed left, CartPole's pole of seed 0 falls on a step which the limit is then put on."""
    probe = CASES[0].make_gymnasium()
    probe.reset(seed=0)
    steps = 1
    while not probe.step(0)[2]:
        steps += 1
    for limit, flags in [(steps, (True, True)), (steps + 1, (True, False))]:
        envs = corral.make_vec("CartPole-v1", 1, max_episode_steps=limit)
        envs.reset(seed=0)
        for _ in range(steps):
            *_, terminations, truncations, _ = envs.step([0])
        assert (bool(terminations[0]), bool(truncations[0])) == flags


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ["name", "enum", "value"])
def test_the_mode_may_be_named_in_every_way_and_is_in_the_metadata(mode: str, name: str) -> None:
    enum = GYMNASIUM_MODES[mode]
    given = {"name": mode, "enum": enum, "value": enum.value}[name]
    envs = corral.make_vec("CartPole-v1", 2, autoreset_mode=given)
    assert envs.metadata["autoreset_mode"] is enum
    assert envs.autoreset_mode is enum


def test_next_step_is_the_default_as_in_gymnasium() -> None:
    assert corral.make_vec("CartPole-v1", 2).autoreset_mode is GYMNASIUM_MODES["next_step"]


def test_next_step_ignores_the_action_of_the_resetting_step() -> None:
    """Any action there gives the same story, one outside the space included."""
    stories = []
    for ignored in (0, 1, 77):
        envs = corral.make_vec("CartPole-v1", 2, max_episode_steps=3)
        envs.reset(seed=0)
        story = []
        for k in range(12):
            action = ignored if k % 4 == 3 else 1
            story.append(envs.step(np.array([action, action])))
            if k % 4 == 3:
                assert (story[-1][1] == 0).all()
                assert not story[-1][2].any()
                assert not story[-1][3].any()
        stories.append(story)
    assert_same(stories[1], stories[0])
    assert_same(stories[2], stories[0])


def test_stepping_a_finished_env_with_autoreset_disabled_is_an_error_and_moves_nothing() -> None:
    envs = corral.make_vec(FAULTY, 3, autoreset_mode="disabled")
    envs.reset(seed=0)
    for _ in range(20):
        *_, terminations, truncations, _ = envs.step(zeros(envs))
        if (terminations | truncations).any():
            break
    ended = terminations | truncations
    assert ended.any()
    assert not ended.all()
    before = [envs.native.save(slot) for slot in range(3)]
    with pytest.raises(corral.errors.ResetNeededError, match=f"env {np.argmax(ended)} has ended"):
        envs.step(zeros(envs))
    assert [envs.native.save(slot) for slot in range(3)] == before
    envs.reset(options={"reset_mask": ended})
    envs.step(zeros(envs))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("case", CASES[2:4], ids=str)
def test_rows_outside_the_mask_keep_episode_and_observation_and_have_no_info(
    case: Case, mode: str
) -> None:
    envs, alone = case.make_vec(4, mode), case.make_vec(4, mode)
    actions = zip(sampled(envs, 1), range(2))
    envs.reset(seed=3)
    alone.reset(seed=3)
    for batch, _ in actions:
        last = envs.step(batch)[0]
        alone.step(batch)
    mask = np.array([False, True, False, True])
    options = {"reset_mask": mask, "index": [9, 8, 7, 6]}
    kept = dict(options)
    observations, infos = envs.reset(options=options)
    assert options == kept
    assert options["reset_mask"] is mask
    np.testing.assert_array_equal(mask, [False, True, False, True])
    for key, value in infos.items():
        if key.startswith("_"):
            np.testing.assert_array_equal(value, mask, err_msg=key)
    for slot in (0, 2):
        assert_same(row(observations, slot), row(last, slot), f"env {slot}")
    fresh = case.make_vec(4, mode).reset(options={"index": [9, 8, 7, 6]})[0]
    for slot in (1, 3):
        assert_same(row(observations, slot), row(fresh, slot), f"env {slot}")
    # The others' episodes go on as if nothing had been.
    batch = next(sampled(envs, 2))
    after, expected = envs.step(batch), alone.step(batch)
    for slot in (0, 2):
        assert_same(row(after[0], slot), row(expected[0], slot), f"env {slot} a step later")


def test_a_masked_reset_between_an_end_and_its_autoreset_neither_loses_nor_repeats_it() -> None:
    envs = corral.make_vec("CartPole-v1", 2, max_episode_steps=2)
    envs.reset(seed=0)
    envs.step([0, 1])
    last, _, _, truncations, _ = envs.step([0, 1])
    assert truncations.all()
    observations, _ = envs.reset(seed=[None, 50], options={"reset_mask": np.array([False, True])})
    # Slot 0 still shows its final observation and awaits its autoreset; slot 1 has begun.
    assert_same(observations[0], last[0])
    observations, rewards, *_ = envs.step([0, 1])
    np.testing.assert_array_equal(rewards, [0.0, 1.0])
    gym = CASES[0].make_gymnasium()
    gym.reset(seed=0)
    assert_same(observations[0], gym.reset()[0], "env 0's second own episode")
    gym.reset(seed=50)
    assert_same(observations[1], gym.step(1)[0], "env 1's first step")


@pytest.mark.parametrize("mode", MODES)
def test_infos_have_gymnasiums_shape_and_say_what_the_env_said(mode: str) -> None:
    """Worked out by hand from Faulty's counter: `note` and `energy` come with every third step."""
    n = 6
    envs = corral.make_vec(FAULTY, n, autoreset_mode=mode)
    observations, infos = envs.reset(seed=4)
    every = np.ones(n, dtype=np.bool_)
    assert set(infos) == {"left", "_left", "nested", "_nested"}
    assert_same(infos["_left"], every)
    assert set(infos["nested"]) == {"pair", "_pair"}
    assert_same(infos["nested"]["pair"], np.zeros((n, 2), dtype=np.int16))
    lengths = infos["left"]
    assert (lengths >= 3).all()
    count = np.zeros(n, dtype=np.int32)
    awaits = np.zeros(n, dtype=np.bool_)
    partial = 0
    for step in range(60):
        force = 0.25 + 0.5 * (step % 2)
        observations, _, terminations, truncations, infos = envs.step(forces(n, force, 2))
        ended = terminations | truncations
        count = np.where(awaits, 0, count + 1)
        said = infos
        if mode == "same_step":
            shown = np.where(ended, 0, count)
            noted = (count % 3 == 0) & ~ended
            final = (count % 3 == 0) & ended
            assert ("final_info" in infos) == ended.any()
            if ended.any():
                finals = infos["final_info"]
                assert_same(infos["_final_info"], ended)
                assert_same(infos["_final_obs"], ended)
                assert [obs is not None for obs in infos["final_obs"]] == ended.tolist()
                for slot in np.flatnonzero(ended):
                    assert infos["final_obs"][slot]["count"] == count[slot]
                assert_same(finals["_left"], ended)
                np.testing.assert_array_equal(
                    finals["nested"]["pair"][:, 0], np.where(ended, count, 0)
                )
                assert ("note" in finals) == ("energy" in finals) == bool(final.any())
                if final.any():
                    assert_same(finals["_note"], final)
                    assert finals["note"].tolist() == [
                        f"step {count[k]}" if final[k] else None for k in range(n)
                    ]
        else:
            shown, noted = count, (count % 3 == 0) & ~awaits
        np.testing.assert_array_equal(observations["count"], shown)
        assert_same(said["_left"], every)
        assert_same(said["nested"]["_pair"], every)
        np.testing.assert_array_equal(
            said["nested"]["pair"], np.stack([shown, -shown], axis=1).astype(np.int16)
        )
        assert ("note" in said) == ("energy" in said) == bool(noted.any())
        if noted.any():
            partial += int(not noted.all())
            assert_same(said["_note"], noted)
            assert_same(said["_energy"], noted)
            assert said["note"].dtype == object
            assert said["note"].tolist() == [
                f"step {count[k]}" if noted[k] else None for k in range(n)
            ]
            # Rows without it hold zeros, not what the memory held before.
            assert_same(said["energy"], np.where(noted, force, 0.0))
        count = np.where(ended, 0, count) if mode == "same_step" else count
        awaits = ended if mode == "next_step" else np.zeros(n, dtype=np.bool_)
        if mode == "disabled" and ended.any():
            envs.reset(options={"reset_mask": ended})
            count = np.where(ended, 0, count)
    assert partial > 5


@pytest.mark.parametrize("mode", MODES)
def test_an_info_of_one_step_never_shows_in_a_later_one(mode: str) -> None:
    envs = corral.make_vec(
        "CartPole-v1", 3, autoreset_mode=mode, max_episode_steps=4, episode_statistics=True
    )
    envs.reset(seed=0)
    seen = 0
    for k in range(40):
        if k == 2:
            # Out of step with the others from here on.
            envs.reset(seed=5, options={"reset_mask": np.array([True, False, False])})
        *_, terminations, truncations, infos = envs.step([0, 1, 0])
        ended = terminations | truncations
        assert ("episode" in infos) == ended.any()
        if ended.any():
            seen += 1
            assert set(infos["episode"]) == {"r", "l", "t"}
            assert_same(infos["_episode"], ended)
            np.testing.assert_array_equal(infos["episode"]["l"], np.where(ended, 4, 0))
            np.testing.assert_array_equal(infos["episode"]["r"], np.where(ended, 4.0, 0.0))
            assert not infos["episode"]["t"][~ended].any()
            if mode == "disabled":
                _, later = envs.reset(options={"reset_mask": ended})
                assert later == {}
    assert seen > 5


def test_an_undeclared_info_that_is_a_dict_in_one_env_and_not_in_another_becomes_objects() -> None:
    from corral._infos import add_info

    for first, second in [({"a": 1, "b": 2.0}, 5), (5, {"a": 1, "b": 2.0})]:
        infos: dict[str, Any] = {}
        add_info(infos, "x", first, 0, 4)
        add_info(infos, "x", second, 2, 4)
        add_info(infos, "x", {"a": 7}, 3, 4)
        assert infos["x"].tolist() == [first, None, second, {"a": 7}]
        assert infos["_x"].tolist() == [True, False, True, True]
