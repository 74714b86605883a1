"""What the integer C of a `FixedProgram` computes, in Python, bit for bit.

It is how an export measures itself without a compiler, and how its head is fitted to the features that the
integers yield.
"""

from __future__ import annotations

import numpy as np

from ..operators.kinds import stated
from . import fixed_arithmetic
from .c_fixed import FixedProgram, FixedStep
from .c_fixed_pools import adds_products, is_exact
from .fixed_arithmetic import INT32_MAX, exponential, rescale, root, saturated, shifted, squashed, within

__all__ = ["as_inputs", "features", "head_outputs", "read_by_head", "scores"]

INT16_MAX = 2**15 - 1
#: Elements of the rows x neurons x inputs array that are held at once.
_CHUNK_ELEMENTS = 1 << 19
#: Float64 adds integers up to here without rounding.
_EXACT_FLOAT = 2**53


def as_inputs(fixed: FixedProgram, rows: np.ndarray) -> np.ndarray:
    """Raw rows (n, n_inputs) as the integers that the C functions take, as its own conversion has them."""
    with np.errstate(over="ignore", invalid="ignore"):
        values = np.ldexp(np.asarray(rows, np.float32), np.array(fixed.inputs.bits, np.int32))
    values = np.nan_to_num(values.astype(np.float64), nan=0.0)
    # The largest float below 2^31 is taken for everything beyond it.
    values = np.where(np.abs(values) >= 2147483520, np.sign(values) * INT32_MAX, np.rint(values))
    return values.astype(np.int64)


def features(fixed: FixedProgram, x: np.ndarray) -> np.ndarray:
    """What the head sees of integer inputs (n, n_inputs), not limited yet."""
    program = fixed.program
    inputs = x = _network_input(fixed, x)
    outputs = []
    for layer in fixed.layers:
        x = np.concatenate([_hidden(step, x[:, step.step.reads], fixed.digits) for step in layer], axis=1)
        outputs.append(x)
    return program.seen_by_head(inputs, outputs)


def read_by_head(fixed: FixedProgram, seen: np.ndarray) -> np.ndarray:
    """Features (n, n_features) as the head reads them."""
    if fixed.head_limits is None:
        return seen
    low, high = np.array(fixed.head_limits, np.int64).T
    return np.clip(seen, low, high)


def head_outputs(fixed: FixedProgram, seen: np.ndarray) -> np.ndarray:
    """Outputs (n, n_outputs) of the head of features."""
    out = _outputs(fixed.head, read_by_head(fixed, seen), fixed.digits)
    if fixed.limits is not None:
        low, high = np.array(fixed.limits, np.int64).T
        out = np.clip(out, low, high)
    return out


def scores(fixed: FixedProgram, outputs: np.ndarray) -> np.ndarray:
    """Scores (n, n_outputs) as integers with ``fixed.output_bits`` fractional bits."""
    program = fixed.program
    if program.classes is None:
        return outputs
    bits = fixed.head.out_bits - 20
    largest = outputs.max(axis=1, keepdims=True)
    shares = exponential(rescale(outputs - largest, bits), 15)
    if program.loss == "mse":
        shares = np.where(largest > 0, np.maximum(outputs, 0), shares)
    return (shares << 16) // shares.sum(axis=1, keepdims=True)


def _network_input(fixed: FixedProgram, x: np.ndarray) -> np.ndarray:
    inputs = fixed.inputs
    if inputs.by_products:
        factor, centre = np.array(inputs.constants, np.int64).T
        value = (x * factor >> 32) - centre
    else:
        mean, scale, bits = np.array(inputs.constants, np.int64).T
        value = rescale((x - mean) * scale, bits)
    return within(value, INT16_MAX) if inputs.bound is None else squashed(value, inputs.bound)


def _hidden(step: FixedStep, x: np.ndarray, digits: tuple[int, int]) -> np.ndarray:
    if step.step.unit:
        return _unit(step, x, digits)
    return within(_outputs(step, x, digits), INT16_MAX)


def _outputs(step: FixedStep, x: np.ndarray, digits: tuple[int, int]) -> np.ndarray:
    bias, shift, scale, scale_bits, _ = np.array(step.neurons, np.int64).T
    z = saturated(_pooled(step, x, digits) + bias)
    return saturated(shifted(_activated(step, z, step.pooled_bits) * scale, scale_bits) + shift)


def _activated(step: FixedStep, z: np.ndarray, bits: int) -> np.ndarray:
    return stated(step.step.operators.activation_operator.fixed).emulated(fixed_arithmetic, z, bits)


def _unit(step: FixedStep, x: np.ndarray, digits: tuple[int, int]) -> np.ndarray:
    pooled = within(_pooled(step, x, digits), INT16_MAX)
    squares = (pooled * pooled).sum(axis=1, keepdims=True)
    norm = np.where(squares > 0, root(squares.astype(np.uint64) << np.uint64(16)), 256)
    z = np.sign(pooled) * ((np.abs(pooled) << 23) // norm)
    return within(rescale(_activated(step, z, 15), step.activation_bits - step.out_bits), INT16_MAX)


def _pooled(step: FixedStep, x: np.ndarray, digits: tuple[int, int]) -> np.ndarray:
    """rho over the inputs of psi: (n, n_inputs) to (n, n_neurons)."""
    nodal = stated(step.step.operators.nodal_operator.fixed)
    weight, w_bits = step.weight.astype(np.int64), np.array([neuron[4] for neuron in step.neurons])
    if nodal.exact is not None and is_exact(step.step.operators):
        power = nodal.exact.power
        sums, down = _product(x**power, weight), w_bits + power * step.x_bits - step.pooled_bits
        return shifted(sums, down) if adds_products(step.step.operators) else rescale(sums, down)
    rows = max(1, _CHUNK_ELEMENTS // weight.size)
    parts = []
    for start in range(0, len(x), rows):
        y = x[start : start + rows, None, :]
        value, bits = nodal.emulated(fixed_arithmetic, y, weight, w_bits[:, None], step.x_bits, step.psi_bits)
        parts.append(_pool(step, within(rescale(value, bits), 1 << digits[0]), 1 << digits[1]))
    return np.concatenate(parts)


def _product(x: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """x times the transpose of weight; by the processor's matrix product where that is exact."""
    largest = float(np.abs(x).max(initial=0)) * float(np.abs(weight).max(initial=0)) * x.shape[1]
    if largest < _EXACT_FLOAT:
        return np.rint(x.astype(np.float64) @ weight.T.astype(np.float64)).astype(np.int64)
    return x @ weight.T


def _pool(step: FixedStep, psi: np.ndarray, pair_max: int) -> np.ndarray:
    pool = stated(step.step.operators.pool_operator.fixed)
    value, bits = pool.emulated(fixed_arithmetic, psi, step.psi_bits, step.pair_bits, pair_max)
    return rescale(value, bits - step.pooled_bits)
