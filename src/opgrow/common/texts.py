"""Cleaning text that comes from data before it reaches a terminal or a page.

Names and labels can come from anywhere. Control characters move the cursor, change the title of a window or
break lines; marks that override the direction of writing show a text in a different order.
"""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["is_control", "plain_console", "printable"]

#: Embeddings, overrides and isolates; the marks that scripts from right to left need are not among them.
_DIRECTIONS = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def is_control(character: str) -> bool:
    """Whether a character is not to be shown: a control, a lone surrogate or an override of direction."""
    return unicodedata.category(character) in ("Cc", "Cs") or character in _DIRECTIONS


def printable(words: str) -> str:
    r"""Text for a terminal: control characters stand as they are written in Python; lines and tabs stay.

    Examples
    --------
    >>> print(printable("red \x1b[31m"))
    red \x1b[31m
    """
    if words.isprintable():
        return words
    return "".join(_escaped(c) if c not in "\n\t" and is_control(c) else c for c in words)


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode()


def plain_console(**options: object) -> Console:
    """A console of rich that shows control characters in texts instead of obeying them."""
    from collections.abc import Iterable
    from typing import Any

    from rich.console import Console
    from rich.segment import Segment

    class PlainConsole(Console):
        def render(self, renderable: Any, options: Any = None) -> Iterable[Segment]:
            for text, style, control in super().render(renderable, options):
                yield Segment(text if control else printable(text), style, control)

    return PlainConsole(**options)  # type: ignore[arg-type]
