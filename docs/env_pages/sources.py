"""What the envs' Rust sources say of them.

A family's tables name ids and types. The docs of the module that declares a type describe the env:
first what it is, then sentences that begin with a label ("Reward: …"). A label that the module
lacks is its folder's `mod.rs`'s, or that of the folder around it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
ENVS = ROOT / "crates" / "envs" / "src"

LABELS = {
    "Observation": "observation",
    "Action": "action",
    "Info": "info",
    "Reward": "reward",
    "Terminated": "terminated",
    "Truncated": "truncated",
    "Index ix": "index",
    "Reset options": "reset_options",
    "Versions": "versions",
    "Licence": "licence",
}
"""How a sentence begins that tells of something, and what `texts` calls that."""

NEEDED = ("observation", "action", "reward", "terminated", "index", "versions", "licence")
"""What must be told of every env."""

_LABEL = re.compile(rf"(?:^|(?<=[.)] ))({'|'.join(LABELS)})(?=:|\b)(?::\s+)?")
_ENTRY = re.compile(
    r'\b(?:Entry::(?:new|custom)|entry)(?:::<(?P<type>\w+)(?:<(?P<inner>[^<>]*)>)?>)?\(\s*"(?P<id>[^"]+)"'
)
# An id, the constant that has its text, and the level.
_LEVEL = re.compile(r'\(\s*"(?P<id>[^"]+-v\d+)",\s*(?P<about>[A-Z][A-Z0-9_]*),\s*&(?P<type>\w+)')
_TITLE = re.compile(r"[\w/-]+-v\d+(?:(?:,| and) [\w/-]+-v\d+)*: ")


class SourceError(Exception):
    """A source that does not say what a page needs, and where to write it."""


@dataclass(frozen=True)
class Listed:
    """An id of a family's table."""

    id: str
    page: str
    family: str
    """The family's folder."""
    type: str
    """What the env's module declares."""


@cache
def listed() -> tuple[Listed, ...]:
    """The ids of all tables, but for the tests' own, in the order of the tables."""
    found = []
    for table in sorted(ENVS.glob("*/mod.rs")):
        family, text = table.parent.name, table.read_text()
        if family == "testing":
            continue
        for match in _ENTRY.finditer(text):
            # A type of many envs is told apart by its parameter, if that is a type.
            inner = match["inner"] or ""
            name = inner if re.fullmatch(r"[A-Z]\w+", inner) else match["type"]
            if name is None:
                raise SourceError(f"{table}: {match['id']} has no type whose docs could be read")
            # "MinAtar-Asterix-v0" is one of several of MinAtar's.
            of, dash, _ = match["id"].rpartition("-")[0].partition("-")
            page = f"{of}-{name}" if dash else name
            found.append(Listed(match["id"], page, family, name))
        for match in _LEVEL.finditer(text):
            kind = "".join(word.capitalize() for word in match["about"].split("_"))
            page = f"{match['id'].partition('-')[0]}-{kind}"
            found.append(Listed(match["id"], page, family, match["type"]))
    return tuple(found)


def texts() -> dict[str, Any]:
    """Of every page what its sources say, and the page of each id."""
    pages: dict[str, dict[str, Any]] = {}
    for one in listed():
        if one.page not in pages:
            pages[one.page] = _page(one)
    return {"pages": pages, "ids": {one.id: one.page for one in listed()}}


def _page(one: Listed) -> dict[str, Any]:
    source = _declaring(one)
    module = _module_docs(source)
    told: dict[str, Any] = {"rules": _rules(module)}
    for name in LABELS.values():
        said = next((docs[name] for docs in module if name in docs), None)
        if said is None and name in NEEDED:
            label = next(label for label, key in LABELS.items() if key == name)
            raise SourceError(
                f"{one.id}: the docs of {source.relative_to(ROOT)} (or of its mod.rs) say nothing "
                f'of "{label}": add a sentence that begins so'
            )
        if said is not None:
            told[name] = _capital(said)
    told["source"] = str(source.relative_to(ROOT))
    return told


def _declaring(one: Listed) -> Path:
    """The file with the type."""
    declared = re.compile(rf"\bstruct {one.type}\b")
    for path in sorted((ENVS / one.family).rglob("*.rs")):
        if declared.search(path.read_text()):
            return path
    raise SourceError(f"{one.id}: no file of {ENVS / one.family} declares the struct {one.type}")


def _module_docs(source: Path) -> list[dict[str, Any]]:
    """The docs of a file and of the modules around it, from the inmost."""
    files = [source]
    folder = source.parent
    while folder != ENVS:
        if folder / "mod.rs" != source:
            files.append(folder / "mod.rs")
        folder = folder.parent
    return [_labelled(path) for path in files]


@cache
def _labelled(path: Path) -> dict[str, Any]:
    """What each label of a file's docs is followed by; the paragraphs `before` the first label, and
    those `after` one that have none."""
    docs = "\n".join(
        line.removeprefix("//!").strip()
        for line in path.read_text().splitlines()
        if line.startswith("//!")
    )
    found: dict[str, Any] = {"before": [], "after": []}
    for paragraph in re.split(r"\n\n+", docs):
        # A list keeps its lines.
        lines = re.split(r"\n(?=- )", paragraph)
        text = _plain("\n".join(" ".join(line.split()) for line in lines))
        matches = list(_LABEL.finditer(text))
        start = matches[0].start() if matches else len(text)
        if text[:start].strip():
            has_labels = any(name in found for name in LABELS.values())
            found["after" if has_labels else "before"].append(text[:start].strip())
        for match, end in zip(matches, [*(one.start() for one in matches[1:]), len(text)]):
            # "Index ix is …" is a sentence as it stands.
            begin = match.end() if match[0].rstrip().endswith(":") else match.start()
            name = LABELS[match[1]]
            said = text[begin:end].strip()
            found[name] = f"{found[name]} {said}" if name in found else said
    return found


def _plain(text: str) -> str:
    """Without rustdoc's links to items, which lead nowhere else."""
    return re.sub(r"\[(`[^`]+`)\](?:\([^)]*\))?", r"\1", text)


def _rules(module: list[dict[str, Any]]) -> list[str]:
    """The paragraphs of the docs that describe the observation; where these are a family's, those
    of the inmost docs first."""
    shared = next((docs for docs in module if "observation" in docs), module[0])
    more = shared["after"]
    if shared is module[-1] and shared is not module[0]:
        own = next((docs for docs in module[:-1] if docs["before"]), {"before": [], "after": []})
        rules, more = [*own["before"], *shared["before"]], own["after"]
    else:
        rules = shared["before"]
    # The first says in a line what the env is, as its table does.
    if rules and _TITLE.match(rules[0]):
        rules = rules[1:]
    return [_capital(text) for text in (*rules, *more)]


def _capital(text: str) -> str:
    is_version = re.match(r"v\d", text)
    return text if is_version else text[:1].upper() + text[1:]
