"""Drives classes of `corral.to_trl` as TRL's `GRPOTrainer` does: tools by its rule, their schemas
by transformers, `reset` with the columns of dataset rows."""

from __future__ import annotations

import inspect
import json
from typing import Any

import gymnasium
import numpy as np
from datasets import Dataset
from gymnasium import spaces
from transformers.utils import get_json_schema

import corral
from corral.adapters.trl import rows


class Echo(gymnasium.Env[Any, Any]):
    """Rewards the word that it showed."""

    observation_space = spaces.Text(9)
    action_space = spaces.Text(9)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.word = "".join(self.np_random.choice(list("abcdef"), 4))
        return self.word, {}

    def step(self, action: Any) -> Any:
        return "next", float(action == self.word), True, False, {}


class Moves(gymnasium.Env[Any, Any]):
    """Takes actions of a space that is given."""

    observation_space = spaces.Dict({"at": spaces.Box(-9, 9, (2,)), "say": spaces.Text(9)})

    def __init__(self, action_space: Any) -> None:
        self.action_space = action_space

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        return {"at": np.array([0.12345, 1.0], np.float32), "say": "hello"}, {}

    def step(self, action: Any) -> Any:
        assert self.action_space.contains(action), action
        return self.reset()[0], 0.5, False, False, {}


def tools(instance: Any) -> list[Any]:
    """As the trainer lists them."""
    return [
        getattr(instance, name)
        for name, _ in inspect.getmembers(type(instance), predicate=inspect.isfunction)
        if name not in ("reset", "get_reward") and not name.startswith("_")
    ]


def schema(cls: Any) -> Any:
    (tool,) = tools(cls())
    return get_json_schema(tool)["function"]


def main() -> None:
    out: dict[str, Any] = {}
    lake = corral.to_trl(
        *("FrozenLake-v1",),
        render_mode="ansi",
        actions=["left", "down", "right", "up"],
        tool="move",
        about="Walks one step over the ice.",
        is_slippery=False,
    )
    out["named"] = schema(lake)
    out["label"] = schema(corral.to_trl("CartPole-v1"))
    kinds = {
        "text": spaces.Text(9),
        "several": spaces.MultiDiscrete([2, 5]),
        "box": spaces.Box(-1, 1, (2,)),
    }
    classes = {
        kind: corral.to_trl(lambda space=space: Moves(space)) for kind, space in kinds.items()
    }
    for kind, cls in classes.items():
        out[kind] = schema(cls)
    given: dict[str, Any] = {"text": "abc", "several": [1, 4], "box": [0.5, -1]}
    out["shown"] = {}
    for kind, cls in classes.items():
        env = cls()
        env.reset(index=0)
        out["shown"][kind] = env.act(given[kind])

    # Two groups of three completions, as the trainer's sampler repeats the rows of a dataset.
    dataset = Dataset.from_list(rows([4, 7], "Cross the lake."))
    batch = [dataset[k] for k in (0, 0, 0, 1, 1, 1)]
    for name, cls in (
        ("lake", lake),
        ("pole", corral.to_trl("CartPole-v1")),
        ("echo", corral.to_trl(Echo)),
    ):
        pool = [cls() for _ in batch]
        out[name] = {"starts": [env.reset(**row) for env, row in zip(pool, batch, strict=True)]}
        # The pool is used again for the next batch.
        out[name]["again"] = [env.reset(**row) for env, row in zip(pool, batch, strict=True)]
    calls = json.loads('[{"action": "down"}, {"action": "nowhere"}, {"action": "down"}]')
    env = lake()
    env.reset(**batch[0])
    said = []
    for arguments in [
        *calls,
        *[{"action": way} for way in ("right", "right", "down", "right", "up")],
    ]:
        try:
            said.append(
                {name: tool for name, tool in [(t.__name__, t) for t in tools(env)]}["move"](
                    **arguments
                )
            )
        except Exception as error:
            said.append(f"{type(error).__name__}: {error}")
    out["said"], out["reward"], out["steps"] = said, env.get_reward(), env.steps
    echo = corral.to_trl(Echo)()
    word = echo.reset(**batch[0])
    out["echoed"] = [echo.act(word), echo.get_reward(), echo.reset(index=4) == word, echo.reward]
    print(json.dumps(out))


if __name__ == "__main__":
    main()
