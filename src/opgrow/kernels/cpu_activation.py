"""The activations and their slopes, applied to flat float32 arrays.

Slopes are computed without 1 - f(x), which loses all digits where an activation saturates.
"""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

from typing import Any

from .cpu_math import (
    CLAMP,
    FOUR,
    ONE,
    TWO,
    ZERO,
    clamp,
    compiled,
    exp,
    expm1,
    sigmoid,
    softplus_negative,
    tanh,
)
from .cpu_nodal import inside

SIGMOID, TANH, RELU, SOFTPLUS, INVERSE_ABSOLUTE, ELU, PYGOP_SOFTPLUS, IDENTITY = range(8)


def _elementwise(function: Any) -> Any:
    @compiled()
    def apply(x, out):
        for j in range(x.size):
            out[j] = function(x[j])

    return apply


@compiled(inline="always")
def _relu(x):
    return x if x > ZERO else ZERO


@compiled(inline="always")
def _inverse_absolute(x):
    return x / (ONE + abs(x))


@compiled(inline="always")
def _elu(x):
    return x if x >= ZERO else expm1(x)


@compiled(inline="always")
def _identity(x):
    return x


@compiled(inline="always")
def _pygop_softplus(x):
    return softplus_negative(clamp(x, -CLAMP, CLAMP))


_apply_sigmoid = _elementwise(sigmoid)
_apply_tanh = _elementwise(tanh)
_apply_relu = _elementwise(_relu)
_apply_softplus = _elementwise(softplus_negative)
_apply_inverse_absolute = _elementwise(_inverse_absolute)
_apply_elu = _elementwise(_elu)
_apply_pygop_softplus = _elementwise(_pygop_softplus)
_apply_identity = _elementwise(_identity)


@compiled()
def activate(activation, x, out):
    """out = f(x) for flat float32 arrays."""
    if activation == SIGMOID:
        _apply_sigmoid(x, out)
    elif activation == TANH:
        _apply_tanh(x, out)
    elif activation == RELU:
        _apply_relu(x, out)
    elif activation == SOFTPLUS:
        _apply_softplus(x, out)
    elif activation == INVERSE_ABSOLUTE:
        _apply_inverse_absolute(x, out)
    elif activation == ELU:
        _apply_elu(x, out)
    elif activation == IDENTITY:
        _apply_identity(x, out)
    else:
        _apply_pygop_softplus(x, out)


@compiled(inline="always")
def _sigmoid_slope(x):
    return sigmoid(x) * sigmoid(-x)


@compiled(inline="always")
def _tanh_slope(x):
    return FOUR * sigmoid(TWO * x) * sigmoid(-TWO * x)


@compiled(inline="always")
def _relu_slope(x):
    return ONE if x > ZERO else ZERO


@compiled(inline="always")
def _softplus_slope(x):
    return -sigmoid(-x)


@compiled(inline="always")
def _inverse_absolute_slope(x):
    return ONE / ((ONE + abs(x)) * (ONE + abs(x)))


@compiled(inline="always")
def _elu_slope(x):
    return ONE if x >= ZERO else exp(x)


@compiled(inline="always")
def _pygop_softplus_slope(x):
    return -sigmoid(-x) * inside(x)


def _elementwise_backward(slope: Any) -> Any:
    @compiled()
    def apply(x, grad):
        for j in range(x.size):
            grad[j] *= slope(x[j])

    return apply


_back_sigmoid = _elementwise_backward(_sigmoid_slope)
_back_tanh = _elementwise_backward(_tanh_slope)
_back_relu = _elementwise_backward(_relu_slope)
_back_softplus = _elementwise_backward(_softplus_slope)
_back_inverse_absolute = _elementwise_backward(_inverse_absolute_slope)
_back_elu = _elementwise_backward(_elu_slope)
_back_pygop_softplus = _elementwise_backward(_pygop_softplus_slope)


@compiled()
def activation_backward(activation, x, grad):
    """Multiply ``grad`` by f'(x); flat arrays."""
    if activation == SIGMOID:
        _back_sigmoid(x, grad)
    elif activation == TANH:
        _back_tanh(x, grad)
    elif activation == RELU:
        _back_relu(x, grad)
    elif activation == SOFTPLUS:
        _back_softplus(x, grad)
    elif activation == INVERSE_ABSOLUTE:
        _back_inverse_absolute(x, grad)
    elif activation == ELU:
        _back_elu(x, grad)
    elif activation != IDENTITY:
        _back_pygop_softplus(x, grad)
