"""Tianshou's collectors and algorithms over corral.compat.envpool."""

from __future__ import annotations

import pytest

from tests.trainers import pages


@pytest.mark.thorough
@pytest.mark.timeout(1800)
def test_dqn_learns():
    (program,) = pages.programs("tianshou")
    first, last = map(float, pages.output("tianshou", program).split()[-2:])
    assert first < 30
    assert last > 100
