"""The site's own code, an extension of Sphinx: which page is where (`contents`), what links become
(`links`), and the pages of source files that pages link to (`source_pages`)."""

from __future__ import annotations

from typing import Any

from sphinx.application import Sphinx

from website import api, contents, links, source_pages


def setup(app: Sphinx) -> dict[str, Any]:
    """What Sphinx calls."""
    app.connect("source-read", links.rewrite)
    app.connect("source-read", contents.add)
    app.connect("source-read", api.add_list)
    # Before the docstring goes to napoleon.
    app.connect("autodoc-process-docstring", api.as_shown, priority=400)
    app.connect("builder-inited", api.drop_overloads)
    app.connect("html-collect-pages", source_pages.collect)
    app.connect("build-finished", source_pages.copy_rust)
    app.connect("build-finished", contents.write_index)
    return {"parallel_read_safe": False, "parallel_write_safe": False}
