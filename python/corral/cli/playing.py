"""`corral play`."""

from __future__ import annotations

import time
from contextlib import closing
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Group, RenderableType
from rich.live import Live
from rich.text import Text

from corral import errors
from corral.cli import ids, showing
from corral.cli.app import app, errors_told, out, print_text
from corral.cli.keys import keys_of, told
from corral.spaces import batch_actions
from corral.vector import VectorEnv

# Lines below the picture.
_BELOW = 3


@app.command("play")
def play(
    id: ids.Id,
    keys: Annotated[
        str | None,
        typer.Option(
            metavar="KEY=ACTION,…",
            help="Which key plays what, actions as JSON: 'a=0,d=1', 'left=[-1,0],right=[1,0]'.",
        ),
    ] = None,
    index: Annotated[
        int | None, typer.Option(min=0, help="Begin with the episode of this index.")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(min=0, help="Begin with the episode of this seed.")
    ] = None,
    fps: Annotated[
        float | None,
        typer.Option(
            min=0.1,
            help="Go on by itself, so many steps a second, with the last key's action; without, "
            "the env waits for a key.",
        ),
    ] = None,
    text: Annotated[
        bool, typer.Option("--text", help="Show the env's text (ansi), not its picture.")
    ] = False,
    option: ids.Options = None,
    loads: ids.Loads = None,
) -> None:
    """Play by keyboard, in the terminal: digits and arrows are actions, q quits.

    After an episode's end any key begins the next one.

    Example: corral play CartPole-v1 --fps 10 --keys 'a=0,d=1'
    """
    with errors_told():
        if index is not None and seed is not None:
            raise errors.ArgumentError("give --index or --seed, not both")
        terminal = _terminal()
        ids.load(loads)
        with closing(_shown(id, ids.options_of(option), text)) as envs:
            known = keys_of(id, envs.single_action_space, keys)
            game = _Game(envs, id, told(known))
            begins = {} if index is seed is None else showing.begin(envs, index, seed)
            with (
                terminal.keyboard() as pressed,
                Live(console=out, screen=True, auto_refresh=False) as live,
            ):
                game.begin(begins)
                last = next(iter(known.values()))
                while True:
                    live.update(game.drawn(), refresh=True)
                    key = next_key(pressed, None if game.ended else fps)
                    if key == "q":
                        break
                    if game.ended:
                        game.begin({})
                    elif key in known or fps is not None:
                        last = known.get(key or "", last)
                        game.step(last)
    print_text(game.score())


def next_key(pressed: Any, fps: float | None) -> str | None:
    """The next key; with `fps` the last one that is pressed before the next step is due, if any."""
    if fps is None:
        key: str = pressed.read(None)
        return key
    due, last = time.monotonic() + 1 / fps, None
    while (left := due - time.monotonic()) > 0:
        last = pressed.read(left) or last
        if last == "q":
            break
    return last


def _terminal() -> Any:
    try:
        from corral.cli import terminal
    except ImportError:
        raise errors.UnsupportedError("play needs a terminal as Unix has them") from None
    return terminal


def _shown(id: str, config: dict[str, Any], text: bool) -> VectorEnv:
    """One env with the best render mode that it has."""
    with closing(ids.make(id, 1, config)) as envs:
        modes = envs.metadata.get("render_modes", [])
    wanted = ["ansi"] if text else ["rgb_array", "ansi"]
    mode = next((mode for mode in wanted if mode in modes), None)
    if text and mode is None:
        raise errors.UnsupportedError(f"{id} has no text: leave --text out")
    return ids.make(id, 1, config, **({} if mode is None else {"render_mode": mode}))


class _Game:
    """One env, and how the player does."""

    def __init__(self, envs: VectorEnv, id: str, keys: str) -> None:
        self._envs, self._id, self._keys = envs, id, keys
        self._observations: Any = None
        self._rewards, self._steps = 0.0, 0
        self._latest = ""
        self.ended = False

    def begin(self, begins: dict[str, Any]) -> None:
        """Begins an episode."""
        self._observations, _ = self._envs.reset(**begins)
        self._rewards, self._steps, self._latest, self.ended = 0.0, 0, "", False

    def step(self, action: Any) -> None:
        """Plays an action."""
        actions = batch_actions(self._envs.single_action_space, [action])
        self._observations, rewards, terminated, truncated, _ = self._envs.step(actions)
        self._rewards += float(rewards[0])
        self._steps += 1
        self._latest = f", reward {rewards[0]:g}"
        self.ended = bool(terminated[0] or truncated[0])

    def score(self) -> str:
        """How it stands."""
        return f"{self._id}: {self._steps} steps, return {self._rewards:g}"

    def drawn(self) -> RenderableType:
        """What the env looks like, how it stands, and the keys."""
        over = ": the end, any key goes on" if self.ended else ""
        below = Text(f"{self.score()}{self._latest}{over}", "bold")
        return Group(self._picture(), below, Text(f"{self._keys}  q quit", "dim"))

    def _picture(self) -> RenderableType:
        if self._envs.render_mode is None:
            return Text(str(self._observations))
        shown = (self._envs.render() or ("",))[0]
        if isinstance(shown, str):
            return Text.from_ansi(shown)
        terminal = _terminal()
        height = max(1, out.height - _BELOW)
        picture: RenderableType = terminal.blocks(
            terminal.scaled(np.asarray(shown), out.width, 2 * height)
        )
        return picture
