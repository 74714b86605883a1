"""Prequential evaluation: rows are predicted before they are learned from."""

from __future__ import annotations

import numpy as np
import pytest

from opgrow.bench.prequential import MODELS, LastLabel, Stream, class_incremental, prequential, study


class Remembers(LastLabel):
    """Counts the rows that it learns from, and refuses to predict before."""

    def __init__(self):
        self.learned = []

    def partial_fit(self, x, y, classes):
        self.learned.append(len(x))
        super().partial_fit(x, y, classes)

    def predict(self, x):
        assert self.learned
        return super().predict(x)


def test_every_chunk_is_predicted_before_it_is_learned():
    stream = Stream("steps", np.zeros((50, 1)), np.repeat([0, 1, 1, 0, 0], 10), ())
    model = Remembers()
    result = prequential(model, stream, 10, [0, 1])
    np.testing.assert_array_equal(result.right, [0, 10, 0, 10])
    assert model.learned == [10] * 5
    assert result.accuracy == 0.5
    assert result.last(0.25) == 1.0
    model = Remembers()
    assert prequential(model, stream, 5, [0, 1], first=20).rows.tolist() == [5] * 6
    assert model.learned == [20, *[5] * 6]


@pytest.mark.parametrize("name", [name for name in MODELS if name.startswith(("BLS", "SGD", "Gauss"))])
def test_models_learn_a_line(name):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(1500, 4))
    result = prequential(MODELS[name](), Stream("line", x, (x[:, 0] > 0).astype(int), ()), 300, [0, 1])
    assert result.last(0.3) > 0.85


def test_unknown_models_are_refused():
    with pytest.raises(ValueError, match="there is no model 'SVM': there are HeMLGOP; "):
        next(study(None, 1000, 100, ["SVM"]))


@pytest.mark.parametrize("name", ["ARFClassifier", "HoeffdingAdaptiveTreeClassifier"])
def test_models_of_river_take_rows_of_arrays(name):
    pytest.importorskip("river")
    rng = np.random.default_rng(0)
    x = rng.normal(size=(1200, 3))
    result = prequential(MODELS[name](), Stream("line", x, (x[:, 0] > 0).astype(int), ()), 200, [0, 1])
    assert result.last(0.3) > 0.85
    assert result.n_bytes > 1000


def test_all_classes_come_two_at_a_time():
    rng = np.random.default_rng(0)
    y = rng.integers(6, size=600)
    x = rng.normal(size=(600, 6)) * 0.2 + np.eye(6)[y]
    for grow in (False, True):
        model = class_incremental(MODELS["BLS"](), x, y, grow)
        assert list(model.classes_) == list(range(6))
        assert model.score(x, y) > 0.9
