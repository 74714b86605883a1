"""Pages that need nothing else: one document with its style, its script and its tables.

The content policy of a document allows no script but its own, if it has one, and no fetching: a page
cannot do more even if a name in the data were taken for markup. Names are escaped as well.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Sequence
from html import escape as html_escape
from pathlib import Path

from ..network.drawing.svg import clean

__all__ = ["cards", "details", "document", "escape", "figure", "paragraph", "section", "table"]

_STYLE = (Path(__file__).parent / "page.css").read_text(encoding="utf-8")


def document(
    title: str, parts: Iterable[str], *, script: str = "", data: str = "", talks: bool = False
) -> str:
    """A whole page.

    Parameters
    ----------
    title : str
        Is escaped.
    parts : iterable of str
        HTML.
    script : str, optional
        The one script that may run.
    data : str, optional
        JSON without markup, which the script reads.
    talks : bool, default=False
        Whether the script may talk to the server that the page is from, and show other pages of it.
    """
    policy, end = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'", ""
    if script:
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        policy += f"; script-src 'sha256-{digest}'" + "; connect-src 'self'; frame-src 'self'" * talks
        held = f'<script type="application/json" id="data">{data}</script>\n' if data else ""
        end = f'<div id="tip" role="status" hidden></div>\n{held}<script>{script}</script>\n'
    body = "\n".join(parts)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{_STYLE}</style>\n</head>\n"
        f"<body>\n<main>\n{body}\n</main>\n{end}</body>\n</html>\n"
    )


def escape(words: object) -> str:
    """Text for HTML, in attributes too."""
    return html_escape(clean(str(words)))


def paragraph(words: str, kind: str = "") -> str:
    """A paragraph of plain text."""
    return f'<p class="{kind}">{escape(words)}</p>' if kind else f"<p>{escape(words)}</p>"


def section(name: str, heading: str, parts: Iterable[str]) -> str:
    """A part of a page, with a heading and a name to link to."""
    body = "\n".join(parts)
    return f'<section id="{escape(name)}">\n<h2>{escape(heading)}</h2>\n{body}\n</section>'


def figure(name: str, chart: str, caption: str, kind: str = "") -> str:
    """A chart (SVG) with its caption, by which screen readers call it."""
    name, kind = escape(name), f' class="{kind}"' if kind else ""
    chart = chart.replace(' role="img"', f' role="img" aria-labelledby="{name}-caption"', 1)
    words = f'<figcaption id="{name}-caption">{escape(caption)}</figcaption>'
    return f'<figure id="{name}"{kind}>{chart}{words}</figure>'


def details(summary: str, parts: Iterable[str], *, opened: bool = False) -> str:
    """What is shown when it is asked for."""
    body = "\n".join(parts)
    return f"<details{' open' if opened else ''}><summary>{escape(summary)}</summary>\n{body}\n</details>"


def cards(pairs: Iterable[tuple[str, str]]) -> str:
    """Figures that matter most: (figure, what it is)."""
    items = "".join(f"<li><b>{escape(value)}</b><span>{escape(what)}</span></li>" for value, what in pairs)
    return f'<ul class="cards">{items}</ul>'


def table(
    name: str,
    head: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    words: Sequence[int] = (),
    dimmed: Sequence[bool] = (),
) -> str:
    """A table of plain text. The columns in ``words`` are set to the left, and rows can be ``dimmed``."""

    def cells(tag: str, row: Sequence[str]) -> str:
        left = " class=w"
        return "".join(
            f"<{tag}{left if i in words else ''}>{escape(text)}</{tag}>" for i, text in enumerate(row)
        )

    body = "\n".join(
        f"<tr{' class=no' if i < len(dimmed) and dimmed[i] else ''}>{cells('td', row)}</tr>"
        for i, row in enumerate(rows)
    )
    return (
        f'<div class="scroll"><table id="{escape(name)}"><thead><tr>{cells("th", head)}</tr></thead>\n'
        f"<tbody>{body}</tbody></table></div>"
    )
