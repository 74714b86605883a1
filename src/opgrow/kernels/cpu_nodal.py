"""The nodal operators as scalar float32 functions, with their derivatives.

For each operator: psi(y, w); psi with its derivative by the weight; the derivative by the input. The integer
codes are those of `opgrow.operators`.
"""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

from .cpu_math import (
    CLAMP,
    INV_PI,
    LOG2E,
    ONE,
    TWO,
    ZERO,
    bounded_exp2,
    bounded_exp2m1,
    clamp,
    compiled,
    sin_cos_pi,
    sin_pi,
)

MULTIPLICATION, EXPONENTIAL, HARMONIC, QUADRATIC, GAUSSIAN, DOG, PYGOP_QUADRATIC, PYGOP_DOG = range(8)


@compiled(inline="always")
def multiplication(y, w):
    return w * y


@compiled(inline="always")
def exponential(y, w):
    return bounded_exp2m1(w * LOG2E * y)


@compiled(inline="always")
def harmonic(y, w):
    return sin_pi(w * INV_PI * y)


@compiled(inline="always")
def quadratic(y, w):
    return w * (y * y)


@compiled(inline="always")
def gaussian(y, w):
    return w * bounded_exp2(-w * LOG2E * (y * y))


@compiled(inline="always")
def dog(y, w):
    return w * y * bounded_exp2(-w * LOG2E * (y * y))


@compiled(inline="always")
def pygop_quadratic(y, w):
    z = w * clamp(y, -CLAMP, CLAMP)
    return z * z


@compiled(inline="always")
def pygop_dog(y, w):
    c = clamp(y, -CLAMP, CLAMP)
    return w * y * bounded_exp2(-w * LOG2E * (c * c))


@compiled(inline="always")
def inside(x):
    """1 where clamping leaves x alone and passes its gradient, else 0."""
    return ONE if abs(x) <= CLAMP else ZERO


@compiled(inline="always")
def multiplication_by_weight(y, w):
    return w * y, y


@compiled(inline="always")
def multiplication_by_input(y, w):
    return w


@compiled(inline="always")
def exponential_by_weight(y, w):
    z = bounded_exp2m1(w * LOG2E * y)
    return z, y * (z + ONE) * inside(w * y)


@compiled(inline="always")
def exponential_by_input(y, w):
    return w * bounded_exp2(w * LOG2E * y) * inside(w * y)


@compiled(inline="always")
def harmonic_by_weight(y, w):
    sine, cosine = sin_cos_pi(w * INV_PI * y)
    return sine, y * cosine


@compiled(inline="always")
def harmonic_by_input(y, w):
    return w * sin_cos_pi(w * INV_PI * y)[1]


@compiled(inline="always")
def quadratic_by_weight(y, w):
    return w * (y * y), y * y


@compiled(inline="always")
def quadratic_by_input(y, w):
    return TWO * w * y


@compiled(inline="always")
def gaussian_by_weight(y, w):
    a = w * (y * y)
    e = bounded_exp2(-a * LOG2E)
    return w * e, e * (ONE - a * inside(a))


@compiled(inline="always")
def gaussian_by_input(y, w):
    a = w * (y * y)
    return -TWO * w * w * y * bounded_exp2(-a * LOG2E) * inside(a)


@compiled(inline="always")
def dog_by_weight(y, w):
    a = w * (y * y)
    e = bounded_exp2(-a * LOG2E)
    return w * y * e, y * e * (ONE - a * inside(a))


@compiled(inline="always")
def dog_by_input(y, w):
    a = w * (y * y)
    return w * bounded_exp2(-a * LOG2E) * (ONE - TWO * a * inside(a))


@compiled(inline="always")
def pygop_quadratic_by_weight(y, w):
    c = clamp(y, -CLAMP, CLAMP)
    return w * c * w * c, TWO * w * c * c


@compiled(inline="always")
def pygop_quadratic_by_input(y, w):
    return TWO * w * w * y * inside(y)


@compiled(inline="always")
def pygop_dog_by_weight(y, w):
    c = clamp(y, -CLAMP, CLAMP)
    a = w * (c * c)
    e = bounded_exp2(-a * LOG2E)
    return w * y * e, y * e * (ONE - a * inside(a))


@compiled(inline="always")
def pygop_dog_by_input(y, w):
    c = clamp(y, -CLAMP, CLAMP)
    a = w * (c * c)
    return w * bounded_exp2(-a * LOG2E) * (ONE - TWO * a * inside(a) * inside(y))
