"""Measuring how well an exported model agrees with its estimator, before it is written.

Classifiers are compared by their labels, and regressors by R2 between both predictions. Errors that have
nothing to do with the targets lower a model's own R2 by no more than this R2 falls short of 1. The rows are
often those that the network has learned from, on which exports agree better than on others, so a regression
may fall short by a quarter of what labels may.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from ..common.places import evenly
from ..training.scores import probabilities

__all__ = [
    "MIN_AGREEMENT",
    "MOST_ROWS",
    "Expected",
    "ExportCheck",
    "check_share",
    "compare",
    "expected_of",
    "expected_with",
    "not_measured",
    "refuse",
]

MIN_AGREEMENT = 0.99
#: Rows that are compared at most; of more, as many are taken that lie evenly among them.
MOST_ROWS = 4096


@dataclass(frozen=True)
class ExportCheck:
    """What an export found when it compared itself with its estimator.

    Attributes
    ----------
    rows : how many rows were compared; 0 where there were none
    agreement : share of equal labels or, for regression, R2 between both predictions; None without rows
    largest_difference, mean_difference : of probabilities or of predicted values; None without rows
    how : what was compared with the estimator, or why nothing was
    classification : whether labels were compared
    head_solved_again : whether the weights of the head are others than the estimator's, because these would
        have lost too much to rounding
    """

    rows: int
    agreement: float | None
    largest_difference: float | None
    mean_difference: float | None
    how: str
    classification: bool
    head_solved_again: bool = False

    def __str__(self) -> str:
        if self.agreement is None:
            return f"not measured: {self.how}"
        again = "; head solved again for it" if self.head_solved_again else ""
        if self.classification:
            equal, what = f"{100 * self.agreement:.2f} % of the labels", "a probability"
        else:
            equal, what = f"R2 {self.agreement:.5f}", "a prediction"
        return (
            f"agreement with the estimator on {self.rows} rows: {equal}, largest difference of {what} "
            f"{self.largest_difference:.2g} ({self.how}{again})"
        )


@dataclass(frozen=True)
class Expected:
    """Rows (n, n_inputs) and what the estimator says of them: probabilities or values (n, n_outputs).

    ``windows`` (n, window.n_inputs) are those of signals whose features the rows are, where there are any.
    """

    rows: np.ndarray
    scores: np.ndarray
    classification: bool
    windows: np.ndarray | None = None


def check_share(name: str, value: Any) -> float:
    """A share from 0 to 1."""
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 <= float(value) <= 1:
        raise ValueError(f"{name} must be a number from 0 to 1, got {value!r}.")
    return float(value)


def expected_of(estimator: Any, calibration: Any) -> Expected | None:
    """What an export is compared with: rows that are given or that were kept with the model; None without."""
    if calibration is not None:
        rows = estimator.network_rows(calibration)
    else:
        rows = getattr(estimator, "sample_", None)
    if rows is None or not len(rows):
        return None
    rows = np.asarray(rows, np.float64)
    return expected_with(estimator, rows[evenly(len(rows), MOST_ROWS)])


def expected_with(
    estimator: Any, rows: np.ndarray, given: np.ndarray | None = None, windows: np.ndarray | None = None
) -> Expected:
    """What is expected of rows; a program that computes them itself, of windows, has those that are given."""
    outputs = estimator.network_.outputs(rows).astype(np.float64)
    finite = np.isfinite(outputs).all(axis=1)  # what the estimator refuses need not agree
    if not finite.any():
        raise ValueError("The calibration rows lead to values that are not finite: give typical inputs.")
    classification = hasattr(estimator, "classes_")
    scores = probabilities(estimator.loss_, outputs[finite]) if classification else outputs[finite]
    given = rows if given is None else given
    return Expected(given[finite], scores, classification, None if windows is None else windows[finite])


def not_measured(classification: bool, why: str) -> ExportCheck:
    return ExportCheck(0, None, None, None, why, classification)


def compare(expected: Expected, scores: np.ndarray, how: str) -> ExportCheck:
    """The scores of an export (n, n_outputs) beside those of the estimator."""
    wanted, scores = expected.scores, np.asarray(scores, np.float64)
    difference = np.abs(wanted - scores)
    largest, mean = float(difference.max()), float(difference.mean())
    if expected.classification:
        share = float(np.mean(wanted.argmax(axis=1) == scores.argmax(axis=1)))
    else:
        share = min(_agreement(a, b) for a, b in zip(wanted.T, scores.T, strict=True))
    if not np.isfinite(largest):
        share = 0.0
    return ExportCheck(len(wanted), share, largest, mean, how, expected.classification)


def _agreement(wanted: np.ndarray, values: np.ndarray) -> float:
    """R2 of one output's values; a few that are far from all others cannot outweigh them."""
    low, high = np.quantile(wanted, [0.01, 0.99], method="inverted_cdf")
    width = high - low
    if not width > 1e-9 * max(abs(low), abs(high)):  # predictions that are all the same
        return float(np.abs(wanted - values).max() <= 1e-3 * max(1e-9, abs(low), abs(high)))
    wanted, values = (np.clip(values, low - width, high + width) for values in (wanted, values))
    return float(1 - np.square(wanted - values).sum() / np.square(wanted - wanted.mean()).sum())


def regression_limit(least: float) -> float:
    """The least R2 between both predictions, for a least share of equal labels."""
    return 1 - (1 - least) / 4


def refuse(check: ExportCheck, least: float, what: str, remedy: Callable[[], str]) -> None:
    """One sentence where an export agrees too little."""
    if check.agreement is None or least == 0:
        return
    wanted = least if check.classification else regression_limit(least)
    if check.agreement >= wanted:
        return
    measure = (
        f"{100 * check.agreement:.1f} % of the labels"
        if check.classification
        else f"R2 {check.agreement:.3f}"
    )
    limit = f"{100 * wanted:g} %" if check.classification else f"{wanted:g}"
    raise ValueError(
        f"{what} agrees too little with the estimator on {check.rows} rows ({measure}, at least {limit} is "
        f"wanted) and was not written: {remedy()}, or pass a lower min_agreement."
    )
