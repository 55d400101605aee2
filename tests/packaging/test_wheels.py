"""The workflows that build wheels are valid, and call what there is."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
TEMPLATES = sorted(ROOT.glob("templates/*/.github/workflows/*.yml"))
OUT = ROOT / "target" / "wheels"


def read(path: Path) -> dict[str, Any]:
    yaml = pytest.importorskip("ruamel.yaml", reason="what reads YAML is not installed")
    told = yaml.YAML(typ="safe").load(path.read_text())
    assert isinstance(told, dict)
    return told


@pytest.mark.parametrize("path", [*WORKFLOWS, *TEMPLATES], ids=lambda path: path.parts[-4])
def test_a_workflow_is_what_githubs_schema_asks_for(path: Path) -> None:
    pytest.importorskip("check_jsonschema", reason="what has the schema is not installed")
    command = [sys.executable, "-m", "check_jsonschema"]
    command += ["--builtin-schema", "vendor.github-workflows", str(path)]
    ran = subprocess.run(command, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout


def test_each_command_of_the_workflows_exists() -> None:
    makefile = (ROOT / "Makefile").read_text()
    called = [
        step["run"]
        for path in WORKFLOWS
        for job in read(path)["jobs"].values()
        for step in job["steps"]
        if "run" in step
    ]
    targets = {word for line in called for word in re.findall(r"^make ([a-z-]+)", line)}
    assert {"wheels", "test-wheel", "test-wheel-oldest", "test-sdist"} <= targets
    for target in targets:
        assert re.search(rf"(?m)^{target}:.*## ", makefile), target
    programs = {word for line in called for word in re.findall(r"(?:tools|\.ci)/[\w.]+", line)}
    assert programs == {"tools/wheels.py", ".ci/run"}
    assert all((ROOT / program).is_file() for program in programs)
    tests = {word for line in called for word in re.findall(r"tests/\S+", line)}
    assert tests
    assert all((ROOT / test).is_file() for test in tests)


def test_what_nobody_has_seen_work_is_called_untested_and_is_not_released() -> None:
    (path,) = (path for path in WORKFLOWS if path.name == "wheels.yml")
    jobs = read(path)["jobs"]
    text = path.read_text()
    untested = set(re.findall(r"(?m)^  # Untested.*\n  ([\w-]+):$", text))
    assert untested == set(jobs) - {"linux-x86_64", "release"}
    assert jobs["release"]["needs"] == "linux-x86_64"
    page = (ROOT / "docs" / "install.md").read_text()
    for platform in ("Linux aarch64", "macOS", "Windows", "CPython without the GIL"):
        assert re.search(rf"(?m)^\| {platform}.*untested", page), platform


@pytest.mark.skipif(not any(OUT.glob("*.whl")), reason="`make wheels` makes what this looks at")
def test_a_wheel_has_what_users_are_promised_and_nothing_of_the_checkout() -> None:
    (wheel,) = OUT.glob("*.whl")
    assert re.fullmatch(
        r"corral-[\d.]+-cp310-abi3-manylinux2014_x86_64\.manylinux_2_17_x86_64\.whl", wheel.name
    )
    with zipfile.ZipFile(wheel) as packed:
        names = packed.namelist()
    assert len(set(names)) == len(names)
    tops = {name.split("/")[0] for name in names}
    (info,) = tops - {"corral"}
    assert info.endswith(".dist-info")
    for name in (
        "corral/_native.abi3.so",
        "corral/_native.pyi",
        "corral/py.typed",
        "corral/lib/libcorral_envs.so",
        "corral/include/corral.h",
        "corral/_sources/crates/envcore/src/lib.rs",
        "corral/_sources/templates/rust/Cargo.toml",
    ):
        assert name in names
    python = {str(path.relative_to(ROOT / "python")) for path in ROOT.glob("python/**/*.py")}
    assert python == {
        name for name in names if name.endswith(".py") and not name.startswith("corral/_sources/")
    }
    assert [name for name in names if "__pycache__" in name or name.endswith(".pyc")] == []


def test_the_source_distribution_has_all_that_a_wheel_is_made_of(tmp_path: Path) -> None:
    pytest.importorskip("maturin", reason="what makes the source distribution is not installed")
    code = "import corral_build as build, sys; print(build.SOURCES); build.build_sdist(sys.argv[1])"
    ran = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT / "tools")},
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr
    (made,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(made) as packed:
        names = {name.partition("/")[2] for name in packed.getnames()}
    assert [name for name in names if name.endswith((".so", ".pyc"))] == []
    needed = {"Cargo.lock", "pyproject.toml", "README.md", "tools/corral_build.py"}
    for name in ast.literal_eval(ran.stdout.splitlines()[0]):
        path = ROOT / name
        files = path.rglob("*") if path.is_dir() else [path]
        needed |= {str(file.relative_to(ROOT)) for file in files if file.is_file()}
    needed = {name for name in needed if "__pycache__" not in name}
    assert len(needed) > 200
    assert needed - names == set()
