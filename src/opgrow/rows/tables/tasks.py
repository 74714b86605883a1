"""Whether a target consists of classes or of numbers, and the reason for the guess."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from opgrow.rows.tables.table import as_column

__all__ = ["TaskGuess", "guess_task", "infer_task"]

#: So many different whole numbers are classes in any case.
MAX_INTEGER_CLASSES = 20
#: More of them are classes if they look like codes: each has so many rows at least, ...
MIN_ROWS_OF_A_CODE = 5
#: ... and at least this share of the rows of the most frequent one.
MIN_SHARE_OF_A_CODE = 0.2


@dataclass(frozen=True)
class TaskGuess:
    """A task and, in words that follow "because", the reason for it.

    Examples
    --------
    >>> guess_task([0.5, 1.25, 3.0])
    TaskGuess(task='regression', reason='it holds numbers that are not whole, such as 0.5')
    """

    task: Literal["classification", "regression"]
    reason: str


def guess_task(column: Any) -> TaskGuess:
    """Tell from the values of a target what kind of task it states, and why.

    Parameters
    ----------
    column : sequence of shape (n_rows,)
        The target column. Missing values do not count.

    Returns
    -------
    TaskGuess
        Text is classes. Numbers are classes if all are whole and either at most 20 differ, or they look like
        codes: they run from 0 or 1 without a gap, and the rarest has at least 5 rows and a fifth of the rows
        of the most frequent one. All other numbers are a regression.
    """
    values = as_column(column, "target")
    if values.dtype == object:
        return TaskGuess("classification", "it holds text")
    distinct, counts = np.unique(values[~np.isnan(values)], return_counts=True)
    if not distinct.size:
        raise ValueError("The task cannot be inferred from a target without any value.")
    broken = distinct[~np.isfinite(distinct) | (distinct != np.round(distinct))]
    if broken.size:
        return TaskGuess("regression", f"it holds numbers that are not whole, such as {broken[0]:g}")
    n = distinct.size
    if n <= MAX_INTEGER_CLASSES:
        return TaskGuess("classification", f"it has {n} different whole numbers, and up to 20 are classes")
    run = distinct[0] in (0, 1) and distinct[-1] - distinct[0] == n - 1
    even = counts.min() >= max(MIN_ROWS_OF_A_CODE, MIN_SHARE_OF_A_CODE * counts.max())
    if run and even:
        pattern = f"the whole numbers from {distinct[0]:g} to {distinct[-1]:g} are about equally frequent"
        return TaskGuess("classification", f"{pattern}, like codes of classes")
    return TaskGuess("regression", f"it has {n:,} different whole numbers, and up to 20 would be classes")


def infer_task(column: Any) -> Literal["classification", "regression"]:
    """The task that `guess_task` tells from the values of a target, without the reason.

    Examples
    --------
    >>> infer_task([0, 1, 1, 0]), infer_task(["no", "yes"]), infer_task([0.5, 1.25])
    ('classification', 'classification', 'regression')
    """
    return guess_task(column).task
