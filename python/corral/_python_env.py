"""What the native half asks of a Python env: its spaces as leaves, and how to build it."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Mapping
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from corral import errors
from corral._seen_env import SeenEnv
from corral.spaces import Leaf, Opaque, Tree


def kind_of(space: Any) -> str:
    """The name of the kind of space that it is, old gym's included."""
    known = {"Box", "Discrete", "MultiDiscrete", "MultiBinary", "Dict", "Tuple", "Text"}
    for base in type(space).__mro__:
        if base.__name__ in known and base.__module__.split(".")[0] in ("gymnasium", "gym"):
            return base.__name__
    return "other"


def as_gymnasium(space: Any) -> spaces.Space[Any]:
    """The space as Gymnasium has it, where it is old gym's or anyone's."""
    if isinstance(space, spaces.Space):
        return space
    match kind_of(space):
        case "Box":
            return spaces.Box(space.low, space.high, space.shape, space.dtype)
        case "Discrete":
            return spaces.Discrete(int(space.n), start=int(getattr(space, "start", 0)))
        case "MultiDiscrete":
            return spaces.MultiDiscrete(space.nvec, dtype=space.dtype)
        case "MultiBinary":
            return spaces.MultiBinary(space.n)
        case "Dict":
            return spaces.Dict([(key, as_gymnasium(one)) for key, one in space.spaces.items()])
        case "Tuple":
            return spaces.Tuple([as_gymnasium(one) for one in space.spaces])
        case _:
            return Opaque()


def leaves_of(space: Any) -> tuple[Tree, list[Leaf]]:
    """The leaves of a space, and its tree."""
    leaves: list[Leaf] = []
    return _collect(space, leaves), leaves


def _collect(space: Any, leaves: list[Leaf]) -> Tree:
    kind = kind_of(space)
    if kind == "Dict":
        for key in space.spaces:
            if not isinstance(key, str):
                raise errors.SpaceError(
                    f"the key {key!r} of a Dict space is no string ({type(key).__name__}): leaves "
                    "have names, so give it keys that are strings"
                )
            try:
                key.encode()
            except UnicodeEncodeError:
                raise errors.SpaceError(
                    f"the key {key!r} of a Dict space holds one half of a character, which is no "
                    "text"
                ) from None
        return "dict", [(key, _collect(inner, leaves)) for key, inner in space.spaces.items()]
    if kind == "Tuple":
        return "tuple", [_collect(inner, leaves) for inner in space.spaces]
    leaves.append(_leaf(kind, space))
    return "leaf", len(leaves) - 1


def _leaf(kind: str, space: Any) -> Leaf:
    if kind == "Box":
        return _fixed(space.dtype, space.shape, space.low, space.high, discrete=False)
    if kind == "Discrete":
        start = int(getattr(space, "start", 0))
        dtype = getattr(space, "dtype", None) or np.int64
        return _fixed(dtype, (), start, start + int(space.n) - 1, discrete=True)
    if kind == "MultiDiscrete":
        starts = np.asarray(getattr(space, "start", np.zeros_like(space.nvec)))
        return _fixed(space.dtype, space.shape, starts, starts + space.nvec - 1, discrete=True)
    if kind == "MultiBinary":
        return _fixed(space.dtype, space.shape, 0, 1, discrete=True)
    if kind == "Text" and hasattr(space, "max_length"):
        return {"kind": "text", "max_len": int(space.max_length)}
    return {"kind": "object"}


def _fixed(dtype: Any, shape: Any, low: Any, high: Any, *, discrete: bool) -> Leaf:
    dtype = np.dtype(dtype)
    try:
        known = dtype.kind in "biuf" and dtype.itemsize <= 8 and dtype.isnative
    except TypeError:
        known = False
    if not known:
        return {"kind": "object"}

    def side(values: Any) -> list[int | float]:
        array = np.asarray(values)
        uniform = array.size > 0 and bool((array == array.flat[0]).all())
        flat = array.ravel()[:1] if uniform or array.size == 0 else array.ravel()
        numbers = flat.astype(np.float64 if dtype.kind == "f" else object).tolist()
        return [float(n) if dtype.kind == "f" else int(n) for n in numbers] or [0]

    return {
        "kind": "fixed",
        "dtype": dtype.name,
        "shape": tuple(int(n) for n in shape),
        "low": side(low),
        "high": side(high),
        "discrete": discrete,
    }


@dataclasses.dataclass(frozen=True)
class About:
    """What a sink shows of Python envs that the core does not know."""

    observation_space: Any
    action_space: Any
    metadata: dict[str, Any]
    render_mode: str | None
    spec: Any


class Foreign(gymnasium.Env[Any, Any]):
    """An env of another interface as Gymnasium's.

    Its own random stream is no generator that can be put aside, but the env as a whole.

    Attributes:
        inner: the env of the other interface.
        can_put_aside: whether there is something that indexed episodes can be played on instead.
    """

    inner: Any
    can_put_aside: bool

    def put_aside(self) -> Any:
        """Gives what goes on after the indexed episodes; the next reset has a seed."""
        raise NotImplementedError

    def take_back(self, own: Any) -> None:
        """Goes on with what `put_aside` gave."""
        raise NotImplementedError


@dataclasses.dataclass(frozen=True)
class Parts:
    """One env, taken apart for the native half."""

    env: Any
    step: Any
    reset: Any
    # Whether `reset` takes a seed and options, as Gymnasium's; else old gym's.
    is_modern: bool
    # What no two envs have in common: where the env within the wrappers is.
    identity: int
    # What has a random stream that can be put aside, if it does.
    bare: Any | None


