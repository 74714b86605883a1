"""Every estimator as C in every variant, compiled and run on test rows: a table, and 1 where one is off.

    python -m tests.export.every_variant [--tables iris,pima] [--methods BLS,POP] [--seconds 4]

Accuracies of compiled programs are to be within a point of Python's (or one test row, where that is more),
and R2 within 0.01, with a sentinel of 1e6 among the calibration rows and without; or the export is refused.
``pima``, ``vehicle`` and ``concrete`` are read from the folder in the environment variable OPGROW_DATA.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris, load_wine
from sklearn.metrics import r2_score
from sklearn.model_selection import train_test_split

from opgrow import estimators
from opgrow.rows import datasets
from tests.export.compiled import MODES, Library, name_of

CLASSES = ("iris", "wine", "breast_cancer", "digits", "pima", "vehicle")
NUMBERS = ("diabetes", "concrete")
OWN = {
    "iris": load_iris,
    "wine": load_wine,
    "breast_cancer": load_breast_cancer,
    "digits": load_digits,
    "diabetes": load_diabetes,
}
SMALL = {
    "learning_rates": (0.01, 0.001, 0.0001),
    "epochs": (10, 5, 5),
    "fine_tune_epochs": 5,
    "max_neurons": 100,
    "max_layers": 2,
    "widths": (20,),
    "random_state": 0,
}
SENTINEL = 1e6
#: Training rows at most: what is tested is the export.
MOST_ROWS = 600


@dataclass(frozen=True)
class Outcome:
    """One exported program: its score on test rows beside Python's, or None where the export was refused."""

    estimator: str
    table: str
    variant: str
    sentinel: bool
    python: float
    exported: float | None
    tolerance: float

    @property
    def off(self) -> bool:
        return self.exported is not None and abs(self.exported - self.python) > self.tolerance + 1e-9


def table_of(name: str) -> tuple[np.ndarray, np.ndarray]:
    if name in OWN:
        return OWN[name](return_X_y=True)
    return datasets.load(name)["data"].astype(float), datasets.load(name)["target"]


def outcomes(
    model: Any,
    table: str,
    train: np.ndarray,
    test: tuple[np.ndarray, np.ndarray],
    sentinels: tuple[bool, ...] = (False, True),
    modes: list[dict[str, str]] = MODES,
) -> Iterator[Outcome]:
    """Export, compile and run a fitted model in all variants, with a sentinel among the rows and without.

    ``sentinels`` may be (True,) or (False,) for one of the two alone, and ``modes`` some of the variants.
    """
    x, y = test
    name, classifies = type(model).__name__, hasattr(model, "classes_")
    spoilt = train[:256].copy()
    spoilt[len(spoilt) // 2, -1] = SENTINEL
    tolerance = max(0.01, 1 / len(y)) if classifies else 0.01
    python = model.score(x, y)
    with tempfile.TemporaryDirectory() as folder:
        written = {}
        for mode in modes:
            for sentinel in sentinels:
                file = Path(folder) / f"{name_of(mode)}{'_spoilt' if sentinel else ''}.c"
                try:
                    model.export_c(file, calibration=spoilt if sentinel else None, **mode)
                    written[file] = True
                except ValueError as error:
                    if "agrees too little" not in str(error):
                        raise
                    written[file] = False
        files = [file for file, there in written.items() if there]
        library = Library(files, "-O0") if files else None
        for file, there in written.items():
            exported = None
            if library is not None and there and classifies:
                exported = float(np.mean(model.classes_[library.predict(file.stem, x)] == y))
            elif library is not None and there:
                exported = float(r2_score(y, library.scores(file.stem, x, 1)[:, 0]))
            variant, sentinel = file.stem.removesuffix("_spoilt"), file.stem.endswith("_spoilt")
            yield Outcome(name, table, variant, sentinel, python, exported, tolerance)


def fitted(name: str, table: str, seconds: float) -> tuple[Any, np.ndarray, tuple[np.ndarray, np.ndarray]]:
    x, y = table_of(table)
    x_train, x_test, y_train, y_test = train_test_split(
        x, y, test_size=0.4, random_state=0, stratify=y if table in CLASSES else None
    )
    cls = getattr(estimators, name)
    known = {key: value for key, value in SMALL.items() if key in cls._get_param_names()}
    if name.startswith(("BLS", "PLN")):  # quick as they are, and heads of their own
        known = {"random_state": 0}
    model = cls(**known, max_seconds=seconds).fit(x_train[:MOST_ROWS], y_train[:MOST_ROWS])
    return model, x_train[:MOST_ROWS], (x_test, y_test)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", default=",".join([*CLASSES, *NUMBERS]))
    parser.add_argument("--methods", default="")
    parser.add_argument("--seconds", type=float, default=4.0)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    cases: list[Outcome] = []
    for table in given.tables.split(","):
        for name in estimators.__all__:
            expected = not given.methods or name.startswith(tuple(given.methods.split(",")))
            if not expected or name.endswith("Classifier") != (table in CLASSES):
                continue
            these = list(outcomes(*_with_table(table, *fitted(name, table, given.seconds))))
            cases += these
            print(_line(these), flush=True)
    off = [outcome for outcome in cases if outcome.off]
    refused = sum(outcome.exported is None for outcome in cases)
    print(
        f"\n{len(cases)} exports: {len(cases) - refused - len(off)} agree, {refused} refused, {len(off)} off"
    )
    for outcome in off:
        print(f"off: {outcome}")
    return bool(off)


def _with_table(table: str, model: Any, train: np.ndarray, test: Any) -> tuple[Any, str, np.ndarray, Any]:
    return model, table, train, test


def _line(these: list[Outcome]) -> str:
    first = these[0]
    cells = " ".join(map(_cell, these))
    return f"{first.estimator:<20} {first.table:<14} {100 * first.python:6.2f} {cells}"


def _cell(outcome: Outcome) -> str:
    if outcome.exported is None:
        return "refused "
    return f"{100 * (outcome.exported - outcome.python):+7.2f}{'!' if outcome.off else ' '}"


if __name__ == "__main__":
    sys.exit(main())
