"""The tables of the study and their splits: which there are, and the rows that a run sees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ...rows import datasets
from ...rows.tables import Table
from ..protocols import draw_split

__all__ = ["KEPT_ASIDE", "MAX_TEST_ROWS", "TableSplit", "load_split", "table_names"]

#: Tables on which no default of opgrow was chosen.
KEPT_ASIDE = (
    *("car", "cylinder_bands", "dry_bean", "heart_cleveland", "kr_vs_kp", "mice_protein"),
    *("steel_plates_faults", "wilt", "churn_mlc", "texture", "leaves100", "vehicle"),
    *("airfoil", "california_housing", "yacht"),
)
#: Test rows at most: the standard error of an accuracy is then below half a point.
MAX_TEST_ROWS = 10_000


@dataclass(frozen=True)
class TableSplit:
    """Training and test rows of a table, with text and gaps as they are.

    Attributes
    ----------
    task : "classification" or "regression"
    n_classes : classes of the whole table, 0 for regression
    x_train, x_test : `Table`, or a float32 matrix where the source is one
    y_train, y_test : class codes from 0, or numbers
    text : columns that are categories, whatever they look like
    """

    task: str
    n_classes: int
    x_train: Any
    y_train: np.ndarray
    x_test: Any
    y_test: np.ndarray
    text: tuple[str, ...] = ()


def table_names(given: Sequence[str], data_home: str | None) -> list[str]:
    """The tables of a list of names and folders; of an empty list, all in ``data_home``.

    Without any folder of data, all means the tables that come with scikit-learn.
    """
    if data_home is not None and not Path(data_home).expanduser().is_dir():
        raise ValueError(f"there is no data folder {data_home!r}")
    if not given:
        return datasets.in_folder("", data_home) or list(datasets.BUNDLED)
    known, names = set(datasets.available(data_home)), []
    for name in given:
        inside = datasets.in_folder(name, data_home) if name not in known else []
        names += inside or [name]
    for name in dict.fromkeys(names):
        if name not in known:
            raise ValueError(f"there is no table or folder {name!r}; tables are: {', '.join(sorted(known))}")
    return list(dict.fromkeys(names))


def load_split(name: str, number: int, data_home: str | None, max_rows: int | None = None) -> TableSplit:
    """The split of a table with a number, from 0, with at most ``max_rows`` training rows."""
    bunch = datasets.load_table(name, data_home)
    split = draw_split(bunch.target, number)
    train, test = (
        _at_most(rows, most, number) for rows, most in ((split.train, max_rows), (split.test, MAX_TEST_ROWS))
    )
    return TableSplit(
        bunch.task,
        len(bunch.target_names) if bunch.task == "classification" else 0,
        _take(bunch.table, train),
        bunch.target[train],
        _take(bunch.table, test),
        bunch.target[test],
    )


def _at_most(rows: np.ndarray, most: int | None, seed: int) -> np.ndarray:
    if most is None or len(rows) <= most:
        return rows
    return rows[np.random.default_rng(seed).permutation(len(rows))[:most]]


def _take(table: Any, rows: np.ndarray) -> Any:
    if isinstance(table, Table):
        return Table({name: values[rows] for name, values in table.columns.items()})
    return table[rows]
