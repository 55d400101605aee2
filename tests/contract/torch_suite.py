"""Policies of PyTorch's under `corral.evaluate`, and learners of Stable-Baselines3's over
`corral.to_sb3`; run by `test_torch.py` in the venv that has both."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from sb3_contrib import MaskablePPO
from stable_baselines3 import PPO
from stable_baselines3.common.evaluation import evaluate_policy
from torch import Tensor, nn

import corral

pytestmark = pytest.mark.filterwarnings("error")
# Threads that wait for each other at each small matrix are slow on a busy machine.
torch.set_num_threads(1)
INDICES = [3, 0, 77, 12, 5, 8]


def balance(observations: np.ndarray) -> np.ndarray:
    """What `Balance` does, in NumPy."""
    return (observations[:, 2] > 0).astype(np.int64)


class Balance(nn.Module):
    """Pushes the cart to where the pole leans."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 2, bias=False)
        with torch.no_grad():
            self.layer.weight.copy_(torch.tensor([[0.0] * 4, [0.0, 0.0, 1.0, 0.0]]))

    def forward(self, observations: Tensor) -> Tensor:
        return self.layer(observations).argmax(dim=1)


def returns(policy: Any, **more: Any) -> list[float]:
    return corral.evaluate(policy, "CartPole-v1", INDICES, 4, **more).returns.tolist()


BALANCED = returns(balance)


def test_a_module_gets_tensors_and_keeps_no_gradients() -> None:
    seen: list[Tensor] = []

    class Policy(Balance):
        def forward(self, observations: Tensor) -> Tensor:
            scores = self.layer(observations)
            seen.extend((observations, scores))
            return scores.argmax(dim=1)

    policy = Policy()
    assert returns(policy) == BALANCED
    assert {(one.dtype, one.device.type) for one in seen} == {(torch.float32, "cpu")}
    assert all(one.is_inference() and not one.requires_grad for one in seen[1::2])
    assert all(one.grad is None for one in policy.parameters())
    assert torch.is_grad_enabled()
    assert not torch.is_inference_mode_enabled()


def test_an_error_of_a_module_ends_the_mode_without_gradients() -> None:
    class Policy(Balance):
        def forward(self, observations: Tensor) -> Tensor:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        returns(Policy())
    assert not torch.is_inference_mode_enabled()


def test_tensors_are_on_the_device_of_the_parameters() -> None:
    class Policy(Balance):
        def forward(self, observations: Tensor, began: Tensor) -> Tensor:
            assert (observations.device.type, began.device.type) == ("meta", "meta")
            return torch.zeros(len(observations), dtype=torch.int64)

    assert max(returns(Policy().to("meta"))) < 20


def averaged(policy: nn.Module) -> nn.Module:
    return torch.optim.swa_utils.AveragedModel(policy)


def compiled(policy: nn.Module) -> Any:
    return torch.compile(policy, backend="eager")


@pytest.mark.parametrize("wrap", [nn.Sequential, nn.DataParallel, averaged, compiled])
def test_modules_around_a_module_are_policies_like_it(wrap: Callable[[nn.Module], Any]) -> None:
    assert returns(wrap(Balance())) == BALANCED


def test_a_module_that_leaves_gradients_out_itself_is_like_any_other() -> None:
    for leave_out in (torch.no_grad(), torch.inference_mode()):
        policy = Balance()
        policy.forward = leave_out(policy.forward)  # type: ignore[method-assign]
        assert returns(policy) == BALANCED


class FirstLegal(nn.Module):
    """The first legal column, from infos; it looks at the other arguments by name, too."""

    def forward(
        self, observations: Tensor, infos: dict[str, Tensor], index: Tensor, began: Tensor
    ) -> Tensor:
        assert observations.dtype is torch.int8
        assert (index.dtype, began.dtype) == (torch.int64, torch.bool)
        assert bool((observations[began] != 1).all())
        return infos["action_mask"].argmax(dim=1)


@pytest.mark.parametrize("wrap", [lambda policy: policy, nn.DataParallel, averaged, compiled])
def test_modules_take_further_arguments_by_name(wrap: Callable[[nn.Module], Any]) -> None:
    def first(observations: np.ndarray, infos: dict[str, Any]) -> np.ndarray:
        return infos["action_mask"].argmax(axis=1)

    found, right = (
        corral.evaluate(policy, "ConnectFour-v0", range(20), 4)
        for policy in (wrap(FirstLegal()), first)
    )
    assert found.returns.tolist() == right.returns.tolist()
    assert found.lengths.tolist() == right.lengths.tolist()


