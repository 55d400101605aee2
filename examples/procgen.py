"""Plays 64 games of CoinRun from procgen's own library, and draws them.

    python examples/procgen.py [PICTURE.png]

procgen is a library of the libenv C interface, which `corral.load_libenv` takes as it is. Its wheel
is fetched by pip into a cache, once; the library in it is tied to no version of Python. Takes
corral and pillow.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

import numpy as np
from PIL import Image

import corral

NUM_ENVS, STEPS, COLUMNS = 64, 300, 8
CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "corral" / "procgen-0.10.7"


def fetch() -> Path:
    """The folder with procgen's library and its assets."""
    data = CACHE / "procgen" / "data"
    if not data.exists():
        print("fetching procgen's wheel …")
        with tempfile.TemporaryDirectory() as folder:
            pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
            wheel = ["--only-binary=:all:", "--python-version=3.10"]
            platform = ["--platform=manylinux2014_x86_64", "procgen==0.10.7"]
            subprocess.run([*pip, *wheel, *platform, f"--dest={folder}"], check=True)
            with zipfile.ZipFile(next(Path(folder).glob("*.whl"))) as opened:
                opened.extractall(CACHE)
    return data


def main(picture: str = "procgen.png") -> None:
    """Plays at random, says how fast, and saves what all envs show in the end."""
    data = fetch()
    envs = corral.load_libenv(
        data / "prebuilt" / "libenv.so",
        NUM_ENVS,
        # Each instance draws its levels from its seed.
        lambda instance: {
            "env_name": "coinrun",
            "num_actions": 15,
            "start_level": 0,
            "num_levels": 0,
            "rand_seed": instance,
            "distribution_mode": 1,
            "center_agent": True,
            "use_backgrounds": True,
            "num_threads": 0,
            "resource_root": f"{data / 'assets'}/",
        },
        num_workers=2,
        episode_statistics=True,
    )
    print(envs, envs.single_observation_space, envs.single_action_space, sep="\n")
    observations, _ = envs.reset()
    envs.action_space.seed(0)
    returns: list[float] = []
    began = time.perf_counter()
    for _ in range(STEPS):
        observations, _, _, _, infos = envs.step(envs.action_space.sample())
        if "episode" in infos:
            returns.extend(infos["episode"]["r"][infos["_episode"]])
    seconds = time.perf_counter() - began
    envs.close()
    print(f"{NUM_ENVS * STEPS / seconds:,.0f} steps a second")
    print(f"{len(returns)} episodes ended, of mean return {np.mean(returns or [np.nan]):.2f}")
    frames = observations["rgb"].reshape(-1, COLUMNS, 64, 64, 3)
    grid = frames.transpose(0, 2, 1, 3, 4).reshape(-1, COLUMNS * 64, 3)
    Image.fromarray(grid).save(picture)
    print(f"see {picture}")


if __name__ == "__main__":
    main(*sys.argv[1:])
