"""Which page is where: the list at the side of every page.

A page that no list names is a warning of Sphinx, which `make docs` takes for an error.
"""

from __future__ import annotations

from pathlib import Path

from sphinx.application import Sphinx

from website.links import ROOT

HOME = "README"
AT_THE_TOP = ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md")

# The headings at the side, with the pages under each. A `*` stands for whatever pages there are.
SIDE = {
    "Begin": ("docs/start", "docs/install", "docs/coming-from", "docs/compat", "docs/commands"),
    "Envs": (
        "docs/envs/README",
        "docs/writing-an-env",
        "docs/how-do-i",
        "docs/python_envs",
        "docs/libenv",
        "docs/env_c_api",
        "docs/dm_env",
        "docs/gym3",
    ),
    "Train and evaluate": (
        "docs/trainers/README",
        "docs/managers",
        "docs/rollouts",
        "docs/ray",
        "docs/evaluation",
        "docs/faults",
    ),
    "Over a socket": ("docs/netenv", "docs/openenv", "docs/protocol"),
    "Reference": ("docs/api/README", "docs/api/rust", "docs/benchmarks", "CHANGELOG"),
    "Design": ("ARCHITECTURE", "docs/design/*", "CONTRIBUTING"),
}
# The pages of the reference of Python, in their order.
REFERENCE = tuple(
    f"docs/api/{name}"
    for name in (
        "make",
        "vector",
        "single",
        "evaluation",
        "recordings",
        "ray",
        "adapters",
        "compat",
        "sockets",
        "managers",
        "testing",
        "errors",
    )
)
# Pages that have pages below them.
_BELOW = {
    "docs/envs/README": ("docs/envs/*",),
    "docs/trainers/README": ("docs/trainers/*",),
    "docs/api/README": REFERENCE,
}


def _toctree(entries: tuple[str, ...], page: str, *options: str) -> str:
    """A list of pages, seen at the side only."""
    names = [name for entry in entries for name in _pages(entry) if name != page]
    lines = "\n".join(["```{toctree}", ":hidden:", *options, "", *(f"/{name}" for name in names)])
    return f"\n\n{lines}\n```\n" if names else ""


def _pages(entry: str) -> list[str]:
    if "*" not in entry:
        return [entry]
    return sorted(
        path.relative_to(ROOT).with_suffix("").as_posix() for path in ROOT.glob(f"{entry}.md")
    )


def add(_app: Sphinx, page: str, source: list[str]) -> None:
    """Adds to a page the lists of the pages below it."""
    if page == HOME:
        for heading, entries in SIDE.items():
            source[0] += _toctree(entries, page, f":caption: {heading}")
    elif page in _BELOW:
        source[0] += _toctree(_BELOW[page], page)


def write_index(app: Sphinx, failure: Exception | None) -> None:
    """Leads from the site's folder to its first page, which is called as the README is."""
    if failure is None:
        to = f"{HOME}.html"
        Path(app.outdir, "index.html").write_text(
            f'<!doctype html><meta charset="utf-8"><title>Corral</title>'
            f'<meta http-equiv="refresh" content="0; url={to}"><a href="{to}">Corral</a>\n'
        )
