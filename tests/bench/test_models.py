"""The models of a study: methods with their grids, and ablations."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest
from sklearn.datasets import load_iris

from opgrow.bench import models
from opgrow.bench.published_settings import SETTINGS


@pytest.mark.parametrize("name", models.ABLATIONS)
def test_every_ablation_is_one_that_its_method_takes(name):
    x, y = load_iris(return_X_y=True)
    models.check_model(name)
    method, of_paper, parameters = models.split_name(name)
    assert not of_paper
    short = {"max_neurons": 2, "n_min": 2, "n_step": 2, "max_layers": 1}
    settings = {"fine_tune_epochs": 1} | parameters | short
    assert models.methods()[method](**settings).fit(x[::5], y[::5]).n_features_in_ == 4


def test_every_grid_is_one_that_its_method_takes():
    for name in models.model_names("paper"):
        for size in ("small", "large"):
            for parameters in models.grid_of(name, size):
                assert models.build(name, size, 0, **parameters).plan(100, 4, 3).n_parameters
    sizes = {name: len(models.grid_of(name, "small")) for name in models.model_names("paper,methods")}
    assert sizes == {
        **dict.fromkeys(models.methods(), 1),
        **dict.fromkeys((f"{name}.paper" for name in ("HeMLGOP", "HoMLGOP", "HeMLRN", "HoMLRN", "PMLP")), 16),
        "POP.paper": 1,
        "PLN.paper": 7**3,
        "BLS.paper": 7**2,
    }


def test_a_grid_has_every_regularisation_with_every_dropout_and_none():
    grid = models.grid_of("PMLP.paper", "small")
    assert {(p["weight_decay"], p["max_norm"]) for p in grid} == {(1e-4, None), (0, 1), (0, 2), (0, 3)}
    assert {p["dropout"] for p in grid} == {0.5, 0.3, 0.1, 0.0}
    assert len({tuple(sorted(p.items(), key=str)) for p in grid}) == 16


@pytest.mark.parametrize("size", ["small", "large"])
def test_models_with_the_papers_settings_have_what_it_says(size):
    for name in models.model_names("paper"):
        stated = SETTINGS[name.removesuffix(models.OF_PAPER), size]
        model = models.build(name, size, 3)
        assert model.random_state == 3
        assert model.criterion == stated.criterion
        for field in fields(stated):
            value, ours = getattr(stated, field.name), getattr(model, field.name, None)
            if value is None or ours is None or field.name in ("method", "size", "note"):
                continue
            if field.name in ("learning_rates", "epochs"):
                assert tuple(ours) == value[: len(stated.epochs)], (name, field.name)
            elif isinstance(value, tuple) and field.name != "widths":
                assert set(np.atleast_1d(ours).tolist()) <= {0.0, *value}, (name, field.name)
            else:
                assert ours == value, (name, field.name)


def test_parameters_in_a_name_come_first():
    assert models.build("HeMLGOP.paper dropout=0.25", "large", 0, dropout=0.5).dropout == 0.25
