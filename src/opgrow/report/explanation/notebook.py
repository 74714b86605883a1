"""An explanation as a piece of HTML, which notebooks show: a placeholder to be filled."""

from __future__ import annotations

from .views import Views

__all__ = ["explanation_html"]


def explanation_html(explanation: Views) -> str:
    return ""
