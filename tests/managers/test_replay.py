"""Videos of episodes."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import imageio.v3
import numpy as np
import pytest

import corral
from corral import errors
from tests.managers.envs import Counter, Engine
from tests.managers.managers import each, every_manager, launched, managed


def films(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*.mp4"))


def shades(path: Path) -> list[int]:
    """The mean of each picture, to the nearest ten: codecs lose a little."""
    return [round(float(frame.mean()) / 10) * 10 for frame in imageio.v3.imread(path)]


@every_manager
def test_each_episode_of_each_env_becomes_a_video_of_its_own(kind: str, tmp_path: Path) -> None:
    with managed(kind, each(Counter, 2, 3)) as manager:
        manager.enable_save_replay(str(tmp_path))
        manager.launch()
        for _ in range(6):
            manager.step(dict.fromkeys(manager.ready_obs, 0))
    assert films(tmp_path) == [
        f"env_{env}/env_{env}_episode_{episode}.mp4" for env in (0, 1) for episode in (0, 1, 2)
    ]
    # What `Counter.render` draws: 40 an env, 10 a step, 80 in every second episode.
    for env in (0, 1):
        for episode in (0, 1):
            film = tmp_path / f"env_{env}" / f"env_{env}_episode_{episode}.mp4"
            first = 40 * env + 80 * episode
            assert shades(film) == [first, first + 10, first + 20, first + 30]


@every_manager
def test_a_list_has_a_folder_for_each_env(kind: str, tmp_path: Path) -> None:
    with managed(kind, each(Counter, 2, 1)) as manager:
        manager.enable_save_replay([tmp_path / "one", str(tmp_path / "two")])
        manager.launch()
        manager.step({0: 0, 1: 0})
    assert {name.split("/")[0] for name in films(tmp_path)} == {"one", "two"}


@every_manager
def test_an_env_with_a_replay_of_its_own_writes_it_to_a_place_of_its_own(
    kind: str, tmp_path: Path
) -> None:
    with managed(kind, each(Engine, 3, 2)) as manager:
        manager.enable_save_replay(str(tmp_path))
        manager.launch()
        for _ in range(4):
            manager.step(dict.fromkeys(manager.ready_obs, 0))
    written = {
        str(path.relative_to(tmp_path)): path.read_text() for path in tmp_path.rglob("*.txt")
    }
    assert written == {f"env_{k}/{episode}.txt": str(k) for k in range(3) for episode in (1, 2)}


@pytest.mark.parametrize(
    ("kind", "cfg"), [("base", {}), ("sync", {}), ("async", {}), ("sync", {"num_workers": 2})]
)
@pytest.mark.parametrize("how", ["an id", "functions"])
def test_our_own_envs_are_filmed(kind: str, cfg: dict[str, Any], how: str, tmp_path: Path) -> None:
    make = functools.partial(corral.make, "CartPole-v1", render_mode="rgb_array")
    fns: list[Any] = ["CartPole-v1"] * 2 if how == "an id" else [make] * 2
    with managed(kind, fns, **cfg) as manager:
        manager.enable_save_replay(tmp_path)
        manager.seed(0)
        manager.launch()
        steps = {0: 0, 1: 0}
        ended: dict[int, int] = {}
        while len(ended) < 2:
            for k, timestep in manager.step(dict.fromkeys(manager.ready_obs, 1)).items():
                steps[k] += 1
                if timestep.done:
                    ended.setdefault(k, steps[k])
    for k, count in ended.items():
        film = imageio.v3.imread(tmp_path / f"env_{k}" / f"env_{k}_episode_0.mp4")
        assert film.shape == (count + 1, 400, 600, 3)
    first = [imageio.v3.imread(tmp_path / f"env_{k}" / f"env_{k}_episode_0.mp4")[0] for k in (0, 1)]
    assert np.abs(first[0].astype(int) - first[1]).max() > 50


def test_an_episode_under_way_is_written_when_the_manager_closes(tmp_path: Path) -> None:
    with managed("base", each(Counter, 1, 9)) as manager:
        manager.enable_save_replay(tmp_path)
        manager.launch()
        manager.step({0: 0})
    assert shades(tmp_path / "env_0" / "env_0_episode_0.mp4") == [0, 10]


def test_no_video_is_replaced(tmp_path: Path) -> None:
    for _ in range(2):
        with managed("base", each(Counter, 1, 1)) as manager:
            manager.enable_save_replay([tmp_path])
            manager.launch()
    assert films(tmp_path) == ["env_0_episode_0.mp4", "env_0_episode_1.mp4"]


def test_pictures_of_an_odd_size_are_filmed(tmp_path: Path) -> None:
    class Odd(Counter):
        def render(self) -> Any:
            return np.full((33, 47, 3), 90, np.uint8)

    with managed("base", each(Odd, 1, 1)) as manager:
        manager.enable_save_replay([tmp_path])
        manager.launch()
        manager.step({0: 0})
    film = imageio.v3.imread(tmp_path / "env_0_episode_0.mp4")
    assert film.shape == (2, 34, 48, 3)
    assert abs(float(film.mean()) - 90) < 3


@every_manager
def test_an_env_that_draws_nothing_says_so(kind: str, tmp_path: Path) -> None:
    class Blind(Counter):
        def render(self) -> Any:
            return None

    with managed(kind, each(Blind, 1)) as manager:
        manager.enable_save_replay(tmp_path)
        with pytest.raises(
            errors.UnsupportedError, match=r'env 0 .*NoneType.*render_mode="rgb_array"'
        ):
            manager.launch()


def test_a_replay_is_asked_for_before_launch_by_a_path(tmp_path: Path) -> None:
    with (
        managed("base", each(Counter, 2)) as manager,
        pytest.raises(errors.ArgumentTypeError, match="a path or a list of one per env, not 5"),
    ):
        manager.enable_save_replay(5)
    with (
        launched("base", each(Counter, 2)) as manager,
        pytest.raises(errors.LaunchError, match="comes before launch"),
    ):
        manager.enable_save_replay(tmp_path)
