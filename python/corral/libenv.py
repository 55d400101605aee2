"""Libraries of the libenv C interface as a `VectorEnv`: `load_libenv`."""

from __future__ import annotations

import os
import reprlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from typing_extensions import Unpack

from corral import _native, _worker, errors, libraries, settings
from corral.settings import VecOptions, documented, whole
from corral.vector import VectorEnv

Options = Mapping[str, Any]
# A name, a dtype and the elements' bytes, as the native half takes them.
Typed = tuple[str, str, bytes]

_ISOLATIONS = ("process", "thread")
# gym3 leaves room for two NULs.
_MAX_NAME_BYTES = 126
_DTYPES = ("uint8", "int32", "float32")
# Functions by these names are called with buffers and in an order that only Corral knows.
_RESERVED = ("libenv_", "corral_libenv_")


_REFUSED = {
    "max_episode_steps": "a libenv library ends its episodes itself",
    "render_mode": "libenv draws no pictures",
    "final_frames": "libenv draws no pictures",
    "num_threads": "give num_workers, for each instance has one worker",
    "thread_affinity_offset": "a libenv library has threads of its own, which nobody else binds",
    "record": "a libenv library's episodes cannot be played again from their actions",
}


@documented(_REFUSED)
def load_libenv(
    path: str | bytes | os.PathLike[str] | os.PathLike[bytes],
    num_envs: int = 1,
    options: Options | Callable[[int], Options] | None = None,
    *,
    isolation: str | None = None,
    num_workers: int = 1,
    make_timeout: float | None = 60.0,
    functions: Mapping[str, str] | None = None,
    **vec_options: Unpack[VecOptions],
) -> VectorEnv:
    """A batch of envs of a libenv library: gym3's, procgen's, or one that corral exported.

    A library that corral did not export tells no more than `first`: that an episode ended, which
    is shown as terminated. So autoreset is "same_step", without `final_obs`; the first `reset`
    shows what is there, and every further one makes the library's envs anew; seeds, indices and
    masks are refused. Spaces are flat Dicts of the library's leaves by their names as they are,
    dots and all: what is real is a Box, a discrete number a Discrete, a uint8 array of 0 to 255 a
    Box, any other array a MultiDiscrete.
    Its infos are declared, and every row has them. One that corral exported can be reset by env,
    seed and index, tells truncated from terminated, and shows `final_obs`.

    Args:
        path: the library: a file, all of it.
        num_envs: how many envs, divided among the instances.
        options: the library's own, in this order, typed as gym3 does: bytes and str (its UTF-8)
            are uint8s, a bool a uint8, an int an int32, a float a float32, arrays of these dtypes
            are what they are. Or a function that gives those of instance w: libraries seed all
            envs of an instance together, so two with equal options play the same levels.
        isolation: "process" loads it in worker processes: when it exits, aborts, crashes or never
            comes back, that is an `EnvError` with its last words on stderr. "thread" loads it
            here, which saves the way between processes, and where all of that ends this process.
            None: "thread" for a library that corral exported, else "process".
        num_workers: how many instances there are, each in a process or a thread of its own.
        make_timeout: with "process", seconds that a worker may take to make its instance, until
            it is ended; None for no limit.
        functions: functions of the library's own, for `VectorEnv.call(name, …)`, each with its
            declaration: a result (`int`, `void` or `bytes`) and arguments without the handle:
            `{"set_gravity": "void (idx, int)"}`. `idx` is the env's number, which is not given in
            the call; `bytes` a `char *` and an `int`, and as a result the two that procgen's
            `get_state` has. `get_state` and `set_state` need no declaration; libenv's own
            functions, `libenv_…` and `corral_libenv_…`, cannot be called.
        **vec_options: as in `corral.make_vec`, but for what is said below:
            {names}.
        autoreset_mode ("same_step"): all that libenv has.
        check_actions (True): False passes on whatever fits the dtype, such as procgen's -1, which
            begins a new episode.
        seed (None): env i begins with `seed + i`; for a library that corral exported.
        timeout (None): with "process", seconds that an instance may take for one call; then its
            worker is ended.
        batch_size (None): with "process", a multiple of the envs of an instance, which step
            together.
        on_failure, max_restarts: the envs of an instance fail together, and what restarts is the
            instance. Where it is known which env failed, the `cause` of the others' failures is
            "instance"; where the instance failed as a whole, that of all. A row that ends so has
            zeros in `infos["final_obs"]`, of a library that shows no other `final_obs` too, and
            True in `infos["_failed"]`. An env whose reset alone fails is told of in
            `infos["_failed"]`, and is to be reset before the next step.

    Raises:
        UnknownOptionError: lists the options that there are.
        ArgumentError, ArgumentTypeError, OptionValueError: name what is wrong.
        LibraryError: for what is no libenv library of version 1.
        UnsupportedError: for what it cannot do.
        SpaceError: where what it says of its spaces makes no sense.
        EnvError: where it fails.
    """
    settings.check(load_libenv, vec_options, _REFUSED)
    library = libraries.absolute("path", path)
    if isolation is None:
        ours = "corral_libenv_reset" in _native.exports(library)
        isolation = "thread" if ours else "process"
    if isolation not in _ISOLATIONS:
        raise errors.ArgumentError(f"isolation is 'process', 'thread' or None, not {isolation!r}")
    num_envs = whole("num_envs", num_envs, _native.MAX_ENVS)
    most = _native.MAX_THREADS if isolation == "thread" else _native.MAX_ENVS
    num_workers = whole("num_workers", num_workers, most)
    if num_workers > num_envs:
        raise errors.ArgumentError(
            f"num_workers is {num_workers}: {num_envs} envs cannot be divided among as many"
        )
    vec_options = {"autoreset_mode": "same_step", **vec_options}
    checks = vec_options.get("check_actions", True)
    if isinstance(checks, bool | np.bool_):
        vec_options.pop("check_actions", None)
        if not checks and vec_options.get("action_bounds", "env") != "env":
            raise errors.ArgumentError("action_bounds checks actions: leave check_actions at True")
        if not checks:
            vec_options["action_bounds"] = "unchecked"
    if isolation == "thread":
        vec_options["num_threads"] = num_workers
    of = options if callable(options) else lambda _: {} if options is None else options
    given = [of(instance) for instance in range(num_workers)]
    instances = [_typed(one) for one in given]
    seeded = vec_options.get("seed") is not None
    declared = _declared(functions)
    if isolation == "thread":
        source = _native.Source.libenv(
            library, num_envs, instances, seeded=seeded, functions=declared
        )
    else:
        # What is no library needs no worker to find out.
        _native.exports(library)
        source = _in_workers(
            library, num_envs, instances, _shown(given[0]), seeded, declared, make_timeout
        )
    return settings.vector(settings.native(source, num_envs, vec_options), vec_options)


