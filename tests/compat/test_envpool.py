"""corral.compat.envpool by itself: its arguments, and what corral's own envs add."""

from __future__ import annotations

import subprocess
import sys

import gymnasium
import numpy as np
import pytest

import corral
import corral.compat.envpool as envpool
from corral import errors
from tests.abi.test_plugin import CC, HERE, build
from tests.support import forces


def pushes(num_envs: int, steps: int) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 2, (steps, num_envs)).astype(np.int32)


@pytest.mark.parametrize("num_threads", [0, 1, 2])
def test_it_plays_what_make_vec_plays(num_threads):
    pool = envpool.make("CartPole-v1", "gym", num_envs=6, seed=9, num_threads=num_threads)
    envs = corral.make_vec("CartPole-v1", 6, seed=9)
    observations, _ = pool.reset()
    assert np.array_equal(observations, envs.reset()[0])
    for actions in pushes(6, 60):
        ours, theirs = pool.step(actions), envs.step(actions)
        for mine, its in zip(ours[:4], theirs[:4]):
            assert np.array_equal(mine, its)


def test_seeds_for_each_env_are_those_of_its_first_episode():
    seeds = [40, 2, 17]
    envs = corral.make_vec("CartPole-v1", 3)
    first, second = (envs.reset(seed=seed)[0] for seed in (seeds, None))
    for given in ({"seed": seeds}, {"env_seed": np.array(seeds)}):
        pool = envpool.make_gymnasium("CartPole-v1", num_envs=3, **given)
        assert pool.config["env_seed"] == seeds
        assert np.array_equal(pool.reset()[0], first)
        assert np.array_equal(pool.reset()[0], second)
    pool = envpool.make_gymnasium("CartPole-v1", num_envs=3, seed=seeds)
    assert np.array_equal(pool.reset(np.array([2, 0]))[0], first[[2, 0]])
    assert np.array_equal(pool.step(np.zeros(3, np.int64))[0][1], first[1])


def test_a_seeded_reset_seeds_and_a_reset_mask_chooses():
    pool = envpool.make_gymnasium("CartPole-v1", num_envs=3)
    first = pool.reset(seed=5)[0]
    assert np.array_equal(first, corral.make_vec("CartPole-v1", 3, seed=5).reset()[0])
    assert np.array_equal(pool.reset(seed=5)[0], first)
    mask = np.array([False, True, False])
    observations, infos = pool.reset(options={"reset_mask": mask, "index": 6})
    assert infos["env_id"].tolist() == [1]
    # Env i plays the index after `i`.
    assert np.array_equal(observations, corral.make_vec("CartPole-v1", 1, seed=7).reset()[0])


def test_arrays_are_the_callers_to_keep_and_to_change():
    pool = envpool.make_gymnasium("CartPole-v1", num_envs=2, seed=1)
    twin = envpool.make_gymnasium("CartPole-v1", num_envs=2, seed=1)
    pool.reset(), twin.reset()
    for actions in pushes(2, 40):
        ours, theirs = pool.step(actions), twin.step(actions)
        for mine, its in zip(ours[:4], theirs[:4]):
            assert np.array_equal(mine, its)
        for name in ("elapsed_step", "env_id", "reward", "terminated"):
            assert np.array_equal(ours[4][name], theirs[4][name])
        kept = ours[4]["reward"].copy()
        for array in (*ours[:4], ours[4]["elapsed_step"], ours[4]["env_id"], pool.all_env_ids):
            array[...] = 0
        # A wrapper may clip rewards in place.
        assert np.array_equal(ours[4]["reward"], kept)


def test_gymnasiums_wrappers_take_it():
    pool = envpool.make("CartPole-v1", "gymnasium", num_envs=4)
    assert isinstance(pool, gymnasium.vector.VectorEnv)
    single = gymnasium.Wrapper(pool)
    assert single.reset()[0].shape == (4, 4)
    vector = gymnasium.wrappers.vector.RecordEpisodeStatistics(pool)
    vector.reset()
    ends = 0
    for actions in pushes(4, 60):
        _, _, terminations, _, infos = vector.step(actions)
        if terminations.any():
            elapsed = infos["elapsed_step"][terminations]
            assert np.array_equal(infos["episode"]["l"][terminations], elapsed)
            ends += terminations.sum()
    assert ends > 4
    pool.num_envs = 4
    vector.close()
    with pytest.raises(errors.ClosedError):
        pool.step(np.zeros(4, np.int64))


