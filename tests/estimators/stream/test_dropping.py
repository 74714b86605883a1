"""Blocks that no longer contribute: they go, others stay, and the head of the rest is exact."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import is_classifier
from sklearn.datasets import load_diabetes, load_digits

from opgrow import BLSClassifier, HeMLRNClassifier, HeMLRNRegressor
from opgrow.estimators.stream.dropping import drop_idle
from opgrow.network.without import parts_of, without
from tests.estimators.test_incremental import assert_head, from_scratch, small


def grown(cls):
    x, y = load_digits(return_X_y=True) if is_classifier(cls()) else load_diabetes(return_X_y=True)
    x, y = x[:440], y[:440]
    model = small(cls, max_neurons=20, preset=None).partial_fit(x[:200], y[:200])
    return model.partial_fit(x[200:], y[200:]), x, y


def columns_of(model, y):
    if is_classifier(model):
        return np.eye(10)[y]
    return (y[:, None] - model.network_.output_mean) / model.network_.output_scale


def drop(model, threshold):
    settings = replace(model._settings(is_classifier(model)), layer_threshold=threshold)
    dropped = drop_idle(model.network_, model.running_, model.running_.buffer.rows, settings)
    model._adopt(dropped.network, dropped.state)
    return dropped.n_neurons


@pytest.mark.parametrize("cls", [HeMLRNClassifier, HeMLRNRegressor])
def test_the_head_of_the_rest_is_exact(cls):
    """As numpy finds it from all rows that were ever seen, in double precision."""
    model, x, y = grown(cls)
    width = model.network_.head_width
    assert drop(model, threshold=1e9) > 0  # whatever is tried may go
    assert 0 < model.network_.head_width < width
    assert_head(model, from_scratch(model, x, columns_of(model, y), np.ones(len(x))))
    model.partial_fit(x[:100], y[:100])
    assert model.predict(x).shape == y.shape


def test_what_contributes_stays_and_what_repeats_others_goes():
    model, x, _ = grown(HeMLRNClassifier)
    assert drop(model, threshold=1e-4) == 0
    model.grow(layer_threshold=-1e9)
    before = model.network_
    last = parts_of(before)[-1]
    [(level, place)] = last
    # Neurons that ignore their inputs say nothing: here they are made so, and their sums zeros.
    before.layers[level].blocks[place].weight[:] = 0
    rest = without(before, last)
    gone = np.setdiff1d(np.arange(before.head_width), rest.kept)
    sums = model.running_.sums
    gram, cross = sums.gram.copy(), sums.cross.copy()
    gram[gone], gram[:, gone], cross[gone] = 0, 0, 0
    model.running_ = replace(model.running_, sums=replace(sums, gram=gram, cross=cross))
    assert drop(model, threshold=1e-4) >= len(gone)
    assert last not in parts_of(model.network_) or len(parts_of(model.network_)) < len(parts_of(before))
    assert model.predict(x).shape == (440,)


def test_a_network_of_one_part_stays():
    model, _, _ = grown(BLSClassifier)
    model.network_, before = model.network_, model.network_.digest()
    assert len(parts_of(model.network_)) == 1
    assert drop(model, threshold=1e9) == 0
    assert model.network_.digest() == before


def test_rows_are_predicted_by_heads_without_them():
    """The outputs that decide are those of heads that numpy solves anew without each row."""
    model, x, y = grown(HeMLRNRegressor)
    state, network = model.running_, model.network_
    features, target = network.features(x).astype(np.float64), columns_of(model, y)
    found = state.sums.left_out(state.solution(), features, target, np.ones(len(x)))
    for row in (0, 17, 300):
        others = np.arange(len(x)) != row
        mean, scale = features.mean(0), features.std(0)
        z = (features - mean) / scale
        design = np.c_[np.ones(len(x)), z][others]
        penalty = np.diag(np.r_[0.0, np.full(z.shape[1], np.sqrt(state.ridge))])
        left = np.concatenate([design, penalty])
        right = np.r_[target[others, 0], np.zeros(len(penalty))]
        head = np.linalg.lstsq(left, right, rcond=None)[0]
        assert found[row, 0] == pytest.approx(head[0] + z[row] @ head[1:], rel=1e-6, abs=1e-6)
