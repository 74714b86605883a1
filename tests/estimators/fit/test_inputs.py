"""What estimators are told of X when they cannot take it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from opgrow.stream import from_arrays

import opgrow
from opgrow.common.errors import TableWarning

QUICK = {"preset": None, "n_min": 4, "max_layers": 1, "fine_tune_epochs": 0, "random_state": 0}
FRAME = pd.DataFrame({"age": [31, np.nan, 52, 8], "sex": ["male", "female", None, "male"]})
Y = [0, 1, 0, 1]


def classifier(**more):
    return opgrow.HeMLRNClassifier(**QUICK, **more)


def test_what_is_no_table_either_is_refused():
    with pytest.raises(ValueError, match="infinity"):
        classifier().fit(FRAME[["age"]].fillna(np.inf), Y)
    with pytest.raises(ValueError, match="'age' holds infinity"):
        classifier().fit(FRAME.fillna({"age": np.inf}), Y)
    with pytest.raises(ValueError, match="y has missing values"):
        classifier().fit(FRAME, [0, 1, None, 0])
    with pytest.raises(ValueError, match=r"inconsistent numbers of samples: \[4, 3\]"):
        classifier().fit(FRAME, Y[:3])
    with pytest.raises(ValueError, match="requires y to be passed"):
        classifier().fit(FRAME)
    with pytest.raises(ValueError, match="no column to learn from: 'a', it has no values"):
        classifier().fit({"a": [None] * 4}, Y)
    with pytest.raises(ValueError, match="table must be a TableEncoder or None, got 'text'"):
        classifier(table="text").fit(FRAME, Y)


def test_a_missing_column_is_one_sentence():
    clf = classifier().fit(FRAME, Y)
    with pytest.raises(
        ValueError, match="^The table lacks 'sex', which the encoder was fitted with: it has 'age'.$"
    ):
        clf.predict(FRAME[["age"]])
    with pytest.raises(ValueError, match="0 sample"):
        clf.predict(FRAME[:0])
    with pytest.raises(ValueError, match="X has 1 features, but HeMLRNClassifier is expecting 2"):
        clf.predict(FRAME[["age"]].to_numpy())


def test_an_eval_set_is_of_the_same_kind_as_the_rows():
    plain = np.arange(8.0).reshape(4, 2)
    with pytest.raises(ValueError, match="eval_set: its X is a table .* and the X to fit has numbers alone"):
        classifier().fit(plain, Y, eval_set=(FRAME, Y))
    with pytest.raises(ValueError, match="eval_set: The table lacks 'sex'"):
        classifier().fit(FRAME, Y, eval_set=(FRAME[["age"]], Y))
    with pytest.raises(ValueError, match=r"eval_set: Found input .* \[4, 3\]"):
        classifier().fit(FRAME, Y, eval_set=(FRAME, Y[:3]))


def test_a_model_of_a_table_predicts_no_source():
    clf = classifier().fit(FRAME, Y)
    with pytest.raises(ValueError, match="was fitted on a table, and a source has numbers alone"):
        clf.predict(from_arrays(np.ones((4, 2))))


def test_gaps_that_a_matrix_of_numbers_never_had_are_told_of():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(60, 3)) + 5, np.arange(60) % 2
    clf = classifier().fit(x, y)
    assert clf.table_ is None
    filled, broken = x[:4].copy(), x[:4].copy()
    filled[1, 2], broken[1, 2] = clf.network_.input_mean[2], np.nan
    with pytest.warns(TableWarning, match="1 of 4 rows have no value in 'x2', which fit never saw"):
        np.testing.assert_array_equal(clf.predict_proba(broken), clf.predict_proba(filled))
