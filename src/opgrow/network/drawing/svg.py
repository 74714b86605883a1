"""The parts that drawings and charts are made of: colours, texts, titles.

Text takes the colour of the page (``currentColor``), so pictures fit light and dark pages. Whatever comes
from data is cleaned and escaped here.
"""

from __future__ import annotations

from xml.sax.saxutils import escape

from ...common.texts import is_control

__all__ = ["COLOURS", "GREY", "clean", "counted", "picture", "shades", "short", "shortened", "text", "title"]

#: Colours that most people can tell apart (Okabe and Ito).
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c564b", "#7f7f7f")
GREY = "#7f7f7f"


def shades(n: int) -> list[str]:
    """As many colours as are asked for: the palette, then lighter and darker ones, then from the start."""
    mixes = (("#ffffff", 0.0), ("#ffffff", 0.5), ("#000000", 0.4))
    every = [_mixed(colour, other, share) for other, share in mixes for colour in COLOURS]
    return [every[i % len(every)] for i in range(n)]


def _mixed(colour: str, other: str, share: float) -> str:
    parts = [(int(colour[i : i + 2], 16), int(other[i : i + 2], 16)) for i in (1, 3, 5)]
    return "#" + "".join(f"{round(a + share * (b - a)):02x}" for a, b in parts)


def picture(width: float, height: float, parts: list[str], style: str = "", attributes: str = "") -> str:
    """An SVG element of the given size, whose text is 12 pixels high."""
    body = "\n".join(parts)
    style = f' style="{style}"' if style else ""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" role="img" '
        f'font-family="system-ui, sans-serif" font-size="12"{style}{attributes}>\n{body}\n</svg>'
    )


def text(x: float, y: float, words: str, anchor: str = "start", more: str = "") -> str:
    """A line of text; ``more`` holds further attributes."""
    where = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
    return f'<text {where} fill="currentColor"{more}>{escape(clean(words))}</text>'


def title(words: str) -> str:
    """What a browser shows when the pointer rests on a mark."""
    return f"<title>{escape(clean(words))}</title>"


def clean(words: str) -> str:
    """Text without the characters that XML or UTF-8 cannot hold, or that turn the rest of a line around."""
    printable = "".join(c if c == "\n" or not is_control(c) else "\ufffd" for c in words)
    return printable.replace("\ufffe", "\ufffd").replace("\uffff", "\ufffd")


def counted(n: int, what: str) -> str:
    """A number of things."""
    return f"{n:,} {what}" if n == 1 else f"{n:,} {what}s"


def shortened(words: str, length: int) -> str:
    """A text of that length at most."""
    return words if len(words) <= length else words[: length - 1] + "…"


def short(value: float) -> str:
    """A number in a few characters."""
    if value and (abs(value) >= 1e6 or abs(value) < 1e-3):
        return f"{value:.1e}"
    return f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.0f}"
