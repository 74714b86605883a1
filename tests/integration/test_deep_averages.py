"""Averages of networks with several layers, of different depths, leave like any other network."""

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_iris

import opgrow
from opgrow.export import float_emulation
from opgrow.export.program import program_of
from opgrow.network.average import average

BRIEF = {
    "n_min": 4,
    "n_step": 3,
    "max_neurons": 7,
    "epochs": (3, 3),
    "fine_tune_epochs": 2,
    "random_state": 0,
}


@pytest.fixture(scope="module", params=["HeMLGOPClassifier", "HeMLGOPRegressor"])
def fitted(request):
    """An average of networks with one, two and three layers, and rows."""
    x, y = (load_iris if "Classifier" in request.param else load_diabetes)(return_X_y=True)
    if "Classifier" in request.param:
        y[::10] = (y[::10] + 1) % 3  # so that a first layer leaves something to learn
    model = getattr(opgrow, request.param)(n_estimators=3, max_layers=3, layer_threshold=-1e9, **BRIEF).fit(
        x, y
    )
    assert [len(counts) for counts in model.network_.members] == [3, 3, 3]
    single = getattr(opgrow, request.param)(n_estimators=1, max_layers=1, **BRIEF).fit(x, y).network_
    deep = getattr(opgrow, request.param)(n_estimators=1, max_layers=2, layer_threshold=-1e9, **BRIEF).fit(
        x, y
    )
    network = average([deep.network_, single, deep.network_])
    for name in ("input_mean", "input_scale", "input_bound", "output_mean", "output_scale"):
        setattr(network, name, getattr(single, name))
    deep.network_ = network
    return model, deep, x.astype(np.float32)


def _outputs(model, x):
    return model.network_.outputs(x)


def test_c_computes_the_same_features_and_outputs(fitted):
    for model in fitted[:2]:
        program = program_of(model)
        seen = float_emulation.features(program, fitted[2], "float32")
        np.testing.assert_allclose(seen, model.network_.features(fitted[2]), rtol=1e-3, atol=1e-3)
        outputs = float_emulation.head_outputs(program, seen, "float32")
        expected = _outputs(model, fitted[2])
        np.testing.assert_allclose(outputs, expected, rtol=1e-3, atol=1e-3 * np.abs(expected).max())


def test_a_saved_average_is_the_same_network(fitted, tmp_path):
    for model in fitted[:2]:
        model.save(tmp_path / "model.safetensors")
        loaded = opgrow.load(tmp_path / "model.safetensors")
        assert loaded.network_.members == model.network_.members
        assert loaded.network_.digest() == model.network_.digest()
