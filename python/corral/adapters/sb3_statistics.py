"""Returns and lengths of episodes, told as Stable-Baselines3's `Monitor` tells them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from stable_baselines3.common.monitor import Monitor


class Ended(NamedTuple):
    """The k episodes that ended in one step: returns and lengths in steps, both `(k,)`."""

    returns: npt.NDArray[np.float64]
    lengths: npt.NDArray[np.int64]
    time: float
    """When the step was made, in seconds since the epoch."""


class EpisodeStatistics:
    """What becomes `info["episode"]` of a step that ends an episode: {"r": return, "l": length,
    "t": seconds since the envs were made}.

    Args:
        monitors: SB3's wrappers that the envs had, one each, or none. Their files get a line for
            each episode, and their `info_keywords` are told, too.
    """

    def __init__(self, monitors: Sequence[Monitor] = ()) -> None:
        self._began = time.time()
        self.monitors = monitors

    def tell(self, infos: list[dict[str, Any]], ended: Ended, by_envs: Any = None) -> None:
        """Adds `"episode"` to the infos, one for each episode that ended in a step.

        Args:
            infos: of the envs whose episodes ended, in the order of `ended`.
            ended: these episodes.
            by_envs: returns and lengths, one for each episode, that the vec env has counted itself.
                Without them an env that tells of its episode itself is believed.
        """
        returns, lengths = by_envs or (ended.returns.tolist(), ended.lengths.tolist())
        # Monitor rounds so, in a quarter of a microsecond.
        seconds = round(ended.time - self._began, 6)
        for info, episode_return, length in zip(infos, returns, lengths, strict=True):
            if by_envs is not None or "episode" not in info:
                if not episode_return.is_integer():
                    episode_return = round(episode_return, 6)
                info["episode"] = {"r": episode_return, "l": length, "t": seconds}

    def log(self, told: list[tuple[int, dict[str, Any]]]) -> None:
        """Has the monitors of envs that ended write the episodes into their files.

        Args:
            told: the envs' numbers, and their infos.

        Raises:
            KeyError: for an info that an env's monitor was to keep and the env has not told.
        """
        now = time.time()
        for env, info in told if self.monitors else ():
            self._write(self.monitors[env], info, now)

    def _write(self, monitor: Monitor, info: dict[str, Any], now: float) -> None:
        episode = info["episode"]
        episode["t"] = round(now - monitor.t_start, 6)
        for key in monitor.info_keywords:
            episode[key] = info[key]
        if monitor.results_writer is not None:
            monitor.results_writer.write_row(episode)

    def close(self) -> None:
        """Closes the monitors' files."""
        for monitor in self.monitors:
            if monitor.results_writer is not None:
                monitor.results_writer.close()
