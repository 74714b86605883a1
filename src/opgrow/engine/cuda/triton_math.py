"""The operators inside Triton kernels: psi, its derivatives, activations and theirs.

Where the two arguments of psi are a column and a row, factors are moved to these before they meet, so
that the work for every pair stays small. ``PRECISE`` keeps the relative accuracy of psi near 0, which a
search does not need. ``APPROX`` uses the card's own instructions for sine, cosine and powers of 2;
Triton's interpreter has none.
"""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

import triton
import triton.language as tl

# Codes as in `opgrow.operators`. The formulas are here and not on the operators because Triton compiles only
# functions of a module, and a kernel cannot be given one: the code selects a branch. A test compares them.
MULTIPLICATION = tl.constexpr(0)
EXPONENTIAL = tl.constexpr(1)
HARMONIC = tl.constexpr(2)
QUADRATIC = tl.constexpr(3)
GAUSSIAN = tl.constexpr(4)
DOG = tl.constexpr(5)
PYGOP_QUADRATIC = tl.constexpr(6)
PYGOP_DOG = tl.constexpr(7)
SIGMOID = tl.constexpr(0)
TANH = tl.constexpr(1)
RELU = tl.constexpr(2)
SOFTPLUS = tl.constexpr(3)
INVERSE_ABSOLUTE = tl.constexpr(4)
ELU = tl.constexpr(5)
PYGOP_SOFTPLUS = tl.constexpr(6)

_CLAMP = tl.constexpr(10.0)
_LOG2E = tl.constexpr(1.4426950408889634)
_LIMIT = tl.constexpr(14.426950408889634)  # the clamp in units of powers of 2
_INVERSE_PI = tl.constexpr(0.3183098861837907)
_PI_HIGH = tl.constexpr(3.140625)  # exact in a few bits, so that its multiples are exact, too
_PI_LOW = tl.constexpr(0.0009676535897932)
#: Adding and subtracting it rounds a float32 to a whole number, which its last bits then hold.
_ROUND = tl.constexpr(12582912.0)


@triton.jit
def _bounded(y):
    return tl.minimum(tl.maximum(y, -_CLAMP), _CLAMP)


@triton.jit
def _exp2(x, APPROX: tl.constexpr):
    if APPROX:
        return tl.inline_asm_elementwise(
            "ex2.approx.ftz.f32 $0, $1;", "=f,f", [x], dtype=tl.float32, is_pure=True, pack=1
        )
    else:
        return tl.exp2(x)


@triton.jit
def _bounded_exp(t, APPROX: tl.constexpr):
    """exp of an argument in units of log 2, clamped."""
    return _exp2(tl.minimum(tl.maximum(t, -_LIMIT), _LIMIT), APPROX)


@triton.jit
def _exp_minus_one(t, APPROX: tl.constexpr):
    series = 1.0 / 24.0 + t * (1.0 / 120.0 + t * (1.0 / 720.0))
    series = t * (1.0 + t * (0.5 + t * (1.0 / 6.0 + t * series)))
    return tl.where(tl.abs(t) < 0.25, series, _exp2(t * _LOG2E, APPROX) - 1.0)


@triton.jit
def _half_turns(t):
    """(r, sign bit) with t = r + k pi, r in [-pi/2, pi/2], and the sign of (-1)^k."""
    shifted = t * _INVERSE_PI + _ROUND
    k = shifted - _ROUND
    r = (t - k * _PI_HIGH) - k * _PI_LOW
    return r, shifted.to(tl.int32, bitcast=True) << 31


@triton.jit
def _flip(x, sign):
    return (x.to(tl.int32, bitcast=True) ^ sign).to(tl.float32, bitcast=True)


@triton.jit
def _sine(t):
    r, sign = _half_turns(t)
    s = r * r
    series = 2.7557319e-6 + s * -2.5052108e-8
    series = s * (-0.16666667 + s * (8.3333333e-3 + s * (-1.9841270e-4 + s * series)))
    return _flip(r + r * series, sign)


@triton.jit
def _cosine(t, APPROX: tl.constexpr):
    if APPROX:
        r, sign = _half_turns(t)
        near = tl.inline_asm_elementwise(
            "cos.approx.f32 $0, $1;", "=f,f", [r], dtype=tl.float32, is_pure=True, pack=1
        )
        return _flip(near, sign)
    else:
        return tl.cos(t)


@triton.jit
def _quick_sine(t, APPROX: tl.constexpr):
    if APPROX:
        return tl.inline_asm_elementwise(
            "sin.approx.ftz.f32 $0, $1;", "=f,f", [t], dtype=tl.float32, is_pure=True, pack=1
        )
    else:
        return tl.sin(t)


@triton.jit
def psi(y, w, NODAL: tl.constexpr, PRECISE: tl.constexpr, APPROX: tl.constexpr):
    """The nodal operator for inputs and weights that broadcast."""
    if NODAL == MULTIPLICATION:
        return w * y
    elif NODAL == EXPONENTIAL:
        if PRECISE:
            return _exp_minus_one(_bounded(w * y), APPROX)
        else:
            return _bounded_exp((w * _LOG2E) * y, APPROX) - 1.0
    elif NODAL == HARMONIC:
        if PRECISE:
            return _sine(w * y)
        else:
            return _quick_sine(w * y, APPROX)
    elif NODAL == QUADRATIC:
        return w * (y * y)
    elif NODAL == GAUSSIAN:
        return w * _bounded_exp((w * -_LOG2E) * (y * y), APPROX)
    elif NODAL == DOG:
        return (w * y) * _bounded_exp((w * -_LOG2E) * (y * y), APPROX)
    elif NODAL == PYGOP_QUADRATIC:
        return (w * w) * (_bounded(y) * _bounded(y))
    else:
        return (w * y) * _bounded_exp((w * -_LOG2E) * (_bounded(y) * _bounded(y)), APPROX)


