"""The nodal operators as scalar float32 functions, with their derivatives.

For each operator: psi(y, w); psi with its derivative by the weight; the derivative by the input. The integer
codes are those of `opgrow.operators`.

Operators with an exponential or a sine also have ``_near`` forms without clamping and reduction of the
argument, for weights within `reach` of an input. There they return the same bits.
"""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

from typing import Any

import numpy as np

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
    cos_half_turn,
    exp2_unbounded,
    exp2m1_unbounded,
    sin_cos_pi,
    sin_half_turn,
    sin_pi,
)

MULTIPLICATION, EXPONENTIAL, HARMONIC, QUADRATIC, GAUSSIAN, DOG, PYGOP_QUADRATIC, PYGOP_DOG = range(8)


def by_nodal(build: Any, *forms: Any) -> Any:
    """One function for all nodal operators: ``build`` makes a loop of each form, the code chooses the loop.

    ``forms`` are in the order of the codes; None stands for an operator that nobody asks for.
    """
    last = build(next(form for form in reversed(forms) if form is not None))
    f0, f1, f2, f3, f4, f5, f6, f7 = (last if form is None else build(form) for form in forms)

    @compiled()
    def call(nodal, *arguments):
        if nodal == MULTIPLICATION:
            f0(*arguments)
        elif nodal == EXPONENTIAL:
            f1(*arguments)
        elif nodal == HARMONIC:
            f2(*arguments)
        elif nodal == QUADRATIC:
            f3(*arguments)
        elif nodal == GAUSSIAN:
            f4(*arguments)
        elif nodal == DOG:
            f5(*arguments)
        elif nodal == PYGOP_QUADRATIC:
            f6(*arguments)
        else:
            f7(*arguments)

    return call


#: Bounds of |w y| (harmonic) and of the exponents (the others) for the near forms, with room for rounding.
_QUARTER_TURN = np.float32(1.5707)
_EXPONENT = np.float32(9.999)
_UNLIMITED = np.float32(3e38)


@compiled()
def reach(nodal, largest):
    """The largest |w| for which the near form holds, given the largest |y|; below 0 where there is none."""
    if nodal != EXPONENTIAL and nodal != HARMONIC and nodal != GAUSSIAN and nodal != DOG:
        return -ONE
    if nodal == GAUSSIAN or nodal == DOG:
        largest *= largest
    if largest <= ZERO:
        return _UNLIMITED
    return (_QUARTER_TURN if nodal == HARMONIC else _EXPONENT) / largest


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
    return z, (y * (z + ONE) if abs(w * y) <= CLAMP else ZERO)


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


@compiled(inline="always")
def exponential_near(y, w):
    return exp2m1_unbounded(w * LOG2E * y)


@compiled(inline="always")
def harmonic_near(y, w):
    return sin_half_turn(w * INV_PI * y)


@compiled(inline="always")
def gaussian_near(y, w):
    return w * exp2_unbounded(-w * LOG2E * (y * y))


@compiled(inline="always")
def dog_near(y, w):
    return w * y * exp2_unbounded(-w * LOG2E * (y * y))


@compiled(inline="always")
def exponential_near_by_weight(y, w):
    z = exp2m1_unbounded(w * LOG2E * y)
    return z, y * (z + ONE)


@compiled(inline="always")
def harmonic_near_by_weight(y, w):
    t = w * INV_PI * y
    return sin_half_turn(t), y * cos_half_turn(t)


@compiled(inline="always")
def gaussian_near_by_weight(y, w):
    a = w * (y * y)
    e = exp2_unbounded(-a * LOG2E)
    return w * e, e * (ONE - a)


@compiled(inline="always")
def dog_near_by_weight(y, w):
    a = w * (y * y)
    e = exp2_unbounded(-a * LOG2E)
    return w * y * e, y * e * (ONE - a)


#: All forms in the order of the codes.
VALUES = (
    multiplication,
    exponential,
    harmonic,
    quadratic,
    gaussian,
    dog,
    pygop_quadratic,
    pygop_dog,
)
NEAR = (None, exponential_near, harmonic_near, None, gaussian_near, dog_near, None, None)
BY_WEIGHT = (
    multiplication_by_weight,
    exponential_by_weight,
    harmonic_by_weight,
    quadratic_by_weight,
    gaussian_by_weight,
    dog_by_weight,
    pygop_quadratic_by_weight,
    pygop_dog_by_weight,
)
NEAR_BY_WEIGHT = (
    None,
    exponential_near_by_weight,
    harmonic_near_by_weight,
    None,
    gaussian_near_by_weight,
    dog_near_by_weight,
    None,
    None,
)
BY_INPUT = (
    multiplication_by_input,
    exponential_by_input,
    harmonic_by_input,
    quadratic_by_input,
    gaussian_by_input,
    dog_by_input,
    pygop_quadratic_by_input,
    pygop_dog_by_input,
)
