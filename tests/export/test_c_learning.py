"""Exported programs that learn on predict as `partial_fit` does, for long streams and strange rows, too."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris

import opgrow
from opgrow import export_c
from opgrow.closed_form.running_ridge import RunningRidge
from opgrow.export.c_size import c_size
from tests.export.compiled import COMPILER, FLAGS, needs_compiler
from tests.export.learner import Learner

#: How far probabilities, and predictions in deviations of the target, may be from those of `partial_fit`; and
#: where few rows are remembered, as penalties fade like these.
TOLERANCE, FORGETFUL = 5e-3, 1e-2
MODELS = {
    "compact": (opgrow.HeMLGOPClassifier, {"preset": "compact"}),
    "bls": (opgrow.BLSClassifier, {"max_neurons": 40}),
    "pmlp": (opgrow.PMLPClassifier, {}),
    "regressor": (opgrow.HeMLGOPRegressor, {"preset": "compact"}),
}

pytestmark = needs_compiler


def rows_of(classifies: bool) -> tuple[np.ndarray, np.ndarray]:
    """Rows in an order of chance, which single precision holds."""
    x, y = (load_breast_cancer if classifies else load_diabetes)(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(x))
    return np.float64(np.float32(x[order])), y[order]


def taught(key: str, n_rows: int = 150, **changes: Any) -> tuple[Any, np.ndarray, np.ndarray]:
    """A model that has learned the first rows, and all rows."""
    cls, parameters = MODELS[key]
    x, y = rows_of(cls.__name__.endswith("Classifier"))
    model = cls(random_state=0, **parameters, **changes)
    return model.partial_fit(x[:n_rows], y[:n_rows]), x, y


def assert_says_the_same(
    learner: Learner, model: Any, x: np.ndarray, spread: float = 1.0, tolerance: float = TOLERANCE
) -> None:
    """Scores agree, and labels do where the two most probable classes differ by more than that."""
    if not learner.classifies:
        assert np.abs(learner.scores(x)[:, 0] - model.predict(x)).max() < tolerance * spread
        return
    wanted = model.predict_proba(x)
    assert np.abs(learner.scores(x) - wanted).max() < tolerance
    first, second = np.sort(wanted, axis=1)[:, :-3:-1].T
    differ = model.classes_[learner.predict(x)] != model.predict(x)
    assert not differ[first - second > 2 * tolerance].any()
    assert differ.mean() <= 0.01


@pytest.mark.parametrize("forgetting", [1.0, 0.998])
@pytest.mark.parametrize("key", MODELS)
def test_it_learns_as_partial_fit_does(key: str, forgetting: float, tmp_path: Path) -> None:
    model, x, y = taught(key, forgetting=forgetting)
    learner = Learner(model, tmp_path)
    assert_says_the_same(learner, model, x[300:], y.std())
    before = learner.scores(x[300:])
    assert set(learner.learn(x[150:300], y[150:300])) == {1}
    model.partial_fit(x[150:300], y[150:300])
    assert_says_the_same(learner, model, x[300:], y.std())
    assert np.abs(learner.scores(x[300:]) - before).max() > 0.02 * (1 if learner.classifies else y.std())


def test_the_macro_forgets_as_the_parameter_does(tmp_path: Path) -> None:
    model, x, y = taught("compact")
    learner = Learner(model, tmp_path, "-DMODEL_FORGETTING=0.98f")
    learner.learn(x[150:300], y[150:300])
    model.set_params(forgetting=0.98).partial_fit(x[150:300], y[150:300])
    assert_says_the_same(learner, model, x[300:], tolerance=FORGETFUL)


def test_small_weights_learn_on_as_well(tmp_path: Path) -> None:
    model, x, y = taught("compact")
    learner = Learner(model, tmp_path, weights="int16")
    learner.learn(x[150:300], y[150:300])
    assert_says_the_same(learner, model.partial_fit(x[150:300], y[150:300]), x[300:])


@pytest.mark.filterwarnings("ignore::opgrow.RangeWarning")
@pytest.mark.parametrize("key", ["bls", "regressor"])
def test_after_fit_it_begins_with_what_the_sample_says(key: str, tmp_path: Path) -> None:
    cls, parameters = MODELS[key]
    x, y = rows_of(key == "bls")
    model = cls(random_state=0, **parameters).fit(x[:200], y[:200])
    own = model.predict(x[200:])
    learner = Learner(model, tmp_path)
    assert (model.predict(x[200:]) == own).all()
    assert model.running_ is None
    assert_says_the_same(learner, model.with_sums(), x[200:], y.std())
    learner.learn(x[200:300], y[200:300])
    assert_says_the_same(learner, model.partial_fit(x[200:300], y[200:300]), x[300:], y.std())


def test_several_targets_of_any_size(tmp_path: Path) -> None:
    x, y = rows_of(classifies=False)
    y = np.float32(np.stack([1e6 + y, -1e-3 * y], axis=1))
    model = opgrow.HeMLGOPRegressor(preset="compact", random_state=0).partial_fit(x[:150], y[:150])
    learner = Learner(model, tmp_path)
    learner.n_outputs = 2
    learner.learn(x[150:300], y[150:300])
    wanted = model.partial_fit(x[150:300], y[150:300]).predict(x[300:])
    assert (np.abs(learner.scores(x[300:]) - wanted).max(axis=0) < 2 * TOLERANCE * y.std(axis=0)).all()


def test_outputs_have_no_limits_where_the_network_has_none(tmp_path: Path) -> None:
    """As in networks from older model files."""
    model, x, y = taught("regressor")
    model.network_.output_low = model.network_.output_high = None
    learner = Learner(model, tmp_path)
    learner.learn(x[150:300], 3 * y[150:300])
    model.partial_fit(x[150:300], 3 * y[150:300])
    assert_says_the_same(learner, model, x[300:], 3 * y.std())


@pytest.mark.parametrize("key", ["compact", "regressor"])
def test_rows_that_the_model_would_refuse_leave_the_state_as_it_was(key: str, tmp_path: Path) -> None:
    model, x, y = taught(key)
    learner = Learner(model, tmp_path)
    before = learner.state.tobytes()
    for value in (np.nan, np.inf, -np.inf):
        strange = x[:1].copy()
        strange[0, 3] = value
        assert learner.learn(strange, y[:1]) == [0]
    for target in [-1, 2] if learner.classifies else [np.nan, np.inf]:
        assert learner.learn(x[:1], np.array([target])) == [0]
    assert learner.state.tobytes() == before
    assert learner.learn(x[:1], y[:1]) == [1]
    assert learner.state.tobytes() != before
    assert np.isnan(learner.scores(np.full_like(x[:1], np.nan))).all()
    if learner.classifies:
        assert learner.predict(np.full_like(x[:1], np.nan)).tolist() == [-1]


def test_far_rows_do_as_little_as_in_partial_fit(tmp_path: Path) -> None:
    model, x, y = taught("compact")
    learner = Learner(model, tmp_path)
    far = np.concatenate([np.full_like(x[:2], 1e30), -x[:3] * 1e20, x[150:200]])
    labels = np.concatenate([y[:5], y[150:200]])
    learner.learn(far, labels)
    assert np.isfinite(learner.state).all()
    assert_says_the_same(learner, model.partial_fit(far, labels), x[200:])


@pytest.mark.parametrize("forgetting", [1.0, 0.999])
def test_a_long_stream_stays_with_the_sums_in_double_precision(forgetting: float, tmp_path: Path) -> None:
    """10^5 rows with inputs that nearly repeat each other: what docs/deployment-c.md says of the error."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(101_000, 6)).astype(np.float32)
    x[:, 5] = x[:, 4] + 0.01 * x[:, 5]
    y = (np.sin(2 * x[:, 0]) + x[:, 1] * x[:, 2] + 0.3 * rng.normal(size=len(x)) > 0).astype(int)
    model = opgrow.HeMLGOPClassifier(preset="compact", forgetting=forgetting, buffer_rows=0, random_state=0)
    model.partial_fit(x[:500], y[:500])
    learner = Learner(model, tmp_path)
    assert set(learner.learn(x[500:-500], y[500:-500])) == {1}
    network, running = model.network_, model.running_
    sums = RunningRidge.start(network.head_width, 2).extended(
        network.features(x[:-500]), np.eye(2)[y[:-500]], np.ones(len(x) - 500), forgetting
    )
    head = sums.solve(running.ridge)
    logits = running.factor * (network.features(x[-500:]) @ head.weight + head.intercept)
    wanted = 1 / (1 + np.exp(logits[:, 0] - logits[:, 1]))
    error = np.abs(learner.scores(x[-500:])[:, 1] - wanted).max()
    print(f"forgetting {forgetting}: largest error of a probability {error:.1e}")
    assert error < (1e-3 if forgetting == 1 else TOLERANCE)
    diagonal = learner.state[: network.head_width + 1]
    assert (diagonal > 0).all()


