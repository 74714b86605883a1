"""Smaller networks in place of one that does not fit, and what they cost in accuracy.

Networks are grown, or distilled, as the estimator's own parameters say, with ``max_parameters`` searched
downwards. A quarter of the rows is held out: neither they nor the network that they are compared with learns
from these.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.model_selection import train_test_split

from ..common.errors import RangeWarning
from ..rows.tables import Table

__all__ = ["Shrinking", "Shrunk"]

#: How much smaller each network is than the one before, how many are tried, and the share of rows held out.
_STEP, _MOST_TRIES, _HELD = 0.7, 14, 0.25


@dataclass(frozen=True)
class Shrunk:
    """A smaller network beside one with the parameters of the estimator, both fitted to the same rows.

    Attributes
    ----------
    parameters, parameters_before : how many the networks have
    score, score_before : accuracy or R2 on rows that were held out
    held_rows : how many these are
    classification : whether the scores are accuracies
    """

    parameters: int
    parameters_before: int
    score: float
    score_before: float
    held_rows: int
    classification: bool

    def __str__(self) -> str:
        before, after = (
            f"{100 * score:.1f} %" if self.classification else f"R2 {score:.3f}"
            for score in (self.score_before, self.score)
        )
        return (
            f"a network of {self.parameters} parameters was fitted in place of one of "
            f"{self.parameters_before}; on {self.held_rows} rows held out it has {after}, and the larger one "
            f"{before}"
        )


class Shrinking:
    """Rows to fit smaller networks to, and rows to measure them by."""

    def __init__(self, estimator: Any, x: Any, y: Any) -> None:
        self.estimator, self.classification = estimator, is_classifier(estimator)
        if "max_parameters" not in estimator.get_params():
            raise ValueError(f"{type(estimator).__name__} has no max_parameters that could be lowered.")
        y = np.asarray(y)
        if len(x) != len(y):
            raise ValueError(f"X has {len(x)} rows, and y has {len(y)}.")
        counts = np.unique(y, return_counts=True)[1] if self.classification else np.array([len(y)])
        stratify = y if self.classification and counts.min() > 1 and _HELD * len(y) >= len(counts) else None
        train, held = train_test_split(np.arange(len(y)), test_size=_HELD, random_state=0, stratify=stratify)
        self.train, self.held = ((_rows(x, part), y[part]) for part in (np.sort(train), np.sort(held)))

    def networks(self, share: float) -> Iterator[Any]:
        """Fitted estimators, each smaller than the one before; of the first, ``share`` fits at most."""
        limit = min(self.estimator.network_.n_parameters(), self.estimator.max_parameters or np.inf)
        limit = int(limit * min(_STEP**0.5, share))
        for _ in range(_MOST_TRIES):
            model = clone(self.estimator).set_params(max_parameters=limit)
            try:
                model.fit(*self.train)
            except ValueError as error:
                if "max_parameters leaves" in str(error):  # no network is as small
                    return
                raise
            yield model
            limit = int(min(limit, model.network_.n_parameters()) * _STEP)

    def cost(self, smaller: Any) -> Shrunk:
        """What a smaller network costs."""
        before = clone(self.estimator).fit(*self.train)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RangeWarning)
            score, score_before = (float(model.score(*self.held)) for model in (smaller, before))
        sizes = smaller.network_.n_parameters(), before.network_.n_parameters()
        return Shrunk(*sizes, score, score_before, len(self.held[1]), self.classification)


def _rows(x: Any, numbers: np.ndarray) -> Any:
    """Rows of a matrix, a data frame or a table."""
    if isinstance(x, Table):
        return Table({name: values[numbers] for name, values in x.columns.items()})
    if hasattr(x, "iloc"):
        return x.iloc[numbers]
    return x[numbers] if hasattr(x, "shape") else np.asarray(x)[numbers]
