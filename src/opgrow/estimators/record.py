"""A fitted estimator as plain data, and back: the JSON text that the model file carries.

A model file may come from anywhere, so reading it is checking it. Nothing in the text is looked up except in
the fixed list of this package's estimators and in the registry of operators, and no number in it makes
anything allocate: sizes are first compared with the tensors that the file really holds. Whatever is wrong
becomes one ValueError that says what; `opgrow.estimators.files` adds which file it was.

The text is bounded, too, because parsed JSON takes up to thirty times as much memory, and so are layers and
blocks, because an object takes many times as much memory and time as its few numbers.

JSON has no tuples, no infinities and only text as keys. Values that need more than JSON are written as a
dictionary with one key that says what they are: ``{"tuple": [0.1, 0.3]}``, ``{"float": "inf"}``,
``{"operators": ["gaussian", "sum", "tanh"]}`` and ``{"dict": [[key, value], ...]}``.

Format 1 knew only blocks with batch norm and bias below a linear head; format 2 says what each of them is;
format 3 ends with a checksum (`opgrow.common.checksums`) and adds the bound of the inputs, what was seen in
training and a sample of it.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import MISSING, fields
from types import NoneType
from typing import Any, get_args, get_type_hints

import numpy as np
from sklearn.base import ClassifierMixin, is_classifier

from .. import estimators
from ..common.checksums import is_sealed
from ..common.version import __version__
from ..growth.events import GrowthStep
from ..growth.search import Candidate
from ..growth.step_table import N_CANDIDATES
from ..network import NORMALIZATIONS, Block, Layer, Network
from ..network.tensors import from_tensors
from ..operators import OperatorSet, registered
from ..training.scores import Score

__all__ = ["FORMAT", "MAX_TEXT", "check_tensors", "describe", "parse", "restore"]

#: Version of the text that is written.
FORMAT = 3
#: Versions that are read; a file with another one is refused.
READABLE = (1, 2, 3)
#: The first version whose files have a checksum.
SEALED = 3
#: Characters of the text at most; one with 100,000 features and their names has two million.
MAX_TEXT = 1 << 23
#: Layers of a network at most, and blocks of all of them: hundreds of times what the defaults can grow.
MAX_LAYERS, MAX_BLOCKS = 1000, 10_000
#: Lists within lists that a parameter may have.
_MAX_DEPTH = 20
#: Characters of a class label at most, and of all of them, each as long as the longest: so numpy stores them.
_MAX_LABEL, _MAX_LABELS = 1 << 16, 1 << 24
ESTIMATORS: dict[str, type] = {name: getattr(estimators, name) for name in estimators.__all__}

#: Parameters that mean nothing elsewhere: no fit may write to a folder because a file says so.
_OF_THIS_MACHINE = ("checkpoint_dir",)
_LOSSES = ("cross_entropy", "mse", "custom")
_LABELS = {"bool": bool, "int": int, "float": float, "str": str}
_WIDTHS = {"int": (8, 16, 32, 64), "uint": (8, 16, 32, 64), "float": (16, 32, 64)}
_LABEL_TYPES = {
    "bool": ("bool",),
    "int": tuple(f"{kind}{bits}" for kind in ("int", "uint") for bits in _WIDTHS[kind]),
    "float": tuple(f"float{bits}" for bits in _WIDTHS["float"]),
    "str": ("str", "object"),
}
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_FLOATING = ("F64", "F32", "F16", "BF16")


def _step_fields() -> dict[str, tuple[type, bool]]:
    """The fields of a step that JSON holds as they are: their type and whether they may be null."""
    found = {}
    for name, hint in get_type_hints(GrowthStep).items():
        kinds = get_args(hint) or (hint,)
        plain = [kind for kind in kinds if kind is not NoneType]
        if len(plain) == 1 and plain[0] in (str, int, bool, float):
            found[name] = (plain[0], NoneType in kinds)
    return found


#: Read off `GrowthStep`, so that a field that is added there is saved too.
_STEP_FIELDS = _step_fields()
#: Fields that a file may lack, because it was written before they were added.
_STEP_DEFAULTS = {field.name for field in fields(GrowthStep) if field.default is not MISSING}


# --- writing ---


def describe(estimator: Any) -> dict[str, Any]:
    """Everything about a fitted estimator but its tensors, as plain data.

    Of the history, the tuning curves and all candidates but the best five are left out: they would be many
    times larger than the network.
    """
    network = estimator.network_
    _check_number_of_blocks([list(layer) for layer in network.layers])
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
        "input_bound": network.input_bound,
        "ranges": network.input_low is not None,
        "sample_rows": 0 if estimator.sample_ is None else len(estimator.sample_),
        "loss": estimator.loss_,
        "classes": _describe_classes(estimator.classes_) if is_classifier(estimator) else None,
        "single_target": None if is_classifier(estimator) else bool(estimator.single_target_),
        "feature_names": [str(name) for name in estimator.feature_names_in_]
        if hasattr(estimator, "feature_names_in_")
        else None,
        "history": [_describe_step(step) for step in estimator.history_],
    }


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
    for kind, types in _LABEL_TYPES.items():
        if name in types and all(type(value) is _LABELS[kind] for value in values):
            if kind == "str":
                _check_lengths(values)
            return {"kind": kind, "type": name, "values": values}
    raise ValueError(f"Class labels of type {name} cannot be saved: use numbers, text or booleans.")


def _describe_step(step: GrowthStep) -> dict[str, Any]:
    data = {name: getattr(step, name) for name in _STEP_FIELDS}
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
    if isinstance(value, OperatorSet):
        return {"operators": _names(value)}
    if isinstance(value, Mapping):
        return {"dict": [[_plain(key), _plain(item)] for key, item in value.items()]}
    if not isinstance(value, list | tuple):
        return None
    items = [_plain(item) for item in value]
    if any(item is None and given is not None for item, given in zip(items, value, strict=True)):
        return None  # such as a list of callbacks: half of it would mean something else
    return {"tuple": items} if isinstance(value, tuple) else items


# --- reading ---


def parse(text: str) -> dict[str, Any]:
    """The plain data of a model file, its version checked, in the present format."""
    _require(len(text) <= MAX_TEXT, f"its description has {len(text)} characters, and {MAX_TEXT} are allowed")
    try:
        record = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"its description is not valid JSON ({error})") from error
    _require(isinstance(record, dict), "its description is not a JSON object")
    if _SURROGATE.search(text):
        # Half a character, which JSON can write: nothing could print or save it.
        try:
            json.dumps(record, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise ValueError("its description holds text that is not valid Unicode") from None
    for key, what in (("library", "version that wrote it"), ("target", "name of its target")):
        named = record.get(key)
        _require(named is None or isinstance(named, str), f"the {what} is {named!r} and not a text")
    version = record.get("format")
    _require(type(version) is int, f"its format version is {version!r} and not a number")
    _require(
        version in READABLE,
        f"it is in format {version}, and opgrow {__version__} reads the formats "
        f"{READABLE[0]} to {READABLE[-1]} (it was written by opgrow {record.get('library')})",
    )
    _require(version < SEALED or is_sealed(text), "it has no checksum, and is damaged or was edited")
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


def check_tensors(record: dict[str, Any], tensors: Mapping[str, tuple[str, list[int]]]) -> None:
    """Compare the declared topology with the data types and shapes of the tensors in the file."""
    expected = _expected_shapes(record)
    missing = next((name for name in expected if name not in tensors), None)
    _require(missing is None, f"tensor {missing!r} is missing")
    extra = next((name for name in tensors if name not in expected), None)
    _require(extra is None, f"tensor {extra!r} does not belong to the declared topology")
    precision = tensors["head.weight"][0]
    for name, (dtype, shape) in tensors.items():
        _require(
            tuple(shape) == expected[name],
            f"tensor {name!r} has shape {tuple(shape)}, and the topology says {expected[name]}",
        )
        if name.endswith("num_batches_tracked"):
            suits = dtype == "I64"
        else:
            free = name == "sample" or name.startswith(("input_", "output_"))
            suits = dtype in _FLOATING and (free or dtype == precision)
        _require(suits, f"tensor {name!r} has the data type {dtype}")


def _expected_shapes(record: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    n_inputs, n_outputs = _size(record, "n_inputs"), _size(record, "n_outputs")
    shapes: dict[str, tuple[int, ...]] = {"input_mean": (n_inputs,), "input_scale": (n_inputs,)}
    if not _classifies(record):
        shapes |= {"output_mean": (n_outputs,), "output_scale": (n_outputs,)}
    if _of_type(record, "ranges", bool):
        shapes |= {"input_low": (n_inputs,), "input_high": (n_inputs,)}
        if not _classifies(record):
            shapes |= {"output_low": (n_outputs,), "output_high": (n_outputs,)}
    n_rows = _of_type(record, "sample_rows", int)
    if n_rows:
        shapes["sample"] = (n_rows, n_inputs)
    broad = _of_type(record, "broad", bool)
    width, widths = n_inputs, []
    layers = _of_type(record, "layers", list)
    _check_number_of_blocks(layers)
    for i, layer in enumerate(layers):
        _require(isinstance(layer, list) and layer, f"layer {i + 1} is not a list of blocks")
        neurons = 0
        for j, block in enumerate(layer):
            where = f"block {j + 1} of layer {i + 1}"
            given, size = _check_block(block, where)
            fits = given == width or (broad and i > 0 and given < width)
            _require(fits, f"{where} has {given} inputs, and the layer before it {width} outputs")
            prefix = f"layers.{i}.blocks.{j}"
            shapes[f"{prefix}.weight"] = (given, size)
            names = ["bias"] if block["bias"] else []
            if block["norm"] == "batch":
                shapes[f"{prefix}.norm.num_batches_tracked"] = ()
                names += ["norm.weight", "norm.bias", "norm.running_mean", "norm.running_var"]
            for name in names:
                shapes[f"{prefix}.{name}"] = (size,)
            neurons += size
        width = neurons
        widths.append(width)
    width = sum(widths) if broad and widths else width
    _require("head" in record, "'head' is missing")
    if record["head"] is None:
        return shapes | {"head.weight": (n_outputs, width), "head.bias": (n_outputs,)}
    _check_registered(_operator_names(record["head"]))
    return shapes | {"head.weight": (width, n_outputs), "head.bias": (n_outputs,)}


def _check_number_of_blocks(layers: list[Any]) -> None:
    blocks = sum(len(layer) for layer in layers if isinstance(layer, list))
    for what, number, most in (("layers", len(layers), MAX_LAYERS), ("blocks", blocks, MAX_BLOCKS)):
        _require(number <= most, f"the network has {number} {what}, and a model file holds at most {most}")


def _check_block(block: Any, where: str) -> tuple[int, int]:
    """The numbers of inputs and neurons of a block whose description is valid by itself."""
    _require(isinstance(block, dict), f"{where} is not a JSON object")
    _check_registered(_operator_names(block.get("operators")))
    for key in ("norm", "bias"):
        _require(key in block, f"{key!r} of {where} is missing")
    norm, bias = block["norm"], block["bias"]
    _require(norm in NORMALIZATIONS, f"'norm' of {where} is {norm!r}, expected 'batch', 'unit' or null")
    _require(isinstance(bias, bool), f"'bias' of {where} is {bias!r}, expected true or false")
    _require(norm != "unit" or not bias, f"{where} has the norm 'unit' and a bias, which do not go together")
    return _size(block, "n_inputs", where), _size(block, "n_neurons", where)


def restore(record: dict[str, Any], tensors: dict[str, np.ndarray]) -> Any:
    """The fitted estimator, from a record that `check_tensors` has accepted and its tensors."""
    cls = _estimator_class(record)
    name = cls.__name__
    parameters = _of_type(record, "parameters", dict)
    unknown = next((p for p in parameters if p not in cls._get_param_names()), None)
    _require(unknown is None, f"{name} has no parameter {unknown!r} (opgrow {__version__})")
    estimator = cls(**{name: _value(value) for name, value in parameters.items()})
    n_inputs, n_outputs = record["n_inputs"], record["n_outputs"]
    if is_classifier(estimator):
        estimator.classes_ = _classes(_of_type(record, "classes", dict), n_outputs)
    else:
        single = _of_type(record, "single_target", bool)
        _require(not single or n_outputs == 1, f"a single target does not go with {n_outputs} outputs")
        estimator.n_targets_, estimator.single_target_ = n_outputs, single
    loss = record.get("loss")
    _require(loss in _LOSSES, f"'loss' is {loss!r}, expected one of {', '.join(_LOSSES)}")
    estimator.loss_ = loss
    estimator.n_features_in_ = n_inputs
    names = record.get("feature_names")
    if names is not None:
        texts = isinstance(names, list) and all(isinstance(item, str) for item in names)
        _require(texts and len(names) == n_inputs, f"'feature_names' must be {n_inputs} texts")
        estimator.feature_names_in_ = np.array(names, dtype=object)
    estimator.history_ = [_step(step) for step in _of_type(record, "history", list)]
    sample = tensors.pop("sample", None)
    estimator.sample_ = None if sample is None else np.array(sample, sample.dtype.newbyteorder("="))
    estimator.network_ = _network(record, tensors)
    return estimator


def _estimator_class(record: dict[str, Any]) -> Any:
    name = _of_type(record, "estimator", str)
    _require(name in ESTIMATORS, f"the estimator {name!r} is not one of opgrow's ({', '.join(ESTIMATORS)})")
    return ESTIMATORS[name]


def _classifies(record: dict[str, Any]) -> bool:
    return issubclass(_estimator_class(record), ClassifierMixin)


def _network(record: dict[str, Any], tensors: dict[str, np.ndarray]) -> Network:
    bound, head = record.get("input_bound"), record["head"]
    if bound is not None:
        bound = _number(bound, "bound of the inputs")  # a float, as numpy takes no integers of any size
        _require(0 < bound < math.inf, f"'input_bound' is {bound!r}, expected a positive number or null")
    network = Network(
        record["n_inputs"],
        record["n_outputs"],
        [Layer([_block(block) for block in layer]) for layer in record["layers"]],
        input_bound=bound,
        head_operators=None if head is None else OperatorSet(*head),
        broad=record["broad"],
    )
    from_tensors(network, tensors)
    return network


def _block(data: dict[str, Any]) -> Block:
    operator_set = OperatorSet(*data["operators"])
    return Block(data["n_inputs"], data["n_neurons"], operator_set, norm=data["norm"], bias=data["bias"])


def _classes(data: dict[str, Any], n_outputs: int) -> np.ndarray:
    kind, name, values = (data.get(key) for key in ("kind", "type", "values"))
    known = isinstance(kind, str) and kind in _LABEL_TYPES and name in _LABEL_TYPES[kind]
    _require(known, f"classes of kind {kind!r} and type {name!r} are not known")
    assert isinstance(kind, str)
    typed = isinstance(values, list) and all(type(value) is _LABELS[kind] for value in values)
    _require(typed, f"the classes are not a list of {kind}")
    assert isinstance(values, list)
    _require(len(values) == n_outputs >= 2, f"{len(values)} classes do not go with {n_outputs} outputs")
    if kind == "str":
        _check_lengths(values)
    try:
        with np.errstate(over="ignore"):
            classes = np.array(values, dtype=np.dtype(name))
    except OverflowError as error:
        raise ValueError(f"a class does not fit into {name}") from error
    _require(len(np.unique(classes)) == n_outputs, "two classes are the same")
    return classes


def _check_lengths(labels: list[str]) -> None:
    longest = max(map(len, labels))
    _require(
        longest <= min(_MAX_LABEL, _MAX_LABELS // len(labels)),
        f"a class label has {longest} characters, which is too many for {len(labels)} classes",
    )


def _step(data: Any) -> GrowthStep:
    _require(isinstance(data, dict), "a step of the history is not a JSON object")
    plain: dict[str, Any] = {}
    for name, (kind, optional) in _STEP_FIELDS.items():
        if name in data or name not in _STEP_DEFAULTS:
            null = optional and name in data and data[name] is None
            plain[name] = None if null else _of_type(data, name, kind)
    for name in ("score", "operators", "candidates"):
        _require(name in data, f"a step of the history has no {name!r}")
    value, loss, higher = _row(data["score"], "score", 3)
    _require(isinstance(higher, bool), "a score of the history is not valid")
    names, head = data["operators"], data.get("head_operators")
    return GrowthStep(
        **plain,
        score=Score(_number(value, "score"), _number(loss, "score"), higher),
        operator_set=None if names is None else _operator_set(names),
        head_operators=None if head is None else _operator_set(head),
        candidates=[_candidate(item) for item in _of_type(data, "candidates", list)],
    )


def _candidate(data: Any) -> Candidate:
    paired = isinstance(data, list) and len(data) == 6  # the last are the operators of POP's output layer
    names, *numbers = _row(data[:5] if paired else data, "candidate", 5)
    head = _operator_set(data[5]) if paired else None
    weight_range, ridge, score, loss = (_number(number, "candidate") for number in numbers)
    return Candidate(_operator_set(names), weight_range, ridge, score, loss, head)


def _value(data: Any, depth: int = 0) -> Any:
    """What `_plain` wrote, as it was."""
    _require(depth <= _MAX_DEPTH, f"a parameter has lists within lists, more than {_MAX_DEPTH} deep")
    if isinstance(data, list):
        return [_value(item, depth + 1) for item in data]
    if not isinstance(data, dict):
        return data
    _require(len(data) == 1, f"a parameter has the unknown form {sorted(data)}")
    [(form, content)] = data.items()
    if form == "float":
        return _number(data, "parameter")
    if form == "operators":
        return _operator_set(content)
    _require(
        form in ("tuple", "dict") and isinstance(content, list), f"a parameter has the unknown form {form!r}"
    )
    if form == "tuple":
        return tuple(_value(item, depth + 1) for item in content)
    pairs = [_row(item, "entry of a dictionary", 2) for item in content]
    _require(
        all(not isinstance(key, dict | list) for key, _ in pairs), "a dictionary has a key that is no label"
    )
    return {key: _value(item, depth + 1) for key, item in pairs}


def _operator_set(data: Any) -> OperatorSet:
    """An operator set that was tried, of which this process may not know every operator.

    Unlike those of the network, it is only shown. Should it be used in another fit after all, the registry
    is asked for its operators then, and answers by name.
    """
    operator_set = object.__new__(OperatorSet)
    for field, name in zip(("nodal", "pool", "activation"), _operator_names(data), strict=True):
        object.__setattr__(operator_set, field, name)
    return operator_set


def _operator_names(data: Any) -> list[str]:
    texts = isinstance(data, list) and len(data) == 3 and all(isinstance(name, str) for name in data)
    _require(texts, "an operator set is not a list of three names")
    return data


def _check_registered(names: list[str]) -> None:
    for kind, name in zip(("nodal", "pool", "activation"), names, strict=True):
        _require(
            name in registered(kind),
            f"it uses the {kind} operator {name!r}, which is not registered here: "
            f"call opgrow.register_{kind} before loading it",
        )


def _number(data: Any, what: str) -> float:
    if isinstance(data, dict) and len(data) == 1 and data.get("float") in ("inf", "-inf", "nan"):
        return float(data["float"])
    _require(type(data) in (int, float), f"a {what} is {data!r} and not a number")
    try:
        return float(data)
    except OverflowError:
        raise ValueError(f"a {what} has {len(str(data))} digits") from None


def _row(data: Any, what: str, length: int) -> list[Any]:
    _require(isinstance(data, list) and len(data) == length, f"a {what} is not a list of {length}")
    return data


def _of_type(record: Mapping[str, Any], key: str, kind: type) -> Any:
    _require(key in record, f"{key!r} is missing")
    value = record[key]
    if kind is float:
        return _number(value, repr(key))
    _require(type(value) is kind, f"{key!r} is of type {type(value).__name__}, expected {kind.__name__}")
    return value


def _size(record: Mapping[str, Any], key: str, where: str = "the network") -> int:
    value = record.get(key)
    _require(
        type(value) is int and value >= 1, f"{key!r} of {where} is {value!r}, expected a number of at least 1"
    )
    return value  # type: ignore[return-value]


def _require(condition: Any, otherwise: str) -> None:
    if not condition:
        raise ValueError(otherwise)


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON number")
