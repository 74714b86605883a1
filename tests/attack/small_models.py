"""The models that are attacked: tiny, so that many cases can be tried, and of every kind of network."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.datasets import load_iris

import opgrow

__all__ = ["IRIS", "MODELS", "fitted", "made", "state"]

IRIS = load_iris(return_X_y=True)
_BLOCKS = {"n_min": 2, "n_step": 2, "max_neurons": 4, "max_layers": 2, "preset": None, "fine_tune_epochs": 1}
_SHORT = {"epochs": (2,), "learning_rates": (0.01,), "patience": None}
_SETS = [("multiplication", "sum", "tanh"), ("gaussian", "maximum", "relu")]
#: Estimators and parameters by name.
MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "blocks": ("HeMLGOPClassifier", _BLOCKS | _SHORT),
    "regression": ("HoMLGOPRegressor", _BLOCKS | _SHORT),
    "average": ("HeMLRNClassifier", _BLOCKS | _SHORT | {"n_estimators": 2, "max_layers": 1}),
    "population": ("POPFastClassifier", _SHORT | {"widths": (3,), "operators": _SETS}),
    "progressive": ("PLNRegressor", {"max_layers": 2, "n_min": 3, "max_neurons": 6}),
    "broad": ("BLSClassifier", {"n_min": 3, "max_neurons": 6, "window_size": 2}),
}


def made(name: str, **changes: Any) -> Any:
    """An estimator that is not fitted."""
    estimator, parameters = MODELS[name]
    return getattr(opgrow, estimator)(**({"random_state": 0, "n_jobs": 1} | parameters | changes))


def fitted(name: str, **changes: Any) -> Any:
    x, y = IRIS
    return made(name, **changes).fit(x, y)


def state(estimator: Any) -> Any:
    """What tells two models apart: their networks, parameters and predictions, bit for bit."""
    parameters = {k: repr(v) for k, v in estimator.get_params().items() if k != "checkpoint_dir"}
    with np.errstate(all="ignore"):
        said = estimator.predict(IRIS[0][::7]).tobytes()
    return repr(estimator.network_), estimator.network_.digest(), parameters, said
