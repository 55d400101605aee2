"""Rates and ratios for people."""

from __future__ import annotations


def rate(steps_a_second: float, per_call: bool = False) -> str:
    """`4.21 M/s`, or as the time of a step: `237 ns`."""
    if per_call:
        return _scaled(1 / steps_a_second, (("s", 1), ("ms", 1e-3), ("µs", 1e-6), ("ns", 1e-9)))
    return _scaled(steps_a_second, (("G/s", 1e9), ("M/s", 1e6), ("k/s", 1e3), ("/s", 1)))


def ratio(value: float) -> str:
    """`15.2×`"""
    return f"{_three(value)}×"


def _scaled(value: float, units: tuple[tuple[str, float], ...]) -> str:
    name, size = next((unit for unit in units if value >= unit[1]), units[-1])
    return f"{_three(value / size)} {name}"


def _three(value: float) -> str:
    """Three digits that count."""
    return f"{value:.0f}" if value >= 99.5 else f"{value:.1f}" if value >= 9.95 else f"{value:.2f}"
