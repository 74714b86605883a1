"""`export_onnx`: a fitted estimator as one ONNX file that needs neither opgrow nor torch.

The graph is written node by node and not traced: the formulas then are those that float32 runtimes compute
well, no tensor of rows x inputs x neurons is stored, and nothing but ``onnx`` is needed to write it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sklearn.base import is_classifier

from ..common.atomic import check_suffix, write_atomically
from ..common.checks import check_flag
from ..common.extras import require
from .checks import check_exportable, check_single_precision
from .measuring import (
    MIN_AGREEMENT,
    Expected,
    ExportCheck,
    check_share,
    compare,
    expected_of,
    not_measured,
    refuse,
)
from .onnx_model import model_of

if TYPE_CHECKING:
    from onnx import ModelProto

__all__ = ["INPUT_TYPES", "export_onnx"]

INPUT_TYPES = ("float32", "float64")


def export_onnx(
    estimator: Any,
    path: str | os.PathLike[str],
    *,
    float16: bool = False,
    input_type: str = "float32",
    calibration: Any = None,
    min_agreement: float = MIN_AGREEMENT,
    feature_names: Sequence[str] | None = None,
) -> ExportCheck:
    """Write a fitted estimator as an ONNX model, as a whole or not at all.

    The model has one input, ``X`` of shape (N, n_features), and takes any number of rows. If the estimator
    was fitted on a table with columns that are no numbers, every column has an input of its name, of shape
    (N, 1): strings for text, where "" is a gap (or what the metadata "columns" says, where "" is a category),
    numbers with NaN for gaps, and seconds in float64 for dates (since 1970, in UTC), times and durations.

    A classifier has the outputs ``label`` of shape (N,), what ``predict`` gives, and ``probabilities`` of
    shape (N, n_classes), in float32, what ``predict_proba`` gives. A regressor has the output ``variable`` of
    shape (N, n_targets). Predictions agree with the estimator's to the rounding of float32; a label can
    differ only where the two probabilities are equal to that rounding, and is always the first of the most
    probable classes. Rows of a matrix that hold NaN, of which training rows had none, have probabilities or
    values of NaN; of their labels nothing is said. Standardisation is part of the model.

    Only operators of the standard are used (opset 17, and ai.onnx.ml 2 for text), and rows are worked off in
    chunks, so that memory does not grow with rows x inputs x neurons. Input constants and linear heads are
    computed in double precision, as in the network itself, and all else in float32.

    Parameters
    ----------
    estimator : a fitted estimator of this package
    path : str or path-like
        Where to, a name that ends in ``.onnx``; a file that is there is replaced.
    float16 : bool, default=False
        True stores the matrices of weights in half precision, which about halves the file of a large
        network. They are cast to float32 when the model is loaded, and all computation stays in float32:
        pooled products overflow half precision, and CPUs have few instructions for it. A matrix that half
        precision cannot hold stays in float32, as do biases, batch norms and input constants.
    input_type : {"float32", "float64"}, default="float32"
        Type of ``X`` and, for a regressor, of ``variable``. "float32" is what runtimes and devices expect,
        and for data that is float32 it loses no digits, however large a feature's mean is against its
        deviation. Data in float64 has to be rounded before such a model takes it: an error of 6e-8 times
        mean / deviation in standardised units, which matters from some 100 on (time stamps, absolute
        pressures). "float64" takes the data as it is.
    calibration : array-like of shape (n_samples, n_features), optional
        Rows on which the model is compared with the estimator before it is written, by ONNX Runtime if it is
        installed and otherwise by the reference evaluator of ``onnx``. Default: the training rows that were
        kept with the estimator, if there are any (``sample_``).
    min_agreement : float, default=0.99
        The least share of equal labels; below it nothing is written. For regression, R2 between both
        predictions may fall short of 1 by a quarter of what this does: 0.9975. 0 writes in any case.
    feature_names : sequence of str, optional
        Names of the columns of X for the metadata. Default: ``feature_names_in_``, if there is one.

    Returns
    -------
    ExportCheck
        How well the model agrees with the estimator, or why that was not measured.

    Raises
    ------
    ImportError
        If the package ``onnx`` is missing.
    ValueError
        If the network has operators that a user has registered without their ONNX nodes, or if the model
        agrees too little with the estimator.

    Notes
    -----
    Integer classes of any width become int64 labels, text becomes strings, and boolean and floating-point
    classes keep their type. The metadata (``custom_metadata_map`` in ONNX Runtime) holds, as text or JSON,
    "opgrow" (the version), "estimator", "topology", "network", "classes", "feature_names" (of the inputs
    of the network) and, for tables, "columns".

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import onnxruntime
    >>> from sklearn.datasets import load_iris
    >>> from opgrow import HeMLRNClassifier, export_onnx
    >>> X, y = load_iris(return_X_y=True)
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "iris.onnx"
    >>> model = HeMLRNClassifier(n_min=10, max_layers=1, random_state=0).fit(X, y)
    >>> export_onnx(model, path, calibration=X).agreement
    1.0
    >>> session = onnxruntime.InferenceSession(path)
    >>> labels, probabilities = session.run(None, {"X": X[:2].astype("float32")})
    >>> labels, probabilities.shape
    (array([0, 0]...), (2, 3))
    """
    check_exportable(estimator, "ONNX")
    if input_type not in INPUT_TYPES:
        raise ValueError(f"input_type must be 'float32' or 'float64', got {input_type!r}")
    check_flag("float16", float16)
    check_share("min_agreement", min_agreement)
    check_suffix(path, ".onnx", "ONNX file")
    if input_type == "float32":
        check_single_precision(estimator.network_, ", or pass input_type='float64'")
    _check_onnx()
    model = model_of(estimator, float16, input_type, _feature_names(estimator, feature_names))

    import onnx

    onnx.checker.check_model(model, full_check=True)
    plain = model if estimator.table_ is None else model_of(estimator.of_rows(), float16, input_type, None)
    check = _measured(plain, expected_of(estimator, calibration), is_classifier(estimator), input_type)
    refuse(check, min_agreement, "The ONNX model", lambda: _remedy(float16, input_type))
    write_atomically(path, model.SerializeToString(deterministic=True))
    return check


def _measured(
    model: ModelProto, expected: Expected | None, classification: bool, input_type: str
) -> ExportCheck:
    if expected is None:
        return not_measured(classification, "there were no calibration rows")
    x: dict[str, Any] = {"X": expected.rows.astype(input_type)}
    output = "probabilities" if classification else "variable"
    try:
        import onnxruntime
    except ImportError:
        from onnx.reference import ReferenceEvaluator

        results: Any = ReferenceEvaluator(model).run([output], x)
        return compare(expected, results[0], "reference evaluator of onnx")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return compare(expected, session.run([output], x)[0], "ONNX Runtime")


def _remedy(float16: bool, input_type: str) -> str:
    if float16:
        return "leave out float16"
    return "use input_type='float64'" if input_type == "float32" else "rescale the data before fitting"


# --- what can be exported ---


def _check_onnx() -> None:
    require("onnx", "Exporting to ONNX", "onnx")


def _feature_names(estimator: Any, names: Sequence[str] | None) -> list[str] | None:
    if names is None:
        names = estimator.input_names
        return None if names is None else list(names)
    n_inputs = estimator.network_.n_inputs
    if len(names) != n_inputs:
        raise ValueError(f"feature_names has {len(names)} names, and the model takes {n_inputs} features.")
    return [str(name) for name in names]