def test_infos_of_the_envs_come_without_masks():
    pool = envpool.make_gymnasium("Taxi-v4", num_envs=2)
    observations, infos = pool.reset()
    assert observations.dtype == np.int32
    assert infos["action_mask"].shape == (2, 6)
    assert not [name for name in infos if name.startswith("_")]
    step = envpool.make_dm("Taxi-v4", num_envs=2).reset()
    assert step.observation.action_mask.shape == (2, 6)
    assert step.observation.obs.dtype == np.int32


def test_observations_with_parts():
    pool = envpool.make_gymnasium("MiniGrid-Empty-5x5-v0", num_envs=2)
    observations, _ = pool.reset()
    assert observations["direction"].dtype == np.int32
    assert observations["image"].shape == (2, 7, 7, 3)
    of_dm = envpool.make_dm("MiniGrid-Empty-5x5-v0", num_envs=2)
    assert of_dm.reset().observation.image.shape == (2, 7, 7, 3)
    assert of_dm.observation_spec().direction.num_values == 4
    hand, dealer, ace = envpool.make_gymnasium("Blackjack-v1", num_envs=2).reset()[0]
    assert {hand.dtype, dealer.dtype, ace.dtype} == {np.dtype(np.int32)}


def test_frames_are_stacked_and_drawn():
    plain = envpool.make_gymnasium("CartPole-v1", num_envs=2, seed=3)
    stacked = envpool.make_gymnasium(
        "CartPole-v1", num_envs=2, seed=3, stack_num=3, render_mode="rgb_array", render_env_id=1
    )
    assert stacked.config["stack_num"] == 3
    assert stacked.observation_space.shape == (3, 4)
    seen = [plain.reset()[0], plain.step(np.zeros(2, np.int64))[0]]
    stacked.reset()
    observations = stacked.step(np.zeros(2, np.int64))[0]
    assert np.array_equal(observations, np.stack([seen[0], *seen], axis=1))
    frames = stacked.render([0, 1])
    assert frames.shape == (2, 400, 600, 3)
    assert np.array_equal(stacked.render(), frames[1:])
    with pytest.raises(errors.UnsupportedError, match="render_mode"):
        plain.render()


def test_ids_and_the_list_of_them():
    assert envpool.list_all_envs() == list(corral.envs())
    assert envpool.make_spec("corral/CartPole-v1").id == "CartPole-v1"
    with pytest.raises(errors.UnknownEnvError, match="Did you mean 'CartPole-v1'"):
        envpool.make("CartPol-v1", "gym")


@pytest.mark.parametrize(
    ("given", "error", "said"),
    [
        ({"num_env": 2}, errors.UnknownOptionError, "did you mean 'num_envs'"),
        ({"episodic_life": True}, errors.UnknownOptionError, "own: fast, sutton_barto_reward"),
        ({"autoreset_mode": "same_step"}, errors.UnsupportedError, "the step after"),
        ({"frame_stack": 2}, errors.UnsupportedError, "stack_num"),
        ({"num_envs": 0}, errors.ArgumentError, "num_envs is 0"),
        ({"num_envs": 2.5}, errors.ArgumentTypeError, "num_envs is an int"),
        ({"num_envs": 2, "batch_size": 3}, errors.ArgumentError, "batch_size is 3"),
        ({"max_num_players": 2}, errors.ArgumentError, "max_num_players is 2"),
        ({"seed": -1}, errors.ArgumentError, "seed is -1"),
        ({"seed": [1, 2, 3], "num_envs": 2}, errors.ArgumentError, "one each"),
        ({"seed": [1, -2], "num_envs": 2}, errors.ArgumentError, "seed of env 1 is -2"),
        ({"seed": [1], "env_seed": [1]}, errors.ArgumentError, "leave env_seed out"),
        ({"gym_reset_return_info": False}, errors.ArgumentError, "env_type='gym'"),
        ({"sutton_barto_reward": "yes"}, errors.OptionValueError, "sutton_barto_reward"),
    ],
)
def test_wrong_arguments_say_what_is_wrong(given, error, said):
    with pytest.raises(error, match=said):
        envpool.make_gymnasium("CartPole-v1", **given)


