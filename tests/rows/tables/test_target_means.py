"""Means of the target: scikit-learn's TargetEncoder is the oracle, and no row tells its own target."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn.preprocessing import TargetEncoder

from opgrow.rows.tables import Table, TableEncoder
from opgrow.rows.tables.target_means import Target


def rows(n: int = 400, n_levels: int = 40) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    levels = np.array([f"level {i}" for i in range(n_levels)], dtype=object)
    return np.concatenate([levels, levels, rng.choice(levels, n - 2 * n_levels)]), rng.normal(size=n)


@pytest.mark.parametrize(("kind", "n_classes"), [("continuous", 0), ("binary", 2), ("multiclass", 3)])
def test_means_are_those_of_scikit_learn(kind, n_classes):
    values, y = rows()
    if n_classes:
        y = np.array(["no", "yes", "perhaps"])[np.digitize(y, [0, 1][: n_classes - 1])]
    encoder = TableEncoder().fit({"t": values}, y)
    oracle = TargetEncoder(target_type=kind).fit(values[:, None], y)
    expected = oracle.transform(values[:, None])
    order = (
        [sorted(np.unique(y)).index(n.split()[-1]) for n in encoder.columns_[0].labels]
        if n_classes > 2
        else [0]
    )
    np.testing.assert_allclose(encoder.transform({"t": values}), expected[:, order], rtol=1e-5, atol=1e-7)
    again = TableEncoder.from_dict(json.loads(json.dumps(encoder.to_dict(), allow_nan=False)))
    np.testing.assert_array_equal(again.transform({"t": values}), encoder.transform({"t": values}))
    new = encoder.encode(Table.from_any({"t": ["new"]}))[0]
    assert new == pytest.approx(encoder.columns_[0].overall)


def test_training_rows_get_means_of_other_rows():
    values, y = rows()
    encoder = TableEncoder()
    crossed = encoder.fit_transform({"t": values}, y)[:, 0]
    leaking = encoder.transform({"t": values})[:, 0]
    assert abs(np.corrcoef(crossed, y)[0, 1]) < 0.15 < np.corrcoef(leaking, y)[0, 1]
    # The value of a row does not change with its own target.
    for row in range(0, 400, 37):
        other = y.copy()
        other[row] += 100
        assert TableEncoder().fit_transform({"t": values}, other)[row, 0] == pytest.approx(crossed[row])


def test_folds_have_rows_of_each_class_and_means_do_not_depend_on_the_order_of_columns():
    target = Target.of(["a"] * 10 + ["b"] * 5)
    folds = target.folds()
    assert np.bincount(folds[:10]).tolist() == [2] * 5
    assert np.bincount(folds[10:]).tolist() == [1] * 5


def test_categories_are_pooled_without_a_target_or_with_too_many_classes():
    values, y = rows()
    for target in (None, np.arange(400) % 11):
        encoder = TableEncoder(max_categories=20).fit({"t": values}, target)
        assert encoder.get_feature_names_out()[-1] == "t=<other>"
    pooled = TableEncoder(max_categories=20, many="pool").fit({"t": values}, y)
    assert pooled.get_feature_names_out()[-1] == "t=<other>"
