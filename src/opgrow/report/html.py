"""Pages that need nothing else: one document with its style, its script and its tables.

The content policy of a document allows no script but its own, if it has one, and no fetching: a page
cannot do more even if a name in the data were taken for markup. Names are escaped as well.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Sequence
from html import escape as html_escape

from ..network.drawing.svg import clean

__all__ = ["cards", "details", "document", "escape", "figure", "paragraph", "section", "table"]

_STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem; }
h1 { margin-bottom: 0.2rem; overflow-wrap: anywhere; }
h2 { margin-top: 2.5rem; border-bottom: 1px solid #8884; }
table { border-collapse: collapse; margin: 1rem 0; font-size: 0.9rem; font-variant-numeric: tabular-nums; }
th, td { padding: 0.3rem 0.7rem; border-bottom: 1px solid #8884; text-align: right; vertical-align: top; }
td, th { white-space: pre; }
th:first-child, td:first-child { text-align: left; }
#settings td { white-space: pre-wrap; overflow-wrap: anywhere; }
.no { opacity: 0.6; }
.scroll { overflow: auto; max-height: 36rem; }
.scroll thead { position: sticky; top: 0; background: Canvas; }
figure { margin: 1.5rem 0; overflow-x: auto; }
figcaption, .note { font-size: 0.9rem; opacity: 0.8; }
figure > svg { width: 100%; height: auto; max-width: 48rem; min-width: 28rem; }
figure.narrow { max-width: 36rem; }
.pair { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(26rem, 100%), 1fr)); gap: 0 2rem; }
.cards { display: flex; flex-wrap: wrap; gap: 0.75rem; margin: 1rem 0; padding: 0; list-style: none; }
.cards li { border: 1px solid #8884; border-radius: 0.5rem; padding: 0.5rem 1rem; min-width: 6rem; }
.cards b { display: block; font-size: 1.35rem; font-weight: 600; }
.cards span { font-size: 0.85rem; opacity: 0.8; }
nav a { margin-right: 1.2rem; }
pre { overflow-x: auto; font-size: 0.85rem; border: 1px solid #8884; border-radius: 0.5rem; padding: 0.8rem; }
details { margin: 0.6rem 0; }
summary { cursor: pointer; }
.warning { border-left: 4px solid #d55e00; padding: 0.2rem 1rem; }
.mark { cursor: default; }
.mark.here { stroke: currentColor; stroke-width: 2; }
#tip { position: fixed; z-index: 1; max-width: 22rem; padding: 0.4rem 0.7rem; border-radius: 0.4rem;
  font-size: 0.85rem; line-height: 1.35; white-space: pre-line; overflow-wrap: anywhere; pointer-events: none;
  background: CanvasText; color: Canvas; }
"""

# Titles of marks become one tooltip, at once and at the pointer; the browser's own would come second.
_SCRIPT = """
(() => {
  const tip = document.getElementById("tip");
  let here = null;
  const words = (mark) => {
    const title = mark.querySelector(":scope > title");
    if (title) { mark.dataset.tip = title.textContent; title.remove(); }
    return mark.dataset.tip;
  };
  const hide = () => {
    if (here) here.classList.remove("here");
    here = null; tip.hidden = true;
  };
  const show = (mark, x, y) => {
    if (mark !== here) {
      hide();
      here = mark; mark.classList.add("here");
      tip.textContent = words(mark); tip.hidden = false;
    }
    const box = tip.getBoundingClientRect();
    tip.style.left = Math.max(4, Math.min(x + 14, innerWidth - box.width - 4)) + "px";
    tip.style.top = (y + 18 + box.height > innerHeight ? Math.max(4, y - box.height - 10) : y + 18) + "px";
  };
  const at = (target) => {
    const mark = target.closest ? target.closest("svg *") : null;
    return mark && (mark.dataset.tip || mark.querySelector(":scope > title")) ? mark : null;
  };
  document.addEventListener("pointermove", (event) => {
    const mark = at(event.target);
    if (mark) show(mark, event.clientX, event.clientY); else hide();
  });
  document.addEventListener("pointerleave", hide);
  document.addEventListener("scroll", hide, true);
  for (const drawing of document.querySelectorAll("svg:has(.mark)")) {
    const marks = [...drawing.querySelectorAll(".mark")];
    drawing.tabIndex = 0;
    drawing.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      if (event.key === "Escape") hide();
      if (!step) return;
      event.preventDefault();
      const place = (marks.indexOf(here) + step + marks.length) % marks.length;
      const box = marks[place].getBoundingClientRect();
      show(marks[place], box.right, box.bottom);
    });
    drawing.addEventListener("blur", hide);
  }
})();
"""


def document(title: str, parts: Iterable[str], *, tips: bool = False) -> str:
    """A whole page; ``title`` is escaped, ``parts`` are HTML. With ``tips``, marks are explained at once."""
    policy, end = "default-src 'none'; style-src 'unsafe-inline'", ""
    if tips:
        digest = base64.b64encode(hashlib.sha256(_SCRIPT.encode()).digest()).decode()
        policy += f"; script-src 'sha256-{digest}'"
        end = f'<div id="tip" role="status" hidden></div>\n<script>{_SCRIPT}</script>\n'
    body = "\n".join(parts)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{_STYLE}</style>\n</head>\n"
        f"<body>\n{body}\n{end}</body>\n</html>\n"
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
    """A chart (SVG) with its caption."""
    kind = f' class="{kind}"' if kind else ""
    return f'<figure id="{escape(name)}"{kind}>{chart}<figcaption>{escape(caption)}</figcaption></figure>'


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
        left = ' style="text-align: left"'
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
