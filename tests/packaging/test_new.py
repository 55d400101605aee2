"""`corral new` gives a project that builds, and whose envs Corral plays."""

from __future__ import annotations

import compileall
import importlib.metadata
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral import errors, paths, scaffold

ROOT = Path(__file__).parents[2]
NAME = "brisk_walk"
# One place for all runs, so that cargo finds again what it has compiled.
WORK = ROOT / "target" / "templates"


def run(
    *command: str | Path, cwd: Path | None = None, **variables: str
) -> subprocess.CompletedProcess[str]:
    environment = {
        **os.environ,
        "CARGO_TARGET_DIR": str(WORK / "build"),
        # Where pip looks for maturin, and the profile that `cargo test` has compiled.
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        "MATURIN_PEP517_ARGS": "--profile dev",
        "PYTHONDONTWRITEBYTECODE": "1",
        **variables,
    }
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done


def corral(*arguments: str | Path, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """The command, as a user gives it."""
    return subprocess.run(
        [sys.executable, "-m", "corral", *arguments], cwd=cwd, capture_output=True, text=True
    )


def tree(folder: Path) -> dict[str, bytes]:
    files = (file for file in folder.rglob("*") if file.is_file())
    return {str(file.relative_to(folder)): file.read_bytes() for file in files}


# One process builds the projects.
pytestmark = pytest.mark.xdist_group("project")
IN_RUST = [kind for kind, parts in scaffold.KINDS.items() if "rust" in parts]
ENV = {"control": "Walk", "grid": "Cave", "pixels": "BallGame", "c": "Line"}


@pytest.fixture(scope="module", params=scaffold.KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def project(kind: str) -> Path:
    """What `corral new` wrote: every kind in one place, so that the core is compiled once."""
    folder, last = WORK / NAME, WORK / "last"
    shutil.rmtree(last, ignore_errors=True)
    if folder.exists():
        folder.rename(last)
    done = corral("new", NAME, "--env", ENV[kind], "--kind", kind, "--path", folder)
    assert done.returncode == 0, done.stderr
    # Cargo goes by files' times: what is as it was last time need not be compiled again.
    for name, text in tree(folder).items():
        old = last / name
        if name.startswith("vendor/") and old.is_file() and old.read_bytes() == text:
            old.replace(folder / name)
    return folder


@pytest.fixture(scope="module")
def wheel(project: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `pip wheel .` made of it."""
    for tool in ("maturin", "cffi", "hatchling"):
        pytest.importorskip(tool, reason="what builds the project is not installed")
    out = tmp_path_factory.mktemp("wheel")
    how = ["--no-deps", "--no-build-isolation", "--wheel-dir", str(out)]
    run(sys.executable, "-m", "pip", "wheel", *how, project)
    (wheel,) = out.glob("*.whl")
    return wheel


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python that has the project installed, beside all that this one has."""
    folder = tmp_path_factory.mktemp("venv")
    venv.create(folder, with_pip=False)
    python = folder / "bin" / "python"
    site = run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").stdout
    # As a line of code, so that an editable install among these is found too.
    line = f"import site; site.addsitedir({sysconfig.get_path('purelib')!r})\n"
    (Path(site.strip()) / "this.pth").write_text(line)
    run(
        sys.executable, "-m", "pip", "--python", python, "install", "--no-deps", "--no-index", wheel
    )
    return python


@pytest.mark.timeout(1200)
def test_the_projects_rust_tests_pass(project: Path, kind: str) -> None:
    if kind not in IN_RUST:
        flags = [
            "-std=c11",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-pedantic",
            "-fsyntax-only",
            "-Ivendor",
        ]
        run("cc", *flags, "src/line.c", cwd=project)
        return
    done = run("cargo", "test", cwd=project)
    assert "4 passed" in done.stdout
    assert "warning" not in done.stderr, done.stderr


@pytest.mark.timeout(1200)
def test_one_wheel_is_for_every_python_and_needs_corral_alone(
    wheel: Path, python: Path, kind: str
) -> None:
    assert wheel.name.startswith(f"{NAME}-0.1.0-py3-none-")
    code = f"import sys, {NAME} as it; print('cffi' in sys.modules); print(it.library())"
    cffi, library = run(python, "-c", code).stdout.splitlines()
    assert cffi == "False"
    assert Path(library).read_bytes().startswith(b"\x7fELF")
    with zipfile.ZipFile(wheel) as packed:
        names = packed.namelist()
        (metadata,) = (name for name in names if name.endswith(".dist-info/METADATA"))
        told = packed.read(metadata).decode()
    required = re.findall(r"(?m)^Requires-Dist: (.*)$", told)
    # Maturin wants cffi named, for a Python that nobody has.
    assert [one for one in required if not one.startswith("cffi ;")] == [
        f"corral>={importlib.metadata.version('corral')}"
    ]
    assert "License-Expression: MIT" in told
    licences = [name for name in names if name.endswith("LICENSE")]
    assert len(licences) == (2 if kind in IN_RUST else 1)


@pytest.mark.timeout(1200)
def test_its_python_tests_pass_and_a_policy_learns(project: Path, python: Path) -> None:
    done = run(python, "-m", "pytest", "-p", "no:cacheprovider", cwd=project)
    assert "3 passed" in done.stdout


@pytest.mark.timeout(1200)
def test_its_envs_are_found_by_name_and_told_with_their_options(python: Path, kind: str) -> None:
    id = f"{NAME}/{ENV[kind]}-v0"
    code = f"import corral, json; print(corral.make_vec({id!r}, 8).num_envs)"
    code += f"; print(json.dumps(corral.envs()[{id!r}]['option_docs']))"
    made, docs = run(python, "-c", code).stdout.splitlines()
    assert made == "8"
    options = json.loads(docs)
    assert all("meaning" in option for option in options.values())
    first = {"control": "wind", "grid": "size", "pixels": "speed", "c": "length"}[kind]
    assert {"low", "high"} <= set(options[first])


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("kind", ["grid"], indirect=True)
def test_the_guides_python_runs_on_what_it_walks_through(python: Path, tmp_path: Path) -> None:
    page = (ROOT / "docs" / "writing-an-env.md").read_text().replace("my_env", NAME)
    blocks = re.findall(r"(?ms)^```python\n(.*?)^```$", page)
    assert len(blocks) >= 3
    for block in blocks:
        run(python, "-c", block, cwd=tmp_path)


def test_nothing_of_the_templates_own_names_is_left(project: Path, kind: str) -> None:
    ours = ("vendor/", "docs/")
    own = {name: text for name, text in tree(project).items() if not name.startswith(ours)}
    assert [name for name, text in own.items() if b"my_env" in text or "my_env" in name] == []
    assert b"0.0.0" not in own["pyproject.toml"]
    if kind != "control":
        words = re.compile(rb"(?<![A-Za-z])[Ww]alk(?![a-z])")
        assert [
            name for name, text in own.items() if words.search(text.replace(NAME.encode(), b""))
        ] == []
    assert {"LICENSE", "pyproject.toml", ".gitignore", f"python/{NAME}/__init__.py"} <= set(own)


@pytest.mark.thorough
@pytest.mark.timeout(1200)
# One kind suffices: those in Rust share a Cargo.toml, and the one in C compiles no core.
@pytest.mark.parametrize("kind", ["control"], indirect=True)
def test_pip_and_cargo_share_what_they_compile(project: Path, tmp_path: Path) -> None:
    how = ["--no-deps", "--no-build-isolation", "--wheel-dir", str(tmp_path)]
    target = {"CARGO_TARGET_DIR": str(WORK / "shared"), "MATURIN_PEP517_ARGS": ""}
    run(sys.executable, "-m", "pip", "wheel", *how, project, **target)
    done = run("cargo", "build", "--release", cwd=project, **target)
    assert "Compiling envcore" not in done.stderr, done.stderr


@pytest.mark.thorough
@pytest.mark.timeout(2400)
@pytest.mark.parametrize("of", ["grid", "c"])
def test_every_command_of_its_ci_works_with_corrals_wheel(of: str, tmp_path: Path) -> None:
    """In an environment that has nothing; what comes of it is a manylinux wheel that trains."""
    wheels = tmp_path / "corral"
    run(sys.executable, "-m", "pip", "wheel", ROOT, "--no-deps", "--wheel-dir", wheels)
    (ours,) = wheels.glob("corral-*.whl")
    project = tmp_path / "cave"
    assert corral("new", "cave", "--kind", of, "--corral", ours, "--path", project).returncode == 0
    clean = tmp_path / "clean"
    venv.create(clean, with_pip=True)
    tools = os.pathsep.join([str(clean / "bin"), os.environ["PATH"]])
    ci = (project / ".github" / "workflows" / "ci.yml").read_text()
    commands = re.findall(r"(?m)^ +(?:- )?run: (.*)$", ci)
    assert len(commands) >= 6
    variables = {"PATH": tools, "MATURIN_PEP517_ARGS": "", "PYTHONPATH": ""}
    variables["CARGO_TARGET_DIR"] = str(tmp_path / "target")
    for command in commands:
        if not command.startswith("gh release"):
            run("bash", "-ec", command, cwd=project, **variables)
    (released,) = (project / "dist").glob("*.whl")
    assert "manylinux" in released.name
    pip = [clean / "bin" / "pip", "install", "--no-deps", "--force-reinstall"]
    run(*pip, released, cwd=tmp_path, **variables)
    assert "3 passed" in run(clean / "bin" / "pytest", cwd=project, **variables).stdout


def test_rust_finds_the_templates_well_formatted(tmp_path: Path) -> None:
    for kind in IN_RUST:
        scaffold.new("walks", tmp_path / kind, kind=kind)
        run("cargo", "fmt", "--check", cwd=tmp_path / kind)


@pytest.mark.parametrize(
    ("env", "better"),
    [
        ("snake", "Snake"),
        ("Snake-v0", "Snake"),
        ("my_game", "MyGame"),
        ("Env", "EnvEnv"),
        ("2048", "Walk"),
        ("Match", "MatchEnv"),
        ("", "Walk"),
    ],
)
def test_a_bad_name_of_an_env_is_refused_with_a_better_one(
    env: str, better: str, tmp_path: Path
) -> None:
    done = corral("new", "walks", "--env", env, "--path", tmp_path / "walks")
    assert done.returncode == 2
    assert f"'{env}' is no name for an env" in done.stderr
    assert f"Would '{better}' do?" in " ".join(done.stderr.split())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("how", "told"),
    [
        ({"kind": "board"}, "'board' is no kind of env: there are control, grid, pixels, c"),
        ({"wheel": Path("nowhere.whl")}, "is no file: --corral takes the path of Corral's wheel"),
        ({"wheel": Path(__file__)}, "is no wheel of Corral"),
    ],
)
def test_what_cannot_be_is_refused(how: dict[str, Any], told: str, tmp_path: Path) -> None:
    with pytest.raises(errors.ArgumentError, match=re.escape(told)):
        scaffold.new("walks", tmp_path / "walks", **how)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "why", "better"),
    [
        ("my-env", "lower-case letters, digits and _", "my_env"),
        ("MyEnv", "lower-case letters, digits and _", "my_env"),
        ("2048", "lower-case letters, digits and _", "env_2048"),
        ("../walk", "lower-case letters, digits and _", "walk"),
        ("match", "Rust uses that word itself", "match_env"),
        ("lambda", "Python uses that word itself", "lambda_env"),
        ("random", "a module of Python's is called so", "random_env"),
        ("serde", "something that it is built with is called so", "serde_env"),
        ("pip", "a package that may be installed beside it is called so", "pip_env"),
    ],
)
def test_a_bad_name_is_refused_with_a_better_one(
    name: str, why: str, better: str, tmp_path: Path
) -> None:
    with pytest.raises(errors.ArgumentError) as refused:
        scaffold.new(name, tmp_path / name)
    told = str(refused.value)
    assert f"'{name}' is no name for a project" in told
    assert why in told
    assert f"Would '{better}' do?" in told
    assert list(tmp_path.iterdir()) == []


