"""Refuses a Gymnasium that is too old, before anything looks for what it does not have."""

from __future__ import annotations

import re

import gymnasium

_OLDEST = (1, 2)


def check(version: str) -> None:
    """Errors for a Gymnasium of this version, where it is too old.

    Raises:
        ImportError: says what to install.
    """
    numbers = tuple(map(int, re.findall(r"\d+", version)[:2]))
    if numbers < _OLDEST:
        oldest = ".".join(map(str, _OLDEST))
        raise ImportError(
            f"corral needs Gymnasium {oldest} or later, and this is Gymnasium {version}: "
            f'pip install "gymnasium>={oldest}". Where another library pins an older one, as '
            "Sample-Factory 2.1 does, give corral and that library a venv each",
            name="gymnasium",
        )


check(gymnasium.__version__)
