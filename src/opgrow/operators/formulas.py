"""The formulas of the built-in operators in numpy, by name, for arrays in single or double precision.

`opgrow.operators.formulas_torch` has the same in torch. The engine has them in C.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

__all__ = ["ACTIVATIONS", "CLAMP", "NODALS", "POOLS", "unit_rows"]

#: Arguments of exp are limited to [-CLAMP, CLAMP], so that no operator overflows.
CLAMP = 10.0

Array = np.ndarray


def _clamped(x: Array) -> Array:
    return np.clip(x, -CLAMP, CLAMP)


def _bounded_exp(x: Array) -> Array:
    return np.exp(_clamped(x))


def _softplus(x: Array) -> Array:
    """log(1 + exp(-x)), with the minus sign of the paper's Table 1."""
    return np.maximum(-x, 0) + np.log1p(np.exp(-np.abs(x)))


def _sigmoid(x: Array) -> Array:
    e = np.exp(-np.abs(x))
    return np.where(x >= 0, 1, e) / (1 + e)


def _elu(x: Array) -> Array:
    # The paper prints exp(x) for x < 0, which jumps at 0; the usual ELU is meant.
    return np.where(x > 0, x, np.expm1(np.minimum(x, 0)))


#: psi(y, w) of inputs and weights that broadcast.
NODALS: Mapping[str, Callable[[Array, Array], Array]] = {
    "multiplication": lambda y, w: w * y,
    "exponential": lambda y, w: np.expm1(_clamped(w * y)),
    "harmonic": lambda y, w: np.sin(w * y),
    "quadratic": lambda y, w: w * np.square(y),
    "gaussian": lambda y, w: w * _bounded_exp(-w * np.square(y)),
    "dog": lambda y, w: w * y * _bounded_exp(-w * np.square(y)),
    "pygop_quadratic": lambda y, w: np.square(w * _clamped(y)),
    "pygop_dog": lambda y, w: w * y * _bounded_exp(-w * np.square(_clamped(y))),
}
#: rho over the inputs: (N, D, d) to (N, d).
POOLS: Mapping[str, Callable[[Array], Array]] = {
    "sum": lambda z: z.sum(axis=1),
    "correlation1": lambda z: (z[:, :-1] * z[:, 1:]).sum(axis=1),
    "correlation2": lambda z: (z[:, :-2] * z[:, 1:-1] * z[:, 2:]).sum(axis=1),
    "maximum": lambda z: z.max(axis=1),
}
#: f(x), elementwise.
ACTIVATIONS: Mapping[str, Callable[[Array], Array]] = {
    "sigmoid": _sigmoid,
    "tanh": np.tanh,
    "relu": lambda x: np.maximum(x, 0),
    "softplus": _softplus,
    "inverse_absolute": lambda x: x / (1 + np.abs(x)),
    "elu": _elu,
    "pygop_softplus": lambda x: _softplus(_clamped(x)),
    "identity": lambda x: x,
}


def unit_rows(z: Array) -> Array:
    """Rows divided by their Euclidean norm; rows of zeros stay."""
    # Dividing by the largest entry first keeps the squares from overflowing or vanishing.
    largest = np.abs(z).max(axis=1, keepdims=True)
    with np.errstate(invalid="ignore"):  # what is infinite becomes NaN
        z = z / np.where(largest == 0, 1, largest).astype(z.dtype)
    squares = np.square(z).sum(axis=1, keepdims=True)
    return z / np.sqrt(np.where(squares == 0, 1, squares).astype(z.dtype))
