"""The models of the experiments: our methods, and what practitioners use today.

Peers are tuned, where they need it, by inner cross-validation on training data. The grids of our methods are
the paper's, as far as it names them; of several values of ridge or dropout, a method chooses by itself.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from itertools import product
from typing import Any

from sklearn.ensemble import RandomForestClassifier
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import LogisticRegression, RidgeClassifierCV
from sklearn.model_selection import GridSearchCV
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from .. import estimators

__all__ = ["GRIDS", "METHODS", "PEERS", "n_parameters"]

_BLOCKS = ("HeMLGOP", "HoMLGOP", "HeMLRN", "HoMLRN")
_LAYERS = ("POP", "POPFast", "POPMemO", "POPMemH", "PMLP")


def _method(name: str) -> type[Any]:
    cls: type[Any] = getattr(estimators, f"{name}Classifier")
    return cls


def _svm(seed: int) -> Any:
    grid = {"svc__C": [0.3, 1, 3, 10, 30], "svc__gamma": ["scale", 0.01, 0.03, 0.1, 0.3]}
    return GridSearchCV(make_pipeline(StandardScaler(), SVC()), grid, cv=3)


def _random_features(seed: int) -> Any:
    sampler = RBFSampler(gamma="scale", n_components=500, random_state=seed)
    return make_pipeline(StandardScaler(), sampler, RidgeClassifierCV(alphas=(0.1, 1.0, 10.0)))


def _from_extra(module: str, cls: str, **settings: Any) -> Callable[[int], Any]:
    """A model of a package that is an extra."""

    def make(seed: int) -> Any:
        try:
            found = getattr(import_module(module), cls)
        except ImportError:
            raise ImportError(f'{module} is missing; install it with: pip install "opgrow[bench]"') from None
        return found(random_state=seed, n_jobs=2, **settings)

    return make


def _mlp(*hidden: int) -> Callable[[int], Any]:
    return lambda seed: make_pipeline(
        StandardScaler(), MLPClassifier(hidden, random_state=seed, max_iter=500, early_stopping=False)
    )


METHODS: dict[str, type[Any]] = {name: _method(name) for name in (*_BLOCKS, *_LAYERS, "PLN", "BLS")}
PEERS: dict[str, Callable[[int], Any]] = {
    "logistic regression": lambda seed: make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000)),
    "random features + ridge": _random_features,
    "RBF SVM (inner CV)": _svm,
    "random forest": lambda seed: RandomForestClassifier(300, random_state=seed, n_jobs=2),
    "MLP 60": _mlp(60),
    "MLP 200-200": _mlp(200, 200),
    "LightGBM": _from_extra("lightgbm", "LGBMClassifier", verbose=-1),
    "XGBoost": _from_extra("xgboost", "XGBClassifier", verbosity=0),
}

_POWERS = tuple(10.0**power for power in range(-3, 4))
#: Weight decay, or a bound on the norm of each neuron's weights.
_REGULARISATION: tuple[dict[str, Any], ...] = (
    {"weight_decay": 1e-4},
    *({"weight_decay": 0.0, "max_norm": most} for most in (1.0, 2.0, 3.0)),
)
#: What is tried of each method, one set of parameters after the other; POP and its kin are too slow for that.
GRIDS: dict[str, tuple[dict[str, Any], ...]] = {
    **{
        name: tuple({"ridge": (0.1, 1.0, 10.0), "dropout": (0.1, 0.3, 0.5)} | r for r in _REGULARISATION)
        for name in _BLOCKS
    },
    **{name: ({},) for name in _LAYERS},
    "PMLP": tuple({"dropout": d} | r for d, r in product((0.1, 0.3, 0.5), _REGULARISATION)),
    "PLN": tuple({"ridge": ridge, "alpha": alpha} for ridge, alpha in product(_POWERS, _POWERS)),
    "BLS": tuple({"ridge": ridge, "mu": mu} for ridge, mu in product(_POWERS, _POWERS)),
}


def n_parameters(estimator: Any) -> int | None:
    """Numbers that a fitted model has learned, for networks and linear models; None for the others."""
    network = getattr(estimator, "network_", None)
    if network is not None:
        return int(network.n_parameters())
    last = estimator.steps[-1][1] if hasattr(estimator, "steps") else estimator
    if hasattr(last, "coefs_"):
        return int(sum(a.size for a in [*last.coefs_, *last.intercepts_]))
    return None
