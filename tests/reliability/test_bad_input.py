"""A table of wrong input: what is called, which exception it raises, and the sentence.

Here stands what no other test of a part has: `test_cli`, `test_data`, `test_estimators` and the others hold
the cases that belong to what they test.
"""

from __future__ import annotations

import re
from collections.abc import Callable as Function
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.exceptions import NotFittedError
from typer.testing import CliRunner

import opgrow
from opgrow import (
    PERCEPTRON,
    Block,
    HeMLGOPClassifier,
    HeMLRNClassifier,
    HeMLRNRegressor,
    Layer,
    Network,
    PMLPClassifier,
    POPMemOClassifier,
    operators,
)
from opgrow.cli import app
from opgrow.estimators import files as persistence
from opgrow.estimators.listeners import Callback, MaxParameters, MaxSeconds
from opgrow.report import write_report
from opgrow.rows import datasets
from opgrow.rows.tables import Table, TableEncoder, infer_task

QUICK: dict[str, Any] = {
    "preset": None,
    "n_min": 4,
    "max_layers": 1,
    "fine_tune_epochs": 0,
    "operators": [("multiplication", "sum", "tanh")],
    "n_jobs": 1,
    "random_state": 0,
}
N = 20
HUGE = 10**400


def classifier(**changes: Any) -> HeMLRNClassifier:
    return HeMLRNClassifier(**(QUICK | changes))


def regressor(**changes: Any) -> HeMLRNRegressor:
    return HeMLRNRegressor(**(QUICK | changes))


def put(y: Any, value: Any) -> list[Any]:
    """The same targets, the first of them another."""
    return [value, *y.tolist()[1:]]


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> SimpleNamespace:
    """Good input, and models that were fitted on it, which the cases spoil."""
    folder = tmp_path_factory.mktemp("bad")
    x = np.random.default_rng(0).normal(size=(N, 3))
    y = (x[:, 0] > 0).astype(int)
    return SimpleNamespace(
        x=x,
        y=y,
        clf=classifier().fit(x, y),
        reg=regressor().fit(x, x[:, 0]),
        encoder=TableEncoder().fit({"a": [1.0, 2.0], "b": ["x", "y"]}),
        path=folder / "out.c",
        folder=folder,
    )


class Wide(Callback):
    max_parameters = "many"  # type: ignore[assignment]


def refused(*cases: tuple[Function[[Any], Any], type[Exception], str]) -> Any:
    """Each case as a test of its own, under its sentence."""
    return pytest.mark.parametrize(
        ("call", "error", "sentence"), [pytest.param(*case, id=case[2][:60]) for case in cases]
    )


def check(call: Function[[Any], Any], error: type[Exception], sentence: str, given: Any) -> None:
    """Sentences are exact, but for "..." which stands for anything."""
    before = sorted(path.name for path in given.folder.iterdir())
    with pytest.raises(error) as caught:
        call(given)
    assert type(caught.value) in (error, opgrow.common.errors.NotFiniteError) or issubclass(error, OSError)
    assert re.fullmatch(".*".join(map(re.escape, sentence.split("..."))), str(caught.value), re.DOTALL)
    assert sorted(path.name for path in given.folder.iterdir()) == before


# --- what estimators are given ---


@refused(
    (lambda g: classifier().fit(g.x + 1j, g.y), ValueError, "Complex data not supported..."),
    (
        lambda g: classifier().fit([[HUGE] * 3] * N, g.y),
        ValueError,
        "an integer is too large to become a float",
    ),
    (lambda g: g.clf.predict([[HUGE] * 3]), ValueError, "an integer is too large to become a float"),
    (
        lambda g: classifier().fit([["red", 1.0, 2.0]] * N, g.y),
        ValueError,
        "There is no column to learn from: 'x0', all rows have the same value, 'red'.",
    ),
    (
        lambda g: classifier(table="text").fit(g.x, g.y),
        ValueError,
        "table must be a TableEncoder or None, got 'text'",
    ),
    (
        lambda g: classifier(table=TableEncoder(many="hash")).fit([["red", 1.0]] * N, g.y),
        ValueError,
        "many must be 'target' or 'pool', got 'hash'.",
    ),
    (
        lambda g: g.clf.predict(g.x[:, :2]),
        ValueError,
        "X has 2 features, but HeMLRNClassifier is expecting 3...",
    ),
    (lambda g: g.clf.predict_proba(g.x[0]), ValueError, "Expected 2D array, got 1D array instead..."),
    (
        lambda g: classifier().predict(g.x),
        NotFittedError,
        "This HeMLRNClassifier instance is not fitted yet...",
    ),
    (lambda g: classifier().plot(), NotFittedError, "This HeMLRNClassifier is not fitted: call fit first."),
)
def test_inputs(call, error, sentence, given):
    check(call, error, sentence, given)


