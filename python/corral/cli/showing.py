"""`corral render`."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from corral import errors
from corral.cli import ids, policies
from corral.cli.app import Json, app, err, errors_told, print_json, print_text
from corral.cli.frames import FORMATS, Frames
from corral.vector import VectorEnv

_FPS = 30.0


@app.command("render")
def render(
    id: ids.Id,
    target: Annotated[
        Path,
        typer.Option(
            "--out", "-o", metavar="FILE.gif|FILE.mp4", help="The film; .mp4 takes imageio-ffmpeg."
        ),
    ],
    policy: policies.Given = None,
    index: Annotated[
        int | None, typer.Option(min=0, help="Play the episode of this index (0 by default).")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(min=0, help="Play the episode of this seed instead.")
    ] = None,
    steps: Annotated[
        int, typer.Option(min=1, help="How many steps at most, if the episode is longer.")
    ] = 500,
    fps: Annotated[
        float | None,
        typer.Option(
            min=0.1, help="Pictures a second, by default as the env says; GIFs have 50 at most."
        ),
    ] = None,
    policy_seed: policies.Seed = 0,
    option: ids.Options = None,
    loads: ids.Loads = None,
    as_json: Json = False,
) -> None:
    """Film an episode.

    Example: corral render Maze-v0 -o maze.gif --steps 20
    """
    with errors_told():
        if target.suffix.lower() not in FORMATS:
            raise errors.ArgumentError(
                f"'{target}' is neither .gif nor .mp4: the ending says what is written"
            )
        if index is not None and seed is not None:
            raise errors.ArgumentError("give --index or --seed, not both")
        ids.load(loads)
        function = None if policy is None else policies.load(policy)
        with closing(drawing(id, ids.options_of(option))) as envs:
            if function is None:
                function = policies.Random(envs, policy_seed)
                err.print(f"random actions, seed {policy_seed}: no --policy is given")
            films = Frames(target, fps or envs.metadata.get("render_fps") or _FPS)
            with films, policies.told(policy or "the env"):
                told = _film(envs, function, begin(envs, index, seed), steps, films)
    if as_json:
        print_json({"env": id, "file": str(target), "pictures": films.count, **told})
    else:
        seen = f"{films.count} pictures, {told['steps']} steps, return {told['return']:g}"
        print_text(f"{target}: {seen}")


def drawing(id: str, config: dict[str, Any]) -> VectorEnv:
    """One env that draws pictures."""
    envs = ids.make(id, 1, config, render_mode="rgb_array")
    if envs.render_mode != "rgb_array" and "rgb_array" not in envs.metadata["render_modes"]:
        envs.close()
        raise errors.UnsupportedError(f"{id} draws no pictures")
    return envs


def begin(envs: VectorEnv, index: int | None, seed: int | None) -> dict[str, Any]:
    """What a reset is told: a seed, an index, or else what the env plays of the two."""
    if seed is not None:
        return {"seed": seed}
    if index is not None or envs.native.can("index"):
        return {"options": {"index": index or 0}}
    return {"seed": 0} if envs.native.can("seed") else {}


def picture(envs: VectorEnv) -> np.ndarray[Any, Any]:
    """What the env looks like.

    Raises:
        UnsupportedError: if that is no picture.
    """
    frame = np.asarray((envs.render() or (None,))[0])
    if frame.dtype != np.uint8 or frame.ndim != 3 or frame.shape[2] != 3:
        raise errors.UnsupportedError(
            f"{envs.native.id} draws no pictures: its render gave no uint8 array (height, width, 3)"
        )
    return frame


def _film(
    envs: VectorEnv, policy: policies.Policy, begins: dict[str, Any], steps: int, films: Frames
) -> dict[str, Any]:
    ask = policies.Single(policy, begins.get("options", {}).get("index", 0))
    observations, infos = envs.reset(**begins)
    films.add(0, picture(envs))
    rewards, done = 0.0, 0
    ended = False
    while done < steps and not ended:
        actions = ask(observations, infos, began=done == 0)
        observations, reward, terminations, truncations, infos = envs.step(actions)
        rewards += float(reward[0])
        done += 1
        ended = bool(terminations[0] or truncations[0])
        films.add(done, picture(envs))
    return {"steps": done, "return": rewards, "ended": ended}
