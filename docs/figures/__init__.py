"""Every measured figure on a page comes from a file in results/: tables, numbers in sentences, pictures.

    make figures

reads the results and brings the README and the pages below docs/ up to date. Run twice, it changes nothing.
A module of this folder reads one kind of results and returns `Figures`; `SOURCES` lists them. On a page,
comments say what belongs where, and what they enclose is replaced.

A table, or any other Markdown in lines of its own::

    <!-- table: peers-aside -->
    | | accuracy (%) |
    ...
    <!-- end -->

A number within a sentence, which may have an error behind it: the comment follows it, without a space::

    ahead on 24<!-- =peers-operators-ahead --> tables, by +0.1 ± 0.2<!-- =peers-operators-points --> points

A table that has no file in results/ says why, in front of it: ``<!-- no source: published figures -->``.
"""

from __future__ import annotations

from . import data, defaults, flash, operators, peers, pictures, prequential, replication, signals, speed
from .marks import Figures, combined

__all__ = ["SOURCES", "all_figures"]

#: Modules with a function ``figures``.
SOURCES = (operators, peers, defaults, replication, speed, data, prequential, signals, flash, pictures)


def all_figures() -> Figures:
    """The figures of all sources."""
    return combined(source.figures() for source in SOURCES)
