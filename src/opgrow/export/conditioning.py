"""Rescaling a program so that it loses as little as possible to small integers, with the same outputs.

Features without batch norm (BLS, PMLP) may vary by a hundredth around a half: as 16-bit integers they have
few digits, and the head has large weights for them that nearly cancel. Centred and scaled neuron by neuron,
as those with batch norm are, they use the range of their format, and the head's weights are of one size.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .program import LINEAR, Program, Step
from .ranges import exact_outputs

__all__ = ["with_features_of_one_size"]

#: Features that vary by less in all calibration rows are left alone.
_CONSTANT = 1e-6


def with_features_of_one_size(program: Program, rows: np.ndarray) -> Program:
    """The program with standardised features in the last layer, where the head is linear."""
    if program.head.operators != LINEAR or not program.layers:
        return program
    if program.head_spans[-1] != (len(program.layers) - 1, 0, program.widths[-1]):
        return program  # an average, all of whose blocks have a batch norm
    last = exact_outputs(program, rows)[-2]
    start = program.head.n_inputs - last.shape[1]  # a broad head sees what comes before as well
    weight = program.head.weight.copy()
    bias = np.zeros(program.n_outputs) if program.head.bias is None else program.head.bias
    layer, column = [], 0
    for step in program.layers[-1]:
        columns = slice(column, column + step.n_neurons)
        column += step.n_neurons
        if step.scale is not None or step.unit:
            layer.append(step)
            continue
        values = last[:, columns]
        centre = np.median(values, axis=0)
        spread = np.sqrt(np.mean(np.square(values - centre), axis=0))
        spread = np.where(spread > _CONSTANT, spread, 1.0)
        layer.append(_standardised(step, centre, spread))
        seen = slice(start + columns.start, start + columns.stop)
        bias = bias + weight[:, seen] @ centre
        program = program.with_scaled_features(seen, spread, centre)
        weight[:, seen] *= spread
    head = replace(program.head, weight=weight, bias=bias)
    return replace(program, layers=[*program.layers[:-1], layer], head=head)


def _standardised(step: Step, centre: np.ndarray, spread: np.ndarray) -> Step:
    return replace(step, scale=1 / spread, shift=-centre / spread, mean=centre)
