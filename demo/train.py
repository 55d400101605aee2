"""Train PPO on CartPole-v1, evaluate it on the episodes of indices 0 to 99, show what came of it.

Writes `learning_curve.png`, `episode.gif` and `evaluation.csv`. The exit status is 1 if the mean
return over the 100 episodes is below 475, where Gymnasium calls CartPole-v1 solved.
"""

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterator
from itertools import cycle
from pathlib import Path

# The matrices are so small that a second BLAS thread takes a core and saves next to no time. NumPy
# reads these when it is imported.
os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"

import imageio.v3 as imageio
import numpy as np
from matplotlib.figure import Figure
from rich.console import Console
from rich.progress import BarColumn, TextColumn
from rich.progress import Progress as ProgressBar
from rich.table import Table

import corral
from corral.examples.ppo import Agent, Config, Progress, train

CONFIG = Config(env="CartPole-v1")
THRESHOLD = 475.0
INDICES = range(100)


def watch(updates: Iterator[Progress], console: Console) -> Progress:
    """Show every update on a terminal, elsewhere one a second; return the last."""
    bar = ProgressBar(
        TextColumn("{task.description}"),
        BarColumn(bar_width=20),
        console=console,
        disable=not console.is_terminal,
    )
    task = bar.add_task("", total=CONFIG.solved_return)
    printed = 0.0
    with bar:
        for progress in updates:
            mean = progress.mean_return()
            line = (
                f"{progress.seconds:5.1f} s  {progress.steps:7,} steps  "
                f"mean return of 100 episodes {mean:5.1f}"
            )
            bar.update(task, description=line, completed=mean)
            if bar.disable and progress.seconds - printed >= 1:
                print(line, flush=True)
                printed = progress.seconds
    if printed < progress.seconds and bar.disable:
        print(line, flush=True)
    return progress


def measure(choose: Callable[[np.ndarray], np.ndarray], seconds: float = 1.0) -> float:
    """Return how many steps per second `choose` and `step` make, less those that only reset."""
    envs = corral.make_vec(CONFIG.env, num_envs=CONFIG.num_envs, seed=0, episode_statistics=True)
    observations, _ = envs.reset()
    steps, elapsed, start = 0, 0.0, time.perf_counter()
    while elapsed < seconds:
        for _ in range(100):
            observations, _, terminated, truncated, _ = envs.step(choose(observations))
            steps += CONFIG.num_envs - int(np.count_nonzero(terminated | truncated))
        elapsed = time.perf_counter() - start
    envs.close()
    return steps / elapsed


def rates(progress: Progress) -> Table:
    """Measure what a step costs without training, without inference, and compare with training."""
    random = cycle(np.random.default_rng(0).integers(2, size=(1000, CONFIG.num_envs)))
    table = Table(title=f"batches of {CONFIG.num_envs} environments")
    table.add_column("")
    table.add_column("steps per second", justify="right")
    table.add_row("step", f"{measure(lambda _: next(random)):,.0f}")
    table.add_row("step + inference", f"{measure(progress.agent.sample):,.0f}")
    table.add_row("step + inference + training", f"{progress.steps / progress.seconds:,.0f}")
    return table


def plot(progress: Progress, mean: float, path: Path) -> None:
    """Draw the return of every training episode over the environment steps."""
    steps, returns = np.array(progress.episodes).T
    thousands = steps / 1000
    window = min(25, len(returns))
    smooth = np.convolve(returns, np.ones(window) / window, mode="valid")
    figure = Figure(figsize=(8, 4.5), dpi=150, layout="constrained")
    axes = figure.add_subplot()
    axes.axhline(THRESHOLD, color="0.35", linestyle="--", linewidth=1)
    axes.annotate(
        f"solved: {THRESHOLD:.0f}",
        (0, THRESHOLD),
        (4, -4),
        textcoords="offset points",
        va="top",
        color="0.35",
        fontsize=9,
    )
    axes.scatter(thousands, returns, s=7, alpha=0.25, linewidths=0, label="training episode")
    axes.plot(
        thousands[window - 1 :], smooth, color="C1", linewidth=2, label=f"mean of {window} episodes"
    )
    axes.set_xlabel("environment steps (thousands)")
    axes.set_ylabel("episode return")
    axes.set_xlim(0, thousands[-1] * 1.02)
    axes.set_ylim(0, 515)
    axes.set_title(
        f"PPO on {CONFIG.env}: {progress.seconds:.1f} s of training, "
        f"mean return {mean:.1f} in {len(INDICES)} evaluation episodes",
        fontsize=11,
        loc="left",
    )
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.2)
    axes.legend(loc="center right", frameon=False)
    figure.savefig(path)


def film(agent: Agent, index: int, path: Path) -> None:
    """Play the episode of an index and write every second frame, at half size and in real time."""
    env = corral.make(CONFIG.env, render_mode="rgb_array")
    observation, _ = env.reset(options={"index": index})
    frames, steps, ended = [], 0, False
    while not ended:
        if steps % 2 == 0:
            frame = env.render()
            height, width, colours = frame.shape
            quads = frame.reshape(height // 2, 2, width // 2, 2, colours)
            frames.append(quads.mean(axis=(1, 3)).astype(np.uint8))
        action = agent.act(observation[None])[0]
        observation, _, terminated, truncated, _ = env.step(action)
        steps, ended = steps + 1, terminated or truncated
    env.close()
    imageio.imwrite(path, np.stack(frames), duration=40, loop=0)  # in ms; a step takes 20


def main() -> int:
    """Run the demo; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seed", type=int, default=1, help="of the training (default: 1)")
    parser.add_argument(
        "--out", type=Path, default=Path(__file__).parent, help="folder (default: the script's)"
    )
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    console = Console()

    print(f"PPO on {CONFIG.env}, {CONFIG.num_envs} environments, seed {options.seed}")
    progress = watch(train(options.seed, CONFIG), console)
    result = corral.evaluate(progress.agent.act, CONFIG.env, indices=INDICES, num_envs=32)

    names = ("learning_curve.png", "episode.gif", "evaluation.csv")
    curve, episode, table = paths = [options.out / name for name in names]
    plot(progress, result.mean, curve)
    film(progress.agent, INDICES[0], episode)
    result.to_csv(table)

    console.print(rates(progress))
    print(f"trained     {progress.seconds:.1f} s, {progress.steps:,} steps")
    print(f"evaluated   mean return {result.mean:.1f} over indices 0 to {INDICES[-1]}")
    print("wrote      ", ", ".join(os.path.relpath(path) for path in paths))
    if result.mean < THRESHOLD:
        print(f"FAILED: the mean return is below {THRESHOLD:.0f}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
