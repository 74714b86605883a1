"""What is wrong."""

from __future__ import annotations

__all__ = ["Wrong", "check_sentence"]


class Wrong(Exception):
    """An outcome that must not be."""


def check_sentence(error: Exception) -> None:
    """A refusal is one sentence."""
    text = str(error)
    if "\n" in text or "Traceback" in text or not 0 < len(text) < 1000:
        raise Wrong(f"not one sentence: {error!r}")
