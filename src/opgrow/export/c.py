"""Export as plain C99: one source file and its header, for whatever has a C compiler.

The program has constant tables and loops over them, and only the operators that the network uses. It
allocates nothing, keeps no state and calls nothing but the mathematics of ``<math.h>``, or with integer
arithmetic nothing at all; so it may be called from several threads or interrupts at a time.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..common.atomic import write_together
from ..common.places import evenly
from ..common.version import __version__
from . import c_fixed_source, c_float, c_text, fixed_emulation
from .c_draft import Draft, FixedDraft, FloatDraft, best_draft
from .c_header import header_source, labels_comment
from .c_packages import PACKAGES, Contents, package_files
from .c_table import table_text
from .c_window import window_lines
from .checks import check_exportable, check_single_precision
from .folding import without_linear_features, without_norms
from .learning import check_learns
from .learning_draft import learning_program, measured_start
from .measuring import (
    MIN_AGREEMENT,
    Expected,
    ExportCheck,
    check_share,
    not_measured,
    refuse,
)
from .program import Program, program_of
from .windowed import expected_by, model_and_step, remarked

__all__ = ["export_c", "exported_program"]

WEIGHTS = ("float32", "int16", "int8", "int4")
ARITHMETICS = ("float", "integer")


def export_c(
    estimator: Any,
    path: str | os.PathLike[str],
    *,
    weights: str = "float32",
    arithmetic: str = "float",
    name: str | None = None,
    calibration: Any = None,
    min_agreement: float = MIN_AGREEMENT,
    features: Sequence[str] | None = None,
    package: str | None = None,
    learn: bool | int = False,
) -> ExportCheck:
    """Write a fitted estimator as a C99 source file, and a header with the same name beside it.

    The functions are ``int NAME_predict(x)``, the index of the class, for classifiers alone, and ``void
    NAME_scores(x, out)``, class probabilities or target values. The input is raw: the constants that
    standardise it are inside.

    Before anything is written, what the program computes is compared with what the estimator says of the
    calibration rows: integers are emulated exactly, floats in single precision. Where rounded weights or
    integers lose too much, a linear head is solved again for them (BLS has heads of large weights that nearly
    cancel); where that does not help either, the export is refused.

    For an estimator that was fitted on a table with text, dates or marked gaps, ``NAME_encode`` makes the
    inputs of a row of the table, in which text is a code; the header names the codes. Dates need
    ``arithmetic="float"``.

    Parameters
    ----------
    estimator : a fitted estimator of this package, or a pipeline of `opgrow.WindowFeatures` and one
        Of a pipeline, the functions take whole windows of samples; ``NAME_window_push`` fills a window.
    path : str or path-like
        The source file, which ends in ``.c``. Files that are there are replaced: both or, after an error,
        none.
    weights : {"float32", "int16", "int8", "int4"}, default="float32"
        How weights are stored. Integers have a unit for each neuron; "int4" puts two weights in a byte, each
        one of 16 levels.
    arithmetic : {"float", "integer"}, default="float"
        "integer" is for processors without floating point: inputs and scores are fixed-point numbers whose
        formats stand in the header, and weights are int16 unless ``weights`` is "int8" or "int4".
    name : str, optional
        Prefix of all public names; by default the file's name without its ending.
    calibration : array-like of shape (n_samples, n_features), optional
        Typical inputs, such as the training data. The program is compared with the estimator on them, and
        for integer arithmetic they tell the ranges of all intermediate values; a few rows far from all
        others, such as those with a sentinel, do not count there. Of a pipeline, windows.
        Default: the training rows that were kept with the model, if there are any (``sample_``).
    min_agreement : float, default=0.99
        The least share of rows on which the program names the estimator's class; below it nothing is written.
        For regression, R2 between both predictions may fall short of 1 by a quarter of what this does:
        0.9975. 0 writes in any case.
    features : sequence of str, optional
        Names of the inputs, for a comment; by default those of the data frame that was given to ``fit``.
    package : {"arduino", "platformio", "zephyr", "cmake", "micropython"}, optional
        Write a folder, ``path``, that this tool takes as it is, with a program that prints predictions of a
        few calibration rows. Default: the two files alone.

    Returns
    -------
    ExportCheck
        How well the program agrees with the estimator, or why that was not measured.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from sklearn.datasets import load_iris
    >>> from opgrow import HeMLRNClassifier, export_c
    >>> X, y = load_iris(return_X_y=True)
    >>> model = HeMLRNClassifier(n_min=10, max_layers=1, random_state=0).fit(X, y)
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> check = export_c(model, folder / "iris.c", calibration=X)
    >>> check.rows, check.agreement
    (150, 1.0)
    >>> sorted(path.name for path in folder.iterdir())
    ['iris.c', 'iris.h']
    """
    if weights not in WEIGHTS:
        raise ValueError(f"weights must be one of {', '.join(map(repr, WEIGHTS))}, got {weights!r}.")
    if arithmetic not in ARITHMETICS:
        raise ValueError(f"arithmetic must be 'float' or 'integer', got {arithmetic!r}.")
    check_share("min_agreement", min_agreement)
    if package is not None and package not in PACKAGES:
        raise ValueError(f"package must be one of {', '.join(map(repr, PACKAGES))}, got {package!r}.")
    source_path, prefix = _place(path, name) if package is None else _place_of_package(path, name)
    header_path = source_path.with_suffix(".h")
    form = "C with integer arithmetic" if arithmetic == "integer" else "C"
    model, step = model_and_step(estimator, arithmetic)
    check_single_precision(check_exportable(model, form))
    start = None
    if learn is False:
        program = exported_program(estimator, weights, arithmetic, features)
    else:
        check_learns(model, arithmetic, step is not None, learn)
        program, start = learning_program(model, weights, features)
    expected = expected_by(model, step, calibration)
    if start is None:
        draft, check = _measured(program, weights, arithmetic, expected)
    else:
        draft, check = measured_start(model, FloatDraft(program, weights), start, expected, min_agreement)
    what = f"The C program with {_stored(weights, arithmetic)} weights"
    refuse(check, min_agreement, what, lambda: _remedy(weights, arithmetic))
    bits = draft.fixed.inputs.bits if isinstance(draft, FixedDraft) else None
    table = table_text(model.table_, prefix, bits)
    if isinstance(draft, FixedDraft):
        body = c_fixed_source.fixed_source(draft.fixed, prefix, header_path.name)
        facts = c_fixed_source.facts(draft.fixed)
        header = header_source(draft.program, prefix, draft.fixed, table)
    else:
        body = c_float.float_source(draft.program, prefix, header_path.name, weights, start)
        facts = c_float.facts(draft.program, weights, start)
        header = header_source(draft.program, prefix, None, table, start)
    body += "" if table is None else table.source()
    facts = [*facts, f"{str(check)[0].upper()}{str(check)[1:]}."]
    top = c_text.comment(_description(draft.program, source_path.name, facts))
    source = f"{top}\n{body}"
    if package is None:
        write_together({header_path: header.encode(), source_path: source.encode()})
    else:
        _write_package(package, Path(path).expanduser(), _contents(draft, expected, prefix, source, header))
    return check


def exported_program(
    estimator: Any, weights: str, arithmetic: str, features: Sequence[str] | None = None
) -> Program:
    """What C computes of what can be exported, before weights are rounded."""
    model, step = model_and_step(estimator, arithmetic)
    program = without_linear_features(program_of(model, features))
    program = replace(program, window=None if step is None else step.form_)
    return without_norms(program) if (arithmetic, weights) == ("float", "float32") else program


#: Rows that the program of a package predicts, fewer where windows are long.
_SHOWN_ROWS, _SHOWN_NUMBERS = 5, 4096


def _contents(draft: Draft, expected: Expected | None, name: str, source: str, header: str) -> Contents:
    """What a package is made of, with a few of the rows that the program was compared on."""
    if expected is None:
        raise ValueError("A package has a few rows to predict: pass calibration=X.")
    inputs = expected.rows if draft.program.window is None else expected.windows
    if inputs is None:
        raise ValueError(
            "A package has a few windows to predict, which models do not keep: pass calibration=X."
        )
    shown = min(_SHOWN_ROWS, 1 + _SHOWN_NUMBERS // inputs.shape[1])
    chosen = evenly(len(inputs), shown)
    rows, scores = inputs[chosen], expected.scores[chosen]
    fixed = draft.fixed if isinstance(draft, FixedDraft) else None
    program = draft.program
    return Contents(
        name=name,
        source=source,
        header=header,
        number="float" if fixed is None else "int32_t",
        output_bits=0 if fixed is None else fixed.output_bits,
        about=f"{program.estimator} {program.topology}, written by opgrow.",
        rows=rows if fixed is None else fixed_emulation.as_inputs(fixed, rows),
        expected=scores.argmax(axis=1) if expected.classification else scores,
    )


def _write_package(package: str, folder: Path, contents: Contents) -> None:
    files: dict[str | os.PathLike[str], bytes] = {}
    for place, text in package_files(package, contents).items():
        files[folder / place] = text.encode()
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{str(folder)!r} is not a folder that a package can be written to.")
    for target in files:
        Path(target).parent.mkdir(parents=True, exist_ok=True)
    write_together(files)


def _measured(
    program: Program, weights: str, arithmetic: str, expected: Expected | None
) -> tuple[Draft, ExportCheck]:
    if expected is not None:
        draft, check = best_draft(program, weights, arithmetic, expected)
        return draft, remarked(check, program.window, expected)
    if arithmetic == "integer":
        raise ValueError(
            "Integer arithmetic needs calibration rows, typical inputs such as the training data: pass "
            "calibration=X."
        )
    why = "there were no calibration rows"
    return FloatDraft(program, weights), not_measured(program.classes is not None, why)


def _stored(weights: str, arithmetic: str) -> str:
    return (
        f"integer arithmetic and {'int16' if weights == 'float32' else weights}"
        if arithmetic == "integer"
        else weights
    )


def _remedy(weights: str, arithmetic: str) -> str:
    if weights in ("int8", "int4"):
        return f"use weights='{'int16' if weights == 'int8' else 'int8'}'"
    if arithmetic == "integer":
        return "use arithmetic='float'"
    return "use weights='float32'" if weights == "int16" else "export to ONNX"


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


def _place_of_package(path: str | os.PathLike[str], name: str | None) -> tuple[Path, str]:
    """What the source file of a package is called, and the prefix of its names."""
    folder = Path(path).expanduser()
    if not folder.parent.is_dir():
        raise FileNotFoundError(f"There is no folder {str(folder.parent)!r}.")
    origin = "without name=..., the folder's name" if name is None else "name"
    prefix = c_text.check_name(folder.name if name is None else name, origin)
    return Path(f"{prefix}.c"), prefix


def _description(program: Program, file: str, facts: Sequence[str]) -> list[str]:
    """The comment on top: what the file holds, in a page."""
    layers = [
        f"  layer {number}: "
        + ", ".join(f"{step.n_neurons} x {step.operators}{_remark(step)}" for step in layer)
        for number, layer in enumerate(program.layers, 1)
    ]
    whole = [(layer, 0, width) for layer, width in enumerate(program.widths)]
    sees = ", sees all layers" if len(whole) > 1 and [*program.head_spans] == whole else ""
    if program.head_sees_input:
        sees += " and the input; a linear layer below them is part of their weights"
    lines = [
        f"{program.estimator} {program.topology}, {program.parameters} parameters; "
        f"written by opgrow {__version__}.",
        "",
        *layers,
        f"  head: {program.head.operators}{sees}",
        "",
        *_inputs(program),
        labels_comment(program),
        "",
        *(fact.replace("FILE.c", c_text.safe_comment(file)) for fact in facts),
    ]
    return lines


def _inputs(program: Program) -> list[str]:
    """What goes in."""
    if program.window is not None:
        return window_lines(program.window)
    order = ""
    if program.features:
        order = " in this order: " + ", ".join(map(c_text.safe_comment, program.features))
    inside = "; they are standardised inside" if program.standardizes else ""
    return [f"Inputs: {program.n_inputs}, raw values{order}{inside}."]


def _remark(step: Any) -> str:
    return " (unit norm)" if step.unit else ""
