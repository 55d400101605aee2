"""`corral info`."""

from __future__ import annotations

import inspect
import json
from contextlib import closing
from typing import Any

from gymnasium.envs.registration import EnvSpec, load_env_creator
from rich.table import Table
from rich.text import Text

import corral
from corral.cli import env_texts, ids
from corral.cli.app import Json, app, errors_told, out, print_json
from corral.cli.docstrings import meanings, summary
from corral.draws import Draws
from corral.vector import VectorEnv

# Random steps that are played to see rewards.
_STEPS = 200
# The index whose episode is compared with the seed's, and how far.
_INDEX, _FAR = 3, 20
# Bounds so far away are those of the type.
_UNBOUNDED = 2**31 - 1
# Envs that reset themselves have this mode alone.
_MODE = "same_step"
_TYPES = {bool: "bool", int: "int", float: "float", str: "text", list: "list", dict: "object"}


@app.command("info")
def info(
    id: ids.Id, option: ids.Options = None, loads: ids.Loads = None, as_json: Json = False
) -> None:
    """What an env shows, takes, gives and can do, and its options.

    Some random steps are played to see rewards, and what an index is.

    Example: corral info CartPole-v1
    """
    with errors_told():
        ids.load(loads)
        told = _told(id, ids.options_of(option))
    if as_json:
        print_json(told)
    else:
        out.print(_table(told), soft_wrap=True)


def _told(id: str, config: dict[str, Any]) -> dict[str, Any]:
    spec = ids.python_spec(id)
    with closing(ids.make(id, 1, config, autoreset_mode=_MODE)) as envs:
        described = _described(envs.native.id) if spec is None else _python_described(spec)
        native = envs.native
        limit = envs.max_episode_steps
        if limit is None and spec is not None and "max_episode_steps" not in config:
            limit = spec.max_episode_steps
        return {
            "id": id,
            **described,
            "observation": _space(envs.single_observation_space, native.observation_leaves),
            "action": _space(envs.single_action_space, native.action_leaves),
            "infos": [_leaf(leaf) for leaf in native.info_leaves],
            "reward": _rewards(envs),
            "reward_threshold": described["reward_threshold"],
            "max_episode_steps": limit,
            "render_modes": [
                mode for mode in envs.metadata.get("render_modes", []) if mode != "human"
            ],
            "render_fps": envs.metadata.get("render_fps"),
            "index": _index(id, config) if native.can("index") else None,
            "capabilities": native.caps,
        }


def _described(own: str) -> dict[str, Any]:
    """Of an env of ours or a library's; hidden ones are in no table."""
    entry = corral.envs().get(own, {})
    texts = env_texts.of(own)
    defaults = entry.get("options", {})
    options = [
        {"name": name, "default": defaults[name], **doc}
        for name, doc in entry.get("option_docs", {}).items()
    ]
    return {
        "source": "library" if entry and "/" in own else "corral",
        "about": entry.get("about", ""),
        "docs": None,
        "texts": texts,
        "reward_threshold": entry.get("reward_threshold"),
        "options": options,
    }


def _python_described(spec: EnvSpec) -> dict[str, Any]:
    """Of a Python env: what its class says, and the arguments that it is made with."""
    creator = _creator(spec)
    known = _documented(creator)
    options = []
    for name, parameter in inspect.signature(creator).parameters.items():
        various = parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
        if various or name == "render_mode":
            continue
        default = None if parameter.default is parameter.empty else parameter.default
        default = spec.kwargs.get(name, default)
        written = parameter.annotation
        if written is parameter.empty:
            kind = _type(default)
        else:
            kind = written if isinstance(written, str) else inspect.formatannotation(written)
        options.append({"name": name, "type": kind, "default": default, "meaning": known.get(name)})
    text = inspect.getdoc(creator) or ""
    return {
        "source": "gymnasium",
        "about": summary(text),
        "docs": text or None,
        "texts": None,
        "reward_threshold": spec.reward_threshold,
        "options": options,
    }


def _creator(spec: EnvSpec) -> Any:
    """What makes the env: its class, or a function."""
    return (
        load_env_creator(spec.entry_point)
        if isinstance(spec.entry_point, str)
        else (spec.entry_point)
    )


def _documented(creator: Any) -> dict[str, str]:
    """What each argument means, where the docstrings say so."""
    init = inspect.getdoc(creator.__init__) if inspect.isclass(creator) else None
    return meanings(f"{inspect.getdoc(creator) or ''}\n\n{init or ''}")


def _type(default: Any) -> str:
    return "any" if default is None else _TYPES.get(type(default), type(default).__name__)


def _space(space: Any, leaves: list[dict[str, Any]]) -> dict[str, Any]:
    return {"space": " ".join(str(space).split()), "leaves": [_leaf(leaf) for leaf in leaves]}


