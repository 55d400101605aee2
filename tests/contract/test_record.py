"""`corral.record`: is a film the whole episode, under every mode and batch, and is nothing else
changed by it?"""

from __future__ import annotations

import contextlib
import re
import shutil
import weakref
from pathlib import Path
from typing import Any

import gymnasium
import imageio.v2
import numpy as np
import pytest

import corral
from corral import errors, films, video
from tests.support import FAULTY

MODES = ("next_step", "same_step", "disabled")


class Camera:
    """An encoder that keeps what it was shown, by file."""

    def __init__(self) -> None:
        self.shown: dict[str, list[int]] = {}
        self.open = 0

    def __call__(self, path: Path, fps: float | None = None) -> Any:
        camera, frames = self, self.shown.setdefault(path.name.removeprefix(".partial_"), [])
        self.open += 1

        class File:
            def append_data(self, frame: Any) -> None:
                # Faulty draws how many steps of the episode were played.
                assert len(np.unique(frame)) == 1
                frames.append(int(frame[0, 0, 0]))

            def close(self) -> None:
                camera.open -= 1
                path.write_bytes(b"film")

        return File()


@pytest.fixture
def camera(monkeypatch: pytest.MonkeyPatch) -> Camera:
    camera = Camera()
    monkeypatch.setattr(video, "open_video", camera)
    return camera


def make(n: int, mode: str, slots: Any, **how: Any) -> corral.VectorEnv:
    return corral.make_vec(
        FAULTY,
        n,
        seed=3,
        render_mode="rgb_array",
        autoreset_mode=mode,
        final_frames=slots if mode == "same_step" else None,
        **how,
    )


def play(envs: Any, mode: str, steps: int) -> list[list[int]]:
    """Plays all envs and gives the lengths of each one's episodes that came to their end."""
    envs.reset()
    envs.action_space.seed(0)
    ended: list[list[int]] = [[] for _ in range(envs.num_envs)]
    played = np.zeros(envs.num_envs, np.int64)
    waits = np.zeros(envs.num_envs, np.bool_)
    for _ in range(steps):
        if mode == "disabled" and waits.any():
            envs.reset(options={"reset_mask": waits})
            waits[:] = False
        _, _, terminated, truncated, _ = envs.step(envs.action_space.sample())
        over = terminated | truncated
        played += ~waits if mode == "next_step" else 1
        for slot in np.flatnonzero(over):
            ended[slot].append(int(played[slot]))
            played[slot] = 0
        waits = over
    return ended


@pytest.mark.parametrize("how", [{}, {"num_threads": 2}, {"timeout": 30.0}], ids=str)
@pytest.mark.parametrize("mode", MODES)
def test_a_film_has_each_picture_of_its_episode_once(
    mode: str, how: dict[str, Any], camera: Camera, tmp_path: Path
) -> None:
    envs = corral.record(make(3, mode, (0, 2), **how), tmp_path, slots=(0, 2))
    ended = play(envs, mode, 60)
    envs.close()
    assert camera.open == 0
    assert min(map(len, ended)) > 3
    whole = {name for name in camera.shown if (tmp_path / name).exists()}
    for slot in (0, 2):
        names = [f"env_{slot}_episode_{k}.mp4" for k in range(len(ended[slot]))]
        assert whole >= set(names)
        # The first picture shows no step, the last one all of them.
        assert [camera.shown[name] for name in names] == [
            list(range(length + 1)) for length in ended[slot]
        ]
    assert not any(name.startswith("env_1") for name in camera.shown)
    cut = {path.name for path in tmp_path.iterdir()} - whole
    assert all(re.fullmatch(r"env_\d_episode_\d+_unfinished\.mp4", name) for name in cut)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("batch_size", [1, 2, 4])