MISSING = "y has missing values (None or NaN): fill them in or leave their rows out"


@refused(
    (lambda g: classifier().fit(g.x, put(g.y, None)), ValueError, MISSING),
    (lambda g: regressor().fit(g.x, np.array(put(g.y, None), object)), ValueError, MISSING),
    (lambda g: classifier().fit(g.x, pd.Series(["a", None] * 10, dtype="string")), ValueError, MISSING),
    (lambda g: classifier().fit(g.x, pd.Series(["a", float("nan")] * 10, dtype=object)), ValueError, MISSING),
    (
        lambda g: classifier().fit(g.x, put(g.y, "a")),
        ValueError,
        "y has text and numbers, such as 'a' and ...: make all of them text",
    ),
    (
        lambda g: classifier().fit(g.x, np.array(put(g.y, "a"), object)),
        ValueError,
        "y has text and numbers, such as 'a' and ...: make all of them text",
    ),
    (lambda g: classifier().fit(g.x, g.x[:, 0]), ValueError, "Unknown label type: continuous..."),
    (
        lambda g: classifier().fit(g.x, np.array(["no"] * N)),
        ValueError,
        "HeMLRNClassifier needs at least 2 classes, got 1 class: 'no'",
    ),
    (
        lambda g: regressor().fit(g.x, ["tall"] * N),
        ValueError,
        "y holds text, such as 'tall': regression needs numbers",
    ),
    (lambda g: regressor().fit(g.x, put(g.y, HUGE)), ValueError, "an integer is too large to become a float"),
    (lambda g: regressor().fit(g.x, np.arange(N).astype("datetime64[D]")), ValueError, "dates or times..."),
    (
        lambda g: regressor().fit(g.x, 1.7e308 * (-1.0) ** np.arange(N)),
        ValueError,
        "the values of y are too large: column 0 reaches 1.7e+308; rescale it",
    ),
    (lambda g: classifier().fit(g.x, g.y[:5]), ValueError, "Found input variables with inconsistent..."),
    (lambda g: g.clf.score(g.x, g.x[:, 0]), ValueError, "Classification metrics can't handle a mix..."),
    (lambda g: g.reg.score(g.x, np.full(N, np.nan)), ValueError, "Input contains NaN."),
)
def test_targets(call, error, sentence, given):
    check(call, error, sentence, given)


@refused(
    (
        lambda g: classifier().fit(g.x, g.y, sample_weight=[HUGE] * N),
        ValueError,
        "an integer is too large to become a float",
    ),
    (
        lambda g: classifier().fit(g.x, g.y, sample_weight=-g.y),
        ValueError,
        "Negative values in data passed...",
    ),
    (
        lambda g: classifier().fit(g.x, g.y, np.ones(5)),
        ValueError,
        "sample_weight.shape == (5,), expected (20,)!",
    ),
    (lambda g: classifier().fit(g.x, g.y, ["a"] * N), ValueError, "could not convert string to float: 'a'"),
    (
        lambda g: classifier().fit(g.x, g.y, np.arange(N).astype("datetime64[D]")),
        ValueError,
        "dates or times (datetime64[D]) are no numbers...",
    ),
    (
        lambda g: classifier(class_weight={0: 0, 1: 1}).fit(g.x, g.y, (g.y == 0).astype(float)),
        ValueError,
        "sample_weight and class_weight together leave no row with a weight",
    ),
    *(
        (
            lambda g, weight=weight: classifier(class_weight={0: weight}).fit(g.x, g.y),
            ValueError,
            f"class weights must be finite, at least 0 and not all 0, got {{0: {weight!r}}}",
        )
        for weight in ("heavy", None, [1], True, -1, float("nan"), 10**310)
    ),
)
def test_weights(call, error, sentence, given):
    check(call, error, sentence, given)


def with_eval_set(make: Function[[Any], Any]) -> Function[[Any], Any]:
    return lambda g: classifier().fit(g.x, g.y, eval_set=make(g))


