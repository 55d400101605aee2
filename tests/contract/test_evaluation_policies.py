"""Policies of PyTorch's, and videos of what a policy played.

PyTorch is not among what the tests install: `torch` stands in its place with those names of it
that `corral.evaluate` may use, and fails where they are used in another way. PyTorch itself has its
turn in `torch_suite.py`.
"""

from __future__ import annotations

import functools
import subprocess
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import gymnasium
import imageio.v3
import numpy as np
import pytest

import corral
from corral.errors import ArgumentError, ArgumentTypeError, UnsupportedError
from corral.policy import Actor

INDICES = [3, 0, 77, 12, 5, 8]


def balance(observations: np.ndarray) -> np.ndarray:
    return (observations[:, 2] > 0).astype(np.int64)


class Tensor:
    """An array that NumPy cannot look into, as one on a device with a graph of gradients is."""

    def __init__(self, array: np.ndarray, device: str = "cpu", has_graph: bool = False) -> None:
        self.array, self.device, self.has_graph = array, device, has_graph
        self.dtype = array.dtype

    def detach(self) -> Tensor:
        return Tensor(self.array, self.device)

    def cpu(self) -> Tensor:
        return Tensor(self.array, "cpu", self.has_graph)

    def numpy(self) -> np.ndarray:
        assert (self.device, self.has_graph) == ("cpu", False)
        return self.array

    def __array__(self, *arguments: Any, **more: Any) -> np.ndarray:
        raise TypeError("can't convert a tensor on a device to numpy")


class Module:
    """Takes anything when it is called, and passes it on to `forward`, as PyTorch's does."""

    device = "cuda:0"

    def __call__(self, *arguments: Any, **more: Any) -> Any:
        return self.forward(*arguments, **more)  # type: ignore[attr-defined]

    def parameters(self) -> Iterator[Any]:
        yield types.SimpleNamespace(device=self.device)


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch) -> Any:
    made: Any = types.ModuleType("torch")
    made.grad = True

    class Inference:
        def __enter__(self) -> None:
            made.grad = False

        def __exit__(self, *error: Any) -> None:
            made.grad = True

    made.inference_mode, made.Tensor, made.bfloat16 = Inference, Tensor, "bfloat16"
    made.nn = types.SimpleNamespace(Module=Module)
    made.as_tensor = lambda array, device: Tensor(array, device)
    monkeypatch.setitem(sys.modules, "torch", made)
    return made


def test_a_module_gets_tensors_on_its_device_and_keeps_no_gradients(torch: Any) -> None:
    class Policy(Module):
        def forward(self, observations: Tensor, began: Tensor) -> Tensor:
            assert torch.grad is False
            assert (observations.device, began.device) == ("cuda:0", "cuda:0")
            assert began.array.dtype == np.bool_
            return Tensor(balance(observations.array), "cuda:0", has_graph=True)

    found = corral.evaluate(Policy(), "CartPole-v1", INDICES, 4)
    assert (
        found.returns.tolist() == corral.evaluate(balance, "CartPole-v1", INDICES).returns.tolist()
    )
    assert torch.grad is True


def test_a_module_without_parameters_gets_tensors_where_torch_puts_them(torch: Any) -> None:
    class Policy(Module):
        def parameters(self) -> Iterator[Any]:
            return iter(())

        def forward(self, observations: Tensor) -> Tensor:
            assert observations.device is None
            return Tensor(balance(observations.array))

    corral.evaluate(Policy(), "CartPole-v1", INDICES)


def test_a_module_around_another_one_takes_what_that_one_takes(torch: Any) -> None:
    class Policy(Module):
        def forward(self, observations: Tensor, began: Tensor) -> Tensor:
            return Tensor(balance(observations.array))

    class Averaged(Module):
        module = Policy()

        def forward(self, *arguments: Any, **more: Any) -> Any:
            return self.module(*arguments, **more)

    found = corral.evaluate(Averaged(), "CartPole-v1", INDICES)
    assert (
        found.returns.tolist() == corral.evaluate(balance, "CartPole-v1", INDICES).returns.tolist()
    )


def test_nested_observations_actions_and_infos_are_tensors_too(torch: Any) -> None:
    class Policy(Module):
        def forward(self, observations: Any, infos: dict[str, Any]) -> Any:
            n = len(observations["level"].array)
            assert isinstance(observations["body"]["joints"], Tensor)
            assert isinstance(infos["left"], Tensor)
            force, gear = np.zeros((n, 2), np.float32), np.ones(n, np.int64)
            return {"force": Tensor(force, "cuda:0"), "gear": Tensor(gear, "cuda:0")}

    found = corral.evaluate(Policy(), "testing/Faulty-v0", [1, 2], max_episode_steps=3)
    assert found.lengths.max() == 3


