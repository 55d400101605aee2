"""Render modes: what envs can be drawn as."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from corral import _native, errors

# What each render mode gives, and the capability that an env needs for it.
_MODES = {"rgb_array": ("pictures", "render"), "ansi": ("text", "ansi")}


def render_modes(native: _native.VecEnv | None = None) -> list[str]:
    """All render modes, or those of some envs."""
    return [mode for mode, (_, cap) in _MODES.items() if native is None or native.can(cap)]


def check_render_mode(native: _native.VecEnv, render_mode: str | None) -> str | None:
    """The mode, where the envs have it.

    Raises:
        ArgumentError: for what is no render mode.
        UnsupportedError: for a mode that the envs do not have.
    """
    if not isinstance(render_mode, str | None) or render_mode not in (None, *_MODES):
        raise errors.ArgumentError(
            f"render_mode is None, 'rgb_array' or 'ansi', not {render_mode!r}"
        )
    modes = render_modes(native)
    if render_mode is not None and render_mode not in modes:
        what, _ = _MODES[render_mode]
        leave = " or ".join(map(repr, (None, *modes)))
        raise errors.UnsupportedError(f"{native.id} draws no {what}: leave render_mode at {leave}")
    return render_mode


def drawn(
    native: _native.VecEnv, render_mode: str, envs: Sequence[int] | None = None
) -> tuple[Any, ...]:
    """What each of `envs` (None: all) looks like."""
    if render_mode == "ansi":
        return native.call("ansi", (), {}, envs)
    return tuple(native.render(None if envs is None else list(envs)))