@refused(
    (with_eval_set(lambda g: (g.x,)), ValueError, "eval_set must be a pair (X, y), got tuple of 1"),
    (with_eval_set(lambda g: (g.x, g.y, g.y)), ValueError, "eval_set must be a pair (X, y), got tuple of 3"),
    (with_eval_set(lambda g: [(g.x, g.y)] * 2), ValueError, "eval_set must be a pair (X, y), got list of 2"),
    (with_eval_set(lambda g: g.x), ValueError, "eval_set must be a pair (X, y), got ndarray"),
    (with_eval_set(lambda g: "rows"), ValueError, "eval_set must be a pair (X, y), got str"),
    (
        with_eval_set(lambda g: (g.x[:, :2], g.y)),
        ValueError,
        "eval_set: X has 2 features, but HeMLRNClassifier is expecting 3 features as input.",
    ),
    (with_eval_set(lambda g: (g.x[:0], g.y[:0])), ValueError, "eval_set: Found array with 0 sample(s)..."),
    (
        with_eval_set(lambda g: (g.x, g.y[:3])),
        ValueError,
        "eval_set: Found input variables with inconsistent...",
    ),
    (
        with_eval_set(lambda g: (g.x * np.nan, g.y)),
        ValueError,
        "eval_set: its X is a table with text, dates or gaps, and the X to fit has numbers alone",
    ),
    (with_eval_set(lambda g: (g.x, put(g.y, None))), ValueError, f"eval_set: {MISSING}"),
    (
        with_eval_set(lambda g: (g.x, g.y + 5)),
        ValueError,
        "eval_set has classes that y does not have: [5, 6]",
    ),
    (
        lambda g: regressor().fit(g.x, g.x[:, 0], eval_set=(g.x, ["a"] * N)),
        ValueError,
        "eval_set holds text, such as 'a': regression needs numbers",
    ),
    (
        lambda g: regressor().fit(g.x, g.x[:, 0], eval_set=(g.x, g.x)),
        ValueError,
        "eval_set has 3 targets, but y has 1",
    ),
)
def test_validation_data(call, error, sentence, given):
    check(call, error, sentence, given)


# --- parameters ---


def parameter(cls: Any, **wrong: Any) -> Function[[Any], Any]:
    known = {name: value for name, value in QUICK.items() if name in cls._get_param_names()}
    return lambda g: cls(**(known | wrong)).fit(g.x, g.y)


def no_optimiser(groups: Any) -> list[Any]:
    return list(groups)


