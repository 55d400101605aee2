"""What a C interface costs: the built-in CartPole beside itself, by way of a library."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import corral
from corral.bench import Bench, Contender, Loop, Program, Skip, Turns

NUM_ENVS = 1024


def actions() -> list[Any]:
    return list(np.random.default_rng(0).integers(0, 2, (64, NUM_ENVS)))


@contextmanager
def stepped(
    make: Callable[[], corral.VectorEnv], wrap: Callable[[Any], Any] = lambda a: a
) -> Iterator[Turns]:
    envs = make()
    envs.reset()
    yield Loop(envs.step, [wrap(action) for action in actions()], NUM_ENVS)
    envs.close()


def built_in(mode: str = "next_step") -> corral.VectorEnv:
    return corral.make_vec("CartPole-v1", NUM_ENVS, seed=0, num_threads=1, autoreset_mode=mode)


def plugin() -> corral.VectorEnv:
    if not corral.plugins.is_loaded("carried/CartPole-v1"):
        corral.load(corral.libenv_path(), namespace="carried")
    return corral.make_vec("carried/CartPole-v1", NUM_ENVS, seed=0, num_threads=1)


def libenv(isolation: str) -> corral.VectorEnv:
    options = {"env_id": "CartPole-v1", "seed": 0}
    return corral.load_libenv(corral.libenv_path(), NUM_ENVS, options, isolation=isolation)


def by_name(action: Any) -> Any:
    return {"action": action}


def bare_loop(env: str) -> Any:
    return Program.rust_example("envs", "bare_loop", env, str(NUM_ENVS))


def env_c_api() -> corral.VectorEnv:
    return corral.load_env_c_api(
        corral.libenv_path(),
        NUM_ENVS,
        isolation="thread",
        settings={"env_id": "CartPole-v1"},
        num_threads=1,
        seed=0,
        autoreset_mode="same_step",
    )


@contextmanager
def c_host(name: str) -> Iterator[Turns]:
    """A program in C that knows the interface's header and nothing else."""
    compiler = shutil.which("cc")
    if compiler is None:
        raise Skip("there is no C compiler")
    source = Path(__file__).resolve().parents[1] / "c" / f"{name}.c"
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / name
        flags = ["-O2", f"-I{corral.include_dir()}"]
        subprocess.run([compiler, *flags, source, "-ldl", "-o", program], check=True)
        with Program([program, corral.libenv_path(), "CartPole-v1", str(NUM_ENVS)]) as turns:
            yield turns


same_step = Contender("built in, same_step", partial(stepped, partial(built_in, "same_step")))

BENCHES = [
    Bench(
        name="plugin-1024",
        what="CartPole as a plugin",
        size="1,024 envs, 1 thread",
        ours=Contender("a plugin", partial(stepped, plugin)),
        theirs=[Contender("built in", partial(stepped, built_in), wanted=0.97)],
    ),
    Bench(
        name="libenv-export-1024",
        what="CartPole in a C loop, by libenv",
        size="1,024 envs, 1 thread",
        ours=Contender("a C host", partial(c_host, "libenv_loop")),
        theirs=[
            Contender(
                "a bare Rust loop over the kernel that shows the same",
                partial(bare_loop, "CartPole-v1-lanes-libenv"),
                wanted=0.95,
            ),
            Contender(
                "a bare Rust loop that shows the same, env by env",
                partial(bare_loop, "CartPole-v1-libenv"),
            ),
        ],
    ),
    Bench(
        name="libenv-load-1024",
        what="CartPole by libenv, loaded here",
        size="1,024 envs, 1 thread",
        ours=Contender("load_libenv", partial(stepped, partial(libenv, "thread"), by_name)),
        theirs=[Contender(same_step.name, same_step.open, wanted=0.9)],
    ),
    Bench(
        name="env_c_api-load-1024",
        what="CartPole by EnvCApi, loaded here",
        size="1,024 envs, 1 thread",
        ours=Contender("load_env_c_api", partial(stepped, env_c_api, by_name)),
        theirs=[
            # At most 25 % over.
            Contender(
                "a C host that makes the same calls",
                partial(c_host, "env_c_api_loop"),
                wanted=0.8,
            ),
            Contender(same_step.name, same_step.open),
        ],
    ),
]
