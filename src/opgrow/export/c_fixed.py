"""Fixed-point formats and integer constants of a program, from calibration rows.

Formats are numbers of fractional bits, so that changing one is a shift. They are chosen for the largest usual
magnitudes that the calibration rows lead to (`ranges`), rounded up to a power of two; what exceeds them later
saturates. Inputs that the network squashes have formats that follow from the bound alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from ..operators.kinds import stated
from .c_storage import STORAGES
from .program import LINEAR, Program, Step
from .ranges import NARROW, find_ranges

__all__ = ["BOUND_BITS", "FixedProgram", "FixedStep", "fixed_program", "with_head"]

#: Fractional bits of probabilities.
PROBABILITY_BITS = 16
#: Fractional bits of standardised inputs in units of the bound, before they are squashed.
BOUND_BITS = 20
#: Raw inputs are told apart up to so many bounds from their mean, where squashed ones have levelled off.
_REACH = 16
#: How much larger the features of other rows may be than those of the calibration rows.
_MARGIN = 2
_INT16, _INT32 = 2**15 - 1, 2**31 - 1


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
    activation_bits: int
    out_bits: int
    weight: np.ndarray
    neurons: list[tuple[int, int, int, int, int]]


@dataclass(frozen=True)
class FixedProgram:
    """A program in integers.

    ``inputs`` has a row for each input: mean, scale and scale_bits; psi, and products of two, saturate
    at 2^digits. ``bound`` is that of squashed inputs in their format, and ``limits`` has the lowest and the
    highest value of each output, ``head_limits`` of each feature that the head reads; None where there are
    none. ``head_range`` is what `with_head` needs.
    """

    program: Program
    weights: str
    input_bits: list[int]
    inputs: list[tuple[int, int, int]]
    layers: list[list[FixedStep]]
    head: FixedStep
    output_bits: int
    digits: tuple[int, int]
    bound: int | None
    limits: list[tuple[int, int]] | None
    head_limits: list[tuple[int, int]] | None
    head_range: dict[str, float]

    @property
    def steps(self) -> list[FixedStep]:
        return [*(step for layer in self.layers for step in layer), self.head]


def fixed_program(program: Program, rows: np.ndarray, weights: str, headroom: float = NARROW) -> FixedProgram:
    """Choose all formats from calibration rows (n, n_inputs) and round all constants to them."""
    ranges = find_ranges(program, rows, headroom)
    following = iter(ranges.steps)
    layer_ranges = [[next(following) for _ in layer] for layer in program.layers]
    last = next(following)
    digits = _digits(max(step.n_inputs for step in program.steps))
    bound = program.input_bound
    x_bits = first = _fitting(ranges.network_input, 15, 24) if bound is None else 15 - _exponent(bound)
    # Other rows than those for calibration have other largest features.
    largest = [_MARGIN * max(r["output"] for r in layer) for layer in layer_ranges]
    if layer_ranges:  # which the head alone reads
        largest[-1] = min(largest[-1], _largest_read(program))
    layer_bits = [_fitting(most, 15, 24) for most in largest]
    if program.keeps_layers:  # the head sees several layers as one
        seen = {span.layer for span in program.head_spans}
        shared = min(layer_bits[layer] for layer in seen)
        if program.head_sees_input:
            shared = x_bits = first = min(shared, first)
        layer_bits = [shared if layer in seen else bits for layer, bits in enumerate(layer_bits)]
    layers = []
    for steps, layer, bits in zip(program.layers, layer_ranges, layer_bits, strict=True):
        layers.append(
            [_fixed_step(s, r, x_bits, bits, weights, digits) for s, r in zip(steps, layer, strict=True)]
        )
        x_bits = bits
    low, high = program.output_low, program.output_high
    if low is not None and high is not None:
        last = {**last, "output": float(np.maximum(np.abs(low), np.abs(high)).max())}
    out_bits = _fitting(last["output"], 29, 20 if program.classes else 30)
    input_bits = _input_formats(program, ranges.raw)
    inputs = [
        _input(float(mean), float(scale), bits, first, bound)
        for mean, scale, bits in zip(program.input_mean, program.input_scale, input_bits, strict=True)
    ]
    return FixedProgram(
        program=program,
        weights=weights,
        input_bits=input_bits,
        inputs=inputs,
        layers=layers,
        head=_fixed_step(_filled(program.head, weights), last, x_bits, out_bits, weights, digits),
        output_bits=PROBABILITY_BITS if program.classes else out_bits,
        digits=digits,
        bound=None if bound is None else round(math.ldexp(bound, first)),
        limits=_limits(low, high, out_bits),
        head_limits=_limits(program.head_low, program.head_high, x_bits, _INT16),
        head_range=last,
    )


def _largest_read(program: Program) -> float:
    """The largest magnitude of a feature of the last layer that the head reads; infinite without limits."""
    if program.head_low is None or program.head_high is None:
        return math.inf
    most = np.maximum(np.abs(program.head_low), np.abs(program.head_high))
    seen = [span.layer for span in program.head_spans for _ in range(span.start, span.stop)]
    return float(most[-len(seen) :][np.array(seen) == len(program.layers) - 1].max(initial=0)) or math.inf


def with_head(fixed: FixedProgram, head: Step) -> FixedProgram:
    """The same program with another linear head, whose outputs are as large."""
    old = fixed.head
    new = _fixed_step(
        _filled(head, fixed.weights), fixed.head_range, old.x_bits, old.out_bits, fixed.weights, fixed.digits
    )
    return replace(fixed, program=replace(fixed.program, head=head), head=new)


def _filled(head: Step, weights: str) -> Step:
    """A linear head whose weights take the whole range of their integers; others as they are.

    Units of weights are powers of two, and up to half of the range would be left empty. The scale of a
    linear neuron can take up any factor.
    """
    if head.operators != LINEAR:
        return head
    unit = STORAGES[weights].units(head.weight)
    mantissa = np.frexp(np.where(unit > 0, 1 / np.where(unit > 0, unit, 1), 1))[0]
    factor = 2 * mantissa  # from 1 up to 2
    scale = np.ones(head.n_neurons) if head.scale is None else head.scale
    return replace(
        head,
        weight=head.weight * factor[:, None],
        bias=None if head.bias is None else head.bias * factor,
        scale=scale / factor,
        shift=np.zeros(head.n_neurons) if head.shift is None else head.shift,
        mean=None,
    )


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


def _input_formats(program: Program, raw: np.ndarray) -> list[int]:
    """Fractional bits of each raw input: 16, unless it is too large or too fine for them."""
    mean, scale = np.abs(program.input_mean), program.input_scale
    if program.input_bound is None:
        largest, room = np.maximum(raw, mean), 4
    else:
        largest, room = mean + _REACH * program.input_bound * scale, 1
    return [
        16 if room * most < 2**15 and unit > 2**-5 else max(-64, min(60, 30 - _exponent(most)))
        for most, unit in zip(largest.tolist(), scale.tolist(), strict=True)
    ]


def _input(mean: float, scale: float, bits: int, x_bits: int, bound: float | None) -> tuple[int, int, int]:
    factor, factor_bits = _mantissa(1 / scale if bound is None else 1 / (scale * bound))
    target = x_bits if bound is None else BOUND_BITS
    return _rounded(mean, bits), factor, _byte(bits + factor_bits - target)


def _mantissa(value: float) -> tuple[int, int]:
    """Integer m of 16 bits and e with value close to m / 2^e."""
    if value == 0:
        return 0, 0
    bits = 14 - math.floor(math.log2(abs(value)))
    mantissa = round(math.ldexp(value, bits))
    return (mantissa // 2, bits - 1) if abs(mantissa) > 32767 else (mantissa, bits)


def _rounded(value: float, bits: int, most: int = _INT32) -> int:
    return max(-most, min(most, round(math.ldexp(value, bits))))


def _limits(
    low: np.ndarray | None, high: np.ndarray | None, bits: int, most: int = _INT32
) -> list[tuple[int, int]] | None:
    """Pairs of limits with so many fractional bits; beyond ``most`` values saturate anyway."""
    if low is None or high is None:
        return None
    pairs = zip(low.tolist(), high.tolist(), strict=True)
    return [(_rounded(a, bits, most), _rounded(b, bits, most)) for a, b in pairs]


def _byte(bits: int) -> int:
    return max(-128, min(127, bits))


def _fixed_step(
    step: Step, ranges: dict[str, float], x_bits: int, out_bits: int, weights: str, digits: tuple[int, int]
) -> FixedStep:
    nodal = stated(step.operators.nodal_operator.fixed)
    activation = stated(step.operators.activation_operator.fixed)
    psi_bits = _fitting(ranges["psi"], digits[0] - 1, nodal.digits)
    pair_bits = _fitting(ranges["pair"], digits[1] - 1, 28)
    least, most = activation.input_bits
    # Twice as large in a head whose weights were enlarged to fill their range.
    pooled_bits = max(least, _fitting(2 * ranges["pooled"], 29, most))
    after = activation.result_bits(pooled_bits)
    if step.unit:  # pooled values are kept in 16 bits, and then have 15 fractional ones
        pooled_bits, after = _fitting(ranges["pooled"], 15, 24), activation.result_bits(15)
    stored, bits, values = STORAGES[weights], [], []
    for row in step.weight:
        fraction = stored.fraction(row)
        bits.append(_byte(fraction))
        values.append(stored.rounded(np.ldexp(row, fraction)))
    neurons = [
        _neuron(step, j, pooled_bits, after, out_bits, weight_bits) for j, weight_bits in enumerate(bits)
    ]
    return FixedStep(
        step, x_bits, psi_bits, pair_bits, pooled_bits, after, out_bits, np.stack(values), neurons
    )


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
