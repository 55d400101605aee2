"""Policies: functions in files, and random ones."""

from __future__ import annotations

import copy
import importlib.util
import inspect
import math
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import gymnasium
import numpy as np
import typer

from corral import errors
from corral.spaces import Leaf, allow, batch_actions, leaves_of
from corral.vector import VectorEnv

Policy = Callable[..., Any]

Given = Annotated[
    str | None,
    typer.Option(
        "--policy",
        metavar="FILE[:NAME]",
        help="A Python file with a function policy(observations), or one of another NAME, that "
        "gives the actions, both with rows first; without it actions are random.",
    ),
]
Seed = Annotated[int, typer.Option("--policy-seed", min=0, help="Of random actions.")]
_NAME = "policy"
_MODULE = "corral_policy"


def load(given: str) -> Policy:
    """The function that FILE[:NAME] names.

    Raises:
        ArgumentError: if there is none, or the file fails as it is run.
    """
    path, name = Path(given), _NAME
    if not path.exists() and ":" in given:
        before, _, name = given.rpartition(":")
        path = Path(before)
    if not path.is_file():
        raise errors.ArgumentError(f"there is no policy file {path}")
    spec = importlib.util.spec_from_file_location(_MODULE, path)
    if spec is None or spec.loader is None:
        raise errors.ArgumentError(f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[_MODULE] = module
    sys.path.insert(0, str(path.resolve().parent))
    with told(str(path)):
        spec.loader.exec_module(module)
    found = getattr(module, name, None)
    if not callable(found):
        functions = [key for key, value in vars(module).items() if inspect.isfunction(value)]
        there = f"it has {', '.join(functions)}" if functions else "it has no functions"
        raise errors.ArgumentError(f"{path} has no function '{name}': {there}")
    policy: Policy = found
    return policy


@contextmanager
def told(what: str) -> Iterator[None]:
    """What a user's code raises is an error that says where."""
    try:
        yield
    except (errors.CorralError, OSError):
        raise
    except Exception as error:
        if isinstance(error.__cause__, errors.EnvError):
            raise
        last = traceback.extract_tb(error.__traceback__)[-1]
        if isinstance(error, SyntaxError):
            where = f"{error.filename}:{error.lineno}"
        else:
            where = f"{last.filename}:{last.lineno}"
        raise errors.ArgumentError(f"{what}: {type(error).__name__}: {error} ({where})") from error


class Random:
    """Random actions that action masks allow. Each index has a stream of its own, so that its
    episode is the same at any width."""

    def __init__(self, envs: VectorEnv, seed: int) -> None:
        self._space, self._seed = envs.single_action_space, seed
        self._native = envs.native
        self._choices = sum(_choices(leaf) for leaf in self._native.action_leaves)
        self._streams: dict[int, tuple[gymnasium.Space[Any], np.random.Generator]] = {}

    def __call__(self, observations: Any, *, began: Any, index: Any, infos: dict[str, Any]) -> Any:
        """An action for each row."""
        actions = [self._draw(int(one), new) for one, new in zip(index, began)]
        batch = batch_actions(self._space, actions)
        masks = np.asarray(infos.get("action_mask"))
        # What a Python env calls so may be anything.
        if masks.shape == (len(index), self._choices):
            tree, leaves = self._native.action_tree, self._native.action_leaves
            for row, one in enumerate(index):
                rng = self._streams[int(one)][1]
                values = [leaf[row : row + 1] for leaf in leaves_of(tree, batch)]
                allow(values, leaves, masks[row : row + 1], rng)
        return batch

    def _draw(self, index: int, begins: bool) -> Any:
        if begins:
            rng = np.random.default_rng([self._seed, index])
            self._streams[index] = (_seeded(self._space, int(rng.integers(2**31))), rng)
        return self._streams[index][0].sample()


def _choices(leaf: Leaf) -> int:
    """How many elements of an action mask are a leaf's."""
    if leaf["kind"] != "fixed" or not leaf["discrete"]:
        return 0
    shape = tuple(leaf["shape"])
    low, high = (np.broadcast_to(leaf[side], (math.prod(shape),)) for side in ("low", "high"))
    return int((high - low + 1).sum())


def _seeded(space: gymnasium.Space[Any], seed: int) -> gymnasium.Space[Any]:
    copied: gymnasium.Space[Any] = copy.deepcopy(space)
    copied.seed(seed)
    return copied


class Single:
    """A policy of one env, asked as `corral.evaluate` asks it."""

    def __init__(self, policy: Policy, index: int) -> None:
        parameters = inspect.signature(policy).parameters.values()
        every = any(one.kind is one.VAR_KEYWORD for one in parameters)
        self._named = {one.name for one in parameters if one.kind is not one.POSITIONAL_ONLY}
        self._policy, self._every, self._index = policy, every, np.array([index], dtype=np.int64)

    def __call__(self, observations: Any, infos: dict[str, Any], *, began: bool) -> Any:
        """The action, with one row."""
        given = {"began": np.array([began]), "index": self._index, "infos": infos}
        asked = {name: one for name, one in given.items() if self._every or name in self._named}
        return self._policy(observations, **asked)
