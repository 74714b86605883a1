"""The formulas of the built-in operators in torch, by name: differentiable, for any device and precision.

`opgrow.operators.formulas` has the same in numpy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from .formulas import CLAMP

__all__ = ["FUNCTIONS", "unit_rows"]


def _bounded_exp(x: Tensor) -> Tensor:
    return torch.exp(x.clamp(-CLAMP, CLAMP))


def _correlation1(z: Tensor) -> Tensor:
    return (z[:, :-1] * z[:, 1:]).sum(dim=1)


def _correlation2(z: Tensor) -> Tensor:
    return (z[:, :-2] * z[:, 1:-1] * z[:, 2:]).sum(dim=1)


def _pygop_dog(y: Tensor, w: Tensor) -> Tensor:
    return w * y * _bounded_exp(-w * y.clamp(-CLAMP, CLAMP).square())


#: Kinds of operators, and their functions by name.
FUNCTIONS: Mapping[str, Mapping[str, Callable[..., Any]]] = {
    "nodal": {
        "multiplication": lambda y, w: w * y,
        "exponential": lambda y, w: torch.expm1((w * y).clamp(-CLAMP, CLAMP)),
        "harmonic": lambda y, w: torch.sin(w * y),
        "quadratic": lambda y, w: w * y.square(),
        "gaussian": lambda y, w: w * _bounded_exp(-w * y.square()),
        "dog": lambda y, w: w * y * _bounded_exp(-w * y.square()),
        "pygop_quadratic": lambda y, w: (w * y.clamp(-CLAMP, CLAMP)).square(),
        "pygop_dog": _pygop_dog,
    },
    "pool": {
        "sum": lambda z: z.sum(dim=1),
        "correlation1": _correlation1,
        "correlation2": _correlation2,
        # torch.max, not amax: on ties the gradient goes to the first maximum alone.
        "maximum": lambda z: z.max(dim=1).values,
    },
    "activation": {
        "sigmoid": torch.sigmoid,
        "tanh": torch.tanh,
        "relu": torch.relu,
        # log(1 + exp(-x)), with the minus sign of the paper's Table 1.
        "softplus": lambda x: -torch.nn.functional.logsigmoid(x),
        "inverse_absolute": lambda x: x / (1 + x.abs()),
        # The paper prints exp(x) for x < 0, which jumps at 0; the usual ELU is meant.
        "elu": torch.nn.functional.elu,
        "pygop_softplus": lambda x: -torch.nn.functional.logsigmoid(x.clamp(-CLAMP, CLAMP)),
        "identity": lambda x: x,
    },
}


def unit_rows(z: Tensor) -> Tensor:
    """Rows divided by their Euclidean norm; rows of zeros stay, and their gradients are finite."""
    # Dividing by the largest entry first keeps the squares from overflowing or vanishing. The result does not
    # depend on that factor, so it takes no part in the gradient.
    largest = z.detach().abs().amax(dim=1, keepdim=True)
    z = z / torch.where(largest == 0, torch.ones_like(largest), largest)
    squares = z.square().sum(dim=1, keepdim=True)
    return z / torch.where(squares == 0, torch.ones_like(squares), squares).sqrt()
