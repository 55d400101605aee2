"""What the import of corral says under a Gymnasium that is too old."""

from __future__ import annotations

import pytest

from corral import _gymnasium
from tests.abi import peers, venvs


def test_under_gymnasium_0_29_the_import_says_what_to_install() -> None:
    done = venvs.run(venvs.fetched(peers.venv_python, "gymnasium029"), "-c", "import corral")
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("ImportError: corral needs Gymnasium 1.2 or later")
    assert "this is Gymnasium 0.29.1" in last
    assert 'pip install "gymnasium>=1.2"' in last
    assert "Sample-Factory" in last


@pytest.mark.parametrize("version", ["1.2", "1.2.0", "1.10.1", "2.0a1", "1.4.0.dev3"])
def test_versions_from_the_oldest_on_pass(version: str) -> None:
    _gymnasium.check(version)


@pytest.mark.parametrize("version", ["0.29.1", "1.0.0", "1.1.1"])
def test_older_versions_do_not(version: str) -> None:
    with pytest.raises(ImportError, match=f"this is Gymnasium {version}:"):
        _gymnasium.check(version)
