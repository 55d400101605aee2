"""The pages, from texts, spaces, scores and figures."""

from __future__ import annotations

import csv
import json
from functools import cache
from pathlib import Path
from typing import Any

from corral.cli.describing import option_values
from env_pages import policies, scores, sources
from env_pages.spaces import Described, described

ROOT = sources.ROOT
PAGES = ROOT / "docs" / "envs"
TEXTS = ROOT / "python" / "corral" / "cli" / "env_texts.json"
FIGURES = ROOT / "benches" / "results" / "figures.csv"

NOTE = "<!-- `make docs` writes this page: see docs/env_pages. -->"
_FAMILIES = {
    "classic": "Classic control",
    "toy_text": "Toy text",
    "grid": "Mazes",
    "minigrid": "MiniGrid",
    "minatar": "MinAtar",
    "games": "Games",
}
# Benchmarks of one env beside others, by their names; those of a family say which id they are of.
_BENCHES = {"CartPole-v1": "cartpole-4096", "Maze-v0": "maze-1024"}
_FAMILY_BENCHES = ("gymnasium-", "minigrid-", "minatar-", "games-")


def files(texts: dict[str, Any]) -> dict[Path, str]:
    """All that is written, by its path."""
    found = {TEXTS: json.dumps(texts, indent=1, ensure_ascii=False) + "\n"}
    for name in texts["pages"]:
        found[PAGES / f"{name}.md"] = _page(name, texts)
    found[PAGES / "README.md"] = _index(texts)
    return found


def left_over(texts: dict[str, Any]) -> list[Path]:
    """Pages and films of envs that there are no more."""
    names = {"README", *texts["pages"]}
    return [
        path
        for path in PAGES.glob("*.*")
        if path.suffix in (".md", ".gif") and path.stem not in names
    ]


def ids_of(name: str, texts: dict[str, Any]) -> list[str]:
    """The ids of a page."""
    return [id for id, page in texts["ids"].items() if page == name]


@cache
def _described(id: str) -> Described:
    return described(id)


