"""The models that are compared: presets of HeMLGOP, and peers with their own defaults.

A peer states which form of a table it takes (`opgrow.bench.peers.inputs`) and which package it comes from.
One name means the classifier or the regressor, as the table asks for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.model_selection import GridSearchCV
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR

from ...common.extras import has, needs, require
from ...estimators.by_method import estimators_of
from ...operators import operator_sets
from ..models import check_model, split_name, split_names

__all__ = [
    "CLASSIC",
    "DEFAULT",
    "OURS",
    "PEERS",
    "PERCEPTRONS",
    "Peer",
    "build",
    "check",
    "chosen",
    "form_of",
    "installed",
]

#: The model that the others are compared with.
DEFAULT = "HeMLGOP"
#: The default with multiplication, sum and any activation, and nothing else.
PERCEPTRONS = "HeMLGOP perceptrons only"
OURS = (DEFAULT, "HeMLGOP preset=accurate", "HeMLGOP preset=compact", "HeMLGOP preset=null", PERCEPTRONS)


@dataclass(frozen=True)
class Peer:
    """How a peer is made.

    Attributes
    ----------
    form : the form of the table that it takes
    make : an unfitted model, from the task and a seed
    package : what it needs beside scikit-learn, or None
    extra : the extra of opgrow that installs the package
    """

    form: str
    make: Callable[[str, int], Any]
    package: str | None = None
    extra: str = "peers"


def _scaled(model: Any) -> Any:
    return make_pipeline(StandardScaler(), model)


def _scaled_target(model: Any) -> Any:
    return TransformedTargetRegressor(_scaled(model), transformer=StandardScaler())


def _linear(task: str, seed: int) -> Any:
    if task == "classification":
        return _scaled(LogisticRegression(max_iter=2000))
    return _scaled(RidgeCV(np.logspace(-3, 3, 13)))


def _forest(task: str, seed: int) -> Any:
    cls = RandomForestClassifier if task == "classification" else RandomForestRegressor
    return cls(500, random_state=seed, n_jobs=1)


def _svm(task: str, seed: int) -> Any:
    model, prefix = (_scaled(SVC()), "svc") if task == "classification" else (_scaled_target(SVR()), "")
    prefix = prefix or "regressor__svr"
    grid = {f"{prefix}__C": [0.3, 1, 3, 10, 30], f"{prefix}__gamma": ["scale", 0.01, 0.03, 0.1, 0.3]}
    return GridSearchCV(model, grid, cv=3)


def _mlp(task: str, seed: int) -> Any:
    settings: dict[str, Any] = {"hidden_layer_sizes": (200, 200), "random_state": seed, "max_iter": 500}
    if task == "classification":
        return _scaled(MLPClassifier(**settings))
    return _scaled_target(MLPRegressor(**settings))


def _histogram_boosting(task: str, seed: int) -> Any:
    cls = HistGradientBoostingClassifier if task == "classification" else HistGradientBoostingRegressor
    return cls(random_state=seed)


def _lightgbm(task: str, seed: int) -> Any:
    module = require("lightgbm", "LightGBM", "bench")
    cls = module.LGBMClassifier if task == "classification" else module.LGBMRegressor
    return cls(random_state=seed, n_jobs=1, verbose=-1)


def _catboost(task: str, seed: int) -> Any:
    module = require("catboost", "CatBoost", "peers")
    cls = module.CatBoostClassifier if task == "classification" else module.CatBoostRegressor
    return cls(random_seed=seed, thread_count=1, verbose=0, allow_writing_files=False)


def _pytabkit(name: str, **settings: Any) -> Callable[[str, int], Any]:
    def make(task: str, seed: int) -> Any:
        module = require("pytabkit", name, "peers")
        cls = getattr(module, f"{name}_{'Classifier' if task == 'classification' else 'Regressor'}")
        return cls(device="cpu", random_state=seed, n_threads=1, **settings)

    return make


PEERS: dict[str, Peer] = {
    "logistic/ridge regression": Peer("matrix", _linear),
    "random forest": Peer("matrix", _forest),
    "RBF SVM (inner CV)": Peer("matrix", _svm),
    "MLP 200-200": Peer("matrix", _mlp),
    "HistGradientBoosting": Peer("codes", _histogram_boosting),
    "LightGBM": Peer("codes", _lightgbm, "lightgbm", "bench"),
    "CatBoost": Peer("text frame", _catboost, "catboost"),
    "RealMLP-TD": Peer("category frame", _pytabkit("RealMLP_TD"), "pytabkit"),
    "RealMLP-TD 5 folds": Peer("category frame", _pytabkit("RealMLP_TD", n_cv=5), "pytabkit"),
    "TabM-D": Peer("category frame", _pytabkit("TabM_D"), "pytabkit"),
}
#: The peers that everybody has; the summary shows where the default is behind the best of them.
CLASSIC = ("logistic/ridge regression", "RBF SVM (inner CV)", "random forest", "MLP 200-200")


def chosen(text: str) -> list[str]:
    """The models of a list separated by commas, in which "ours", "peers" and "all" stand for several."""
    groups = {"ours": OURS, "peers": tuple(PEERS), "all": (*OURS, *PEERS)}
    return list(dict.fromkeys(name for given in split_names(text) for name in groups.get(given, (given,))))


def check(name: str) -> None:
    """Complain about a model that does not exist."""
    if name in PEERS or name == PERCEPTRONS:
        return
    try:
        check_model(name)
    except ValueError as error:
        raise ValueError(f"{error}; peers are: {', '.join(PEERS)}") from None


def installed(names: Sequence[str]) -> tuple[list[str], list[str]]:
    """The models whose packages are installed, and a sentence for each of the others."""
    there, sentences = [], []
    for name in names:
        peer = PEERS.get(name)
        if peer is None or peer.package is None or has(peer.package):
            there.append(name)
        else:
            sentences.append(f"{needs(name, peer.package, peer.extra)}. It is left out.")
    return there, sentences


def form_of(name: str) -> str:
    """The form of a table that a model takes."""
    return PEERS[name].form if name in PEERS else "table"


def build(name: str, task: str, seed: int) -> Any:
    """The unfitted model of a name, on one thread of the CPU."""
    if name in PEERS:
        return PEERS[name].make(task, seed)
    settings: dict[str, Any] = {"random_state": seed, "n_jobs": 1, "device": "cpu"}
    if name == PERCEPTRONS:
        only = operator_sets(nodal=["multiplication"], pool=["sum"])
        return estimators_of(task)[DEFAULT](operators=only, **settings)
    method, of_paper, parameters = split_name(name)
    cls = estimators_of(task)[method]
    return (cls.paper if of_paper else cls)(**(settings | parameters))
