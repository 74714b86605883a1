"""The activations of the paper's Table 1, and the identity, each with all that is known about it.

ONNX has the sigmoid as 1 / (1 + exp(-x)): ONNX Runtime approximates its own to an absolute error, which
batch norm would magnify where the sigmoid is small.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from . import single_precision as f32
from .fixed_forms import Array, FixedActivation
from .kinds import Activation
from .shared import onnx_expm1

if TYPE_CHECKING:
    from torch import Tensor

__all__ = [
    "ACTIVATIONS",
    "fixed_softplus",
    "onnx_softplus",
    "sigmoid",
    "single_softplus",
    "softplus",
    "tensor_softplus",
]

_ONE = 1 << 30


def sigmoid(x: Array) -> Array:
    e = np.exp(-np.abs(x))
    return np.where(x >= 0, 1, e) / (1 + e)


def _sigmoid_slopes(x: Array) -> Array:
    # Without 1 - f(x), which loses all digits where f saturates.
    e = np.exp(-np.abs(x))
    return e / np.square(1 + e)


def _fixed_sigmoid(arithmetic: Any, z: Array, bits: int) -> Array:
    below = arithmetic.logistic(arithmetic.rescale(np.abs(z), bits - 20))
    return np.where(z < 0, below, _ONE - below)


def _onnx_sigmoid(graph: Any, x: str) -> str:
    below = graph.add("Add", graph.add("Exp", graph.add("Neg", x)), graph.constant(1))
    return graph.add("Reciprocal", below)


SIGMOID = Activation(
    name="sigmoid",
    function=lambda x: x.sigmoid(),
    flops=1,
    code=0,
    formula=sigmoid,
    slopes=_sigmoid_slopes,
    single=lambda x: np.float32(1) / (np.float32(1) + f32.exponential(-x)),
    c="1.0f / (1.0f + exponential(-x))",
    js="1 / (1 + exp(-x))",
    text="1 / (1 + exp(-({x})))",
    latex=r"\frac{{1}}{{1 + e^{{-\left({x}\right)}}}}",
    fixed=FixedActivation(
        """\
const int32_t below = logistic(rescale(z < 0 ? -z : z, bits - 20));
return z < 0 ? below : (INT32_C(1) << 30) - below;
""",
        _fixed_sigmoid,
        bits=30,
        input_bits=(24, 24),
    ),
    onnx=_onnx_sigmoid,
)


def _fixed_tanh(arithmetic: Any, z: Array, bits: int) -> Array:
    value = _ONE - 2 * arithmetic.logistic(arithmetic.rescale(np.abs(z), bits - 21))
    return np.where(z < 0, -value, value)


def _single_tanh(x: Array) -> Array:
    e = f32.two_to_minus_1(f32.within(x * np.float32(2.88539008), 30.0))
    return e / (e + np.float32(2))


TANH = Activation(
    name="tanh",
    function=lambda x: x.tanh(),
    flops=1,
    code=1,
    formula=np.tanh,
    slopes=lambda x: 4 * _sigmoid_slopes(2 * x),
    single=_single_tanh,
    c="hyperbolic_tangent(x)",
    js="tanh(x)",
    text="tanh({x})",
    latex=r"\tanh\left({x}\right)",
    fixed=FixedActivation(
        """\
