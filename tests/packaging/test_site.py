"""The site builds without a warning, and every link on it leads somewhere."""

from __future__ import annotations

import contextlib
import io
import os
import re
import subprocess
import sys
import urllib.parse
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import corral
from corral import errors, managers

# Whichever test is first waits for the build, which takes half a minute of CPU.
pytestmark = [pytest.mark.timeout(900), pytest.mark.xdist_group("site")]
ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


class Page(HTMLParser):
    """What a page of the site has of anchors and links, what it loads, and its text beside code."""

    CODE = ("pre", "code", "script", "style")

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.text = ""
        self._in_code = 0
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self._in_code += tag in self.CODE
        self.anchors |= {name for key in ("id", "name") if (name := given.get(key))}
        if tag == "a" and given.get("href"):
            self.links.append(str(given["href"]))
        elif tag in ("script", "img", "link", "iframe", "source", "video"):
            address = given.get("src") or given.get("href")
            if address and given.get("rel") not in ("canonical", "next", "prev"):
                self.loaded.append(address)

    def handle_endtag(self, tag: str) -> None:
        self._in_code -= tag in self.CODE

    def handle_data(self, data: str) -> None:
        if not self._in_code:
            self.text += data


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as `make docs` builds it."""
    if not (ROOT / "target/doc/envcore/index.html").is_file():
        command = ["cargo", "doc", "--workspace", "--no-deps", "--locked", "--quiet"]
        subprocess.run(command, cwd=ROOT, check=True)
    folder = tmp_path_factory.mktemp("site")
    flags = ["--fresh-env", "--quiet", "--fail-on-warning", "--keep-going", "-c", "docs"]
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", *flags, ".", folder],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT / "python")},
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return folder


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Page]:
    """The site's own pages by their files; rustdoc has checked its own."""
    files = [path for path in site.rglob("*.html") if site / "rust" not in path.parents]
    return {path: Page(path) for path in files}


def broken(pages: dict[Path, Page], site: Path) -> Iterator[str]:
    """The links, pictures, scripts and styles that lead nowhere."""
    for path, page in pages.items():
        for address in (*page.links, *page.loaded):
            parts = urllib.parse.urlsplit(address)
            if parts.scheme or parts.netloc:
                continue
            to = (path.parent / urllib.parse.unquote(parts.path)).resolve() if parts.path else path
            where = f"{path.relative_to(site)}: {address}"
            if not to.is_file():
                yield where
            elif parts.fragment and to.suffix == ".html":
                there = pages[to] if to in pages else Page(to)
                if urllib.parse.unquote(parts.fragment) not in there.anchors:
                    yield where


@pytest.mark.thorough
def test_no_link_of_the_site_is_broken(site: Path, pages: dict[Path, Page]) -> None:
    assert len(pages) > 90
    assert sum(len(page.links) for page in pages.values()) > 5000
    assert list(broken(pages, site)) == []


@pytest.mark.thorough
def test_attributes_of_pictures_and_links_are_not_shown_as_text(
    site: Path, pages: dict[Path, Page]
) -> None:
    is_own = {path: site / "source" not in path.parents for path in pages}
    shown = [
        path for path, page in pages.items() if is_own[path] and re.search("{[a-z.]", page.text)
    ]
    assert shown == []
    assert any('style="width: 100%;"' in path.read_text() for path in pages if is_own[path])


@pytest.mark.thorough
def test_a_broken_link_would_be_found(tmp_path: Path) -> None:
    there = tmp_path / "there.html"
    there.write_text('<h1 id="a">A</h1>')
    here = tmp_path / "here.html"
    here.write_text(
        '<a href="there.html#a">1</a><a href="there.html#b">2</a><a href="gone.html">3</a>'
        '<a href="#c">4</a><img src="gone.png"><a href="https://example.org">5</a>'
    )
    found = list(broken({path: Page(path) for path in (here, there)}, tmp_path))
    assert [address.split(": ")[1] for address in found] == [
        *("there.html#b", "gone.html", "#c", "gone.png")
    ]


@pytest.mark.thorough
def test_the_site_loads_nothing_from_elsewhere(site: Path, pages: dict[Path, Page]) -> None:
    assert {
        address for page in pages.values() for address in page.loaded if "//" in address
    } == set()
    for style in site.glob("_static/**/*.css"):
        assert not re.findall(r"url\(['\"]?(?:https?:)?//|@import", style.read_text()), style


@pytest.mark.thorough
def test_every_page_of_the_repository_is_on_the_site(site: Path) -> None:
    for path in [*DOCS.rglob("*.md"), *ROOT.glob("*.md")]:
        assert (site / path.relative_to(ROOT)).with_suffix(".html").is_file(), path


@pytest.mark.thorough
def test_tables_and_code_are_as_many_as_in_the_source(site: Path, pages: dict[Path, Page]) -> None:
    """Each line under the head of a table and each fence is one in the source, and on the site."""
    for source in DOCS.rglob("*.md"):
        if "api" in source.relative_to(DOCS).parts:
            continue
        text = source.read_text()
        html = (site / source.relative_to(ROOT)).with_suffix(".html").read_text()
        tables = re.findall(r"^\|(?::?-+:?\|)+$", text, re.MULTILINE)
        assert html.count("<table ") == len(tables), source
        blocks = re.findall(r"^ *```\w+\n", text, re.MULTILINE)
        assert html.count('<div class="highlight"><pre>') == len(blocks), source


@pytest.fixture(scope="module")
def api() -> Iterator[Any]:
    """The modules that make the reference."""
    pytest.importorskip("sphinx", reason="the group docs is not installed")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(DOCS))
        from website import api, contents

        yield SimpleNamespace(named=api.named, contents=contents)


def test_the_reference_has_every_public_name(api: Any) -> None:
    named = {name for names in api.named().values() for name in names}
    modules = ("errors", "netenv", "openenv", "testing", "__version__")
    public = {f"corral.{name}" for name in corral.__all__ if name not in modules}
    public |= {f"corral.managers.{name}" for name in managers.__all__}
    public |= {"corral.errors.CorralError", "corral.testing.check_env", "corral.netenv.Client"}
    assert public - named == set()
    assert issubclass(errors.CorralError, Exception)
    assert "corral.errors" in named


def test_pages_that_are_named_in_the_contents_are_there(api: Any) -> None:
    side = [entry for entries in api.contents.SIDE.values() for entry in entries]
    for entry in [*side, *api.contents.REFERENCE]:
        assert "*" in entry or (ROOT / f"{entry}.md").is_file(), entry


def test_the_first_steps_run_and_print_what_they_show() -> None:
    text = (DOCS / "start.md").read_text()
    first, *rest = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    names: dict[str, Any] = {}
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(first, names)
        shown = out.getvalue()
        for block in rest:
            # A second of training will do.
            exec(
                block.replace(
                    'Config(env="CartPole-v1"', 'Config(env="CartPole-v1", max_seconds=1'
                ),
                names,
            )
    assert shown == re.findall(r"```text\n(.*?)```", text, flags=re.DOTALL)[0]
    assert names["result"].returns.shape == (100,)
