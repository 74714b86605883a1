"""How rows are divided: the paper's protocol, and a stronger one with many splits.

The paper has 60 % of the rows for training and 40 % for testing on small problems, 60/20/20 with validation
rows on larger ones, and reports the median of 3 runs, of which it does not say whether they had other rows or
other random numbers only. The stronger protocol has the same shares and at least 20 stratified splits on
small problems, for means, deviations and paired tests.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.model_selection import ShuffleSplit, StratifiedShuffleSplit

__all__ = [
    "PROTOCOLS",
    "SMALL_ROWS",
    "Protocol",
    "Split",
    "draw_inner_split",
    "draw_split",
    "hold_out",
    "size_of",
    "split_of",
]

#: Rows up to which a problem is small: the paper's small tables have 768 to 1,484.
SMALL_ROWS = 2000


@dataclass(frozen=True)
class Split:
    """Rows for training, for validation (None: a method takes some of its training rows) and for testing."""

    train: np.ndarray
    validation: np.ndarray | None
    test: np.ndarray


@dataclass(frozen=True)
class Protocol:
    """How many runs there are, and how their results become one figure: "median" or "mean".

    ``rows`` says where a run's rows come from: "split" draws a split for each, "seed" gives all of them
    the first one, "given" the partition that comes with the data.
    """

    name: str
    small_splits: int
    large_splits: int
    summary: str
    rows: str = "split"

    def n_splits(self, n_rows: int) -> int:
        return self.small_splits if n_rows <= SMALL_ROWS else self.large_splits


PROTOCOLS = {
    "paper": Protocol("paper", 3, 3, "median"),
    "seeds": Protocol("seeds", 3, 3, "median", rows="seed"),
    "given": Protocol("given", 3, 3, "median", rows="given"),
    "splits": Protocol("splits", 20, 3, "mean"),
}


def split_of(protocol: Protocol, target: np.ndarray, number: int, given: np.ndarray | None) -> Split:
    """The rows of a run; ``given`` has 0 for training and 1 for test rows, where the data says so."""
    if protocol.rows != "given":
        return draw_split(target, number if protocol.rows == "split" else 0)
    if given is None or set(np.unique(given)) != {0, 1}:
        raise ValueError(
            "protocol 'given' needs a partition: an NPZ file with an array 'split' of 0 for training "
            "and 1 for test rows"
        )
    return Split(np.flatnonzero(given == 0), None, np.flatnonzero(given == 1))


def size_of(n_rows: int) -> str:
    """Whether a problem is "small" or "large" in the paper's sense."""
    return "small" if n_rows <= SMALL_ROWS else "large"


def draw_split(target: np.ndarray, number: int) -> Split:
    """The split with a number, from 0: the same rows for every model, whoever asks, in any order."""
    train, rest = _divide(target, 0.4, number)
    if len(target) <= SMALL_ROWS:
        return Split(train, None, rest)
    validation, test = _divide(target[rest], 0.5, number)
    return Split(train, rest[validation], rest[test])


def draw_inner_split(target: np.ndarray, number: int) -> Split:
    """The training rows of a split, split once more in the same way: for choices that no test row may see."""
    rows = draw_split(target, number).train
    split = draw_split(target[rows], number)
    validation = None if split.validation is None else rows[split.validation]
    return Split(rows[split.train], validation, rows[split.test])


def hold_out(target: np.ndarray, train: np.ndarray, number: int) -> tuple[np.ndarray, np.ndarray]:
    """A quarter of the training rows to choose parameters on, and the rest to fit on: (fit, choose)."""
    fit, choose = _divide(target[train], 0.25, number)
    return train[fit], train[choose]


def _divide(target: np.ndarray, share: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Two parts, stratified unless a class has a single row."""
    counts = np.unique(target, return_counts=True)[1]
    kind = (
        StratifiedShuffleSplit if counts.min() >= 2 and len(counts) <= share * len(target) else ShuffleSplit
    )
    first, second = next(kind(1, test_size=share, random_state=seed).split(target, target))
    return np.sort(first), np.sort(second)
