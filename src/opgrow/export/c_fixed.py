"""Fixed-point formats and integer constants of a program, from calibration rows.

Formats are numbers of fractional bits, so that changing one is a shift. They are chosen for the largest
magnitudes that the calibration rows lead to, rounded up to a power of two; what exceeds them later saturates.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from .c_fixed_operators import ACTIVATION_BITS, PSI_DIGITS
from .program import Program, Step
from .ranges import StepRange, find_ranges

__all__ = ["FixedProgram", "FixedStep", "fixed_program"]

#: Fractional bits of probabilities.
PROBABILITY_BITS = 16
#: Formats of pooled values for activations that saturate: fewer or more bits would be lost on them.
_BOUNDED_Z = {"sigmoid": (24, 24), "tanh": (24, 24), "pygop_softplus": (24, 24), "inverse_absolute": (12, 24)}
_ANY_Z = (-40, 24)
_INT32 = 2**31 - 1


@dataclass(frozen=True)
class FixedStep:
    """A step with its formats (numbers of fractional bits) and integer constants.

    ``neurons`` has a row for each neuron, as the C structure: bias, shift, scale, scale_bits, weight_bits.
    """

    step: Step
    x_bits: int
    psi_bits: int
    pair_bits: int
    pooled_bits: int
    out_bits: int
    weight: np.ndarray
    neurons: list[tuple[int, int, int, int, int]]


@dataclass(frozen=True)
class FixedProgram:
    """A program in integers.

    ``inputs`` has a row for each input: mean, scale and scale_bits; psi, and products of two, saturate
    at 2^digits.
    """

    program: Program
    weights: str
    input_bits: list[int]
    inputs: list[tuple[int, int, int]]
    layers: list[list[FixedStep]]
    head: FixedStep
    output_bits: int
    digits: tuple[int, int]

    @property
    def steps(self) -> list[FixedStep]:
        return [*(step for layer in self.layers for step in layer), self.head]


def fixed_program(program: Program, rows: np.ndarray, weights: str) -> FixedProgram:
    """Choose all formats from calibration rows (n, n_inputs) and round all constants to them."""
    ranges = find_ranges(program, rows)
    following = iter(ranges.steps)
    found = [[next(following) for _ in layer] for layer in program.layers]
    last = next(following)
    digits = _digits(max(step.n_inputs for step in program.steps))
    x_bits = first = _fitting(ranges.standardized, 15, 24)
    layer_bits = [_fitting(max(r.output for r in layer), 15, 24) for layer in found]
    if program.broad and layer_bits:  # the head sees all layers as one
        shared = min(layer_bits)
        if program.head_sees_input:
            shared = x_bits = first = min(shared, first)
        layer_bits = [shared] * len(layer_bits)
    layers = []
    for steps, layer, bits in zip(program.layers, found, layer_bits, strict=True):
        layers.append(
            [_fixed_step(s, r, x_bits, bits, weights, digits) for s, r in zip(steps, layer, strict=True)]
        )
        x_bits = bits
    out_bits = _fitting(last.output, 29, 20 if program.classes else 30)
    head = _fixed_step(program.head, last, x_bits, out_bits, weights, digits)
    input_bits = [
        _input_format(float(raw), float(scale))
        for raw, scale in zip(
            np.maximum(ranges.raw, np.abs(program.input_mean)), program.input_scale, strict=True
        )
    ]
    inputs = [
        _input(float(mean), float(scale), bits, first)
        for mean, scale, bits in zip(program.input_mean, program.input_scale, input_bits, strict=True)
    ]
    output_bits = PROBABILITY_BITS if program.classes else out_bits
    return FixedProgram(program, weights, input_bits, inputs, layers, head, output_bits, digits)


def _digits(n_inputs: int) -> tuple[int, int]:
    """Bits of psi and of products of two, such that no correlation of so many inputs exceeds 2^62."""
    terms = _exponent(n_inputs)
    psi = min(25, (62 - terms) // 2)
    return psi, min(30, 62 - terms - psi)


def _exponent(value: float) -> int:
    """The least e with value <= 2^e."""
    return math.ceil(math.log2(value)) if value > 0 else -1000


def _fitting(largest: float, digits: int, most: int) -> int:
    """Fractional bits for magnitudes up to ``largest`` in ``digits`` bits, at most ``most``."""
    # 2^digits itself does not fit any more.
    return min(most, digits - _exponent(largest * (1 + 2.0**-digits)))


def _input_format(largest: float, scale: float) -> int:
    """Q16.16, unless an input is too large or too fine for it."""
    if 4 * largest < 2**15 and scale > 2**-7:
        return 16
    return max(-64, min(60, 29 - _exponent(largest))) if largest > 0 else 16


def _input(mean: float, scale: float, bits: int, x_bits: int) -> tuple[int, int, int]:
    factor, factor_bits = _mantissa(1 / scale)
    return _rounded(mean, bits), factor, _byte(bits + factor_bits - x_bits)


def _mantissa(value: float) -> tuple[int, int]:
    """Integer m of 16 bits and e with value close to m / 2^e."""
    if value == 0:
        return 0, 0
    bits = 14 - math.floor(math.log2(abs(value)))
    mantissa = round(math.ldexp(value, bits))
    return (mantissa // 2, bits - 1) if abs(mantissa) > 32767 else (mantissa, bits)


def _rounded(value: float, bits: int) -> int:
    return max(-_INT32, min(_INT32, round(math.ldexp(value, bits))))


def _byte(bits: int) -> int:
    return max(-128, min(127, bits))


def _fixed_step(
    step: Step, found: StepRange, x_bits: int, out_bits: int, weights: str, digits: tuple[int, int]
) -> FixedStep:
    operators = step.operators
    psi_bits = _fitting(found.psi, digits[0] - 1, PSI_DIGITS[operators.nodal])
    pair_bits = _fitting(found.pair, digits[1] - 1, 28)
    least, most = _BOUNDED_Z.get(operators.activation, _ANY_Z)
    pooled_bits = max(least, _fitting(found.pooled, 29, most))
    after = ACTIVATION_BITS.get(operators.activation, pooled_bits)
    if step.unit:  # pooled values are kept in 16 bits, and then have 15 fractional ones
        pooled_bits, after = _fitting(found.pooled, 15, 24), ACTIVATION_BITS.get(operators.activation, 15)
    limit = np.iinfo(weights).max
    bits, values = [], []
    for row in step.weight:
        largest = float(np.abs(row).max())
        fraction = min(30, math.floor(math.log2(limit / largest))) if largest > 0 else 0
        bits.append(_byte(fraction))
        values.append(np.rint(np.ldexp(row, fraction)).clip(-limit, limit).astype(weights))
    neurons = [
        _neuron(step, j, pooled_bits, after, out_bits, weight_bits) for j, weight_bits in enumerate(bits)
    ]
    return FixedStep(step, x_bits, psi_bits, pair_bits, pooled_bits, out_bits, np.stack(values), neurons)


def _neuron(
    step: Step, j: int, pooled_bits: int, after: int, out_bits: int, weight_bits: int
) -> tuple[int, int, int, int, int]:
    """bias, shift, scale, scale_bits and weight_bits of a neuron."""
    exact = 1.0 if step.scale is None else float(step.scale[j])
    shift = 0.0 if step.shift is None else float(step.shift[j])
    scale, scale_bits = _mantissa(exact)
    if step.mean is not None:  # the rounding of the scale should not move the neuron's mean
        shift += (exact - math.ldexp(scale, -scale_bits)) * float(step.mean[j])
    bias = 0.0 if step.bias is None else float(step.bias[j])
    return (
        _rounded(bias, pooled_bits),
        _rounded(shift, out_bits),
        scale,
        _byte(after + scale_bits - out_bits),
        weight_bits,
    )
