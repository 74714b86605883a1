"""The ONNX model of an estimator: its inputs, the network, and what classes and numbers are made of it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import is_classifier

from ..common.version import __version__
from ..network import Network
from ..rows.tables import TableEncoder

if TYPE_CHECKING:
    from onnx import ModelProto

    from .onnx_graph import Graph

__all__ = ["OPSET", "model_of"]

#: Operators of 2022, which every runtime of today knows, and the file version of their time.
OPSET, IR_VERSION = 17, 8


def model_of(estimator: Any, float16: bool, input_type: str, feature_names: list[str] | None) -> ModelProto:
    """The model of an estimator, with its table if it was fitted on one, as `export_onnx` describes it."""
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
