"""A project for one's own envs: `new` writes it, `vendor` brings the core's sources up to date.

The template is a crate that could be anybody's, but for its name: `my_env` wherever it stands, in
files and in paths, is replaced, and nothing else is. The core is not on crates.io, so its sources
go with each project, in `vendor/`, with the versions of their dependencies that Corral was tested
with.
"""

from __future__ import annotations

import importlib.metadata
import json
import keyword
import re
import sys
import tempfile
from pathlib import Path

from corral import errors, paths

_PLACEHOLDER = "my_env"
_CRATES = ("envcore", "envcore-derive")
_HEAD = "# Corral's core, written by `corral vendor`: what is changed here is lost at the next one."
_RUST_WORDS = (
    "abstract alloc as async await become box break const continue core crate do dyn else enum "
    "extern false final fn for gen if impl in let loop macro match mod move mut override priv "
    "proc_macro pub ref return self static std struct super test trait true try type typeof union "
    "unsafe unsized use virtual where while yield"
)
# Crates and modules that a project has beside itself, and its folders.
_TAKEN = (
    "build cffi corral envcore envcore_derive envs examples gymnasium maturin numpy pytest python "
    "serde src target testing tests vendor"
)
# Whose place in an environment a project would take: tools, and what people train with.
_TOOLS = (
    "ale_py attr attrs black brax cargo certifi clippy conda coverage cython dateutil distutils "
    "dm_env envpool flake8 flax flit gym gym3 gymnax hatch hatchling hypothesis ipykernel ipython "
    "isort jax jaxlib joblib jupyter matplotlib minigrid mujoco mypy nox notebook numba optax "
    "optree packaging pandas pettingzoo pgx pip pkg_resources platformdirs pluggy poetry procgen "
    "pufferlib pybind11 pycparser pydantic pygame pygments pylint pyo3 pyparsing pyright ray "
    "requests ruff rustc rustfmt rustup scikit_learn scipy setuptools six sklearn sphinx "
    "stable_baselines3 tensorboard tensorflow tianshou tomli torch torchrl torchvision tox tqdm "
    "triton twine typing_extensions urllib3 uv virtualenv wandb wheel yaml"
)


def new(name: str, folder: Path | None = None) -> Path:
    """Writes a project called `name` to `folder`, by default `./name`, and says where it is.

    Raises:
        ArgumentError: for a name that Rust or Python does not take, or a folder that has something
            in it. Nothing has been written.
        OSError: where it cannot be written. Nothing of it is left.
        MissingFileError: if this corral has no template.
    """
    check_name(name)
    target = Path(name) if folder is None else folder
    if target.exists() and not target.is_dir():
        raise errors.ArgumentError(f"{target} is a file: give another --path")
    if target.is_dir() and any(target.iterdir()):
        raise errors.ArgumentError(
            f"the folder {target} is not empty: give another name or --path, or empty it first"
        )
    room = target if target.is_dir() else target.absolute().parent
    room.mkdir(parents=True, exist_ok=True)
    # A project that is not whole would keep the next one from being written.
    with tempfile.TemporaryDirectory(prefix=".corral-new-", dir=room) as unfinished:
        whole = Path(unfinished) / "project"
        _write_project(name, whole)
        if target.is_dir():
            for child in whole.iterdir():
                child.rename(target / child.name)
        else:
            whole.rename(target)
    return target


def _write_project(name: str, target: Path) -> None:
    template = paths.sources() / "templates" / "env"
    for source in sorted(template.rglob("*")):
        # pip compiles all Python that it installs, the template's too.
        if source.is_file() and source.parent.name != "__pycache__":
            place = str(source.relative_to(template)).replace(_PLACEHOLDER, name)
            text = source.read_text("utf-8").replace(_PLACEHOLDER, name)
            _write(target / place, text.encode())
    _write(target / "Cargo.lock", (paths.sources() / "Cargo.lock").read_bytes())
    vendor(target)


