"""Sums and rows in model files: learning goes on from a file as it would have without one."""

from __future__ import annotations

import json

import numpy as np
import pytest
from safetensors import safe_open
from sklearn.base import is_classifier
from sklearn.datasets import load_diabetes, load_iris

import opgrow
from opgrow import BLSClassifier, BLSRegressor, HeMLRNClassifier, PLNRegressor
from opgrow.estimators.files import packed
from tests.estimators.test_incremental import small


def data(cls):
    x, y = load_iris(return_X_y=True) if is_classifier(cls()) else load_diabetes(return_X_y=True)
    order = np.random.default_rng(0).permutation(150)
    return x[order], np.asarray(["a", "c", "b"])[y[order]] if is_classifier(cls()) else y[order]


@pytest.mark.parametrize(
    "cls", [BLSClassifier, HeMLRNClassifier, BLSRegressor, PLNRegressor], ids=lambda c: c.__name__
)
def test_learning_goes_on_bit_for_bit(cls, tmp_path):
    x, y = data(cls)
    path = tmp_path / "model.safetensors"
    model = small(cls, forgetting=0.99, buffer_rows=40).partial_fit(x[:80], y[:80])
    model.partial_fit(x[80:110], y[80:110])
    model.save(path, sums=True)
    loaded = opgrow.load(path)
    assert loaded.network_.digest() == model.network_.digest()
    for one in (model, loaded):
        one.partial_fit(x[110:], y[110:]).grow().partial_fit(x[:10], y[:10])
    assert loaded.network_.digest() == model.network_.digest()
    np.testing.assert_array_equal(loaded.running_.sums.gram, model.running_.sums.gram)
    np.testing.assert_array_equal(loaded.running_.buffer.x, model.running_.buffer.x)
    loaded.save(path, sums=True)
    assert opgrow.load(path).running_.sums.weight == model.running_.sums.weight


def test_a_file_has_sums_only_if_they_are_asked_for(tmp_path):
    x, y = data(BLSClassifier)
    model = small(BLSClassifier).partial_fit(x, y)
    without, with_sums, without_rows = (tmp_path / f"{name}.safetensors" for name in "abc")
    model.save(without)
    model.save(with_sums, sums=True)
    model.save(without_rows, sums=True, sample=False)
    assert opgrow.load(without).running_ is None
    added = with_sums.stat().st_size - without.stat().st_size
    assert added == pytest.approx(model.running_.n_bytes, abs=2000)
    loaded = opgrow.load(without_rows).running_
    assert len(loaded.buffer.x) == 0
    assert loaded.buffer.seen == 150
    assert model.running_ is not None
    with pytest.raises(ValueError, match="this BLSClassifier holds no sums"):
        opgrow.load(without).save(with_sums, sums=True)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda data, arrays: data.update(count=-1), "'count' of 'running' is -1"),
        (lambda data, arrays: data.update(features=3), "'running' has 3 features, and the head sees 20"),
        (lambda data, arrays: data.update(ridge=None), "ridge"),
        (lambda data, arrays: data["buffer"].update(size=-4), "sizes that cannot be"),
        (lambda data, arrays: data["buffer"].update(rows=7), "'running.buffer.* has shape"),
        (lambda data, arrays: arrays.pop("running.sums.gram"), "'running.sums.gram' is missing"),
        (lambda data, arrays: arrays["running.sums.gram"].fill(np.nan), "not finite"),
    ],
)
def test_forged_sums_are_refused(change, message, tmp_path):
    x, y = data(BLSClassifier)
    path = tmp_path / "model.safetensors"
    small(BLSClassifier, n_min=10, max_neurons=10, buffer_rows=20).partial_fit(x, y).save(path, sums=True)
    with safe_open(path, "numpy") as file:
        record = json.loads(file.metadata()["opgrow"])
        arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    record.pop("checksum", None)
    change(record["running"], arrays)
    path.write_bytes(packed(json.dumps(record), arrays))
    with pytest.raises(ValueError, match=message):
        opgrow.load(path)
