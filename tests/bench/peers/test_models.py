"""The models of the comparison: each of them fits a small table with text and gaps, of both tasks."""

from __future__ import annotations

import numpy as np
import pytest

from opgrow.bench.peers import models
from opgrow.bench.peers.one_run import fit_and_measure
from opgrow.bench.peers.splits import TableSplit
from opgrow.common.extras import has, needs
from opgrow.rows.tables import Table

#: These fit in well under a second.
QUICK = ("logistic/ridge regression", "HistGradientBoosting", "LightGBM", "CatBoost", "HeMLGOP preset=null")


def split(task, seed=0, n=60):
    rng = np.random.default_rng(seed)
    colour = rng.choice(["red", "green", None], n).astype(object)
    colour[-1] = "only a test row has this"
    size = np.where(rng.random(n) < 0.1, np.nan, rng.normal(size=n))
    y = (colour == "red") * 1.0 + np.nan_to_num(size)
    y = (y > 0.5).astype(int) if task == "classification" else y
    table, cut = {"colour": colour, "size": size}, 40
    first, second = ({k: v[part] for k, v in table.items()} for part in (slice(cut), slice(cut, None)))
    return TableSplit(task, 2 * (task == "classification"), Table(first), y[:cut], Table(second), y[cut:])


@pytest.mark.parametrize("task", ["classification", "regression"])
@pytest.mark.parametrize("name", QUICK)
def test_a_model_is_fitted_and_measured(name, task):
    peer = models.PEERS.get(name)
    if peer is not None and peer.package and not has(peer.package):
        pytest.skip(needs(name, peer.package, peer.extra))
    result = fit_and_measure(name, split(task), 0)
    expected = {"accuracy", "log_loss", "roc_auc"} if task == "classification" else {"rmse", "r2"}
    assert expected | {"fit_seconds", "predict_seconds", "parameters"} <= result.keys()
    assert all(np.isfinite(result[metric]) for metric in expected)
    assert result["parameters"] > 0


@pytest.mark.parametrize("task", ["classification", "regression"])
@pytest.mark.parametrize("name", [*models.OURS, *models.PEERS])
def test_every_model_can_be_built(name, task):
    peer = models.PEERS.get(name)
    if peer is not None and peer.package and not has(peer.package):
        pytest.skip(needs(name, peer.package, peer.extra))
    assert hasattr(models.build(name, task, 0), "fit")


def test_perceptrons_are_multiplication_and_sum_with_any_activation():
    sets = models.build(models.PERCEPTRONS, "classification", 0).operators
    assert {(one.nodal, one.pool) for one in sets} == {("multiplication", "sum")}
    assert len(sets) == 6


def test_groups_are_names_of_several_models():
    assert models.chosen("ours") == list(models.OURS)
    assert models.chosen("all, CatBoost") == [*models.OURS, *models.PEERS]


def test_what_is_not_installed_is_left_out_with_the_extra_that_has_it(monkeypatch):
    monkeypatch.setattr(models, "has", lambda package: package != "catboost")
    there, sentences = models.installed(["random forest", "CatBoost"])
    assert there == ["random forest"]
    assert sentences == ["CatBoost needs catboost: pip install 'opgrow[peers]'. It is left out."]


def test_boosting_takes_columns_of_more_categories_than_it_has_bins():
    n = 700
    words = np.array([f"word {i // 2}" for i in range(n)], dtype=object)
    few = np.array(["a", "b"] * (n // 2), dtype=object)
    y = (few == "a").astype(int)
    table = Table({"words": words, "few": few})
    result = fit_and_measure("HistGradientBoosting", TableSplit("classification", 2, table, y, table, y), 0)
    assert result["accuracy"] == 1.0
