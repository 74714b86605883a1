"""The head that an exported program begins to learn with is that of the running sums."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_iris

import opgrow
from opgrow.export import export_c
from opgrow.export.learning import MOST_BYTES, state_bytes
from opgrow.export.learning_draft import learning_program

#: The smallest network of operators, head included.
POP = {
    "widths": (2,),
    "epochs": (2,),
    "learning_rates": (0.01,),
    "fine_tune_epochs": 0,
    "operators": [("gaussian", "sum", "tanh")],
}


def model_of(name: str, **parameters: Any) -> Any:
    x, y = (load_iris if name.endswith("Classifier") else load_diabetes)(return_X_y=True)
    model = getattr(opgrow, name)(random_state=0, **parameters)
    return model.partial_fit(x[:120], y[:120])


@pytest.mark.parametrize("name", ["HeMLGOPClassifier", "BLSClassifier", "PMLPRegressor"])
def test_the_factor_is_that_of_the_regularised_sums(name: str) -> None:
    model = model_of(name)
    # Without folded norms, the features are those of the sums.
    program, start = learning_program(model, "int16", None)
    sums = model.running_.sums
    p = len(sums.mean)
    triangle = np.eye(p + 1)
    triangle[np.triu_indices(p + 1, 1)] = start.factor
    ridge = np.concatenate([[0], model.running_.ridge * sums.scale**2])
    one = np.concatenate([[1], sums.mean])
    wanted = np.pad(sums.gram, ((1, 0), (1, 0))) + sums.weight * np.outer(one, one) + np.diag(ridge)
    made = triangle.T @ np.diag(start.weight) @ triangle
    np.testing.assert_allclose(made, wanted, rtol=1e-9, atol=1e-9 * np.abs(wanted).max())
    head = np.linalg.solve(triangle, start.target)
    solution = model.running_.solution()
    unit = model.running_.factor if model.network_.output_scale is None else model.network_.output_scale
    np.testing.assert_allclose(head[1:], solution.weight * unit, rtol=1e-6, atol=1e-9)
    assert start.n_bytes == state_bytes(p, program.n_outputs, program.classes is not None)


@pytest.mark.parametrize("name", ["HeMLGOPClassifier", "HeMLGOPRegressor"])
def test_its_outputs_are_those_of_the_network(name: str) -> None:
    model = model_of(name)
    _, start = learning_program(model, "int16", None)
    seen = model.network_.features(model.sample_)
    wanted = model.network_.outputs(model.sample_)
    np.testing.assert_allclose(start.outputs(seen), wanted, rtol=1e-4, atol=1e-4 * np.abs(wanted).max())


def test_limits_of_predictions_are_those_of_the_network() -> None:
    """After fit, the state knows what the network says of a sample; what limits the network is wider."""
    x, y = load_diabetes(return_X_y=True)
    model = opgrow.HeMLGOPRegressor(preset="compact", random_state=0).fit(x, y)
    _, start = learning_program(model, "float32", None)
    reach = start.margin * (start.high - start.low)
    network = model.with_sums().network_
    np.testing.assert_allclose(start.low - reach, network.output_low, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(start.high + reach, network.output_high, rtol=1e-6)


def refusal(model: Any, tmp_path: Any, **options: Any) -> str:
    with pytest.raises(ValueError, match=".") as error:
        export_c(model, tmp_path / "model.c", **{"learn": True, **options})
    assert not list(tmp_path.iterdir())
    return str(error.value)


def test_what_cannot_learn_is_refused_in_a_sentence(tmp_path) -> None:
    model = model_of("HeMLGOPClassifier", preset="compact")
    assert refusal(model, tmp_path, arithmetic="integer") == "learn needs arithmetic='float', got 'integer'."
    assert "32768" in refusal(model, tmp_path, learn="yes")
    assert "class_weight" in refusal(model.set_params(class_weight={0: 2.0}), tmp_path)
    x, y = load_iris(return_X_y=True)
    pop = opgrow.POPClassifier(**POP, random_state=0)
    assert "has operators, and only linear heads learn on: call partial_fit" in refusal(
        pop.fit(x, y), tmp_path
    )
    export_c(pop.partial_fit(x, y), tmp_path / "model.c", learn=True, min_agreement=0)


def test_a_large_state_has_to_be_asked_for(tmp_path) -> None:
    model = model_of("BLSClassifier", n_min=200)
    size = state_bytes(model.network_.head_width, 3, classification=True)
    assert size > MOST_BYTES
    said = refusal(model, tmp_path)
    assert f"takes {size} bytes, and at most {MOST_BYTES} are allowed" in said
    assert f"pass learn={size}" in said
    assert f"at most {size - 1} are" in refusal(model, tmp_path, learn=size - 1)
    export_c(model, tmp_path / "model.c", learn=size)
    assert f"#define MODEL_STATE_BYTES {size}\n" in (tmp_path / "model.h").read_text()


def test_without_sums_and_sample_there_is_nothing_to_go_on_from(tmp_path) -> None:
    x, y = load_iris(return_X_y=True)
    model = opgrow.HeMLGOPClassifier(preset="compact", random_state=0).fit(x, y)
    model.sample_ = None
    assert "holds neither sums nor a sample of the rows" in refusal(model, tmp_path)