def test_a_function_gets_arrays_and_may_give_tensors(torch: Any) -> None:
    def policy(observations: np.ndarray) -> Tensor:
        assert torch.grad is False
        return Tensor(balance(observations), "cuda:0", has_graph=True)

    found = corral.evaluate(policy, "CartPole-v1", INDICES)
    assert (
        found.returns.tolist() == corral.evaluate(balance, "CartPole-v1", INDICES).returns.tolist()
    )


def test_an_error_of_a_policy_ends_the_mode_without_gradients(torch: Any) -> None:
    with pytest.raises(ZeroDivisionError):
        corral.evaluate(lambda observations: 1 / 0, "CartPole-v1", [1])
    assert torch.grad is True


def test_torch_is_never_imported() -> None:
    program = (
        "import sys, numpy as np, corral\n"
        "sys.modules['torch'] = None\n"
        "corral.evaluate(lambda seen: np.zeros(len(seen), np.int64), 'CartPole-v1', [1])\n"
        "del sys.modules['torch']\n"
        "corral.evaluate(lambda seen: np.zeros(len(seen), np.int64), 'CartPole-v1', [1])\n"
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=90)


def drawn_alone(index: int) -> list[np.ndarray]:
    """What a single env draws of the episode of an index in a plain loop."""
    env = corral.make("CartPole-v1", render_mode="rgb_array")
    observation, _ = env.reset(options={"index": index})
    frames, over = [env.render()], False
    while not over:
        observation, _, terminated, truncated, _ = env.step(int(observation[2] > 0))
        frames.append(env.render())
        over = terminated or truncated
    return frames  # type: ignore[return-value]


@pytest.mark.parametrize("format", ["mp4", "gif"])
def test_videos_show_the_best_the_median_and_the_worst_episode(format: str, tmp_path: Path) -> None:
    found = corral.evaluate(balance, "CartPole-v1", range(20))
    order = sorted(range(20), key=lambda index: found.returns[index])
    files = found.videos(balance, tmp_path / "new", format=format)
    expected = {
        "best": min(i for i in range(20) if found.returns[i] == found.returns.max()),
        "median": order[9],
        "worst": order[0],
    }
    for name, index in expected.items():
        assert files[name] == tmp_path / "new" / f"{name}_index_{index}.{format}"
        shown, drawn = imageio.v3.imread(files[name]), drawn_alone(index)
        assert len(shown) == found.lengths[index] + 1 == len(drawn)
        # The codec loses a little.
        apart = np.abs(np.stack(drawn).astype(int) - shown[..., :3].astype(int))
        assert apart.mean() < 1.5
        assert apart[-1].mean() < 1.5
    assert len(list((tmp_path / "new").iterdir())) == 3
    about = imageio.v3.immeta(files["best"])
    assert about["fps"] == 50 if format == "mp4" else about["duration"] == 20


def test_videos_of_an_evaluation_that_was_read_from_a_file(tmp_path: Path) -> None:
    def stay(observations: np.ndarray) -> np.ndarray:
        return np.zeros(len(observations), np.int64)

    found = corral.evaluate(stay, "Maze-v0", [4], size=3, max_episode_steps=5)
    found.to_json(tmp_path / "found.json")
    again = corral.Evaluation.from_json(tmp_path / "found.json")
    files = again.videos(stay, tmp_path, format="gif")
    # One file stands for all three, under each name.
    assert len(set(files.values())) == 3
    assert len(imageio.v3.imread(files["best"])) in (1, 6)


def test_videos_of_another_policy_come_with_a_warning(tmp_path: Path) -> None:
    found = corral.evaluate(balance, "CartPole-v1", [1])
    with pytest.warns(UserWarning, match="another episode of index 1 than"):
        found.videos(lambda seen: np.zeros(len(seen), np.int64), tmp_path)


def test_videos_of_an_own_vector_env(tmp_path: Path) -> None:
    envs = corral.make_vec("CartPole-v1", 3, render_mode="rgb_array")
    found = corral.evaluate(balance, envs, range(5))
    files = found.videos(balance, tmp_path, env=envs)
    lengths = {name: len(imageio.v3.imread(path)) - 1 for name, path in files.items()}
    assert lengths["best"] == found.lengths.max()
    assert lengths["worst"] == found.lengths.min()
    assert lengths["median"] == sorted(found.lengths)[2]
    assert not envs.closed


class Drawn(gymnasium.Env[Any, Any]):
    """An env in Python of odd frames: as bright as the steps that it took."""

    observation_space = gymnasium.spaces.Box(0, 1, (1,))
    action_space = gymnasium.spaces.Discrete(2)
    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["rgb_array"], "render_fps": 10}
    render_mode = "rgb_array"

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.left = 3 + int(self.np_random.integers(4))
        self.steps = 0
        return np.zeros(1, np.float32), {}

    def step(self, action: Any) -> Any:
        self.steps += 1
        return np.zeros(1, np.float32), 1.0, self.steps == self.left, False, {}

    def render(self) -> Any:
        return np.full((31, 33, 3), 20 * self.steps, np.uint8)


