"""Where the files are that come with the package, for compilers and other languages' hosts."""

from __future__ import annotations

from pathlib import Path

from corral import errors

_PACKAGE = Path(__file__).resolve().parent
_CHECKOUT = _PACKAGE.parents[1]
_REPAIR = "reinstall corral (in a checkout of its repository: run `make build`)"


def libenv_path() -> str:
    """The library with the built-in envs behind libenv's C interface, for hosts without Python.

    Raises:
        MissingFileError: if this corral was built without it.
    """
    return _existing(_PACKAGE / "lib" / "libcorral_envs.so", "the library of built-in envs")


def include_dir() -> str:
    """The folder of C headers: `cc -I$(python -c "import corral; print(corral.include_dir())")`.

    Raises:
        MissingFileError: if this corral was installed without them.
    """
    return _existing(_PACKAGE / "include", "the folder of C headers")


def sources() -> Path:
    """The folder that has the core's sources and the templates, as the repository has them.

    In a checkout that is the checkout, so that what is edited there is what is handed out.

    Raises:
        MissingFileError: if there is neither a checkout nor a copy in the package.
    """
    if (_CHECKOUT / "crates" / "envcore" / "Cargo.toml").is_file():
        return _CHECKOUT
    return Path(_existing(_PACKAGE / "_sources", "the folder of Rust sources"))


def _existing(path: Path, what: str) -> str:
    if not path.exists():
        raise errors.MissingFileError(f"{what} is missing ({path}): {_REPAIR}")
    return str(path)
