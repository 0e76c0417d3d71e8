"""The documentation site: Sphinx reads the repository as it lies, so every link between files is a link between pages.

make docs       builds it into build/site with warnings as errors, and checks what was built

The pages are plain Markdown that a code host shows as well. What only the site needs is in `docs/_site`: the order of the
pages, and notebooks that run while it is built. Nothing is loaded from a network, neither here nor when the site is read.
"""

import sys
from importlib.metadata import version as installed
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_site"))

import notebooks
import pages

project = "curador"
author = "the curador authors"
copyright = "the curador authors, Apache-2.0"  # noqa: A001 -- Sphinx's own name for it
release = version = installed("curador")
language = "en"

extensions = ["myst_parser"]
root_doc = "docs/README"
include_patterns = list(pages.INCLUDED)
exclude_patterns = list(pages.EXCLUDED)
nitpicky = True
highlight_language = "text"
smartquotes = False  # the primes of formulas stay primes
myst_heading_anchors = 4

html_theme = "furo"
html_title = "curador"
html_static_path = ["_site/static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
html_theme_options = {"navigation_with_keys": False}
templates_path: list[str] = []


def page_language(_app, pagename, _template, context, _doctree) -> None:  # noqa: ANN001 -- idem
    """A page whose name ends in a language is in that language: a reader's voice and dictionary follow it."""
    if pagename.endswith((".es", ".fr")):
        context["language"] = pagename[-2:]


def setup(app):  # noqa: ANN001, ANN201 -- Sphinx's own types are imported where they are used
    """Connect the order of the pages and the notebooks."""
    pages.connect(app)
    notebooks.connect(app)
    app.connect("html-page-context", page_language)
