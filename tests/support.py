"""What the tests share: references, actions, strict comparison.

Nothing here uses `corral.testing`: a test must not lean on what it tests.
"""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.envs.registration import EnvSpec
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import corral

MODES = ("next_step", "same_step", "disabled")
GYMNASIUM_MODES = {
    "next_step": AutoresetMode.NEXT_STEP,
    "same_step": AutoresetMode.SAME_STEP,
    "disabled": AutoresetMode.DISABLED,
}
# NumPy 2 changed which operations round to float32, and so what these envs of Gymnasium compute.
OLD_NUMPY = np.lib.NumpyVersion(np.__version__) < "2.0.0"
ROUNDED_BY_NUMPY = ("Pendulum-v1", "MountainCarContinuous-v0")
FAULTY = "testing/Faulty-v0"
ODD = "testing/Odd-v0"


def same_id(case: Any) -> str:
    """The start of `repr(case)`, without addresses: a test has the same id in every process."""
    return re.sub(r" at 0x[0-9a-f]+", "", repr(case))[:40]


@dataclass(frozen=True, eq=False)
class Case:
    """An env with options, and the same env as Gymnasium makes it.

    `reference` is an id that Gymnasium knows, where one is independent of corral.
    """

    name: str
    id: str
    limit: int | None = None
    config: dict[str, Any] = field(default_factory=dict)
    reference: str | None = None

    def make_vec(self, num_envs: int, mode: str, **more: Any) -> corral.VectorEnv:
        limit = -1 if self.limit is None else self.limit
        return corral.make_vec(
            self.id,
            num_envs,
            autoreset_mode=mode,
            max_episode_steps=limit,
            **{**self.config, **more},
        )

    def make_single(self, **more: Any) -> corral.Env:
        limit = -1 if self.limit is None else self.limit
        return corral.make(self.id, max_episode_steps=limit, **{**self.config, **more})

    def make_gymnasium(self) -> gymnasium.Env[Any, Any]:
        """A single env under Gymnasium's own wrappers, its TimeLimit among them."""
        if self.reference is not None:
            return gymnasium.make(self.reference, max_episode_steps=self.limit or -1)
        return gymnasium.make(gymnasium_spec(self.id, self.limit, self.config))

    def make_sync(self, num_envs: int, mode: str) -> SyncVectorEnv:
        return SyncVectorEnv([self.make_gymnasium] * num_envs, autoreset_mode=GYMNASIUM_MODES[mode])

    def __str__(self) -> str:
        return self.name


CASES = (
    Case("Gymnasium's CartPole", "CartPole-v1", reference="CartPole-v1"),
    Case("CartPole of 15 steps", "CartPole-v1", 15, reference="CartPole-v1"),
    Case("Maze", "Maze-v0", 20, {"size": 3, "loops": 50}),
    Case("Faulty", FAULTY),
    Case("Faulty of 6 steps", FAULTY, 6),
)


def _look(id: str) -> str:
    """What a runner or a sink can tell of an env: its leaves but for bounds and sizes, and what it
    can do."""
    native = corral.make_vec(id, 1).native
    leaves = native.observation_leaves, native.action_leaves, native.info_leaves
    kinds = [
        [(leaf["kind"], leaf.get("dtype"), len(leaf.get("shape") or ())) for leaf in one]
        for one in leaves
    ]
    can = [native.can(name) for name in ("save", "render", "ansi", "call", "events", "index")]
    return repr((kinds, native.observation_tree, native.action_tree, can))


def _like_another() -> set[str]:
    looks = {}
    for id in corral.envs():
        looks.setdefault(_look(id), id)
    return set(corral.envs()) - set(looks.values())


LIKE_ANOTHER = _like_another()
"""Built-in envs that look to a runner or a sink like another one of the table: batches of them show
nothing new."""


_LEVELS_PLAYED = ("Empty-5x5", "DoorKey-5x5", "Fetch-5x5-N2", "Dynamic-Obstacles-5x5")
OTHER_LEVELS = {
    id
    for id in corral.envs()
    if (
        id.startswith("MiniGrid-")
        and not id.endswith(tuple(f"{name}-v0" for name in _LEVELS_PLAYED))
    )
    or (id.startswith("MinAtar-") and id.endswith("-v0"))
}
"""MiniGrid's levels but for a few: one Rust type plays them all, and what the levels are is
compared with the package's (`tests/parity/test_minigrid.py`). MinAtar's games with all six actions:
the same types play them with fewer."""

PLAYED = [id for id in corral.envs() if id not in OTHER_LEVELS]
"""The built-in envs that are played in batches."""


def quick_ids(ids: Iterable[str]) -> list[Any]:
    """`ids` as parameters; other levels are left to `make test-all`."""
    thorough = pytest.mark.thorough
    return [pytest.param(id, marks=thorough) if id in OTHER_LEVELS else id for id in ids]


def quick_cases(cases: Iterable[Case]) -> list[Any]:
    """`cases` as parameters; those like another's are left to `make test-all`."""
    return [
        pytest.param(
            case, marks=[pytest.mark.thorough] if case.id in LIKE_ANOTHER else [], id=str(case)
        )
        for case in cases
    ]


def gymnasium_spec(id: str, limit: int | None, config: dict[str, Any]) -> EnvSpec:
    """What Gymnasium's registry would hold for an env, hidden ones included."""
    return EnvSpec(
        "corral-tests/" + id.split("/")[-1],
        entry_point="corral.registry:make_for_gymnasium",
        vector_entry_point="corral.registry:make_vec_for_gymnasium",
        max_episode_steps=limit,
        kwargs={"corral_id": id, **config},
    )


