"""From the JSON text of a model file to the fitted estimator.

A model file may come from anywhere, so reading it is checking it. Nothing in the text is looked up except in
the fixed list of this package's estimators and in the registry of operators. Whatever is wrong becomes one
ValueError that says what; `opgrow.estimators.files` adds which file it was.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from ...common.checksums import is_sealed
from ...common.version import __version__
from ...growth.events import GrowthStep
from ...growth.search import Candidate
from ...network import Block, Layer, Network
from ...network.tensors import from_tensors
from ...operators import OperatorSet
from ...rows.tables import TableEncoder
from ...training.scores import Score
from ..base import GrowingEstimator
from ..fit.tables import adopt
from ..intervals import Intervals
from .format import (
    LABEL_KINDS,
    LABEL_TYPES,
    MAX_TEXT,
    READABLE,
    SEALED,
    STEP_DEFAULTS,
    STEP_FIELDS,
    as_number,
    as_row,
    check_label_lengths,
    estimator_class,
    of_type,
    operator_names,
    require,
)
from .running import restore_running
from .watching import restore_detector

__all__ = ["parse", "restore", "tried_operators"]

#: Lists within lists that a parameter may have.
_MAX_DEPTH = 20
_LOSSES = ("cross_entropy", "mse", "custom")
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def parse(text: str) -> dict[str, Any]:
    """The plain data of a model file, its version checked, in the present format."""
    require(len(text) <= MAX_TEXT, f"its description has {len(text)} characters, and {MAX_TEXT} are allowed")
    try:
        record = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"its description is not valid JSON ({error})") from error
    require(isinstance(record, dict), "its description is not a JSON object")
    if _SURROGATE.search(text):
        # Half a character, which JSON can write: nothing could print or save it.
        try:
            json.dumps(record, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise ValueError("its description holds text that is not valid Unicode") from None
    for key, what in (("library", "version that wrote it"), ("target", "name of its target")):
        named = record.get(key)
        require(named is None or isinstance(named, str), f"the {what} is {named!r} and not a text")
    version = record.get("format")
    require(type(version) is int, f"its format version is {version!r} and not a number")
    require(
        version in READABLE,
        f"it is in format {version}, and opgrow {__version__} reads the formats "
        f"{READABLE[0]} to {READABLE[-1]} (it was written by opgrow {record.get('library')})",
    )
    require(version < SEALED or is_sealed(text), "it has no checksum, and is damaged or was edited")
    if version < 5:
        _move_names(record)
    if version < 4:
        record.update(members=None, intervals=None)
    if version < 3:
        record.update(input_bound=None, ranges=False, sample_rows=0)
    if version == 1:
        _upgrade(record)
    return record


def _upgrade(record: dict[str, Any]) -> None:
    """Add to a record of format 1, which is not checked yet, what was always so then."""
    record.update(head=None, broad=False)
    layers = record.get("layers")
    for layer in layers if isinstance(layers, list) else ():
        for block in layer if isinstance(layer, list) else ():
            if isinstance(block, dict):
                block.update(norm="batch", bias=True)


def _move_names(record: dict[str, Any]) -> None:
    """Until format 4 an encoder stood beside the estimator, which had a matrix without names."""
    record["table_names"] = True
    if record.get("table") is not None:
        record["feature_names"] = None


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON number")


def restore(record: dict[str, Any], tensors: dict[str, np.ndarray]) -> GrowingEstimator[Any]:
    """The fitted estimator, from a record that `check_tensors` has accepted and its tensors."""
    cls = estimator_class(record)
    name = cls.__name__
    parameters = of_type(record, "parameters", dict)
    unknown = next((p for p in parameters if p not in cls._get_param_names()), None)
    require(unknown is None, f"{name} has no parameter {unknown!r} (opgrow {__version__})")
    estimator = cls(**{name: _value(value) for name, value in parameters.items()})
    n_inputs, n_outputs = record["n_inputs"], record["n_outputs"]
    if is_classifier(estimator):
        estimator.classes_ = _classes(of_type(record, "classes", dict), n_outputs)
    else:
        single = of_type(record, "single_target", bool)
        require(not single or n_outputs == 1, f"a single target does not go with {n_outputs} outputs")
        estimator.n_targets_, estimator.single_target_ = n_outputs, single
    loss = record.get("loss")
    if loss not in _LOSSES:
        raise ValueError(f"'loss' is {loss!r}, expected one of {', '.join(_LOSSES)}")
    estimator.loss_ = loss
    estimator.n_features_in_ = n_inputs
    names = record.get("feature_names")
    if record.get("table") is not None:
        adopt(estimator, _encoder(record["table"], n_inputs), of_type(record, "table_names", bool))
    elif names is not None:
        texts = isinstance(names, list) and all(isinstance(item, str) for item in names)
        require(texts and len(names) == n_inputs, f"'feature_names' must be {n_inputs} texts")
        estimator.feature_names_in_ = np.array(names, dtype=object)
    estimator.history_ = [_step(step) for step in of_type(record, "history", list)]
    sample = tensors.pop("sample", None)
    estimator.sample_ = None if sample is None else np.array(sample, sample.dtype.newbyteorder("="))
    intervals = record["intervals"]
    if intervals is not None:
        estimator.intervals_ = Intervals.from_tensors(intervals["rows"], tensors)
    estimator.running_ = restore_running(record, tensors)
    estimator.network_ = _network(record, tensors)
    return estimator


def _encoder(data: Any, n_inputs: int) -> TableEncoder:
    encoder = TableEncoder.from_dict(data)
    made = len(encoder.get_feature_names_out())
    require(made == n_inputs, f"the table encoder makes {made} inputs, and the network takes {n_inputs}")
    return encoder


def _network(record: dict[str, Any], tensors: dict[str, np.ndarray]) -> Network:
    bound, head = record.get("input_bound"), record["head"]
    if bound is not None:
        bound = as_number(bound, "bound of the inputs")  # a float, as numpy takes no integers of any size
        require(0 < bound < math.inf, f"'input_bound' is {bound!r}, expected a positive number or null")
    network = Network(
        record["n_inputs"],
        record["n_outputs"],
        [Layer([_block(block) for block in layer]) for layer in record["layers"]],
        input_bound=bound,
        head_operators=None if head is None else OperatorSet(*head),
        broad=record["broad"],
        members=record["members"],
    )
    from_tensors(network, tensors)
    low, high = network.head_low, network.head_high
    if low is not None and high is not None:  # a comparison that no NaN passes
        require((low <= high).all(), "'head_low' is above 'head_high', or one of them is no number")
    return network


def _block(data: dict[str, Any]) -> Block:
    operator_set = OperatorSet(*data["operators"])
    return Block(data["n_inputs"], data["n_neurons"], operator_set, norm=data["norm"], bias=data["bias"])


def _classes(data: dict[str, Any], n_outputs: int) -> np.ndarray:
    kind, name, values = (data.get(key) for key in ("kind", "type", "values"))
    readable = isinstance(kind, str) and kind in LABEL_TYPES and name in LABEL_TYPES[kind]
    require(readable, f"classes of kind {kind!r} and type {name!r} are not known")
    assert isinstance(kind, str)
    typed = isinstance(values, list) and all(type(value) is LABEL_KINDS[kind] for value in values)
    require(typed, f"the classes are not a list of {kind}")
    assert isinstance(values, list)
    require(len(values) == n_outputs >= 2, f"{len(values)} classes do not go with {n_outputs} outputs")
    if kind == "str":
        check_label_lengths(values)
    try:
        with np.errstate(over="ignore"):
            classes = np.array(values, dtype=np.dtype(name))
    except OverflowError as error:
        raise ValueError(f"a class does not fit into {name}") from error
    require(len(np.unique(classes)) == n_outputs, "two classes are the same")
    return classes


def _step(data: Any) -> GrowthStep:
    require(isinstance(data, dict), "a step of the history is not a JSON object")
    plain: dict[str, Any] = {}
    for name, (kind, optional) in STEP_FIELDS.items():
        if name in data or name not in STEP_DEFAULTS:
            null = optional and name in data and data[name] is None
            plain[name] = None if null else of_type(data, name, kind)
    for name in ("score", "operators", "candidates"):
        require(name in data, f"a step of the history has no {name!r}")
    value, loss, higher = as_row(data["score"], "score", 3)
    require(isinstance(higher, bool), "a score of the history is not valid")
    names, head = data["operators"], data.get("head_operators")
    return GrowthStep(
        **plain,
        score=Score(as_number(value, "score"), as_number(loss, "score"), higher),
        operator_set=None if names is None else tried_operators(names),
        head_operators=None if head is None else tried_operators(head),
        candidates=[_candidate(item) for item in of_type(data, "candidates", list)],
    )


def _candidate(data: Any) -> Candidate:
    paired = isinstance(data, list) and len(data) == 6  # the last are the operators of POP's output layer
    names, *numbers = as_row(data[:5] if paired else data, "candidate", 5)
    head = tried_operators(data[5]) if paired else None
    weight_range, ridge, score, loss = (as_number(number, "candidate") for number in numbers)
    return Candidate(tried_operators(names), weight_range, ridge, score, loss, head)


def _value(data: Any, depth: int = 0) -> Any:
    """What `_plain` wrote, as it was."""
    require(depth <= _MAX_DEPTH, f"a parameter has lists within lists, more than {_MAX_DEPTH} deep")
    if isinstance(data, list):
        return [_value(item, depth + 1) for item in data]
    if not isinstance(data, dict):
        return data
    require(len(data) == 1, f"a parameter has the unknown form {sorted(data)}")
    [(form, content)] = data.items()
    if form == "float":
        return as_number(data, "parameter")
    if form == "operators":
        return tried_operators(content)
    if form == "table":
        return TableEncoder.wished(content)
    if form == "detector":
        return restore_detector(content)
    require(
        form in ("tuple", "dict") and isinstance(content, list), f"a parameter has the unknown form {form!r}"
    )
    if form == "tuple":
        return tuple(_value(item, depth + 1) for item in content)
    pairs = [as_row(item, "entry of a dictionary", 2) for item in content]
    require(
        all(not isinstance(key, dict | list) for key, _ in pairs), "a dictionary has a key that is no label"
    )
    return {key: _value(item, depth + 1) for key, item in pairs}


def tried_operators(data: Any) -> OperatorSet:
    """An operator set that was tried, of which this process may not know every operator.

    Unlike those of the network, it is only shown. Should it be used in another fit after all, the registry
    is asked for its operators then, and answers by name.
    """
    operator_set = object.__new__(OperatorSet)
    for field, name in zip(("nodal", "pool", "activation"), operator_names(data), strict=True):
        object.__setattr__(operator_set, field, name)
    return operator_set
