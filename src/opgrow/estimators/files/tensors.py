"""Whether the tensors of a model file are those of the network that its record describes.

No number in the record makes anything allocate: sizes are first compared with the tensors that the file
holds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...engine.wiring import Members, block_spans, check_members, head_spans
from ...network import NORMALIZATIONS
from ..intervals import N_SCORES
from .format import (
    check_number_of_blocks,
    check_registered,
    classifies,
    of_type,
    operator_names,
    require,
    size_of,
)
from .running import RUNNING, running_shapes

__all__ = ["check_tensors"]

_Shape = tuple[int, ...]
_FLOATING = ("F64", "F32", "F16", "BF16")


def check_tensors(record: dict[str, Any], tensors: Mapping[str, tuple[str, list[int]]]) -> None:
    """Compare the declared topology with the data types and shapes of the tensors in the file."""
    expected = _expected_shapes(record)
    missing = next((name for name in expected if name not in tensors), None)
    require(missing is None, f"tensor {missing!r} is missing")
    extra = next((name for name in tensors if name not in expected), None)
    require(extra is None, f"tensor {extra!r} does not belong to the declared topology")
    precision = tensors["head.weight"][0]
    for name, (dtype, shape) in tensors.items():
        require(
            tuple(shape) == expected[name],
            f"tensor {name!r} has shape {tuple(shape)}, and the topology says {expected[name]}",
        )
        if name.endswith("num_batches_tracked") or name == f"{RUNNING}buffer.number":
            suits = dtype == "I64"
        else:
            free = name == "sample" or name.startswith(("head_", "input_", "intervals.", "output_", RUNNING))
            suits = dtype in _FLOATING and (free or dtype == precision)
        require(suits, f"tensor {name!r} has the data type {dtype}")


def _expected_shapes(record: dict[str, Any]) -> dict[str, _Shape]:
    n_outputs = size_of(record, "n_outputs")
    shapes = _data_shapes(record)
    n_inputs = size_of(record, "n_inputs")
    broad = of_type(record, "broad", bool)
    layers = of_type(record, "layers", list)
    check_number_of_blocks(layers)
    for i, layer in enumerate(layers):
        require(isinstance(layer, list) and layer, f"layer {i + 1} is not a list of blocks")
        for j, block in enumerate(layer):
            _check_block(block, f"block {j + 1} of layer {i + 1}")
    widths = [[block["n_neurons"] for block in layer] for layer in layers]
    members = _members(record, widths)
    for i, spans in enumerate(block_spans(n_inputs, widths, members)):
        for j, (block, span) in enumerate(zip(layers[i], spans, strict=True)):
            own, width = block["n_inputs"], span.stop - span.start
            fits = own == width or (broad and i > 0 and own < width)
            where = f"block {j + 1} of layer {i + 1}"
            require(fits, f"{where} has {own} inputs, and the layer before it {width} outputs")
            shapes |= _block_shapes(block, f"layers.{i}.blocks.{j}")
    seen = head_spans(widths, members, broad)
    width = sum(stop - start for _, start, stop in seen) if seen else n_inputs
    require("head" in record, "'head' is missing")
    shapes |= running_shapes(record, width)
    if "head_limits" in record and of_type(record, "head_limits", bool):
        require(record["head"] is None, "'head_limits' are those of a linear head")
        shapes |= {"head_low": (width,), "head_high": (width,)}
    if record["head"] is None:
        return shapes | {"head.weight": (n_outputs, width), "head.bias": (n_outputs,)}
    check_registered(operator_names(record["head"]))
    return shapes | {"head.weight": (width, n_outputs), "head.bias": (n_outputs,)}


def _data_shapes(record: dict[str, Any]) -> dict[str, _Shape]:
    """Tensors that tell of the data: constants of inputs and targets, what was seen of them, a sample."""
    n_inputs, n_outputs = size_of(record, "n_inputs"), size_of(record, "n_outputs")
    shapes: dict[str, _Shape] = {"input_mean": (n_inputs,), "input_scale": (n_inputs,)}
    if not classifies(record):
        shapes |= {"output_mean": (n_outputs,), "output_scale": (n_outputs,)}
    if of_type(record, "ranges", bool):
        shapes |= {"input_low": (n_inputs,), "input_high": (n_inputs,)}
        if not classifies(record):
            shapes |= {"output_low": (n_outputs,), "output_high": (n_outputs,)}
    shapes |= _interval_shapes(record, n_outputs)
    n_rows = of_type(record, "sample_rows", int)
    return shapes | {"sample": (n_rows, n_inputs)} if n_rows else shapes


def _interval_shapes(record: dict[str, Any], n_outputs: int) -> dict[str, _Shape]:
    """Tensors that tell of the errors of a regressor."""
    require("intervals" in record, "'intervals' is missing")
    intervals = record["intervals"]
    if intervals is None:
        return {}
    require(isinstance(intervals, dict) and not classifies(record), "'intervals' are those of a regressor")
    require(size_of(intervals, "rows", "'intervals'") >= 1, "'intervals' are of no rows")
    shapes: dict[str, _Shape] = {
        "intervals.floor": (n_outputs,),
        "intervals.scores": (n_outputs, N_SCORES),
    }
    n_networks = of_type(intervals, "networks", int)
    if not n_networks:
        return shapes
    members = record.get("members")
    fits = isinstance(members, list) and len(members) == n_networks
    require(fits, f"'intervals' are of {n_networks} networks, which 'members' are not")
    return shapes | {"intervals.biases": (n_networks, n_outputs)}


def _block_shapes(block: dict[str, Any], prefix: str) -> dict[str, _Shape]:
    """Tensors of a block whose description is valid."""
    shapes: dict[str, _Shape] = {f"{prefix}.weight": (block["n_inputs"], block["n_neurons"])}
    names = ["bias"] if block["bias"] else []
    if block["norm"] == "batch":
        shapes[f"{prefix}.norm.num_batches_tracked"] = ()
        names += ["norm.weight", "norm.bias", "norm.running_mean", "norm.running_var"]
    return shapes | {f"{prefix}.{name}": (block["n_neurons"],) for name in names}


def _members(record: dict[str, Any], widths: list[list[int]]) -> Members | None:
    """The blocks in each layer of each network of an average, if the network is one."""
    require("members" in record, "'members' is missing")
    listed = record["members"]
    if listed is None:
        return None
    counted = isinstance(listed, list) and all(
        isinstance(counts, list) and all(type(count) is int for count in counts) for counts in listed
    )
    require(counted, "'members' is no list of the numbers of blocks in the layers of networks")
    require(record.get("head") is None, "an average of networks has a linear head")
    members = tuple(map(tuple, listed))
    check_members(widths, members, record["broad"])
    return members


def _check_block(block: Any, where: str) -> None:
    """Refuse a block whose description is not valid by itself."""
    require(isinstance(block, dict), f"{where} is not a JSON object")
    check_registered(operator_names(block.get("operators")))
    for key in ("norm", "bias"):
        require(key in block, f"{key!r} of {where} is missing")
    norm, bias = block["norm"], block["bias"]
    require(norm in NORMALIZATIONS, f"'norm' of {where} is {norm!r}, expected 'batch', 'unit' or null")
    require(isinstance(bias, bool), f"'bias' of {where} is {bias!r}, expected true or false")
    require(norm != "unit" or not bias, f"{where} has the norm 'unit' and a bias, which do not go together")
    for key in ("n_inputs", "n_neurons"):
        size_of(block, key, where)
