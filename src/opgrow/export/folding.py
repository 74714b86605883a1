"""Linear layers composed with what reads them, in double precision.

The feature nodes of BLS are linear, often many more than the inputs, and the head has large weights of both
signs for them that nearly cancel. Composed when the model is exported, they take no room, and nothing has to
cancel in the single precision or the small integers of the exported program.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..engine.wiring import Span
from .program import LINEAR, Program, Step

__all__ = ["without_linear_features", "without_norms"]


def without_linear_features(program: Program) -> Program:
    """A program whose head sees all layers, without the first if that is linear and no weights are added."""
    all_layers = tuple(Span(layer, 0, width) for layer, width in enumerate(program.widths))
    if (
        program.limits_features
        or program.head_spans != all_layers
        or program.head_sees_input
        or len(program.layers) < 2
    ):
        return program
    first, *rest = program.layers
    readers = [*rest[0], program.head]
    if not all(step.operators == LINEAR and not step.unit for step in first):
        return program
    if not all((step.operators.nodal, step.operators.pool) == ("multiplication", "sum") for step in readers):
        return program
    matrix, offset = _affine(first)
    width = len(offset)
    second = [_composed(step, matrix, offset) for step in rest[0]]
    direct = _composed(replace(program.head, weight=program.head.weight[:, :width]), matrix, offset)
    head = replace(direct, weight=np.concatenate([direct.weight, program.head.weight[:, width:]], axis=1))
    spans = tuple(Span(layer - 1, start, stop) for layer, start, stop in all_layers[1:])
    folded = replace(program, layers=[second, *rest[1:]], head=head, head_spans=spans, head_sees_input=True)
    return folded if _n_weights(folded) <= _n_weights(program) else program


def _affine(layer: list[Step]) -> tuple[np.ndarray, np.ndarray]:
    """Matrix (n_neurons, n_inputs) and offset (n_neurons,) of a linear layer."""
    matrices, offsets = [], []
    for step in layer:
        scale = np.ones(step.n_neurons) if step.scale is None else step.scale
        bias = np.zeros(step.n_neurons) if step.bias is None else step.bias
        matrices.append(scale[:, None] * step.weight)
        offsets.append(scale * bias + (0 if step.shift is None else step.shift))
    return np.concatenate(matrices), np.concatenate(offsets)


def _composed(step: Step, matrix: np.ndarray, offset: np.ndarray) -> Step:
    """A step that reads the inputs of a linear layer in place of its first outputs."""
    n_inputs = step.n_inputs
    bias = step.weight @ offset[:n_inputs] + (0 if step.bias is None else step.bias)
    return replace(step, weight=step.weight @ matrix[:n_inputs], bias=bias)


def _n_weights(program: Program) -> int:
    return sum(step.weight.size for step in program.steps)


def without_norms(program: Program) -> Program:
    """A program whose linear readers have the scales and shifts of what they read in their weights.

    That takes no room and no time, but weights of very different sizes are no good for small integers.
    """
    if program.keeps_layers:
        return program
    layers = [list(layer) for layer in program.layers]
    head = program.head
    for number, layer in enumerate(layers):
        readers = layers[number + 1] if number + 1 < len(layers) else [head]
        if not all(_is_affine(reader) for reader in readers):
            continue
        scale = np.concatenate([np.ones(s.n_neurons) if s.scale is None else s.scale for s in layer])
        shift = np.concatenate([np.zeros(s.n_neurons) if s.shift is None else s.shift for s in layer])
        folded = [_reading(reader, scale[reader.reads], shift[reader.reads]) for reader in readers]
        layers[number] = [replace(step, scale=None, shift=None, mean=None) for step in layer]
        if number + 1 < len(layers):
            layers[number + 1] = folded
        else:
            head = folded[0]
            program = program.with_scaled_features(slice(None), scale, shift)
    return replace(program, layers=layers, head=head)


def _is_affine(step: Step) -> bool:
    return (step.operators.nodal, step.operators.pool) == ("multiplication", "sum") and not step.unit


def _reading(step: Step, scale: np.ndarray, shift: np.ndarray) -> Step:
    """A step that reads values before they are scaled and shifted."""
    if (scale == 1).all() and not shift.any():
        return step
    bias = step.weight @ shift + (0 if step.bias is None else step.bias)
    return replace(step, weight=step.weight * scale, bias=bias)
