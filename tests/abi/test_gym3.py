"""`to_gym3`, `from_gym3` and gym3's host of libenv beside the real gym3.

The files of `SUITES` are run by one pytest, in a venv of its own that has gym3. Each test here is
the one of that name there.
"""

from __future__ import annotations

import ast
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from tests.abi import peers
from tests.abi.venvs import fetched, run_suite

SUITES = [
    Path(__file__).with_name(f"{name}.py")
    for name in ("to_gym3_suite", "from_gym3_suite", "gym3_libenv_suite")
]
TESTS = [
    (suite.stem, node.name)
    for suite in SUITES
    for node in ast.parse(suite.read_text()).body
    if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
]

# One process has the suites' outcomes.
pytestmark = pytest.mark.xdist_group("gym3")


@pytest.fixture(scope="module")
def outcomes(
    tmp_path_factory: pytest.TempPathFactory,
) -> dict[tuple[str, str], list[tuple[str, str]]]:
    """By suite and test: what became of each of its cases, and what was said of it."""
    report = tmp_path_factory.mktemp("gym3") / "report.xml"
    python = fetched(peers.venv_python, "gym3")
    done = run_suite(python, *SUITES, "--junitxml", report)
    assert report.exists(), done.stdout + done.stderr
    found: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for case in ElementTree.parse(report).iter("testcase"):
        trouble = [one for one in case if one.tag in ("failure", "error", "skipped")]
        kind = trouble[0].tag if trouble else "passed"
        said = f"{case.get('name')}\n{trouble[0].text}" if trouble else ""
        # The class name is the suite's module, `tests.abi.to_gym3_suite` for instance.
        suite = str(case.get("classname")).rpartition(".")[2]
        found.setdefault((suite, str(case.get("name")).split("[")[0]), []).append((kind, said))
    return found


@pytest.mark.parametrize(("suite", "name"), TESTS)
def test_with_gym3(
    outcomes: dict[tuple[str, str], list[tuple[str, str]]], suite: str, name: str
) -> None:
    assert (suite, name) in outcomes, "it did not run"
    for kind, said in outcomes[suite, name]:
        if kind == "skipped":
            pytest.skip(said)
        assert kind == "passed", said
