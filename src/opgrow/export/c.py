"""Export as plain C99: one source file and its header, for whatever has a C compiler.

The program has constant tables and loops over them, and only the operators that the network uses. It
allocates nothing, keeps no state and calls nothing but the mathematics of ``<math.h>``, or with integer
arithmetic nothing at all; so it may be called from several threads or interrupts at a time.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

from .._version import __version__
from ..persistence import write_together
from ..preparation import as_array
from . import c_fixed_source, c_float, c_text
from .c_fixed import fixed_program
from .c_header import header_source, labels_comment
from .checks import check_exportable, check_single_precision
from .folding import without_linear_features
from .program import Program, program_of

__all__ = ["export_c"]

WEIGHTS = ("float32", "int16", "int8")
ARITHMETICS = ("float", "integer")


def export_c(
    estimator: Any,
    path: str | os.PathLike[str],
    *,
    weights: str = "float32",
    arithmetic: str = "float",
    name: str | None = None,
    calibration: Any = None,
    features: Sequence[str] | None = None,
) -> None:
    """Write a fitted estimator as a C99 source file, and a header with the same name beside it.

    The functions are ``int NAME_predict(x)``, the index of the class, for classifiers alone, and ``void
    NAME_scores(x, out)``, class probabilities or target values. The input is raw: the constants that
    standardise it are inside.

    Parameters
    ----------
    estimator : a fitted estimator of this package
    path : str or path-like
        The source file, which ends in ``.c``. Files that are there are replaced: both or, after an error,
        none.
    weights : {"float32", "int16", "int8"}, default="float32"
        How weights are stored. Integers have a unit for each neuron.
    arithmetic : {"float", "integer"}, default="float"
        "integer" is for processors without floating point: inputs and scores are fixed-point numbers whose
        formats stand in the header, and weights are int16 unless ``weights="int8"``.
    name : str, optional
        Prefix of all public names; by default the file's name without its ending.
    calibration : array-like of shape (n_samples, n_features), optional
        Needed for integer arithmetic: typical inputs, such as the training data, from which the ranges of all
        intermediate values are found.
    features : sequence of str, optional
        Names of the inputs, for a comment; by default those of the data frame that was given to ``fit``.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from sklearn.datasets import load_iris
    >>> from opgrow import HeMLRNClassifier, export_c
    >>> X, y = load_iris(return_X_y=True)
    >>> model = HeMLRNClassifier(n_min=10, max_layers=1, random_state=0).fit(X, y)
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> export_c(model, folder / "iris.c")
    >>> sorted(path.name for path in folder.iterdir())
    ['iris.c', 'iris.h']
    """
    if weights not in WEIGHTS:
        raise ValueError(f"weights must be one of {', '.join(map(repr, WEIGHTS))}, got {weights!r}.")
    if arithmetic not in ARITHMETICS:
        raise ValueError(f"arithmetic must be 'float' or 'integer', got {arithmetic!r}.")
    source_path, prefix = _place(path, name)
    header_path = source_path.with_suffix(".h")
    check_single_precision(check_exportable(estimator))
    program = without_linear_features(program_of(estimator, features))
    if arithmetic == "integer":
        rows = _calibration_rows(estimator, calibration)
        fixed = fixed_program(program, rows, "int16" if weights == "float32" else weights)
        body = c_fixed_source.fixed_source(fixed, prefix, header_path.name)
        facts = c_fixed_source.facts(fixed)
        header = header_source(program, prefix, fixed)
    else:
        body = c_float.float_source(program, prefix, header_path.name, weights)
        facts = c_float.facts(program, weights)
        header = header_source(program, prefix, None)
    top = c_text.comment(_description(program, source_path.name, facts))
    write_together({header_path: header.encode(), source_path: f"{top}\n{body}".encode()})


def _place(path: str | os.PathLike[str], name: str | None) -> tuple[Path, str]:
    """The source file and the prefix of its names."""
    source = Path(path).expanduser()
    if source.suffix != ".c":
        raise ValueError(f"The C file must end in '.c', got {source.name!r}.")
    if not source.name.isprintable() or any(mark in source.name for mark in ('"', "\\", "??")):
        raise ValueError(f"The file name {source.name!r} cannot stand in an #include.")
    if name is None:
        return source, c_text.check_name(source.stem, "without name=..., the file name")
    return source, c_text.check_name(name, "name")


def _calibration_rows(estimator: Any, calibration: Any) -> np.ndarray:
    if calibration is None:
        raise ValueError(
            "Integer arithmetic needs calibration rows, typical inputs such as the training data: pass "
            "calibration=X."
        )
    # A name or a number of columns that is wrong is worded by scikit-learn, as in predict.
    return validate_data(estimator, as_array(calibration), reset=False, dtype=np.float64)


def _description(program: Program, file: str, facts: Sequence[str]) -> list[str]:
    """The comment on top: what the file holds, in a page."""
    layers = [
        f"  layer {number}: "
        + ", ".join(f"{step.n_neurons} x {step.operators}{_remark(step)}" for step in layer)
        for number, layer in enumerate(program.layers, 1)
    ]
    sees = ", sees all layers" if program.broad else ""
    if program.head_sees_input:
        sees += " and the input; a linear layer below them is part of their weights"
    lines = [
        f"{program.estimator} {program.topology}, {program.parameters} parameters; "
        f"written by opgrow {__version__}.",
        "",
        *layers,
        f"  head: {program.head.operators}{sees}",
        "",
        f"Inputs: {program.n_inputs}, raw values"
        + (
            " in this order: " + ", ".join(map(c_text.safe_comment, program.features))
            if program.features
            else ""
        )
        + ("; they are standardised inside." if program.standardizes else "."),
        labels_comment(program),
        "",
        *(fact.replace("FILE.c", c_text.safe_comment(file)) for fact in facts),
    ]
    return lines


def _remark(step: Any) -> str:
    return " (unit norm)" if step.unit else ""
