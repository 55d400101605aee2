"""The program of a process in which a library is checked: what the library does to its process is
done to this one. `corral.checking` starts it and reads what it tells, a line of JSON each."""

from __future__ import annotations

import dataclasses
import difflib
import json
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from corral import _native, errors, plugins
from corral.draws import Draws
from corral.env_c_api import load_env_c_api
from corral.libenv import load_libenv
from corral.testing import Check, questions
from corral.vector import VectorEnv

Told = dict[str, Any]

_NUM_ENVS = 4


def main() -> None:
    """Checks what the standard input asks for."""
    asked = json.load(sys.stdin.buffer)
    # A library may print: its words are for people.
    with os.fdopen(asked.pop("answers"), "w") as answers:

        def tell(told: Told) -> None:
            answers.write(json.dumps(told, default=repr) + "\n")
            answers.flush()

        tell({"started": True})
        try:
            examine = _plugin if asked.pop("face") == "corral" else _foreign
            for told in examine(**asked):
                tell(told)
            tell({"done": True})
        except errors.CorralError as error:
            tell({"error": [type(error).__name__, str(error)]})
        except KeyboardInterrupt:
            os._exit(130)
    # The library's own end is no part of what is checked.
    os._exit(0)


def _plugin(
    path: str,
    options: dict[str, Any],
    env: str | None,
    steps: int,
    seed_matters: bool,
    done: list[str],
) -> Iterator[Told]:
    """Checks the envs of a library for Corral that are not `done`."""
    namespace = plugins.namespace_of(path)
    ids = plugins.load(path, namespace=namespace)
    entries = plugins.entries()
    yield {"envs": {id: entries[id] for id in ids}}
    for id in ids if env is None else [_named(env, ids)]:
        if id in done:
            continue
        yield {"env": id, "doing": "made"}
        try:
            native = _native.make(plugins.source(id, options), 1, {})
            yield {"spaces": _spaces(native)}
            native.close()
            for name, ask in questions(id, steps, options, seed_matters):
                yield {"doing": name}
                yield {"check": dataclasses.asdict(ask())}
        except errors.CorralError as error:
            if env is not None and isinstance(
                error, errors.UnknownOptionError | errors.OptionValueError
            ):
                raise
            told = Check("made", False, f"{type(error).__name__}: {error}", _mend(error))
            yield {"check": dataclasses.asdict(told)}


def _named(env: str, ids: list[str]) -> str:
    """The one of `ids` that a user means, with its namespace or without."""
    found = next((id for id in ids if env in (id, id.partition("/")[2])), None)
    if found is None:
        names = [id.partition("/")[2] for id in ids]
        near = difflib.get_close_matches(env.rpartition("/")[2], names, n=1)
        hint = f". Did you mean '{near[0]}'?" if near else ""
        raise errors.UnknownEnvError(f"the library has no env {env!r}: {', '.join(ids)}{hint}")
    return found


def _mend(error: errors.CorralError) -> str:
    if isinstance(error, errors.UnknownOptionError | errors.OptionValueError):
        return "give options to one env, by its id (--env, or env=)"
    return "mend `build`, or give the options that the env needs"


def _foreign(
    path: str, options: dict[str, Any], libenv: bool, steps: int, done: list[str]
) -> Iterator[Told]:
    """Checks a library of libenv or EnvCApi."""
    face = "libenv" if libenv else "env_c_api"
    if done:
        return

    def load() -> VectorEnv:
        if libenv:
            return load_libenv(path, _NUM_ENVS, options, isolation="process", debug=True)
        # An env alone in its process: some libraries bear no more.
        return load_env_c_api(path, _NUM_ENVS, settings=options, num_workers=_NUM_ENVS, debug=True)

    yield {"env": face, "doing": "made"}
    envs = load()
    try:
        yield {"spaces": _spaces(envs.native)}
        yield {"doing": "plays"}
        yield {"check": dataclasses.asdict(_plays(envs, load, steps))}
    finally:
        envs.close()


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


def _described(leaf: Any) -> str:
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
                return Check("plays", False, where, "mend the library's space, or what it shows")
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
