"""Pictures that opgrow draws of itself: which package imports which, and a network grown on the digits."""

from __future__ import annotations

import tempfile
from pathlib import Path

import import_graph
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from opgrow import HeMLGOPClassifier

from .marks import Figures

__all__ = ["figures"]


def figures() -> Figures:
    """The files in docs/images that need no results."""
    return Figures(
        files={
            "docs/images/digits.svg": _digits(),
            "docs/images/house.svg": import_graph.drawing(),
            "docs/images/house.txt": import_graph.table(),
        }
    )


def _digits() -> str:
    """One network, which is the same on every CPU."""
    X, y = load_digits(return_X_y=True)
    X_train, _, y_train, _ = train_test_split(X, y, test_size=0.4, stratify=y, random_state=0)
    clf = HeMLGOPClassifier(preset=None, random_state=0).fit(X_train, y_train)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "digits.svg"
        clf.plot().save(path)
        return path.read_text(encoding="utf-8")
