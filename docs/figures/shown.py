"""The pictures of docs/gallery/shown.md: its code runs, and the files that it saves are kept.

They need the tables of the gallery, in the folder that the environment variable OPGROW_DATA names. They are
drawn by matplotlib, like those of `explanations`, and no test compares them.
"""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
from pathlib import Path

import blocks

from .marks import ROOT

__all__ = ["drawings"]

_DATE = re.compile(r"\s*<dc:date>[^<]*</dc:date>")
_PAGE = ROOT / "docs" / "gallery" / "shown.md"


def drawings() -> dict[str, str]:
    """The pictures, by their path from the root of the repository; none where there are no tables."""
    if not os.environ.get("OPGROW_DATA"):
        print("left as they are: docs/images/shown-*.svg, whose tables OPGROW_DATA does not name")
        return {}
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams |= {"svg.hashsalt": "opgrow", "svg.fonttype": "none"}  # the same file in every run
    page = blocks.Page(_PAGE)
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for block in page.blocks():
            page.run(block)
        saved = sorted(Path().glob("*.svg"))
        texts = [_DATE.sub("", path.read_text(encoding="utf-8")) for path in saved]
    return {f"docs/images/shown-{path.name}": text for path, text in zip(saved, texts, strict=True)}
