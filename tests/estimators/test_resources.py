"""What a fit would take is known before: the size of the network, rows and memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import opgrow
from opgrow.growth.methods import METHODS

#: Every method, grown as far as these settings allow.
FULL: dict[str, dict[str, Any]] = {
    **dict.fromkeys(
        ("HeMLGOP", "HoMLGOP", "HeMLRN", "HoMLRN"),
        {
            "n_min": 4,
            "n_step": 3,
            "max_neurons": 9,
            "max_layers": 2,
            "n_estimators": 2,
            "block_threshold": -1e9,
            "layer_threshold": -1e9,
            "epochs": (1, 0),
        }
        | {"fine_tune_epochs": 0},
    ),
    **dict.fromkeys(
        ("POP", "POPFast", "POPMemO", "POPMemH"),
        {"widths": (4, 3), "epochs": (1, 0, 0), "fine_tune_epochs": 0, "layer_threshold": -1e9}
        | {"operators": [("multiplication", "sum", "tanh"), ("harmonic", "sum", "tanh")]},
    ),
    "PMLP": {"widths": (4, 3), "epochs": (1, 0, 0), "fine_tune_epochs": 0, "layer_threshold": -1e9},
    "PLN": {"n_min": 10, "n_step": 3, "max_neurons": 13, "max_layers": 2}
    | {"block_threshold": -1e9, "layer_threshold": -1e9},
    "BLS": {"n_min": 4, "n_step": 3, "max_neurons": 9, "block_threshold": -1e9},
}


def some_rows(n_rows: int = 90, n_inputs: int = 5, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n_rows, n_inputs))
    y = (x @ rng.normal(size=(n_inputs, 3)) + rng.normal(size=(n_rows, 3))).argmax(axis=1)
    return x, y


@pytest.mark.parametrize("method", METHODS)
def test_a_network_that_grows_as_far_as_it_may_has_the_planned_size(method: str) -> None:
    settings = FULL[method] | ({"memory_energy": 1.0} if method in ("POPMemO", "POPMemH") else {})
    estimator = getattr(opgrow, f"{method}Classifier")(random_state=0, **settings)
    x, y = some_rows()
    planned = estimator.plan(len(x), x.shape[1], 3)
    estimator.fit(x, y)
    assert estimator.network_.n_parameters() == planned.n_parameters
    assert planned.n_rows + planned.n_held == len(x)
    assert min(planned.data, planned.growth) > 0


@pytest.mark.parametrize("method", METHODS)
def test_more_of_anything_takes_more(method: str) -> None:
    # Presets grow fewer networks from more rows, and searches keep features that are few enough.
    fixed = (
        {"n_estimators": 1, "n_min": 40, "n_step": 20, "max_neurons": 100}
        if "n_estimators" in FULL[method]
        else {}
    )
    estimator = getattr(opgrow, f"{method}Classifier")(n_jobs=2, **fixed)
    small = estimator.plan(100_000, 50, 5)  # too many for a search to keep their features
    assert estimator.plan(200_000, 50, 5).growth > small.growth
    assert estimator.plan(100_000, 500, 5).growth > small.growth
    if method != "PLN":  # where neurons that carry predictions on take the place of random ones
        assert estimator.plan(100_000, 50, 50).growth > small.growth


def test_a_student_and_a_budget_bound_the_network() -> None:
    assert opgrow.HeMLGOPClassifier(distill=7).plan(1000, 4, 3).n_parameters == 7 * (4 + 3 + 3) + 3
    assert opgrow.PLNClassifier(max_parameters=99).plan(1000, 4, 3).n_parameters == 99
    assert opgrow.HeMLGOPRegressor(preset="compact").plan(1000, 4, 1).distills


def test_wrong_parameters_are_refused_as_by_a_fit() -> None:
    with pytest.raises(ValueError, match="n_min must be"):
        opgrow.HeMLGOPClassifier(n_min=-1).plan(100, 4, 2)
