"""What EnvPool and corral's drop-in for it answer to the same calls, as JSON.

Run by a Python that has both.

Values are told where they follow from the calls alone, for EnvPool's random numbers are its own.
"""

from __future__ import annotations

import importlib
import json
import sys
import types
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

# Up, along the cliff, and down to the goal: 13 steps.
ALONG_THE_CLIFF = [0, *[1] * 11, 2]


def described(value: Any) -> Any:
    """Dtypes and shapes, nested as the value."""
    if isinstance(value, np.ndarray):
        return [str(value.dtype), list(value.shape)]
    if hasattr(value, "_fields"):
        parts = {name: described(part) for name, part in zip(value._fields, value)}
        return {"": type(value).__name__, **parts}
    if isinstance(value, dict):
        return {name: described(part) for name, part in sorted(value.items())}
    if isinstance(value, tuple):
        return [described(part) for part in value]
    return repr(value)


def told(row: Any) -> Any:
    """Values of arrays, nested as the value."""
    if isinstance(row, np.ndarray):
        return row.tolist()
    if isinstance(row, dict):
        return {name: told(part) for name, part in sorted(row.items())}
    return [told(part) for part in row]


def attempted(call: Callable[[], Any]) -> str:
    """Whether a call fails."""
    try:
        call()
    except Exception:
        return "fails"
    return "passes"


def actions_of(envs: Any, rows: int, value: float) -> Any:
    space = envs.action_space
    return np.full((rows, *space.shape), value, space.dtype)


def shapes(module: Any, task: str) -> Any:
    """Spaces, and what reset and step give."""
    envs = module.make_gymnasium(task, num_envs=3, seed=3)
    spec = module.make_spec(task, num_envs=3)
    space = envs.observation_space
    batches = [envs.reset(), envs.step(actions_of(envs, 3, 1))]
    return {
        "observation_space": repr(space),
        "action_space": repr(envs.action_space),
        "of one env": [
            repr(envs.single_observation_space) == repr(space),
            repr(envs.single_action_space) == repr(envs.action_space),
            repr(spec.observation_space) == repr(space),
            repr(spec.gymnasium_action_space) == repr(envs.action_space),
        ],
        "reset": described(batches[0]),
        "step": described(batches[1]),
        "own arrays": bool(batches[0][1]["env_id"].flags.writeable),
        "reward_threshold": [spec.reward_threshold, envs.spec.reward_threshold],
        "config": [envs.config["num_envs"], envs.config["batch_size"], spec.config.num_envs],
        "max_episode_steps": envs.config["max_episode_steps"],
    }


def dm_shapes(module: Any, task: str) -> Any:
    envs = module.make_dm(task, num_envs=3, seed=3)
    action = envs.action_spec()
    first = envs.reset()
    step = envs.step(np.zeros((3, *action.shape), action.dtype))
    return {
        "observation_spec": repr(envs.observation_spec().obs),
        "fields": sorted(envs.observation_spec()._fields),
        "action_spec": repr(action),
        "reset": described(first),
        "step": described(step),
    }


def ends(module: Any, task: str, action: float) -> Any:
    """Time limits, and the steps after them."""
    envs = module.make(task, "gymnasium", num_envs=2, max_episode_steps=5)
    envs.reset()
    rows = []
    for _ in range(13):
        _, rewards, terminations, truncations, infos = envs.step(actions_of(envs, 2, action))
        zero = (rewards == 0).tolist()
        rows.append([zero, *map(told, (terminations, truncations, infos["elapsed_step"]))])
    return rows


def mixed(module: Any) -> Any:
    """Counts where all envs and some take turns, over the ends of episodes."""
    envs = module.make_gymnasium("Pendulum-v1", num_envs=3, max_episode_steps=3)
    envs.reset()
    rows = []
    for step in range(14):
        ids = np.arange(3) if step % 3 == 0 else np.array([step % 2, 2])
        action = np.zeros((len(ids), 1), np.float32)
        batch = envs.step(action) if step % 3 == 0 else envs.step(action, ids)
        rows.append([told(batch[3]), told(batch[4]["elapsed_step"]), told(batch[4]["env_id"])])
    return rows


def dm_ends(module: Any, task: str, action: float) -> Any:
    envs = module.make(task, "dm", num_envs=2, max_episode_steps=5)
    envs.reset()
    space = envs.action_spec()
    steps = [envs.step(np.full((2, *space.shape), action, space.dtype)) for _ in range(13)]
    return {
        "types": [told(step.step_type) for step in steps],
        "no reward": [told(step.reward == 0) for step in steps],
        "discounts": [told(step.discount) for step in steps],
    }


