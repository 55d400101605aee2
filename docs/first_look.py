"""Draws docs/first_look.png: the demo's learning curve beside twelve levels of Maze-v0.

Run after `make demo`: `.venv/bin/python docs/first_look.py`.
"""

from pathlib import Path

import numpy as np
from PIL import Image

import corral

ROOT = Path(__file__).parent.parent
SCALE, GAP = 2, 8


def levels(columns: int, rows: int) -> Image.Image:
    """The first levels, each 64×64 observation enlarged, on white."""
    envs = corral.make_vec("Maze-v0", columns * rows)
    observations, _ = envs.reset(options={"index": 0})
    tiles = observations.repeat(SCALE, axis=1).repeat(SCALE, axis=2)
    padded = np.pad(tiles, ((0, 0), (0, GAP), (0, GAP), (0, 0)), constant_values=255)
    _, height, width, _ = padded.shape
    grid = padded.reshape(rows, columns, height, width, 3).swapaxes(1, 2)
    return Image.fromarray(grid.reshape(rows * height, columns * width, 3))


def main() -> None:
    """Writes the picture."""
    mazes = levels(4, 3)
    curve = Image.open(ROOT / "demo" / "learning_curve.png").convert("RGB")
    curve = curve.resize((round(curve.width * mazes.height / curve.height), mazes.height))
    margin = 3 * GAP
    picture = Image.new("RGB", (curve.width + margin + mazes.width, mazes.height), "white")
    picture.paste(curve, (0, 0))
    picture.paste(mazes, (curve.width + margin, 0))
    picture.save(ROOT / "docs" / "first_look.png", optimize=True)


if __name__ == "__main__":
    main()