def test_partial_batches_are_filmed_whole(
    mode: str, batch_size: int, camera: Camera, tmp_path: Path
) -> None:
    made = make(4, mode, (1,), batch_size=batch_size, num_threads=2)
    envs = corral.record(made, tmp_path, slots=[1])
    envs.action_space.seed(0)
    envs.async_reset()
    played, ended = 0, []
    for _ in range(200):
        _, _, terminated, truncated, infos = envs.recv()
        ids, over = infos["env_id"], terminated | truncated
        for row in np.flatnonzero(ids == 1):
            played = 0 if infos["row_kind"][row] == corral.RowKind.RESET else played + 1
            if over[row]:
                ended.append(played)
                played = 0
        again = np.isin(np.arange(4), ids[over]) if mode == "disabled" else np.zeros(4, np.bool_)
        on = [slot for slot in ids if not again[slot]]
        if again.any():
            envs.send_reset(np.flatnonzero(again))
        if on:
            sample = envs.action_space.sample()
            envs.send({name: values[on] for name, values in sample.items()}, on)
    envs.drain()
    envs.close()
    assert len(ended) > 3
    shown = [camera.shown[f"env_1_episode_{k}.mp4"] for k in range(len(ended))]
    assert shown == [list(range(length + 1)) for length in ended]


@pytest.mark.parametrize(
    ("every", "filmed"), [(3, {0, 3, 6}), (lambda k: k in (1, 4), {1, 4})], ids=["int", "function"]
)
def test_the_episodes_that_are_asked_for_are_filmed(
    every: Any, filmed: set[int], camera: Camera, tmp_path: Path
) -> None:
    envs = corral.record(make(1, "same_step", (0,)), tmp_path, every=every)
    ended = play(envs, "same_step", 90)
    envs.close()
    assert len(ended[0]) >= 8
    found = {int(name.split("_")[3].split(".")[0]) for name in camera.shown}
    assert {k for k in found if k < 8} == filmed


def test_what_a_reset_a_failure_or_a_close_cuts_is_called_unfinished(
    camera: Camera, tmp_path: Path
) -> None:
    made = make(2, "next_step", None, fault="error_in_step", of_seed=3, at_step=2)
    envs = corral.record(made, tmp_path)
    envs.action_space.seed(0)
    envs.reset()
    envs.step(envs.action_space.sample())
    envs.reset()
    for _ in range(2):
        envs.step(envs.action_space.sample())
    with pytest.raises(errors.EnvError):
        envs.step(envs.action_space.sample())
    envs.reset()
    state = envs.save_state()
    envs.load_state(state)
    envs.step(envs.action_space.sample())
    envs.reset()
    envs.close()
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {f"env_0_episode_{k}_unfinished.mp4" for k in range(4)}
    assert list(camera.shown.values()) == [[0, 1], [0, 1, 2], [0], [0]]


@pytest.mark.parametrize("policy", ["restart", "mask"])
@pytest.mark.parametrize("mode", MODES)
def test_failures_that_a_policy_deals_with_cut_a_film(
    mode: str, policy: str, camera: Camera, tmp_path: Path
) -> None:
    how = {"fault": "error_in_step", "of_seed": 3, "at_step": 2, "on_failure": policy}
    envs = corral.record(make(1, mode, (0,), **how), tmp_path)
    envs.action_space.seed(0)
    envs.reset()
    for _ in range(3):
        _, _, terminated, truncated, _ = envs.step(envs.action_space.sample())
        if mode == "disabled" and (terminated | truncated)[0]:
            break
    envs.close()
    assert camera.shown["env_0_episode_0.mp4"] == [0, 1, 2]
    assert (tmp_path / "env_0_episode_0_unfinished.mp4").exists()
    assert camera.open == 0


def test_films_change_nothing_of_what_is_played(camera: Camera, tmp_path: Path) -> None:
    for mode in MODES:
        told = []
        for is_filmed in (False, True):
            envs: Any = make(3, mode, (0,) if is_filmed else None)
            if is_filmed:
                envs = corral.record(envs, tmp_path / mode)
            envs.reset()
            envs.action_space.seed(0)
            for _ in range(20):
                try:
                    batch = envs.step(envs.action_space.sample())
                except errors.ResetNeededError:
                    batch = envs.reset()
                told.append(repr(batch[:-1]))
            envs.close()
        assert told[:20] == told[20:]


