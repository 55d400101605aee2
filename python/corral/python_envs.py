"""Python environments as a `VectorEnv`: `from_gymnasium`."""

from __future__ import annotations

import copy
import functools
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence, Sized
from typing import Any, overload

import gymnasium
from gymnasium.envs.registration import load_env_creator
from typing_extensions import Unpack

from corral import _launch, _native, _worker, errors, settings
from corral._python_env import are_equal, as_gymnasium
from corral.settings import VecOptions, documented, flag, text, whole
from corral.vector import VectorEnv

Factory = Callable[[], Any]

_RUNNERS = ("process", "serial", "thread")


_REFUSED = {
    "thread_affinity_offset": "Python envs' threads and workers are not bound to cores; an env's "
    "own option of this name goes into a function that makes the env",
    "record": "Python envs' failures are not recorded; an env's own option of this name goes into "
    "a function that makes the env",
}


class PythonOptions(VecOptions, total=False):
    """The options of `from_gymnasium`, which says what those here mean."""

    runner: str
    num_workers: int | None
    context: str
    check_nan: bool


@overload
def from_gymnasium(
    env: str | Factory | Sequence[str | Factory],
    num_envs: int | None = None,
    **options: Unpack[PythonOptions],
) -> VectorEnv: ...
@overload
def from_gymnasium(
    env: str | Sequence[str], num_envs: int | None = None, **options: Any
) -> VectorEnv: ...
@documented(_REFUSED)
def from_gymnasium(
    env: str | Factory | Sequence[str | Factory], num_envs: int | None = None, **options: Any
) -> VectorEnv:
    """A batch of Python environments: Gymnasium's, old gym's, or anything that looks like one.

    Args:
        env: a Gymnasium id, a function without arguments that makes an env, or a list with one of
            these per env.
        num_envs: how many; with a list, its length.
        runner ("process"): "process" hosts them in worker processes, many to each; an env that
            crashes takes its worker along and not this process. "serial" steps them here, one after
            the other: the fastest for envs whose step takes microseconds. "thread" steps them in
            threads of this process, for envs that release the GIL.
        num_workers (None): with "process", how many processes; None for as many as there are cores.
        context ("spawn"): how workers are started. "spawn": a new Python each; the functions are
            sent by cloudpickle, so that lambdas and what `__main__` defines will do, and no
            `if __name__ == "__main__"` is needed. "forkserver": forks of a process that has
            imported corral and nothing else. "fork": forks of this one; nothing is pickled, but
            locks that other threads hold stay locked in them.
        check_nan (True): whether a NaN in an observation or a reward is the env's failure.
        **options: as in `corral.make_vec`, but for what is said below:
            {names}.
        render_mode (None): passed on to `gymnasium.make`, where `env` is an id.
        num_threads (None): with "thread", how many.
        timeout (None): with "process" the worker of an env that takes longer is ended, and with it
            the other envs that it hosts. A worker that does nothing at all, such as one that was
            stopped, is ended a second later; building envs has no limit.
        others: passed on to `gymnasium.make`, where `env` is an id.

    Returns:
        A `VectorEnv`. Seeds, options and infos are Gymnasium's: options are of the reset that has
        them alone. Index ix plays `reset(seed=ix)`, after which the env's own generator
        (Gymnasium's `np_random`) goes on where it was. What an env raises is raised here, as what
        it is; its cause is the `EnvError` that says which env it was and carries the others'
        results.

    Raises:
        ArgumentError, ArgumentTypeError: name what is wrong.
        UnsupportedError: for options that Python envs do not have, and for functions that cannot
            be sent to another process.
        SpaceError: if the envs' spaces differ.
        Exception: what the making of an env raises.
    """
    vec_options, others = settings.split(options, settings.NAMES)
    settings.check(from_gymnasium, vec_options, _REFUSED)
    own, kwargs = settings.split(others, PythonOptions.__annotations__)
    each = each_of(env, num_envs)
    factories = _factories(each, vec_options.get("render_mode"), kwargs)
    return hosted(name_of(each[0]), factories, vec_options, own)


def hosted(
    name: str,
    factories: list[Factory],
    vec_options: Mapping[str, Any],
    own: Mapping[str, Any],
) -> VectorEnv:
    """What `factories` make, one env each, with Gymnasium's face.

    Args:
        name: what messages call the envs.
        vec_options: `VecOptions`.
        own: those of `PythonOptions` that are not among them.
    """
    native, held = native_of(name, factories, vec_options, **own)
    envs = settings.vector(native, vec_options, native.about.render_mode)
    envs.held = held
    return envs


class _Factories:
    """What makes the envs. The vec env's Python half holds it, and the native half does not: a
    function may hold what holds the vec env, and Python's collector sees no way through the native
    half."""

    def __init__(self, factories: list[Factory]) -> None:
        self.factories = factories

    def lent(self) -> list[Factory]:
        """Functions that do the same as long as this is held."""
        this = weakref.ref(self)
        return [functools.partial(_make, this, k) for k in range(len(self.factories))]


def _make(lender: weakref.ref[_Factories], k: int) -> Any:
    held = lender()
    if held is None:
        raise errors.EnvError("what makes the envs is gone with their VectorEnv: keep that")
    return held.factories[k]()


