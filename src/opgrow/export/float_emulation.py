"""What the float C of a program computes, in Python, in single precision.

Additions and multiplications are done in the order of the C source, polynomials included, and give the same
bits, unless a compiler fuses multiplications with additions.
"""

from __future__ import annotations

import numpy as np

from ..network.scaling import FARTHEST
from ..operators import Pool
from ..operators.kinds import stated
from ..operators.single_precision import exponential, inverse_root, within
from .c_float import input_constants
from .c_float_steps import quantized
from .c_operators import GROUP, is_linear
from .program import Program, Step

__all__ = ["features", "head_outputs", "scores"]

_CHUNK_ELEMENTS = 1 << 20
_ONE, _ZERO = np.float32(1), np.float32(0)


def features(program: Program, rows: np.ndarray, weights: str) -> np.ndarray:
    """What the head sees of raw rows (n, n_inputs), not limited yet."""
    with np.errstate(all="ignore"):
        inputs = x = _network_input(program, np.asarray(rows, np.float32))
        outputs = []
        for layer in program.layers:
            x = np.concatenate([_outputs(step, x[:, step.reads], weights) for step in layer], axis=1)
            outputs.append(x)
    return program.seen_by_head(inputs, outputs)


def head_outputs(program: Program, seen: np.ndarray, weights: str) -> np.ndarray:
    """Outputs (n, n_outputs) of the head of features."""
    with np.errstate(all="ignore"):
        out = _outputs(program.head, program.read_by_head(seen), weights)
    if program.output_low is not None and program.output_high is not None:
        out = np.clip(out, _single(program.output_low), _single(program.output_high))
    return out


def scores(program: Program, outputs: np.ndarray) -> np.ndarray:
    """Scores (n, n_outputs) of the head's outputs."""
    if program.classes is None:
        return outputs
    with np.errstate(all="ignore"):
        largest = outputs.max(axis=1, keepdims=True)
        shares = exponential(outputs - largest)
        if program.loss == "mse":
            shares = np.where(largest > 0, np.maximum(outputs, _ZERO) / largest, shares)
        return shares / _in_order(shares.T)[:, None]


def _in_order(terms: np.ndarray) -> np.ndarray:
    """Sums over the first axis, one term after the other."""
    total = np.zeros(terms.shape[1:], np.float32)
    for term in terms:
        total += term
    return total


def _single(values: np.ndarray) -> np.ndarray:
    return values.astype(np.float32)


def _network_input(program: Program, x: np.ndarray) -> np.ndarray:
    constants = {name: _single(values) for name, values in input_constants(program).items()}
    if constants:
        x = x - constants["input_mean"]
        x = x - constants["input_mean_rest"] if "input_mean_rest" in constants else x
        x = x * constants["input_factor"]
    if program.input_bound is None:
        return x
    bound = np.float32(program.input_bound)
    u = within(x if constants else x / bound, FARTHEST)
    return bound * u * inverse_root(_ONE + u * u)


def _outputs(step: Step, x: np.ndarray, weights: str) -> np.ndarray:
    weight, factor = _single(step.weight), None
    if weights != "float32":
        values, unit = quantized(step.weight, weights)
        weight, factor = values.astype(np.float32), _single(unit)
        if not is_linear(step.operators):
            weight, factor = factor[:, None] * weight, None
    rows = max(1, _CHUNK_ELEMENTS // weight.size)
    nodal, pool, activation = step.operators.operators
    psi = stated(nodal.single or nodal.formula)
    parts = [
        _pooled(pool, psi(x[start : start + rows].T[:, :, None], weight.T[:, None, :]))
        for start in range(0, len(x), rows)
    ]
    z = np.concatenate(parts)
    z = z if factor is None else factor * z
    if step.unit:
        largest = np.abs(z).max(axis=1, keepdims=True)
        z = z / np.where(largest > 0, largest, _ONE)
        squares = _in_order(np.square(z).T)[:, None]
        z = z * np.where(squares > 0, inverse_root(np.where(squares > 0, squares, _ONE)), _ONE)
    if step.bias is not None:
        z = z + _single(step.bias)
    out = stated(activation.single or activation.formula)(z)
    if step.scale is not None and step.shift is not None:
        out = _single(step.scale) * out + _single(step.shift)
    return out


def _pooled(pool: Pool, psi: np.ndarray) -> np.ndarray:
    """rho of psi (n_inputs, n, n_neurons)."""
    if pool.window is None:
        return stated(pool.formula)(np.moveaxis(psi, 0, 1))
    before = np.zeros((pool.window - 1, *psi.shape[1:]), np.float32)
    seen = np.concatenate([before, psi])
    terms = seen[: len(psi)]
    for neighbour in range(1, pool.window):
        terms = terms * seen[neighbour : neighbour + len(psi)]
    grouped = len(terms) - len(terms) % GROUP
    total = np.zeros(psi.shape[1:], np.float32)
    for start in range(0, grouped, GROUP):
        total += _sum_of_some(terms[start : start + GROUP])
    for term in terms[grouped:]:
        total += term
    return total


def _sum_of_some(terms: np.ndarray) -> np.ndarray:
    some = terms[0].copy()
    for term in terms[1:]:
        some += term
    return some
