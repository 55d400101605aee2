"""The program of the page of rllib, run by the library itself."""

from __future__ import annotations

import pytest

from tests.trainers import pages


@pytest.mark.thorough
@pytest.mark.timeout(900)
def test_the_program_of_the_page_prints_what_the_page_shows() -> None:
    (program,) = pages.programs("rllib")
    printed = pages.output("rllib", program)
    assert printed.endswith(pages.shown("rllib")[0])
