"""A table of a user, cut into folds: written once, and read by the process of each run."""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import KFold, StratifiedKFold

from ...common.atomic import write_atomically
from ...rows.tables import Table
from .splits import TableSplit

__all__ = ["FoldedTable", "load_fold", "write_folds"]

_ARRAYS, _FACTS = "table.npz", "table.json"


@dataclass(frozen=True)
class FoldedTable:
    """A table and how it is cut.

    Attributes
    ----------
    x : the columns to predict from
    y : class labels, or numbers
    task : "classification" or "regression"
    text : columns that are categories, whatever they look like
    n_folds : each row is a test row in one of them
    seed : of the shuffle
    """

    x: Table
    y: np.ndarray
    task: str
    text: Sequence[str] = ()
    n_folds: int = 5
    seed: int = 0


def write_folds(table: FoldedTable, folder: Path) -> None:
    """Write a table into a folder; texts as numbers of the texts in a list, and no objects."""
    arrays: dict[str, np.ndarray] = {}
    levels: dict[str, list[str]] = {}
    for place, (name, values) in enumerate(table.x.columns.items()):
        if values.dtype == object:
            levels[name] = sorted({value for value in values if value is not None})
            codes = {value: code for code, value in enumerate(levels[name])}
            values = np.array([-1 if value is None else codes[value] for value in values], dtype=np.int64)
        arrays[f"column{place}"] = values
    classes = 0
    y = table.y
    if table.task == "classification":
        labels, y = np.unique(table.y, return_inverse=True)
        classes = len(labels)
    np.savez(folder / _ARRAYS, **(arrays | {"y": y}))  # type: ignore[arg-type]
    facts = {
        "names": table.x.names,
        "levels": levels,
        "task": table.task,
        "classes": classes,
        "text": list(table.text),
        "folds": table.n_folds,
        "seed": table.seed,
    }
    write_atomically(folder / _FACTS, json.dumps(facts).encode())


def load_fold(folder: str | Path, number: int) -> TableSplit:
    """The training and test rows of a fold, from 0."""
    facts = json.loads((Path(folder) / _FACTS).read_text())
    with np.load(Path(folder) / _ARRAYS, allow_pickle=False) as arrays:
        y = arrays["y"]
        columns = {name: arrays[f"column{place}"] for place, name in enumerate(facts["names"])}
    for name, levels in facts["levels"].items():
        texts = np.array([*levels, None], dtype=object)  # the last one is a gap, -1
        columns[name] = texts[columns[name]]
    train, test = _fold(facts, y, number)
    return TableSplit(
        facts["task"],
        facts["classes"],
        Table({name: values[train] for name, values in columns.items()}),
        y[train],
        Table({name: values[test] for name, values in columns.items()}),
        y[test],
        tuple(facts["text"]),
    )


def _fold(facts: dict[str, Any], y: np.ndarray, number: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of a fold, with the classes in their shares as far as they have rows enough."""
    stratified = facts["task"] == "classification" and np.bincount(y).max() >= facts["folds"]
    kind = StratifiedKFold if stratified else KFold
    splits = kind(facts["folds"], shuffle=True, random_state=facts["seed"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # classes with fewer rows than there are folds
        return list(splits.split(np.zeros(len(y)), y))[number]