@pytest.mark.parametrize("mode", ["disabled", "next_step", "same_step"])
@pytest.mark.parametrize("runner", ["serial", "process"])
def test_videos_of_a_python_env_show_every_frame_that_there_is(
    runner: str, mode: str, tmp_path: Path
) -> None:
    def stay(observations: np.ndarray) -> np.ndarray:
        return np.zeros(len(observations), np.int64)

    envs = corral.from_gymnasium(Drawn, 2, runner=runner, autoreset_mode=mode)
    found = corral.evaluate(stay, envs, range(8))
    for name, path in found.videos(stay, tmp_path, env=envs, format="gif").items():
        frames = imageio.v3.imread(path)[..., :3]
        index = int(path.stem.rpartition("_")[2])
        assert frames.shape[1:3] == (32, 34)
        # Under same_step the env has begun its next episode where this one ended.
        count = int(found.lengths[index]) + (mode != "same_step")
        assert frames.mean(axis=(1, 2, 3)).tolist() == [20.0 * k for k in range(count)], name
    envs.close()


def test_videos_that_cannot_be_say_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = corral.evaluate(balance, "CartPole-v1", [1], max_episode_steps=2)
    with pytest.raises(ArgumentError, match="'mp4' or 'gif', not 'avi'"):
        found.videos(balance, tmp_path, format="avi")
    with pytest.raises(ArgumentTypeError, match="folder is a path"):
        found.videos(balance, 3)  # type: ignore[arg-type]
    with pytest.raises(ArgumentTypeError, match="policy is a function"):
        found.videos(3, tmp_path)  # type: ignore[arg-type]
    with pytest.raises(ArgumentTypeError, match=r"env is a corral\.VectorEnv"):
        found.videos(balance, tmp_path, env=corral.make("CartPole-v1"))  # type: ignore[arg-type]
    with pytest.raises(UnsupportedError, match="gives no pictures"):
        found.videos(balance, tmp_path, env=corral.make_vec("CartPole-v1", 1))
    with pytest.raises(ArgumentError, match="'Maze-v0', and 'CartPole-v1' was evaluated"):
        found.videos(balance, tmp_path, env=corral.make_vec("Maze-v0", 1, render_mode="rgb_array"))
    with pytest.raises(ArgumentError, match=r"no id here: give env="):
        corral.Evaluation(found.indices, found.returns, found.lengths, id="else").videos(
            balance, tmp_path
        )
    blind = corral.Evaluation(found.indices, found.returns, found.lengths, id="testing/Nested-v0")
    with pytest.raises(UnsupportedError, match="draws no pictures"):
        blind.videos(balance, tmp_path)
    with pytest.raises(ZeroDivisionError):
        found.videos(lambda seen: 1 / 0, tmp_path)
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    with pytest.raises(UnsupportedError, match="pip install imageio imageio-ffmpeg"):
        found.videos(balance, tmp_path)
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(UnsupportedError, match="pip install imageio pillow"):
        found.videos(balance, tmp_path, format="gif")


def test_a_stand_in_without_modules_is_not_taken_for_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in: Any = types.ModuleType("torch")
    stand_in.nn = types.ModuleType("torch.nn")
    monkeypatch.setitem(sys.modules, "torch", stand_in)
    result = corral.evaluate(balance, "CartPole-v1", [1])
    assert result.lengths[0] > 0


class Methods:
    def bound(self, seen: Any, infos: Any) -> None: ...

    @staticmethod
    def static(seen: Any, *, index: Any) -> None: ...

    @classmethod
    def of_class(cls, seen: Any, began: Any = None) -> None: ...

    def __call__(self, seen: Any, began: Any, index: Any) -> None: ...


def only_by_place(seen: Any, infos: Any, /, began: Any) -> None: ...


def anything(seen: Any, **more: Any) -> None: ...


@functools.wraps(only_by_place)
def wrapped(*given: Any, **more: Any) -> None: ...


@pytest.mark.parametrize(
    ("policy", "names"),
    [
        (Methods().bound, {"infos"}),
        (Methods.static, {"index"}),
        (Methods.of_class, {"began"}),
        (Methods(), {"began", "index"}),
        (only_by_place, {"began"}),
        (anything, {"began", "index", "infos"}),
        (wrapped, {"began"}),
        (functools.partial(Methods().bound, infos=None), {"infos"}),
        (lambda seen, other=None: None, set()),
        (len, set()),
    ],
)
def test_what_a_policy_takes_by_name_is_given_by_name(policy: Any, names: set[str]) -> None:
    assert Actor(policy).named == names