@triton.jit
def slope(y, w, NODAL: tl.constexpr, BY_INPUT: tl.constexpr, APPROX: tl.constexpr):
    """The derivative of psi by the weight or by the input."""
    if NODAL == MULTIPLICATION:
        if BY_INPUT:
            return w + y * 0.0
        else:
            return y + w * 0.0
    elif NODAL == EXPONENTIAL:
        t = w * y
        power = _exp2(_bounded(t) * _LOG2E, APPROX)
        power = tl.where(tl.abs(t) <= _CLAMP, power, 0.0)
        if BY_INPUT:
            return w * power
        else:
            return y * power
    elif NODAL == HARMONIC:
        if BY_INPUT:
            return w * _cosine(w * y, APPROX)
        else:
            return y * _cosine(w * y, APPROX)
    elif NODAL == QUADRATIC:
        if BY_INPUT:
            return (2.0 * w) * y
        else:
            return y * y + w * 0.0
    elif NODAL == GAUSSIAN:
        t = w * (y * y)
        power = _bounded_exp(t * -_LOG2E, APPROX)
        t = tl.where(tl.abs(t) <= _CLAMP, t, 0.0)
        if BY_INPUT:
            inside = tl.where(tl.abs(w * (y * y)) <= _CLAMP, y, 0.0)
            return (-2.0 * w * w) * inside * power
        else:
            return power * (1.0 - t)
    elif NODAL == DOG:
        t = w * (y * y)
        power = _bounded_exp(t * -_LOG2E, APPROX)
        t = tl.where(tl.abs(t) <= _CLAMP, t, 0.0)
        if BY_INPUT:
            return w * power * (1.0 - 2.0 * t)
        else:
            return y * power * (1.0 - t)
    elif NODAL == PYGOP_QUADRATIC:
        near = _bounded(y)
        if BY_INPUT:
            return (2.0 * w * w) * tl.where(tl.abs(y) <= _CLAMP, near, 0.0)
        else:
            return (2.0 * w) * (near * near)
    else:
        near = _bounded(y)
        t = w * (near * near)
        power = _bounded_exp(t * -_LOG2E, APPROX)
        t = tl.where(tl.abs(t) <= _CLAMP, t, 0.0)
        if BY_INPUT:
            return w * power * (1.0 - 2.0 * tl.where(tl.abs(y) <= _CLAMP, t, 0.0))
        else:
            return y * power * (1.0 - t)


@triton.jit
def activate(x, code):
    """The activation with a code that is known at run time, the same for all of ``x``."""
    if code == SIGMOID:
        y = 1.0 / (1.0 + tl.exp(-x))
    elif code == TANH:
        y = _tanh(x)
    elif code == RELU:
        y = tl.where(x > 0.0, x, x * 0.0)
    elif code == SOFTPLUS:
        y = _softplus(x)
    elif code == INVERSE_ABSOLUTE:
        y = x / (1.0 + tl.abs(x))
    elif code == ELU:
        y = tl.where(x > 0.0, x, _exp_minus_one(x, False))
    elif code == PYGOP_SOFTPLUS:
        y = _softplus(_bounded(x))
    else:
        y = x
    return y


@triton.jit
def activation_slope(x, code):
    """The derivative of the activation at ``x``."""
    if code == SIGMOID:
        s = 1.0 / (1.0 + tl.exp(-x))
        y = s * (1.0 - s)
    elif code == TANH:
        s = _tanh(x)
        y = 1.0 - s * s
    elif code == RELU:
        y = tl.where(x > 0.0, 1.0, 0.0)
    elif code == SOFTPLUS:
        y = -1.0 / (1.0 + tl.exp(x))
    elif code == INVERSE_ABSOLUTE:
        s = 1.0 / (1.0 + tl.abs(x))
        y = s * s
    elif code == ELU:
        y = tl.where(x > 0.0, 1.0, tl.exp(tl.minimum(x, 0.0)))
    elif code == PYGOP_SOFTPLUS:
        y = tl.where(tl.abs(x) <= _CLAMP, -1.0 / (1.0 + tl.exp(x)), 0.0)
    else:
        y = x * 0.0 + 1.0
    return y


@triton.jit
def _tanh(x):
    # Through expm1, which is accurate near 0.
    t = _exp_minus_one(-2.0 * tl.abs(x), False)
    y = -t / (2.0 + t)
    return tl.where(x < 0.0, -y, y)


@triton.jit
def _softplus(x):
    """log(1 + exp(-x)), as the paper has it."""
    small = tl.exp(-tl.abs(x))
    # log1p by its series where 1 + small would lose digits.
    log = tl.where(small < 1e-3, small * (1.0 - small * (0.5 - small * (1.0 / 3.0))), tl.log(1.0 + small))
    return tl.maximum(-x, 0.0) + log
