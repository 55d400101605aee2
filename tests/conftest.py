"""Settings for all tests."""

from __future__ import annotations

import os
import signal
from typing import Any

import pytest
from hypothesis import settings

# The same examples every time, however slow the machine: a failure is a change's, not the day's.
settings.register_profile("corral", deadline=None, derandomize=True)
settings.load_profile("corral")

_RUNS_THE_TESTS = os.getpid()

# A shell starts what runs in its background with Ctrl-C ignored, and programs pass that on.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Stops where pytest-xdist does not keep groups together: the tests of a group share files."""
    if not config.getoption("loadgroup", False):
        return
    for item in items:
        if item.get_closest_marker("xdist_group") and "@" not in item.nodeid:
            raise pytest.UsageError(
                f"pytest {pytest.__version__} ignores the groups of this pytest-xdist: install "
                "the versions that pyproject.toml names"
            )


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[Any]) -> None:
    """Ends a forked child that came out of a test: the child would run the other tests too."""
    if os.getpid() != _RUNS_THE_TESTS:
        why = call.excinfo.getrepr() if call.excinfo else "it returned"
        os.write(2, f"a forked child came out of {item.nodeid}: {why}\n".encode())
        os._exit(70)
