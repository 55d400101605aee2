"""Returns and lengths of episodes, told as Stable-Baselines3's `Monitor` tells them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from stable_baselines3.common.monitor import Monitor


class EpisodeStatistics:
    """What becomes `info["episode"]` of a step that ends an episode: {"r": return, "l": length,
    "t": seconds since the envs were made}.

    Args:
        num_envs: how many envs.
        monitors: SB3's wrappers that the envs had, one each, or none. Their files get a line for
            each episode, and their `info_keywords` are told, too.
    """

    def __init__(self, num_envs: int, monitors: Sequence[Monitor] = ()) -> None:
        self._returns = np.zeros(num_envs)
        self._steps = 0
        # By env, the number of the step before its episode's first.
        self._before = np.zeros(num_envs, np.int64)
        self._began = time.time()
        self._monitors = monitors

    def begin(self) -> None:
        """All episodes begin anew."""
        self._returns[:] = 0
        self._before[:] = self._steps

    def step(self, rewards: Any) -> None:
        """Counts a step of every env; rewards float64 `(num_envs,)`."""
        self._returns += rewards
        self._steps += 1

    def tell(self, ended: Any, infos: list[dict[str, Any]], counted: Any = None) -> None:
        """Adds `"episode"` to the infos of the envs `ended`, whose next episodes begin.

        Args:
            ended: int64, the numbers of the envs.
            counted: returns `"r"` and lengths `"l"`, `(num_envs,)`, that the vec env has counted
                itself. Without them an env that tells of its episode itself is believed.

        Raises:
            KeyError: for an info that an env's monitor was to keep and the env has not told.
        """
        returns, lengths = self._returns[ended], self._steps - self._before[ended]
        self._returns[ended] = 0
        self._before[ended] = self._steps
        if counted is not None:
            returns, lengths = counted["r"][ended], counted["l"][ended]
        now = time.time()
        seconds = round(now - self._began, 6)
        for info, episode_return, length in zip(infos, returns.tolist(), lengths.tolist()):
            if counted is not None or "episode" not in info:
                # Monitor rounds so, in a quarter of a microsecond.
                if not episode_return.is_integer():
                    episode_return = round(episode_return, 6)
                info["episode"] = {"r": episode_return, "l": length, "t": seconds}
        for env, info in zip(ended, infos, strict=True) if self._monitors else ():
            self._write(self._monitors[env], info, now)

    def _write(self, monitor: Monitor, info: dict[str, Any], now: float) -> None:
        episode = info["episode"]
        episode["t"] = round(now - monitor.t_start, 6)
        for key in monitor.info_keywords:
            episode[key] = info[key]
        if monitor.results_writer is not None:
            monitor.results_writer.write_row(episode)

    def close(self) -> None:
        """Closes the monitors' files."""
        for monitor in self._monitors:
            if monitor.results_writer is not None:
                monitor.results_writer.close()
