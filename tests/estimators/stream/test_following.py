"""Streams that change: drifts are found where they are, forgotten as helps, and grown after within bounds."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone, is_classifier

import opgrow
from opgrow import BLSClassifier, BLSRegressor, HeMLRNClassifier, HeMLRNRegressor, PageHinkley
from tests.estimators.test_incremental import ESTIMATORS, assert_head, from_scratch, small

CLASSES = [BLSClassifier, HeMLRNClassifier, BLSRegressor, HeMLRNRegressor]


def rows_of(cls, n_rows=4000, drift=2000, seed=0, noise=0.05):
    """Rows whose rule changes once, or never."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, (n_rows, 5))
    first, second = rng.normal(size=(2, 5))
    value = np.where(np.arange(n_rows) < (n_rows if drift is None else drift), x @ first, x @ second)
    if is_classifier(cls()):
        return x, ((value > 0) ^ (rng.random(n_rows) < noise)).astype(int)
    return x, value + noise * rng.normal(size=n_rows)


def streamed(model, x, y, chunk=200, start=0):
    for place in range(start, len(x), chunk):
        model.partial_fit(x[place : place + chunk], y[place : place + chunk])
    return model


def events_of(model, kind):
    return [event for event in model.stream_.events if event.kind == kind]


@pytest.mark.parametrize("cls", CLASSES)
def test_a_drift_is_found_and_older_rows_are_forgotten(cls):
    x, y = rows_of(cls)
    model = streamed(small(cls, drift="page_hinkley"), x, y)
    plain = streamed(small(cls), x, y)
    first, *_ = events_of(model, "drift")
    assert 2000 < first.row <= 2400
    assert first.value < 1
    assert model.score(x[3500:], y[3500:]) > plain.score(x[3500:], y[3500:]) + 0.1
    assert model.running_.sums.count < 2100
    errors = [window.error for window in model.stream_.windows]
    assert max(errors) > 2 * np.median(errors)


@pytest.mark.parametrize("chunk", [1, 7, 2000])
def test_drifts_are_found_in_chunks_of_any_size(chunk):
    x, y = rows_of(HeMLRNClassifier, 2600)
    model = small(HeMLRNClassifier, drift="page_hinkley").partial_fit(x[:500], y[:500])
    model = streamed(model, x, y, chunk, 500)
    [event] = events_of(model, "drift")
    assert 2050 <= event.row <= 2300
    assert abs(model.running_.watch.since - 2000) < 60


@pytest.mark.parametrize("cls", CLASSES)
def test_there_is_no_drift_where_nothing_changes(cls):
    for seed in range(3):
        x, y = rows_of(cls, drift=None, seed=seed)
        model = streamed(small(cls, drift="page_hinkley"), x, y)
        assert events_of(model, "drift") == []
        assert model.running_.sums.count == pytest.approx(4000)


@pytest.mark.parametrize("cls", ESTIMATORS, ids=lambda c: c.__name__)
def test_every_estimator_watches_its_rows(cls):
    x, y = rows_of(cls, 700, 300)
    if not is_classifier(cls()):
        y[300:] += 10  # POP's regressors of this size know little, and cannot get much worse otherwise
    model = streamed(small(cls, drift=PageHinkley(threshold=10), buffer_rows=100), x, y, 100)
    assert model.stream_.windows[-1].end == 700
    assert sum(window.n_rows for window in model.stream_.windows) == 600
    assert events_of(model, "drift")
    assert model.network_.head_width == model.running_.sums.n_features
    assert model.predict(x).shape == y.shape


def test_without_a_detector_nothing_is_watched():
    x, y = rows_of(BLSClassifier, 1000)
    model = streamed(small(BLSClassifier), x, y)
    assert model.stream_ is None
    again = streamed(small(BLSClassifier, drift="page_hinkley"), x, y)
    assert events_of(again, "drift") == []
    np.testing.assert_allclose(model.running_.sums.gram, again.running_.sums.gram, rtol=1e-9)


@pytest.mark.parametrize("forgetting", [1.0, 0.999])
def test_rows_since_a_drift_count_in_full_and_others_by_the_share(forgetting):
    """The head is the one that numpy finds from all rows with these weights."""
    x, y = rows_of(HeMLRNRegressor, 2400)
    model = small(HeMLRNRegressor, drift=PageHinkley(threshold=20), buffer_rows=400, forgetting=forgetting)
    place = 0
    while not (model.stream_ if place else None) or not model.stream_.events:
        model.partial_fit(x[place : place + 100], y[place : place + 100])
        place += 100
    [event] = model.stream_.events
    began = model.running_.watch.since
    assert abs(began - 2000) < 60
    remembered = forgetting ** np.arange(place - 1, -1, -1.0)
    weight = np.where(np.arange(place) < began, event.value, 1.0) * remembered
    keep = weight > 0
    target = (y[:place, None] - model.network_.output_mean) / model.network_.output_scale
    state, sums = model.running_, model.running_.sums
    assert sums.count == pytest.approx(weight.sum())
    # `from_scratch` takes a ridge that is relative to rows of weight 1: the rows that count.
    scaled = replace(state, ridge=state.ridge * keep.sum() / sums.count)
    model.running_ = scaled
    expected = from_scratch(model, x[:place][keep], target[keep], weight[keep])
    model.running_ = state
    assert_head(model, expected)
    assert model.running_.buffer.number.min() >= began


