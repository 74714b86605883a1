"""How Sphinx builds the site: Markdown pages, the reference from the docstrings, and nothing from a network.

`make docs` builds it into site/. Equations become MathML while the site is built and search runs in the
browser, so the folder can be read from a disk.
"""

import sys
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

import opgrow

sys.path.insert(0, str(Path(__file__).parent / "_extensions"))

project = "opgrow"
copyright = "the opgrow authors"
version = release = opgrow.__version__

extensions = [
    "myst_parser",  # pages in Markdown
    "sphinx.ext.autodoc",  # the reference
    "numpydoc",  # the sections of the docstrings
    "mathml",
]
exclude_patterns = ["_extensions"]
nitpicky = True  # a name that leads nowhere is a warning, and `make docs` stops at warnings

myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
suppress_warnings = ["myst.header"]  # tables that a study has written begin with a third-level heading

smartquotes = False  # "auto" is a value, and not a quotation
default_role = "py:obj"
autodoc_default_options = {
    "members": True,
    "member-order": "bysource",
    "inherited-members": True,
}
autodoc_inherit_docstrings = False
autodoc_typehints = "none"  # the docstrings say it in words
autodoc_class_signature = "separated"
numpydoc_show_class_members = False

html_theme = "furo"
html_title = f"opgrow {release}"
html_logo = "_static/logo.svg"
html_favicon = "_static/logo.svg"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_search_summary = False  # it would fetch pages, which browsers refuse for files
html_show_sphinx = False
html_show_sourcelink = False
pygments_style = "friendly"
pygments_dark_style = "github-dark"


def skip_foreign(app: Sphinx, what: str, name: str, member: Any, *rest: Any) -> bool | None:
    """Leave out what classes inherit from scikit-learn and torch, and __init__, which its class describes."""
    home = getattr(member, "__module__", None) or ""
    return True if name == "__init__" or home.split(".")[0] in ("sklearn", "torch") else None


def setup(app: Sphinx) -> None:
    app.connect("autodoc-skip-member", skip_foreign)
