"""Where a long piece of work stands, so that it can be resumed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

__all__ = ["Check", "Draft"]

Value = TypeVar("Value")
#: Complains, by a ValueError, about a value that does not belong to the work.
Check = Callable[[Any], None]


class Draft:
    """Where a long piece of work stands. This one is never saved.

    Attributes
    ----------
    saves : whether it is worth while to stop for `offer`
    """

    saves = False

    def recall(self, kind: type[Value], check: Check | None = None) -> Value | None:
        """Where the work was when it was saved last, or its result, if it was saved; its type is ``kind``."""
        return None

    def offer(self, state: Callable[[], Any]) -> None:
        """Say that this is a good moment to save; ``state`` is asked only if so. None: it cannot be saved."""

    def finish(self, state: Callable[[], Any]) -> None:
        """Say that the work is done, with this as its result."""

    def part(self, number: int) -> Draft:
        """A draft of a part of the work."""
        return self
