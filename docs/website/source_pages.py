"""Pages of the files that other pages link to, and the copy of what `cargo doc` makes."""

from __future__ import annotations

import html
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pygments.lexers import get_lexer_for_filename
from pygments.util import ClassNotFound
from sphinx.application import Sphinx
from sphinx.util import logging

from website.links import ROOT, RUST, files_shown

_LOG = logging.getLogger(__name__)


def collect(app: Sphinx) -> Iterator[tuple[str, dict[str, Any], str]]:
    """A page for each file, with its text as it is."""
    for path in sorted(files_shown(app)):
        text = (ROOT / path).read_text()
        try:
            language = get_lexer_for_filename(path).aliases[0]
        except ClassNotFound:
            language = "text"
        code = app.builder.highlighter.highlight_block(text, language, linenos=False)  # type: ignore[attr-defined]
        title = html.escape(path)
        body = f'<h1 class="of-a-file"><code>{title}</code></h1>\n{code}'
        yield f"source/{path}", {"title": title, "body": body, "toc": ""}, "page.html"


def copy_rust(app: Sphinx, failure: Exception | None) -> None:
    """Lays what `cargo doc` made into the site. A file is linked to, not copied, where the system
    can: there are thousands of them."""
    if failure is not None:
        return
    made, there = ROOT / RUST, Path(app.outdir) / "rust"
    if not (made / "envcore" / "index.html").is_file():
        _LOG.warning("%s has no Rust docs, which pages link to: run `make docs`", made)
        return
    if there.exists():
        shutil.rmtree(there)
    shutil.copytree(made, there, copy_function=_linked)


def _linked(path: str, to: str) -> None:
    try:
        os.link(path, to)
    except OSError:
        shutil.copy2(path, to)