def native_of(
    name: str,
    factories: list[Factory],
    vec_options: Mapping[str, Any],
    *,
    runner: str = "process",
    num_workers: int | None = None,
    context: str = "spawn",
    check_nan: bool = True,
) -> tuple[_native.VecEnv, Any]:
    """The native vec env of what `factories` make, one each, and what is to be held as long as it
    is used; see `from_gymnasium`."""
    if runner == "serial":
        vec_options = {**vec_options, "num_threads": 1}
    check_nan = flag("check_nan", check_nan)
    text("runner", runner)
    text("context", context)
    seeded = vec_options.get("seed") is not None
    held: Any = None
    if runner == "process":
        if vec_options.get("num_threads") is not None:
            raise errors.ArgumentError('num_threads is for runner="thread": give num_workers')
        source, held = _in_workers(name, factories, check_nan, seeded, num_workers, context)
    elif runner in _RUNNERS:
        if num_workers is not None:
            raise errors.ArgumentError('num_workers is for runner="process"')
        held = _Factories(factories)
        source = _native.Source.python(name, held.lent(), check_nan=check_nan, seeded=seeded)
    else:
        raise errors.ArgumentError(f"runner is one of {', '.join(_RUNNERS)}, not {runner!r}")
    native = settings.native(source, len(factories), vec_options)
    if runner == "process":
        try:
            _check_spaces(native)
        except BaseException:
            native.close()
            raise
        held.forget()
    return native, held


def _check_spaces(native: _native.VecEnv) -> None:
    """Compares, across workers, spaces that the core does not look into."""
    leaves = {"observation": native.observation_leaves, "action": native.action_leaves}
    for what, inside in leaves.items():
        if all(leaf["kind"] == "fixed" for leaf in inside):
            continue
        spaces = native.call(f"{what}_space", (), {})
        first = as_gymnasium(spaces[0])
        for slot, space in enumerate(spaces):
            if are_equal(space, first) is False:
                raise errors.SpaceError(
                    f"{native.id}: the {what} space of env {slot} is {space}, and that of env 0 "
                    f"is {first}: all envs must have the same"
                )


def _in_workers(
    name: str,
    factories: list[Factory],
    check_nan: bool,
    seeded: bool,
    num_workers: int | None,
    context: str,
) -> tuple[_native.Source, _worker.Inheritance | _worker.Pickled]:
    if num_workers is not None:
        num_workers = whole("num_workers", num_workers, _native.MAX_ENVS)
    launcher = _launch.launcher(context)
    kind = _worker.Inheritance if context == "fork" else _worker.Pickled
    told = kind(name, factories, check_nan, seeded)
    return _native.Source.workers(told.payload, launcher, num_workers=num_workers), told


def each_of(env: Any, num_envs: int | None) -> list[Any]:
    """What makes each env."""
    count = None if num_envs is None else whole("num_envs", num_envs, _native.MAX_ENVS)
    if isinstance(env, str) or callable(env):
        return [env] * (count or 1)
    # What tells no length may have no end.
    if not isinstance(env, Sized) or not isinstance(env, Iterable):
        raise errors.ArgumentTypeError(
            f"env is an id, a function that makes an env, or a list of these, not {env!r}"
        )
    each = list(env)
    if not each:
        raise errors.ArgumentError("there are no envs: give at least one")
    if len(each) > _native.MAX_ENVS:
        raise errors.ArgumentError(
            f"there are {len(each)} envs: there can be at most {_native.MAX_ENVS}"
        )
    if count is not None and count != len(each):
        raise errors.ArgumentError(f"num_envs is {count} and there are {len(each)} envs")
    return each


def _factories(
    each: list[str | Factory], render_mode: str | None, kwargs: dict[str, Any]
) -> list[Factory]:
    if render_mode is not None:
        kwargs = {**kwargs, "render_mode": render_mode}
    if kwargs and not all(isinstance(one, str) for one in each):
        raise errors.ArgumentError(
            f"{', '.join(kwargs)}: arguments of gymnasium.make, but what makes the envs is no id"
            f"{settings.near(kwargs)}"
        )
    return [_factory(one, kwargs) for one in each]


def _registered(id: str) -> Any:
    """What an id stands for here: a worker may not know it, for who registers an env may do so
    in a program that no worker runs."""
    spec = gymnasium.registry.get(id)
    if spec is None:
        return id
    own = ("__main__:", "__mp_main__:")
    if isinstance(spec.entry_point, str) and spec.entry_point.startswith(own):
        spec = copy.deepcopy(spec)
        creator: Any = load_env_creator(str(spec.entry_point))
        spec.entry_point = creator
    return spec


def _factory(one: Any, kwargs: dict[str, Any]) -> Factory:
    if isinstance(one, str):
        return functools.partial(gymnasium.make, _registered(one), **kwargs)
    if not callable(one) or isinstance(one, gymnasium.Env):
        raise errors.ArgumentTypeError(
            f"an env is made by a function without arguments, or an id; {one!r} is neither"
        )
    made: Factory = one
    return made


def name_of(one: Any) -> str:
    """What messages call the envs that an id or a function makes."""
    if isinstance(one, str):
        return one
    inner = one.func if isinstance(one, functools.partial) else one
    name = getattr(inner, "__qualname__", None) or type(one).__name__
    return str(name).replace("<locals>.", "").replace("<lambda>", "lambda")
