"""`export_onnx`: a fitted estimator as one ONNX file that needs neither opgrow nor torch.

The graph is written node by node and not traced: the formulas then are those that float32 runtimes compute
well, no tensor of rows x inputs x neurons is stored, and nothing but ``onnx`` is needed to write it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import is_classifier

from ..common.atomic import check_suffix, write_atomically
from ..common.checks import check_flag
from ..common.extras import require
from ..common.version import __version__
from ..network import Network
from ..rows.tables import TableEncoder
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

if TYPE_CHECKING:
    from onnx import ModelProto

    from .onnx_graph import Graph

__all__ = ["INPUT_TYPES", "OPSET", "export_onnx"]

#: Operators of 2022, which every runtime of today knows, and the file version of their time.
OPSET, IR_VERSION = 17, 8
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
    model = _model(estimator, float16, input_type, _feature_names(estimator, feature_names))

    import onnx

    onnx.checker.check_model(model, full_check=True)
    plain = model if estimator.table_ is None else _model(estimator.of_rows(), float16, input_type, None)
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


# --- the model ---


def _model(estimator: Any, float16: bool, input_type: str, feature_names: list[str] | None) -> ModelProto:
    from onnx import helper

    from .onnx_graph import Graph, tensor_type, value_info
    from .onnx_network import network_outputs
    from .onnx_table import ML_OPSET, inputs_of, is_numeric, matrix_of

    network = estimator.network_
    graph, element = Graph(float16=float16), tensor_type(input_type)
    encoder: TableEncoder | None = estimator.table_
    if encoder is None:
        outputs = network_outputs(graph, network, "X", element)
        inputs = [value_info("X", element, ["N", network.n_inputs])]
    else:
        outputs = network_outputs(graph, network, matrix_of(graph, encoder), tensor_type(np.float64))
        inputs = inputs_of(encoder, element)
    if is_classifier(estimator):
        outputs = graph.add("Cast", outputs, to=tensor_type(np.float32))
        classes = _label_values(estimator.classes_)
        _add_probabilities(graph, outputs, estimator.loss_)
        _add_label(graph, classes)
        results = [
            value_info("label", tensor_type(classes.dtype), ["N"]),
            value_info("probabilities", tensor_type(np.float32), ["N", len(classes)]),
        ]
    else:
        _add_variable(graph, network, outputs, element)
        results = [value_info("variable", element, ["N", network.n_outputs])]
    opsets = [helper.make_opsetid("", OPSET)]
    if encoder is not None and not is_numeric(encoder):
        opsets.append(helper.make_opsetid("ai.onnx.ml", ML_OPSET))
    model = helper.make_model(
        graph.finish("opgrow", inputs, results),
        opset_imports=opsets,
        ir_version=IR_VERSION,
        producer_name="opgrow",
        producer_version=__version__,
        doc_string=f"{type(estimator).__name__} grown by opgrow {__version__}\n{network!r}",
    )
    helper.set_model_props(model, _metadata(estimator, feature_names))
    return model


def _label_values(classes: np.ndarray) -> np.ndarray:
    """Classes in a type that labels of ONNX models have."""
    kind = classes.dtype.kind
    if kind in "iu":
        if kind == "u" and classes.max() > np.iinfo(np.int64).max:
            raise ValueError(f"The class {classes.max()} is too large for ONNX labels, which are int64.")
        return classes.astype(np.int64)
    if kind == "b" or classes.dtype in (np.float32, np.float64):
        return classes
    if kind == "f":
        return classes.astype(np.float64)
    if all(isinstance(label, str) for label in classes.tolist()):
        return np.array([str(label) for label in classes.tolist()], dtype=object)
    raise ValueError(
        f"ONNX has no labels of type {type(classes[0]).__name__}: use numbers or text as classes."
    )


def _add_label(graph: Graph, classes: np.ndarray) -> None:
    winner = graph.add("ArgMax", "probabilities", axis=1, keepdims=0)
    graph.add("Gather", graph.constant(classes, classes.dtype), winner, axis=0, output="label")


def _add_probabilities(graph: Graph, outputs: str, loss: str) -> None:
    """Nodes for `opgrow.training.scores.probabilities`."""
    if loss != "mse":
        graph.add("Softmax", outputs, axis=1, output="probabilities")
        return
    zero, one = graph.constant(0), graph.constant(1)
    largest = graph.add("ReduceMax", outputs, axes=[1], keepdims=1)
    negative, nothing = graph.add("Less", outputs, zero), graph.add("LessOrEqual", largest, zero)
    # By comparisons, which leave NaN as it is.
    positive = graph.add("Where", negative, zero, outputs)
    shares = graph.add("Div", positive, graph.add("Where", nothing, one, largest))
    total = graph.add("ReduceSum", shares, graph.integers(1), keepdims=1)
    shares = graph.add("Div", shares, graph.add("Where", nothing, one, total))
    soft = graph.add("Softmax", outputs, axis=1)
    graph.add("Where", nothing, soft, shares, output="probabilities")


def _add_variable(graph: Graph, network: Network, outputs: str, element: int) -> None:
    if network.output_mean is not None and network.output_scale is not None:
        scale, mean = network.output_scale, network.output_mean
        outputs = graph.add("Mul", outputs, graph.constant(scale, np.float64))
        outputs = graph.add("Add", outputs, graph.constant(mean, np.float64))
    for beyond, limits in (("Less", network.output_low), ("Greater", network.output_high)):
        if limits is not None:  # by a comparison, which leaves NaN as it is
            limit = graph.constant(limits, np.float64)
            outputs = graph.add("Where", graph.add(beyond, outputs, limit), limit, outputs)
    graph.add("Cast", outputs, to=element, output="variable")


def _metadata(estimator: Any, feature_names: list[str] | None) -> dict[str, str]:
    network = estimator.network_
    metadata = {
        "opgrow": __version__,
        "estimator": type(estimator).__name__,
        "topology": network.topology(),
        "network": json.dumps(network.describe()),
    }
    if is_classifier(estimator):
        metadata["classes"] = json.dumps(_label_values(estimator.classes_).tolist())
    if estimator.table_ is not None:
        from .onnx_table import columns_of

        metadata["columns"] = json.dumps(columns_of(estimator.table_))
    if feature_names is not None:
        metadata["feature_names"] = json.dumps(feature_names)
    return metadata
