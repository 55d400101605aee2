"""corral.to_rl_games beside a VectorEnv and under rl_games' agents: run by rl_games' own Python."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gymnasium import spaces
from rl_games.common.ivecenv import IVecEnv

import corral
from corral import errors


def made(id: str, num_envs: int = 4, **options: Any) -> tuple[Any, corral.VectorEnv]:
    """The adapter, and a vec env that plays the same."""
    first, second = (
        corral.make_vec(id, num_envs, seed=3, autoreset_mode="same_step", **options)
        for _ in range(2)
    )
    return corral.to_rl_games(first), second


def test_it_is_an_ivecenv_that_plays_what_the_vec_env_plays():
    envs, twin = made("CartPole-v1", 64, max_episode_steps=9)
    assert isinstance(envs, IVecEnv)
    assert envs.get_env_info() == {
        "action_space": spaces.Discrete(2),
        "observation_space": twin.single_observation_space,
        "agents": 1,
        "value_size": 1,
    }
    assert np.array_equal(envs.reset(), twin.reset()[0])
    ties = cuts = 0
    for step in range(40):
        pushes = np.where(np.arange(64) < 40, 0, step % 2)
        observations, rewards, dones, infos = envs.step(pushes)
        expected, their_rewards, terminations, truncations, _ = twin.step(pushes)
        assert np.array_equal(observations, expected)
        assert rewards.dtype == np.float32
        assert np.array_equal(rewards, their_rewards)
        assert np.array_equal(dones, terminations | truncations)
        assert np.array_equal(infos["time_outs"], truncations & ~terminations)
        ties += (terminations & truncations).sum()
        cuts += infos["time_outs"].sum()
    assert ties
    assert cuts


def test_masks_are_those_of_the_observations():
    envs, twin = made("Snake-v0", check_actions="masked")
    assert envs.has_action_masks()
    with pytest.raises(errors.ResetNeededError):
        envs.get_action_masks()
    envs.reset()
    told = twin.reset()[1]["action_mask"]
    for _ in range(200):
        masks = envs.get_action_masks()
        assert masks.dtype == np.bool_
        assert np.array_equal(masks, told)
        actions = masks.argmax(1)
        dones = envs.step(actions)[2]
        told = twin.step(actions)[4]["action_mask"]
    without, _ = made("CartPole-v1")
    assert not without.has_action_masks()
    assert dones.shape == (4,)
    with pytest.raises(errors.UnsupportedError, match="use_action_masks"):
        without.get_action_masks()


@pytest.mark.parametrize(
    ("id", "dtype"),
    [
        ("ConnectFour-v0", np.float32),
        ("MinAtar-Breakout-v1", np.float32),
        ("Maze-v0", np.uint8),
        ("2048-v0", np.uint8),
    ],
)
def test_observations_are_those_that_rl_games_makes_tensors_of(id, dtype):
    envs, twin = made(id)
    observations = envs.reset()
    assert observations.dtype == envs.observation_space.dtype == dtype
    assert np.array_equal(observations, twin.reset()[0])
    assert envs.observation_space.contains(observations[0])


def test_seeds_hold_for_the_next_reset():
    envs, _ = made("CartPole-v1")
    envs.seed(11)
    assert np.array_equal(envs.reset(), corral.make_vec("CartPole-v1", 4, seed=11).reset()[0])
    assert not np.array_equal(envs.reset(), corral.make_vec("CartPole-v1", 4, seed=11).reset()[0])


def test_what_rl_games_cannot_take_says_so():
    with pytest.raises(errors.UnsupportedError, match='autoreset_mode="same_step"'):
        corral.to_rl_games(corral.make_vec("CartPole-v1", 2))
    for id, said in (
        ("FrozenLake-v1", "the observation is Discrete"),
        ("MiniGrid-Empty-5x5-v0", "direction"),
        ("testing/Faulty-v0", "Box"),
    ):
        with pytest.raises(errors.UnsupportedError, match=said):
            made(id)
    with pytest.raises(errors.ArgumentTypeError, match=r"corral\.VectorEnv"):
        corral.to_rl_games("CartPole-v1")


def test_an_agent_with_masks_plays_no_forbidden_action(tmp_path):
    """Two epochs of rl_games' PPO; an action that a mask forbids is an error."""
    import torch
    from rl_games.common import env_configurations, vecenv
    from rl_games.torch_runner import Runner

    torch.set_num_threads(1)
    played: list[Any] = []

    def make(config_name: str, num_actors: int, **options: Any) -> Any:
        envs = corral.make_vec(
            "2048-v0", num_actors, autoreset_mode="same_step", check_actions="masked", seed=2
        )
        played.append(corral.to_rl_games(envs))
        return played[-1]

    vecenv.register("MASKED", make)
    env_configurations.register("masked", {"vecenv_type": "MASKED"})
    mlp = {"units": [16], "activation": "relu", "initializer": {"name": "default"}}
    config = {
        **{"name": "Masked", "env_name": "masked", "num_actors": 8, "horizon_length": 16},
        **{"minibatch_size": 64, "mini_epochs": 1, "max_epochs": 2, "use_action_masks": True},
        **{"ppo": True, "gamma": 0.99, "tau": 0.95, "learning_rate": 1e-3, "lr_schedule": None},
        **{"e_clip": 0.2, "clip_value": True, "critic_coef": 1, "entropy_coef": 0.0},
        **{"grad_norm": 1.0, "truncate_grads": True, "normalize_advantage": True},
        **{"normalize_input": False, "reward_shaper": {"scale_value": 1}, "score_to_win": 1e9},
        **{"save_best_after": 1000, "save_frequency": 0, "device": "cpu"},
        **{"torch_compile": False, "train_dir": str(tmp_path)},
    }
    network = {"name": "actor_critic", "separate": False, "space": {"discrete": None}, "mlp": mlp}
    runner = Runner()
    runner.load(
        {
            "params": {
                "seed": 1,
                "algo": {"name": "a2c_discrete"},
                "model": {"name": "discrete_a2c"},
                "network": network,
                "config": config,
            }
        }
    )
    runner.run({"train": True})
    (envs,) = played
    assert not envs.get_action_masks().all()
