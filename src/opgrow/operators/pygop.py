"""The operators of PyGOP 0.2.3 where they differ: (w y)^2 as quadratic, inputs and arguments clipped."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from . import single_precision as f32
from .activation import (
    fixed_softplus,
    onnx_softplus,
    sigmoid,
    single_softplus,
    softplus,
    tensor_softplus,
)
from .fixed_forms import Array, Bits, FixedActivation, FixedNodal
from .kinds import Activation, Nodal, Separable
from .nodal import FIXED_BELL, LOG2_E, bell_slopes, fixed_bell, onnx_bell
from .shared import (
    bounded_exp,
    clamped,
    onnx_clamped,
    onnx_square,
    passes_gradient,
    tensor_bounded_exp,
    tensor_clamped,
)

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["ACTIVATIONS", "NODALS"]

_FIXED_CLAMPED = "const int32_t c = within(y, rescale(10, -x_bits));\n"


def _fixed_clamped(arithmetic: Any, y: Array, bits: int) -> Array:
    return arithmetic.within(y, arithmetic.rescale(10, -bits))


def _quadratic_slopes(y: Array, w: Array) -> tuple[Array, Array]:
    c = clamped(y)
    return 2 * w * np.square(c), 2 * np.square(w) * c * passes_gradient(y)


def _fixed_quadratic(
    arithmetic: Any, y: Array, w: Array, w_bits: Bits, x_bits: int, bits: int
) -> tuple[Array, Bits]:
    product = w * _fixed_clamped(arithmetic, y, x_bits)
    return product * product, 2 * (w_bits + x_bits) - bits


QUADRATIC = Nodal(
    name="pygop_quadratic",
    function=lambda y, w: (w * tensor_clamped(y)).square(),
    flops=2,
    code=6,
    formula=lambda y, w: np.square(w * clamped(y)),
    slopes=_quadratic_slopes,
    c="(w * bounded(y)) * (w * bounded(y))",
    js="(w * bounded(y)) ** 2",
    text="({w} * clip({y}, -10, 10))**2",
    latex=r"\left({w}\,{y}\right)^2",
    fixed=FixedNodal(
        f"{_FIXED_CLAMPED}return psi((int64_t)(w * c) * (w * c), 2 * (w_bits + x_bits) - psi_bits);\n",
        _fixed_quadratic,
        digits=24,
    ),
    onnx=Separable(lambda graph, y: onnx_square(graph, onnx_clamped(graph, y)), np.square),
)


def _tensor_dog(y: Tensor, w: Tensor) -> Tensor:
    return w * y * tensor_bounded_exp(-w * tensor_clamped(y).square())


def _dog_slopes(y: Array, w: Array) -> tuple[Array, Array]:
    bell, exponent = bell_slopes(clamped(y), w)
    return y * bell * (1 - exponent), w * bell * (1 - 2 * exponent * passes_gradient(y))


def _fixed_dog(
    arithmetic: Any, y: Array, w: Array, w_bits: Bits, x_bits: int, bits: int
) -> tuple[Array, Bits]:
    bell = fixed_bell(arithmetic, _fixed_clamped(arithmetic, y, x_bits), w, w_bits, x_bits)
    return w * y * bell, w_bits + x_bits + 16 - bits


DOG = Nodal(
    name="pygop_dog",
    function=_tensor_dog,
    flops=6,
    code=7,
    formula=lambda y, w: w * y * bounded_exp(-w * np.square(clamped(y))),
    slopes=_dog_slopes,
    single=lambda y, w: w * y * f32.two_to(f32.bounded2(w * (f32.bounded(y) * f32.bounded(y) * -LOG2_E))),
    c="w * y * two_to(bounded2(w * (bounded(y) * bounded(y) * -1.44269504f)))",
    js="w * y * exp(bounded(-w * bounded(y) ** 2))",
    text="{w} * {y} * exp({clip}{minus_w} * clip({y}, -10, 10)**2{end})",
    latex=r"{w}\,{y}\,e^{{{minus_w}\,{y}^2}}",
    fixed=FixedNodal(
        f"{_FIXED_CLAMPED}return psi((int64_t)(w * y) * {FIXED_BELL.format(y='c')},\n"
        "    w_bits + x_bits + 16 - psi_bits);\n",
        _fixed_dog,
        digits=20,
    ),
    onnx=lambda graph, y, w: graph.add("Mul", onnx_bell(graph, onnx_clamped(graph, y), w), y),
)

SOFTPLUS = Activation(
    name="pygop_softplus",
    function=lambda x: tensor_softplus(tensor_clamped(x)),
    flops=4,
    code=6,
    formula=lambda x: softplus(clamped(x)),
    slopes=lambda x: -sigmoid(-x) * passes_gradient(x),
    single=lambda x: single_softplus(f32.bounded(x)),
    c="softplus(bounded(x))",
    js="(x < 0 ? -bounded(x) : 0) + log1p(exp(-abs(bounded(x))))",
    text="logaddexp(0, -clip({x}, -10, 10))",
    latex=r"\log\left(1 + e^{{-\left({x}\right)}}\right)",
    fixed=FixedActivation(
        """\
const int32_t x = within(z, rescale(10, -bits));
return saturated((int64_t)(x < 0 ? -x : 0) + softplus(x, bits));
""",
        lambda arithmetic, z, bits: fixed_softplus(arithmetic, _fixed_clamped(arithmetic, z, bits), bits),
        input_bits=(24, 24),
    ),
    onnx=lambda graph, x: onnx_softplus(graph, onnx_clamped(graph, x)),
)

NODALS = (QUADRATIC, DOG)
ACTIVATIONS = (SOFTPLUS,)