def _in_workers(
    library: str,
    num_envs: int,
    instances: list[list[Typed]],
    shown: str,
    seeded: bool,
    functions: list[tuple[str, str]],
    make_timeout: float | None,
) -> _native.Source:
    """`shown` tells people of the options."""
    count, directory = len(instances), _worker.directory()
    options = {num_envs * k // count: instance for k, instance in enumerate(instances)}

    def payload(start: int, stop: int) -> bytes:
        told = _worker.Instance(library, directory, stop - start, options[start], seeded, functions)
        return told.payload()

    return libraries.in_workers(f"{library}{shown}", payload, count, make_timeout)


def _declared(functions: Any) -> list[tuple[str, str]]:
    """The library's own functions, as the native half takes them."""
    if functions is None:
        return []
    if not isinstance(functions, Mapping):
        raise errors.ArgumentTypeError(
            "functions are a dict of declarations by name, such as "
            f'{{"set_gravity": "void (idx, int)"}}, not {functions!r}'
        )
    for name, declaration in functions.items():
        if not isinstance(name, str) or not isinstance(declaration, str):
            raise errors.ArgumentTypeError(
                f"functions: names and declarations are strings, not {name!r}: {declaration!r}"
            )
        if not (name.isascii() and name.isidentifier()):
            raise errors.ArgumentError(f"functions: {name!r} is no name of a C function")
        if name.startswith(_RESERVED):
            raise errors.ArgumentError(
                f"functions: '{name}' is libenv's own, which corral calls in its order: declare "
                "functions that the library has beside these"
            )
        _encoded(declaration, f"functions: the declaration of '{name}'", errors.ArgumentError)
    return list(functions.items())


def _encoded(text: str, what: str, kind: type[errors.CorralError]) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise kind(f"{what} cannot be {text!r}: it has no UTF-8") from None


def _shown(options: Options) -> str:
    """The options of an instance, for messages; nothing where there are none."""
    told = ", ".join(f"{name}={reprlib.repr(value)}" for name, value in options.items())
    return f" (made with the options {told})" if told else ""


def _typed(options: Any) -> list[Typed]:
    """Options as gym3 types them."""
    if not isinstance(options, Mapping):
        raise errors.ArgumentTypeError(
            f"options are a dict, or a function that gives one, not {type(options).__name__}"
        )
    for name in options:
        if not isinstance(name, str):
            raise errors.ArgumentTypeError(f"option names are strings, not {name!r}")
        encoded = _encoded(name, "an option's name", errors.OptionValueError)
        if not name or "\0" in name or len(encoded) > _MAX_NAME_BYTES:
            raise errors.OptionValueError(
                f"option '{name}': a name has from 1 to {_MAX_NAME_BYTES} bytes, none of them NUL"
            )
    id = options.get("env_id")
    env = f"{id}: " if isinstance(id, str) else ""
    return [(name, *_elements(env, name, value)) for name, value in options.items()]


def _of(value: Any) -> np.ndarray[Any, Any] | None:
    """The elements of an option, or None for what libenv has no type for."""
    if isinstance(value, bytes):
        return np.frombuffer(value, np.uint8)
    if isinstance(value, str):
        return np.frombuffer(value.encode(), np.uint8)
    if isinstance(value, bool | np.bool_):
        return np.array(value, np.uint8)
    if isinstance(value, np.ndarray | np.generic) and value.dtype.name in _DTYPES:
        return np.asarray(value, value.dtype.newbyteorder("="))
    if isinstance(value, int | np.integer):
        if not -(2**31) <= int(value) < 2**31:
            # An older NumPy would wrap it.
            raise OverflowError
        return np.array(int(value), np.int32)
    if isinstance(value, float):
        with np.errstate(over="raise"):
            return np.array(value, np.float64).astype(np.float32)
    return None


def _elements(env: str, name: str, value: Any) -> tuple[str, bytes]:
    try:
        elements = _of(value)
    except UnicodeEncodeError:
        raise errors.OptionValueError(
            f"{env}option '{name}' cannot be {value!r}: it has no UTF-8"
        ) from None
    except (OverflowError, FloatingPointError):
        raise errors.OptionValueError(
            f"{env}option '{name}' cannot be {value!r}: libenv's numbers are int32 and float32"
        ) from None
    if elements is None:
        raise errors.OptionValueError(
            f"{env}option '{name}' cannot be {value!r}: libenv takes bytes, str, bool, int, float, "
            "and NumPy's uint8, int32 and float32"
        )
    return elements.dtype.name, elements.tobytes()
