"""The documentation as a site, by Sphinx: `make docs`. The pages stay plain Markdown that reads as well on GitHub.

What the home page is followed by is written here, not into the page: a folder of docs/ is a part of the site, and holds
all pages that lie in it. A page or a folder that is in no part is a warning, and warnings are errors.

Sphinx, since it is kept, checks links down to headings, and makes pages that load nothing from elsewhere.
"""

from __future__ import annotations

import tomllib
from pathlib import Path

from sphinx.application import Sphinx

PARTS = {
    "Start": ["tutorial", "results"],
    "How to": ["how-to/*"],
    "Reference": ["reference/*"],
    "Explanation": ["explanation/*"],
    "Decisions": ["decisions/*"],
}
"""What stands in the margin, in this order, and its pages."""

project = "Hotlap"
PYPROJECT = Path(__file__).parent.parent / "pyproject.toml"
version = release = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["project"]["version"]
extensions = ["myst_parser"]
myst_heading_anchors = 3  # headings are link targets, by the names that GitHub gives them
nitpicky = True

html_theme = "furo"
html_title = f"Hotlap {release}"
html_copy_source = False
html_show_sphinx = False


def add_parts(_app: Sphinx, page: str, text: list[str]) -> None:
    """Put the parts below the home page."""
    if page == "index":
        for title, pages in PARTS.items():
            text[0] += "\n".join(
                ["", "```{toctree}", ":hidden:", ":glob:", f":caption: {title}", "", *pages, "```", ""]
            )


def setup(app: Sphinx) -> None:
    """Called by Sphinx."""
    app.connect("source-read", add_parts)
