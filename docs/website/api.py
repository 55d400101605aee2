"""The reference: the list of all that it has, and docstrings as Sphinx reads them."""

from __future__ import annotations

import importlib
import inspect
import re
import textwrap
from typing import Any

from sphinx.application import Sphinx
from sphinx.ext.autodoc.mock import mock
from sphinx.pycode import ModuleAnalyzer

from website.contents import REFERENCE
from website.links import ROOT

# Libraries that modules of Corral import as they are imported, and that the site does without.
NOT_INSTALLED = ["ray"]

_DIRECTIVE = re.compile(
    r"^\.\. auto(?:function|class|exception|module|data):: ([\w.]+)", re.MULTILINE
)
_FENCED = re.compile(r"^```(?P<language>\w+)\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)
_INDENTED = re.compile(r"^(\S.*):\n\n(?= {4}\S)", re.MULTILINE)
_OF_THE_FILE = re.compile(r"^Above 400 lines because .*(?:\n\S.*)*\n?", re.MULTILINE)
_ATTRIBUTES = re.compile(r"^(Attributes:\n)((?:(?: {4}.*)?(?:\n|\Z))+)", re.MULTILINE)
_JOINED = re.compile(r"^ {4}(\w+(?:, \w+)+):((?:.*(?:\n {5,}.*)*))", re.MULTILINE)
_MARK = "<!-- the list of names -->"


def named() -> dict[str, list[str]]:
    """The names that each page of the reference documents, by the page's name."""
    return {page: _DIRECTIVE.findall((ROOT / f"{page}.md").read_text()) for page in REFERENCE}


def found(name: str) -> Any:
    """What a dotted name stands for."""
    module = name
    while True:
        try:
            with mock(NOT_INSTALLED):
                thing = importlib.import_module(module)
            break
        except ImportError:
            module = module.rpartition(".")[0]
            if not module:
                raise
    for part in name.removeprefix(module).split(".")[1:]:
        thing = getattr(thing, part)
    return thing


def add_list(_app: Sphinx, _page: str, source: list[str]) -> None:
    """Puts a table of all names, each with its first sentence, where a page has the mark for it."""
    if _MARK not in source[0]:
        return
    rows = [".. list-table::", "   :widths: 40 60", "   :class: names", ""]
    for names in named().values():
        for name in names:
            doc = " ".join((inspect.getdoc(found(name)) or "").partition("\n\n")[0].split())
            sentence = re.split(r"(?<=[.:;]) ", doc, maxsplit=1)[0].rstrip(":;")
            rows += [f"   * - :py:obj:`{name}`", f"     - {sentence}"]
    block = "\n".join(["```{eval-rst}", *rows, "```"])
    source[0] = source[0].replace(_MARK, block)


def as_shown(
    _app: Sphinx, _what: str, _name: str, _thing: Any, _options: Any, lines: list[str]
) -> None:
    """Docstrings in the words of reStructuredText: code between fences, and a line of its own for
    each of several attributes that are described together. What a module says of its file is left
    out."""
    text = _FENCED.sub(_as_block, "\n".join(lines))
    text = _INDENTED.sub(r"\1::\n\n", _OF_THE_FILE.sub("", text))
    lines[:] = _ATTRIBUTES.sub(_each, text).split("\n")


def _as_block(code: re.Match[str]) -> str:
    return f".. code-block:: {code['language']}\n\n{textwrap.indent(code['code'], '   ')}"


def _each(section: re.Match[str]) -> str:
    def split(entry: re.Match[str]) -> str:
        return "\n".join(f"    {name.strip()}:{entry[2]}" for name in entry[1].split(","))

    return section[1] + _JOINED.sub(split, section[2])


def drop_overloads(_app: Sphinx) -> None:
    """Functions that take the options of vec envs are shown once: their overloads are for type
    checkers alone."""
    for name in (name for names in named().values() for name in names):
        thing = found(name)
        if inspect.isfunction(thing):
            analyzer = ModuleAnalyzer.for_module(thing.__module__)
            analyzer.analyze()
            if any("Unpack" in str(one) for one in analyzer.overloads.get(thing.__name__, ())):
                del analyzer.overloads[thing.__name__]
