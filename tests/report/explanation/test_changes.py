"""The nearest changes change the class, and lie within the data."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_iris

from tests.report.explanation.models import fitted

X, Y = load_iris(return_X_y=True)


@pytest.fixture(scope="module")
def model():
    return fitted("HeMLGOPClassifier", X, Y)


@pytest.fixture(scope="module")
def explanation(model):
    return model.explain(X)


@pytest.mark.parametrize("row", range(0, 150, 10))
def test_each_change_gives_the_class_that_is_told(model, explanation, row):
    way = explanation.row(row)
    for change in way.changes:
        moved = X[row].copy()
        for column, encoded in zip(change.columns, change.encoded, strict=True):
            axis = explanation.axis(column)
            assert axis.low <= encoded[0] <= axis.high
            moved[column] = encoded[0]
        predicted = model.predict(moved[None])[0]
        assert predicted == model.classes_[change.code]
        assert str(predicted) != way.prediction
        assert len(change.columns) <= 2


def test_a_change_of_one_number_is_the_nearest(model, explanation):
    """No value between the row's own and the new one, less a little, changes the class."""
    tried = 0
    for row in range(0, 150, 7):
        way = explanation.row(row)
        for change in way.changes:
            if len(change.columns) > 1:
                continue
            (column,), value = change.columns, float(change.encoded[0][0])
            between = np.repeat(X[row][None], 50, axis=0)
            between[:, column] = np.linspace(X[row, column], value, 52)[1:-1]
            step = 0.05 * abs(explanation.axis(column).high - explanation.axis(column).low)
            nearer = between[np.abs(between[:, column] - value) > step]
            if len(nearer):
                tried += 1
                assert (model.predict(nearer).astype(str) == way.prediction).all()
    assert tried > 5


def test_whole_numbers_stay_whole_and_the_next_one_changes_nothing():
    x = np.random.default_rng(0).integers(0, 1000, size=(400, 2)).astype(float)
    model = fitted("HeMLGOPClassifier", x, x[:, 0] > 500)
    explanation = model.explain(x)
    changes = [
        (row, change)
        for row in range(20)
        for change in explanation.row(row).changes
        if change.columns == (0,)
    ]
    assert changes
    for row, change in changes:
        value = float(change.encoded[0][0])
        assert value == round(value)
        before = x[row].copy()
        before[0] = value - np.sign(value - x[row, 0])
        assert str(model.predict(before[None])[0]) == explanation.row(row).prediction


def test_levels_change_too_and_are_told_in_words():
    colour = np.array(["red", "green"] * 60, dtype=object)
    table = {"colour": colour, "noise": np.random.default_rng(0).normal(size=120)}
    model = fitted("HeMLGOPClassifier", table, np.where(colour == "red", "warm", "cold"), max_layers=1)
    way = model.explain(table).row(0)
    first = way.changes[0]
    assert first.columns == (0,)
    assert first.labels == ("green",)
    assert way.sentences[-1] == "With colour green (now red), row 0 would be predicted to be cold."


def test_a_regressor_has_none():
    assert fitted("HeMLRNRegressor", X[:, :3], X[:, 3]).explain(X[:, :3]).row(0).changes == []
