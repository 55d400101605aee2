"""LeRobot's own evaluation with a stub policy, over envs of `corral.adapters.lerobot`.

LeRobot's `rollout`, `eval_policy`, `preprocess_observation` and what EnvHub does with a factory run
from its source, which the first argument names. The rest of LeRobot is stood in for: its policies
and datasets want a Python and gigabytes that they do not need here.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import json
import sys
import tempfile
import types
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import gymnasium
import numpy as np
import torch
from gymnasium import spaces

from corral.adapters.lerobot import make_env

REAL = ("lerobot.scripts.lerobot_eval", "lerobot.envs.utils", "lerobot.utils.constants")


class LeRobotFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Every module of LeRobot but those of `REAL` is a package whose names are mocks."""

    def __init__(self, source: Path) -> None:
        self.source = source

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        if name.partition(".")[0] != "lerobot":
            return None
        if name in REAL:
            file = self.source.joinpath(*name.split(".")).with_suffix(".py")
            return importlib.util.spec_from_file_location(name, file)
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: Any) -> Any:
        module = types.ModuleType(spec.name)
        mocks: dict[str, Any] = {
            "PreTrainedPolicy": torch.nn.Module,
            "inside_slurm": lambda: True,
            "_peft_available": False,
        }

        def attribute(name: str) -> Any:
            if name.startswith("__"):
                raise AttributeError(name)
            return mocks.setdefault(name, MagicMock(name=name))

        module.__getattr__ = attribute  # type: ignore[method-assign]
        return module

    def exec_module(self, module: Any) -> None:
        pass


sys.meta_path.insert(0, LeRobotFinder(Path(sys.argv[1])))
utils: Any = importlib.import_module("lerobot.envs.utils")
for _name in ("preprocess_observation", "check_env_attributes_and_types", "close_envs"):
    setattr(sys.modules["lerobot.envs"], _name, getattr(utils, _name))
lerobot_eval: Any = importlib.import_module("lerobot.scripts.lerobot_eval")


class Policy(torch.nn.Module):
    """Plays what a function makes of the observation."""

    config = None

    def __init__(self, act: Any) -> None:
        super().__init__()
        self.act, self.seen = act, []

    def reset(self) -> None:
        pass

    def select_action(self, observation: dict[str, Any]) -> torch.Tensor:
        self.seen.append(
            {
                name: value if isinstance(value, list) else [str(value.dtype), list(value.shape)]
                for name, value in observation.items()
            }
        )
        return torch.as_tensor(self.act(observation), dtype=torch.float32)


def evaluated(
    factory: Any, act: Any, episodes: int, use_async_envs: bool = False, **more: Any
) -> dict[str, Any]:
    """What LeRobot measures, and what the policy saw first."""
    module = types.SimpleNamespace(make_env=factory)
    made = utils._normalize_hub_result(
        utils._call_make_env(module, n_envs=3, use_async_envs=use_async_envs, cfg=None)
    )
    ((suite, tasks),) = made.items()
    policy = Policy(act)
    same = lambda value: value  # noqa: E731
    info = lerobot_eval.eval_policy(
        tasks[0], policy, same, same, same, same, n_episodes=episodes, start_seed=100, **more
    )
    assert isinstance(tasks[0], gymnasium.vector.VectorEnv)
    utils.close_envs(made)
    assert tasks[0].closed
    return {
        "suite": suite,
        "success": [one["success"] for one in info["per_episode"]],
        "return": [one["sum_reward"] for one in info["per_episode"]],
        "seen": policy.seen[0],
    }


class Writing(gymnasium.Env[Any, Any]):
    """Shows a text, and ends with success where the number that it names is played."""

    observation_space = spaces.Text(20, charset="sayfournie 49")
    action_space = spaces.Box(-9, 9, (2,), np.float32)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.number, self.age = int(self.np_random.choice([4, 9])), 0
        return f"say {self.number}", {}

    def step(self, action: Any) -> Any:
        self.age += 1
        is_right = bool(round(float(action[0])) == self.number)
        ended = is_right or self.age == 5
        return f"say {self.number}", float(is_right), ended, False, {"is_success": is_right}


def said(observation: dict[str, Any]) -> Any:
    return [[float(text[-1]), 0.0] for text in observation["task"]]


def written_env(tmp: str) -> Any:
    """An EnvHub's `env.py`, imported as LeRobot imports it."""
    file = Path(tmp) / "env.py"
    file.write_text(
        "from corral.adapters.lerobot import make_env\n"
        'make_env = make_env("Pendulum-v1", task="hold the pole", pixels=True, '
        "max_episode_steps=7)\n"
    )
    return utils._import_hub_module(str(file), "someone/pendulum")


def main() -> None:
    out: dict[str, Any] = {}
    pole = make_env("CartPole-v1", success=lambda rewards, ended, cut, infos: cut, task="balance")

    def balance(observation: dict[str, Any]) -> Any:
        x, v, angle, speed = observation["observation.state"].T
        return (angle + 0.5 * speed + 0.05 * x + 0.1 * v > 0).float()[:, None]

    out["good"] = evaluated(pole, balance, 4)
    out["bad"] = evaluated(make_env("CartPole-v1"), lambda o: np.ones((3, 1)), 4)
    goal = make_env("MiniGrid-Empty-5x5-v0", success="terminated", max_episode_steps=60)
    moves = iter([2, 2, 1, 2, 2] * 9)
    out["grid"] = evaluated(goal, lambda o: np.full((3, 1), next(moves)), 3)
    for name, is_async in (("text", False), ("text_async", True)):
        out[name] = evaluated(make_env(Writing, max_episode_steps=9), said, 5, is_async)
    with tempfile.TemporaryDirectory() as tmp, MagicMock() as write:
        lerobot_eval.write_video = write
        out["hub"] = evaluated(
            written_env(tmp).make_env,
            lambda o: np.zeros((3, 1)),
            3,
            max_episodes_rendered=2,
            videos_dir=Path(tmp) / "videos",
        )
        out["films"] = [list(call.args[1].shape) for call in write.call_args_list]
    print(json.dumps(out))


if __name__ == "__main__":
    main()