def takes_seed(env: Any) -> bool:
    """Whether `reset` takes a seed; a wrapper that passes on what it is given, as what it wraps."""
    parameters = inspect.signature(env.reset).parameters
    inner = getattr(env, "unwrapped", env)
    passes_on = any(one.kind is one.VAR_KEYWORD for one in parameters.values())
    if "seed" not in parameters and passes_on and inner is not env:
        return takes_seed(inner)
    return "seed" in parameters


def parts_of(env: Any) -> Parts:
    """An env taken apart.

    Raises:
        ArgumentTypeError: for what is no env.
        SpaceError: for an env whose spaces are none.
    """
    if isinstance(env, SeenEnv):
        return dataclasses.replace(parts_of(env.env), env=env, reset=env.reset)
    if isinstance(env, type):
        raise errors.ArgumentTypeError(
            f"the function gave the class {env.__qualname__}, where an env of it belongs: give the "
            "class itself, or call it in the function"
        )
    for name in ("reset", "step", "observation_space", "action_space"):
        if not hasattr(env, name):
            raise errors.ArgumentTypeError(f"{env!r} is no env: it has no {name}")
    for name in ("observation_space", "action_space"):
        space = getattr(env, name)
        # Spaces of the old gym have their attributes.
        if space is None or isinstance(space, type | int | float | str | list | tuple | dict):
            raise errors.SpaceError(
                f"the {name} is {space!r}, which is no space: give one of Gymnasium's, or what has "
                "its methods `contains` and `sample`"
            )
    modern = isinstance(env, gymnasium.Env)
    if not modern:
        try:
            modern = takes_seed(env)
        except (TypeError, ValueError):
            modern = False
    bare = getattr(env, "unwrapped", None)
    if isinstance(bare, Foreign):
        own = bare if bare.can_put_aside else None
        return Parts(env, env.step, env.reset, True, id(bare.inner), own)
    owns = isinstance(bare, gymnasium.Env) and hasattr(bare, "_np_random")
    # What else `unwrapped` gives may be made anew each time.
    identity = id(bare if isinstance(bare, gymnasium.Env) else env)
    return Parts(env, env.step, env.reset, modern, identity, bare if owns else None)


def are_equal(space: Any, first: Any) -> bool | None:
    """Whether two spaces are equal; None where their class does not say."""
    space = as_gymnasium(space)
    if space is first or bool(space == first):
        return True
    if type(space) is not type(first):
        return False
    inner, others = _inner(space), _inner(first)
    if not inner:
        compare: Any = type(space).__eq__
        return None if compare is object.__eq__ else False
    if inner.keys() != others.keys():
        return False
    # They are unequal by what is in them, or by something of their own.
    each = [are_equal(inner[key], others[key]) for key in inner]
    return None if None in each and False not in each else False


def _inner(space: Any) -> dict[Any, Any]:
    """The spaces that it is made of."""
    parts = getattr(space, "spaces", None)
    if isinstance(parts, Mapping):
        return dict(parts)
    if isinstance(parts, tuple | list):
        return dict(enumerate(parts))
    names = ("feature_space", "node_space", "edge_space")
    return {name: getattr(space, name) for name in names if getattr(space, name, None) is not None}


def about(env: Any) -> About:
    """What a sink shows of it."""
    metadata = getattr(env, "metadata", None)
    return About(
        as_gymnasium(env.observation_space),
        as_gymnasium(env.action_space),
        dict(metadata) if isinstance(metadata, Mapping) else {},
        getattr(env, "render_mode", None),
        getattr(env, "spec", None),
    )


def own_generator(bare: Any) -> tuple[Any, Any]:
    """An env's own random generator, to be put aside."""
    if isinstance(bare, Foreign):
        return bare.put_aside(), None
    return bare._np_random, getattr(bare, "_np_random_seed", None)


def restore_generator(bare: Any, own: tuple[Any, Any]) -> None:
    """Puts back what `own_generator` gave."""
    if isinstance(bare, Foreign):
        return bare.take_back(own[0])
    bare._np_random, bare._np_random_seed = own


def call(env: Any, kind: str, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """An attribute of an env, through its wrappers; called where it can be. "set" sets it, "list"
    names all that the env has."""
    if isinstance(env, SeenEnv):
        env = env.env
    if kind == "set":
        return _set_attr(env, name, *args)
    if kind == "list":
        return {name: True for name in dir(env) if not name.startswith("_")}
    own = _OWN.get(name)
    if own is not None:
        return own(env, *args, **kwargs)
    found = _find(env, name)
    return found(*args, **kwargs) if callable(found) else found


def _find(env: Any, name: str) -> Any:
    """An attribute of an env or of one of its wrappers."""
    find = getattr(env, "get_wrapper_attr", None)
    return getattr(env, name) if find is None else find(name)


def _has(env: Any, name: str) -> bool:
    try:
        _find(env, name)
    except AttributeError:
        return False
    return True


def _do(env: Any, name: str, /, *args: Any, **kwargs: Any) -> Any:
    """A method of an env; unlike `call` it calls whatever it finds."""
    return _find(env, name)(*args, **kwargs)


def _set_attr(env: Any, name: str, value: Any) -> None:
    """Where the wrappers have it; else on the outermost, as Gymnasium does."""
    if hasattr(env, "set_wrapper_attr"):
        env.set_wrapper_attr(name, value)
    else:
        setattr(env, name, value)


def _is_wrapped(env: Any, wrapper: type) -> bool:
    while env is not None:
        if isinstance(env, wrapper):
            return True
        env = vars(env).get("env")
    return False


# What is asked of envs that they need not know themselves.
_OWN: dict[str, Callable[..., Any]] = {
    "corral:self": lambda env: env,
    "corral:is_wrapped": _is_wrapped,
    "corral:has": _has,
    "corral:get": _find,
    "corral:set": setattr,
    "corral:do": _do,
}
