"""Libraries of environments that others built: `corral.load`, and what is installed."""

from __future__ import annotations

import copy
import dataclasses
import difflib
import importlib.metadata
import json
import os
import re
import warnings
from typing import Any

from corral import _native, errors, registration
from corral.settings import file_path

GROUP = "corral.envs"
"""The entry points of packages that bring a library: `name = "module:function"`, where the
function, without arguments, returns the library's path. `name` comes before the `/` of its ids."""

# As Gymnasium has them, but for the `:`, before which it looks for a module to import.
_NAMESPACE = re.compile(r"[\w-]+")
_ID = re.compile(r"[\w.-]+")
_OURS = ("corral", "testing", "MinAtar")
_TYPES = {bool: "bool", int: "int", float: "float", str: "text", list: "list", dict: "dict"}


@dataclasses.dataclass(frozen=True)
class _Library:
    plugin: _native.Plugin
    # By id, namespace and all.
    entries: dict[str, dict[str, Any]]


# How much an id must be like another to be a guess at it.
_NEAR = 0.7
_VERSION = re.compile(r"-v\d+$")

# By namespace: only what has passed every check, and is registered with Gymnasium.
_loaded: dict[str, _Library] = {}


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
        LibraryError: for a file that is not there, is no such library, was built for another
            version of Corral (the message says which side is old), or lists envs by ids that
            Gymnasium does not take, or with options that are no JSON object.
        ArgumentError, ArgumentTypeError: for a namespace that is taken, or is no name.
        Nothing has changed then: a library of that name that was loaded before still is.
    """
    if namespace is not None:
        _check_namespace(namespace)
    plugin = _native.Plugin(file_path("path", path))
    name = plugin.name if namespace is None else namespace
    if _fault_of(name) is not None:
        raise errors.LibraryError(
            f"{plugin.path}: its envs cannot be called {name!r}/…: {_fault_of(name)}; give another "
            "namespace="
        )
    entries = _entries_of(plugin, name)
    earlier = _loaded[name].entries if name in _loaded else ()
    registration.register_library(entries, instead_of=earlier)
    _loaded[name] = _Library(plugin, entries)
    return list(entries)


def _check_namespace(namespace: Any) -> None:
    if not isinstance(namespace, str):
        raise errors.ArgumentTypeError(f"namespace is a string or None, not {namespace!r}")
    fault = _fault_of(namespace)
    if fault is not None:
        raise errors.ArgumentError(
            f"envs cannot be called {namespace!r}/…: {fault}; give another namespace="
        )


def _fault_of(namespace: str) -> str | None:
    if namespace in _OURS:
        return "Corral's own are"
    if _NAMESPACE.fullmatch(namespace) is None:
        return "a namespace is made of letters, digits, _ and -"
    return None


def _entries_of(plugin: _native.Plugin, namespace: str) -> dict[str, dict[str, Any]]:
    entries: dict[str, dict[str, Any]] = {}
    for entry in plugin.entries():
        name = entry["id"]
        id = f"{namespace}/{name}"
        if _ID.fullmatch(name) is None:
            raise errors.LibraryError(
                f"{plugin.path}: it has an env called {name!r}: an id is made of letters, digits, "
                "_, - and ., such as Walk-v0"
            )
        if id in entries:
            raise errors.LibraryError(f"{plugin.path}: it has two envs called {name!r}")
        what = f"{plugin.path}: the options of {name!r}"
        options = _json_object(entry["options"], what)
        docs = _json_object(entry["option_docs"], f"{what}, as option_docs tells of them,")
        for option, doc in docs.items():
            if option not in options or not isinstance(doc, dict):
                raise errors.LibraryError(
                    f"{what}: option_docs has an object for each option, not {option!r}: {doc!r}"
                )
        told = {option: _told(docs.get(option, {}), options[option]) for option in options}
        entries[id] = {**entry, "id": id, "options": options, "option_docs": told}
    return entries


def _json_object(text: str, what: str) -> dict[str, Any]:
    try:
        read = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise errors.LibraryError(f"{what} are no JSON: {error}") from error
    if not isinstance(read, dict | None):
        raise errors.LibraryError(f"{what} are no JSON object, but {read!r}")
    return read or {}


def _told(doc: dict[str, Any], default: Any) -> dict[str, Any]:
    """What a library tells of an option; its type by its default where the library is silent."""
    kind = "any" if default is None else _TYPES.get(type(default), type(default).__name__)
    return {"type": kind, "meaning": None, **doc}


def namespace_of(path: str | os.PathLike[str]) -> str | None:
    """The namespace under which the library at `path` is loaded already, if it is."""
    real = os.path.realpath(path)
    paths = ((name, library.plugin.path) for name, library in _loaded.items())
    return next((name for name, one in paths if os.path.realpath(one) == real), None)


def loaded() -> list[tuple[str, str]]:
    """All libraries, `(namespace, path)`. A file may be gone since."""
    return [(name, str(library.plugin.path)) for name, library in _loaded.items()]


def load_installed() -> None:
    """Loads the libraries of all installed packages that have one; one that cannot be loaded is a
    warning."""
    for entry in importlib.metadata.entry_points(group=GROUP):
        if entry.name in _loaded:
            continue
        try:
            load(entry.load()(), namespace=entry.name)
        # Whoever imports corral is not to end with a package that calls sys.exit.
        except (Exception, SystemExit) as error:
            why = repr(error) if isinstance(error, SystemExit) else error
            warnings.warn(
                f"the envs of {entry.name!r} (entry point {entry.value!r}) are not there: {why}",
                stacklevel=2,
            )


def entries() -> dict[str, dict[str, Any]]:
    """The envs of all libraries, by id."""
    return {
        id: copy.deepcopy(entry)
        for library in _loaded.values()
        for id, entry in library.entries.items()
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
    try:
        if slash and namespace in _loaded:
            return _native.Source.plugin(_loaded[namespace].plugin, namespace, name, config)
        made = _native.Source.builtin(id, config)
    except errors.UnknownEnvError as error:
        raise errors.UnknownEnvError(_unknown(id)) from error
    if id.rpartition("/")[2] == "CartPole-v1" and "fast" in config:
        warnings.warn(
            "CartPole-v1: the option 'fast' has no effect and will be gone in Corral 0.3: exact"
            " steps are as fast. Leave it out.",
            FutureWarning,
            stacklevel=4,
        )
    return made


def _near(id: str) -> str:
    """A hint at the id, of whomever, that `id` may stand for; empty if none is near."""
    namespace, slash, name = id.rpartition("/")
    if namespace == "MinAtar":
        name = f"MinAtar-{name}"
    is_ours = namespace in _OURS
    known = [one for one in _ids() if "/" not in one or not is_ours]

    def likeness(one: str) -> float:
        its_namespace, _, its_name = one.rpartition("/")
        by_name = _likeness(_VERSION.sub("", name), _VERSION.sub("", its_name))
        # Some leave the namespace out.
        if is_ours or not slash:
            return by_name
        return (3 * by_name + _likeness(namespace, its_namespace)) / 4

    found = max(known, key=likeness)
    return f" Did you mean '{found}'?" if likeness(found) > _NEAR else ""


def _likeness(one: str, other: str) -> float:
    return difflib.SequenceMatcher(None, one.lower(), other.lower()).ratio()


def _ids() -> list[str]:
    """All ids, those of libraries last."""
    libraries = (id for library in _loaded.values() for id in library.entries)
    return [*(entry["id"] for entry in _native.entries()), *libraries]


def _unknown(id: str) -> str:
    """The message for an id that nobody has: a near one, and which there are where it is sought."""
    namespace, slash, _ = id.partition("/")
    if slash and namespace not in _OURS and namespace not in _loaded:
        libraries = ", ".join(sorted(_loaded)) or "none"
        return (
            f"unknown env '{id}': no library called '{namespace}' is installed or loaded (there "
            f"are: {libraries}); corral.load(path) loads one.{_near(id)}"
        )
    ids = _loaded[namespace].entries if slash and namespace in _loaded else _ids()
    return f"unknown env '{id}'.{_near(id)} There are: {', '.join(ids)}"
