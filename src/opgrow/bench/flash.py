"""Accuracy against flash: our networks as C in all variants, beside other models as C by other packages.

Flash is what a program for a Cortex-M4 takes more than one without the model: code, constants, and the
functions of libraries, such as the exponentials and the double precision that some of the others call.
"""

from __future__ import annotations

import shutil
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.svm import SVC

from ..estimators import HeMLGOPClassifier
from .deployed_networks import export_network
from .deployed_peers import HIDDEN, TREES, by_emlearn, by_m2cgen, by_micromlgen, on_raw_inputs, scaled
from .runtimes import Candidate, Runtimes

__all__ = ["NETWORKS", "VARIANTS", "study"]

#: Our networks.
NETWORKS: dict[str, dict[str, Any]] = {
    "compact": {"preset": "compact"},
    **{f"one network, {n}": {"preset": None, "max_parameters": n} for n in (200, 500, 2000)},
}
#: How they are exported, by what is said of it.
VARIANTS: dict[str, dict[str, str]] = {
    "float32": {},
    "int8": {"weights": "int8"},
    "int4": {"weights": "int4"},
    "integers, int8": {"arithmetic": "integer", "weights": "int8"},
    "integers, int4": {"arithmetic": "integer", "weights": "int4"},
}
#: The compiler that flash is measured by.
CORTEX_M4 = (
    "arm-none-eabi-gcc",
    "-mthumb",
    "-mcpu=cortex-m4",
    "-mfpu=fpv4-sp-d16",
    "-mfloat-abi=hard",
    "--specs=nosys.specs",
)


def study(
    data_home: str | None, tables: Sequence[str], seed: int = 0, skipped: list[str] | None = None
) -> Iterator[dict[str, Any]]:
    """One line for each program; ``skipped`` gets a line for each that could not be made."""
    from .provenance import commit, machine

    if shutil.which(CORTEX_M4[0]) is None:
        raise ValueError(f"Flash is measured by {CORTEX_M4[0]}: apt-get install gcc-arm-none-eabi.")
    for table in tables:
        with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            runtimes = Runtimes(table, data_home, Path(folder), seed, sizing=CORTEX_M4)
            origin = {"commit": commit(), "machine": machine(), "seed": seed, "table": table}
            for series, candidate in chain(_networks(runtimes), _others(runtimes)):
                yield origin | {
                    "series": series,
                    "model": candidate.model,
                    "flash": candidate.n_bytes,
                    "accuracy": round(float(np.mean(candidate.labels == runtimes.y_test)), 4),
                    "agreement": round(float(np.mean(candidate.labels == candidate.expected)), 4),
                }
            if skipped is not None:
                skipped += [f"{table}: {line}" for line in runtimes.skipped]


def _networks(runtimes: Runtimes) -> Iterator[tuple[str, Candidate]]:
    for name, settings in NETWORKS.items():
        model = HeMLGOPClassifier(random_state=runtimes.seed, **settings).fit(runtimes.x, runtimes.y)
        described = f"{name} ({model.network_.n_parameters():,} parameters)"
        expected = runtimes.codes(model)
        for series, options in VARIANTS.items():
            write = partial(export_network, runtimes, model, options)
            for candidate in runtimes.compiled(described, series, expected, write):
                yield f"ours, {series}", candidate


def _others(runtimes: Runtimes) -> Iterator[tuple[str, Candidate]]:
    for n in HIDDEN:
        mlp = scaled(MLPClassifier((n,), max_iter=1000, random_state=runtimes.seed)).fit(
            runtimes.x, runtimes.y
        )
        yield from _named(
            "MLP, emlearn", by_emlearn(runtimes, f"{n} hidden", on_raw_inputs(mlp), runtimes.codes(mlp))
        )
    for n in TREES:
        forest = RandomForestClassifier(n, min_samples_leaf=3, random_state=runtimes.seed)
        expected = runtimes.codes(forest.fit(runtimes.x, runtimes.y))
        trees = by_emlearn(runtimes, _trees(n), forest, expected, method="inline", dtype="float")
        yield from _named("trees, emlearn", trees)
        yield from _named("trees, m2cgen", by_m2cgen(runtimes, _trees(n), forest, expected))
        yield from _named("trees, micromlgen", by_micromlgen(runtimes, _trees(n), forest, expected))
    linear = scaled(LogisticRegression(max_iter=1000)).fit(runtimes.x, runtimes.y)
    logistic = by_m2cgen(runtimes, "logistic regression", on_raw_inputs(linear), runtimes.codes(linear))
    yield from _named("linear, m2cgen", logistic)
    machine = scaled(SVC(gamma=1 / runtimes.x.shape[1])).fit(runtimes.x, runtimes.y)
    by_kernel = by_micromlgen(runtimes, "support vector machine", machine, runtimes.codes(machine))
    yield from _named("SVM, micromlgen", by_kernel)


def _trees(n: int) -> str:
    return "1 tree" if n == 1 else f"{n} trees"


def _named(series: str, candidates: Iterator[Candidate]) -> Iterator[tuple[str, Candidate]]:
    for candidate in candidates:
        yield series, candidate