def test_a_row_that_repeats_itself_does_no_harm(tmp_path: Path) -> None:
    """With forgetting and nothing new, filters of covariances grow without bounds."""
    model, x, y = taught("compact", forgetting=0.9)
    learner = Learner(model, tmp_path)
    learner.learn(np.repeat(x[:1], 5000, axis=0), np.repeat(y[:1], 5000))
    assert np.isfinite(learner.state).all()
    assert learner.predict(x[:1]).tolist() == [y[0]]
    learner.learn(x[:400], y[:400])
    assert np.isfinite(learner.scores(x)).all()
    assert (learner.predict(x[400:]) == y[400:]).mean() > 0.8


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
@pytest.mark.parametrize("key", ["compact", "regressor", "bls"])
def test_compilers_have_no_remarks(key: str, compiler: str, tmp_path: Path) -> None:
    if shutil.which(compiler) is None:
        pytest.skip(f"needs {compiler}")
    model, *_ = taught(key)
    for weights in ("float32", "int8"):
        export_c(model, tmp_path / "model.c", learn=True, weights=weights, min_agreement=0)
        for level in ("-Os", "-O3"):
            command = [compiler, *FLAGS, level, "-c", "model.c", "-o", "model.o"]
            done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
            assert (done.returncode, done.stderr) == (0, "")


