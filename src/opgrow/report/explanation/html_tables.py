"""Tables with bars, as pieces of HTML."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...network.drawing.svg import COLOURS
from ..html import escape
from .shape import WORDS

__all__ = ["contributions_html", "html_bar", "html_table"]

_CELL = ' style="text-align:left;padding:0 0.8em 0 0;white-space:pre"'
_ROWS = 10


def contributions_html(
    sentences: Sequence[str], names: Sequence[str], texts: Sequence[str], values: np.ndarray
) -> str:
    """Sentences on a row, and what its columns contribute: values (columns, outputs)."""
    order = np.argsort(-np.abs(values).sum(axis=1), kind="stable")[:_ROWS].tolist()
    largest = max(float(np.abs(values).max()), 1e-300)
    rows = []
    for j in order:
        main = int(np.abs(values[j]).argmax())
        bar = html_bar(abs(values[j, main]) / largest, COLOURS[0 if values[j, main] > 0 else 1])
        rows.append((names[j], texts[j], bar, "  ".join(f"{value:+.3g}" for value in values[j])))
    told = "".join(f"<li>{escape(sentence)}</li>" for sentence in sentences)
    shown = html_table(("column", "value", "", "contribution"), rows, bars=2)
    return f'<div><ul>{told}</ul>{shown}<p style="font-size:0.9em">{escape(WORDS["columns"])}</p></div>'


def html_bar(share: float, colour: str) -> str:
    """A bar, as a cell of a table."""
    bar = f'<rect width="{100 * share:.1f}" height="10" fill="{colour}"/>'
    return f'<svg width="100" height="10" aria-hidden="true">{bar}</svg>'


def html_table(head: Sequence[str], rows: Sequence[Sequence[str]], bars: int) -> str:
    """A table of plain text, which is escaped, but for the column number ``bars``, which has bars."""

    def cell(content: str, number: int) -> str:
        return f"<td{_CELL}>{content if number == bars else escape(content)}</td>"

    top = "".join(f"<th{_CELL}>{escape(name)}</th>" for name in head)
    body = "".join(f"<tr>{''.join(cell(content, i) for i, content in enumerate(row))}</tr>" for row in rows)
    return f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"
