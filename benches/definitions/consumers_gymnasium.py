"""What trainers on Gymnasium's vector envs pay for a step: ours beside Gymnasium's, under what
TorchRL, skrl and RLlib do around each step.

The trainers themselves are left out. Their networks take the same time over any envs, and PyTorch
is no part of the benches' venv.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np

import corral
from corral.bench import Bench, Contender, Loop, Turns, needs

ID = "CartPole-v1"
# skrl and RLlib let the envs reset themselves; TorchRL does it by a mask.
MODES = {"torchrl": "disabled", "skrl": "same_step", "rllib": "next_step"}


def torchrl(envs: Any) -> Callable[[Any], Any]:
    """One-hot actions in, float32 rewards out, and a reset of the rows that ended."""

    def step(encoded: Any) -> Any:
        batch = envs.step(encoded.argmax(-1))
        observations, rewards, terminations, truncations, _ = batch
        kept = [np.array(observations, np.float32), rewards.astype(np.float32)[:, None]]
        done = terminations | truncations
        if done.any():
            envs.reset(options={"reset_mask": done})
        return kept

    return step


def skrl(envs: Any) -> Callable[[Any], Any]:
    """Copies of everything, as `torch.tensor` makes them, a column each."""

    def step(actions: Any) -> Any:
        observations, rewards, terminations, truncations, _ = envs.step(actions.reshape(-1))
        return (
            np.array(observations, np.float32),
            np.array(rewards, np.float32)[:, None],
            np.array(terminations)[:, None],
            np.array(truncations)[:, None],
        )

    return step


def rllib(envs: Any) -> Callable[[Any], Any]:
    """A list of infos, and a row of each env for its own episode."""

    def step(actions: Any) -> Any:
        observations, rewards, terminations, truncations, infos = envs.step(list(actions))
        each: list[dict[str, Any]] = [{} for _ in range(envs.num_envs)]
        for name, values in infos.items():
            if not name.startswith("_") and isinstance(values, np.ndarray):
                for row in np.flatnonzero(infos[f"_{name}"]):
                    each[row][name] = values[row]
        return [
            (observations[row], rewards[row], terminations[row] or truncations[row], each[row])
            for row in range(envs.num_envs)
        ]

    return step


AROUND: dict[str, Callable[[Any], Callable[[Any], Any]]] = {
    "torchrl": torchrl,
    "skrl": skrl,
    "rllib": rllib,
}


def inputs(trainer: str, num_envs: int) -> list[Any]:
    actions = np.random.default_rng(0).integers(0, 2, (64, num_envs))
    if trainer == "torchrl":
        return list(np.eye(2, dtype=np.int64)[actions])
    return list(actions)


@contextmanager
def driven(make: Callable[[], Any], trainer: str) -> Iterator[Turns]:
    envs = make()
    envs.reset(seed=0)
    yield Loop(AROUND[trainer](envs), inputs(trainer, envs.num_envs), envs.num_envs)
    envs.close()


def ours(trainer: str, num_envs: int) -> Any:
    return corral.make_vec(ID, num_envs, autoreset_mode=MODES[trainer])


def gymnasiums(kind: str, trainer: str, num_envs: int) -> Any:
    gymnasium = needs("gymnasium")
    vector = gymnasium.vector
    mode = vector.AutoresetMode[MODES[trainer].upper()]
    makers = [partial(gymnasium.make, ID)] * num_envs
    return getattr(vector, kind)(makers, autoreset_mode=mode)


def bench(trainer: str, num_envs: int, sync: float, apart: float) -> Bench:
    def contender(kind: str, wanted: float, is_apart: bool) -> Contender:
        make = partial(gymnasiums, kind, trainer, num_envs)
        opened = partial(driven, make, trainer)
        return Contender(kind, opened, "gymnasium", wanted=wanted, apart=is_apart)

    return Bench(
        name=f"consumers-{trainer}-{num_envs}",
        what=f"CartPole under what {trainer} does in a step, beside Gymnasium's vector envs",
        size=f"{num_envs} envs",
        ours=Contender("corral", partial(driven, partial(ours, trainer, num_envs), trainer)),
        theirs=[
            contender("SyncVectorEnv", sync, False),
            contender("AsyncVectorEnv", apart, True),
        ],
    )


BENCHES = [
    bench("torchrl", 16, 10, 50),
    bench("skrl", 16, 20, 50),
    bench("rllib", 16, 8, 50),
]
