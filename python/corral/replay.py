"""Failures seen again: plays the files that `make_vec(…, record="dir")` leaves."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from corral import _native, errors, plugins, settings
from corral.settings import VecOptions, file_path


@dataclass(frozen=True)
class ReplayStep:
    """One row of a replayed episode.

    Attributes:
        step: how many steps it took; 0 for the episode's first observation.
        action: what led here, as plain Python data; None for a first observation.
        observation, reward, terminated, truncated, info: as `corral.Env.step` returns them; of a
            first observation the reward is 0.
        frame: `uint8 (height, width, 3)`, where frames were asked for.
    """

    step: int
    action: Any
    observation: Any
    reward: float
    terminated: bool
    truncated: bool
    info: dict[str, Any]
    frame: npt.NDArray[np.uint8] | None


class Replay:
    """A failure that was recorded; iterating plays it again, up to the call that failed.

    Attributes:
        path: the file.
        env: the env's id.
        config: its options.
        corral: the version that recorded it.
        recorded: the failure, as it was reported.
        begin: how the failing episode began: "own", {"seed": …} or {"index": …}.
        lead_in: calls before the failing episode, which are played without being shown: they lead
            from the seed or the saved state where the recording starts to the episode's begin.
        first_step: the first step of the episode that is recorded: not 0 only where its actions
            alone were more than a recorder keeps.
        num_steps: how many steps of it were recorded before the failing call.
        last_action: the failing step's action, as plain Python data; None where no step failed.
        error: after playing, the error that ended it; None where nothing failed.
        reproduced: after playing, whether that is the recorded failure; None before.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        frames: bool = False,
        before_failure: Callable[[], object] | None = None,
    ) -> None:
        self.path = file_path("path", path)
        self._recording = _native.Recording(self.path)
        head = json.loads(self._recording.head)
        why = _fault(head, self._recording.num_calls)
        if why is not None:
            raise errors.StateError(f"{self.path} is no recording: {why}")
        self._head = head
        self._frames = frames
        self._before_failure = before_failure
        self.env: str = head["env"]
        self.config: dict[str, Any] = head["config"] or {}
        self.corral: str = head["corral"]
        failure = head["failure"]
        self.begin: Any = failure["begin"]
        self.recorded = errors.SlotFailure(
            slot=failure["slot"],
            seed=failure["seed"],
            index=self.begin.get("index") if isinstance(self.begin, dict) else None,
            episode=failure["episode"],
            step=failure["step"],
            action=failure["action"],
            phase=failure["phase"],
            cause=failure["cause"],
            message=failure["message"],
            text=failure["text"],
            replay=self.path,
        )
        self.first_step: int = head["first_step"]
        self.lead_in: int = head["begin_call"] or 0
        last = self._recording.num_calls - 1
        shown = range(self.lead_in + (head["begin_call"] is not None), last)
        self.num_steps = sum(self._action(call) is not None for call in shown)
        self.last_action = self._action(last) if failure["phase"] == "step" else None
        self.error: errors.EnvError | None = None
        self.reproduced: bool | None = None
        self._native: _native.VecEnv | None = None
        self._seconds = 0.0
        self._open()

    def _open(self) -> None:
        """Builds the env; a build that fails as recorded is the replay."""
        head = self._head
        limit = head["max_episode_steps"]
        try:
            options = VecOptions(
                seed=self._recording.seed,
                autoreset_mode=head["autoreset_mode"],
                max_episode_steps=-1 if limit is None else limit,
                action_bounds=head["action_bounds"],
                debug=head.get("debug", False),
                num_threads=1,
            )
            native = settings.native(plugins.source(self.env, self.config), 1, options)
        except errors.EnvError as error:
            self._end(error, last=True)
            return
        if self._frames and not native.can("render"):
            raise errors.UnsupportedError(f"{self.env} draws no pictures: replay it without frames")
        if self._frames and self.recorded.phase == "render":
            raise errors.UnsupportedError(f"{self.env} failed as it drew: replay it without frames")
        native.prepare(self._recording)
        self._native = native

    @property
    def render_fps(self) -> float:
        """Frames a second at which the env looks natural."""
        metadata = {} if self._native is None else self._native.metadata
        return float(metadata.get("render_fps", 30))

    def __iter__(self) -> Iterator[ReplayStep]:
        """Plays it; again, if it was played before."""
        if self.reproduced is not None:
            self.error = self.reproduced = None
            self._open()
        native, begin_call = self._native, self._head["begin_call"]
        if native is None:
            return
        last, step = self._recording.num_calls - 1, self.first_step
        started = time.monotonic()
        for call in range(last + 1):
            if call == last and self._before_failure is not None:
                self._before_failure()
            started = time.monotonic()
            try:
                result = native.play(self._recording, call)
            except errors.EnvError as error:
                self._end(error, last=call == last)
                return
            if result is None or call < self.lead_in:
                continue
            first = call == begin_call
            # What is reset within the episode keeps it: its observation was seen.
            if self._recording.is_reset(call) and not first:
                continue
            step += not first
            yield self._row(native, call, 0 if first else step, result, first)
        self._end(None, last=True)
        self._seconds = time.monotonic() - started

    def _row(
        self, native: _native.VecEnv, call: int, step: int, result: tuple[Any, ...], first: bool
    ) -> ReplayStep:
        frame = native.render()[0] if self._frames else None
        observation, info = result[0], result[-1]
        if first:
            return ReplayStep(step, None, observation, 0.0, False, False, info, frame)
        reward, terminated, truncated = result[1:4]
        action = self._action(call)
        return ReplayStep(step, action, observation, reward, terminated, truncated, info, frame)

    def _end(self, error: errors.EnvError | None, last: bool) -> None:
        self.error, self.reproduced = error, False
        if error is not None and last:
            failure = error.failures[0]
            self.reproduced = self._recording.is_of(failure.phase, failure.cause, failure.message)
        if self._native is not None:
            self._native.close()
            self._native = None

    def _action(self, call: int) -> Any:
        text = self._recording.call(call)
        return None if text is None else json.loads(text).get("step")

    def verdict(self) -> str:
        """What came of it, in words."""
        if self.reproduced is None:
            return "not played yet"
        if self.reproduced:
            return "failed again, as recorded"
        if self.error is not None:
            return "failed in another way than recorded: " + self.error.failures[0].text
        if self.recorded.cause == "silence":
            return f"came back after {self._seconds:.3g} s: a replay sets no time limit"
        return "did not fail: the fault depends on something outside the recording, or is mended"

    def __repr__(self) -> str:
        return f"corral.Replay({self.path!r}: {self.recorded.text.splitlines()[0]})"