def test_a_later_run_replaces_no_film(camera: Camera, tmp_path: Path) -> None:
    for first in (0, 1):
        envs = corral.record(make(2, "next_step", None), tmp_path, every=100, slots=(0, 1))
        play(envs, "next_step", 15)
        envs.close()
        for slot in (0, 1):
            assert (tmp_path / f"env_{slot}_episode_{first}.mp4").exists()


class Broken(Camera):
    """An encoder that breaks where it is told to."""

    def __init__(self, where: str) -> None:
        super().__init__()
        self.where = where

    def __call__(self, path: Path, fps: float | None = None) -> Any:
        if self.where == "open":
            raise OSError(28, "No space left on device")
        file = super().__call__(path, fps)
        if self.where == "append":
            file.append_data = _full
        if self.where == "close":
            # As ffmpeg: silent, and there is no file.
            file.close = lambda: None
        return file


def _full(frame: Any) -> None:
    raise OSError(28, "No space left on device")


@pytest.mark.parametrize("where", ["open", "append", "close"])
def test_a_film_that_cannot_be_written_is_told_and_nothing_is_lost(
    where: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(video, "open_video", Broken(where))
    plain = make(2, "next_step", None)
    envs = corral.record(make(2, "next_step", None), tmp_path)
    said: list[str] = []
    envs.action_space.seed(0)
    for k in range(30):
        actions = envs.action_space.sample()
        theirs = plain.step(actions) if k else plain.reset()
        try:
            ours = envs.step(actions) if k else envs.reset()
        except errors.VideoError as error:
            ours = error.batch
            said.append(str(error))
        assert repr(ours[:-1]) == repr(theirs[:-1])
    assert len(said) > 1
    assert all(re.search(r"film .* is given up: OSError: ", one) for one in said)
    with contextlib.suppress(errors.VideoError):
        envs.close()
    assert envs.closed
    assert not [path for path in tmp_path.iterdir() if path.suffix == ".mp4"]


def test_a_folder_that_is_gone_is_told_by_the_encoder_that_users_have(tmp_path: Path) -> None:
    envs = corral.record(make(1, "next_step", None), tmp_path / "gone")
    shutil.rmtree(tmp_path / "gone")
    envs.action_space.seed(0)
    said, batches = [], []
    for k in range(20):
        try:
            envs.step(envs.action_space.sample()) if k else envs.reset()
        except errors.VideoError as error:
            said.append(str(error))
            batches.append(error.batch)
    assert said
    assert all(batch is not None for batch in batches)
    assert re.search(r"a film of env 0 is given up: FileNotFoundError: .*gone", said[0])


@pytest.mark.parametrize("format", ["mp4", "gif"])
def test_files_of_both_formats_show_the_episode(format: str, tmp_path: Path) -> None:
    made = corral.make_vec("CartPole-v1", 2, seed=0, render_mode="rgb_array")
    envs = corral.record(made, tmp_path, slots=(1,), every=2, format=format)
    assert isinstance(envs, gymnasium.vector.VectorEnv)
    envs.reset()
    first = made.render([1])[0]  # type: ignore[index]
    shown, over = [first], False
    while not over:
        _, _, terminated, truncated, _ = envs.step(np.array([1, 1]))
        shown.append(made.render([1])[0])  # type: ignore[index]
        over = bool(terminated[1] or truncated[1])
    envs.close()
    (path,) = tmp_path.iterdir()
    assert path.name == f"env_1_episode_0.{format}"
    # A list would ask how many there are, which a stream does not know.
    frames = [frame for frame in imageio.v2.get_reader(path)]
    assert len(frames) == len(shown)
    for frame, expected in zip((frames[0], frames[-1]), (shown[0], shown[-1]), strict=True):
        assert np.abs(np.asarray(frame)[..., :3].astype(int) - expected).mean() < 6


def test_ten_thousand_episodes_keep_no_picture(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Counts the frames that are alive, and the films that are open."""
    alive: set[int] = set()
    most = [0, 0]
    number = iter(range(10**9))

    class File:
        def append_data(self, frame: Any) -> None:
            key = next(number)
            alive.add(key)
            weakref.finalize(frame, alive.discard, key)
            most[0] = max(most[0], len(alive))

        def close(self) -> None:
            most[1] -= 1

    def opened(path: Path, fps: Any = None) -> Any:
        most[1] += 1
        assert most[1] == 1
        path.write_bytes(b"film")
        return File()

    monkeypatch.setattr(video, "open_video", opened)
    monkeypatch.setattr(films._Film, "end", lambda self, is_whole: self._file.close())
    made = make(1, "same_step", (0,), max_episode_steps=1)
    envs = corral.record(made, tmp_path)
    envs.reset()
    actions = made.action_space.sample()
    for _ in range(10_000):
        envs.step(actions)
    assert next(number) == 20_001
    assert most[0] <= 3


class Drawn(gymnasium.Env[Any, Any]):
    """Draws how many steps were played; an episode has three."""

    observation_space = gymnasium.spaces.Box(0, 1, (1,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)
    metadata = {"render_modes": ["rgb_array"]}  # noqa: RUF012
    render_mode = "rgb_array"

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        self.steps = 0
        return np.zeros(1, np.float32), {}

    def step(self, action: Any) -> Any:
        self.steps += 1
        return np.zeros(1, np.float32), 0.0, self.steps == 3, False, {}

    def render(self) -> Any:
        return np.full((4, 4, 3), self.steps, np.uint8)


@pytest.mark.parametrize("how", [{"runner": "serial"}, {"num_workers": 2}], ids=str)
@pytest.mark.parametrize("mode", MODES)
def test_python_envs_are_filmed_too(
    mode: str, how: dict[str, Any], camera: Camera, tmp_path: Path
) -> None:
    slots = [3] if mode == "same_step" else None
    made = corral.from_gymnasium(Drawn, 4, autoreset_mode=mode, final_frames=slots, **how)
    envs = corral.record(made, tmp_path, slots=[3])
    play(envs, mode, 12)
    envs.close()
    for k in (0, 1):
        assert camera.shown[f"env_3_episode_{k}.mp4"] == [0, 1, 2, 3]
    assert set(camera.shown) <= {f"env_3_episode_{k}.mp4" for k in range(5)}


def test_last_pictures_are_told_of_the_envs_that_were_named_alone() -> None:
    made = corral.from_gymnasium(
        Drawn, 4, num_workers=2, autoreset_mode="same_step", final_frames=[2]
    )
    made.reset()
    for _ in range(3):
        infos = made.step(np.zeros(4, np.int64))[-1]
    (frame,) = infos["final_info"]["final_frame"][2]
    assert frame.tolist() == np.full((4, 4, 3), 3).tolist()
    assert infos["final_info"]["_final_frame"].tolist() == [False, False, True, False]
    made.close()


def test_wrong_arguments_are_errors(tmp_path: Path) -> None:
    def error(kind: type[Exception], words: str, envs: Any = None, **how: Any) -> None:
        with pytest.raises(kind, match=words):
            corral.record(make(2, "next_step", None) if envs is None else envs, tmp_path, **how)

    error(errors.ArgumentError, "slots are none", slots=())
    error(errors.ArgumentError, "a slot is 2: it must be at most 1", slots=(2,))
    error(errors.ArgumentTypeError, "slots is a sequence of ints", slots=1)
    error(errors.ArgumentError, "every is 0", every=0)
    error(errors.ArgumentTypeError, "every is an int", every="two")
    error(errors.ArgumentError, "format is 'mp4' or 'gif'", format="avi")
    error(errors.ArgumentError, "fps is 0", fps=0)
    error(errors.ArgumentTypeError, "envs is a corral.VectorEnv", envs=3)
    silent = corral.make_vec(FAULTY, 2)
    error(errors.UnsupportedError, "make them with render_mode", envs=silent)
    error(
        errors.UnsupportedError, r"final_frames=\[0, 1\]", make(2, "same_step", (0,)), slots=(0, 1)
    )
    with pytest.raises(errors.ArgumentError, match="final_frames: there is no env 2: there are 2"):
        make(2, "same_step", (2,))
    with pytest.raises(
        errors.UnsupportedError, match="cannot draw a picture, as final_frames asks"
    ):
        corral.make_vec("testing/Chooser-v0", 2, final_frames=[0])
