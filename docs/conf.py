"""Settings of Sphinx, which `make docs` builds the site with; the site's own code is in `website`.

The sources are the repository's own Markdown files where they lie, so that a relative link means
the same on the site and to who reads the file itself.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from website import api, contents, links

import corral

ROOT = Path(__file__).resolve().parents[1]

project = "Corral"
author = "the authors of Corral"
version = release = corral.__version__
html_title = f"Corral {version}"

root_doc = contents.HOME
include_patterns = [*contents.AT_THE_TOP, "docs/**.md"]
# Without these, Sphinx looks for pages in the folders of the build, too.
exclude_patterns = [
    path.name for path in ROOT.iterdir() if path.is_dir() and path.name != links.DOCS.name
]

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "website",
]
# `attrs_inline` is for what `website` writes: pictures of a given width, links that leave Sphinx.
myst_enable_extensions = ["attrs_inline"]
# Every heading has an anchor, by the rules of the repository's viewer.
myst_heading_anchors = 4

# Names in the single backticks of docstrings are links where there is such a thing, else code.
default_role = "py:obj"
# Quotes in texts are often those of values, which stay as they are; dashes become dashes.
smartquotes_action = "D"
# Ray need not be installed where the site is built.
autodoc_mock_imports = api.NOT_INSTALLED
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
autodoc_use_type_comments = False
napoleon_numpy_docstring = False
napoleon_use_param = False
napoleon_use_rtype = False
napoleon_use_ivar = True
# They are the source's own texts, whose underscores would be read as links.
napoleon_attr_annotations = False
python_maximum_signature_line_length = 88
toc_object_entries_show_parents = "hide"

html_theme = "furo"
html_static_path = ["website/static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_show_copyright = False
html_theme_options = {"navigation_with_keys": True}
pygments_style = "friendly"
pygments_dark_style = "monokai"