@refused(
    *(
        (parameter(cls, standardize=value), ValueError, f"standardize must be True or False, got {value!r}")
        for cls in (HeMLGOPClassifier, PMLPClassifier)
        for value in ("no", None, 1)
    ),
    (
        parameter(HeMLGOPClassifier, share_draws="no"),
        ValueError,
        "share_draws must be True or False, got 'no'",
    ),
    *(
        (
            parameter(HeMLGOPClassifier, verbose=v),
            ValueError,
            f"verbose must be an integer of at least 0, got {v!r}",
        )
        for v in ("yes", -1, 0.5, None)
    ),
    *(
        (
            parameter(HeMLGOPClassifier, **{name: 10**30}),
            ValueError,
            f"{name} must be an integer of at least {least} and at most 2147483647{more}, got {10**30}",
        )
        for name, least, more in (
            ("n_draws", 1, ""),
            ("n_min", 1, " or 'auto'"),
            ("max_parameters", 1, ""),
            ("fine_tune_epochs", 0, " or 'auto'"),
            ("patience", 1, " or None"),
            ("batch_size", 1, " or 'auto'"),
        )
    ),
    *(
        (
            parameter(HeMLGOPClassifier, **{name: value}),
            ValueError,
            f"{name} must be a number or a sequence of numbers, each {rule}, got {value!r}",
        )
        for name, value, rule in (
            ("ridge", b"x", "positive"),
            ("ridge", 10**400, "positive"),
            ("ridge", np.array(1.0), "positive"),
            ("weight_range", 1e13, "positive and at most 1e+12"),
            ("weight_range", [1.0, None], "positive and at most 1e+12"),
            ("dropout", b"x", "in [0, 1)"),
        )
    ),
    (
        parameter(HeMLGOPClassifier, learning_rates=b"x"),
        ValueError,
        "learning_rates must be 'auto', a number or a sequence of numbers, each at least 0, got b'x'",
    ),
    (
        parameter(HeMLGOPClassifier, epochs=b"x"),
        ValueError,
        "epochs must be a sequence of integers of at least 0...",
    ),
    (
        parameter(HeMLGOPClassifier, epochs=(1, 10**30)),
        ValueError,
        "epochs must be a sequence of integers...",
    ),
    *(
        (
            parameter(PMLPClassifier, widths=v),
            ValueError,
            f"widths must be a sequence of integers of at least 1, got {v!r}",
        )
        for v in (b"x", (10**30,), np.array([[3]]), "40", (), (True,))
    ),
    (
        parameter(POPMemOClassifier, memory_ridge=10**400),
        ValueError,
        f"memory_ridge must be a number in [1e-12, 1e+12], got {10**400}",
    ),
    *(
        (
            parameter(cls, optimizer=no_optimiser),
            ValueError,
            "optimizer must return a torch optimiser, and returned a list",
        )
        for cls in (HeMLGOPClassifier, POPMemOClassifier)
    ),
    (
        parameter(HeMLGOPClassifier, callbacks=[Wide()]),
        ValueError,
        "max_parameters of Wide must be an integer of at least 1, got 'many'",
    ),
    (
        parameter(HeMLGOPClassifier, callbacks=[Callback]),
        ValueError,
        "callbacks must be None or a list of opgrow.Callback objects, got [...]",
    ),
    (parameter(HeMLGOPClassifier, random_state=-1), ValueError, "Seed must be between 0 and 2**32 - 1"),
    (parameter(HeMLGOPClassifier, random_state="x"), ValueError, "'x' cannot be used to seed a numpy..."),
    (lambda g: MaxSeconds(float("nan")), ValueError, "max_seconds must be a positive number, got nan"),
    (lambda g: MaxParameters(True), ValueError, "max_parameters must be an integer of at least 1, got True"),
    (
        lambda g: HeMLGOPClassifier.paper("medium"),
        ValueError,
        "scale must be 'small' or 'large', got 'medium'",
    ),
)
def test_parameters(call, error, sentence, given):
    check(call, error, sentence, given)


# --- files ---


@refused(
    (lambda g: g.clf.save(None), TypeError, "...os.PathLike object, not NoneType"),
    (lambda g: g.clf.save(g.folder), ValueError, "'...' is not a file that can be replaced."),
    (
        lambda g: g.clf.save(g.folder / "no" / "m.safetensors"),
        FileNotFoundError,
        "There is no folder '...no'.",
    ),
    (
        lambda g: persistence.save(HeMLRNClassifier, g.path.with_suffix(".safetensors")),
        TypeError,
        "Only opgrow's own estimators can be saved, and pipelines that end in one, "
        "got the class HeMLRNClassifier.",
    ),
    (lambda g: opgrow.load(g.folder), ValueError, "'...' is a folder: expected a model file."),
    (lambda g: opgrow.load(3), TypeError, "...os.PathLike object, not int"),
    (lambda g: g.clf.export_c(g.path, name=3), ValueError, "name 3 cannot begin the names of C functions..."),
    (
        lambda g: g.clf.export_c(g.path, weights="int2"),
        ValueError,
        "weights must be one of 'float32', 'int16', 'int8', 'int4', got 'int2'.",
    ),
    (
        lambda g: opgrow.export_c(g.clf, g.path, features=["a"]),
        ValueError,
        "features has 1 names, and the model takes 3.",
    ),
    (
        lambda g: g.clf.export_c(g.path, arithmetic="integer", calibration=g.x[:0]),
        ValueError,
        "Found array with 0 sample(s)...",
    ),
    (
        lambda g: g.clf.export_c(g.folder / "out.txt"),
        ValueError,
        "The C file must end in '.c', got 'out.txt'.",
    ),
    (
        lambda g: g.clf.export_onnx(g.path.with_suffix(".onnx"), float16="yes"),
        ValueError,
        "float16 must be True or False, got 'yes'",
    ),
    (
        lambda g: opgrow.export_onnx(3, g.path),
        TypeError,
        "Only opgrow's own estimators can be exported, got int.",
    ),
    (
        lambda g: opgrow.export_onnx(g.clf, g.path.with_suffix(".onnx"), feature_names=["a"]),
        ValueError,
        "feature_names has 1 names, and the model takes 3 features.",
    ),
    (
        lambda g: g.clf.report(g.path.with_suffix(".html"), g.x, [None] * N),
        ValueError,
        "y_test holds the class ..., which the model does not know.",
    ),
    (
        lambda g: g.clf.report(g.path.with_suffix(".html"), g.x, g.y + 5),
        ValueError,
        "y_test holds the class ..., which the model does not know.",
    ),
    (
        lambda g: g.reg.report(g.path.with_suffix(".html"), g.x, np.full(N, np.nan)),
        ValueError,
        "Input y_test contains NaN.",
    ),
    (
        lambda g: write_report(g.clf, g.path.with_suffix(".html"), feature_names=["a"]),
        ValueError,
        "feature_names must have 3 names, one for each, got 1",
    ),
    (
        lambda g: g.clf.plot().save(g.folder / "net.png"),
        ValueError,
        "A drawing is written to a file that ends in .svg, got '...net.png'.",
    ),
)
def test_saving_and_exporting(call, error, sentence, given):
    check(call, error, sentence, given)


