"""Contributions as shap takes them, beside a stub of its `Explanation`, which keeps what it is given."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from sklearn.datasets import load_iris

from tests.report.explanation.models import fitted

X, Y = load_iris(return_X_y=True)


@pytest.fixture
def shap(monkeypatch):
    module = ModuleType("shap")
    module.Explanation = SimpleNamespace
    monkeypatch.setitem(sys.modules, "shap", module)


def test_values_and_base_add_up_to_the_outputs(shap):
    explanation = fitted("HeMLRNClassifier", X, Y).explain(X)
    shown = explanation.to_shap([0, 70])
    assert shown.values.shape == (2, 4, 3)
    assert shown.base_values.shape == (2, 3)
    outputs = [explanation.row(row).outputs for row in (0, 70)]
    np.testing.assert_allclose(shown.base_values + shown.values.sum(axis=1), outputs, rtol=0, atol=1e-9)
    np.testing.assert_array_equal(shown.data.astype(float), X[[0, 70]])
    assert shown.feature_names == ["x0", "x1", "x2", "x3"]
    assert shown.output_names == ["0", "1", "2"]


def test_one_output_has_no_axis_of_its_own_and_levels_are_texts(shap):
    table = {"colour": np.array(["red", "green"] * 30, dtype=object), "size": np.arange(60.0)}
    table["size"][::5] = np.nan
    explanation = fitted("HeMLRNClassifier", table, ["a", "b"] * 30).explain(table)
    shown = explanation.to_shap(range(2))
    assert shown.values.shape == (2, 2)
    assert shown.base_values.shape == (2,)
    assert shown.data[:, 0].tolist() == ["red", "green"]
    assert np.isnan(shown.data[0, 1])
    assert shown.display_data[0, 1] == "<missing>"
    assert len(explanation.to_shap().values) == 60
    with pytest.raises(ValueError, match="rows is empty"):
        explanation.to_shap([])


def test_without_shap_it_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "shap", None)
    with pytest.raises(ImportError, match=r"Explanation\.to_shap needs shap: pip install shap"):
        fitted("HeMLRNClassifier", X, Y).explain(X).to_shap([0])
