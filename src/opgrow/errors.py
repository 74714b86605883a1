"""The error of numbers that overflow, wherever they do."""

from __future__ import annotations

__all__ = ["NotFiniteError"]


class NotFiniteError(ValueError, FloatingPointError):
    """Growth cannot go on, because the numbers that it needs are not finite.

    It is the data, or a parameter, that makes them so: hence a ValueError, as scikit-learn's users expect it.
    """