@refused(
    (
        lambda g: Table.from_any({"a": [HUGE]}),
        ValueError,
        "Column 'a' holds an integer that is too large for a float.",
    ),
    (
        lambda g: Table.from_matrix(np.ones(3)),
        ValueError,
        "A matrix has rows and columns, got a value of type ndarray and shape (3,).",
    ),
    (
        lambda g: Table.from_any({"a": [[1]]}),
        ValueError,
        "Column 'a' must hold numbers or text, got a value of type list.",
    ),
    (
        lambda g: infer_task([None]),
        ValueError,
        "The task cannot be inferred from a target without any value.",
    ),
    (
        lambda g: g.encoder.transform({"a": [1e39], "b": ["x"]}),
        ValueError,
        "Column 'a' holds 1e+39, which does not fit into single precision: rescale it...",
    ),
    (
        lambda g: TableEncoder().fit({"a": [1e-50, 0.0]}),
        ValueError,
        "Column 'a' holds nothing above 1e-50, which is lost in single precision: rescale it.",
    ),
    (
        lambda g: g.encoder.transform({"a": ["one"], "b": ["x"]}),
        ValueError,
        "Column 'a' held numbers when the encoder was fitted, and now holds the text 'one'.",
    ),
    (lambda g: datasets.load(b"iris"), TypeError, "The name of a data set is text, got b'iris'."),
    (lambda g: datasets.load(g.folder), ValueError, "There is no data set '...': expected digits, ..."),
    (lambda g: datasets.available(3), TypeError, "...os.PathLike object, not int"),
)
def test_tables_and_data_sets(call, error, sentence, given):
    check(call, error, sentence, given)


# --- networks and operators ---


@refused(
    *(
        (
            lambda g, size=size: Block(size, 3, PERCEPTRON),
            ValueError,
            f"n_inputs must be an integer of at least 1, got {size!r}",
        )
        for size in (-1, 0, 2.5, "a", None, True)
    ),
    (lambda g: Block(3, 0, PERCEPTRON), ValueError, "n_neurons must be an integer of at least 1, got 0"),
    (lambda g: Block(3, 3, "perceptron"), TypeError, "operator_set must be an OperatorSet, got 'perceptron'"),
    (lambda g: Network(3, 0), ValueError, "n_outputs must be an integer of at least 1, got 0"),
    (lambda g: Network(3, 2, [3]), TypeError, "layers must be a list of Layers, got [3]"),
    (
        lambda g: Network(3, 2, Layer([Block(3, 3, PERCEPTRON)])),
        TypeError,
        "layers must be a list of Layers, got ...",
    ),
    (
        lambda g: opgrow.operator_sets(nodal="gaussian"),
        ValueError,
        "nodal must be a list of names, got 'gaussian'",
    ),
    (lambda g: opgrow.operator_sets(pool=None), ValueError, "pool must be a list of names, got None"),
    (
        lambda g: opgrow.register_activation("tanh", torch.tanh),
        ValueError,
        "activation operator 'tanh' is already registered",
    ),
    (
        lambda g: opgrow.register_activation("new", torch.tanh, flops="x"),
        ValueError,
        "flops of activation operator 'new' must be a number, got 'x'",
    ),
    (
        lambda g: operators.library(b"paper"),
        ValueError,
        "operators holds OperatorSets or (nodal, pool, activation) triples, got 112",
    ),
)
def test_networks_and_operators(call, error, sentence, given):
    check(call, error, sentence, given)


# --- the command line ---


