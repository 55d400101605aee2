"""TorchRL over corral's envs: run by TorchRL's own Python."""

from __future__ import annotations

from typing import ClassVar

import gymnasium
import numpy as np
import pytest
import torch
from torchrl.collectors import MultiSyncCollector
from torchrl.envs import GymEnv, GymWrapper
from torchrl.envs.utils import check_env_specs

import corral

torch.set_num_threads(1)
STEPS = 60


class Plain(gymnasium.Env):  # type: ignore[type-arg]
    """An env that is not ours, with pictures."""

    metadata: ClassVar = {"render_modes": ["rgb_array"]}
    observation_space = gymnasium.spaces.Box(-1.0, 1.0, (4,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, render_mode: str | None = None) -> None:
        self.render_mode = render_mode

    def reset(self, *, seed=None, options=None):
        return np.zeros(4, np.float32), {}

    def step(self, action):
        return np.zeros(4, np.float32), 1.0, False, False, {}

    def render(self):
        return np.zeros((8, 8, 3), np.uint8)


gymnasium.register("Plain-v0", Plain)


def actions(n: int):
    rng = np.random.Generator(np.random.PCG64(0))
    return [rng.integers(0, 2, n) for _ in range(STEPS)]


def played(env, n: int):
    """Observations, rewards and ends of a rollout with fixed actions."""
    given = iter(actions(n))

    def policy(_):
        return torch.nn.functional.one_hot(torch.as_tensor(next(given)), 2)

    return env.rollout(STEPS, policy, break_when_any_done=False)


def test_frame_skip_is_torchrls_where_the_env_has_no_such_option():
    env = GymEnv("corral/CartPole-v1", frame_skip=3)
    assert env.frame_skip == 3
    assert env.rollout(2)["next", "reward"].flatten().tolist() == [3.0, 3.0]


def test_pixels_are_the_frames_of_the_env():
    env = GymEnv("corral/CartPole-v1", from_pixels=True, pixels_only=False)
    rollout = env.rollout(3)
    assert rollout["pixels"].shape == (3, 400, 600, 3)
    assert rollout["observation"].shape == (3, 4)
    np.testing.assert_array_equal(rollout["next", "pixels"][-1].numpy(), env._env.render())


def test_several_envs_by_gym_env_play_as_gymnasiums_own():
    ours, theirs = (GymEnv(id, num_envs=2) for id in ("corral:corral/CartPole-v1", "CartPole-v1"))
    for env in (ours, theirs):
        env.set_seed(0)
    one, other = played(ours, 2), played(theirs, 2)
    for key in ("observation", "done", "terminated"):
        assert torch.equal(one["next", key], other["next", key]), key
    ours.close()
    theirs.close()


def test_pixels_of_several_envs_are_lost_by_torchrl_of_any_env():
    env = GymEnv(f"{__name__}:Plain-v0", num_envs=2, from_pixels=True)
    assert env.rollout(2)["pixels"].shape == (2, 2, 4)
    env.close()


@pytest.mark.parametrize("mode", ["disabled", "same_step"])
def test_a_vec_env_plays_the_same_as_gymnasiums_under_torchrl(mode):
    id = "CartPole-v1"
    ours = corral.make_vec(id, 3, autoreset_mode=mode)
    theirs = gymnasium.vector.SyncVectorEnv(
        [lambda: gymnasium.make(id)] * 3,
        autoreset_mode={
            "disabled": gymnasium.vector.AutoresetMode.DISABLED,
            "same_step": gymnasium.vector.AutoresetMode.SAME_STEP,
        }[mode],
    )
    shown = []
    for envs in (ours, theirs):
        env = GymWrapper(envs)
        check_env_specs(env)
        env.set_seed(3)
        shown.append(played(env, 3))
    assert shown[0]["next", "done"].sum() > 3
    for key in ("observation", "reward", "done", "terminated", "truncated"):
        assert torch.equal(shown[0]["next", key], shown[1]["next", key]), key


def test_next_step_is_refused_by_torchrl():
    with pytest.raises(RuntimeError, match="SAME_STEP or DISABLED"):
        GymWrapper(corral.make_vec("CartPole-v1", 2))


def test_collectors_with_processes_take_a_spec():
    spec = corral.spec("CartPole-v1", num_envs=4, autoreset_mode="disabled")
    makers = [lambda seed=seed: GymWrapper(spec.make(seed=seed)) for seed in (0, 4)]
    collector = MultiSyncCollector(makers, None, frames_per_batch=64, total_frames=64)
    batches = [batch["observation"] for batch in collector]
    collector.shutdown()
    assert [batch.shape for batch in batches] == [(2, 4, 8, 4)]
    assert not torch.equal(batches[0][0], batches[0][1])
