"""`opgrow bench deploy`: models as C say what they say in Python, and what cannot be measured is named."""

from __future__ import annotations

import json
from importlib.util import find_spec

import numpy as np
import pytest
from sklearn.datasets import load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from typer.testing import CliRunner

from opgrow.bench import deployed_networks, deployed_peers, deployment, runtimes
from opgrow.bench.c_programs import CFunction, build
from opgrow.cli.bench import app
from opgrow.export.c_size import find_compiler

needs_compiler = pytest.mark.skipif(find_compiler() is None, reason="needs a C compiler: gcc, cc or clang")


@pytest.fixture
def small(monkeypatch):
    """Few and small models, timed for a moment."""
    quick = {"n_min": 4, "max_neurons": 4, "max_layers": 1, "epochs": (2,), "learning_rates": (0.01,)}
    monkeypatch.setattr(deployment, "OURS", {"ours": quick | {"operators": [("harmonic", "sum", "tanh")]}})
    monkeypatch.setattr(deployed_peers, "TREES", (3,))
    monkeypatch.setattr(deployed_peers, "HIDDEN", (4,))
    monkeypatch.setattr(runtimes, "_TURN", 0.001)
    monkeypatch.setattr(deployed_peers, "cross_val_score", lambda *_, **__: np.ones(1))


@needs_compiler
@pytest.mark.parametrize("dataset", ["breast_cancer", "wine"])
def test_every_runtime_says_what_the_model_says(small, dataset, tmp_path, monkeypatch):
    for package in ("onnx", "onnxruntime", "m2cgen", "emlearn", "micromlgen"):
        if find_spec(package) is None:
            pytest.skip(f"needs {package}")
    monkeypatch.chdir(tmp_path)
    before = np.geterr()
    actual = deployment.measure_deployment(dataset, None, 1, 0, tmp_path)
    assert np.geterr() == before
    assert not (tmp_path / "tmp").exists()
    assert actual.skipped == []
    runtimes = [(row.model.split(" ")[0], row.runtime) for row in actual.rows]
    ours = [*deployed_networks.EXPORTS, "ONNX Runtime", "PyTorch", "predict, Python"]
    assert runtimes == [
        *(("ours", runtime) for runtime in ours),
        *(
            ("random", runtime)
            for runtime in ("C by m2cgen", "C by emlearn", "C++ by micromlgen", "predict, Python")
        ),
        *(("MLP", runtime) for runtime in ("C by emlearn", "predict, Python")),
        *(("logistic", runtime) for runtime in ("C by m2cgen", "predict, Python")),
    ]
    for row in actual.rows:
        assert row.microseconds > 0
        quantised = "int" in row.runtime or row.runtime == "C by emlearn"
        assert row.agreement >= (0.85 if quantised else 0.99), row
        assert (row.n_bytes is not None) == (row.runtime.startswith("C") or row.runtime == "ONNX Runtime")
    assert actual.markdown().count("\n") == len(actual.rows) + 3


def test_without_a_compiler_one_line_says_so(small, monkeypatch, tmp_path):
    monkeypatch.setattr(runtimes, "find_compiler", lambda: None)
    monkeypatch.setattr(runtimes, "has", lambda name: name != "onnxruntime")
    actual = deployment.measure_deployment("breast_cancer", None, 1, 0, tmp_path)
    assert {row.runtime for row in actual.rows} == {"PyTorch", "predict, Python"}
    assert actual.skipped == [
        "C: no C compiler was found; install gcc or clang, or set CC",
        "This peer needs onnxruntime: pip install 'opgrow[onnx]'",
    ]


@needs_compiler
def test_what_is_not_installed_or_does_not_compile_is_named(small, monkeypatch, tmp_path):
    monkeypatch.setattr(runtimes, "has", lambda name: name == "m2cgen")
    monkeypatch.setattr(deployed_peers, "_TWO", "int model_predict(const double *x) { return nothing; }")
    pytest.importorskip("m2cgen")
    actual = deployment.measure_deployment("breast_cancer", None, 1, 0, tmp_path)
    named = [line.split(":")[0] for line in actual.skipped]
    needed = [f"This peer needs {name}" for name in ("onnx", "torch", "emlearn", "micromlgen")]
    assert named == [*needed, "logistic regression, C by m2cgen"]


def test_numbers_and_json_from_the_command_line(small, monkeypatch):
    monkeypatch.setattr(runtimes, "find_compiler", lambda: None)
    result = CliRunner().invoke(app, ["deploy", "--repeats", "1", "--json"])
    assert result.exit_code == 0, result.exception
    assert "left out: C: no C compiler was found" in result.stderr
    actual = json.loads(result.stdout)
    assert actual["dataset"] == "breast_cancer"
    assert {"model", "runtime", "accuracy", "n_bytes", "microseconds", "agreement"} == set(actual["rows"][0])


def test_regression_is_refused(small):
    result = CliRunner().invoke(app, ["deploy", "--dataset", "diabetes"])
    assert isinstance(result.exception, ValueError)
    assert "is a data set for regression" in str(result.exception)


@pytest.mark.parametrize("model", [LogisticRegression(max_iter=1000), MLPClassifier((5,), max_iter=500)])
def test_a_scaler_goes_into_the_weights(model):
    x, y = load_wine(return_X_y=True)
    pipeline = deployed_peers.scaled(model).fit(x, y)
    np.testing.assert_allclose(
        deployed_peers.on_raw_inputs(pipeline).predict_proba(x), pipeline.predict_proba(x), atol=1e-6
    )


@needs_compiler
@pytest.mark.parametrize(("kind", "bits"), [("float", (0,)), ("double", (0,)), ("int32_t", (4, 1))])
def test_a_program_hands_over_its_rows(kind, bits, tmp_path):
    source = tmp_path / "model.c"
    source.write_text(
        f"#include <stdint.h>\nint first(const {kind} *x);\nint first(const {kind} *x)\n"
        "{\n    return (int)(x[0] + 100 * x[1]);\n}\n"
    )
    x = np.array([[1, 2], [3, 4]], np.float32)
    program = build(CFunction(source, "first", kind, bits), x, find_compiler())
    factors = np.array([2 ** bits[0], 2 ** bits[-1]])
    assert program.labels().tolist() == (x * factors @ [1, 100]).astype(int).tolist()
    assert program.seconds() > 0
    assert 0 < program.n_bytes < 1000