def _page(name: str, texts: dict[str, Any]) -> str:
    told = texts["pages"][name]
    envs = [_described(id) for id in ids_of(name, texts)]
    first = envs[0]
    parts = [
        NOTE,
        f"# {first.id if len(envs) == 1 else name}",
        f"![An episode of {policies.FILMED.get(name, first.id)}]({name}.gif)",
        first.about,
        *told["rules"],
        _ids(envs),
        "## Observation",
        told["observation"],
        _leaves(envs, "observation"),
        "## Action",
        told["action"],
        _leaves(envs, "action"),
        *_infos(envs, told),
        "## Reward",
        told["reward"],
        *_threshold(envs),
        "## End",
        f"Terminated: {told['terminated']}",
        *([f"Truncated: {told['truncated']}"] if "truncated" in told else []),
        *_limit(envs, told),
        "## Index",
        told["index"],
        "## Options",
        _options(envs),
        *_reset_options(told),
        "## Scores",
        _scores(envs),
        _who(name, envs),
        *_speed(envs),
        "## Versions",
        told["versions"],
        "## Source and licence",
        f"{told['licence']} [{told['source']}](../../{told['source']})",
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _ids(envs: list[Described]) -> str:
    if len(envs) == 1:
        return ""
    return "Ids: " + ", ".join(f"`{env.id}`" for env in envs) + "."


def _table(head: list[str], rows: list[list[str]]) -> str:
    """A table; columns that are empty in every row are left out."""
    kept = [k for k in range(len(head)) if any(row[k] for row in rows)]

    def line(cells: list[str]) -> str:
        return "| " + " | ".join(cells[k].replace("|", "\\|") for k in kept) + " |"

    return "\n".join([line(head), "|" + "---|" * len(kept), *map(line, rows)])


def _leaves(envs: list[Described], what: str) -> str:
    """A row for each leaf; where ids differ, for each id."""
    seen: dict[tuple[tuple[str, ...], ...], list[str]] = {}
    for env in envs:
        seen.setdefault(getattr(env, what), []).append(f"`{env.id}`")
    rows = [
        ["" if len(seen) == 1 else ", ".join(ids), *leaf]
        for leaves, ids in seen.items()
        for leaf in leaves
    ]
    return _table(["env", "leaf", "dtype", "shape", "values"], rows) if rows else ""


def _infos(envs: list[Described], told: dict[str, Any]) -> list[str]:
    table = _leaves(envs, "infos")
    return ["## Infos", told.get("info", ""), table] if table else []


def _threshold(envs: list[Described]) -> list[str]:
    solved = {env.id: env.threshold for env in envs if env.threshold is not None}
    if not solved:
        return []
    each = ", ".join(
        f"{threshold:g}" if len(solved) == 1 else f"{threshold:g} (`{id}`)"
        for id, threshold in solved.items()
    )
    return [f"Solved at a mean return of {each}."]


def _limit(envs: list[Described], told: dict[str, Any]) -> list[str]:
    limits = {env.id: env.limit for env in envs}
    if set(limits.values()) == {None}:
        is_told = "truncated" in told or "time limit" in told["terminated"]
        return [] if is_told else ["There is no time limit, unless `max_episode_steps` sets one."]
    if len(set(limits.values())) == 1:
        return [
            f"Truncated: after {envs[0].limit} steps, unless `max_episode_steps` says otherwise."
        ]
    each = ", ".join(f"{limit} (`{id}`)" for id, limit in limits.items() if limit is not None)
    return [f"Truncated: after so many steps, unless `max_episode_steps` says otherwise: {each}."]


def _options(envs: list[Described]) -> str:
    rows = []
    for name, option in envs[0].options.items():
        if option["meaning"] is None:
            raise sources.SourceError(
                f"{envs[0].id}: the option {name} has no doc: say above its field, in the env's "
                "Config, what it means"
            )
        defaults = {json.dumps(env.defaults[name]): f"`{env.id}`" for env in reversed(envs)}
        if len(defaults) == 1:
            default = f"`{next(iter(defaults))}`"
        else:
            default = ", ".join(f"`{value}` ({id} …)" for value, id in reversed(defaults.items()))
        values = option_values(option)
        rows.append([f"`{name}`", option["type"], values, default, option["meaning"]])
    if not rows:
        return "None of its own."
    return _table(["option", "type", "values", "default", "meaning"], rows)


def _reset_options(told: dict[str, Any]) -> list[str]:
    return (
        [f"Of a reset (`options={{…}}`): {told['reset_options']}"]
        if "reset_options" in told
        else []
    )


def _scores(envs: list[Described]) -> str:
    known = scores.known()
    rows = []
    for env in envs:
        score = known.get(env.id)
        if score is None:
            raise sources.SourceError(
                f"{env.id} has no score in {scores.FILE.relative_to(ROOT)}: "
                f"`make env-scores IDS={env.id}` plays it and writes it there"
            )
        random, good = score["random"], score["policy"]
        rows.append(
            [
                f"`{env.id}`",
                _score(random),
                _score(good) if good else "",
                f"{random['episodes']:,}"
                if random["episodes"] == (good or random)["episodes"]
                else f"{random['episodes']:,}; {good['episodes']:,}",
            ]
        )
    table = _table(["env", "random actions", "good policy", "episodes"], rows)
    return f"{table}\n\nMean returns, with the standard error of the mean, over indices 0, 1, 2, …"


def _score(score: dict[str, Any]) -> str:
    error = score["error"]
    return f"{score['mean']:.4g} ± {error:.2g}".replace("-", "−")


def _who(name: str, envs: list[Described]) -> str:
    """Who plays well, and in the film."""
    good = policies.of(envs[0].id)
    if good is None and name not in policies.WHY_NONE:
        raise sources.SourceError(
            f"{envs[0].id}: add a good policy to docs/env_pages/policies and name it in _GOOD "
            f"there, or say in WHY_NONE why there is none for the page {name}"
        )
    if good is None:
        why = policies.WHY_NONE[name]
        return f"No good policy is known here: {why} The film shows random actions."
    seen = ", ".join(f"`{key}={value!r}`" for key, value in good.config.items())
    seen = f" It plays with {seen}: the same episodes, seen in another way." if seen else ""
    where = f"[{good.file}](../{good.file})"
    return f"The film shows the good policy. {good.told}{seen} {where}"


@cache
def _figures(file: Path) -> list[dict[str, str]]:
    with file.open(newline="") as opened:
        return list(csv.DictReader(opened))


def _speed(envs: list[Described]) -> list[str]:
    """The last recorded figure beside each peer; nothing for envs that have none."""
    last: dict[tuple[str, str], list[str]] = {}
    for env in envs:
        for row in _figures(FIGURES):
            if row["ratio"] and _is_of(row, env.id):
                last[row["bench"], row["theirs"]] = [
                    f"`{row['what']}`" if len(envs) > 1 else "",
                    row["size"],
                    _rate(float(row["ours_rate"])),
                    row["theirs"],
                    _rate(float(row["theirs_rate"])),
                    f"{_three_digits(float(row['ratio']))} ×",
                    f"{row['date'][:10]}, {row['cpu']}, {row['cores']} cores",
                ]
    if not last:
        return []
    head = ["env", "size", "steps a second", "beside", "its steps a second", "ratio", "when, where"]
    told = "Medians of several windows; the ratio is the median of the windows' own ratios."
    measured = "[How it is measured](../benchmarks.md)"
    return ["## Speed", _table(head, list(last.values())), f"{told} {measured}."]


def _is_of(row: dict[str, str], id: str) -> bool:
    """Whether a figure is of an env; `what` may have options behind the id."""
    if id in _BENCHES:
        return row["bench"] == _BENCHES[id]
    return row["bench"].startswith(_FAMILY_BENCHES) and row["what"].split(",")[0] == id


def _rate(steps: float) -> str:
    for unit, letter in ((1e6, " M"), (1e3, " k")):
        if steps >= unit:
            return f"{_three_digits(steps / unit)}{letter}"
    return _three_digits(steps)


def _three_digits(number: float) -> str:
    """Three digits, or all of a longer whole number."""
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"


def _index(texts: dict[str, Any]) -> str:
    parts = [
        NOTE,
        "# Environments",
        "A page for each: what it shows and takes, its rules, options, scores and speed. "
        "`corral info ID` says the same of the rules in a terminal.",
    ]
    families: dict[str, list[str]] = {}
    for one in sources.listed():
        names = families.setdefault(one.family, [])
        if one.page not in names:
            names.append(one.page)
    order = [*_FAMILIES, *(family for family in families if family not in _FAMILIES)]
    for family in sorted(families, key=order.index):
        rows = []
        for name in families[family]:
            ids = ids_of(name, texts)
            about = _described(ids[0]).about
            picture = f'<a href="{name}.md"><img src="{name}.gif" width="96"></a>'
            rows.append(
                [picture, f"[{ids[0] if len(ids) == 1 else name}]({name}.md)", _count(ids), about]
            )
        parts += [
            f"## {_FAMILIES.get(family, family)}",
            _table(["film", "env", "ids", "about"], rows),
        ]
    return "\n\n".join(parts) + "\n"


def _count(ids: list[str]) -> str:
    return f"`{ids[0]}`" if len(ids) == 1 else f"{len(ids)}, from `{ids[0]}` to `{ids[-1]}`"
