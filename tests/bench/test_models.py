"""The models of a study: methods with their grids, and ablations."""

from __future__ import annotations

import pytest
from sklearn.datasets import load_iris

from opgrow.bench import models


@pytest.mark.parametrize("name", models.ABLATIONS)
def test_every_ablation_is_one_that_its_method_takes(name):
    x, y = load_iris(return_X_y=True)
    models.check_model(name)
    method, parameters = models.split_name(name)
    short = {"max_neurons": 2, "n_min": 2, "n_step": 2, "max_layers": 1}
    settings = {"fine_tune_epochs": 1} | parameters | short
    assert models.methods()[method](**settings).fit(x[::5], y[::5]).n_features_in_ == 4


def test_every_grid_is_one_that_its_method_takes():
    for name, cls in models.methods().items():
        for parameters in models.grid_of(name):
            assert cls(**parameters).plan(100, 4, 3).n_parameters
    sizes = {name: len(models.grid_of(name)) for name in models.methods()}
    assert sizes == {
        **dict.fromkeys(("HeMLGOP", "HoMLGOP", "HeMLRN", "HoMLRN"), 4),
        **dict.fromkeys(("POP", "POPFast", "POPMemO", "POPMemH"), 1),
        "PMLP": 12,
        "PLN": 49,
        "BLS": 49,
    }
