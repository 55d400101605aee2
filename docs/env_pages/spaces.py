"""What envs say of themselves: their leaves and limits, in words for a table."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from typing import Any

import numpy as np

import corral


@dataclass(frozen=True)
class Described:
    """An env as it is made without options."""

    id: str
    about: str
    observation: tuple[tuple[str, ...], ...]
    """Of each leaf its name, dtype, shape and values."""
    action: tuple[tuple[str, ...], ...]
    infos: tuple[tuple[str, ...], ...]
    limit: int | None
    threshold: float | None
    defaults: dict[str, Any]
    options: dict[str, dict[str, Any]]
    """Of each option what `corral.envs` tells: its type, values and meaning."""


def described(id: str) -> Described:
    entry = corral.envs()[id]
    with closing(corral.make_vec(id, 1)) as envs:
        native = envs.native
        return Described(
            id,
            entry["about"],
            *(
                tuple(_leaf(leaf) for leaf in leaves)
                for leaves in (
                    native.observation_leaves,
                    native.action_leaves,
                    native.info_leaves,
                )
            ),
            limit=entry["max_episode_steps"],
            threshold=entry["reward_threshold"],
            defaults=entry["options"],
            options=entry["option_docs"],
        )


def _leaf(leaf: dict[str, Any]) -> tuple[str, ...]:
    name = f"`{leaf['name']}`" if leaf["name"] else ""
    if leaf["kind"] != "fixed":
        return name, leaf["kind"], "", ""
    shape = " × ".join(map(str, leaf["shape"])) or "one number"
    return name, leaf["dtype"], shape, _values(leaf)


def _values(leaf: dict[str, Any]) -> str:
    if leaf["dtype"] == "bool":
        return "false, true"
    low, high = (np.asarray(leaf[side]).reshape(-1) for side in ("low", "high"))
    pairs = list(dict.fromkeys(zip(low.tolist(), high.tolist())))
    if len(pairs) > 1:
        pairs = list(zip(low.tolist(), high.tolist()))
    return "; ".join(_range(*pair) for pair in pairs)


def _range(low: float, high: float) -> str:
    if _is_unbounded(low) and _is_unbounded(high):
        return "any"
    return f"{_number(low)} to {_number(high)}"


def _is_unbounded(value: float) -> bool:
    """Infinite, or the limit of an integer's dtype."""
    return abs(value) >= 2**31 - 1


def _number(value: float) -> str:
    if _is_unbounded(value):
        return "−∞" if value < 0 else "∞"
    return (
        f"{value:.4g}".replace("-", "−")
        if isinstance(value, float)
        else f"{value:,}".replace("-", "−")
    )
