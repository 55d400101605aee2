"""Settings for all tests."""

from __future__ import annotations

from hypothesis import settings

# The same examples every time, however slow the machine: a failure is a change's, not the day's.
settings.register_profile("corral", deadline=None, derandomize=True)
settings.load_profile("corral")