def test_the_command_refuses_a_bad_name(tmp_path: Path) -> None:
    done = corral("new", "my-env", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith("corral: 'my-env' is no name for a project")
    assert list(tmp_path.iterdir()) == []


NEIGHBOURS = (
    "gym gym3 jax matplotlib numpy packaging pip procgen ruff setuptools stable_baselines3 torch "
    "wheel"
)


@pytest.mark.parametrize("name", NEIGHBOURS.split())
def test_a_project_takes_no_other_packages_place(name: str) -> None:
    with pytest.raises(errors.ArgumentError, match=f"Would '{name}_env' do"):
        scaffold.check_name(name)


def test_whatever_corral_depends_on_is_taken() -> None:
    try:
        importlib.metadata.requires("corral")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("corral is run from its sources: nothing says here what it depends on")
    manifest = (ROOT / "pyproject.toml").read_text()
    project = manifest.split("[project]")[1].split("[dependency-groups]")[0]
    lists = re.findall(r"^(?!classifiers)\w+ = \[(.*)\]$", project, re.M)
    names = re.findall(r'"([a-z][a-z0-9-]*)[><=]', " ".join(lists))
    assert {"numpy", "cloudpickle", "typer", "stable-baselines3", "pillow"} <= set(names)
    for name in names:
        with pytest.raises(errors.ArgumentError, match="called so"):
            scaffold.check_name(name.replace("-", "_"))


@given(st.text("aZ_-2é /.", max_size=12))
def test_a_suggested_name_is_a_good_one(name: str) -> None:
    try:
        scaffold.check_name(name)
    except errors.ArgumentError as error:
        scaffold.check_name(str(error).split("Would '")[1].removesuffix("' do?"))


def test_a_folder_that_has_something_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "walk").mkdir()
    (tmp_path / "walk" / "mine.txt").write_text("mine")
    done = corral("new", "walk", cwd=tmp_path)
    assert done.returncode == 2
    assert "the folder walk is not empty" in done.stderr
    assert tree(tmp_path) == {"walk/mine.txt": b"mine"}
    (tmp_path / "file").write_text("")
    with pytest.raises(errors.ArgumentError, match="is a file: give another --path"):
        scaffold.new("walk", tmp_path / "file")


