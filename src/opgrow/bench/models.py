"""The models of the experiments: our methods, and what practitioners use today.

The name of a model says everything about it: a method, a method with parameters ("HeMLGOP n_draws=2"), or a
peer. Peers are tuned, where they need it, by inner cross-validation on training data. The grids of our
methods are the paper's, as far as it names them; of several values of ridge or dropout, a method chooses by
itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable
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

from ..common.assignments import parse_parameters
from ..common.extras import require
from ..estimators.by_method import estimators_of
from ..growth.methods import METHODS
from ..growth.methods.hemlgop import BlockGrowth

__all__ = [
    "ABLATIONS",
    "PEERS",
    "check_model",
    "grid_of",
    "methods",
    "model_names",
    "n_parameters",
    "split_name",
]


def methods() -> dict[str, type[Any]]:
    """The classifiers of all methods, by name."""
    return dict(estimators_of("classification"))


def _svm(seed: int) -> Any:
    grid = {"svc__C": [0.3, 1, 3, 10, 30], "svc__gamma": ["scale", 0.01, 0.03, 0.1, 0.3]}
    return GridSearchCV(make_pipeline(StandardScaler(), SVC()), grid, cv=3)


def _random_features(seed: int) -> Any:
    sampler = RBFSampler(gamma="scale", n_components=500, random_state=seed)
    return make_pipeline(StandardScaler(), sampler, RidgeClassifierCV(alphas=(0.1, 1.0, 10.0)))


def _from_extra(module: str, cls: str, **settings: Any) -> Callable[[int], Any]:
    """A model of a package that is an extra."""

    def make(seed: int) -> Any:
        found = getattr(require(module, cls, "bench"), cls)
        return found(random_state=seed, n_jobs=2, **settings)

    return make


def _mlp(*hidden: int) -> Callable[[int], Any]:
    return lambda seed: make_pipeline(
        StandardScaler(), MLPClassifier(hidden, random_state=seed, max_iter=500, early_stopping=False)
    )


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
#: One network with the paper's schedule.
_PAPERS: dict[str, Any] = {"preset": None, "epochs": (20, 40, 40), "patience": 10}
#: What is tried of methods that grow block by block.
_OF_BLOCKS = tuple(
    _PAPERS | {"ridge": (0.1, 1.0, 10.0), "dropout": (0.1, 0.3, 0.5)} | r for r in _REGULARISATION
)
#: What is tried of other methods; POP and its kin, which are not here, are too slow for that.
_GRIDS: dict[str, tuple[dict[str, Any], ...]] = {
    "PMLP": tuple(
        {"widths": (200,) * 4, "dropout": d} | r for d, r in product((0.1, 0.3, 0.5), _REGULARISATION)
    ),
    "PLN": tuple({"ridge": ridge, "alpha": alpha} for ridge, alpha in product(_POWERS, _POWERS)),
    "BLS": tuple({"ridge": ridge, "mu": mu} for ridge, mu in product(_POWERS, _POWERS)),
}


def grid_of(method: str) -> tuple[dict[str, Any], ...]:
    """What is tried of a method or peer, one set of parameters after the other."""
    if method in METHODS and issubclass(METHODS[method].growth, BlockGrowth):
        return _OF_BLOCKS
    return _GRIDS.get(method, ({},))


_ALONE = "HeMLGOP preset=null"
#: What readers ask of each part of HeMLGOP: the same with one thing changed, and the methods without a part.
ABLATIONS = (
    _ALONE,
    *("HoMLGOP preset=null", "HeMLRN preset=null", "HoMLRN preset=null"),
    *(
        f"{_ALONE} {change}"
        for change in (
            *("share_draws=false", "n_draws=2", "n_draws=4"),
            *("weight_range=1", "weight_range=6.28"),
            *("epochs=[0,0,0]", "fine_tune_epochs=0", "epochs=[0,0,0] fine_tune_epochs=0"),
            *("n_min=10 n_step=5", "n_min=20 n_step=10", "n_min=80 n_step=40"),
            *("search_score=accuracy", "max_layers=1"),
        )
    ),
)


def _groups() -> dict[str, tuple[str, ...]]:
    """Names that stand for several models."""
    ours = tuple(methods())
    return {"all": (*ours, *PEERS), "methods": ours, "peers": tuple(PEERS), "ablations": ABLATIONS}


def model_names(text: str) -> list[str]:
    """The models of a list separated by commas, in which groups have names; commas in brackets are values'.

    Examples
    --------
    >>> model_names("HeMLGOP, PMLP widths=[20,20], HeMLGOP")
    ['HeMLGOP', 'PMLP widths=[20,20]']
    """
    given, groups = [name.strip() for name in re.split(r",(?![^\[]*\])", text)], _groups()
    return list(dict.fromkeys(model for name in given for model in groups.get(name, (name,))))


def split_name(name: str) -> tuple[str, dict[str, Any]]:
    """The method or peer that a name means, and the parameters that it gives."""
    if name in PEERS:
        return name, {}
    method, *assignments = name.split()
    return method, parse_parameters(assignments)


def check_model(name: str) -> None:
    """Complain about a model that does not exist, or has no such parameter."""
    method, parameters = split_name(name) if name.strip() else ("", {})
    classes = methods()
    if method not in classes and method not in PEERS:
        raise ValueError(f"unknown model {method!r}; known are: {', '.join(_groups()['all'])}")
    known = classes[method]._get_param_names() if parameters else []
    for parameter in parameters:
        if parameter not in known:
            raise ValueError(f"{method} has no parameter {parameter!r}; it has: {', '.join(known)}")


def n_parameters(estimator: Any) -> int | None:
    """Numbers that a fitted model has learned, for networks and linear models; None for the others."""
    network = getattr(estimator, "network_", None)
    if network is not None:
        return int(network.n_parameters())
    last = estimator.steps[-1][1] if hasattr(estimator, "steps") else estimator
    if hasattr(last, "coefs_"):
        return int(sum(a.size for a in [*last.coefs_, *last.intercepts_]))
    return None
