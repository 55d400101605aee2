"""A project for one's own envs: `new` writes it, `vendor` brings what is Corral's in it up to date.

A template is a project that could be anybody's, but for its names: `my_env` (the project's), and
`Walk` and `walk` (the env's, as a type and as a file) are replaced wherever they stand, in files
and in paths. Each kind has a folder of its own in `templates/`, beside what several kinds share.

The core is not on crates.io, so its sources go with each project in Rust, in `vendor/`, with the
versions of their dependencies that Corral was tested with, and so do the pages on how an env is
written. A project in C has the header alone.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import json
import keyword
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

from corral import errors, paths

# The folders of `templates/` that make up a project of each kind.
KINDS = {
    "control": ("common", "rust", "control"),
    "grid": ("common", "rust", "grid"),
    "pixels": ("common", "rust", "pixels"),
    "c": ("common", "c"),
}
_PROJECT = "my_env"
_REQUIRED = "corral>=0.0.0"
_NAMES = re.compile(rf"{_PROJECT}|(?<![A-Za-z])(?:Walk|walk)(?![a-z])")
# The pages that say how an env is written.
_GUIDE = ("docs/writing-an-env.md", "docs/how-do-i.md")
# What the templates name themselves.
_USED = (
    "Arc Body Box Caps Clone Config Default Discrete Env Err Error Frame From Leaf None "
    "Observation Ok Option Picture Push Record Result Rng Row Screen Self Some Space Step Streams "
    "String Told ToRow Vec World"
)
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


def new(
    name: str,
    folder: Path | None = None,
    *,
    env: str = "Walk",
    kind: str = "control",
    wheel: Path | None = None,
) -> Path:
    """Writes a project called `name` to `folder`, by default `./name`, and says where it is.

    Args:
        name: of the crate and the Python module.
        folder: where to write.
        env: the env's name, as a type: its id is `name/env-v0`.
        kind: one of `KINDS`.
        wheel: Corral's wheel, which is copied into the project for those who build it elsewhere.

    Raises:
        ArgumentError: for a name that Rust or Python does not take, a kind that there is not, a
            wheel that is not Corral's, or a folder that has something in it. Nothing has been
            written.
        OSError: where it cannot be written. Nothing of it is left.
        MissingFileError: if this corral has no template.
    """
    check_name(name)
    check_env_name(env)
    if kind not in KINDS:
        raise errors.ArgumentError(f"'{kind}' is no kind of env: there are {', '.join(KINDS)}")
    if wheel is not None:
        _check_wheel(wheel)
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
        _write_project(name, env, kind, whole)
        if wheel is not None:
            (whole / "wheels").mkdir()
            shutil.copyfile(wheel, whole / "wheels" / wheel.name)
        if target.is_dir():
            for child in whole.iterdir():
                child.rename(target / child.name)
        else:
            whole.rename(target)
    return target


def _write_project(name: str, env: str, kind: str, target: Path) -> None:
    names = {_PROJECT: name, "Walk": env, "walk": module_of(env)}

    def renamed(text: str) -> str:
        return _NAMES.sub(lambda found: names[found[0]], text)

    for place, source in _template(kind):
        text = source.read_text("utf-8").replace(_REQUIRED, f"corral>={_version()}")
        _write(target / renamed(place), renamed(text).encode())
    if "rust" in KINDS[kind]:
        _write(target / "Cargo.lock", (paths.sources() / "Cargo.lock").read_bytes())
        _format(target)
    vendor(target)


def _format(project: Path) -> None:
    """Has rustfmt break lines and sort names anew, which the env's name may ask for.

    The project builds without it too, so nothing is said where there is no rustfmt.
    """
    files = [*project.glob("src/*.rs"), *project.glob("tests/*.rs")]
    command = ["rustfmt", "--edition", "2024", *map(str, files)]
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL, timeout=60)


def _template(kind: str) -> Iterator[tuple[str, Path]]:
    """The files of a kind: their places in a project, and where they are."""
    for part in KINDS[kind]:
        folder = paths.sources() / "templates" / part
        for source in sorted(folder.rglob("*")):
            # pip compiles all Python that it installs, the template's too.
            if source.is_file() and source.parent.name != "__pycache__":
                yield str(source.relative_to(folder)), source


def _version() -> str:
    """Corral's own, as its core is numbered."""
    workspace = (paths.sources() / "Cargo.toml").read_text("utf-8")
    found = re.search(r'^version = "([^"]*)"', workspace, re.M)
    return "" if found is None else found[1]


def _check_wheel(wheel: Path) -> None:
    """An error where `wheel` is no wheel of Corral's."""
    name = wheel.name
    if not wheel.is_file():
        raise errors.ArgumentError(f"{wheel} is no file: --corral takes the path of Corral's wheel")
    if not (name.startswith("corral-") and name.endswith(".whl") and zipfile.is_zipfile(wheel)):
        raise errors.ArgumentError(
            f"{wheel} is no wheel of Corral: its name would be like corral-{_version()}-….whl"
        )


def module_of(env: str) -> str:
    """The name of an env's file: `CartPole` gives `cart_pole`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", env).lower()


def check_env_name(env: str) -> None:
    """An error, with a name that would do, where `env` is no name for an env's type and file."""
    why = _env_fault(env)
    if why is None:
        return
    words = re.findall(r"[A-Za-z][a-z0-9]*", re.sub(r"-v\d+$", "", env))
    better = "".join(word[0].upper() + word[1:] for word in words) or "Walk"
    if _env_fault(better) is not None:
        better = f"{better}Env"
    raise errors.ArgumentError(f"'{env}' is no name for an env: {why}. Would '{better}' do?")


def _env_fault(env: str) -> str | None:
    if re.fullmatch(r"[A-Z][A-Za-z0-9]*", env) is None:
        return "it is a type in Rust, so letters and digits, a capital first; its id is made of it"
    if env in _USED.split():
        return "the project uses that word itself"
    if module_of(env) in (*_RUST_WORDS.split(), "lib", "main"):
        return "Rust uses the name of its file itself"
    return None


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
    """Writes anew what is Corral's in a project, and says where it is.

    That is, of a crate, the core's sources in `vendor/` and the pages on how an env is written in
    `docs/`; of a project in C, `vendor/corral.h`. What else is in these folders stays, and so does
    the time of files that are right already, by which cargo goes.

    Raises:
        ArgumentError: if `project` is no project for envs, or if its vendor/ is the workspace of
            something else. Nothing has been written.
        MissingFileError: if this corral has no sources.
    """
    target = project / "vendor"
    sources = paths.sources()
    if (project / "hatch_build.py").is_file():
        _write(target / "corral.h", Path(paths.include_dir(), "corral.h").read_bytes())
        return target
    if not (project / "Cargo.toml").is_file():
        raise errors.ArgumentError(
            f"{project.resolve()} has no Cargo.toml: run this in a project's folder, or name one"
        )
    manifest = target / "Cargo.toml"
    if manifest.exists() and not manifest.read_text("utf-8").startswith(_HEAD):
        raise errors.ArgumentError(
            f"{manifest} was not written by corral: move it away, or name another project"
        )
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
    for page in _GUIDE:
        _write(project / page, (sources / page).read_bytes())
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
