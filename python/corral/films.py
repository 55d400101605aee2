"""`record`: films of some episodes of some envs, while all of them play."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium.vector import AutoresetMode, VectorWrapper

from corral import errors, settings, video
from corral._closing import Closing
from corral.rollouts import Rollout
from corral.vector import RowKind, VectorEnv, check_layout

Every = int | Callable[[int], bool]


def record(
    envs: VectorEnv,
    folder: str | Any,
    *,
    every: Every = 1,
    slots: Sequence[int] = (0,),
    format: str = "mp4",
    fps: float | None = None,
) -> RecordedVectorEnv:
    """The same envs, of which some are filmed: a file for each episode that is chosen.

    ```python
    envs = corral.make_vec("CartPole-v1", 64, render_mode="rgb_array")
    envs = corral.record(envs, "runs/", every=100, slots=(0, 1))
    ```

    `close`, or a `with` block around the result, ends the films of episodes under way.

    A film has an episode's every picture from its first to its last, also where envs reset
    themselves and where `send` and `recv` play some of them. Pictures go to the encoder one by one,
    so that memory stays as it is. Only a filmed env draws, and only while it is filmed.

    Files are called `env_<slot>_episode_<number>.mp4`. The numbers of an env begin after those that
    the folder has, and no file is replaced. An episode that a reset, a failure, `load_state` or
    `close` cuts is kept as `…_unfinished.mp4`, as far as it went. A file appears when it is whole;
    until then its name begins with `.partial_`.

    Args:
        envs: made with `render_mode="rgb_array"`; with `autoreset_mode="same_step"` also with
            `final_frames=slots`, for `render` never shows the last picture there. No longer to be
            stepped themselves.
        folder: made if missing.
        every: films the episodes 0, `every`, 2 `every`, … of each env, counted from here; or a
            function of that count which says whether to film.
        slots: which envs are filmed.
        format: "mp4" or "gif".
        fps: pictures a second; None for what the envs say, or 30.

    Raises:
        ArgumentError, ArgumentTypeError: for arguments that make no sense.
        UnsupportedError: for envs that draw no pictures, or without the encoder's packages.
        VideoError: later, from the call in which a film cannot be written. That call's results are
            in its `batch`; the film is given up, and the envs go on.
    """
    return RecordedVectorEnv(envs, folder, every=every, slots=slots, format=format, fps=fps)


class _Film:
    """One env's episode on its way into a file."""

    def __init__(self, path: Path, fps: float | None) -> None:
        self.path = path
        self._partial = path.with_name(f".partial_{path.name}")
        self._file = video.open_video(self._partial, fps)

    def add(self, frame: Any, env: str) -> None:
        self._file.append_data(video.picture(frame, env))

    def end(self, *, is_whole: bool) -> None:
        """Gives the file its name."""
        path = self.path
        if not is_whole:
            path = path.with_name(f"{path.stem}_unfinished{path.suffix}")
        self._file.close()
        # The encoder says nothing where it could not write.
        if not self._partial.is_file() or not self._partial.stat().st_size:
            raise OSError(f"the encoder wrote nothing to {self._partial}: is the disk full?")
        self._partial.replace(path)

    def discard(self) -> None:
        for step in (self._file.close, lambda: self._partial.unlink(missing_ok=True)):
            # What is wrong with the file was told.
            with contextlib.suppress(Exception):
                step()


class _Filmed:
    """What is known of a filmed env."""

    def __init__(self, slot: int, first: int) -> None:
        self.slot = slot
        self.first = first
        self.episodes = 0
        self.film: _Film | None = None
        # Whether its next row is an autoreset's.
        self.over = False


if TYPE_CHECKING:
    _Wrapper = VectorWrapper[Any, Any, Any, Any, Any]
else:
    # In Gymnasium 1.2 it has no type parameters.
    _Wrapper = VectorWrapper