def check_name(name: str) -> None:
    """An error, with a name that would do, where `name` is no name for a crate and a module."""
    why = _fault(name)
    if why is not None:
        raise errors.ArgumentError(f"'{name}' is no name for a project: {why}{_hint(name)}")


def _fault(name: str) -> str | None:
    if re.fullmatch(r"[a-z][a-z0-9_]*", name) is None:
        return "it is a Rust crate and a Python module, so lower-case letters, digits and _"
    if name in _RUST_WORDS.split():
        return "Rust uses that word itself"
    if keyword.iskeyword(name):
        return "Python uses that word itself"
    if name in sys.stdlib_module_names:
        return "a module of Python's is called so"
    if name in _TAKEN.split():
        return "something that it is built with is called so"
    if name in _TOOLS.split() or name in _dependencies():
        return "a package that may be installed beside it is called so"
    return None


def _dependencies() -> set[str]:
    """What Corral itself depends on, with all its extras."""
    try:
        wanted = importlib.metadata.requires("corral") or []
    except importlib.metadata.PackageNotFoundError:
        return set()
    names = (re.match(r"[\w.-]*", one) for one in wanted)
    return {re.sub(r"[-_.]+", "_", found[0]).lower() for found in names if found}


def _hint(name: str) -> str:
    """What is left of `name` when all that is wrong with it goes."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)
    snake = re.sub(r"[^a-z0-9]+", "_", words.lower()).strip("_") or "my_env"
    better = f"env_{snake}" if snake[0].isdigit() else snake
    if _fault(better) is not None:
        better = f"{better}_env"
    return f". Would '{better}' do?"


def vendor(project: Path) -> Path:
    """Writes the core's sources anew to `project/vendor`, and says where they are.

    What else is in that folder stays, and so does the time of files that are right already, by
    which cargo goes.

    Raises:
        ArgumentError: if `project` is no crate, or if its vendor/ is the workspace of something
            else. Nothing has been written.
        MissingFileError: if this corral has no sources.
    """
    if not (project / "Cargo.toml").is_file():
        raise errors.ArgumentError(
            f"{project.resolve()} has no Cargo.toml: run this in a project's folder, or name one"
        )
    target = project / "vendor"
    manifest = target / "Cargo.toml"
    if manifest.exists() and not manifest.read_text("utf-8").startswith(_HEAD):
        raise errors.ArgumentError(
            f"{manifest} was not written by corral: move it away, or name another project"
        )
    sources = paths.sources()
    files = {"Cargo.toml": _manifest((sources / "Cargo.toml").read_text("utf-8")).encode()}
    files["LICENSE"] = (sources / "LICENSE").read_bytes()
    for crate in _CRATES:
        folder = sources / "crates" / crate
        for source in (folder / "Cargo.toml", *folder.glob("src/**/*")):
            if source.is_file():
                files[str(Path(crate) / source.relative_to(folder))] = source.read_bytes()
        for old in (target / crate).rglob("*"):
            if old.is_file() and str(old.relative_to(target)) not in files:
                old.unlink()
    for name, text in files.items():
        _write(target / name, text)
    return target


def _manifest(workspace: str) -> str:
    """The repository's workspace with the vendored crates alone, which inherit fields from it.

    Without its lints: under a newer compiler they would be noise to whoever uses the core.
    """
    sections = dict(re.findall(r"^\[([^\n]*)\]\n(.*?)(?=^\[|\Z)", workspace, re.M | re.S))
    package = sections["workspace.package"].strip()
    lines = [line for line in sections["workspace.dependencies"].splitlines() if _is_vendored(line)]
    dependencies = "\n".join(lines).replace('path = "crates/', 'path = "')
    return f"""{_HEAD}

[workspace]
resolver = "3"
members = {json.dumps(_CRATES)}

[workspace.package]
{package}

[workspace.dependencies]
{dependencies}

[workspace.lints.rust]
warnings = "allow"
"""


def _is_vendored(dependency: str) -> bool:
    return dependency.split(" = ")[0] in _CRATES


def _write(file: Path, text: bytes) -> None:
    if not (file.is_file() and file.read_bytes() == text):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text)
