"""Tables with text, gaps, dates and odd names, and models that were fitted on them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine

from opgrow import BLSClassifier, HeMLGOPClassifier, HeMLGOPRegressor, POPClassifier
from tests.report.test_page import small

EVIL = "<img src=x onerror=alert(1)>"


def sales(n_rows: int = 240) -> tuple[Any, np.ndarray]:
    """Text of few and of many categories, gaps in all kinds of columns, dates and times."""
    rng = np.random.default_rng(0)
    colour = rng.choice(["red", "blue", EVIL, "d'or"], n_rows).astype(object)
    town = np.array([f"town {i}" for i in rng.integers(0, 60, n_rows)], dtype=object)
    age, price = rng.integers(18, 80, n_rows).astype(float), np.exp(rng.normal(3, 1, n_rows)).round(2)
    day = np.datetime64("2021-01-01") + rng.integers(0, 900, n_rows).astype("m8[D]")
    seconds = rng.integers(0, 86400, n_rows)
    clock = np.array([f"{s // 3600:02}:{s % 3600 // 60:02}" for s in seconds], dtype=object)
    when = np.array([pd.Timestamp(d).strftime("%d.%m.%Y") for d in day], dtype=object)
    score = (colour == "red") * 1.5 + (age > 50) + np.log(price) - 3 + (seconds > 43200) * 0.7
    for column, share in ((colour, 0.1), (when, 0.1), (clock, 0.05)):
        column[rng.random(n_rows) < share] = None
    age[rng.random(n_rows) < 0.15] = np.nan
    frame = {"colour": colour, EVIL: age, "price": price, "town": town, "when": when, "clock": clock}
    y = np.where(score + rng.normal(0, 0.3, n_rows) > 1, "</script><b>yes", "no & never")
    return pd.DataFrame(frame | {"same": 1.0}), y


def fitted(name: str) -> tuple[Any, Any, np.ndarray]:
    """A model, and the rows and targets of its table."""
    model, table = TABLES[name]
    X, y = table()
    return small(model).fit(X, y), X, y


def _frame(load: Callable[..., Any]) -> Callable[[], tuple[Any, np.ndarray]]:
    def rows() -> tuple[Any, np.ndarray]:
        X, y = load(return_X_y=True, as_frame=True)
        return X, y.to_numpy()

    return rows


def _numbers_with_gaps() -> tuple[np.ndarray, np.ndarray]:
    X, y = load_diabetes(return_X_y=True)
    X = X.astype(np.float32)
    X[np.random.default_rng(1).random(X.shape) < 0.05] = np.nan
    return X, y


TABLES: dict[str, tuple[Any, Callable[[], tuple[Any, np.ndarray]]]] = {
    "sales": (HeMLGOPClassifier, sales),
    "gaps": (HeMLGOPRegressor, _numbers_with_gaps),
    "wine": (POPClassifier, _frame(load_wine)),
    "cancer": (BLSClassifier, _frame(load_breast_cancer)),
}
