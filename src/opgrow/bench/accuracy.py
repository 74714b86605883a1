"""Accuracy of methods and peers on the same splits.

Every split is stratified; all models see the same rows. Peers are tuned, where they need it, by inner
cross-validation on training data. Nothing looks at a test row before it is scored. To choose settings, the
training rows are split once more (``inner``), and the test rows are not used at all.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, ShuffleSplit, StratifiedShuffleSplit
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from .. import datasets, estimators

__all__ = ["METHODS", "PEERS", "Result", "compare", "summary"]


def _method(name: str) -> type[Any]:
    cls: type[Any] = getattr(estimators, f"{name}Classifier")
    return cls


def _svm(seed: int) -> Any:
    grid = {"svc__C": [0.3, 1, 3, 10, 30], "svc__gamma": ["scale", 0.01, 0.03, 0.1, 0.3]}
    return GridSearchCV(make_pipeline(StandardScaler(), SVC()), grid, cv=3)


def _lightgbm(seed: int) -> Any:
    try:
        from lightgbm import LGBMClassifier
    except ImportError:
        raise ImportError('lightgbm is missing; install it with: pip install "opgrow[bench]"') from None
    return LGBMClassifier(random_state=seed, verbose=-1, n_jobs=2)


def _mlp(*hidden: int) -> Callable[[int], Any]:
    return lambda seed: make_pipeline(
        StandardScaler(), MLPClassifier(hidden, random_state=seed, max_iter=500, early_stopping=False)
    )


METHODS: dict[str, type[Any]] = {
    name: _method(name)
    for name in (
        *("HeMLGOP", "HoMLGOP", "HeMLRN", "HoMLRN"),
        *("POP", "POPFast", "POPMemO", "POPMemH", "PMLP", "PLN", "BLS"),
    )
}
PEERS: dict[str, Callable[[int], Any]] = {
    "logistic regression": lambda seed: make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000)),
    "RBF SVM (inner CV)": _svm,
    "random forest": lambda seed: RandomForestClassifier(300, random_state=seed, n_jobs=2),
    "MLP 60": _mlp(60),
    "MLP 200-200": _mlp(200, 200),
    "LightGBM": _lightgbm,
}


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
                    network.n_parameters() if network is not None else _mlp_size(estimator),
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


def _mlp_size(estimator: Any) -> int | None:
    last = estimator.steps[-1][1] if hasattr(estimator, "steps") else estimator
    if not hasattr(last, "coefs_"):
        return None
    return int(sum(a.size for a in [*last.coefs_, *last.intercepts_]))


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