def cliff(module: Any) -> Any:
    """A whole walk, twice, bit for bit: nothing in it is random."""
    envs = module.make_gymnasium("CliffWalking-v1", num_envs=2)
    first = told(envs.reset()[0])
    rows = []
    for action in [*ALONG_THE_CLIFF, 3, *ALONG_THE_CLIFF, 3]:
        *values, infos = envs.step(np.full(2, action))
        rows.append(told([*values, infos["elapsed_step"], infos["env_id"]]))
    return [first, rows]


def dm_cliff(module: Any) -> Any:
    envs = module.make_dm("CliffWalking-v1", num_envs=1)
    envs.reset()
    rows = []
    for action in [*ALONG_THE_CLIFF, 3, 0]:
        step = envs.step(np.array([action]))
        told_of = (step.step_type, step.reward, step.discount, step.observation.obs)
        rows.append(told(told_of))
    return rows


def a_goal_at_the_limit(module: Any) -> Any:
    """Flags where an episode terminates in the step of the time limit, and dm_env's discount."""
    limit = len(ALONG_THE_CLIFF)
    envs = module.make_gymnasium("CliffWalking-v1", num_envs=1, max_episode_steps=limit)
    envs.reset()
    for action in ALONG_THE_CLIFF:
        _, _, terminations, truncations, _ = envs.step(np.array([action]))
    return told([terminations, truncations])


def some(module: Any) -> Any:
    """Steps and resets of some envs, and what is before the first reset."""
    envs = module.make_gymnasium("CartPole-v1", num_envs=4, seed=1)

    def row(batch: Any) -> Any:
        return [described(batch), told(batch[-1]["env_id"]), told(batch[-1]["elapsed_step"])]

    pushes = np.zeros(4, np.int32)
    named = {"action": pushes[:2], "env_id": np.array([2, 0], np.int32)}
    rows = [
        row(envs.step(pushes)),
        row(envs.step(pushes)),
        row(envs.reset(np.array([3, 1]))),
        row(envs.step(pushes[:2], np.array([1, 2]))),
        row(envs.step({"action": pushes})),
        row(envs.step(named)),
        row(envs.reset(options={"reset_mask": np.array([False, True, False, False])})),
        row(envs.reset()),
        row(envs.step(np.zeros(4))),
    ]
    envs.send(pushes[:1], np.array([3]))
    rows.append(row(envs.recv()))
    envs.async_reset()
    rows.append(row(envs.recv(reset=True)))
    envs.async_reset()
    rows.append(row(envs.recv()))
    return rows


def some_never_reset(module: Any) -> Any:
    envs = module.make_gymnasium("CartPole-v1", num_envs=3, seed=1)
    envs.reset(np.array([1]))
    pushes = np.zeros(3, np.int32)
    return [told(envs.step(pushes)[-1]["elapsed_step"]) for _ in range(2)]


def in_flight(module: Any, env_type: str) -> Any:
    """Each env's own history under send and recv; which envs share a batch is by chance."""
    envs = module.make("CartPole-v1", env_type, num_envs=4, batch_size=2, max_episode_steps=4)
    envs.async_reset()
    histories: list[list[Any]] = [[] for _ in range(4)]
    rows, batches = set(), []
    while min(map(len, histories)) < 12:
        batch = envs.recv()
        if described(batch) not in batches:
            batches.append(described(batch))
        if env_type == "dm":
            ids = batch.observation.env_id
            values = [batch.step_type, batch.reward]
        else:
            _, rewards, terminations, truncations, infos = batch
            ids = infos["env_id"]
            values = [rewards, terminations, truncations, infos["elapsed_step"]]
        rows.add(len(ids))
        for row, env in enumerate(ids.tolist()):
            histories[env].append([value[row].item() for value in values])
        envs.send(np.zeros(len(ids), np.int32), ids)
    return {
        "histories": [history[:12] for history in histories],
        "rows": sorted(rows),
        "batches": batches,
        "is_async": envs.is_async,
    }


