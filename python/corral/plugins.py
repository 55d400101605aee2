"""Libraries of environments that others built: `corral.load`, and what is installed."""

from __future__ import annotations

import importlib.metadata
import json
import os
import warnings
from typing import Any

from corral import _native, errors

GROUP = "corral.envs"
"""The entry points of packages that bring a library: `name = "module:function"`, where the
function, without arguments, returns the library's path. `name` comes before the `/` of its ids."""

_loaded: dict[str, _native.Plugin] = {}


def load(path: str | os.PathLike[str], *, namespace: str | None = None) -> list[str]:
    """Loads a library of environments, such as `cargo build --release` makes of a crate with
    `envcore::export_envs!`, or a C compiler of what includes `corral.h`.

    Afterwards `corral.make_vec`, `corral.make`, `corral.envs` and Gymnasium know its envs. A
    library runs in this process and stays loaded; loading another one under the same name puts it
    in the first one's place for envs made from then on.

    Args:
        path: the `.so` file.
        namespace: what comes before the `/` of its ids; None for the library's own name.

    Returns:
        The ids of its envs.

    Raises:
        LibraryError: for a file that is not there, is no such library, or was built for another
            version of Corral; the message says which side is old.
        ArgumentError: for a namespace that is taken.
    """
    plugin = _native.Plugin(path)
    name = plugin.name if namespace is None else namespace
    if not name or "/" in name or name in ("corral", "testing"):
        raise errors.ArgumentError(
            f"{os.fspath(path)}: its envs cannot be called {name!r}/…: give another namespace="
        )
    _loaded[name] = plugin
    ids = list(_entries_of(name))
    from corral import registry

    registry.register_with_gymnasium(ids)
    return ids


def load_installed() -> None:
    """Loads the libraries of all installed packages that have one; one that cannot be loaded is a
    warning."""
    for entry in importlib.metadata.entry_points(group=GROUP):
        if entry.name in _loaded:
            continue
        try:
            load(entry.load()(), namespace=entry.name)
        except Exception as error:
            warnings.warn(
                f"the envs of {entry.name!r} (entry point {entry.value!r}) are not there: {error}",
                stacklevel=2,
            )


def entries() -> dict[str, dict[str, Any]]:
    """The envs of all libraries, by id."""
    return {id: entry for name in _loaded for id, entry in _entries_of(name).items()}


def _entries_of(name: str) -> dict[str, dict[str, Any]]:
    return {
        f"{name}/{entry['id']}": {
            **entry,
            "id": f"{name}/{entry['id']}",
            "options": json.loads(entry["options"]) or {},
        }
        for entry in _loaded[name].entries()
    }


def is_loaded(id: str) -> bool:
    """Whether `id` is of a library's namespace."""
    return id.partition("/")[0] in _loaded and "/" in id


def source(id: str, config: dict[str, Any]) -> _native.Source:
    """The source of an env by id, built-in or a library's.

    Raises:
        UnknownEnvError: lists what there is.
        UnknownOptionError, OptionValueError: as the env says.
    """
    namespace, slash, name = id.partition("/")
    if not slash or namespace not in _loaded:
        try:
            return _native.Source.builtin(id, config)
        except errors.UnknownEnvError as error:
            if not slash or namespace in ("corral", "testing"):
                raise
            known = ", ".join(sorted(_loaded)) or "none"
            raise errors.UnknownEnvError(
                f"unknown env '{id}': no library called '{namespace}' is installed or loaded "
                f"(there are: {known}); corral.load(path) loads one"
            ) from error
    return _native.Source.plugin(_loaded[namespace], namespace, name, config)
