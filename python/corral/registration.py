"""Gymnasium's registry: what its `make` and `make_vec` call for an id of ours."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import gymnasium

from corral import errors


def register(gymnasium_id: str, id: str, entry: Mapping[str, Any]) -> None:
    """Registers the env `id`, which `corral.envs` tells so of, under another id or its own."""
    gymnasium.register(
        gymnasium_id,
        entry_point="corral.registry:make_for_gymnasium",
        vector_entry_point="corral.registry:make_vec_for_gymnasium",
        reward_threshold=entry["reward_threshold"],
        max_episode_steps=entry["max_episode_steps"],
        kwargs={"corral_id": id},
    )


def register_library(
    entries: Mapping[str, Mapping[str, Any]], *, instead_of: Iterable[str] = ()
) -> None:
    """Registers a library's envs, by id, in place of those of an earlier one: all, or none.

    Raises:
        LibraryError: for what Gymnasium does not register.
    """
    before = dict(gymnasium.registry)
    try:
        for id in (*instead_of, *entries):
            gymnasium.registry.pop(id, None)
        for id, entry in entries.items():
            register(id, id, entry)
    except Exception as error:
        gymnasium.registry.clear()
        gymnasium.registry.update(before)
        raise errors.LibraryError(f"Gymnasium does not register {id!r}: {error}") from error
