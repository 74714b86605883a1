"""What the formulas of several operators share: the bound on exponents, and pieces of ONNX graphs.

Tensors are torch's and know these functions as methods, so that nothing here imports torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from torch import Tensor

__all__ = [
    "CLAMP",
    "bounded_exp",
    "clamped",
    "onnx_clamped",
    "onnx_expm1",
    "onnx_square",
    "passes_gradient",
    "tensor_bounded_exp",
    "tensor_clamped",
]

#: Arguments of exp are limited to [-CLAMP, CLAMP], so that no operator overflows.
CLAMP = 10.0


def clamped(x: np.ndarray) -> np.ndarray:
    return np.clip(x, -CLAMP, CLAMP)


def bounded_exp(x: np.ndarray) -> np.ndarray:
    return np.exp(clamped(x))


def passes_gradient(x: np.ndarray) -> np.ndarray:
    """The slope of `clamped`: 1 up to the bound and 0 beyond it."""
    return (np.abs(x) <= CLAMP).astype(x.dtype)


def tensor_clamped(x: Tensor) -> Tensor:
    return x.clamp(-CLAMP, CLAMP)


def tensor_bounded_exp(x: Tensor) -> Tensor:
    return tensor_clamped(x).exp()


# An ONNX graph under construction has the methods of `opgrow.export.onnx_graph.Graph`.


def onnx_clamped(graph: Any, x: str) -> str:
    return graph.add("Clip", x, graph.constant(-CLAMP), graph.constant(CLAMP))


def onnx_square(graph: Any, x: str) -> str:
    return graph.add("Mul", x, x)


def onnx_expm1(graph: Any, x: str) -> str:
    """exp(x) - 1 as tanh(x / 2) (exp(x) + 1), which keeps the digits of small x."""
    half = graph.add("Tanh", graph.add("Mul", x, graph.constant(0.5)))
    return graph.add("Mul", half, graph.add("Add", graph.add("Exp", x), graph.constant(1)))