const int32_t value = (INT32_C(1) << 30) - 2 * logistic(rescale(z < 0 ? -z : z, bits - 21));
return z < 0 ? -value : value;
""",
        _fixed_tanh,
        bits=30,
        input_bits=(24, 24),
    ),
    onnx=lambda graph, x: graph.add("Tanh", x),
)

RELU = Activation(
    name="relu",
    function=lambda x: x.relu(),
    flops=1,
    code=2,
    formula=lambda x: np.maximum(x, 0),
    slopes=lambda x: (x > 0).astype(x.dtype),
    c="x < 0.0f ? 0.0f : x",
    js="x < 0 ? 0 : x",
    text="maximum({x}, 0)",
    latex=r"\max\left(0, {x}\right)",
    fixed=FixedActivation(
        "(void)bits;\nreturn z < 0 ? 0 : z;\n", lambda arithmetic, z, bits: np.maximum(z, 0)
    ),
    onnx=lambda graph, x: graph.add("Relu", x),
)

# log(1 + exp(-x)), with the minus sign of the paper's Table 1.


def softplus(x: Array) -> Array:
    return np.maximum(-x, 0) + np.log1p(np.exp(-np.abs(x)))


def single_softplus(x: Array) -> Array:
    return np.maximum(-x, np.float32(0)) + f32.log_of_1_plus(f32.exponential(-f32.size_of(x)))


def tensor_softplus(x: Tensor) -> Tensor:
    from torch.nn.functional import logsigmoid

    return -logsigmoid(x)


def fixed_softplus(arithmetic: Any, z: Array, bits: int) -> Array:
    return arithmetic.saturated(np.where(z < 0, -z, 0) + arithmetic.softplus(z, bits))


def onnx_softplus(graph: Any, x: str) -> str:
    return graph.add("Softplus", graph.add("Neg", x))


SOFTPLUS = Activation(
    name="softplus",
    function=tensor_softplus,
    flops=4,
    code=3,
    formula=softplus,
    slopes=lambda x: -sigmoid(-x),
    single=lambda x: single_softplus(x),
    c="softplus(x)",
    js="(x < 0 ? -x : 0) + log1p(exp(-abs(x)))",
    text="logaddexp(0, -({x}))",
    latex=r"\log\left(1 + e^{{-\left({x}\right)}}\right)",
    fixed=FixedActivation(
        "return saturated((int64_t)(z < 0 ? -z : 0) + softplus(z, bits));\n", fixed_softplus
    ),
    onnx=onnx_softplus,
)


def _fixed_inverse_absolute(arithmetic: Any, z: Array, bits: int) -> Array:
    size = np.abs(z)
    share = (2**32 - 1) // (65536 + arithmetic.rescale(size, bits - 16)) + 1
    below_half = arithmetic.rescale(size * share, bits - 14)
    return np.sign(z) * np.where(share > 32768, below_half, _ONE - (share << 14))


INVERSE_ABSOLUTE = Activation(
    name="inverse_absolute",
    function=lambda x: x / (1 + x.abs()),
    flops=3,
    code=4,
    formula=lambda x: x / (1 + np.abs(x)),
    slopes=lambda x: 1 / np.square(1 + np.abs(x)),
    c="x / (1.0f + size_of(x))",
    js="x / (1 + abs(x))",
    text="{x} / (1 + abs({x}))",
    latex=r"\frac{{{x}}}{{1 + \left|{x}\right|}}",
    fixed=FixedActivation(
        """\
const int32_t size = z < 0 ? -z : z;
const uint32_t share = UINT32_MAX / (65536 + (uint32_t)rescale(size, bits - 16)) + 1; /* 1 / (1 + size) */
const int32_t value = share > 32768 ? rescale((int64_t)size * (int32_t)share, bits - 14)
    : (INT32_C(1) << 30) - (int32_t)(share << 14);
return z < 0 ? -value : value;
""",
        _fixed_inverse_absolute,
        bits=30,
        input_bits=(12, 24),
    ),
    onnx=lambda graph, x: graph.add("Softsign", x),
)


# The paper prints exp(x) for x < 0, which jumps at 0; the usual ELU is meant.


def _tensor_elu(x: Tensor) -> Tensor:
    from torch.nn.functional import elu

    return elu(x)


def _fixed_elu(arithmetic: Any, z: Array, bits: int) -> Array:
    below = arithmetic.exponential(arithmetic.rescale(np.minimum(z, 0), bits - 20), bits)
    return np.where(z < 0, below - arithmetic.rescale(1, -bits), z)


def _single_elu(x: Array) -> Array:
    below = f32.two_to_minus_1(f32.within(x * np.float32(1.44269504), 60.0))
    return np.where(x < 0, below, x)


def _onnx_elu(graph: Any, x: str) -> str:
    below = onnx_expm1(graph, graph.add("Min", x, graph.constant(0)))
    return graph.add("Add", graph.add("Relu", x), below)


ELU = Activation(
    name="elu",
    function=_tensor_elu,
    flops=3,
    code=5,
    formula=lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))),
    slopes=lambda x: np.where(x > 0, 1, np.exp(np.minimum(x, 0))),
    single=_single_elu,
    c="linear_above_0(x)",
    js="x < 0 ? expm1(x) : x",
    text="where({x} > 0, {x}, expm1(minimum({x}, 0)))",
    latex=r"\max\left({x}, 0\right) + e^{{\min\left({x}, 0\right)}} - 1",
    fixed=FixedActivation(
        "return z < 0 ? exponential(rescale(z, bits - 20), bits) - rescale(1, -bits) : z;\n", _fixed_elu
    ),
    onnx=_onnx_elu,
)

#: Linear neurons: the memory of POPmem and the feature nodes of BLS. No library searches it.
IDENTITY = Activation(
    name="identity",
    function=lambda x: x,
    flops=0,
    code=7,
    formula=lambda x: x,
    slopes=np.ones_like,
    c="x",
    js="x",
    text="{x}",
    latex="{x}",
    fixed=FixedActivation("(void)bits;\nreturn z;\n", lambda arithmetic, z, bits: z),
    onnx=lambda graph, x: x,
)

ACTIVATIONS = (SIGMOID, TANH, RELU, SOFTPLUS, INVERSE_ABSOLUTE, ELU, IDENTITY)
