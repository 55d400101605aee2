"""What is PyTorch's, by PyTorch itself: `torch_suite.py`, in the venv of `make torch`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.abi import peers, venvs

SUITE = Path(__file__).with_name("torch_suite.py")


@pytest.mark.thorough
def test_policies_and_learners_in_pytorch() -> None:
    done = venvs.run_suite(venvs.fetched(peers.torch), SUITE)
    assert done.returncode == 0, done.stdout + done.stderr


def test_without_pytorch_the_reason_says_how_it_is_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peers, "TORCH", tmp_path / "python")
    with pytest.raises(pytest.skip.Exception, match="`make torch` installs it"):
        venvs.fetched(peers.torch)
