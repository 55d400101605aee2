"""Libraries of DeepMind's EnvCApi as a `VectorEnv`: `load_env_c_api`."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from typing_extensions import Unpack

from corral import _native, _worker, errors, libraries
from corral.settings import VecOptions, check, documented, native, text, vector, whole
from corral.vector import VectorEnv

Settings = Mapping[str, Any]

_ISOLATIONS = ("process", "copy", "thread")
_FINALS = ("read", "strict")
# C's int.
_MAX_INT = 2**31 - 1

_REFUSED = {
    "render_mode": "EnvCApi draws no pictures: a library may have an observation that is one",
    "final_frames": "EnvCApi draws no pictures",
    "record": "the episodes of an EnvCApi library cannot be played again from their actions",
}


@documented(_REFUSED)
def load_env_c_api(
    path: str | bytes | os.PathLike[str] | os.PathLike[bytes],
    num_envs: int = 1,
    *,
    connect: str | None = None,
    params: str | os.PathLike[str] | None = None,
    settings: Settings | None = None,
    settings_per_env: Sequence[Settings] | Callable[[int], Settings] | None = None,
    isolation: str = "process",
    num_workers: int | None = None,
    make_timeout: float | None = 60.0,
    final_obs: str = "read",
    steps_per_action: int = 1,
    eagain_limit: float = 10.0,
    max_shape: Mapping[str, Sequence[int]] | None = None,
    **vec_options: Unpack[VecOptions],
) -> VectorEnv:
    """A batch of envs of an EnvCApi library, version 1.4 or 2.0 to 2.2: one that corral exported,
    or that keeps to DeepMind's header.

    The observation space is a Dict of the library's observations by their names, dots and all:
    doubles are a float64 Box, bytes a uint8 Box, a string a Text (bytes that are no UTF-8 are
    surrogates: `text.encode(errors="surrogateescape")`), the integers of version 2.2 Boxes of
    their dtypes. One whose shape changes is an array per env, in a tuple; with `max_shape` it is
    a Box, zeros behind what is there, and `<name>_shape` beside it. The action space is a Dict of
    the library's actions: a Discrete of int64 from its least to its greatest value, a float64 Box
    of shape (), a Text. A continuous action outside of its bounds becomes the nearest within.

    Every episode begins with `start(episode, seed)`. The own episodes of an env are numbered from
    0 since the env was seeded with s: the first has the seed s, the k-th (and the first, where s
    is above 2**31 - 1) the seed `np.random.SeedSequence([s, k]).generate_state(1)[0] >> 1`. The
    episode of index ix is `start(ix, ix)`. Terminated is terminated, Interrupted truncated.

    `infos["events"]` has what happened in the step or the reset: for each env a list of
    `[name, [observations]]`. `VectorEnv.properties(i)` has the library's properties of env i.
    The metadata have `environment_name`, and `fps` where the library says.

    Args:
        path: the library: a file, all of it.
        num_envs: how many envs; each is a context of the library.
        connect: the function that makes contexts; None for the only one whose name ends with
            `_connect`.
        params: the path of the library's own files, for a library whose `connect` takes a struct
            that begins with it (DeepMind Lab's, Lab2D's); None for one that takes none.
        settings: told to each context before it begins: a str as it is, True and False as "true"
            and "false", numbers as Python writes them.
        settings_per_env: those of each env beside `settings`, in a list or from a function of the
            env's number. All envs must have the same spaces.
        isolation: "process" loads the library in worker processes: when it aborts, crashes or
            never comes back, that is an `EnvError` with its last words on stderr. "copy" loads it
            here, a private copy of the file for each context, among links to what lies beside
            it, for libraries that bear one context each; "thread" loads it here once. In both
            what ends the library ends this process.
        num_workers: with "process", among how many processes the envs are divided; None for as
            many as there are cores.
        make_timeout: with "process", seconds that a worker may take to make its contexts, until
            it is ended; None for no limit.
        final_obs: "read": the observations and events of a step that ends an episode are read,
            though the header forbids it; the libraries of DeepMind serve them. "strict": they are
            not; the row repeats the last observation of the running episode, and
            `infos["observation_repeated"]` is True there.
        steps_per_action: for how many steps of the library each action is applied; the rewards
            are added up, and an episode's end ends them. A library that refuses more than one
            step in a call is called so often.
        eagain_limit: seconds for which a `start` may say EAGAIN, until that is a failure.
        max_shape: by name, the greatest shape of an observation whose shape changes.
        **vec_options: as in `corral.make_vec`, but for what is said below:
            {names}.
        num_threads: with "copy" and "thread".
        timeout (None): with "process", seconds for one step or reset; then the worker is ended.

    Raises:
        UnknownOptionError: lists the options that there are.
        ArgumentError, ArgumentTypeError: name what is wrong.
        OptionValueError: for a setting that the library does not take.
        LibraryError: for what is no such library, or makes no context.
        SpaceError: where what the library says of its actions or observations makes no sense.
        UnsupportedError: for what it cannot do.
        EnvError: where it fails.
    """
    check(load_env_c_api, vec_options, _REFUSED)
    library = libraries.absolute("path", path)
    num_envs = whole("num_envs", num_envs, _native.MAX_ENVS)
    for name, value, known in (
        ("isolation", isolation, _ISOLATIONS),
        ("final_obs", final_obs, _FINALS),
    ):
        if value not in known:
            raise errors.ArgumentError(f"{name} is one of {', '.join(known)}, not {value!r}")
    told = _settings(settings, settings_per_env, num_envs)
    keywords: dict[str, Any] = {
        "connect": None if connect is None else text("connect", connect),
        "params": None if params is None else libraries.absolute("params", params),
        "copies": isolation == "copy",
        "strict": final_obs == "strict",
        "steps": whole("steps_per_action", steps_per_action, _MAX_INT),
        "eagain_limit": libraries.seconds("eagain_limit", eagain_limit),
        "max_shape": _shapes(max_shape),
    }
    if isolation != "thread":
        # What is no library needs no worker, and no copy, to find out.
        _native.exports(library)
    if isolation == "process":
        if vec_options.get("num_threads") is not None:
            raise errors.ArgumentError(
                'num_threads is for isolation="copy" and "thread": give num_workers'
            )
        if num_workers is not None:
            num_workers = whole("num_workers", num_workers, num_envs)
        directory = _worker.directory()

        def payload(start: int, stop: int) -> bytes:
            own = told if len(told) == 1 else told[start:stop]
            return _worker.Contexts(library, directory, own, keywords).payload()

        source = libraries.in_workers(library, payload, num_workers, make_timeout)
    else:
        if num_workers is not None:
            raise errors.ArgumentError('num_workers is for isolation="process"')
        source = _native.Source.env_c_api(library, told, **keywords)
    return vector(native(source, num_envs, vec_options), vec_options)


def _settings(common: Any, per_env: Any, num_envs: int) -> list[list[tuple[str, str]]]:
    """The settings of each env, or one list for all."""
    shared = _told("settings", {} if common is None else common)
    if per_env is None:
        return [list(shared.items())]
    if callable(per_env):
        each = [per_env(env) for env in range(num_envs)]
    elif isinstance(per_env, Sequence) and not isinstance(per_env, str | bytes):
        each = list(per_env)
    else:
        raise errors.ArgumentTypeError(
            f"settings_per_env is a list of dicts, or a function that gives them, not {per_env!r}"
        )
    if len(each) != num_envs:
        raise errors.ArgumentError(f"settings_per_env has {len(each)} dicts for {num_envs} envs")
    return [
        list({**shared, **_told(f"settings_per_env, env {env}", own)}.items())
        for env, own in enumerate(each)
    ]


def _told(what: str, given: Any) -> dict[str, str]:
    if not isinstance(given, Mapping):
        raise errors.ArgumentTypeError(f"{what} are a dict, not {given!r}")
    told = {}
    if isinstance(id := given.get("env_id"), str):
        what = f"{id}: {what}"
    for key, value in given.items():
        if not isinstance(key, str):
            raise errors.ArgumentTypeError(f"{what}: keys are strings, not {key!r}")
        told[text(what, key)] = _as_text(what, key, value)
        if "\0" in key or "\0" in told[key]:
            raise errors.OptionValueError(f"{what}: '{key}' has a NUL in it, which ends a C text")
    return told


def _as_text(what: str, key: str, value: Any) -> str:
    if isinstance(value, str):
        return text(f"{what}: '{key}'", value)
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    if isinstance(value, int | float | np.integer | np.floating):
        return repr(value.item() if isinstance(value, np.generic) else value)
    raise errors.OptionValueError(
        f"{what}: '{key}' cannot be {value!r}: EnvCApi takes texts, bools and numbers"
    )


def _shapes(given: Any) -> list[tuple[str, list[int]]]:
    if given is None:
        return []
    if not isinstance(given, Mapping):
        raise errors.ArgumentTypeError(f"max_shape is a dict of shapes by name, not {given!r}")
    shapes = []
    for name, shape in given.items():
        if not isinstance(name, str) or not isinstance(shape, Sequence) or isinstance(shape, str):
            raise errors.ArgumentTypeError(f"max_shape: {name!r}: {shape!r} is no shape by name")
        extents = [whole(f"max_shape of '{name}'", extent, _MAX_INT, 0) for extent in shape]
        shapes.append((name, extents))
    return shapes
