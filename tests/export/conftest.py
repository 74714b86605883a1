"""Every estimator of the package, fitted once on little data for all tests of exports."""

from __future__ import annotations

from typing import Any

import pytest
from sklearn.datasets import load_diabetes, load_iris

from opgrow import estimators

QUICK = {
    "n_min": 6,
    "n_step": 3,
    "learning_rates": (0.01, 0.001, 0.0001),
    "epochs": (12, 4, 2),
    "fine_tune_epochs": 2,
    "max_layers": 2,
    "layer_threshold": -1e9,
    "block_threshold": -1e9,
    "max_neurons": 9,
    "widths": (8, 6),
    "random_state": 0,
}


@pytest.fixture(scope="session")
def fitted() -> dict[str, Any]:
    models = {}
    for name in estimators.__all__:
        cls = getattr(estimators, name)
        quick = {key: value for key, value in QUICK.items() if key in cls._get_param_names()}
        x, y = (load_iris if name.endswith("Classifier") else load_diabetes)(return_X_y=True)
        models[name] = cls(**quick).fit(x[:150], y[:150])
    return models
