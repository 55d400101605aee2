"""`corral replay`."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from corral import errors, plugins
from corral.cli.app import Json, app, err, errors_told, out, print_json
from corral.cli.frames import Frames
from corral.replay import Replay


@app.command("replay")
def replay_file(
    file: Annotated[Path, typer.Argument(help="What make_vec(…, record=DIR) left.")],
    libraries: Annotated[
        list[Path] | None,
        typer.Option("--load", metavar="LIBRARY", help="Load a library of envs first; repeatable."),
    ] = None,
    frames: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR|FILE.gif|.mp4", help="Write each step's picture: PNGs, or a film."
        ),
    ] = None,
    stop: Annotated[
        bool, typer.Option("--break", help="Call breakpoint() just before the failing step.")
    ] = False,
    trap: Annotated[
        bool,
        typer.Option(
            "--trap",
            help="Raise SIGTRAP just before the failing step: for gdb --args python -m corral …",
        ),
    ] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Print nothing; the exit code tells.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Play a recorded failure again, on one env, up to the step that failed.

    Exit code 0: it failed again. 1: it did not, or in another way. 2: it cannot be played.

    Example: corral replay failure.json --frames run.gif
    """

    def before_failure() -> None:
        silent = again.recorded.cause == "silence"
        if silent:
            # Nothing else ends a native call that does not come back.
            signal.signal(signal.SIGINT, signal.SIG_DFL)
        if stop or silent:
            where = f"before the failing step of {again.env}, in process {os.getpid()}"
            hint = ", which may not come back: attach a debugger, or press Ctrl-C"
            err.print(where + (hint if silent else ""), markup=False, soft_wrap=True)
        if stop:
            breakpoint()
        if trap:
            signal.raise_signal(signal.SIGTRAP)

    with errors_told():
        for library in libraries or []:
            plugins.load(library)
        try:
            again = Replay(file, frames=frames is not None, before_failure=before_failure)
        except errors.UnknownEnvError as error:
            raise errors.UnknownEnvError(
                f"{error}; if the env is of a library that was loaded by its path: corral replay "
                "--load LIBRARY FILE"
            ) from error
        writer = None if frames is None else Frames(frames, again.render_fps)
        rewards = 0.0
        with writer or nullcontext():
            for step in again:
                rewards += step.reward
                if writer is not None and step.frame is not None:
                    writer.add(step.step, step.frame)
        written = None if writer is None else writer.close()
    if as_json and not quiet:
        print_json(_json(again, rewards))
    elif not quiet:
        out.print(_table(again, rewards, written), soft_wrap=True)
        style = "green" if again.reproduced else "red"
        out.print(again.verdict(), style=style, markup=False, soft_wrap=True)
    raise typer.Exit(0 if again.reproduced else 1)


def _json(again: Replay, rewards: float) -> dict[str, Any]:
    return {
        "env": again.env,
        "config": again.config,
        "begin": again.begin,
        "steps": again.num_steps,
        "return": rewards,
        "last_action": again.last_action,
        "recorded": dataclasses.asdict(again.recorded),
        "corral": again.corral,
        "reproduced": again.reproduced,
        "verdict": again.verdict(),
    }


def _table(again: Replay, rewards: float, frames: str | None) -> Table:
    failure = again.recorded
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    rows: list[tuple[str, Any]] = [("env", again.env)]
    if again.config:
        rows.append(("config", ", ".join(f"{k}={json.dumps(v)}" for k, v in again.config.items())))
    rows.append(("begin", _begin(again)))
    rows.append(("steps", _steps(again)))
    rows.append(("return", f"{rewards:g}"))
    if again.last_action is not None:
        rows.append(("last action", json.dumps(again.last_action)))
    place = f"env {failure.slot}, episode {failure.episode}, step {failure.step}"
    rows.append(("recorded", f"{place}, by corral {again.corral}"))
    rows.append(("failure", f"{failure.cause} in {failure.phase}: {failure.message}"))
    if frames is not None:
        rows.append(("frames", frames))
    for name, value in rows:
        table.add_row(name, _plain(str(value)))
    return table


def _plain(text: str) -> Any:
    """Text whose brackets are no markup."""
    from rich.text import Text

    return Text(text)


def _begin(again: Replay) -> str:
    if isinstance(again.begin, dict):
        text = " ".join(f"{name} {value}" for name, value in again.begin.items())
    else:
        text = f"episode {again.recorded.episode} of seed {again.recorded.seed}"
    if again.first_step > 0:
        return f"{text}; recorded from its step {again.first_step} on"
    return f"{text}, after {again.lead_in} earlier calls" if again.lead_in else text


def _steps(again: Replay) -> str:
    count = str(again.num_steps)
    return f"{count}, and one that failed" if again.recorded.phase == "step" else count
