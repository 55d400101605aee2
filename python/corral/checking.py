"""`check_library`: what a shared library offers, and whether it keeps its promises."""

from __future__ import annotations

import dataclasses
import os
import shlex
import sys
from collections.abc import Mapping
from typing import Any

from corral import _native, errors, settings
from corral._examiner import Examiner
from corral.testing import Check, Verdict

_LIBENV = ("version", "make", "get_tensortypes", "set_buffers", "observe", "act", "close")


@dataclasses.dataclass(frozen=True)
class Library:
    """What a library is.

    Attributes:
        path: where it is.
        faces: the interfaces that it has: "corral" (its envs' own), "libenv", "env_c_api".
        envs: the envs that it lists, by id, as `corral.envs` tells them; none of a library that is
            not Corral's.
        spaces: what env or library ("libenv", "env_c_api") shows, takes and tells, by name and
            kind.
        verdicts: how its envs kept their contract.
    """

    path: str
    faces: list[str]
    envs: dict[str, dict[str, Any]]
    spaces: dict[str, dict[str, Any]]
    verdicts: list[Verdict]

    @property
    def passed(self) -> bool:
        """Whether nothing failed."""
        return all(verdict.passed for verdict in self.verdicts)


def faces_of(path: str | os.PathLike[str]) -> list[str]:
    """The interfaces that a library has, by the functions that it exports; none is called.

    Raises:
        LibraryError: for a file that is no shared library.
    """
    exports = set(_native.exports(path))
    faces = []
    if "corral_plugin_entry" in exports:
        faces.append("corral")
    if exports.issuperset(f"libenv_{name}" for name in _LIBENV):
        faces.append("libenv")
    if sum(name.endswith("_connect") for name in exports) == 1:
        faces.append("env_c_api")
    return faces


def check_library(
    path: str | os.PathLike[str],
    *,
    options: Mapping[str, Any] | None = None,
    env: str | None = None,
    steps: int = 200,
    seed_matters: bool = True,
    timeout: float | None = 120.0,
) -> Library:
    """Says what a library has, and plays it, in a process of its own.

    Envs of a library for Corral pass `corral.testing.check_env`, each. Of any other library of
    libenv or EnvCApi the spaces are looked at, and `steps` random steps of 4 envs played, twice,
    in processes of their own. An env that ends its process (a segmentation fault, an abort, an
    exit), gives no answer, or cannot be built fails the check that it was in, and the next one is
    checked.

    Args:
        path: the `.so` file.
        options: for a libenv library, what its `libenv_make` is told; for one of EnvCApi its
            settings; else options of `env`, or of all envs: one that does not know them says so
            in its verdict. `env_id` among them is another word for `env`, as libenv has it.
        env: the one env to be checked, of a library for Corral; all without.
        steps: how many steps each trajectory takes.
        seed_matters: as for `check_env`.
        timeout: seconds that one check of one env may take; None for no limit.

    Raises:
        ArgumentError, ArgumentTypeError: for `steps` that are no int of at least 1, a `timeout`
            that is no positive number, and an `env` of a library that lists none.
        LibraryError: for a file that is no such library, or cannot be loaded.
        UnknownEnvError: for an `env` that it has not.
        UnknownOptionError, OptionValueError: of the one `env` that was asked for.
        CorralError: where a library of libenv or EnvCApi cannot be made with these options.
    """
    asked: dict[str, Any] = {
        "path": settings.file_path("path", path),
        "options": dict(options or {}),
        "steps": settings.whole("steps", steps, sys.maxsize),
    }
    limit = _limit(timeout)
    faces = faces_of(path)
    name = os.fspath(path)
    if not faces:
        raise errors.LibraryError(
            f"{name}: it has the functions of no interface that corral loads: Corral's own "
            "(corral_plugin_entry), libenv (libenv_make and six others), EnvCApi (one function "
            "whose name ends with _connect)"
        )
    if faces[0] == "corral":
        if env is None:
            env = asked["options"].pop("env_id", None)
        asked |= {"env": None if env is None else settings.text("env", env)}
        asked |= {"seed_matters": settings.flag("seed_matters", seed_matters)}
    elif env is not None:
        raise errors.ArgumentError(f"{name} lists no envs: leave out env={env!r}")
    else:
        asked |= {"libenv": faces[0] == "libenv"}
    checked = Library(name, faces, {}, {}, [])
    while not _examine({"face": faces[0], **asked}, checked, limit):
        pass
    return checked


def _limit(timeout: Any) -> float | None:
    if timeout is None:
        return None
    if isinstance(timeout, bool) or not isinstance(timeout, int | float):
        raise errors.ArgumentTypeError(f"timeout is a number of seconds or None, not {timeout!r}")
    if not timeout > 0:
        raise errors.ArgumentError(f"timeout is {timeout}: it must be more than 0 seconds")
    return float(timeout)


def _examine(asked: dict[str, Any], checked: Library, limit: float | None) -> bool:
    """Lets a process check the envs that have no verdict yet, and whether it came to the end."""
    done = [verdict.env for verdict in checked.verdicts]
    doing = subject = ""
    with Examiner({**asked, "done": done}) as examiner:
        for told in examiner.answers(limit):
            if "error" in told:
                kind, message = told["error"]
                raise getattr(errors, kind)(message)
            if "done" in told:
                return True
            checked.envs.update(told.get("envs", {}))
            if "env" in told:
                # A library that lists no envs is called by its path.
                listed = told["env"] in checked.envs
                checked.verdicts.append(Verdict(told["env"] if listed else checked.path))
                subject = told["env"]
            if "spaces" in told:
                checked.spaces[subject] = told["spaces"]
            if "check" in told:
                checked.verdicts[-1].checks.append(Check(**told["check"]))
            doing = told.get("doing", doing)
        ended = examiner.ended(limit)
    if not doing:
        raise errors.LibraryError(f"{checked.path}: as it was loaded, {ended}")
    verdict = checked.verdicts[-1]
    advice = "run the library under a debugger, in a host of its own"
    if verdict.env in checked.envs:
        command = [sys.executable, "-m", "corral", "check", verdict.env, "--load", checked.path]
        advice = f"see where, in one process: gdb --args {shlex.join(command)}"
    verdict.checks.append(Check(doing, False, ended, advice))
    return False
