"""CartPole: how fast a batch of light envs can be stepped from Python."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Any

import numpy as np

import corral
from corral.bench import Bench, Contender, Limit, Loop, Program, Turns, needs
from pufferlib_elsewhere import needs_pufferlib

PREPARED = 64


def actions(num_envs: int, dtype: Any = np.int64) -> list[Any]:
    """Batches of random pushes."""
    return list(np.random.default_rng(0).integers(0, 2, (PREPARED, num_envs)).astype(dtype))


@contextmanager
def ours(num_envs: int, **settings: Any) -> Iterator[Turns]:
    envs = corral.make_vec("CartPole-v1", num_envs, seed=0, **settings)
    envs.reset()
    yield Loop(envs.step, actions(num_envs), num_envs)
    envs.close()


@contextmanager
def native(num_envs: int) -> Iterator[Turns]:
    """What `VectorEnv.step` calls."""
    envs = corral.make_vec("CartPole-v1", num_envs, seed=0, num_threads=1)
    envs.reset()
    yield Loop(envs.native.step, actions(num_envs), num_envs)
    envs.close()


@contextmanager
def envpool(num_envs: int, num_threads: int = 1) -> Iterator[Turns]:
    settings = {"num_envs": num_envs, "num_threads": num_threads, "seed": 0}
    envs = needs("envpool").make("CartPole-v1", env_type="gymnasium", **settings)
    envs.reset()
    yield Loop(envs.step, actions(num_envs, np.int32), num_envs)
    envs.close()


@contextmanager
def gymnasium_numpy(num_envs: int) -> Iterator[Turns]:
    """Gymnasium's own vector env, in NumPy."""
    make_vec = needs("gymnasium").make_vec
    envs = make_vec("CartPole-v1", num_envs=num_envs, vectorization_mode="vector_entry_point")
    envs.reset(seed=0)
    yield Loop(envs.step, actions(num_envs), num_envs)
    envs.close()


@contextmanager
def pufferlib(num_envs: int) -> Iterator[Turns]:
    """Its env in C, float32; its arrays are overwritten by the next step."""
    envs = needs_pufferlib("pufferlib.ocean.cartpole.cartpole").Cartpole(
        num_envs, report_interval=10**9
    )
    envs.reset(seed=0)
    yield Loop(envs.step, actions(num_envs, np.float32), num_envs)
    envs.close()


def bare_loop(num_envs: int, env: str = "CartPole-v1") -> AbstractContextManager[Turns]:
    """The same env type in a Rust loop that writes the same batch into one set of buffers."""
    return Program.rust_example("envs", "bare_loop", env, str(num_envs))


@contextmanager
def single(make: Callable[[], Any]) -> Iterator[Turns]:
    """One env, reset when its episode is over: every 20 or so random steps."""
    env = make()
    env.reset(seed=0)
    step, reset = env.step, env.reset

    def play(action: int) -> None:
        _, _, terminated, truncated, _ = step(action)
        if terminated or truncated:
            reset()

    yield Loop(play, [int(action) for action in actions(1024)[0]])
    env.close()


def by_gymnasium() -> Any:
    return needs("gymnasium").make("CartPole-v1")


def automatic(num_envs: int) -> Bench:
    one = Contender("corral, 1 thread", partial(ours, num_envs, num_threads=1), wanted=0.9)
    return Bench(
        name=f"cartpole-{num_envs}-auto",
        what="CartPole, automatic threads",
        size=f"{num_envs} envs",
        ours=Contender("corral", partial(ours, num_envs)),
        theirs=[one],
    )


ONE_THREAD = Contender("corral, 1 thread", partial(ours, 4096, num_threads=1))

# Of PufferLib's rate, by the registers that this CPU has.
WIDE = 3.5 if corral.simd().registers == "avx512" else 2

BENCHES = [
    Bench(
        name="cartpole-4096",
        what="CartPole",
        size="4,096 envs, 1 thread",
        ours=ONE_THREAD,
        theirs=[
            Contender("EnvPool", partial(envpool, 4096), "envpool", wanted=100),
            Contender("Gymnasium NumPy", partial(gymnasium_numpy, 4096), "gymnasium", wanted=7),
            Contender("PufferLib (C, float32)", partial(pufferlib, 4096), "pufferlib", wanted=WIDE),
            Contender(
                "a bare loop over the kernel",
                partial(bare_loop, 4096, "CartPole-v1-lanes"),
                wanted=0.6,
            ),
            Contender("a bare loop, env by env", partial(bare_loop, 4096)),
        ],
    ),
    Bench(
        name="cartpole-4096-threads",
        what="CartPole, 2 threads",
        size="4,096 envs",
        ours=Contender("corral, 2 threads", partial(ours, 4096, num_threads=2)),
        theirs=[
            Contender("corral, 1 thread", ONE_THREAD.open, wanted=1.6),
            Contender("EnvPool, 2 threads", partial(envpool, 4096, 2), "envpool"),
        ],
    ),
    automatic(64),
    automatic(256),
    Bench(
        name="cartpole-1-vector",
        what="VectorEnv.step",
        size="1 env",
        ours=Contender("corral", partial(ours, 1)),
        theirs=[
            Limit("a limit of 5 µs", 1 / 5e-6),
            Contender("EnvPool", partial(envpool, 1), "envpool"),
            Contender("Gymnasium NumPy", partial(gymnasium_numpy, 1), "gymnasium"),
            Contender("PufferLib (C, float32)", partial(pufferlib, 1), "pufferlib"),
        ],
        per_call=True,
    ),
    Bench(
        name="cartpole-1-native",
        what="the native call in it",
        size="1 env",
        ours=Contender("corral", partial(native, 1)),
        theirs=[Limit("a limit of 1.2 µs", 1 / 1.2e-6)],
        per_call=True,
    ),
    Bench(
        name="cartpole-1-make",
        what="corral.make(…).step, resets included",
        size="1 env",
        ours=Contender("corral", partial(single, partial(corral.make, "CartPole-v1", seed=0))),
        theirs=[Contender("gymnasium.make", partial(single, by_gymnasium), "gymnasium", wanted=2)],
        per_call=True,
    ),
]