@pytest.mark.parametrize(
    ("id", "dtype"),
    [
        ("Maze-v0", torch.uint8),
        ("MinAtar-Breakout-v1", torch.bool),
        ("Catch-v0", torch.float32),
        ("Taxi-v4", torch.int64),
    ],
)
def test_observations_keep_their_dtypes(id: str, dtype: torch.dtype) -> None:
    class Policy(nn.Module):
        def forward(self, observations: Tensor) -> Tensor:
            assert observations.dtype is dtype
            return torch.zeros(len(observations), dtype=torch.int32)

    assert corral.evaluate(Policy(), id, range(3), max_episode_steps=20).lengths.max() <= 20


def test_nested_observations_and_actions_are_tensors_too() -> None:
    class Policy(nn.Module):
        def forward(self, observations: Any, infos: Any) -> Any:
            assert isinstance(observations["body"]["joints"], Tensor)
            assert isinstance(infos["left"], Tensor)
            n = len(observations["level"])
            return {"force": torch.zeros(n, 2), "gear": torch.ones(n, dtype=torch.int64)}

    found = corral.evaluate(Policy(), "testing/Faulty-v0", [1, 2], max_episode_steps=3)
    assert found.lengths.max() == 3


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_actions_may_be_of_fewer_bits_and_have_gradients(dtype: torch.dtype) -> None:
    weight = torch.full((1, 1), 0.5, requires_grad=True)

    def policy(observations: np.ndarray) -> Tensor:
        with torch.inference_mode(False), torch.enable_grad():
            actions = (torch.as_tensor(observations[:, 2:]) * 0 + 1) @ weight
            assert actions.requires_grad
            return actions.to(dtype)

    def still(observations: np.ndarray) -> np.ndarray:
        return np.full((len(observations), 1), 0.5, np.float32)

    found, right = (corral.evaluate(one, "Pendulum-v1", range(3)) for one in (policy, still))
    assert found.returns.tolist() == right.returns.tolist()


def test_a_module_is_copied_to_other_processes() -> None:
    assert returns(Balance(), num_processes=2) == BALANCED


def test_a_recurrent_module_keeps_its_state_by_index() -> None:
    class Policy(nn.Module):
        """Counts the steps of each index in a state, and pushes the other way at each."""

        def __init__(self) -> None:
            super().__init__()
            self.steps: dict[int, Tensor] = {}

        def forward(self, observations: Tensor, began: Tensor, index: Tensor) -> Tensor:
            for row, one in enumerate(index.tolist()):
                before = torch.zeros((), dtype=torch.int64) if began[row] else self.steps[one]
                self.steps[one] = before + 1
            return torch.stack([self.steps[one] % 2 for one in index.tolist()])

    wide, narrow = (
        corral.evaluate(Policy(), "CartPole-v1", INDICES, width).returns for width in (6, 1)
    )
    assert wide.tolist() == narrow.tolist()
    assert wide.min() > 10


def over(id: str, **options: Any) -> Any:
    envs = corral.make_vec(id, 8, autoreset_mode="same_step", **options)
    return corral.to_sb3(envs)


def test_ppo_learns_and_is_evaluated_as_by_sb3() -> None:
    """The first episodes of envs whose seeds are 0 to 7 are those of the indices 0 to 7."""
    envs = over("CartPole-v1", seed=1)
    model = PPO("MlpPolicy", envs, n_steps=256, batch_size=256, seed=0, device="cpu")
    model.learn(8192)
    told = [one["r"] for one in model.ep_info_buffer]
    assert len(told) > 20
    assert min(told) >= 8
    assert all(float(one["l"]) == one["r"] for one in model.ep_info_buffer)

    by_sb3, lengths = evaluate_policy(
        model, over("CartPole-v1", seed=0), 8, deterministic=True, return_episode_rewards=True
    )
    found = corral.evaluate(
        lambda observations: model.predict(observations, deterministic=True)[0],
        "CartPole-v1",
        range(8),
        num_envs=8,
    )
    assert sorted(found.returns.tolist()) == sorted(by_sb3)
    assert sorted(found.lengths.tolist()) == sorted(lengths)
    assert found.mean > 30


@pytest.mark.parametrize("id", ["ConnectFour-v0", "2048-v0"])
def test_maskable_ppo_takes_no_illegal_action(id: str) -> None:
    """An illegal one would be refused."""
    envs = over(id, seed=0, check_actions="masked")
    MaskablePPO("MlpPolicy", envs, n_steps=128, batch_size=256, seed=0, device="cpu").learn(2048)
