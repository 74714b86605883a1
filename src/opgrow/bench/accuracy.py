"""Accuracy of methods and peers on the same splits.

Every split is stratified; all models see the same rows. Peers are tuned, where they need it, by inner
cross-validation on training data. Nothing looks at a test row before it is scored. To choose settings, the
training rows are split once more (``inner``), and the test rows are not used at all.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.model_selection import ShuffleSplit, StratifiedShuffleSplit

from .. import datasets
from .models import METHODS, PEERS, n_parameters

__all__ = ["METHODS", "PEERS", "Result", "compare", "summary"]


@dataclass(frozen=True)
class Result:
    """One model on one split."""

    dataset: str
    split: int
    model: str
    accuracy: float
    seconds: float
    parameters: int | None
    topology: str | None
    flops: int | None = None


def compare(
    names: list[str],
    data_home: str | None,
    n_splits: int,
    models: list[str],
    parameters: dict[str, Any] | None = None,
    test_size: float = 0.4,
    inner: bool = False,
) -> Iterator[Result]:
    """Fit every model on every split of every dataset; results come as they are ready.

    A parameter goes to the methods that have it; one that none of the models has is an error. With
    ``inner``, the training rows of each split are split again in the same way and take both parts.
    """
    settings = _settings(models, parameters or {})
    for name in names:
        bunch = datasets.load(name, data_home)
        for number, (train, test) in enumerate(_splits(bunch.target, n_splits, test_size, 0)):
            if inner:
                first, second = next(_splits(bunch.target[train], 1, test_size, number))
                train, test = train[first], train[second]
            for model in models:
                if model in METHODS:
                    estimator = METHODS[model](random_state=number, **settings[model])
                else:
                    estimator = PEERS[model](number)
                started = time.perf_counter()
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # convergence notices of peers
                    estimator.fit(bunch.data[train], bunch.target[train])
                    seconds = time.perf_counter() - started
                    accuracy = estimator.score(bunch.data[test], bunch.target[test])
                network = getattr(estimator, "network_", None)
                yield Result(
                    name,
                    number,
                    model,
                    float(accuracy),
                    seconds,
                    n_parameters(estimator),
                    network.topology() if network is not None else None,
                    network.flops() if network is not None else None,
                )


def _settings(models: list[str], parameters: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """What each of the methods among the models knows of the parameters."""
    known = {model: METHODS[model]._get_param_names() for model in models if model in METHODS}
    for name in parameters:
        if not any(name in names for names in known.values()):
            raise ValueError(f"no method among the models has a parameter {name!r}")
    return {model: {n: parameters[n] for n in names if n in parameters} for model, names in known.items()}


def _splits(
    target: np.ndarray, n_splits: int, test_size: float, seed: int
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Random splits, stratified unless a class has a single row."""
    rare = np.unique(target, return_counts=True)[1].min() < 2
    splitter = (ShuffleSplit if rare else StratifiedShuffleSplit)(
        n_splits, test_size=test_size, random_state=seed
    )
    return splitter.split(target, target)


def summary(results: list[Result]) -> list[dict[str, Any]]:
    """Mean and deviation of accuracy, medians of time and size, by dataset and model."""
    rows = []
    for key in dict.fromkeys((r.dataset, r.model) for r in results):
        group = [r for r in results if (r.dataset, r.model) == key]
        accuracy = np.array([r.accuracy for r in group])
        sizes = [r.parameters for r in group if r.parameters is not None]
        flops = [r.flops for r in group if r.flops is not None]
        rows.append(
            {
                "dataset": key[0],
                "model": key[1],
                "splits": len(group),
                "accuracy": float(accuracy.mean()),
                "deviation": float(accuracy.std(ddof=1)) if len(group) > 1 else 0.0,
                "seconds": float(np.median([r.seconds for r in group])),
                "parameters": int(np.median(sizes)) if sizes else None,
                "flops": int(np.median(flops)) if flops else None,
            }
        )
    return rows
