"""What the float C of a program computes, in Python, in single precision.

Additions and multiplications are done in the order of the C source and give the same numbers; exponentials,
sines and the like are numpy's, whose last digit may differ from that of a C library.
"""

from __future__ import annotations

import numpy as np

from ..network.scaling import FARTHEST
from ..operators import Pool
from ..operators.kinds import stated
from .c_float import input_constants, quantized
from .program import Program, Step

__all__ = ["features", "head_outputs", "scores"]

_CHUNK_ELEMENTS = 1 << 20
_ONE, _ZERO = np.float32(1), np.float32(0)


def features(program: Program, rows: np.ndarray, weights: str) -> np.ndarray:
    """What the head sees of raw rows (n, n_inputs)."""
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
        out = _outputs(program.head, seen, weights)
    if program.output_low is not None and program.output_high is not None:
        out = np.clip(out, _single(program.output_low), _single(program.output_high))
    return out


def scores(program: Program, outputs: np.ndarray) -> np.ndarray:
    """Scores (n, n_outputs) of the head's outputs."""
    if program.classes is None:
        return outputs
    with np.errstate(all="ignore"):
        largest = outputs.max(axis=1, keepdims=True)
        shares = np.exp(outputs - largest)
        if program.loss == "mse":
            shares = np.where(largest > 0, np.maximum(outputs, _ZERO) / largest, shares)
        return shares / shares.sum(axis=1, keepdims=True)


def _single(values: np.ndarray) -> np.ndarray:
    return values.astype(np.float32)


def _network_input(program: Program, x: np.ndarray) -> np.ndarray:
    constants = {name: _single(values) for name, values in input_constants(program).items()}
    if constants:
        x = x - constants["input_mean"]
        x = x - constants["input_mean_rest"] if "input_mean_rest" in constants else x
        x = x / constants["input_scale"]
    if program.input_bound is None:
        return x
    bound, far = np.float32(program.input_bound), np.float32(FARTHEST)
    u = np.clip(x / bound, -far, far)
    return bound * u / np.sqrt(_ONE + u * u)


def _outputs(step: Step, x: np.ndarray, weights: str) -> np.ndarray:
    weight = _single(step.weight)
    if weights != "float32":
        values, unit = quantized(step.weight, weights)
        weight = _single(unit)[:, None] * values.astype(np.float32)
    rows = max(1, _CHUNK_ELEMENTS // weight.size)
    nodal, pool, activation = step.operators.operators
    psi = stated(nodal.formula)
    parts = [
        _pooled(pool, psi(x[start : start + rows].T[:, :, None], weight.T[:, None, :]))
        for start in range(0, len(x), rows)
    ]
    z = np.concatenate(parts)
    if step.unit:
        largest = np.abs(z).max(axis=1, keepdims=True)
        z = z / np.where(largest > 0, largest, _ONE)
        squares = np.square(z).sum(axis=1, keepdims=True)
        z = z / np.where(squares > 0, np.sqrt(squares), _ONE)
    if step.bias is not None:
        z = z + _single(step.bias)
    out = stated(activation.single or activation.formula)(z)
    if step.scale is not None and step.shift is not None:
        out = _single(step.scale) * out + _single(step.shift)
    return out


def _pooled(pool: Pool, psi: np.ndarray) -> np.ndarray:
    """rho of psi (n_inputs, n, n_neurons)."""
    return stated(pool.formula)(np.moveaxis(psi, 0, 1)) if pool.single is None else pool.single(psi)