def sampled(envs: Any, seed: int) -> Iterator[Any]:
    """Batches of random actions, the same for the same seed."""
    envs.action_space.seed(seed)
    while True:
        yield envs.action_space.sample()


def forces(num_envs: int, force: Any = 0.0, gear: int = 1) -> dict[str, Any]:
    """Faulty's actions, the same for all envs."""
    return {
        "force": np.full((num_envs, 2), force, dtype=np.float32),
        "gear": np.full(num_envs, gear, dtype=np.int64),
    }


def zeros(envs: corral.VectorEnv) -> Any:
    """An action that every env takes."""
    if isinstance(envs.action_space, gymnasium.spaces.Dict):
        return forces(envs.num_envs)
    return np.zeros(envs.num_envs, dtype=np.int64)


def states(envs: corral.VectorEnv) -> list[bytes]:
    """The whole state of every env."""
    return [envs.native.save(slot) for slot in range(envs.num_envs)]


def row(batch: Any, at: int) -> Any:
    """One env's part of a batch of observations.

    A tuple is of a `Tuple` space; one within a dict is a column of texts or ragged arrays.
    """
    if isinstance(batch, dict):
        return {
            name: inner[at] if isinstance(inner, tuple) else row(inner, at)
            for name, inner in batch.items()
        }
    if isinstance(batch, tuple):
        return tuple(row(inner, at) for inner in batch)
    return batch[at]


def arrays(result: Any) -> Iterator[np.ndarray]:
    """Every array in a nested result, those inside object arrays too."""
    if isinstance(result, np.ndarray):
        yield result
        if result.dtype == object:
            for element in result.flat:
                yield from arrays(element)
    elif isinstance(result, dict):
        for inner in result.values():
            yield from arrays(inner)
    elif isinstance(result, tuple | list):
        for inner in result:
            yield from arrays(inner)


def difference(got: Any, expected: Any, at: str = "", numbers: bool = False) -> str | None:
    """Where two nested results differ in type, dtype, shape or bytes; None if nowhere.

    `numbers`: integers and floats of other sizes are the same if their values are.
    """
    where = at or "the top"
    if isinstance(expected, dict):
        if not isinstance(got, dict) or got.keys() != expected.keys():
            keys = sorted(got) if isinstance(got, dict) else type(got).__name__
            return f"{where}: {keys} where {sorted(expected)} belong"
        pairs = [(got[key], expected[key], f"{at}.{key}") for key in expected]
    elif isinstance(expected, tuple | list):
        if type(got) is not type(expected) or len(got) != len(expected):
            return f"{where}: {got!r} where {expected!r} belongs"
        pairs = [(g, e, f"{at}[{k}]") for k, (g, e) in enumerate(zip(got, expected))]
    elif isinstance(expected, np.ndarray) and expected.dtype == object:
        if not isinstance(got, np.ndarray) or got.dtype != object or got.shape != expected.shape:
            return f"{where}: {got!r} where {expected!r} belongs"
        pairs = [(g, e, f"{at}[{k}]") for k, (g, e) in enumerate(zip(got.flat, expected.flat))]
    elif isinstance(expected, np.ndarray | np.generic):
        same = isinstance(got, np.ndarray | np.generic) and got.shape == expected.shape
        if same and numbers and got.dtype.kind == expected.dtype.kind:
            same = np.array_equal(got, expected)
        else:
            same = same and got.dtype == expected.dtype and got.tobytes() == expected.tobytes()
        return None if same else f"{where}: {got!r} where {expected!r} belongs"
    else:
        same = type(got) is type(expected) and got == expected
        return None if same else f"{where}: {got!r} where {expected!r} belongs"
    found = (difference(*pair, numbers=numbers) for pair in pairs)
    return next((text for text in found if text is not None), None)


def assert_same(got: Any, expected: Any, what: str = "", numbers: bool = False) -> None:
    """Fails, saying where, unless both are the same."""
    found = difference(got, expected, numbers=numbers)
    assert found is None, f"{what}: {found}"


def digest(value: Any) -> Any:
    """A short stand-in for a nested result, equal only for the same bytes."""
    if isinstance(value, dict):
        return {name: digest(inner) for name, inner in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        if value.dtype == object:
            return [digest(element) for element in value.flat]
        content = value.tobytes()
        if len(content) > 64:
            content = hashlib.blake2b(content, digest_size=16).digest()
        return (value.dtype.str, value.shape, content)
    if isinstance(value, tuple | list):
        return [digest(inner) for inner in value]
    return value


def run_python(code: str, memory: int = 8 << 30) -> subprocess.CompletedProcess[str]:
    """Runs a program in a process of its own, which may die without harm."""
    limits = f"import resource; resource.setrlimit(resource.RLIMIT_AS, ({memory}, {memory}))\n"
    return subprocess.run(
        [sys.executable, "-c", limits + code], capture_output=True, text=True, timeout=60
    )


def raises_within(call: Callable[[], Any]) -> BaseException | None:
    """What `call` raises, or None."""
    try:
        call()
    except Exception as error:
        return error
    return None


def quick(names: Iterable[str]) -> list[Any]:
    """`names` as parameters; "spawn", whose new Python takes seconds, is left to `make test-all`.

    For what does not depend on how a worker was started."""
    thorough = pytest.mark.thorough
    return [pytest.param(name, marks=thorough) if name == "spawn" else name for name in names]