def _fault(head: dict[str, Any], num_calls: int) -> str | None:
    """What is wrong with a recording that the native half could read."""
    if not isinstance(head["config"], dict | None):
        return f"its config is {head['config']!r}, where options by name belong"
    if num_calls == 0:
        return "its calls are none, where the one that failed is the last"
    if not head["failure"]["text"].strip():
        return "its failure has no text"
    return None


def replay(
    path: str | os.PathLike[str],
    *,
    frames: bool = False,
    before_failure: Callable[[], object] | None = None,
) -> Replay:
    """A failure that `make_vec(…, record="dir")` recorded, ready to be played again.

    ```python
    again = corral.replay("failures/CartPole-v1-env3-seed7-episode2-step41.json")
    for step in again:
        print(step.step, step.action, step.observation)
    print(again.verdict(), again.error)
    ```

    Plays in this process, on one env: an env that aborts or hangs does so here, too.

    Args:
        path: the file; a failure's `replay` has it.
        frames: whether every step comes with a picture.
        before_failure: called just before the call that failed, such as `breakpoint`.

    Raises:
        ArgumentError: for a file that cannot be read or is no regular file.
        StateError: for one that is no recording, not all of one, larger than a GiB, of a version
            that cannot be read here, or that says why it cannot be replayed.
        UnknownEnvError, UnknownOptionError, OptionValueError: if env or options are no more.
        UnsupportedError: for frames of an env that draws none.
    """
    return Replay(path, frames=frames, before_failure=before_failure)