def test_wrong_calls_say_what_is_wrong_and_nothing_moves():
    pool = envpool.make_gymnasium("CartPole-v1", num_envs=2)
    with pytest.raises(errors.ArgumentError, match="numbered from 0 to 1"):
        pool.step(np.zeros(1, np.int64), np.array([2]))
    pool.reset()
    for wrong in (np.array([0, 7]), np.array([0, 1, 0]), {"push": np.zeros(2, np.int64)}):
        with pytest.raises(errors.InvalidActionError):
            pool.step(wrong)
    with pytest.raises(errors.ArgumentTypeError, match="env_id"):
        pool.reset(np.array([0.5]))
    with pytest.raises(errors.ArgumentError, match="reset_mask"):
        pool.reset(options={"reset_mask": np.array([False, False])})
    with pytest.raises(errors.NothingPendingError):
        pool.recv()
    assert pool.step(np.zeros(2, np.int64))[4]["elapsed_step"].tolist() == [1, 1]


@pytest.mark.skipif(CC is None, reason="there is no C compiler here")
def test_an_env_of_a_library_goes_by_its_name_alone(tmp_path):
    path = build(HERE / "c" / "counter.c", tmp_path / "counter.so")
    # Other tests load the same library under other names.
    before = [id for id in corral.envs() if id.endswith("/Counter-v0")]
    corral.load(path, namespace="one")
    if not before:
        assert envpool.make_gymnasium("Counter-v0").spec.id == "one/Counter-v0"
    corral.load(path, namespace="other")
    assert envpool.make_gymnasium("one/Counter-v0").spec.id == "one/Counter-v0"
    with pytest.raises(errors.ArgumentError, match="one/Counter-v0, other/Counter-v0"):
        envpool.make_gymnasium("Counter-v0")


def test_named_actions_and_counts_after_a_failure():
    pool = envpool.make_gymnasium(
        "testing/Faulty-v0", num_envs=3, seed=5, fault="error_in_step", of_seed=6, at_step=2
    )
    _, infos = pool.reset()
    assert infos["nested"]["pair"].shape == (3, 2)
    assert "_pair" not in infos["nested"]
    for count in (1, 2):
        assert pool.step(forces(3))[4]["elapsed_step"].tolist() == [count] * 3
    with pytest.raises(errors.EnvError) as caught:
        pool.step(forces(3))
    assert [failure.slot for failure in caught.value.failures] == [1]
    assert pool.reset(np.array([1]))[1]["elapsed_step"].tolist() == [0]
    assert pool.step(forces(3))[4]["elapsed_step"].tolist() == [4, 1, 4]
    some = {**forces(2), "env_id": np.array([2, 0])}
    assert pool.step(some)[4]["elapsed_step"].tolist() == [5, 5]


def test_a_failure_among_some_envs_tells_which():
    pool = envpool.make_gymnasium(
        "testing/Faulty-v0", num_envs=3, seed=5, fault="error_in_step", of_seed=6, at_step=0
    )
    pool.reset()
    with pytest.raises(errors.EnvError) as caught:
        pool.step(forces(2), np.array([2, 1]))
    assert caught.value.batch[4]["env_id"].tolist() == [2, 1]
    assert pool.step(forces(1), np.array([2]))[4]["elapsed_step"].tolist() == [2]


def test_corrals_options_that_envpool_has_no_name_for():
    pool = envpool.make("CartPole-v1", "gym", num_envs=2, episode_statistics=True)
    pool.reset()
    told = [pool.step(np.zeros(2, np.int64))[4] for _ in range(12)]
    assert any("episode" in infos for infos in told)
    assert not any("_episode" in infos for infos in told)


def test_dm_env_is_imported_where_it_is_asked_for():
    code = (
        "import sys, corral.compat.envpool as envpool\n"
        "envpool.make('CartPole-v1', 'gym').reset()\n"
        "assert 'dm_env' not in sys.modules\n"
        "envpool.make('CartPole-v1', 'dm').reset()\n"
        "assert 'dm_env' in sys.modules and envpool.DMEnvPool.__name__ == 'DMEnvPool'\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
