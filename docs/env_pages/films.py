"""A film of an episode for each page: small, for there are many."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

import corral
from corral.cli.policies import Random, Single
from env_pages import pages, policies

# A picture's longer side, in pixels, and how many colours a film has.
_SIDE, _COLOURS = 192, 192
_PICTURES = 60
# Episodes are shown until there are so many pictures; the first one is typical of so many.
_FEW, _TRIED = 20, 21
# How long the last picture stays, in ms.
_LAST = 1000
MOST_BYTES = 150_000
"""How large a film may be."""


def missing(texts: dict[str, Any]) -> list[str]:
    """Pages without a film."""
    return [name for name in texts["pages"] if not path_of(name).exists()]


def path_of(name: str) -> Path:
    return pages.PAGES / f"{name}.gif"


def film(name: str, texts: dict[str, Any]) -> None:
    """Films an env of a page, that of `policies.FILMED` or its first: an episode, or more."""
    id = policies.FILMED.get(name, pages.ids_of(name, texts)[0])
    good = policies.of(id)
    frames, pause = _play(id, good, _typical(id, good))
    every = max(1, -(-len(frames) // _PICTURES)) if pause < 60 else 1
    chosen = frames[: every * _PICTURES : every]
    pictures = _same_palette([_small(frame) for frame in chosen])
    pauses = [pause * every] * len(pictures)
    pauses[-1] = _LAST
    path = path_of(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    pictures[0].save(path, save_all=True, append_images=pictures[1:], duration=pauses, loop=0)
    print(f"{name}: {len(pictures)} pictures, {path.stat().st_size:,} bytes", flush=True)


def _policy(id: str, good: policies.Good | None, envs: corral.VectorEnv) -> Any:
    return Random(envs, 0) if good is None else good.make(id)


def _typical(id: str, good: policies.Good | None) -> int:
    """The first index whose return is the middle one of some."""
    config = {} if good is None else good.config
    with closing(corral.make_vec(id, _TRIED, autoreset_mode="disabled", **config)) as envs:
        returns = corral.evaluate(_policy(id, good, envs), envs, range(_TRIED)).returns
    return int(np.flatnonzero(returns == np.sort(returns)[_TRIED // 2])[0])


def _play(id: str, good: policies.Good | None, index: int) -> tuple[list[Any], int]:
    """The pictures of the episodes from an index on, and how long each is shown, in ms."""
    config = {} if good is None else good.config
    options = {**config, "render_mode": "rgb_array", "autoreset_mode": "disabled"}
    frames: list[Any] = []
    with closing(corral.make_vec(id, 1, **options)) as envs:
        while len(frames) < _FEW:
            policy = Single(_policy(id, good, envs), index)
            observations, infos = envs.reset(options={"index": index})
            frames.append(envs.render()[0])
            began, is_over = True, False
            while not is_over and len(frames) < 4 * _PICTURES:
                actions = policy(observations, infos, began=began)
                observations, _, terminations, truncations, infos = envs.step(actions)
                frames.append(envs.render()[0])
                began, is_over = False, bool(terminations[0] or truncations[0])
            index += 1
        # GIFs count in hundredths of a second, and viewers slow faster ones than these down.
        return frames, max(40, round(100 / envs.metadata["render_fps"]) * 10)


def _small(frame: np.ndarray[Any, Any]) -> Image.Image:
    picture = Image.fromarray(frame)
    scale = _SIDE / max(picture.size)
    if scale >= 1:
        return picture
    size = tuple(max(1, round(side * scale)) for side in picture.size)
    return picture.resize(size, Image.Resampling.BOX)


def _same_palette(pictures: list[Image.Image]) -> list[Image.Image]:
    """The pictures in the colours of one palette, so that what stays is the same in each."""
    width, height = pictures[0].size
    shown = pictures[:: max(1, len(pictures) // 8)]
    sheet = Image.new("RGB", (width, height * len(shown)))
    for k, picture in enumerate(shown):
        sheet.paste(picture, (0, k * height))
    palette = sheet.quantize(_COLOURS)
    return [picture.quantize(palette=palette, dither=Image.Dither.NONE) for picture in pictures]
