"""Exports measure themselves: the emulation is what the C computes, and what disagrees is refused."""

from __future__ import annotations

import itertools
import json
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_iris
from typer.testing import CliRunner

import opgrow
from opgrow import Block, Layer, Network, OperatorSet
from opgrow.cli import app
from opgrow.export import fixed_emulation
from opgrow.export.c_draft import FixedDraft, FloatDraft
from opgrow.export.c_fixed import fixed_program
from opgrow.export.folding import without_linear_features
from opgrow.export.heads import mixtures
from opgrow.export.measuring import Expected, compare
from opgrow.export.program import program_of
from opgrow.export.ranges import usual_largest
from opgrow.operators import registered
from tests.export.compiled import INTEGERS, MODES, Library, name_of, needs_compiler
from tests.export.every_variant import outcomes
from tests.networks import randomized

CLASSES = load_iris(return_X_y=True)
NUMBERS = tuple(array[:150] for array in load_diabetes(return_X_y=True))


@pytest.fixture(scope="module")
def bls() -> Any:
    """A head with weights of hundreds of thousands that nearly cancel."""
    model = opgrow.BLSClassifier(random_state=0).fit(*CLASSES)
    assert np.abs(model.network_.head.weight).max() > 1e4
    return model


def data_of(name: str) -> tuple[np.ndarray, np.ndarray]:
    return CLASSES if name.endswith("Classifier") else NUMBERS


def around(network: Network) -> Any:
    estimator = opgrow.HeMLRNRegressor()
    estimator.network_, estimator.n_features_in_ = network, network.n_inputs
    estimator.n_targets_, estimator.single_target_ = network.n_outputs, False
    return estimator