def test_an_empty_folder_will_do(tmp_path: Path) -> None:
    assert corral("new", "walk", "--path", ".", cwd=tmp_path).returncode == 0
    assert (tmp_path / "src" / "lib.rs").is_file()


def test_vendor_writes_the_same_again_and_only_its_own(tmp_path: Path) -> None:
    project = scaffold.new("walk", tmp_path / "walk")
    first = tree(project)
    untouched = project / "vendor" / "envcore" / "src" / "env.rs"
    os.utime(untouched, (1, 1))
    (project / "vendor" / "envcore" / "src" / "gone.rs").write_text("of an older corral")
    (project / "vendor" / "envcore" / "src" / "lib.rs").write_text("changed")
    (project / "vendor" / "other").mkdir()
    (project / "vendor" / "other" / "mine.rs").write_text("mine")
    done = corral("vendor", cwd=project)
    assert done.returncode == 0, done.stderr
    assert tree(project) == {**first, "vendor/other/mine.rs": b"mine"}
    # By files' times cargo sees what to compile.
    assert untouched.stat().st_mtime == 1
    assert (project / "vendor" / "envcore" / "src" / "lib.rs").stat().st_mtime > 1


def test_vendor_refuses_what_is_no_project_of_its_own(tmp_path: Path) -> None:
    done = corral("vendor", cwd=tmp_path)
    assert done.returncode == 2
    assert "has no Cargo.toml: run this in a project's folder, or name one" in done.stderr
    (tmp_path / "vendor").mkdir()
    for manifest in (tmp_path / "Cargo.toml", tmp_path / "vendor" / "Cargo.toml"):
        manifest.write_text("[workspace]\n")
    before = tree(tmp_path)
    done = corral("vendor", tmp_path)
    assert done.returncode == 2
    assert "was not written by corral" in done.stderr
    assert tree(tmp_path) == before


