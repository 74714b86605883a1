"""A fitted estimator as plain data: the JSON text that the model file carries.

JSON has no tuples, no infinities and only text as keys. Values that need more than JSON are written as a
dictionary with one key that says what they are: ``{"tuple": [0.1, 0.3]}``, ``{"float": "inf"}``,
``{"operators": ["gaussian", "sum", "tanh"]}``, ``{"dict": [[key, value], ...]}``, ``{"table": {...}}`` and
``{"detector": {...}}``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from ...common.version import __version__
from ...growth.events import GrowthStep
from ...growth.search import Candidate
from ...growth.step_table import N_CANDIDATES
from ...network import Block
from ...operators import OperatorSet
from ...rows.tables import TableEncoder
from ..base import GrowingEstimator
from ..stream.page_hinkley import PageHinkley
from .format import (
    FORMAT,
    LABEL_KINDS,
    LABEL_TYPES,
    STEP_FIELDS,
    check_label_lengths,
    check_number_of_blocks,
)
from .running import describe_running
from .watching import describe_detector

__all__ = ["describe"]

#: Parameters that mean nothing elsewhere: no fit may write to a folder because a file says so.
_OF_THIS_MACHINE = ("checkpoint_dir",)


def describe(estimator: GrowingEstimator[Any]) -> dict[str, Any]:
    """Everything about a fitted estimator but its tensors, as plain data.

    Of the history, the tuning curves and all candidates but the best five are left out: they would be many
    times larger than the network.
    """
    network = estimator.network_
    check_number_of_blocks([list(layer) for layer in network.layers])
    return {
        "format": FORMAT,
        "library": __version__,
        "estimator": type(estimator).__name__,
        "parameters": {
            name: None if name in _OF_THIS_MACHINE else _plain(value)
            for name, value in estimator.get_params(deep=False).items()
        },
        "n_inputs": network.n_inputs,
        "n_outputs": network.n_outputs,
        "layers": [[_describe_block(block) for block in layer] for layer in network.layers],
        "head": _names(network.head.operator_set) if isinstance(network.head, Block) else None,
        "broad": network.broad,
        "members": network.members,
        "input_bound": network.input_bound,
        "ranges": network.input_low is not None,
        **({} if network.head_low is None else {"head_limits": True}),
        "intervals": _describe_intervals(estimator),
        "sample_rows": 0 if estimator.sample_ is None else len(estimator.sample_),
        "loss": estimator.loss_,
        "classes": _describe_classes(estimator.classes_) if is_classifier(estimator) else None,
        "single_target": None if is_classifier(estimator) else bool(estimator.single_target_),
        **_describe_columns(estimator),
        **({} if estimator.running_ is None else {"running": describe_running(estimator.running_)}),
        "history": [_describe_step(step) for step in estimator.history_],
    }


def _describe_columns(estimator: GrowingEstimator[Any]) -> dict[str, Any]:
    """Names of the columns of a matrix, or the encoder of a table."""
    named, table = hasattr(estimator, "feature_names_in_"), estimator.table_
    if table is not None:
        return {"feature_names": None, "table": table.to_dict(), "table_names": named}
    return {"feature_names": [str(name) for name in estimator.feature_names_in_] if named else None}


def _describe_intervals(estimator: GrowingEstimator[Any]) -> dict[str, int] | None:
    intervals = estimator.intervals_
    if intervals is None:
        return None
    return {"rows": intervals.n_rows, "networks": 0 if intervals.biases is None else len(intervals.biases)}


def _describe_block(block: Block) -> dict[str, Any]:
    return {
        "operators": _names(block.operator_set),
        "n_inputs": block.n_inputs,
        "n_neurons": block.n_neurons,
        "norm": block.normalization,
        "bias": block.has_bias,
    }


def _names(operator_set: OperatorSet) -> list[str]:
    return [operator_set.nodal, operator_set.pool, operator_set.activation]


def _describe_classes(classes: np.ndarray) -> dict[str, Any]:
    values = classes.tolist()
    name = "str" if classes.dtype.kind == "U" else classes.dtype.name
    for kind, types in LABEL_TYPES.items():
        if name in types and all(type(value) is LABEL_KINDS[kind] for value in values):
            if kind == "str":
                check_label_lengths(values)
            return {"kind": kind, "type": name, "values": values}
    raise ValueError(f"Class labels of type {name} cannot be saved: use numbers, text or booleans.")


def _describe_step(step: GrowthStep) -> dict[str, Any]:
    data = {name: getattr(step, name) for name in STEP_FIELDS}
    data |= {
        "score": [step.score.value, step.score.loss, step.score.higher_is_better],
        "operators": None if step.operator_set is None else _names(step.operator_set),
        "head_operators": None if step.head_operators is None else _names(step.head_operators),
        "candidates": [_describe_candidate(candidate) for candidate in step.candidates[:N_CANDIDATES]],
    }
    return {name: _plain(value) for name, value in data.items()}


def _describe_candidate(candidate: Candidate) -> list[Any]:
    numbers = [candidate.weight_range, candidate.ridge, candidate.score, candidate.loss]
    head = [] if candidate.head_operators is None else [_names(candidate.head_operators)]
    return [_names(candidate.operator_set), *numbers, *head]


def _plain(value: Any) -> Any:
    """A value for JSON; null for what cannot be written, such as functions and generators of numbers."""
    if isinstance(value, np.generic):
        value = value.item()
    elif isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": str(value)}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, TableEncoder):
        return {"table": value.wishes()}
    if isinstance(value, PageHinkley):
        return {"detector": describe_detector(value.fresh())}
    if isinstance(value, OperatorSet):
        return {"operators": _names(value)}
    if isinstance(value, Mapping):
        return {"dict": [[_plain(key), _plain(item)] for key, item in value.items()]}
    if not isinstance(value, list | tuple):
        return None
    items = [_plain(item) for item in value]
    if any(item is None and original is not None for item, original in zip(items, value, strict=True)):
        return None  # such as a list of callbacks: half of it would mean something else
    return {"tuple": items} if isinstance(value, tuple) else items
