"""The nodal operators of the paper's Table 1, psi(y, w), each with all that is known about it.

Costs follow the convention of the paper's table of FLOPs: every elementary operation of the printed formula
counts once, and guards do not count. The engine has psi and its slopes as ``og_<name>`` and
``og_<name>_slopes`` in ``engine/c/operators.h``, and Triton in ``engine/cuda/triton_math.py``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from . import single_precision as f32
from .fixed_forms import Array, Bits, ExactProducts, FixedNodal
from .kinds import Nodal, Separable
from .shared import (
    bounded_exp,
    clamped,
    onnx_clamped,
    onnx_expm1,
    onnx_square,
    passes_gradient,
    tensor_bounded_exp,
    tensor_clamped,
)

__all__ = ["FIXED_BELL", "LOG2_E", "NODALS", "bell_slopes", "fixed_bell", "onnx_bell"]

#: Powers of two are what single precision takes: exp(x) = 2^(x log2(e)). Angles are half turns.
LOG2_E, _INVERSE_PI = np.float32(1.44269504), np.float32(0.318309886)

MULTIPLICATION = Nodal(
    name="multiplication",
    function=lambda y, w: w * y,
    flops=1,
    code=0,
    formula=lambda y, w: w * y,
    slopes=lambda y, w: (y, w),
    c="w * y",
    js="w * y",
    text="{w} * {y}",
    latex=r"{w}\,{y}",
    fixed=FixedNodal(
        "return psi((int64_t)w * y, w_bits + x_bits - psi_bits);\n",
        lambda arithmetic, y, w, w_bits, x_bits, bits: (w * y, w_bits + x_bits - bits),
        digits=24,
        exact=ExactProducts("(int32_t)WEIGHT_AT(w + {i}) * x[{i}]", "(w_bits + x_bits)", power=1),
    ),
    onnx=Separable(lambda graph, y: y, lambda w: w),
)


def _exponential_slopes(y: Array, w: Array) -> tuple[Array, Array]:
    slope = bounded_exp(w * y) * passes_gradient(w * y)
    return y * slope, w * slope


def _fixed_exponential(
    arithmetic: Any, y: Array, w: Array, w_bits: Bits, x_bits: int, bits: int
) -> tuple[Array, Bits]:
    exponent = arithmetic.rescale(w * y, w_bits + x_bits - 20)
    return arithmetic.exponential(arithmetic.within(exponent, arithmetic.TEN), 16) - 65536, 16 - bits


EXPONENTIAL = Nodal(
    name="exponential",
    function=lambda y, w: tensor_clamped(w * y).expm1(),
    flops=3,
    code=1,
    formula=lambda y, w: np.expm1(clamped(w * y)),
    slopes=_exponential_slopes,
    single=lambda y, w: f32.two_to_minus_1(f32.bounded2(w * (y * LOG2_E))),
    c="two_to_minus_1(bounded2(w * (y * 1.44269504f)))",
    js="expm1(bounded(w * y))",
    text="expm1({clip}{w} * {y}{end})",
    latex=r"\left(e^{{{w}\,{y}}} - 1\right)",
    fixed=FixedNodal(
        "return psi(exponential(limited((int64_t)w * y, w_bits + x_bits - 20, TEN), 16)\n"
        "    - 65536, 16 - psi_bits);\n",
        _fixed_exponential,
        digits=16,
    ),
    onnx=lambda graph, y, w: onnx_expm1(graph, onnx_clamped(graph, graph.add("Mul", y, w))),
)


def _harmonic_slopes(y: Array, w: Array) -> tuple[Array, Array]:
    cosine = np.cos(w * y)
    return y * cosine, w * cosine


def _fixed_harmonic(
    arithmetic: Any, y: Array, w: Array, w_bits: Bits, x_bits: int, bits: int
) -> tuple[Array, Bits]:
    # 341782638 = 2^31 / (2 pi)
    return arithmetic.sine(arithmetic.rescale(w * y * 341782638, w_bits + x_bits + 13)), 16 - bits


HARMONIC = Nodal(
    name="harmonic",
    function=lambda y, w: (w * y).sin(),
    flops=2,
    code=2,
    formula=lambda y, w: np.sin(w * y),
    slopes=_harmonic_slopes,
    single=lambda y, w: f32.sine_of_half_turns(w * (y * _INVERSE_PI)),
    c="sine_of_half_turns(w * (y * 0.318309886f))",
    js="sin(w * y)",
    text="sin({w} * {y})",
    latex=r"\sin\left({w}\,{y}\right)",
    fixed=FixedNodal(
        "return psi(sine(rescale((int64_t)w * y * 341782638, w_bits + x_bits + 13)), 16 - psi_bits);\n",
        _fixed_harmonic,
        digits=16,
    ),
    onnx=lambda graph, y, w: graph.add("Sin", graph.add("Mul", y, w)),
)

QUADRATIC = Nodal(
    name="quadratic",
    function=lambda y, w: w * y.square(),
    flops=2,
    code=3,
    formula=lambda y, w: w * np.square(y),
    slopes=lambda y, w: (np.square(y), 2 * w * y),
    c="w * (y * y)",
    js="w * fround(y * y)",
    text="{w} * {y}**2",
    latex=r"{w}\,{y}^2",
    fixed=FixedNodal(
        "return psi((int64_t)w * (y * y), w_bits + 2 * x_bits - psi_bits);\n",
        lambda arithmetic, y, w, w_bits, x_bits, bits: (w * (y * y), w_bits + 2 * x_bits - bits),
        digits=24,
        exact=ExactProducts(
            "(int64_t)WEIGHT_AT(w + {i}) * ((int32_t)x[{i}] * x[{i}])", "(w_bits + 2 * x_bits)", power=2
        ),
    ),
    onnx=Separable(onnx_square, lambda w: w),
)

# The bell exp(-w y^2), with the exponent clamped, is a factor of the other operators.

#: With 16 fractional bits, in C; {y} is the input.
FIXED_BELL = "exponential(limited(-(int64_t)w * ({y} * {y}), w_bits + 2 * x_bits - 20, TEN), 16)"


def fixed_bell(arithmetic: Any, y: Array, w: Array, w_bits: Bits, x_bits: int) -> Array:
    exponent = arithmetic.rescale(-w * (y * y), w_bits + 2 * x_bits - 20)
    return arithmetic.exponential(arithmetic.within(exponent, arithmetic.TEN), 16)


def onnx_bell(graph: Any, y: str, w: str) -> str:
    """w exp(-w y^2)"""
    exponent = graph.add("Mul", graph.add("Neg", onnx_square(graph, y)), w)
    return graph.add("Mul", graph.add("Exp", onnx_clamped(graph, exponent)), w)


def bell_slopes(y: Array, w: Array) -> tuple[Array, Array]:
    """The bell, and what its exponent w y^2 is where that follows the weight and the input; else 0."""
    exponent = w * np.square(y)
    return bounded_exp(-exponent), exponent * passes_gradient(exponent)


def _gaussian_slopes(y: Array, w: Array) -> tuple[Array, Array]:
    bell, exponent = bell_slopes(y, w)
    return bell * (1 - exponent), -2 * np.square(w) * y * bell * passes_gradient(w * np.square(y))


GAUSSIAN = Nodal(
    name="gaussian",
    function=lambda y, w: w * tensor_bounded_exp(-w * y.square()),
    flops=5,
    code=4,
    formula=lambda y, w: w * bounded_exp(-w * np.square(y)),
    slopes=_gaussian_slopes,
    single=lambda y, w: w * f32.two_to(f32.bounded2(w * (y * y * -LOG2_E))),
    c="w * two_to(bounded2(w * (y * y * -1.44269504f)))",
    js="w * exp(bounded(-w * (y * y)))",
    text="{w} * exp({clip}{minus_w} * {y}**2{end})",
    latex=r"{w}\,e^{{{minus_w}\,{y}^2}}",
    fixed=FixedNodal(
        f"return psi((int64_t)w * {FIXED_BELL.format(y='y')},\n    w_bits + 16 - psi_bits);\n",
        lambda arithmetic, y, w, w_bits, x_bits, bits: (
            w * fixed_bell(arithmetic, y, w, w_bits, x_bits),
            w_bits + 16 - bits,
        ),
        digits=20,
    ),
    onnx=onnx_bell,
)


def _dog_slopes(y: Array, w: Array) -> tuple[Array, Array]:
    bell, exponent = bell_slopes(y, w)
    return y * bell * (1 - exponent), w * bell * (1 - 2 * exponent)


#: The derivative of a Gaussian.
DOG = Nodal(
    name="dog",
    function=lambda y, w: w * y * tensor_bounded_exp(-w * y.square()),
    flops=6,
    code=5,
    formula=lambda y, w: w * y * bounded_exp(-w * np.square(y)),
    slopes=_dog_slopes,
    single=lambda y, w: w * y * f32.two_to(f32.bounded2(w * (y * y * -LOG2_E))),
    c="w * y * two_to(bounded2(w * (y * y * -1.44269504f)))",
    js="w * y * exp(bounded(-w * (y * y)))",
    text="{w} * {y} * exp({clip}{minus_w} * {y}**2{end})",
    latex=r"{w}\,{y}\,e^{{{minus_w}\,{y}^2}}",
    fixed=FixedNodal(
        f"return psi((int64_t)(w * y) * {FIXED_BELL.format(y='y')},\n    w_bits + x_bits + 16 - psi_bits);\n",
        lambda arithmetic, y, w, w_bits, x_bits, bits: (
            w * y * fixed_bell(arithmetic, y, w, w_bits, x_bits),
            w_bits + x_bits + 16 - bits,
        ),
        digits=20,
    ),
    onnx=lambda graph, y, w: graph.add("Mul", onnx_bell(graph, y, w), y),
)

NODALS = (MULTIPLICATION, EXPONENTIAL, HARMONIC, QUADRATIC, GAUSSIAN, DOG)
