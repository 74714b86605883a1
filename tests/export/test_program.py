"""Features that exceed the limits of a network are clamped in every export."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_diabetes

import opgrow
from opgrow import Block, Layer, Network, OperatorSet
from opgrow.export.c_draft import best_draft
from opgrow.export.folding import without_linear_features, without_norms
from opgrow.export.measuring import expected_with
from opgrow.export.program import Program, program_of
from opgrow.export.ranges import exact_outputs
from opgrow.report import explain, formula
from tests.example_networks import limited_average
from tests.export.compiled import MODES, Library, name_of, needs_compiler
from tests.export.test_c import as_regressor
from tests.export.test_onnx import session_of
from tests.networks import in_double_with_limits, limited, randomized

ROWS = np.random.default_rng(1).normal(size=(300, 4))


def plain() -> Network:
    """One layer, whose norms can become a part of the head."""
    blocks = [
        Block(4, 5, OperatorSet("multiplication", "correlation1", "elu")),
        Block(4, 3, OperatorSet("multiplication", "sum", "relu")),
    ]
    network = randomized(Network(4, 2, [Layer(blocks)], input_bound=3.0))
    for block in blocks:
        block.norm.scale[:] = np.resize([1.5, -1.5], block.n_neurons)
    network.output_mean, network.output_scale = np.array([3.0, -1.0]), np.array([2.0, 0.5])
    return limited(network, ROWS)


@pytest.fixture(scope="module", params=[limited_average, plain])
def model(request: Any) -> Any:
    network = request.param()
    model = as_regressor(network)
    low, high = np.quantile(network.outputs(ROWS), (0.001, 0.999), axis=0)
    network.output_low, network.output_high = low, high
    return model


def test_the_limits_matter(model: Any) -> None:
    network = model.network_.copy()
    network.head_low = network.head_high = None
    assert np.abs(network.outputs(ROWS) - model.predict(ROWS)).max() > 0.5


@needs_compiler
def test_c_clamps_in_floats_and_in_integers(model: Any, tmp_path: Path) -> None:
    files = [tmp_path / f"{name_of(mode)}.c" for mode in MODES]
    for mode, file in zip(MODES, files, strict=True):
        model.export_c(file, calibration=ROWS, min_agreement=0, **mode)
    library, x = Library(files), ROWS.astype(np.float32)
    exact = in_double_with_limits(model.network_, x)
    scale = np.abs(exact).max(axis=0)
    bounds = {"": 1e-5, "int16": 5e-3, "integer": 2e-2}
    for mode, file in zip(MODES, files, strict=True):
        scores = library.scores(file.stem, x, 2)
        bound = bounds.get("_".join(mode.values()))
        if bound is not None:
            difference = np.sort((np.abs(scores - exact) / scale).max(axis=1))
            assert difference[: None if bound < 1e-2 else -6].max() < bound, file.stem
        weights, arithmetic = mode.get("weights", "float32"), mode.get("arithmetic", "float")
        program = program_of(model)
        program = without_norms(program) if mode == {} else program
        draft, _ = best_draft(program, weights, arithmetic, expected_with(model, ROWS))
        emulated = draft.scores(draft.features(ROWS))
        # Compilers may fuse multiplications with additions of floats; integers are the same, but for
        # the conversion to floats.
        tolerance = 1e-5 if arithmetic == "float" else 1e-7
        np.testing.assert_allclose(scores, emulated, rtol=tolerance, atol=tolerance * scale.max())


@needs_compiler
def test_c_that_learns_begins_with_the_head_without_limits(tmp_path: Path) -> None:
    x, y = load_diabetes(return_X_y=True)
    model = opgrow.HeMLRNRegressor(n_min=5, max_neurons=5, max_layers=1, random_state=0).fit(x, y)
    model.network_ = limited(model.network_, x)
    model.export_c(tmp_path / "learner.c", calibration=x, min_agreement=0, learn=True)
    said = Library([tmp_path / "learner.c"]).scores("learner", x[:50], 1)
    exact = in_double_with_limits(model.network_, x[:50].astype(np.float32))
    np.testing.assert_allclose(said, exact, rtol=1e-5)
    assert model.with_sums().network_.head_low is None


@needs_compiler
def test_a_nan_stays_one(model: Any, tmp_path: Path) -> None:
    model.export_c(tmp_path / "gap.c")
    x = np.array([[0, np.nan, 0, 0]], np.float32)
    assert np.isnan(Library([tmp_path / "gap.c"]).scores("gap", x, 2)).all()
    assert np.isnan(session_of(model, tmp_path).run(None, {"X": x})[0]).all()


@pytest.mark.parametrize("options", [{}, {"float16": True}, {"input_type": "float64"}], ids=str)
def test_onnx_clamps(options: dict[str, Any], model: Any, tmp_path: Path) -> None:
    x = ROWS.astype(options.get("input_type", "float32"))
    said = session_of(model, tmp_path, **options).run(None, {"X": x})[0]
    exact = in_double_with_limits(model.network_, x)
    np.testing.assert_allclose(said, exact, rtol=1e-5, atol=1e-5)


def test_a_program_clamps_whatever_becomes_part_of_its_head(model: Any) -> None:
    program = program_of(model)
    exact = in_double_with_limits(model.network_, ROWS)
    folded = without_norms(without_linear_features(program))
    # Negative scales turn limits round.
    assert np.array_equal(folded.head_low, program.head_low) == (len(program.layers) > 1)
    for one in (program, folded):
        np.testing.assert_allclose(_said(one), exact, rtol=1e-9, atol=1e-9)


def _said(program: Program) -> np.ndarray:
    out = exact_outputs(program, ROWS)[-1]
    return out.clip(program.output_low, program.output_high)


def test_linear_features_with_limits_stay_what_they_are() -> None:
    linear = OperatorSet("multiplication", "sum", "identity")
    layers = [
        Layer([Block(4, 3, linear)]),
        Layer([Block(3, 4, OperatorSet("multiplication", "sum", "tanh"))]),
    ]
    network = randomized(Network(4, 1, layers, broad=True))
    program = program_of(as_regressor(network))
    assert len(without_linear_features(program).layers) == 1
    program = program_of(as_regressor(limited(network, ROWS)))
    assert without_linear_features(program) is program


def test_constants_are_counted(model: Any, tmp_path: Path) -> None:
    """Eight bytes for each feature in floats, and four in integers."""
    counts = []
    bare = as_regressor(model.network_.copy())
    bare.network_.head_low = bare.network_.head_high = None
    for one in (model, bare):
        for mode in ({}, {"arithmetic": "integer"}):
            one.export_c(tmp_path / "model.c", calibration=ROWS, min_agreement=0, **mode)
            text = " ".join((tmp_path / "model.c").read_text().replace("*", " ").split())
            counts.append(int(text.split("Constants: ")[1].split(" bytes")[0]))
    features = model.network_.head_width
    assert counts[0] - counts[2] == 8 * features
    assert counts[1] - counts[3] == 4 * features


def test_explanations_and_formulas_are_of_clamped_features(model: Any) -> None:
    model.loss_, model.history_ = "mse", []
    row = explain(model, ROWS).row(5)
    total = row.neurons.base + row.neurons.values.sum(axis=0) + row.neurons.limit
    np.testing.assert_allclose(total, row.outputs, rtol=1e-6)
    assert np.abs(row.neurons.limit).max() < 1e-4 * np.abs(row.outputs).max()
    shown = formula(model, 12)
    variables = vars(np) | {name: ROWS[:, i] for i, name in enumerate(shown.inputs)}
    exec(shown.text, variables)
    said = np.stack([variables[name] for name in shown.outputs], axis=1)
    np.testing.assert_allclose(said, in_double_with_limits(model.network_, ROWS), rtol=1e-5, atol=1e-5)
    assert r"\max" in shown.latex
