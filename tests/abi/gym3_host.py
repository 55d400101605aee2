"""gym3's own host, run by a Python that has gym3: records a run, or is measured.

    gym3_host.py record JOB.json    plays `actions` and leaves what came of it in `out`
    gym3_host.py measure JOB.json   plays for as many seconds as each line of its input says
    gym3_host.py names JOB.json     plays `actions` once, by name, and prints what came of it

A job has `library`, `num_envs` and `options`; see `tests/abi/peers.py`.
"""

import hashlib
import itertools
import json
import sys
import time
import types
from pathlib import Path

import numpy as np

# What gym3 draws with; nothing is drawn here.
for name in ("glfw", "imageio", "imageio_ffmpeg", "moderngl"):
    sys.modules.setdefault(name, types.ModuleType(name))

from gym3.libenv import CEnv  # noqa: E402


def opened(job):
    """The library under gym3's host."""
    library = Path(job["library"])
    name = library.stem.removeprefix("lib")
    more = {"reuse_arrays": True} if job.get("reuse_arrays") else {}
    return CEnv(job["num_envs"], str(library.parent), name, options=job["options"], **more)


def digest(array):
    """Sixteen bytes that stand for an array's."""
    content = hashlib.blake2b(np.ascontiguousarray(array).tobytes(), digest_size=16).digest()
    return np.frombuffer(content, np.uint8)


def record(job):
    """Observations as digests, all else as it is."""
    env, actions = opened(job), np.load(job["actions"])
    seen = {}

    def look():
        reward, observation, first = env.observe()
        infos = env.get_info()
        parts = {"reward": reward, "first": first}
        parts.update({f"ob {name}": digest(part) for name, part in observation.items()})
        for name in infos[0]:
            parts[f"info {name}"] = np.array([info[name] for info in infos])
        for name, part in parts.items():
            seen.setdefault(name, []).append(part)

    look()
    for action in actions:
        env.act({"action": action})
        look()
    np.savez(job["out"], **{name: np.array(parts) for name, parts in seen.items()})


def measure(job):
    """As `corral.bench` lets a program run."""
    env = opened(job)
    shape = (64, job["num_envs"])
    drawn = np.random.default_rng(0).integers(0, job["options"]["num_actions"], shape)
    actions = itertools.cycle([{"action": action} for action in drawn.astype(np.int32)])
    env.observe()
    print("ready", flush=True)
    for line in sys.stdin:
        began, steps = time.perf_counter(), 0
        while time.perf_counter() - began < float(line):
            env.act(next(actions))
            env.observe()
            steps += job["num_envs"]
        print(steps, time.perf_counter() - began, flush=True)


def names(job):
    """One step, as JSON."""
    env = opened(job)
    types = env.ac_space
    given = {
        name: np.array(np.broadcast_to(job["actions"][name], (job["num_envs"], *kind.shape)))
        for name, kind in types.items()
    }
    given = {name: value.astype(types[name].eltype.dtype_name) for name, value in given.items()}
    env.observe()
    env.act(given)
    reward, observation, _ = env.observe()
    infos = env.get_info()
    info = {name: [np.asarray(one[name]).tolist() for one in infos] for name in infos[0]}
    observation = {name: part.tolist() for name, part in observation.items()}
    print(json.dumps({"reward": reward.tolist(), "observation": observation, "info": info}))


if __name__ == "__main__":
    told = json.loads(Path(sys.argv[2]).read_text())
    {"record": record, "measure": measure, "names": names}[sys.argv[1]](told)
