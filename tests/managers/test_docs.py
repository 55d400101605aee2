"""The programs of `docs/managers.md` run."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs" / "managers.md"
PROGRAMS = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)


@pytest.mark.parametrize("number", range(2))
def test_a_program_of_the_page_runs(number: int) -> None:
    assert len(PROGRAMS) == 2
    done = subprocess.run(
        [sys.executable, "-c", PROGRAMS[number]], capture_output=True, text=True, timeout=200
    )
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    if number == 0:
        names = [line.split()[0] for line in lines]
        assert names == ["SyncSubprocessEnvManager", "AsyncSubprocessEnvManager"] * 2
        # Pushing to where the pole leans holds it up for some 40 steps.
        assert all(20 < float(line.split()[1]) < 80 for line in lines)


def test_the_table_of_keys_has_every_key() -> None:
    from corral.managers import AsyncSubprocessEnvManager

    told = set(re.findall(r"`(\w+)`", "".join(re.findall(r"(?m)^\| (`.*?`) \|", PAGE.read_text()))))
    keys = set(AsyncSubprocessEnvManager.default_config()) - {"cfg_type"}
    assert keys <= told, keys - told
