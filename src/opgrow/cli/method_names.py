"""Names of methods on the command line, which are looked up when one is given: that takes a moment."""

from __future__ import annotations

import typer

__all__ = ["check_methods", "method_name"]


def method_name(given: str) -> str:
    """The method that a name means, whatever its capitals."""
    from opgrow.growth.methods import METHODS

    by_lower_case = {name.lower(): name for name in METHODS}
    try:
        return by_lower_case[given.lower()]
    except KeyError:
        raise typer.BadParameter(f"{given!r} is not one of {', '.join(map(repr, METHODS))}.") from None


def check_methods(given: str) -> list[str]:
    """Names of methods that are separated by commas; all of them for an empty text."""
    from opgrow.growth.methods import METHODS

    names = [name.strip() for name in given.split(",")] if given else list(METHODS)
    unknown = next((name for name in names if name not in METHODS), None)
    if unknown is not None:
        raise ValueError(f"unknown method {unknown!r}; known are: {', '.join(METHODS)}")
    return names
