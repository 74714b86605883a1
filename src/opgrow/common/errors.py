"""The errors and warnings that this package defines."""

from __future__ import annotations

__all__ = ["NotFiniteError", "RangeWarning", "TableWarning"]


class NotFiniteError(ValueError, FloatingPointError):
    """Growth cannot go on, because the numbers that it needs are not finite.

    It is the data, or a parameter, that makes them so: hence a ValueError, as scikit-learn's users expect it.
    """


class RangeWarning(UserWarning):
    """Rows are predicted that lie far outside what was seen in training: the predictions are guesses.

    ``warnings.simplefilter("ignore", opgrow.RangeWarning)`` silences it, "error" makes it an error, and an
    estimator's ``outside(X)`` says which rows are meant.
    """


class TableWarning(UserWarning):
    """Rows of a table are unlike those that an encoder was fitted on, such as in categories it never saw."""