def test_growths_help_are_bounded_and_become_rarer():
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (12_000, 6))
    y = ((x[:, :2] ** 2).sum(axis=1) > 0.6).astype(int)
    options = {"max_neurons": 3, "n_min": 3, "drift": "page_hinkley", "preset": None}
    model = streamed(small(HeMLRNClassifier, **options), x, y, 500)
    assert events_of(model, "grown")
    first = model.running_.watch.most / 4
    sizes = [window.n_parameters for window in model.stream_.windows]
    assert max(sizes) <= 4 * first
    plain = streamed(small(HeMLRNClassifier, **options | {"drift": None}), x, y, 500)
    assert model.score(x, y) > plain.score(x, y) + 0.02
    looks = [event.row for event in model.stream_.events if event.kind in ("grown", "tried")]
    assert min(np.diff(looks)) >= 2000
    bounded = streamed(small(HeMLRNClassifier, max_parameters=100, **options), x[:6000], y[:6000], 500)
    assert max(window.n_parameters for window in bounded.stream_.windows) <= 100
    broad = streamed(small(BLSClassifier, max_neurons=20, drift="page_hinkley"), x, y, 500)
    assert max(window.n_parameters for window in broad.stream_.windows) <= broad.running_.watch.most


def test_far_rows_are_errors_like_others(tmp_path):
    x, y = rows_of(BLSRegressor, 1000)
    model = streamed(small(BLSRegressor, drift="page_hinkley"), x[:800], y[:800])
    y[900] = 1e100
    model.partial_fit(x[800:], y[800:])
    assert model.stream_.windows[-1].error == pytest.approx(4 / 200, rel=0.5)
    model.save(tmp_path / "model.safetensors", sums=True)


def test_new_classes_may_come_while_rows_are_watched():
    x, y = rows_of(BLSClassifier, 1200)
    names = np.array(["no", "yes"]).astype("<U5")[y]
    names[600:][x[600:, 0] > 0.5] = "maybe"
    model = streamed(small(BLSClassifier, drift="page_hinkley"), x, names)
    assert list(model.classes_) == ["maybe", "no", "yes"]
    assert model.network_.n_outputs == 3


class Every:
    """A detector of a user: each n-th error is a drift."""

    def __init__(self, n):
        self.n, self.count = n, 0
        self.values = []

    @property
    def drift_detected(self):
        return self.count % self.n == 0

    def update(self, x):
        self.values.append(x)
        self.count += 1


def test_any_detector_with_the_interface_of_river_may_watch():
    x, y = rows_of(BLSClassifier, 1000)
    mine = Every(350)
    model = streamed(small(BLSClassifier, drift=mine), x, y)
    assert [event.row for event in events_of(model, "drift")] == [600, 1000]
    assert mine.count == 0  # the estimator has a copy
    assert set(model.running_.watch.detector.values) == {0.0, 1.0}
    assert clone(model).get_params()["drift"].n == 350


def test_detectors_of_river():
    drift = pytest.importorskip("river.drift")
    x, y = rows_of(BLSClassifier)
    for detector in (drift.ADWIN(), drift.PageHinkley(), drift.binary.DDM()):
        model = streamed(small(BLSClassifier, drift=detector), x, y)
        assert any(2000 < event.row < 2700 for event in events_of(model, "drift"))


@pytest.mark.parametrize("cls", CLASSES)
@pytest.mark.parametrize("pause", [600, 2200, 2600])
def test_a_file_in_the_middle_changes_nothing(cls, pause, tmp_path):
    x, y = rows_of(cls)
    options = {"drift": PageHinkley(threshold=40.0), "forgetting": 0.9995, "buffer_rows": 200}
    one = streamed(small(cls, **options), x[:pause], y[:pause])
    one.save(tmp_path / "model.safetensors", sums=True)
    other = opgrow.load(tmp_path / "model.safetensors")
    assert other.get_params()["drift"] == one.get_params()["drift"]
    for model in (one, other, pickle.loads(pickle.dumps(one))):
        streamed(model, x, y, start=pause)
    assert other.network_.digest() == one.network_.digest()
    assert other.stream_ == one.stream_
    assert other.running_.watch == one.running_.watch
    np.testing.assert_array_equal(other.running_.sums.gram, one.running_.sums.gram)
    assert len(other.history_) == len(one.history_)


def test_a_detector_of_a_user_is_not_saved(tmp_path):
    x, y = rows_of(BLSClassifier, 1000)
    model = streamed(small(BLSClassifier, drift=Every(350)), x, y)
    model.save(tmp_path / "model.safetensors", sums=True)
    loaded = opgrow.load(tmp_path / "model.safetensors")
    assert loaded.drift is None
    assert loaded.stream_ == model.stream_
    loaded.set_params(drift=Every(100)).partial_fit(x[:200], y[:200])
    assert loaded.stream_.events[-1].row == 1200


def test_a_call_that_fails_changes_nothing():
    x, y = rows_of(BLSClassifier, 1000)
    model = streamed(small(BLSClassifier, drift="page_hinkley"), x, y)
    before = pickle.dumps((model.running_.watch, model.network_.digest(), model.running_.n_rows))

    class Fails(Every):
        def update(self, x):
            super().update(x)
            if self.count == 60:
                raise RuntimeError("no more")

    with pytest.raises(ValueError, match="drift must be None, 'page_hinkley' or a detector, got 'ddm'"):
        model.set_params(drift="ddm").partial_fit(x, y)
    with pytest.raises(ValueError, match="drift must be None"):
        model.set_params(drift=PageHinkley).partial_fit(x, y)
    with pytest.raises(RuntimeError, match="no more"):
        model.set_params(drift=Fails(1000)).partial_fit(x, y)
    after = model.running_.watch, model.network_.digest(), model.running_.n_rows
    assert pickle.dumps(after) == before