def _leaf(leaf: dict[str, Any]) -> dict[str, Any]:
    return {name: leaf.get(name) for name in ("name", "kind", "dtype", "shape", "discrete")}


def _rewards(envs: VectorEnv) -> dict[str, Any]:
    """The rewards of random steps."""
    seen: list[float] = []
    envs.reset(seed=0 if envs.native.can("seed") else None)
    draw = Draws(envs, 0)
    for _ in range(_STEPS):
        seen.append(float(envs.step(draw())[1][0]))
    return {"random_steps": _STEPS, "least": min(seen), "most": max(seen)}


def _index(id: str, config: dict[str, Any]) -> str:
    """What an index is, by its episode beside that of the same seed."""
    stories = []
    for begin in ({"seed": _INDEX}, {"options": {"index": _INDEX}}):
        with closing(ids.make(id, 1, config, autoreset_mode=_MODE)) as envs:
            story: list[Any] = [envs.reset(**begin)[0]]
            draw = Draws(envs, 0)
            for _ in range(_FAR):
                observations, rewards, terminations, truncations, _ = envs.step(draw())
                story.append(rewards)
                if terminations[0] or truncations[0]:
                    # What is shown is the next episode's.
                    break
                story.append(observations)
        stories.append(repr(story))
    if stories[0] == stories[1]:
        return "index i plays the episode of seed i"
    return "index i is a level or start of its own, not the episode of seed i"


def _table(told: dict[str, Any]) -> Table:
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    rewards, limit, texts = told["reward"], told["max_episode_steps"], told["texts"] or {}
    reward = f"{rewards['least']:g} to {rewards['most']:g} in {_STEPS} random steps"
    if told["reward_threshold"] is not None:
        reward += f"; solved at a return of {told['reward_threshold']:g}"
    rows = [
        ("env", told["id"]),
        ("about", told["about"]),
        ("source", told["source"]),
        *_rows("observation", [told["observation"]["space"], *_said(texts, "observation")]),
        *_rows("action", [told["action"]["space"], *_said(texts, "action")]),
        *_rows("infos", [*map(_info, told["infos"]), *_said(texts, "info")]),
        *_rows("reward", [*_said(texts, "reward"), reward]),
        *(_rows("end", _said(texts, "terminated", "truncated")) if texts else []),
        ("limit", "none" if limit is None else f"{limit} steps"),
        ("index", told["index"] or "it plays no indices"),
        ("pictures", _pictures(told)),
        ("can", ", ".join(told["capabilities"])),
        *_rows("options", [_option(option) for option in told["options"]]),
        *(_rows("of a reset", _said(texts, "reset_options")) if "reset_options" in texts else []),
    ]
    if texts:
        rows.append(("page", texts["page"]))
    if told["docs"]:
        rows.append(("docs", f"{len(told['docs'].splitlines())} lines: see --json"))
    for name, value in rows:
        table.add_row(name, Text(value))
    return table


def _rows(title: str, values: list[str]) -> list[tuple[str, str]]:
    titles = [title, *[""] * len(values)]
    return list(zip(titles, values or ["none"]))


def _said(texts: dict[str, Any], *names: str) -> list[str]:
    """What the texts say of these, a label before all but the first."""
    said = [(name, texts[name]) for name in names if name in texts]
    return [
        text if k == 0 else f"{name.capitalize()}: {text}" for k, (name, text) in enumerate(said)
    ]


def _info(leaf: dict[str, Any]) -> str:
    if leaf["kind"] != "fixed":
        return f"{leaf['name']}: {leaf['kind']}"
    return f"{leaf['name']}: {leaf['dtype']} {tuple(leaf['shape'])}"


def _pictures(told: dict[str, Any]) -> str:
    modes = ", ".join(told["render_modes"]) or "none"
    fps = told["render_fps"]
    return modes if fps is None or modes == "none" else f"{modes}; {fps} a second"


def _option(option: dict[str, Any]) -> str:
    default = json.dumps(option["default"], default=repr)
    values = option_values(option)
    kind = f"{option['type']}, {values}" if values else option["type"]
    meaning = f": {option['meaning']}" if option["meaning"] else ""
    return f"{option['name']} ({kind}; default {default}){meaning}"


def option_values(doc: dict[str, Any]) -> str:
    """Which values an option takes, where it does not take all of its type."""
    if doc.get("choices"):
        return ", ".join(json.dumps(choice) for choice in doc["choices"])
    low, high = (
        None if bound is None or abs(bound) >= _UNBOUNDED else f"{bound:g}"
        for bound in (doc.get("low"), doc.get("high"))
    )
    if low is not None and high is not None:
        return f"{low} to {high}"
    return f"{low} or more" if low is not None else f"up to {high}" if high is not None else ""
