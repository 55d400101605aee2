"""Envs by id, whoever made them: built in, of a library, or Python's by Gymnasium's registry."""

from __future__ import annotations

import importlib
import json
import os
import sys
from pathlib import Path
from typing import Annotated, Any

import gymnasium
import typer
from gymnasium.envs.registration import EnvSpec

import corral
from corral import errors, plugins, settings
from corral.vector import VectorEnv

Id = Annotated[
    str,
    typer.Argument(
        metavar="ID",
        help="An id of `corral list`, or of Gymnasium's registry; 'module:Name-v0' imports the "
        "module first, and 'gymnasium:CartPole-v1' is Gymnasium's own.",
    ),
]
Loads = Annotated[
    list[str] | None,
    typer.Option(
        "--load",
        metavar="LIBRARY|MODULE",
        help="Load a library of envs, or import a Python module that registers some, first; "
        "repeatable.",
    ),
]
Options = Annotated[
    list[str] | None,
    typer.Option(
        "--option",
        metavar="NAME=VALUE",
        help="An option of the env, its value as JSON or else as text; repeatable.",
    ),
]
_OURS = ("corral", "testing")


def load(given: list[str] | None) -> None:
    """Loads libraries and imports modules."""
    for one in given or []:
        if is_file(one):
            plugins.load(one)
        else:
            imported(one)


def is_file(text: str) -> bool:
    """Whether a text is meant as a file: an id may have slashes, too."""
    suffix = Path(text).suffix
    return (
        Path(text).is_file()
        or text.startswith((".", os.sep))
        or suffix in (".so", ".dylib", ".dll")
    )


def imported(module: str) -> Any:
    """A module, which may lie in this folder.

    Raises:
        ArgumentError: if it cannot be imported.
    """
    here = os.getcwd()
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        return importlib.import_module(module)
    # A module may raise anything while it is imported.
    except Exception as error:
        raise errors.ArgumentError(
            f"module '{module}' cannot be imported: {type(error).__name__}: {error}"
        ) from error


def options_of(given: list[str] | None) -> dict[str, Any]:
    """What `--option` says, by name."""
    return dict(map(_option, given or []))


def _option(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise typer.BadParameter(f"'{text}' is not NAME=VALUE", param_hint="--option")
    try:
        read = json.loads(value)
    except json.JSONDecodeError:
        read = value
    except (RecursionError, ValueError):
        raise errors.ArgumentError(
            f"option {name!a}: this is too long a number or too deeply nested: {value[:40]}…"
        ) from None
    try:
        json.dumps({name: read}, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise errors.ArgumentError(f"option {text!a} has no UTF-8") from None
    return name, read


def python_spec(id: str) -> EnvSpec | None:
    """What Gymnasium has registered for a Python env; None for an env of ours or a library's.

    Raises:
        ArgumentError: if the id's module cannot be imported.
        UnknownEnvError: if nobody knows the id.
    """
    module, colon, name = id.rpartition(":")
    if colon:
        imported(module)
    elif id in corral.envs() or id.partition("/")[0] in _OURS or plugins.is_loaded(id):
        return None
    spec = gymnasium.registry.get(name)
    if spec is not None:
        return None if is_of_corral(spec) else spec
    if colon:
        raise errors.UnknownEnvError(
            f"unknown env '{id}': module '{module}' has registered no '{name}' with Gymnasium"
        )
    # Says which ids are near.
    return None


def is_of_corral(spec: EnvSpec) -> bool:
    """Whether Gymnasium's registry has it from `corral` itself."""
    return str(spec.entry_point).startswith("corral.registry:")


def make(
    id: str, num_envs: int, config: dict[str, Any], *, autoreset_mode: str = "disabled", **more: Any
) -> VectorEnv:
    """Envs by id, stepped in this process.

    Args:
        config: the env's own options.
        **more: as in `corral.make_vec`.
    """
    for name in config:
        if name in settings.NAMES and name != "max_episode_steps":
            raise errors.ArgumentError(
                f"option '{name}' is of vec envs, and the command chooses it itself: leave it out"
            )
    given = {**config, **more, "autoreset_mode": autoreset_mode}
    if python_spec(id) is None:
        return corral.make_vec(id.rpartition(":")[2], num_envs, **given)
    # Pygame looks for loudspeakers and a screen, and complains where there are none.
    for driver in ("SDL_AUDIODRIVER", "SDL_VIDEODRIVER"):
        os.environ.setdefault(driver, "dummy")
    return corral.from_gymnasium(id, num_envs, runner="serial", **given)
