"""Scores of random actions and of good policies, kept in docs/envs/measured.json."""

from __future__ import annotations

import json
from contextlib import closing
from typing import Any

import corral
from corral.cli.policies import Random
from env_pages import policies, sources

FILE = sources.ROOT / "docs" / "envs" / "measured.json"
# Of MiniGrid's many levels fewer are enough; good episodes of the others are long.
_EPISODES, _FEWER = 1000, 200
_OF_FEWER = ("MiniGrid-", "Snake-", "MinAtar-Asterix-", "MinAtar-Seaquest-")
_NUM_ENVS = 50


def known() -> dict[str, Any]:
    """By id, what was measured."""
    found: dict[str, Any] = json.loads(FILE.read_text()) if FILE.exists() else {}
    return found


def missing(texts: dict[str, Any]) -> list[str]:
    """The ids without a score."""
    scored = known()
    return [id for id in texts["ids"] if id not in scored]


def measure(id: str) -> None:
    """Plays an env, and keeps the score."""
    good = policies.of(id)
    played = {"random": _score(id, None), "policy": None if good is None else _score(id, good)}
    FILE.write_text(json.dumps({**known(), id: played}, indent=1, sort_keys=True) + "\n")
    print(id, json.dumps(played), flush=True)


def _score(id: str, good: policies.Good | None) -> dict[str, Any]:
    episodes = _FEWER if id.startswith(_OF_FEWER) else _EPISODES
    config = {} if good is None else good.config
    with closing(corral.make_vec(id, _NUM_ENVS, autoreset_mode="disabled", **config)) as envs:
        policy = Random(envs, 0) if good is None else good.make(id)
        result = corral.evaluate(policy, envs, indices=range(episodes))
    return {
        "mean": round(result.mean, 6),
        "error": round(float(result.returns.std(ddof=1)) / episodes**0.5, 6),
        "episodes": episodes,
        "length": round(float(result.lengths.mean()), 3),
    }