def test_an_installed_corral_writes_what_a_checkout_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("maturin", reason="what builds the wheel is not installed")
    spec = importlib.util.spec_from_file_location(
        "corral_build", ROOT / "tools" / "corral_build.py"
    )
    assert spec is not None
    assert spec.loader is not None
    build = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(build)
    checkout = tree(scaffold.new("walk", tmp_path / "checkout"))
    monkeypatch.setattr(build, "PACKAGE", tmp_path / "corral")
    build.lay_sources()
    # As pip does with what it installs.
    assert compileall.compile_dir(tmp_path / "corral", quiet=1)
    monkeypatch.setattr(paths, "_PACKAGE", tmp_path / "corral")
    monkeypatch.setattr(paths, "_CHECKOUT", tmp_path)
    assert tree(scaffold.new("walk", tmp_path / "installed")) == checkout


def test_what_a_package_lacks_is_an_error_that_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paths, "_PACKAGE", tmp_path)
    monkeypatch.setattr(paths, "_CHECKOUT", tmp_path)
    for function in (paths.libenv_path, paths.include_dir, paths.sources):
        with pytest.raises(errors.MissingFileError, match="run `make build`"):
            function()


@pytest.mark.skipif(shutil.which("rustfmt") is None, reason="rustfmt is not installed")
@pytest.mark.parametrize("env", ["Ab", "OrbitalDockingWithDebris"])
@pytest.mark.parametrize("kind", IN_RUST, indirect=True)
def test_rustfmt_has_nothing_to_say_whatever_the_envs_name_is(
    kind: str, env: str, tmp_path: Path
) -> None:
    folder = scaffold.new("some_project", tmp_path / "p", env=env, kind=kind)
    files = [*folder.glob("src/*.rs"), *folder.glob("tests/*.rs")]
    assert len(files) >= 3
    run("rustfmt", "--check", "--edition", "2024", *files)