def extreme_integers(n_inputs: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    x = rng.integers(-(2**31) + 1, 2**31, (200, n_inputs)) >> rng.integers(0, 20, (200, 1))
    ends = rng.choice([0, 1, -1, 2**31 - 1, -(2**31) + 1, 2**16, -(2**20)], x.shape)
    return np.where(rng.random(x.shape) < 0.2, ends, x)


def emulated(draft: FixedDraft, x: np.ndarray) -> np.ndarray:
    fixed = draft.fixed
    seen = fixed_emulation.features(fixed, x)
    return fixed_emulation.scores(fixed, fixed_emulation.head_outputs(fixed, seen))


# --- the emulation ---


@needs_compiler
def test_integers_are_emulated_bit_for_bit_for_every_estimator(
    fitted: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drafts, best_draft = {}, opgrow.export.c.best_draft

    def remember(*arguments: Any) -> Any:
        drafts[file.stem], check = best_draft(*arguments)
        return drafts[file.stem], check

    monkeypatch.setattr(opgrow.export.c, "best_draft", remember)
    for name, mode in itertools.product(fitted, INTEGERS):
        file = tmp_path / f"{name}_{name_of(mode)}.c"
        fitted[name].export_c(file, min_agreement=0, **mode)
    library = Library([tmp_path / f"{name}.c" for name in drafts], "-O0")
    for name, draft in drafts.items():
        network = fitted[name.split("_")[0]].network_
        rows = extreme_integers(network.n_inputs)
        usual = fixed_emulation.as_inputs(draft.fixed, data_of(name.split("_")[0])[0])
        for x in (rows, usual):
            scores = library.integer_scores(name, x, network.n_outputs)
            assert np.array_equal(scores, emulated(draft, x)), name


@needs_compiler
@pytest.mark.parametrize("bound", [None, 3.0])
def test_integers_are_emulated_bit_for_bit_for_every_operator_set(
    bound: float | None, tmp_path: Path
) -> None:
    rng, drafts = np.random.default_rng(0), {}
    rows = rng.normal(size=(50, 4))
    for pool in registered("pool"):
        sets = itertools.product(registered("nodal"), [pool], registered("activation"))
        blocks = [Block(4, 1, OperatorSet(*names), norm=None) for names in sets]
        blocks.append(Block(4, 3, OperatorSet("multiplication", pool, "tanh"), norm="unit", bias=False))
        mean = np.array([0.1, -3.0, 0, 5e3])
        network = Network(4, 2, [Layer(blocks)], mean, input_bound=bound)
        randomized(network, constants=False)
        program = program_of(around(network))
        drafts[pool] = FixedDraft(fixed_program(program, rows + program.input_mean, "int16"))
        # The features themselves, of which the head would hide the last bits.
        one_to_one = replace(program.head, weight=np.eye(network.layers[0].n_neurons), bias=None)
        drafts[pool] = FixedDraft(
            fixed_program(replace(program, head=one_to_one), rows + program.input_mean, "int16")
        )
        source = opgrow.export.c_fixed_source.fixed_source(drafts[pool].fixed, pool, f"{pool}.h")
        header = opgrow.export.c_header.header_source(drafts[pool].program, pool, drafts[pool].fixed)
        (tmp_path / f"{pool}.c").write_text(source)
        (tmp_path / f"{pool}.h").write_text(header)
    library = Library([tmp_path / f"{pool}.c" for pool in drafts], "-O0")
    for pool, draft in drafts.items():
        x = np.concatenate([extreme_integers(4), fixed_emulation.as_inputs(draft.fixed, rows)])
        actual, expected = library.integer_scores(pool, x, draft.program.n_outputs), emulated(draft, x)
        assert np.array_equal(actual, expected), (pool, np.flatnonzero((actual != expected).any(axis=0)))


@needs_compiler
@pytest.mark.parametrize("weights", ["float32", "int16", "int8", "int4"])
def test_floats_are_emulated_to_the_last_digits(weights: str, fitted: dict[str, Any], tmp_path: Path) -> None:
    files, drafts = [], {}
    for name, model in fitted.items():
        files.append(tmp_path / f"{name}.c")
        program = without_linear_features(program_of(model))
        drafts[name] = FloatDraft(program, weights)
        source = opgrow.export.c_float.float_source(program, name, f"{name}.h", weights)
        files[-1].write_text(source)
        files[-1].with_suffix(".h").write_text(opgrow.export.c_header.header_source(program, name, None))
    library = Library(files, "-O0")
    for name, draft in drafts.items():
        rows = data_of(name)[0]
        actual = library.scores(name, rows, draft.program.n_outputs)
        expected = draft.scores(draft.features(rows))
        # Large weights that cancel enlarge the last digit of an exponential; numbers have their own digits.
        terms = max(1, np.abs(draft.program.head.weight).max())
        terms *= 1 if draft.program.classes else np.ptp(actual)
        assert np.abs(actual - expected).max() <= 2e-5 * terms, name


@needs_compiler
def test_floats_are_emulated_to_the_last_digits_for_every_operator_set(tmp_path: Path) -> None:
    drafts = {}
    for pool in registered("pool"):
        sets = itertools.product(registered("nodal"), [pool], registered("activation"))
        network = Network(20, 2, [Layer([Block(20, 1, OperatorSet(*names), norm=None) for names in sets])])
        program = program_of(around(randomized(network)))
        one_to_one = replace(program.head, weight=np.eye(network.layers[0].n_neurons), bias=None)
        drafts[pool] = FloatDraft(replace(program, head=one_to_one), "float32")
        source = opgrow.export.c_float.float_source(drafts[pool].program, pool, f"{pool}.h", "float32")
        (tmp_path / f"{pool}.c").write_text(source)
        header = opgrow.export.c_header.header_source(drafts[pool].program, pool, None)
        (tmp_path / f"{pool}.h").write_text(header)
    library = Library([tmp_path / f"{pool}.c" for pool in drafts], "-O0")
    rows = np.random.default_rng(0).normal(size=(50, 20))
    for pool, draft in drafts.items():
        actual = library.scores(pool, rows, draft.program.n_outputs)
        expected = draft.scores(draft.features(rows))
        assert (np.abs(actual - expected) <= 2e-5 * (1 + np.abs(expected))).all(), pool


# --- integers for every method ---


@needs_compiler
@pytest.mark.parametrize("mode", MODES, ids=name_of)
def test_heads_of_large_weights_survive_small_integers(
    mode: dict[str, str], bls: Any, tmp_path: Path
) -> None:
    check = bls.export_c(tmp_path / "model.c", **mode)
    assert check.agreement >= 0.99
    assert check.head_solved_again == bool(mode)
    library = Library([tmp_path / "model.c"])
    rows = CLASSES[0]
    assert np.mean(library.predict("model", rows) == bls.predict(rows)) >= 0.98
    bound = 0.2 if mode.get("weights") == "int4" else 0.1
    assert np.abs(library.scores("model", rows, 3) - bls.predict_proba(rows)).max() < bound


@pytest.mark.parametrize("value", [1e3, 1e6, -1e12])
@pytest.mark.parametrize("mode", INTEGERS, ids=name_of)
def test_one_sentinel_among_the_calibration_rows_ruins_nothing(
    mode: dict[str, str], value: float, bls: Any, fitted: dict[str, Any], tmp_path: Path
) -> None:
    for model in (bls, fitted["HeMLGOPClassifier"]):
        rows = CLASSES[0].copy()
        rows[7, 2] = value
        check = model.export_c(tmp_path / "model.c", calibration=rows, **mode)
        assert (check.rows, check.agreement >= 0.99) == (150, True)
    # Nor in a model without bounds, such as one from an old file: its formats hold eight times what the
    # others reach, which takes three bits from each value, and the row itself is beyond them.
    model = deepcopy(fitted["HeMLRNClassifier"])
    model.network_.input_bound = None
    without = model.export_c(tmp_path / "model.c", calibration=CLASSES[0], min_agreement=0.9, **mode)
    check = model.export_c(tmp_path / "model.c", calibration=rows, min_agreement=0.9, **mode)
    assert check.agreement > without.agreement - 0.02


def test_a_few_rows_far_from_all_others_do_not_decide_a_range() -> None:
    values = np.linspace(-1, 1, 200)
    assert usual_largest(values) == 1
    values[[3, 77]] = 1e6, -1e9
    assert usual_largest(values) <= 8
    assert usual_largest(np.array([0.0, 0, 0, 0, 5])) == 5
    assert usual_largest(np.array([2.0, 1e6])) == 16


def test_rows_with_a_sentinel_are_not_mixed_with_others() -> None:
    model = opgrow.HeMLRNClassifier(n_min=6, max_layers=1, random_state=0).fit(*CLASSES)
    rows = CLASSES[0].copy()
    rows[7, 2] = 1e6
    assert np.abs(mixtures(program_of(model), rows)).max() < 50


@needs_compiler
def test_every_estimator_agrees_in_the_smallest_integers_or_is_refused(fitted: dict[str, Any]) -> None:
    actual = []
    for name, model in fitted.items():
        x, y = data_of(name)
        actual += outcomes(
            model,
            "little",
            x,
            (x, y),
            sentinels=(True,),
            modes=[{"weights": "int8"}, {"arithmetic": "integer", "weights": "int8"}],
        )
    assert not [outcome for outcome in actual if outcome.off]
    assert np.mean([outcome.exported is not None for outcome in actual]) > 0.8


# --- what is said and refused ---


def test_what_disagrees_is_refused_in_a_sentence_and_nothing_is_written(bls: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    noise = rng.normal(CLASSES[0].mean(axis=0), 30, (400, 4))  # where classes change within a rounding error
    mode = {"arithmetic": "integer", "weights": "int4"}
    actual = bls.export_c(tmp_path / "model.c", calibration=noise, min_agreement=0, **mode)
    assert actual.agreement < 0.999
    for file in tmp_path.iterdir():
        file.unlink()
    with pytest.raises(
        ValueError,
        match="The C program with integer arithmetic and int4 weights agrees too little with the estimator "
        r"on 400 rows \(.* % of the labels, at least 100 % is wanted\) and was not written: use weights=",
    ):
        bls.export_c(tmp_path / "model.c", calibration=noise, min_agreement=1.0, **mode)
    assert list(tmp_path.iterdir()) == []
    for wrong in (-0.1, 1.5, "all", True, np.nan):
        with pytest.raises(ValueError, match=r"^min_agreement must be a number from 0 to 1, got"):
            bls.export_c(tmp_path / "model.c", min_agreement=wrong)
        with pytest.raises(ValueError, match=r"^min_agreement must be a number from 0 to 1, got"):
            bls.export_onnx(tmp_path / "model.onnx", min_agreement=wrong)


def test_onnx_is_measured_by_its_runtime(fitted: dict[str, Any], tmp_path: Path) -> None:
    for name in ("HeMLGOPClassifier", "POPRegressor", "BLSClassifier"):
        check = fitted[name].export_onnx(tmp_path / "model.onnx", calibration=data_of(name)[0])
        assert (check.rows, check.how) == (150, "ONNX Runtime")
        assert check.agreement > 0.999
        assert check.largest_difference < 1e-2
    model = fitted["HeMLGOPClassifier"]
    check = model.export_onnx(tmp_path / "model.onnx")
    assert check.rows == len(model.sample_)


def test_without_onnxruntime_the_reference_evaluator_measures(
    fitted: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "onnxruntime", None)
    check = fitted["HeMLGOPClassifier"].export_onnx(tmp_path / "model.onnx", calibration=CLASSES[0][::10])
    assert (check.how, check.agreement) == ("reference evaluator of onnx", 1.0)


def test_without_rows_floats_are_written_unmeasured_and_integers_asked_for(
    fitted: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = fitted["HeMLGOPClassifier"]
    monkeypatch.setattr(model, "sample_", None)
    for check in (model.export_c(tmp_path / "model.c"), model.export_onnx(tmp_path / "model.onnx")):
        assert (check.rows, check.agreement) == (0, None)
        assert str(check) == "not measured: there were no calibration rows"
    with pytest.raises(ValueError, match="^Integer arithmetic needs calibration rows"):
        model.export_c(tmp_path / "model.c", arithmetic="integer")


def test_regressions_are_compared_by_r2_which_a_single_row_cannot_outweigh() -> None:
    rng = np.random.default_rng(0)
    rows, values = np.zeros((500, 1)), rng.normal(50, 10, (500, 1))
    expected = Expected(rows, values, False)
    assert compare(expected, values, "").agreement == 1
    noisy = compare(expected, values + rng.normal(0, 1, values.shape), "").agreement
    assert noisy == pytest.approx(0.99, abs=0.003)
    far = values.copy()
    far[3] = -1e6
    assert compare(Expected(rows, far, False), values, "").agreement > 0.8
    saturated = np.where(far < 0, -1e3, far)
    assert compare(Expected(rows, far, False), saturated, "").agreement == 1
    assert compare(Expected(rows, np.full_like(values, 7), False), np.full_like(values, 7), "").agreement == 1
    assert compare(expected, np.where(rows == 0, np.nan, 0), "").agreement == 0


def test_the_command_prints_the_agreement_and_refuses(bls: Any, tmp_path: Path) -> None:
    model = tmp_path / "model.safetensors"
    bls.save(model)
    result = CliRunner().invoke(app, ["export", str(model), "-o", str(tmp_path / "m.c"), "--weights", "int8"])
    assert result.exit_code == 0, result.output
    assert "agreement with the estimator on" in result.stdout
    out = str(tmp_path / "m.onnx")
    data = json.loads(CliRunner().invoke(app, ["export", str(model), "-o", out, "--json"]).stdout)
    assert data["check"]["agreement"] == 1
    assert data["check"]["rows"] == len(bls.sample_)
    said = CliRunner().invoke(
        app, ["export", str(model), "-o", str(tmp_path / "n.c"), "--min-agreement", "2"]
    )
    assert said.exit_code == 2
    assert "min_agreement must be a number from 0 to 1, got 2.0" in said.stderr
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(opgrow.export.heads, "PENALTIES", ())
        command = ["export", str(model), "-o", str(tmp_path / "n.c"), "--weights", "int8"]
        refused = CliRunner().invoke(app, command)
        assert refused.exit_code == 2
        assert refused.stderr.startswith("error: The C program with int8 weights agrees too little")
        assert refused.stderr.count("\n") == 1
        assert not (tmp_path / "n.c").exists()
        assert CliRunner().invoke(app, [*command, "--min-agreement", "0"]).exit_code == 0


@pytest.mark.parametrize("name", ["m.pdf", "m", "m.onnx.txt"])
def test_outputs_of_another_kind_are_refused(name: str, bls: Any, tmp_path: Path) -> None:
    model = tmp_path / "model.safetensors"
    bls.save(model)
    for more, suffixes in (
        ([], "'.onnx' or '.c' or '.wasm'"),
        (["--format", "c"], "'.c'"),
        (["--format", "onnx"], "'.onnx'"),
    ):
        result = CliRunner().invoke(app, ["export", str(model), "-o", str(tmp_path / name), *more])
        assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
        assert result.stderr == f"error: The output must end in {suffixes}, got '{name}'.\n"
    with pytest.raises(ValueError, match=r"The ONNX file must end in '\.onnx', got "):
        bls.export_onnx(tmp_path / name)
    assert [file.name for file in tmp_path.iterdir()] == ["model.safetensors"]


# --- probabilities ---


@needs_compiler
@pytest.mark.filterwarnings("ignore::opgrow.RangeWarning")
def test_the_predicted_class_is_the_most_probable_one_everywhere(
    fitted: dict[str, Any], tmp_path: Path
) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    rng = np.random.default_rng(0)
    rows = np.concatenate([CLASSES[0], rng.normal(CLASSES[0].mean(axis=0), 5, (300, 4))]).astype(np.float32)
    models = {name: model for name, model in fitted.items() if name.endswith("Classifier")}
    files = []
    modes = [{}, {"arithmetic": "integer"}]
    for name, mode in itertools.product(models, modes):
        files.append(tmp_path / f"{name}_{name_of(mode)}.c")
        models[name].export_c(files[-1], min_agreement=0, **mode)
    library = Library(files, "-O0")
    for name, model in models.items():
        assert np.array_equal(model.predict(rows), model.predict_proba(rows).argmax(axis=1)), name
        for mode in modes:
            stem = f"{name}_{name_of(mode)}"
            assert np.array_equal(
                library.predict(stem, rows), library.scores(stem, rows, 3).argmax(axis=1)
            ), stem
        model.export_onnx(tmp_path / "model.onnx")
        session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
        label, probabilities = session.run(None, {"X": rows})
        assert np.array_equal(label, probabilities.argmax(axis=1)), name