TABLES = {
    "good.csv": "a,b,kind\n" + "".join(f"{i % 7},{i % 5},{'yes' if i % 2 else 'no'}\n" for i in range(40)),
    "numbers.csv": "a,b,y\n" + "".join(f"{i % 7},{i % 5},{i}.5\n" for i in range(40)),
    "blank.csv": "\n \n",
    "header.csv": "a,b,kind\n",
    "quote.csv": 'a,b,kind\n"1,2,yes\n',
    "utf16.csv": "a,kind\n1,x\n".encode("utf-16"),
    "comment.csv": "# exported\na,b,kind\n1,2,yes\n",
    "infinite.csv": "a,kind\n" + "".join(f"{('inf', '1')[i % 2]},{'xy'[i % 2]}\n" for i in range(20)),
    "field.csv": "a,kind\n" + "x" * 200_000 + ",yes\n",
    "one.csv": "a,kind\n1,yes\n",
    "noise.npz": "no archive",
    "noise.parquet": "no table",
}
FIT = ["fit", "good.csv", "--target", "kind", "-o", "new.safetensors"]
SMALL = ["-p", "n_min=4", "-p", "max_layers=1", "-p", "fine_tune_epochs=0", "--method", "hemlrn", "-q"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("commands")
    for name, content in TABLES.items():
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    (folder / "folder.csv").mkdir()
    for table, target in (("good", "kind"), ("numbers", "y")):
        where = [str(folder / f"{table}.csv"), "--target", target, "-o", str(folder / f"{table}.safetensors")]
        operators = ["-p", 'operators=[["multiplication","correlation1","inverse_absolute"]]']
        assert CliRunner().invoke(app, ["fit", *where, *SMALL, *operators]).exit_code == 0
    return folder


def commands(*cases: tuple[str | list[str], str]) -> Any:
    split = [(words.split() if isinstance(words, str) else words, sentence) for words, sentence in cases]
    return pytest.mark.parametrize(
        ("words", "sentence"), [pytest.param(*case, id=" ".join(case[0])[:70]) for case in split]
    )


@commands(
    ("fit blank.csv", "'blank.csv' is empty: expected a header row and data rows."),
    ("fit header.csv", "'header.csv' has no data rows."),
    (
        "fit quote.csv --target kind",
        "Line ... of 'quote.csv' has 1 fields: expected 3, as many as the header.",
    ),
    ("fit utf16.csv", "'utf16.csv' is not UTF-8 text."),
    ("fit comment.csv", "Line 2 of 'comment.csv' has 3 fields: expected 1, as many as the header."),
    ("fit field.csv", "'field.csv' is not a CSV file (field larger than field limit (131072))."),
    (
        "fit folder.csv",
        "The folder 'folder.csv' holds no .parquet files, no .npz files and no X.npy (or X_1.npy, ...).",
    ),
    ("fit noise.npz", "'noise.npz' is not a NumPy file of plain arrays."),
    ("fit noise.parquet", "'noise.parquet' is not a Parquet file that can be read."),
    (
        "fit infinite.csv --target kind",
        "Column 'a' holds infinity or a value too large for dtype('float64'): leave out such rows.",
    ),
    (
        "fit one.csv --target kind",
        "'one.csv' has 1 row, and a fit needs at least 2.",
    ),
    ("fit good.csv --target kind -o good.csv", "'good.csv' is the table itself: name another with --output."),
    (
        "fit good.csv --target kind --validation numbers.csv -o numbers.csv",
        "'numbers.csv' is the table itself: name another with --output.",
    ),
    ([*FIT, "--validation", "numbers.csv"], "'numbers.csv' has no column 'kind': it has 'a', 'b', 'y'."),
    ([*FIT, "--seed", "-1"], "Seed must be between 0 and 2**32 - 1"),
    ([*FIT, "--seed", "one"], "Invalid value for '--seed': ..."),
    ([*FIT, "--jobs", "0"], "n_jobs must be None, -1 or an integer of at least 1, got 0"),
    ([*FIT, "--device", "gpu"], "device must be one of 'auto', 'cpu', 'cuda' or 'cuda:N', got 'gpu'"),
    ([*FIT, "--task", "ranking"], "Invalid value for '--task': ..."),
    ([*FIT, "--paper", "medium"], "Invalid value for '--paper': ..."),
    ([*FIT, "--param", "=3"], "--param takes KEY=VALUE, such as n_min=20, got '=3'"),
    ([*FIT, "--param", "standardize=no"], "standardize must be True or False, got 'no'"),
    (
        [*FIT, "--param", "ridge=1e400"],
        "ridge must be a number or a sequence of numbers, each positive, got inf",
    ),
    (
        [*FIT, "--param", 'class_weight={"yes": "a"}'],
        "class weights must be finite, at least 0 and not all 0, got {'yes': 'a'}",
    ),
    ([*FIT, "--param", "max_seconds=-1"], "max_seconds must be a positive number, got -1"),
    ([*FIT, "--report", "folder.csv"], "'...folder.csv' is not a file that can be replaced."),
    ([*FIT, "--report", "good.csv"], "'good.csv' is the table itself: name another with --report."),
    (
        "predict good.safetensors good.csv -o good.safetensors",
        "'good.safetensors' is the model file itself: name another with --output.",
    ),
    (
        "predict good.safetensors good.csv -o good.csv",
        "'good.csv' is the table itself: name another with --output.",
    ),
    ("predict good.safetensors header.csv", "'header.csv' has no data rows."),
    ("predict good.csv good.csv", "'good.csv' is not a complete safetensors file (...)."),
    ("evaluate numbers.safetensors good.csv", "'good.csv' has no column 'y': it has 'a', 'b', 'kind'."),
    (
        "evaluate numbers.safetensors good.csv --target kind",
        "The target 'kind' holds text: regression needs numbers.",
    ),
    (
        "evaluate good.safetensors good.csv --target a",
        "The target 'a' holds the class '0', which the model does not know: its classes are no, yes.",
    ),
    ("inspect folder.csv", "'folder.csv' is a folder: expected a model file."),
    ("inspect good.safetensors more", "Got unexpected extra argument(s) (more)"),
    ("export good.safetensors --format tflite", "Invalid value for '--format': ..."),
    ("export good.safetensors --format c --float16", "--float16 has no meaning for the format c."),
    ("export good.safetensors --format c --name 1x", "name '1x' cannot begin the names of C functions: ..."),
    ("export good.safetensors --format c -o out.h", "The output must end in '.c', got 'out.h'."),
    (
        "export good.safetensors -o folder.csv",
        "The output must end in '.onnx' or '.c' or '.wasm', got 'folder.csv'.",
    ),
    (
        "export good.safetensors --format c --min-agreement 2",
        "min_agreement must be a number from 0 to 1, got 2.0.",
    ),
    (
        "export good.safetensors --format c --arithmetic integer --calibration blank.csv",
        "'blank.csv' is empty: expected a header row and data rows.",
    ),
    ("report good.safetensors numbers.csv", "'numbers.csv' has no column 'kind': it has 'a', 'b', 'y'."),
    ("report good.safetensors --target kind", "--target names a column of a table, and no table was given."),
    (
        "report good.safetensors good.csv -o good.csv",
        "'good.csv' is the table itself: name another with --output.",
    ),
    ("demo --dataset header.csv", "'header.csv' has no data rows."),
    ("demo --dataset nothing", "There is no data set 'nothing': expected digits, ..."),
    ("bench rows none", "COUNTS are numbers of at least 100, separated by commas, got 'none'"),
    ("bench speed --repeats 0", "Invalid value for '--repeats': ..."),
    (
        "bench speed --quick --pop",
        "--pop asks for a fit, and --quick leaves the fits out: give one of the two",
    ),
    ("bench nothing", "No such command 'nothing'."),
)
def test_commands(words, sentence, folder, monkeypatch):
    monkeypatch.chdir(folder)
    before = {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 2
    assert isinstance(result.exception, SystemExit)
    assert result.stdout == ""
    assert re.fullmatch(".*".join(map(re.escape, f"error: {sentence}\n".split("..."))), result.stderr)
    assert {path.name: path.stat().st_mtime_ns for path in folder.iterdir()} == before


def test_whole_numbers_beyond_the_largest_integers_are_classes_by_their_text(folder, monkeypatch):
    monkeypatch.chdir(folder)
    rows = "".join(f"{i},{10 ** (18 + i % 4)}\n" for i in range(40))
    (folder / "long.csv").write_text(f"a,target\n{rows}")
    assert CliRunner().invoke(app, ["fit", "long.csv", "-o", "long.safetensors", *SMALL]).exit_code == 0
    assert opgrow.load("long.safetensors").classes_.tolist() == [str(10**n) for n in range(18, 22)]
