"""What the links of a page become on the site.

A link in Markdown is a path from the file to another file of the repository. Sphinx knows what to
do with other pages and with pictures. A link to any other file leads to a page that shows the
file (`source_pages`); one to what `cargo doc` makes leads into the copy of that.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path

import imagesize
from sphinx.application import Sphinx
from sphinx.util import logging

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
RUST = "target/doc/"

_LOG = logging.getLogger(__name__)
_PICTURES = (".png", ".gif", ".svg", ".jpg")
# Code comes first, for what stands in it is no link.
_PARTS = re.compile(
    r"(?P<code>^```.*?^```$|(?P<ticks>`+)(?!`).+?(?<!`)(?P=ticks)(?!`))"
    r"|\]\((?P<target>[^()\s]+)\)"
    r'|<a href="(?P<page>[^"]+)"><img src="(?P<picture>[^"]+)" width="(?P<width>\d+)"></a>',
    re.MULTILINE | re.DOTALL,
)
# As wide as the page; a click opens the picture as it is.
_FULL_WIDTH = '{width="100%"}'
_WIDE = 800


def _is_wide(picture: Path) -> bool:
    return int(imagesize.get(picture)[0]) > _WIDE


def files_shown(app: Sphinx) -> set[str]:
    """The files that pages link to and that the site shows, by their paths in the repository."""
    shown: set[str] = app.__dict__.setdefault("_files_shown", set())
    return shown


def rewrite(app: Sphinx, page: str, source: list[str]) -> None:
    """Turns the links of a page into what Sphinx and the site understand."""
    here = posixpath.dirname(page)

    def part(found: re.Match[str]) -> str:
        if found["code"] is not None:
            return found[0]
        if found["target"] is not None:
            to, attributes = _to(found["target"])
            return f"]({to}){attributes}"
        return f"[![]({found['picture']}){{width={found['width']}px}}]({found['page']})"

    def _to(target: str) -> tuple[str, str]:
        """Where a link leads on the site, and what Sphinx must be told of it."""
        path, _, anchor = target.partition("#")
        if re.match(r"[a-z]+:", target) or not path or path.endswith(".md"):
            return target, ""
        full = posixpath.normpath(posixpath.join(here, path))
        if path.endswith(_PICTURES):
            return target, _FULL_WIDTH if _is_wide(ROOT / full) else ""
        if full.startswith(RUST):
            place = f"rust/{full.removeprefix(RUST)}"
        elif (ROOT / full).is_file():
            files_shown(app).add(full)
            place = f"source/{full}.html"
        else:
            _LOG.warning("%s links to %s, which is no file", page, full, location=page)
            return target, ""
        to = posixpath.relpath(place, here or ".")
        return to + (f"#{anchor}" if anchor else ""), "{.external}"

    source[0] = _PARTS.sub(part, source[0])
