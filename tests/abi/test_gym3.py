"""`to_gym3` and `from_gym3` beside the real gym3: `gym3_suite.py`, run in a venv of its own.

Each test here is the one of that name there.
"""

from __future__ import annotations

import ast
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from tests.abi import peers
from tests.abi.venvs import fetched, run_suite

SUITE = Path(__file__).with_name("gym3_suite.py")
NAMES = [
    node.name
    for node in ast.parse(SUITE.read_text()).body
    if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
]

# One process has the suite's outcomes.
pytestmark = pytest.mark.xdist_group("gym3")


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[tuple[str, str]]]:
    """By test: what became of each of its cases, and what was said of it."""
    report = tmp_path_factory.mktemp("gym3") / "report.xml"
    python = fetched(peers.venv_python, "gym3")
    done = run_suite(python, SUITE, "--junitxml", report)
    assert report.exists(), done.stdout + done.stderr
    found: dict[str, list[tuple[str, str]]] = {}
    for case in ElementTree.parse(report).iter("testcase"):
        trouble = [one for one in case if one.tag in ("failure", "error", "skipped")]
        kind = trouble[0].tag if trouble else "passed"
        said = f"{case.get('name')}\n{trouble[0].text}" if trouble else ""
        found.setdefault(str(case.get("name")).split("[")[0], []).append((kind, said))
    return found


@pytest.mark.parametrize("name", NAMES)
def test_with_gym3(outcomes: dict[str, list[tuple[str, str]]], name: str) -> None:
    assert name in outcomes, "it did not run"
    for kind, said in outcomes[name]:
        if kind == "skipped":
            pytest.skip(said)
        assert kind == "passed", said
