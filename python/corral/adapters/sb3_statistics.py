"""Returns and lengths of episodes, told as Stable-Baselines3's `Monitor` tells them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from stable_baselines3.common.monitor import Monitor

from corral import _native


class Episodes(NamedTuple):
    """Episodes that ended in one step."""

    returns: npt.NDArray[np.float64]
    lengths: npt.NDArray[np.int64]
    seconds: float
    """Since the envs were made."""

    def tell(self, infos: list[dict[str, Any]], counted: Any = None) -> None:
        """Adds `"episode"` to the infos, one for each episode.

        Args:
            counted: returns and lengths, one for each episode, that the vec env has counted itself.
                Without them an env that tells of its episode itself is believed.
        """
        returns, lengths = counted or (self.returns.tolist(), self.lengths.tolist())
        # Monitor rounds so, in a quarter of a microsecond.
        seconds = round(self.seconds, 6)
        for info, episode_return, length in zip(infos, returns, lengths, strict=True):
            if counted is not None or "episode" not in info:
                if not episode_return.is_integer():
                    episode_return = round(episode_return, 6)
                info["episode"] = {"r": episode_return, "l": length, "t": seconds}


class EpisodeStatistics:
    """What becomes `info["episode"]` of a step that ends an episode: {"r": return, "l": length,
    "t": seconds since the envs were made}.

    Args:
        num_envs: how many envs.
        monitors: SB3's wrappers that the envs had, one each, or none. Their files get a line for
            each episode, and their `info_keywords` are told, too.
    """

    def __init__(self, num_envs: int, monitors: Sequence[Monitor] = ()) -> None:
        self._totals = _native.EpisodeTotals(num_envs)
        self._began = time.time()
        self.monitors = monitors

    def begin(self) -> None:
        """All episodes begin anew."""
        self._totals.begin()

    def step(
        self, rewards: Any, terminations: Any, truncations: Any
    ) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.int64], Episodes]:
        """Counts a step of every env; rewards float64, both flags bool, all `(num_envs,)`.

        Returns:
            Which envs' episodes ended, bool `(num_envs,)`; the numbers of these envs; and these
            episodes.
        """
        dones, ended, returns, lengths = self._totals.step(rewards, terminations, truncations)
        return dones, ended, Episodes(returns, lengths, time.time() - self._began)

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