class RecordedVectorEnv(Closing, _Wrapper):
    """A `corral.VectorEnv` of which some envs are filmed; made by `corral.record`.

    Has all that the envs have.
    """

    def __init__(
        self,
        envs: VectorEnv,
        folder: Any,
        *,
        every: Every = 1,
        slots: Sequence[int] = (0,),
        format: str = "mp4",
        fps: float | None = None,
    ) -> None:
        if not isinstance(envs, VectorEnv):
            raise errors.ArgumentTypeError(f"envs is a corral.VectorEnv, not {envs!r}")
        check_layout(envs)
        super().__init__(envs)
        if format not in video.FORMATS:
            raise errors.ArgumentError(f"format is 'mp4' or 'gif', not {format!r}")
        video.writer(format)
        if not callable(every):
            every = settings.whole("every", every, 2**63 - 1)
        self._every = every
        self._fps = envs.metadata.get("render_fps") if fps is None else _rate(fps)
        numbers = _slots(slots, envs.num_envs)
        if envs.render_mode != "rgb_array":
            raise errors.UnsupportedError(
                f"envs have render_mode={envs.render_mode!r}, which gives no pictures: make them "
                'with render_mode="rgb_array"'
            )
        unseen = sorted(set(numbers) - set(envs.final_frames))
        if envs.autoreset_mode is AutoresetMode.SAME_STEP and unseen:
            raise errors.UnsupportedError(
                "with same_step nobody sees an episode's last picture: make the envs with "
                f"final_frames={numbers}, or with another autoreset_mode"
            )
        self._folder = Path(settings.file_path("folder", folder))
        self._folder.mkdir(parents=True, exist_ok=True)
        self._format = format
        self._filmed = {slot: _Filmed(slot, self._first_number(slot)) for slot in numbers}
        self._trouble: errors.VideoError | None = None

    def _first_number(self, slot: int) -> int:
        names = (path.name for path in self._folder.iterdir())
        of_slot = re.compile(rf"env_{slot}_episode_(\d+)(_unfinished)?\.(mp4|gif)")
        found = [int(match[1]) for name in names if (match := of_slot.fullmatch(name))]
        return max(found, default=-1) + 1

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "env":
            raise AttributeError(name)
        return getattr(self.env, name)

    # What begins, steps and shows envs

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Any, dict[str, Any]]:
        """As `VectorEnv.reset`."""
        mask = (options or {}).get("reset_mask")
        reset = lambda: self.env.reset(seed=seed, options=options)  # type: ignore[arg-type]  # noqa: E731

        def note(batch: Any) -> None:
            failed = batch[-1].get("_failed")
            for slot in self._filmed:
                if mask is None or mask[slot]:
                    lost = failed is not None and failed[slot]
                    self._note(slot, RowKind.FAILED if lost else RowKind.RESET, False, None)

        result: tuple[Any, dict[str, Any]] = self._filming(reset, note)
        return result

    def step(self, actions: Any) -> Any:
        """As `VectorEnv.step`."""
        return self._filming(lambda: self.env.step(actions), self._note_step)

    def recv(
        self,
        timeout: float | None = None,
        *,
        min_rows: int | None = None,
        max_rows: int | None = None,
    ) -> Any:
        """As `VectorEnv.recv`."""
        receive = lambda: self.env.recv(timeout, min_rows=min_rows, max_rows=max_rows)  # type: ignore[attr-defined]  # noqa: E731
        return self._filming(receive, self._note_rows)

    def drain(self, timeout: float | None = None) -> Any:
        """As `VectorEnv.drain`."""
        return self._filming(lambda: self.env.drain(timeout), self._note_rows)  # type: ignore[attr-defined]

    def rollout(self, *args: Any, **kwargs: Any) -> Rollout:
        """Not of envs that are filmed: use `step`."""
        raise errors.UnsupportedError(
            "a rollout steps envs without a look at each step, which a film takes: use step, or "
            "call rollout of the envs without corral.record"
        )

    def render(self, envs: Sequence[int] | None = None) -> Any:
        """As `VectorEnv.render`."""
        return self.env.render(envs)  # type: ignore[call-arg]

    def load_state(self, state: bytes, env: int | None = None) -> None:
        """As `VectorEnv.load_state`; the films of envs that load are cut."""
        self.env.load_state(state, env)  # type: ignore[attr-defined]
        self._cut(None if env is None else [env])
        self._tell(None)

    def close(self, **kwargs: Any) -> None:
        """As `VectorEnv.close`; films of episodes under way are kept as unfinished."""
        try:
            self._cut(None)
        finally:
            self.env.close(**kwargs)
        self._tell(None)

    # Filming

    def _filming(self, call: Callable[[], Any], note: Callable[[Any], None]) -> Any:
        """What `call` gives, of which `note` takes note, also where envs failed in it."""
        try:
            batch = call()
        except errors.EnvError as error:
            if error.batch is not None:
                note(error.batch)
            trouble, self._trouble = self._trouble, None
            # Python 3.10 has no notes.
            if trouble is not None and hasattr(error, "add_note"):
                error.add_note(str(trouble))
            raise
        if batch is not None:
            note(batch)
        self._tell(batch)
        return batch

    def _tell(self, batch: Any) -> None:
        """Raises the error of a film that could not be written."""
        trouble, self._trouble = self._trouble, None
        if trouble is not None:
            trouble.batch = batch
            raise trouble

    def _note_step(self, batch: Any) -> None:
        for slot, filmed in self._filmed.items():
            _, _, terminated, truncated, infos = batch
            kind = RowKind.RESET if filmed.over else RowKind.STEP
            for name, other in (("_failed", RowKind.FAILED), ("restarted", RowKind.RESTARTED)):
                if name in infos and infos[name][slot]:
                    kind = other
            self._note(slot, kind, bool(terminated[slot] or truncated[slot]), _last(infos, slot))

    def _note_rows(self, batch: Any) -> None:
        _, _, terminated, truncated, infos = batch
        for row, (slot, kind) in enumerate(zip(infos["env_id"], infos["row_kind"], strict=True)):
            if slot in self._filmed:
                ended = bool(terminated[row] or truncated[row])
                self._note(int(slot), RowKind(kind), ended, _last(infos, row))

    def _note(self, slot: int, kind: RowKind, ended: bool, last: Any) -> None:
        """Takes note of a row of `slot`; `last` is the last picture of its episode, where told."""
        filmed = self._filmed[slot]
        is_same_step = self.env.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
        if kind is RowKind.KEPT:
            return
        if kind is RowKind.FAILED:
            filmed.over = False
            self._try(filmed, lambda: self._end(filmed, is_whole=False))
        elif kind is RowKind.STEP:
            if is_same_step and ended:
                self._try(filmed, lambda: self._end_with(filmed, last))
                self._try(filmed, lambda: self._begin(filmed))
                return
            self._try(filmed, lambda: self._shoot(filmed))
            if ended:
                self._try(filmed, lambda: self._end(filmed, is_whole=True))
            filmed.over = ended and (self.env.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP)
        else:
            filmed.over = False
            self._try(filmed, lambda: self._end(filmed, is_whole=False))
            self._try(filmed, lambda: self._begin(filmed))

    def _try(self, filmed: _Filmed, work: Callable[[], None]) -> None:
        """Does `work`. Where it fails, the film is given up, and the error told later."""
        try:
            work()
        # An encoder may raise anything.
        except Exception as error:
            film, filmed.film = filmed.film, None
            what = f"the film {film.path}" if film is not None else f"a film of env {filmed.slot}"
            if film is not None:
                film.discard()
            self._trouble = errors.VideoError(
                f"{what} is given up: {type(error).__name__}: {error}"
            )
            self._trouble.__cause__ = error

    def _begin(self, filmed: _Filmed) -> None:
        count = filmed.episodes
        filmed.episodes += 1
        every = self._every
        if not (every(count) if callable(every) else count % every == 0):
            return
        name = f"env_{filmed.slot}_episode_{filmed.first + count}.{self._format}"
        filmed.film = _Film(self._folder / name, self._fps)
        self._shoot(filmed)

    def _shoot(self, filmed: _Filmed) -> None:
        if filmed.film is not None:
            frames: Any = self.env.render([filmed.slot])  # type: ignore[call-arg]
            filmed.film.add(None if frames is None else frames[0], f"env {filmed.slot}")

    def _end_with(self, filmed: _Filmed, last: Any) -> None:
        if filmed.film is not None:
            if not isinstance(last, list | tuple):
                raise errors.UnsupportedError(f"there is no last picture: {last}")
            filmed.film.add(last[0], f"env {filmed.slot}")
        self._end(filmed, is_whole=True)

    def _end(self, filmed: _Filmed, *, is_whole: bool) -> None:
        if filmed.film is not None:
            filmed.film.end(is_whole=is_whole)
            filmed.film = None

    def _cut(self, slots: Sequence[int] | None) -> None:
        for slot, filmed in self._filmed.items():
            if slots is None or slot in slots:
                filmed.over = False
                self._try(filmed, lambda filmed=filmed: self._end(filmed, is_whole=False))  # type: ignore[misc]


def _last(infos: dict[str, Any], row: int) -> Any:
    """The last picture of a row's episode, where its infos have it."""
    told = infos.get("final_info", {}).get("final_frame")
    return None if told is None else told[row]


def _rate(fps: Any) -> float:
    if isinstance(fps, bool) or not isinstance(fps, int | float | np.number):
        raise errors.ArgumentTypeError(f"fps is a number or None, not {fps!r}")
    if not 0 < fps <= 1000:
        raise errors.ArgumentError(f"fps is {fps}: it must be more than 0 and at most 1000")
    return float(fps)


def _slots(slots: Any, num_envs: int) -> list[int]:
    if isinstance(slots, str | bytes) or not isinstance(slots, Sequence | np.ndarray | range):
        raise errors.ArgumentTypeError(f"slots is a sequence of ints, not {slots!r}")
    numbers = sorted({settings.whole("a slot", slot, num_envs - 1, 0) for slot in slots})
    if not numbers:
        raise errors.ArgumentError("slots are none: name an env to be filmed")
    return numbers