_DRIVER = """\
#include <stdio.h>
#include <stdlib.h>

#include "model.h"

int main(void)
{
    model_state *state = malloc(sizeof *state);
    float x[MODEL_N_INPUTS];
    int label;
    model_start(state);
    while (fread(x, sizeof x, 1, stdin) == 1 && fread(&label, sizeof label, 1, stdin) == 1) {
        model_learn(state, x, label);
    }
    fwrite(state, sizeof *state, 1, stdout);
    free(state);
    return 0;
}
"""


def test_nothing_is_read_or_written_that_is_not_its_own(tmp_path: Path) -> None:
    model, x, y = taught("compact", forgetting=0.99)
    learner = Learner(model, tmp_path, "-ffp-contract=off")
    (tmp_path / "main.c").write_text(_DRIVER)
    x[160, 2] = np.nan
    sanitize = ["-fsanitize=address,undefined,float-divide-by-zero", "-fno-sanitize-recover=all"]
    build = [
        COMPILER,
        "-std=c99",
        "-g",
        "-O1",
        "-ffp-contract=off",
        *sanitize,
        "main.c",
        "model.c",
        "-o",
        "run",
    ]
    done = subprocess.run(build, cwd=tmp_path, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip("the compiler has no sanitizers")
    given = b"".join(
        np.float32(row).tobytes() + np.int32(label).tobytes() for row, label in zip(x, y, strict=True)
    )
    run = subprocess.run([tmp_path / "run"], input=given, capture_output=True, check=False)
    assert (run.returncode, run.stderr) == (0, b"")
    learner.learn(x, y)
    assert run.stdout == learner.state.tobytes()


def test_the_code_is_small_and_calls_no_library(tmp_path: Path) -> None:
    model, *_ = taught("compact")
    sizes = []
    for learn in (False, True):
        export_c(model, tmp_path / "model.c", learn=learn)
        size = c_size(tmp_path / "model.c")
        assert size is not None
        sizes.append(size)
    assert sizes[1].code - sizes[0].code < 2000
    command = [COMPILER, "-std=c99", "-Os", "-c", "model.c", "-o", "model.o"]
    subprocess.run(command, cwd=tmp_path, check=True)
    listing = subprocess.run(
        ["nm", "-u", "model.o"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    called = {line.split()[-1].lstrip("_") for line in listing.stdout.splitlines()}
    assert called <= {"memcpy", "memset", "stack_chk_fail", "GLOBAL_OFFSET_TABLE_"}


def test_without_learn_nothing_is_there(tmp_path: Path) -> None:
    model = opgrow.HeMLRNClassifier(n_min=6, max_layers=1, random_state=0).fit(*load_iris(return_X_y=True))
    export_c(model, tmp_path / "model.c")
    for ending in (".c", ".h"):
        text = (tmp_path / f"model{ending}").read_text()
        assert "state" not in text.replace("no state", "")
        assert "FORGETTING" not in text
