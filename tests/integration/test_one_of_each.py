"""One new operator of each kind and one new method, declared once: all parts of the package take them."""

from __future__ import annotations

import json

import numpy as np
import onnxruntime
import pytest
import torch
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_wine
from typer.testing import CliRunner

import opgrow
from opgrow import HeMLGOPClassifier, HeMLGOPRegressor, OperatorSet
from opgrow.bench import models
from opgrow.bench.protocols import draw_split
from opgrow.bench.runs import DONE, Run, execute
from opgrow.cli import app
from opgrow.engine import reference
from opgrow.estimators.by_method import estimators_of
from opgrow.estimators.registry import ESTIMATORS, listed
from opgrow.growth.methods import METHODS, declared
from opgrow.growth.methods.hemlgop import BlockGrowth, BlockMethod
from tests import example_operators
from tests.double_precision import answers
from tests.export.compiled import MODES, Library, name_of, needs_compiler

QUICK = {"n_min": 8, "n_step": 4, "max_neurons": 12, "epochs": (4, 2), "fine_tune_epochs": 2}
SETTINGS = QUICK | {"preset": None, "max_layers": 1, "random_state": 0}
CLASSES = load_wine(return_X_y=True)
NUMBERS = load_diabetes(return_X_y=True)


# --- operators ---


@pytest.fixture(scope="module", autouse=True)
def _registered():
    example_operators.register()
    yield
    example_operators.remove()


@pytest.fixture(scope="module")
def fitted(_registered):
    """A classifier and a regressor that have nothing but the new operators."""
    settings = SETTINGS | {"operators": [example_operators.SET]}
    return HeMLGOPClassifier(**settings).fit(*CLASSES), HeMLGOPRegressor(**settings).fit(*NUMBERS)


def test_a_search_takes_new_operators_beside_those_that_are_built_in():
    sets = opgrow.operator_sets(["rational", "gaussian"], ["mean", "sum"], ["swish", "tanh"])
    model = HeMLGOPClassifier(**SETTINGS, operators=sets, n_draws=1).fit(*CLASSES)
    assert model.score(*CLASSES) > 0.9
    assert {candidate.operator_set for candidate in model.history_[0].candidates} == set(sets)


def test_gradients_are_finite_differences():
    rng = np.random.default_rng(0)
    leaves = [torch.from_numpy(rng.normal(size=s)).requires_grad_() for s in ((6, 4), (4, 3), (3,))]
    operators = OperatorSet(*example_operators.SET)
    assert torch.autograd.gradcheck(lambda *given: reference.features(*given, operators), leaves)


def test_predictions_survive_a_file(fitted, tmp_path):
    for model, (x, y) in zip(fitted, (CLASSES, NUMBERS), strict=True):
        assert model.score(x, y) > (0.9 if hasattr(model, "classes_") else 0.3)
        model.save(tmp_path / "model.safetensors")
        assert np.array_equal(answers(opgrow.load(tmp_path / "model.safetensors"), x), answers(model, x))


@needs_compiler
def test_c_programs_say_the_same(fitted, tmp_path):
    for model, (x, _) in zip(fitted, (CLASSES, NUMBERS), strict=True):
        files = {}
        for mode in MODES:
            files[name_of(mode)] = tmp_path / f"{type(model).__name__}_{name_of(mode)}.c"
            least = 0.96 if mode.get("weights") == "int4" else 0.99
            check = model.export_c(files[name_of(mode)], calibration=x, min_agreement=least, **mode)
            assert check.agreement > least
        library = Library(list(files.values()))
        expected = answers(model, x)
        for name, file in files.items():
            actual = library.scores(file.stem, x, expected.shape[1])
            bound = {"plain": 1e-5, "int16": 5e-3}.get(name, 0.2 if "int4" in name else 0.1)
            bound *= max(1.0, np.ptp(expected))
            assert np.abs(actual - expected).max() < bound, name