def asked(module: Any) -> Any:
    """What envs are asked for besides, and what fails."""
    envs = module.make("CartPole-v1", env_type="gym", num_envs=3, seed=[5, 6, 7])
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        envs.seed(3)
    make = module.make
    return {
        "len": len(envs),
        "all_env_ids": [told(envs.all_env_ids), str(envs.all_env_ids.dtype)],
        "is_async": envs.is_async,
        "num_envs": envs.num_envs,
        "is_vector_env": envs.is_vector_env,
        "render_mode": envs.render_mode,
        "bases": sorted(
            base.__name__ for base in type(envs).__mro__ if base.__module__.startswith("gymnasium.")
        ),
        "autoreset_mode": envs.metadata["autoreset_mode"].value,
        "seed warns": len(warned),
        "env_seed": envs.config["env_seed"],
        "is listed": "CartPole-v1" in module.list_all_envs(),
        "usual seed": make("CartPole-v1", "gym").config["seed"],
        "fails": {
            "an id": attempted(lambda: make("CartPoleau-v1", "gym")),
            "a type": attempted(lambda: make("CartPole-v1", "gymnast")),
            "an option": attempted(lambda: make("CartPole-v1", "gym", num_env=2)),
            "no envs": attempted(lambda: make("CartPole-v1", "gym", num_envs=0)),
            "a batch": attempted(lambda: make("CartPole-v1", "gym", num_envs=2, batch_size=3)),
            "seeds": attempted(lambda: make("CartPole-v1", "gym", num_envs=2, seed=[1])),
            "players": attempted(lambda: make("CartPole-v1", "gym", max_num_players=0)),
            "info": attempted(
                lambda: make("CartPole-v1", "gymnasium", gym_reset_return_info=False)
            ),
            "render": attempted(envs.render),
            "xla": attempted(envs.xla),
        },
    }


def before_gym_0_26(module: Any, **asked_for: Any) -> Any:
    """The interface of Gym before 0.26, by EnvPool before 1.0."""
    envs = module.make(
        "CartPole-v1", env_type="gym", num_envs=2, max_episode_steps=5, seed=1, **asked_for
    )
    rows = [described(envs.reset())]
    for _ in range(8):
        batch = envs.step(np.zeros(2, np.int32))
        _, rewards, dones, infos = batch
        cut = infos["TimeLimit.truncated"]
        rows.append([described(batch), *map(told, (rewards, dones, cut, infos["elapsed_step"]))])
    envs.async_reset()
    rows.append(described(envs.recv()))
    # CleanRL's programs set these.
    envs.num_envs = 2
    envs.single_action_space = envs.action_space
    envs.single_observation_space = envs.observation_space
    return rows


def everything(module: Any) -> dict[str, Any]:
    continuous = ("Pendulum-v1", "MountainCarContinuous-v0")
    control = ("CartPole-v1", "MountainCar-v0", *continuous)
    return {
        **{f"shapes of {task}": shapes(module, task) for task in (*control, "FrozenLake-v1")},
        **{
            f"dm: shapes of {task}": dm_shapes(module, task) for task in (*control, "FrozenLake-v1")
        },
        **{f"ends of {task}": ends(module, task, 0) for task in ("CartPole-v1", *continuous)},
        **{
            f"dm: ends of {task}": dm_ends(module, task, 0) for task in ("CartPole-v1", *continuous)
        },
        "mixed": mixed(module),
        "cliff": cliff(module),
        "dm: cliff": dm_cliff(module),
        "a goal at the limit": a_goal_at_the_limit(module),
        "some": some(module),
        "some never reset": some_never_reset(module),
        "in flight": in_flight(module, "gymnasium"),
        "dm: in flight": in_flight(module, "dm"),
        "asked": asked(module),
    }


def light_envpool() -> Any:
    """EnvPool with its small envs alone. All that `envpool.entry` does is register each family, and
    most of them want 600 MB of models and pictures."""
    sys.modules["envpool.entry"] = types.ModuleType("envpool.entry")
    module = importlib.import_module("envpool")
    for family in ("classic_control", "toy_text"):
        importlib.import_module(f"envpool.{family}.registration")
    return module


def main() -> None:
    """The account of both modules: `{"theirs": {question: answer}, "ours": …}`."""
    warnings.simplefilter("ignore")
    ours = importlib.import_module("corral.compat.envpool")
    if json.loads(sys.argv[1])["is_before_gym_0_26"]:
        theirs = importlib.import_module("envpool")
        account = {
            "theirs": {"all": before_gym_0_26(theirs)},
            "ours": {"all": before_gym_0_26(ours, gym_reset_return_info=False)},
        }
    else:
        theirs = light_envpool()
        account = {"theirs": everything(theirs), "ours": everything(ours)}
    print(json.dumps(account))


if __name__ == "__main__":
    main()
