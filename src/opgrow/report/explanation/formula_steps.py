"""The lines of a formula: inputs, layers and head of a program."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ...export.program import LINEAR, Program, Step
from .formula_writing import Style

__all__ = ["head_lines", "input_lines", "layer_lines"]

#: Beyond so many scales from zero, a centre is not folded into weights: the rounded ones would not cancel.
_NEAR = 10.0
#: A scale from which on a column carries no information (`opgrow.network.scaling`).
_IGNORED = 1e25
#: Limits from here on limit nothing.
_NO_LIMIT = 1e37


def input_lines(
    style: Style, program: Program, digits: int, inputs: Sequence[str]
) -> tuple[list[str], list[str], Program]:
    """Lines that standardise the inputs, what the first layer reads, and the rest of the program."""
    folded = _without_constants(program)
    if folded is not None:
        return [], list(inputs), folded
    lines, names = [], []
    center, scale = program.input_mean, program.input_scale
    for number, name in enumerate(inputs, 1):
        z = style.symbol("z", number)
        names.append(z)
        if scale[number - 1] > _IGNORED:
            lines.append(style.assigned(z, style.times("0", name)))
            continue
        # As precise as the scale asks for, however large the centre.
        value, unit = float(center[number - 1]), float(scale[number - 1])
        more = max(0, int(np.ceil(np.log10(max(abs(value) / unit, 1.0)))))
        shown = style.number(value, min(17, digits + more)), style.number(unit, digits)
        whole = name if shown == ("0", "1") else style.standardized(name, *shown)
        if program.input_bound is None:
            lines.append(style.assigned(z, whole))
            continue
        lines.append(style.assigned(style.symbol("z", number), whole))
        squashed = style.squashed(z, style.number(program.input_bound, digits))
        if style.is_latex:
            names[-1] = style.symbol(r"\tilde z", number)
        lines.append(style.assigned(names[-1], squashed))
    return lines, names, program


def _without_constants(program: Program) -> Program | None:
    """The program with the constants of its inputs in its weights, if it is as precise without them."""
    readers = program.layers[0] if program.layers else [program.head]
    plain = all((s.operators.nodal, s.operators.pool) == ("multiplication", "sum") for s in readers)
    near = np.abs(program.input_mean) <= _NEAR * program.input_scale
    if program.input_bound is not None or not plain or not near.all() or program.head_sees_input:
        return None
    if (program.input_scale > _IGNORED).any():
        return None
    changed = []
    for step in readers:
        weight = step.weight / program.input_scale
        bias = (0 if step.bias is None else step.bias) - weight @ program.input_mean
        changed.append(replace(step, weight=weight, bias=bias))
    if program.layers:
        return replace(program, layers=[changed, *program.layers[1:]])
    return replace(program, head=changed[0])


def layer_lines(
    style: Style, program: Program, digits: int, number: int, reads: Sequence[str]
) -> tuple[list[str], list[str]]:
    """Lines of a layer, and names of its neurons. Their scales belong to the head if it alone reads them."""
    lines: list[str] = []
    names: list[str] = []
    inner = _scale_is_inner(program, number)
    largest = program.input_bound if number == 0 else None
    for step in program.layers[number]:
        places = [len(names) + i + 1 for i in range(step.n_neurons)]
        sums = [_pooled(style, step, i, digits, reads[step.reads], largest) for i in range(step.n_neurons)]
        if step.unit:
            symbols = [style.symbol("s", number + 1, place) for place in places]
            lines += [style.assigned(symbol, value) for symbol, value in zip(symbols, sums, strict=True)]
            length = style.symbol("n", number + 1, places[0])
            lines.append(style.assigned(length, style.length(symbols)))
            sums = [style.scaled(symbol, length) for symbol in symbols]
        for i, (place, value) in enumerate(zip(places, sums, strict=True)):
            name = style.symbol("h", number + 1, place)
            if style.repeats(step.operators):
                symbol = style.symbol("s", number + 1, place)
                lines.append(style.assigned(symbol, value))
                value = symbol
            value = style.activated(step.operators, value)
            if inner and step.scale is not None and step.shift is not None:
                value = style.times(style.number(float(step.scale[i]), digits), style.product([value]))
                value = style.summed([value, style.number(float(step.shift[i]), digits)])
            lines.append(style.assigned(name, value))
            names.append(name)
    return lines, names


def _scale_is_inner(program: Program, number: int) -> bool:
    return number + 1 < len(program.layers) or program.head.operators != LINEAR


def _pooled(
    style: Style, step: Step, neuron: int, digits: int, reads: Sequence[str], largest: float | None
) -> str:
    """What the activation is applied to."""
    weight = step.weight[neuron]
    psi = [
        style.psi(step.operators, name, float(w), digits, largest)
        for name, w in zip(reads, weight.tolist(), strict=True)
    ]
    window = step.operators.pool_operator.window
    bias = 0.0 if step.bias is None else float(step.bias[neuron])
    constant = [style.number(bias, digits)] if bias else []
    if window is None:
        return style.summed([style.largest(psi), *constant])
    if window == 1:
        return style.summed([*(p for p, w in zip(psi, weight, strict=True) if w), *constant])
    products = [style.product(psi[i : i + window]) for i in range(len(psi) - window + 1)]
    return style.summed([*products, *constant])


def head_lines(
    style: Style,
    program: Program,
    digits: int,
    seen: Sequence[Sequence[str]],
    results: Sequence[str],
    mix: np.ndarray,
) -> list[str]:
    """Lines of the outputs: what the head says, weighted by ``mix``, within the limits of a regression."""
    head = program.head
    names = _read_by_head(style, program, digits, seen)
    n_outputs = head.n_neurons
    scale = np.ones(n_outputs) if head.scale is None else head.scale
    shift = np.zeros(n_outputs) if head.shift is None else head.shift
    lines: list[str] = []
    if head.operators == LINEAR:
        weight, constant = (
            head.weight * scale[:, None],
            shift + scale * (0 if head.bias is None else head.bias),
        )
        weight, constant = _with_norms(program, weight, constant)
        weight, constant = mix.T @ weight, mix.T @ constant
        parts = [names] * len(results)
    else:
        outputs = [style.symbol("y", i + 1) for i in range(n_outputs)]
        for i, name in enumerate(outputs):
            value = _pooled(style, head, i, digits, names, None)
            if style.repeats(head.operators):
                symbol = style.symbol("s", len(seen), i + 1)
                lines.append(style.assigned(symbol, value))
                value = symbol
            lines.append(style.assigned(name, style.activated(head.operators, value)))
        weight, constant = (mix * scale[:, None]).T, mix.T @ shift
        parts = [outputs] * len(results)
    for i, result in enumerate(results):
        terms = [
            style.times(style.number(float(w), digits), name)
            for w, name in zip(weight[i].tolist(), parts[i], strict=True)
            if w
        ]
        value = style.summed([*terms, *([style.number(float(constant[i]), digits)] if constant[i] else [])])
        if program.output_low is not None and program.output_high is not None:
            low, high = (
                style.number(float(x[i]), max(digits, 6)) for x in (program.output_low, program.output_high)
            )
            value = style.limited(value, low, high)
        lines.append(style.assigned(result, value))
    return lines


def _read_by_head(style: Style, program: Program, digits: int, seen: Sequence[Sequence[str]]) -> list[str]:
    """What the head reads: names of neurons, within their limits where there are some."""
    names = _seen_by_head(program, seen)
    scale, shift = _norms_of_seen(program)
    limits = program.with_scaled_features(slice(None), scale, shift)
    if limits.head_low is None or limits.head_high is None:
        return names
    return [
        style.limited(name, style.number(low, max(digits, 6)), style.number(high, max(digits, 6)))
        if max(-low, high) < _NO_LIMIT
        else name
        for name, low, high in zip(names, limits.head_low.tolist(), limits.head_high.tolist(), strict=True)
    ]


def _seen_by_head(program: Program, seen: Sequence[Sequence[str]]) -> list[str]:
    names = [name for layer, start, stop in program.head_spans for name in seen[layer + 1][start:stop]]
    return [*seen[0], *names] if program.head_sees_input or not program.layers else names


def _with_norms(program: Program, weight: np.ndarray, constant: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Weights and constants of a linear head, with the scales and shifts of the last layer."""
    scale, shift = _norms_of_seen(program)
    return weight * scale, constant + weight @ shift


def _norms_of_seen(program: Program) -> tuple[np.ndarray, np.ndarray]:
    """Scale and shift that the head gives each feature that it sees: those of the last layer."""
    n = program.head.n_inputs
    scale, shift = np.ones(n), np.zeros(n)
    column = program.n_inputs if program.head_sees_input or not program.layers else 0
    for layer, start, stop in program.head_spans:
        part = slice(column, column + stop - start)
        column = part.stop
        if layer + 1 < len(program.layers) or program.head.operators != LINEAR:
            continue
        steps = program.layers[layer]
        scales = [np.ones(s.n_neurons) if s.scale is None else s.scale for s in steps]
        shifts = [np.zeros(s.n_neurons) if s.shift is None else s.shift for s in steps]
        scale[part], shift[part] = np.concatenate(scales)[start:stop], np.concatenate(shifts)[start:stop]
    return scale, shift
