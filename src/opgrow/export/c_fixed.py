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
from .c_fixed_inputs import FixedInputs, fixed_inputs, mantissa, rounded
from .c_fixed_pools import adds_products
from .c_storage import STORAGES, Storage
from .program import LINEAR, Program, Step
from .ranges import NARROW, find_ranges

__all__ = ["FixedProgram", "FixedStep", "fixed_program", "with_head"]

#: Fractional bits of probabilities.
PROBABILITY_BITS = 16
#: How much larger the features of other rows may be than those of the calibration rows.
_MARGIN = 2
#: Weights of 16 bits may do without so many of them where 32 bits then hold their sums.
_MOST_SPARED = 4
_INT16, _INT32 = 2**15 - 1, 2**31 - 1


@dataclass(frozen=True)
class FixedStep:
    """A step with its formats (numbers of fractional bits) and integer constants.

    ``largest_x`` is the largest magnitude of what it reads.
    ``neurons`` has a row for each neuron, as the C structure: bias, shift, scale, scale_bits, weight_bits.
    """

    step: Step
    x_bits: int
    psi_bits: int
    pair_bits: int
    pooled_bits: int
    activation_bits: int
    out_bits: int
    largest_x: int
    weight: np.ndarray
    neurons: list[tuple[int, int, int, int, int]]

    @property
    def narrow(self) -> bool:
        """Whether sums of products of weights and inputs fit into 32 bits."""
        return _fits_in_32_bits(self.weight, self.largest_x)


@dataclass(frozen=True)
class FixedProgram:
    """A program in integers.

    psi, and products of two, saturate at 2^digits. ``limits`` has the lowest and the highest value of each
    output, ``head_limits`` of each feature that the head reads; None where there are none. ``head_range`` is
    what `with_head` needs.
    """

    program: Program
    weights: str
    inputs: FixedInputs
    layers: list[list[FixedStep]]
    head: FixedStep
    output_bits: int
    digits: tuple[int, int]
    limits: list[tuple[int, int]] | None
    head_limits: list[tuple[int, int]] | None
    head_range: dict[str, float]

    @property
    def steps(self) -> list[FixedStep]:
        return [*(step for layer in self.layers for step in layer), self.head]

    @property
    def narrow(self) -> bool:
        """Whether all sums of products fit into 32 bits."""
        return all(step.narrow for step in self.steps if adds_products(step.step.operators))


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
    inputs = fixed_inputs(program.input_mean, program.input_scale, ranges.raw, bound, first)
    layers, largest_x = [], inputs.largest
    for steps, layer, bits in zip(program.layers, layer_ranges, layer_bits, strict=True):
        layers.append(
            [
                _fixed_step(s, r, (x_bits, largest_x), bits, weights, digits)
                for s, r in zip(steps, layer, strict=True)
            ]
        )
        x_bits, largest_x = bits, _INT16
    low, high = program.output_low, program.output_high
    if low is not None and high is not None:
        last = {**last, "output": float(np.maximum(np.abs(low), np.abs(high)).max())}
    out_bits = _fitting(last["output"], 29, 20 if program.classes else 30)
    head_limits = _limits(program.head_low, program.head_high, x_bits, _INT16)
    if head_limits is not None:
        largest_x = max(abs(limit) for pair in head_limits for limit in pair)
    return FixedProgram(
        program=program,
        weights=weights,
        inputs=inputs,
        layers=layers,
        head=_fixed_step(
            _filled(program.head, weights), last, (x_bits, largest_x), out_bits, weights, digits
        ),
        output_bits=PROBABILITY_BITS if program.classes else out_bits,
        digits=digits,
        limits=_limits(low, high, out_bits),
        head_limits=head_limits,
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
        _filled(head, fixed.weights),
        fixed.head_range,
        (old.x_bits, old.largest_x),
        old.out_bits,
        fixed.weights,
        fixed.digits,
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


def _limits(
    low: np.ndarray | None, high: np.ndarray | None, bits: int, most: int = _INT32
) -> list[tuple[int, int]] | None:
    """Pairs of limits with so many fractional bits; beyond ``most`` values saturate anyway."""
    if low is None or high is None:
        return None
    pairs = zip(low.tolist(), high.tolist(), strict=True)
    return [(rounded(a, bits, most), rounded(b, bits, most)) for a, b in pairs]


def _byte(bits: int) -> int:
    return max(-128, min(127, bits))


def _fixed_step(
    step: Step,
    ranges: dict[str, float],
    read: tuple[int, int],
    out_bits: int,
    weights: str,
    digits: tuple[int, int],
) -> FixedStep:
    """``read`` are the fractional bits and the largest magnitude of what the step reads."""
    x_bits, largest_x = read
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
        if adds_products(step.operators):
            fraction -= _spared(row, stored, fraction, largest_x)
        bits.append(_byte(fraction))
        values.append(stored.rounded(np.ldexp(row, fraction)))
    neurons = [
        _neuron(step, j, pooled_bits, after, out_bits, weight_bits) for j, weight_bits in enumerate(bits)
    ]
    return FixedStep(
        step, x_bits, psi_bits, pair_bits, pooled_bits, after, out_bits, largest_x, np.stack(values), neurons
    )


def _spared(row: np.ndarray, stored: Storage, fraction: int, largest_x: int) -> int:
    """Bits that a neuron's weights of 16 bits do without, so that its sum fits into 32; 0 if it does not."""
    if stored.limit != _INT16:
        return 0
    fit = (
        bits
        for bits in range(_MOST_SPARED + 1)
        if _fits_in_32_bits(stored.rounded(np.ldexp(row, fraction - bits))[None], largest_x)
    )
    return next(fit, 0)


def _fits_in_32_bits(weight: np.ndarray, largest_x: int) -> bool:
    """Whether no sum of weights (n_neurons, n_inputs), each times up to ``largest_x``, is larger."""
    return int(np.abs(weight.astype(np.int64)).sum(axis=1).max()) * largest_x <= _INT32


def _neuron(
    step: Step, j: int, pooled_bits: int, after: int, out_bits: int, weight_bits: int
) -> tuple[int, int, int, int, int]:
    """bias, shift, scale, scale_bits and weight_bits of a neuron."""
    exact = 1.0 if step.scale is None else float(step.scale[j])
    shift = 0.0 if step.shift is None else float(step.shift[j])
    scale, scale_bits = mantissa(exact)
    if step.mean is not None:  # the rounding of the scale should not move the neuron's mean
        shift += (exact - math.ldexp(scale, -scale_bits)) * float(step.mean[j])
    bias = 0.0 if step.bias is None else float(step.bias[j])
    return (
        rounded(bias, pooled_bits),
        rounded(shift, out_bits),
        scale,
        _byte(after + scale_bits - out_bits),
        weight_bits,
    )