@needs_compiler
def test_integers_are_emulated_bit_for_bit(fitted, tmp_path):
    from opgrow.export import fixed_emulation, program
    from opgrow.export.c_fixed import fixed_program
    from opgrow.export.c_fixed_source import fixed_source
    from opgrow.export.c_header import header_source

    x = NUMBERS[0]
    fixed = fixed_program(program.program_of(fitted[1]), x, "int16")
    (tmp_path / "model.c").write_text(fixed_source(fixed, "model", "model.h"))
    (tmp_path / "model.h").write_text(header_source(fixed.program, "model", fixed))
    rows = np.random.default_rng(0).integers(-(2**31) + 1, 2**31, size=(200, x.shape[1]))
    rows = np.concatenate([fixed_emulation.as_inputs(fixed, x), rows])
    seen = fixed_emulation.features(fixed, rows)
    expected = fixed_emulation.scores(fixed, fixed_emulation.head_outputs(fixed, seen))
    assert np.array_equal(Library([tmp_path / "model.c"]).integer_scores("model", rows, 1), expected)


def test_onnx_says_the_same(fitted, tmp_path):
    for model, (x, _) in zip(fitted, (CLASSES, NUMBERS), strict=True):
        model.export_onnx(tmp_path / "model.onnx", calibration=x)
        session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
        actual = session.run(None, {"X": x.astype(np.float32)})[-1]
        np.testing.assert_allclose(actual, answers(model, x), rtol=1e-4, atol=1e-4)


def test_sizes_and_reports_name_them(fitted, tmp_path):
    model = fitted[0]
    names = "/".join(example_operators.SET)
    n_inputs = CLASSES[0].shape[1]
    assert OperatorSet(*example_operators.SET).flops(n_inputs) == 4 * n_inputs + n_inputs + 1 + 1 + 5
    assert names in str(model.network_)
    model.report(tmp_path / "report.html", *CLASSES)
    assert names in (tmp_path / "report.html").read_text()


def run(*arguments):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exception is None, result.output
    return result.stdout


@pytest.fixture
def table(tmp_path):
    x, y = CLASSES
    np.savez(tmp_path / "wine.npz", X=x, y=y)
    return tmp_path / "wine.npz"


def parameters(*more):
    given = ["n_min=6", "max_layers=1", "preset=null", "epochs=[2,1]", "fine_tune_epochs=1", *more]
    return [part for parameter in given for part in ("-p", parameter)]


def test_the_command_line_takes_them(table, tmp_path):
    model = tmp_path / "model.safetensors"
    sets = json.dumps([example_operators.SET])
    run("fit", table, "-o", model, *parameters(f"operators={sets}"))
    assert f"x {'/'.join(example_operators.SET)}" in run("inspect", model)
    run("export", model, "-o", tmp_path / "model.c", "--calibration", table)
    assert "psi_rational" in (tmp_path / "model.c").read_text()


# --- a method ---


@pytest.fixture
def frugal():
    """HeMLRN under another name, with layers that share one operator set: a declaration, two estimators."""
    method = declared(BlockMethod("Frugal", BlockGrowth, search_every_block=False, tune_blocks=False))

    @listed
    class FrugalClassifier(HeMLGOPClassifier):
        _method = method

    @listed
    class FrugalRegressor(HeMLGOPRegressor):
        _method = method

    yield method
    del METHODS[method.name]
    del ESTIMATORS[FrugalClassifier.__name__], ESTIMATORS[FrugalRegressor.__name__]


def test_a_new_method_is_found_by_all_lists(frugal):
    for task in ("classification", "regression"):
        assert [*estimators_of(task)] == [*METHODS]
    assert models.model_names("methods")[-1] == "Frugal"
    assert models.grid_of("Frugal", "small") == models.grid_of("HeMLGOP", "small")
    models.check_model("Frugal n_min=4")


def test_a_new_method_fits_and_is_saved(frugal, tmp_path):
    for task, rows in (("classification", CLASSES), ("regression", NUMBERS)):
        model = estimators_of(task)["Frugal"](**SETTINGS)
        assert clone(model).get_params() == model.get_params()
        model.fit(*rows).save(tmp_path / "model.safetensors")
        read = opgrow.load(tmp_path / "model.safetensors")
        assert type(read) is type(model)
        assert np.array_equal(answers(read, rows[0]), answers(model, rows[0]))


def test_the_command_line_and_the_experiments_run_a_new_method(frugal, table, tmp_path):
    model = tmp_path / "model.safetensors"
    shown = json.loads(run("fit", table, "-o", model, "--method", "frugal", "--json", *parameters()))
    assert shown["estimator"] == "FrugalClassifier"
    x, y = CLASSES
    result = execute(Run("wine", 0, "Frugal n_min=4 max_layers=1"), x, y, draw_split(y, 0), "none")
    assert result["status"] == DONE
