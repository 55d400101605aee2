"""`check_library`: what a shared library offers, and whether it keeps its promises."""

from __future__ import annotations

import dataclasses
import os
import sys
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from corral import _native, errors, plugins
from corral.draws import Draws
from corral.env_c_api import load_env_c_api
from corral.libenv import load_libenv
from corral.settings import whole
from corral.testing import Check, Verdict, check_env
from corral.vector import VectorEnv

_LIBENV = ("version", "make", "get_tensortypes", "set_buffers", "observe", "act", "close")
_NUM_ENVS = 4


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
    path: str | os.PathLike[str], *, options: Mapping[str, Any] | None = None, steps: int = 200
) -> Library:
    """Says what a library has, and plays it.

    Envs of a library for Corral pass `corral.testing.check_env`, each. Of any other library of
    libenv or EnvCApi the spaces are looked at, and `steps` random steps of 4 envs played, twice,
    in processes of their own.

    Args:
        path: the `.so` file.
        options: for a libenv library, what its `libenv_make` is told; for one of EnvCApi its
            settings; else options of all envs, or of the one that `env_id` among them names.
        steps: how many steps each trajectory takes.

    Raises:
        ArgumentError, ArgumentTypeError: for `steps` that are no int of at least 1.
        LibraryError: for a file that is no such library, or cannot be loaded.
        CorralError: where it cannot be made with these options.
    """
    steps = whole("steps", steps, sys.maxsize)
    given = dict(options or {})
    faces = faces_of(path)
    name = os.fspath(path)
    if "corral" in faces:
        namespace = plugins.namespace_of(path)
        ids = plugins.load(path, namespace=namespace)
        if "env_id" in given and ids:
            # The name that the library's libenv interface has for it.
            ids = [f"{ids[0].partition('/')[0]}/{given.pop('env_id')}"]
        known = plugins.entries()
        checked = Library(name, faces, {id: known[id] for id in ids if id in known}, {}, [])
        for id in ids:
            native = _native.make(plugins.source(id, given), 1, {})
            checked.spaces[id] = _spaces(native)
            native.close()
            verdict = check_env(id, steps=steps, raise_on_failure=False, **given)
            checked.verdicts.append(verdict)
        return checked
    if not faces:
        raise errors.LibraryError(
            f"{name}: it has the functions of no interface that corral loads: Corral's own "
            "(corral_plugin_entry), libenv (libenv_make and six others), EnvCApi (one function "
            "whose name ends with _connect)"
        )
    face = faces[0]

    def load() -> VectorEnv:
        if face == "libenv":
            return load_libenv(path, _NUM_ENVS, given, isolation="process")
        # An env alone in its process: some libraries bear no more.
        return load_env_c_api(path, _NUM_ENVS, settings=given, num_workers=_NUM_ENVS)

    envs = load()
    try:
        spaces = {face: _spaces(envs.native)}
        verdict = Verdict(name, [_plays(envs, load, steps)])
    finally:
        envs.close()
    return Library(name, faces, {}, spaces, [verdict])


def _spaces(native: _native.VecEnv) -> dict[str, Any]:
    leaves = {
        "observation": native.observation_leaves,
        "action": native.action_leaves,
        "info": native.info_leaves,
    }
    return {
        what: {leaf["name"] or "(itself)": _described(leaf) for leaf in inside}
        for what, inside in leaves.items()
    }


def _described(leaf: dict[str, Any]) -> str:
    if leaf["kind"] != "fixed":
        return str(leaf["kind"])
    shape = ", ".join(map(str, leaf["shape"]))
    bounds = "" if leaf.get("low") is None else f" {_bound(leaf['low'])} to {_bound(leaf['high'])}"
    kind = "labels " if leaf.get("discrete") else ""
    return f"{kind}{leaf['dtype']} ({shape}){bounds}"


def _bound(bound: Any) -> str:
    values = np.unique(np.asarray(bound))
    return f"{values[0]}" if len(values) == 1 else f"[{values[0]} … {values[-1]}]"


def _plays(envs: VectorEnv, load: Callable[[], VectorEnv], steps: int) -> Check:
    """Two instances with the same options and actions, held to their spaces and each other."""
    other = load()
    seed = 0 if envs.native.can("seed") else None
    try:
        draw = Draws(envs, 0)
        first, again = envs.reset(seed=seed)[0], other.reset(seed=seed)[0]
        same = _is_same(first, again)
        episodes = 0
        for step in range(steps):
            actions = draw()
            ours, theirs = envs.step(actions), other.step(actions)
            if not envs.observation_space.contains(ours[0]):
                where = f"step {step}'s observations are not in the observation space"
                return Check("plays", False, where)
            if not np.isfinite(ours[1]).all():
                return Check("plays", False, f"step {step}'s rewards are {ours[1].tolist()}")
            episodes += int((ours[2] | ours[3]).sum())
            same = same and _is_same(ours[:4], theirs[:4])
    except errors.CorralError as error:
        return Check("plays", False, str(error))
    finally:
        other.close()
    told = "play the same" if same else "play differently (a seed is missing?)"
    return Check(
        "plays",
        True,
        f"{steps} steps of {_NUM_ENVS} envs, {episodes} episodes ended; two instances with the "
        f"same options {told}",
    )


def _is_same(a: Any, b: Any) -> bool:
    if isinstance(a, dict):
        return all(_is_same(a[name], b[name]) for name in a)
    if isinstance(a, tuple):
        return all(map(_is_same, a, b))
    return bool(np.array_equal(a, b))
