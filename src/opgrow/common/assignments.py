"""Parameters as they are written on a command line: KEY=VALUE."""

from __future__ import annotations

import json
from typing import Any

__all__ = ["parse_parameters"]


def parse_parameters(items: list[str]) -> dict[str, Any]:
    """A dictionary of values from texts such as ``n_min=20`` or ``epochs=3,2,1``.

    Examples
    --------
    >>> from opgrow.common.assignments import parse_parameters
    >>> parse_parameters(["n_min=20", "epochs=3,2,1", "loss=mse", "max_norm=null"])
    {'n_min': 20, 'epochs': [3, 2, 1], 'loss': 'mse', 'max_norm': None}
    """
    parsed: dict[str, Any] = {}
    for item in items:
        key, equals, text = item.partition("=")
        if not (equals and key.strip()):
            raise ValueError(f"--param takes KEY=VALUE, such as n_min=20, got {item!r}")
        parsed[key.strip()] = _parse_value(text.strip())
    return parsed


def _parse_value(text: str) -> Any:
    """JSON, numbers separated by commas, or else the text itself."""
    for candidate in (text, f"[{text}]"):
        try:
            return json.loads(candidate)
        except ValueError:
            continue
    return {"True": True, "False": False, "None": None}.get(text, text)
